#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each directive, reason, counter, message, local file system and source file is in its page, and no page names others.
So is each name of the status page and of Prometheus. Each promise of SECURITY.md names a test that exists.

Defaults and bounds of the settings are those of the page, and of the comments of conf/flashpached.conf.
tests/integration/test_pages.py checks that each setting, command and option is there, and that the manual pages made of
these pages have all of it.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("srcdir", Path(__file__).parents[2]))

MESSAGE = re.compile(r"\bFP0\d{3}\b")
# The id behind a level, whatever expression the level is.
LOGGED = re.compile(r"\bfp_log\(\s*[^,;]+?,\s*(\w+),")
COUNTER = re.compile(r"^ *(?:#define \w+\(ROW\) \\\n *)?ROW\((\w+),", re.M)
DIRECTIVE = re.compile(r'\bAP_INIT_\w+\(\s*"(\w+)"')
NUMBER = re.compile(r"\b(?:NUMBER|BYTES)_OF\((fp_conf|fp_mount_rule|fp_fleet_settings), (\w+), (\w+), (-?\d+), (\d+), (\d+)\)")
WORD = re.compile(r'\b(?:TEXT|WORD)_OF\((\w+), "?(\w+)"?, (?:\w+, )*(FP_DEFAULT_SOCKET|"[^"]*"),')
BOOLEAN = re.compile(r'\bBOOLEAN_OF\((\w+), (\w+), \w+, (true|false)\)')
OUTCOME = re.compile(r'\[FP_COUNT_\w+\] = \{ "(\w+)", (?:"(\w+)"|NULL) \}')


def text(name):
    return (SOURCE / name).read_text()


def sources(pattern):
    return {path: path.read_text() for folder in ("backend", "mod_flashpache")
            for path in sorted((SOURCE / folder).rglob(pattern))}


def section(page, begin):
    """From that line to the next empty one behind a table."""
    return re.search(rf"^{re.escape(begin)}\n(?:.*\n)*?\n", text(page) + "\n", re.M).group()


def first_cells(table):
    """The code in the first cell of each row."""
    return [name for cell in re.findall(r"^\| ([^|]*) \|", table, re.M) for name in re.findall(r"`([^`]+)`", cell)]


def once(names):
    return {name for name in names if names.count(name) == 1}


def messages():
    """The daemon's messages have a number, the module's have theirs in their text."""
    daemon = {found for path, source in sources("*.c").items() if path.name != "log.c" for found in LOGGED.findall(source)}
    texts = {found for source in sources("*.[ch]").values() for string in re.findall(r'"(?:\\.|[^"\\])*"', source)
             for found in re.findall(r"\b(FP0\d{3}):", string)}
    in_code = {f"FP{int(number):04}" for number in daemon} | texts
    rows = re.findall(r"^\| (FP\d{4}) \|", text("docs/flashpached.md"), re.M)
    yield "message", in_code, set(rows), "docs/flashpached.md, Messages"
    pages = [*SOURCE.glob("*.md"), *SOURCE.glob("docs/**/*.md")]
    named = {found for page in pages for found in MESSAGE.findall(page.read_text())}
    yield "message", in_code, named | in_code, "the pages"
    yield "message, in one row", set(rows), once(rows), "docs/flashpached.md"


def directives():
    in_code = {name for source in sources("*.c").values() for name in DIRECTIVE.findall(source)} - {"RewriteCond"}
    page = text("docs/directives.md")
    yield "directive", in_code, set(re.findall(r"^## (Flashpache\w+)$", page, re.M)), "the headings of docs/directives.md"
    yield "directive", in_code, set(re.findall(r"^\| Syntax \| `(\w+) ", page, re.M)), "Syntax in docs/directives.md"


def constant(source, name):
    return int(re.search(rf"\b{name} *=? *(\d+)", source).group(1))


def of_memory():
    """The default of memory: its share of the memory that there is, and the most MiB."""
    source = text("backend/derive.c")
    return constant(source, "MEMORY_SHARE"), int(re.search(r"MEMORY_MOST +\(\(size_t\)(\d+) << 20\)", source)[1])


def numbers(struct):
    """key: (effect, default, least, most)"""
    return {key: rest for of, key, *rest in NUMBER.findall(text("backend/conf/conf.c")) if of == struct}


def words(struct="fp_conf"):
    """The default of each setting that is no number, without quotes."""
    source = text("backend/conf/conf.c")
    socket = re.search(r"FP_SOCKET=(/[^\]]*)", text("configure.ac")).group(1)
    found = WORD.findall(source) + BOOLEAN.findall(source)
    return {key: default.replace("FP_DEFAULT_SOCKET", socket).strip('"') for of, key, default in found if of == struct}


def default_in_page(key, default):
    if default != "-1":
        return default
    return "1/{} of the memory, at most {}M".format(*of_memory())


