#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which file may include which: no include leads up the order of the rooms, none closes a circle.

A .c and the .h of its name are one. Prints what is wrong and ends with status 1. With --figures it prints the
files, lines and functions of each room as well.
"""

import os
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(os.environ.get("srcdir", Path(__file__).parents[2]))
PROGRAMS = ("backend", "mod_flashpache")
# Each room may use those behind it in a row, and nothing else.
ORDERS = (
    "backend lookup admin ipc fleet workers cache changes privsep conf shared wire base",
    "ctl conf files shared wire base",
    "files shared wire base",
    "mod_flashpache body access walk question setup status files shared wire base",
    "httpd13 question status files shared wire base",
    "httpd22 mod_flashpache body access question setup status files shared wire base",
    "srpt base",
)
# A definition: its head begins a line, its braces stand alone at the beginning of lines.
FUNCTION = re.compile(r"^[A-Za-z][^;{}#]*\)\n\{\n.*?^\}", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room_of(path):
    """backend/cache/due.c: cache; backend/main.c: backend."""
    return path.parent.name


def files():
    return sorted(path.relative_to(SOURCE) for program in PROGRAMS
                  for path in (SOURCE / program).rglob("*.[ch]"))


def arrows(known):
    """(file, included file) of this tree, stems both."""
    for path in known:
        for name in INCLUDE.findall((SOURCE / path).read_text()):
            for base in (*PROGRAMS, path.parent):
                target = Path(base) / name
                if target in known:
                    yield path.with_suffix(""), target.with_suffix("")
                    break


def may_use(room, other):
    if room == other:
        return True
    return any(other in order.split()[order.split().index(room) + 1:] for order in ORDERS if room in order.split())


def circles(uses):
    """Sets of files of which each leads to all the others (Tarjan's strongly connected components)."""
    index, low, stack, found = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for other in uses[file]:
            if other not in index:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == index[file]:
            members = stack[stack.index(file):]
            del stack[stack.index(file):]
            if len(members) > 1:
                found.append(members)
    for file in sorted(uses):
        if file not in index:
            visit(file)
    return found


def row(name, files_of):
    texts = [(SOURCE / path).read_text() for path in files_of]
    functions = [len(found.splitlines()) for path, text in zip(files_of, texts) if path.suffix == ".c"
                 for found in FUNCTION.findall(text)]
    print(f"{name:24} {len(texts):4} files {sum(len(text.splitlines()) for text in texts):6} lines "
          f"{len(functions):5} functions, median {statistics.median(functions or [0]):g}, "
          f"longest {max(functions, default=0)} lines")


def figures(known):
    rooms = defaultdict(list)
    for path in known:
        rooms[str(path.parent)].append(path)
    for room in sorted(rooms):
        row(room, rooms[room])
    row("in all", known)


def main():
    known = files()
    uses = defaultdict(set)
    for file, other in arrows(set(known)):
        if file != other:
            uses[file].add(other)
            uses[other] |= set()
    wrong = [f"{file} may not use {other}: {room_of(file)} stands below {room_of(other)} in {__file__}"
             for file in sorted(uses) for other in sorted(uses[file])
             if not may_use(room_of(file), room_of(other))]
    round_about = circles(uses)
    wrong += ["a circle: " + ", ".join(map(str, sorted(members))) for members in round_about]
    if "--figures" in sys.argv:
        figures(known)
    print("\n".join(wrong + [f"{len(known)} files, {sum(map(len, uses.values()))} arrows; "
                             f"{len(wrong) - len(round_about)} up, {len(round_about)} circles"]))
    return 1 if wrong or not known else 0


sys.exit(main())
