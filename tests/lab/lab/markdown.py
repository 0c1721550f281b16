# SPDX-License-Identifier: Apache-2.0
"""Pieces of the published pages: tables, and numbers with their range."""

from lab.page import number as _number

# Pages of the report, without their ending.
FOUND, PAPERS, ARCHITECTURES, INDEX = "found", "papers", "architectures", "README"


def number(value):
    """Three digits that count, or a dash."""
    return _number(value)


def ranged(spread):
    """The median, and the range behind it."""
    if spread is None:
        return "-"
    if spread.least == spread.most:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.least)}-{number(spread.most)})"


def cell(value):
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(head, rows):
    """The text of a table, with an empty line on both sides."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n" + "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines) + "\n"


def picture(name, text):
    return f"\n![{text}](figures/{name}.svg)\n"
