# SPDX-License-Identifier: Apache-2.0
"""The table of docs/reliability.md, from the rows of tests (tests/integration/reliability.py).

reliability.py ROWS [PAGE]     prints it, or puts it between the two lines <!-- table --> of a page
"""

import json
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path

MARK = "<!-- table -->\n"
HEAD = ("| | requests | failed | wrong | well again after | |\n"
        "|---|---:|---:|---:|---:|---|\n")


def seconds(number):
    return "" if number is None else f"{number:.2f} s"


def line(row):
    return (f"| {row['case']} | {row['requests']} | {row['failed']} | {row['wrong']} "
            f"| {seconds(row['recovery_s'])} | {row['note']} |\n")


def table(rows):
    """Group by group, each in the order of its tests."""
    text = HEAD
    for group, members in groupby(sorted(rows, key=itemgetter("group", "order")), itemgetter("group")):
        text += f"| **{group}** | | | | | |\n" + "".join(map(line, members))
    return text


def main(rows, page=None):
    made = table([json.loads(text) for text in Path(rows).read_text().splitlines()])
    if page is None:
        print(made, end="")
        return
    before, _, after = Path(page).read_text().split(MARK)
    Path(page).write_text(f"{before}{MARK}{made}{MARK}{after}")


if __name__ == "__main__":
    main(*sys.argv[1:])