def settings():
    in_code = {f"{key}: {default_in_page(key, default)}, {least} to {most}, reload {'yes' if effect == 'RELOAD' else 'no'}"
               for key, (effect, default, least, most) in numbers("fp_conf").items()}
    page = text("docs/flashpached.conf.md")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| (yes|no) \|", page, re.M)
    in_page = {f"{key}: {default}, {bounds}, reload {effect}" for key, default, bounds, effect in rows if key in numbers("fp_conf")}
    yield "setting", in_code, in_page, "docs/flashpached.conf.md"
    texts = words()
    del texts["user"], texts["group"]       # the page says in words that there is no default
    in_page = {f"{key}: " + default.strip('`"') for key, default, *_ in rows if key in texts}
    yield "setting", {f"{key}: {default}" for key, default in texts.items()}, in_page, "docs/flashpached.conf.md"
    in_code = {f"{key}: {least} to {most}" for key, (_, _, least, most) in numbers("fp_mount_rule").items()}
    in_page = {f"{key}: {bounds}" for key, bounds in re.findall(r"^\| `(\w+)` \| the general one \| ([^|]*) \|", page, re.M)}
    yield "setting of a mount", in_code, in_page, "docs/flashpached.conf.md, Mounts"


def shown_defaults(part, lead):
    """Settings behind a comment's sign, without quotes."""
    return dict(re.findall(rf'^#{lead}(\w+) = "?([^"#\n]*?)"?(?: *#.*)?$', part, re.M))


def example():
    """conf/flashpached.conf shows each setting with its default; of a share of the memory, the most it may be."""
    general, fleet = text("conf/flashpached.conf").split("#fleet {")
    fleet, rest = fleet.split("#}")
    defaults = words() | {key: default for key, (_, default, *_) in numbers("fp_conf").items()}
    defaults["memory"] = f"{of_memory()[1]}M"
    del defaults["user"], defaults["group"]     # a site has to name the one; the other is an example
    shown = shown_defaults(general + rest, "")
    in_page = {f"{key} = {shown[key]}" for key in defaults if key in shown}
    yield "default", {f"{key} = {default}" for key, default in defaults.items()}, in_page, "conf/flashpached.conf"
    shares = {f"memory: 1/{of_memory()[0]}"}
    in_page = {f"{key}: {share}" for key, share in re.findall(r"^#(\w+) = .*; else (1/\d+) of the memory", general, re.M)}
    yield "share of the memory", shares, in_page, "conf/flashpached.conf"
    defaults = words("fp_fleet_settings") | {key: default for key, (_, default, *_) in numbers("fp_fleet_settings").items()}
    del defaults["url"]                         # which a fleet needs
    in_page = {f"{key} = {default}" for key, default in shown_defaults(fleet, " +").items() if key in defaults}
    yield "default of a fleet", {f"{key} = {default}" for key, default in defaults.items()}, in_page, "conf/flashpached.conf"


def local_types():
    in_code = set(re.findall(r'\{ "(\w+)", \w+, true \}', text("backend/base/local_types.c")))
    page = re.search(r"^Local file systems are ([^.]*)\.", text("docs/flashpached.conf.md"), re.M).group(1)
    yield "local file system", in_code, set(re.findall(r"\w+", page)) - {"and"}, "docs/flashpached.conf.md, Mounts"


def outcomes():
    rows = OUTCOME.findall(text("mod_flashpache/status/outcomes.c"))
    for outcome in ("bypass", "fallback"):
        table = section("docs/directives.md", f"| reason | {outcome} because |")
        in_code = {reason for name, reason in rows if name == outcome}
        yield f"reason of a {outcome}", in_code, once(first_cells(table)), "docs/directives.md"
    words = section("docs/directives.md", "| word | the answer |")
    yield "outcome", {name for name, _ in rows}, once(first_cells(words)), "docs/directives.md"


def counters():
    in_code = set(COUNTER.findall(text("backend/shared/stats_table.h")))
    fleet = {name for name in in_code if name.startswith("fleet_")}
    page = first_cells(section("docs/flashpachectl.md", "| counters | |"))
    yield "counter", in_code - fleet, set(page) - {"fleet_..."}, "stats in docs/flashpachectl.md"
    yield "counter, in one row", set(page), once(page), "stats in docs/flashpachectl.md"
    page = set(re.findall(r"^\| (`fleet_[^|]*) \|", text("docs/fleet.md"), re.M))
    yield "counter", fleet, {name for cell in page for name in re.findall(r"`(fleet_\w+)`", cell)}, "docs/fleet.md"


