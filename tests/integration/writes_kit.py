# SPDX-License-Identifier: Apache-2.0
"""A stock httpd and one with Flashpache on the same tree, where requests and other processes write what is asked
for next."""

import multiprocessing
import os
import shutil
from pathlib import Path

import acl
from httpd import user_ids
from lease_kit import NOTE_CONFIG
from quick import Quick, field, note

OVERRIDES = {"none": "None", "all": "All"}
AREAS = ("cgi", "dav", "pages", "rights")
COMPARED = ("ETag", "Last-Modified", "Content-Length")
CGI_MODULE = {"event": "cgid", "prefork": "cgi"}
# The page that was written to the cache, if it is there; else the page itself.
REWRITING = """RewriteEngine On
RewriteCond %{DOCUMENT_ROOT}/cache%{REQUEST_URI} -f
RewriteRule ^ /cache%{REQUEST_URI} [L]
"""
SHOWN = 5


class Tree:
    """root/OVERRIDE/AREA, of which Apache's user may change `cgi` and `dav`, and root/cache/OVERRIDE/pages."""

    def __init__(self, root):
        self.root = Path(root)
        for override in OVERRIDES:
            for area in AREAS:
                self.at(override, area).mkdir(parents=True)
                os.chown(self.at(override, area), *user_ids())
            (self.root / "cache" / override / "pages").mkdir(parents=True)
        (self.at("all", "pages") / ".htaccess").write_text(REWRITING)

    def at(self, override, area):
        return self.root / override / area

    def config(self, directory):
        """directory: where the script and the lock database are."""
        allowed = "".join(f"<Directory {self.root}/{name}>\nAllowOverride {value}\n</Directory>\n"
                          f"<Directory {self.root}/{name}/dav>\nDav On\n</Directory>\n"
                          for name, value in OVERRIDES.items())
        return (f"{NOTE_CONFIG}{allowed}DavLockDB {directory}/locks/lock\nScriptAlias /answering {directory}/answering.sh\n"
                f"<Directory {directory}>\nRequire all granted\nOptions ExecCGI\n</Directory>\n")

    @staticmethod
    def vhosts():
        """The rewriting: here in the one half, by an access file in the other."""
        return [(["localhost"], REWRITING.replace("RewriteCond", "RewriteCond %{REQUEST_URI} ^/none/pages/\nRewriteCond", 1))]


def make_directory(path):
    """The script, and a place for the lock database."""
    (path / "locks").mkdir(parents=True)
    os.chown(path / "locks", *user_ids())
    shutil.copy(Path(__file__).with_name("answering.sh"), path)
    return path


class Hand:
    """Another process, which does what it is told and says when it is done."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=self._run, args=(other,))
        self.process.start()
        other.close()

    def _run(self, pipe):
        self.pipe.close()
        try:
            while True:
                function, arguments = pipe.recv()
                pipe.send(function(*arguments))
        except EOFError:
            pass

    def do(self, function, *arguments):
        """Its system calls have returned when this returns."""
        self.pipe.send((function, arguments))
        return self.pipe.recv()

    def close(self):
        self.pipe.close()
        self.process.join(10)
        self.process.kill()
        self.process.join()


class Site:
    """Connections to both servers, and another process."""

    def __init__(self, tree, stock_port, our_port):
        self.tree = tree
        self.stock, self.ours = Quick(stock_port), Quick(our_port)
        self.hand = Hand()

    def close(self):
        for one in (self.stock, self.ours, self.hand):
            one.close()


def seen(reply, headers=COMPARED):
    """What of a reply must be stock's. A file's ETag is weak in its first second."""
    return reply.status, reply.body[:100], *(field(reply, name).removeprefix("W/") for name in headers)


class Compared:
    """Replies of both servers, side by side."""

    def __init__(self, name):
        self.name, self.tries, self.differing, self.examples = name, 0, 0, []

    def add(self, what, ours, stock, headers=COMPARED):
        self.tries += 1
        if seen(ours, headers) == seen(stock, headers):
            return
        self.differing += 1
        if len(self.examples) < SHOWN:
            self.examples.append(f"{what}: {seen(ours, headers)}, note {note(ours)}; stock: {seen(stock, headers)}")

    def check(self):
        print(f"\n{self.name}: {self.differing} of {self.tries} differ from stock")
        assert not self.differing, (f"{self.differing} of {self.tries} differ from stock:\n"
                                    + "\n".join(self.examples))


# What the other process does

def write(path, text):
    Path(path).write_text(text)


def replace(path, text):
    write(f"{path}.new", text)
    os.rename(f"{path}.new", path)


def deny(path):
    acl.deny(path)


def allow(path):
    acl.allow(path)
