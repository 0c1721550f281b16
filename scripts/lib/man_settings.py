#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the settings of docs/man/flashpached.conf.5 from the tables of docs/flashpached.conf.md and docs/fleet.md.

  scripts/lib/man_settings.py [SOURCE_TREE]

The tables are the one description of the settings; tests/unit/check_reference.py compares the page with them.
"""

import re
import sys
import textwrap
from pathlib import Path

WIDTH = 78
SECTION = r"(\.Sh {}\n(?:.*\n)*?\.Bl -tag -width Ds\n)(?:.*\n)*?(\.El\n)"


def table(page, head):
    """The rows of the table with that head, each a dict of cells."""
    rows = re.search(rf"^{re.escape(head)}\n\|[-|]*\n((?:\|.*\n)+)", page, re.M).group(1)
    names = [name.strip() or "text" for name in head.strip("|").split("|")]
    for row in rows.splitlines():
        yield dict(zip(names, (cell.strip() for cell in row.strip("|").split(" | "))))


def plain(text):
    text = re.sub(r"\[([^\]]*)\]\(([^)]*)\)", lambda link: link.group(1), text)
    return re.sub(r"` `", ", ", text).replace("`", "").replace("\\", "\\e")


def sentences(text):
    """Each begins a line, as mdoc requires; none may begin with a character that troff takes for a request."""
    for sentence in filter(None, re.split(r"(?<=[.!?])\s+", text)):
        sentence = plain(sentence[0].upper() + sentence[1:]) + ("" if sentence[-1] in ".!?" else ".")
        for line in textwrap.wrap(sentence, WIDTH, break_long_words=False, break_on_hyphens=False):
            yield "\\&" + line if line[0] in ".'" else line


def first_line(row):
    if row["default"] == "needed":
        return "Needed."
    facts = [row["default"]] + ([row["range"]] if row.get("range") else [])
    return plain("Default: " + "; ".join(facts + (["restart"] if row.get("reload") == "no" else [])) + ".")


def entry(row):
    return [f".It Cm {row['key'].strip('`')}", *textwrap.wrap(first_line(row), WIDTH), *sentences(row.get("text", ""))]


def page_of(tree):
    """The manual page as it should be."""
    conf, fleet = ((tree / "docs" / name).read_text() for name in ("flashpached.conf.md", "fleet.md"))
    page = (tree / "docs/man/flashpached.conf.5").read_text()
    for section, text, head in (("SETTINGS", conf, "| key | default | range | reload | |"),
                                ("MOUNTS", conf, "| key | default | range | |"),
                                ("FLEET", fleet, "| key | default | |")):
        lines = "".join(line + "\n" for row in table(text, head) for line in entry(row))
        page, n = re.subn(SECTION.format(section), lambda found, lines=lines: found.group(1) + lines + found.group(2), page)
        assert n == 1, section
    return page


if __name__ == "__main__":
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    (source / "docs/man/flashpached.conf.5").write_text(page_of(source))