def camel(name):
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def status_page():
    """Names of ?auto and of Prometheus: those written out in the source, and those made of outcomes and counters."""
    source, page = text("mod_flashpache/status/status_text.c").replace("'\"'", ""), text("docs/status.md")
    strings = "\n".join(re.findall(r'"(?:\\.|[^"\\])*"', source)).replace("\\n", "\n")
    written = set(re.findall(r'\b(Flashpached?[A-Z]\w*)(?:%s)?: |"(flashpached?_\w*[a-z])\b', strings))
    written = {name or other for name, other in written}
    rows = OUTCOME.findall(text("mod_flashpache/status/outcomes.c"))
    written |= {f"Flashpache{camel(name)}" for name, reason in rows if not reason}
    results = re.search(r"fp_php_results\[.*?\] = \{(.*?)\}", text("mod_flashpache/status/outcomes.c"))[1]
    written |= {f"FlashpachePhp{camel(name)}" for name in re.findall(r'"(\w+)"', results)}
    made = {f"Flashpache{camel(name)}{camel(reason)}" for name, reason in rows}
    for name, kind in re.findall(r"\bROW\((\w+), [^,]+, (counter|gauge),", text("backend/shared/stats_table.h")):
        made |= {f"Flashpached{camel(name)}", f"flashpached_{name}_total" if kind == "counter" else f"flashpached_{name}"}
    alerts = {name for name in first_cells(section("docs/status.md", "| alert | when |"))}
    named = {name for code in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S))
             for name in re.findall(r"\bFlashpached?[A-Z]\w*|\bflashpached?_\w+", code)}
    others = {name for name in named if re.search(rf"^## {name}$", text("docs/directives.md"), re.M)} | alerts
    yield "name", written, named - others - (made - written), "docs/status.md"
    labels = set(re.findall(r'[{,](\w+)=\\"', source)) - {"le"}
    yield "label", labels, {label for found in re.findall(r"\{([\w,=\"]+)\}`", page)
                            for label in re.findall(r'(?:^|,)(\w+)', found)}, "docs/status.md"
    reasons = {name for name, reason in rows if reason}
    yield "outcome with reasons", reasons, {name for name, reason in re.findall(r'\{outcome="(\w+)",reason="(\w+)"\}', page)
                                            if (name, reason) in rows}, "docs/status.md"
    queries = set(re.findall(r'\bargument\(r, "(\w+)"\)', text("mod_flashpache/status/status.c")))
    yield "query", queries, set(re.findall(r"^\| `\?(\w+)(?:=\d+)?` \|", page, re.M)), "docs/status.md"
    texts = re.search(r"texts\[\] = \{ ([^}]*) \}", text("mod_flashpache/status/health.c")).group(1)
    yield "word", set(re.findall(r"\w+", texts)), set(first_cells(section("docs/status.md", "| word | when |"))), "docs/status.md"


def files():
    rows = re.findall(r"^\| `([\w/]+)` \| [^|]* \| ([^|]*) \|$", text("HACKING.md").split("## Where to change what")[0], re.M)
    cells = {}
    for name, cell in rows:             # a room may have several
        cells[name] = f"{cells.get(name, '')} {cell}"
    for name, cell in cells.items():
        room = next(SOURCE / folder for folder in (f"backend/{name}", name) if (SOURCE / folder).is_dir())
        yield f"file of {name}", {path.stem for path in room.glob("*.[ch]")}, set(re.findall(r"`(\w+)`", cell)), "HACKING.md"
    rooms = {path.parent.relative_to(SOURCE) for path in sources("*.[ch]")}
    named = {Path(name) if name.startswith(("backend", "mod_")) else Path("backend", name) for name, _ in rows}
    yield "room", set(map(str, rooms)), set(map(str, named)), "HACKING.md"


def promises():
    """Each promise of SECURITY.md names a test."""
    page = text("SECURITY.md")
    bullets = re.findall(r"^- (?:.*\n)(?:  .*\n)*", page.split("## What Flashpache promises")[1].split("\n## ")[0], re.M)
    held = [bullet for bullet in bullets if re.search(r"\b(?:test|check)_\w", bullet)]
    yield "promise", set(bullets), set(held), "a test's name behind it"


def tests():
    """Each test that a page names is a file or a function."""
    named = {name for page in [*SOURCE.glob("*.md"), *SOURCE.glob("docs/**/*.md")]
             for name in re.findall(r"\b(?:test|check)_\w+", page.read_text())} - {"check_config"}     # a hook of httpd's
    there = {path.stem for folder in ("unit", "integration") for path in (SOURCE / "tests" / folder).iterdir()}
    there |= {name for path in SOURCE.glob("tests/integration/*.py") for name in re.findall(r"^def (\w+)", path.read_text(), re.M)}
    yield "test that pages name", named, named & there, "tests/"


def seeds():
    """A seed of an older protocol would be refused at once, and reach nothing."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([sys.executable, SOURCE / "tests/fuzz/seeds.py", place], check=True)
        written = {str(path.relative_to(place)): path.read_bytes() for path in Path(place).glob("*/*")}
    corpus = {name: path.read_bytes() for name in written if (path := SOURCE / "tests/fuzz/corpus" / name).is_file()}
    yield "seed", set(written), {name for name in corpus if corpus[name] == written[name]}, "tests/fuzz/corpus: run tests/fuzz/seeds.py"


def main():
    wrong, n = [], 0
    for check in (messages, directives, settings, example, local_types, outcomes, counters, status_page, files, promises, tests,
                  seeds):
        for kind, in_code, in_page, where in check():
            n += len(in_code)
            if not in_code:
                wrong.append(f"{kind}: found none in the sources")
            wrong += [f"{kind} {name} is in the sources and not in {where}" for name in sorted(in_code - in_page)]
            wrong += [f"{kind} {name} is in {where} and not in the sources" for name in sorted(in_page - in_code)]
    print("\n".join(wrong + [f"{n} names compared, {len(wrong)} differences"]))
    return 1 if wrong else 0


sys.exit(main())
