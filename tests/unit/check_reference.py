#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each directive, reason, counter, message, local file system and source file is in its page, and no page names others.
Each promise of SECURITY.md names a test that exists.

Defaults and bounds of the settings are those of the page. tests/integration/test_pages.py checks that each setting,
command and option is there, and that the manual pages made of these pages have all of it.
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
NUMBER = re.compile(r"\bNUMBER_OF\(fp_conf, (\w+), (\w+), (\d+), (\d+), (\d+)\)")
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
    texts = {found for source in sources("*.c").values() for string in re.findall(r'"(?:\\.|[^"\\])*"', source)
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


def settings():
    in_code = {f"{name}: {default}, {least} to {most}, reload {'yes' if effect == 'RELOAD' else 'no'}"
               for name, effect, default, least, most in NUMBER.findall(text("backend/conf/conf.c"))}
    names = {line.split(":")[0] for line in in_code}
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| (yes|no) \|", text("docs/flashpached.conf.md"), re.M)
    in_page = {f"{key}: {default}, {bounds}, reload {effect}" for key, default, bounds, effect in rows if key in names}
    yield "setting", in_code, in_page, "docs/flashpached.conf.md"


def local_types():
    in_code = set(re.findall(r'\{ "(\w+)", \w+, true \}', text("backend/common/local_types.c")))
    page = re.search(r"^Local are ([^.]*)\.", text("docs/flashpached.conf.md"), re.M).group(1)
    yield "local file system", in_code, set(re.findall(r"\w+", page)) - {"and"}, "docs/flashpached.conf.md, Mounts"


def outcomes():
    rows = OUTCOME.findall(text("mod_flashpache/status/outcomes.c"))
    for outcome in ("bypass", "fallback"):
        table = section("docs/directives.md", f"| reason | {outcome} because |")
        in_code = {reason for name, reason in rows if name == outcome}
        yield f"reason of a {outcome}", in_code, once(first_cells(table)), "docs/directives.md"
    note = re.search(r"^\| `%\{flashpache\}n` \|.*$", text("docs/directives.md"), re.M).group()
    yield "outcome", {name for name, _ in rows}, set(re.findall(r"`(\w+)`:", note)), "%{flashpache}n in docs/directives.md"


def counters():
    in_code = set(COUNTER.findall(text("backend/common/stats_table.h")))
    fleet = {name for name in in_code if name.startswith("fleet_")}
    page = first_cells(section("docs/flashpachectl.md", "| counters | |"))
    yield "counter", in_code - fleet, set(page) - {"fleet_..."}, "stats in docs/flashpachectl.md"
    yield "counter, in one row", set(page), once(page), "stats in docs/flashpachectl.md"
    page = set(re.findall(r"^\| (`fleet_[^|]*) \|", text("docs/fleet.md"), re.M))
    yield "counter", fleet, {name for cell in page for name in re.findall(r"`(fleet_\w+)`", cell)}, "docs/fleet.md"


def files():
    rows = re.findall(r"^\| `([\w/]+)` \| [^|]* \| ([^|]*) \|$", text("HACKING.md").split("## Where to change what")[0], re.M)
    for name, cell in rows:
        room = next(SOURCE / folder for folder in (f"backend/{name}", name) if (SOURCE / folder).is_dir())
        yield f"file of {name}", {path.stem for path in room.glob("*.[ch]")}, set(re.findall(r"`(\w+)`", cell)), "HACKING.md"
    rooms = {path.parent.relative_to(SOURCE) for path in sources("*.[ch]")}
    named = {Path(name) if name.startswith(("backend", "mod_")) else Path("backend", name) for name, _ in rows}
    yield "room", set(map(str, rooms)), set(map(str, named)), "HACKING.md"


def promises():
    """Each promise of SECURITY.md names a test."""
    page = text("SECURITY.md")
    bullets = re.findall(r"^- (?:.*\n)(?:  .*\n)*", page.split("## What is promised")[1].split("\n## ")[0], re.M)
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
    for check in (messages, directives, settings, local_types, outcomes, counters, files, promises, tests, seeds):
        for kind, in_code, in_page, where in check():
            n += len(in_code)
            if not in_code:
                wrong.append(f"{kind}: found none in the sources")
            wrong += [f"{kind} {name} is in the sources and not in {where}" for name in sorted(in_code - in_page)]
            wrong += [f"{kind} {name} is in {where} and not in the sources" for name in sorted(in_page - in_code)]
    print("\n".join(wrong + [f"{n} names compared, {len(wrong)} differences"]))
    return 1 if wrong else 0


sys.exit(main())
