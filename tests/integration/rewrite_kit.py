# SPDX-License-Identifier: Apache-2.0
"""Generated RewriteConds and expressions that test files, in every context, and a tree of every kind of file for
them."""

import os
import random
import re
import socket

import tree

A_GROUP = 50            # conditions that one request evaluates
# files, if: a section in .htaccess; inherited: from the directory above.
CONTEXTS = ("server", "directory", "location", "htaccess", "files", "if", "inherited")
TESTS = ("-f", "-d", "-s", "-l", "-L", "-h", "-x")
# Patterns that stay mod_rewrite's own.
OTHERS = ("=", "^/", "-gt1", "-z", "-ff")
SUBREQUESTS = ("-F", "-U")
FLAGS = ("", "", "", "[NC]", "[NV]", "[nocase]", "[OR]", "[OR,NV]", '"[ ornext , NC ]"')
DEEP = "/".join("d" * 70)
# The kernel follows 40 links, and counts on where it begins a walk anew, as beside a mount: a longer chain fails at times.
LINKS = 20
# Names below the document root, in no order.
NAMES = ["file.txt", "empty", "run", "run-group", "closed", "dir", "dir/", "dir/in.txt", "dir//in.txt", "dir/./in.txt",
         "dir/../file.txt", "dir/.", "file.txt/", "file.txt/below", "file.txt/.", "shut", "shut/in.txt", "to-file",
         "to-file/", "to-dir", "to-dir/", "to-dir/in.txt", "to-dir/../file.txt", "nowhere", "nowhere/", "round",
         "to-link", "chain0", f"chain{LINKS - 1}", "absent", "absent/below", "a b.txt", "a%b", "a$b", "a$1b", "a'b", "a{b}",
         "ä.txt", "a|b", "fifo", "socket", "", "/", "n" * 255, "n" * 300, "x/" * 2100, DEEP, ".", "..", "changing",
         "changing/in.txt", "*.txt", "-f"]
# Whole paths.
PATHS = ["", "/", "//", "/etc/passwd", "/etc//passwd", "/dev/null", "file.txt", "1", "0 a", "/proc/self/status", "-f", "!-f"]


def make(root):
    """The tree. `changing` and below it change() works."""
    tree.put(root / "file.txt", "file\n")
    tree.put(root / "empty", "")
    tree.put(root / "run", "#!/bin/sh\n").chmod(0o755)
    tree.put(root / "run-group", "x").chmod(0o610)
    tree.put(root / "closed", "x").chmod(0o000)
    tree.put(root / "dir/in.txt", "in\n")
    tree.put(root / "shut/in.txt", "in\n")
    (root / "shut").chmod(0o700)
    for name in ("a b.txt", "a%b", "a$b", "a'b", "a{b}", "ä.txt", "a|b", "n" * 255, "*.txt", "-f"):
        tree.put(root / name, "x")
    for name, target in (("to-file", "file.txt"), ("to-dir", "dir"), ("nowhere", "absent"), ("round", "round"),
                         ("to-link", "to-file"), ("chain0", "file.txt")):
        os.symlink(target, root / name)
    for number in range(1, LINKS):
        os.symlink(f"chain{number - 1}", root / f"chain{number}")
    (root / DEEP).mkdir(parents=True)
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(root / "socket"))
    return root


CHANGES = (("file", lambda p: tree.put(p, "x")), ("empty", lambda p: tree.put(p, "")),
           ("run", lambda p: tree.put(p, "x").chmod(0o755)), ("directory", lambda p: tree.put(p / "in.txt", "x")),
           ("link", lambda p: os.symlink("file.txt", p)), ("none", lambda p: None))


def change(root, number):
    """Puts another kind of file at `changing`; returns the kind."""
    path = root / "changing"
    if path.is_dir() and not path.is_symlink():
        (path / "in.txt").unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    kind, put = CHANGES[number % len(CHANGES)]
    put(path)
    return kind


# Answers each key with a path below the document root.
PROGRAM = """#!/usr/bin/python3 -u
import sys
for line in sys.stdin:
    print(sys.argv[1] + "/" + line.rstrip("\\n"))
"""


