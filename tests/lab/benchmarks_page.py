#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what shared.py measured into docs/benchmarks.md, and what hit_cost.py measured into docs/results/hits.md.

  tests/lab/benchmarks_page.py [--page PAGE] FILE...

Each FILE is one that --json of these programs wrote. Rows of parts that were not measured stay.
"""

import argparse
import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHARED_PAGE, HIT_PAGE = DOCS / "benchmarks.md", DOCS / "results/hits.md"
CONFIGURATIONS = {"None": "`AllowOverride None`", "All": "`All`, no `.htaccess`",
                  "directory": "rules in `<Directory>`, `None`", "htaccess": "`All`, rules in `.htaccess`"}
HIT_HEAD = "| MPM | configuration | connections | 500 B | 5 KB | 50 KB | 1 MB |"
SHARED_HEAD = "| files and load | MPM, `AllowOverride` | measured | Flashpache to stock | goal | without files |"
FILES = {"many": "21,600 files, 1,024 connections", "few": "1,008 files, 256 connections",
         "first": "1,008 files that nobody asked about", "number 2": "the same files, second pass",
         "number 8": "the eighth, which leaves the hints", "number 9": "the ninth"}


def show(ratio):
    return f"{ratio['median']:.2f} ({ratio['min']:.2f}-{ratio['max']:.2f})"


def line(cells):
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def rows_of(page, head):
    """The rows below that head, each a list of cells."""
    rows = re.search(rf"^{re.escape(head)}\n\|[-|]*\n((?:\|.*\n)+)", page, re.M).group(1)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows.splitlines()]


def with_rows(page, head, rows):
    text = "".join(line(row) + "\n" for row in rows)
    return re.sub(rf"(^{re.escape(head)}\n\|[-|]*\n)(?:\|.*\n)+", lambda found: found.group(1) + text, page, flags=re.M)


def with_hits(page, measured):
    rows = {}
    for cell in measured:
        mpm, configuration, _, connections = cell["lease"]["cell"].split("/")
        rows.setdefault((mpm, configuration, connections), []).append(show(cell["lease"]["of_stock"]["cpu_us"]))
    return with_rows(page, HIT_HEAD, [[mpm, CONFIGURATIONS[configuration], connections, *cells]
                                      for (mpm, configuration, connections), cells in rows.items()])


def groups(measured):
    """Each part's rows; a pass over paths is a part here."""
    for part in {"many", "few"} & measured.keys():
        yield part, [(row["pair"], "capacity", row["rate"], f"{row['goal']:.2f} or more") for row in measured[part]]
    for which in FILES if "first" in measured else ():
        rows = [(row["pair"], "CPU a request", row["cpu_us"], f"{row['goal']:.2f} or less")
                for row in measured["first"] if row["pass"] == which]
        if rows:
            yield which, rows


def cell_of(pair):
    return "{}, `{}`".format(*pair.split("/"))


def with_shared(page, measured):
    kept, name = {}, ""
    for row in rows_of(page, SHARED_HEAD):
        name = row[0] or name
        kept.setdefault(name, []).append([name if not kept.get(name) else "", *row[1:]])
    without = {(name, row[1]): row[-1] for name, rows in kept.items() for row in rows}
    without.update({(FILES[row["part"]], cell_of(row["pair"])): show(row["rate"]) for row in measured.get("most", ())})
    for part, rows in groups(measured):
        kept[FILES[part]] = [["" if i else FILES[part], cell_of(pair), what, show(ratio), goal, ""]
                             for i, (pair, what, ratio, goal) in enumerate(rows)]
    for name, rows in kept.items():
        for row in rows:
            row[-1] = without.get((name, row[1]), "")
    return with_rows(page, SHARED_HEAD, [row for files in FILES.values() for row in kept[files]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="instead of these two")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    for file in arguments.files:
        measured = json.loads(file.read_text())
        page, written = (HIT_PAGE, with_hits) if isinstance(measured, list) else (SHARED_PAGE, with_shared)
        page = arguments.page or page
        page.write_text(written(page.read_text(), measured))


if __name__ == "__main__":
    main()