class Conditions:
    """Rules of all groups; the same seed makes the same. program: one of the maps runs a program."""

    def __init__(self, root, groups, seed, program=False):
        self.root, self.random, self.program = root, random.Random(seed), program
        self.groups = [(CONTEXTS[number % len(CONTEXTS)], f"g{number}") for number in range(groups)]
        self.rules = {name: self._group(context) for context, name in self.groups}

    def _path(self):
        if self.random.random() < 0.2:
            return self.random.choice(PATHS)
        slash = self.random.choice(("/", "/", "/", "//"))
        return f"{self.root}{slash}{self.random.choice(NAMES)}"

    def _quoted(self, text):
        kinds = [f'"{text}"', f"'{text}'" if "'" not in text else f'"{text}"']
        if text and not text.startswith(("'", '"')):
            kinds.append(text.replace(" ", "\\ "))
        return self.random.choice(kinds)

    def _escaped(self, text):
        """The text as expansion returns it."""
        text = text.replace("\\", "\\\\")
        return text.replace("$", "\\$").replace("%", "\\%") if self.random.random() < 0.8 else text

    def _test_string(self):
        """(conditions before it, TestString)"""
        path = self._path()
        kind = self.random.randrange(14)
        if kind == 0:
            return "", self.random.choice(("%{REQUEST_FILENAME}", "%{SCRIPT_FILENAME}", "%{DOCUMENT_ROOT}%{REQUEST_URI}",
                                           "%{REQUEST_URI}", "%{LA-U:REQUEST_FILENAME}", "%{REQUEST_FILENAME}.gz"))
        if kind == 1:
            return "", self.random.choice(("%{HTTP:X-Path}", "%{DOCUMENT_ROOT}/%{HTTP:X-Name}", "%{HTTP:X-Path}/",
                                           "${lower:%{HTTP:X-Path}}", "${none:x|%{HTTP:X-Path}}"))
        if kind == 2:
            return "", self._quoted("${lower:%s}" % self._escaped(path))
        if kind == 3:
            return "", self._quoted("${none:key|%s}" % self._escaped(path))
        if kind == 4:
            return "RewriteCond %{HTTP:X-Path} ^(.*?)([^/]*)$\n", self.random.choice(("%1%2", "%0", '"%1/%2"', "%1", "$0"))
        if kind == 5:
            return "", self._quoted("%{DOCUMENT_ROOT}/${map:" + self.random.choice(("one", "two", "three|file.txt")) + "}")
        if kind == 6:
            return "", self._quoted(path)           # unescaped: mod_rewrite decides its meaning
        if kind == 7:
            return "", self._quoted(self.random.choice((
                "%{DOCUMENT_ROOT}/${lower:${map:one}}", "${none:${lower:KEY}|%{HTTP:X-Path}}", "%{DOCUMENT_ROOT}/${map:${lower:TWO}|absent}",
                "${lower:${none:${map:one}|%{DOCUMENT_ROOT}/${map:two}}}", "${unescape:${escape:%{HTTP:X-Path}}}")))
        if kind == 8:
            return "", self.random.choice(("$1", "%{DOCUMENT_ROOT}/$1", "%{DOCUMENT_ROOT}$1", "$0.gz", "%{DOCUMENT_ROOT}/%{ENV:FILE}",
                                           f"%{{DOCUMENT_ROOT}}/%{{ENV:c{self.random.randrange(A_GROUP)}}}"))
        if kind == 9:
            return self.random.choice((
                "RewriteCond %{HTTP:X-Name} ^(.*?)(/?)$\nRewriteCond %{DOCUMENT_ROOT}/%1 !-L\n",
                "RewriteCond %{HTTP:X-Path} ^(.*)/(.*)$\nRewriteCond %1 -d\nRewriteCond %1/%2 !-h\n")), self._quoted("%{DOCUMENT_ROOT}/%1%2")
        if kind == 10 and self.program:
            return "", self._quoted("${program:%s}" % self.random.choice(("%{HTTP:X-Name}", "file.txt", "absent", "${map:one}")))
        return "", self._quoted(self._escaped(path))

    def _expression(self, context):
        name = self.random.choice([n for n in NAMES if re.fullmatch(r"[\w./ -]*", n) and len(n) < 200])
        text = self.random.choice((f"'{self.root}/{name}'", "%{HTTP:X-Path}", "req('X-Path')", "%{REQUEST_FILENAME}"))
        # Newer httpds refuse that function in .htaccess.
        if context not in ("htaccess", "files", "if", "inherited") and self.random.random() < 0.2:
            return f"filesize({text}) -gt {self.random.choice((0, 4, 5))}" if "%" not in text else f"-s {text}"
        return f"{self.random.choice(('', '!'))}-{self.random.choice('fdesLhx')} {text}"

    def _rule(self, number, context):
        if self.random.random() < 0.12:
            return f'RewriteCond expr "{self._expression(context)}"\nRewriteRule ^(.*)$ - [E=c{number}:y]\n'
        before, test_string = self._test_string()
        test = self.random.choice(TESTS if self.random.random() < 0.88 else OTHERS)
        if self.random.random() < 0.02:
            before, test_string, test = "", self.random.choice(("/file.txt", "/absent")), self.random.choice(SUBREQUESTS)
        negation = self.random.choice(("", "!"))
        pattern = self.random.choice((f"{negation}{test}", f'"{negation}{test}"', f"'{negation}{test}'"))
        flags = self.random.choice(FLAGS)
        after = "RewriteCond %{HTTP:X-Or} =yes\n" if "OR" in flags or "ornext" in flags else ""
        return (f"{before}RewriteCond {test_string} {pattern} {flags}".rstrip() + f"\n{after}"
                f"RewriteRule ^(.*)$ - [E=c{number}:y%1.%2]\n")

    def _group(self, context):
        shown = "".join(f"%{{c{number}}}e," for number in range(A_GROUP))
        rules = "".join(self._rule(number, context) for number in range(A_GROUP))
        return f"\nRewriteEngine On\n{rules}Header always set X-Conditions \"{shown}\"\n", rules, shown

    # configuration

    def config(self, directory):
        """(text of the main server, virtual hosts); htaccess files are put into the tree."""
        inside, rules = [], []
        for context, group in self.groups:
            text, own, shown = self.rules[group]
            tree.put(self.root / group / "page.txt", f"{group}\n")
            if context == "server":
                rules.append(f"RewriteRule !^/{group}/ - [S={A_GROUP}]\n{own}")
                inside.append(f"<Location /{group}>\nHeader always set X-Conditions \"{shown}\"\n</Location>\n")
            elif context in ("htaccess", "inherited"):
                tree.put(self.root / group / ".htaccess", text)
                if context == "inherited":
                    tree.put(self.root / group / "below/page.txt", f"{group}\n")
                    tree.put(self.root / group / "below/.htaccess", "RewriteEngine On\nRewriteOptions Inherit\n")
            elif context in ("files", "if"):
                where = "Files *.txt" if context == "files" else "If \"true\""
                tree.put(self.root / group / ".htaccess", f"RewriteEngine On\n<{where}>{text}</{where.split()[0]}>\n")
            else:
                where = f"Directory {self.root}/{group}" if context == "directory" else f"Location /{group}"
                inside.append(f"<{where}>{text}</{where.split()[0]}>\n")
        return f"<Directory {self.root}>\nAllowOverride All\n</Directory>\n", [
            (["localhost"], f"{self.maps(directory)}RewriteEngine On\n{''.join(rules)}{''.join(inside)}")]

    def paths(self):
        """One that exists and one that does not, of each group."""
        return [f"/{group}{'/below' if context == 'inherited' else ''}/{name}"
                for context, group in self.groups for name in ("page.txt", "none.txt")]

    def maps(self, directory):
        tree.put(directory / "map.txt", "one file.txt\ntwo dir/\n")
        tree.put(directory / "none.txt", "nothing here\n")
        program = ""
        if self.program:
            tree.put(directory / "program", PROGRAM).chmod(0o755)
            program = f'RewriteMap program "prg:{directory}/program {self.root}"\n'
        return (f"SetEnvIf Request_URI page FILE=file.txt\n{program}RewriteMap escape int:escape\nRewriteMap unescape int:unescape\n"
                f"RewriteMap lower int:tolower\nRewriteMap map txt:{directory}/map.txt\n"
                f"RewriteMap none txt:{directory}/none.txt\n")
