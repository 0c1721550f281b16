# SPDX-License-Identifier: Apache-2.0
"""What came of a fault or an attack, told for the table of docs/reliability.md.

FLASHPACHE_RELIABILITY  a file to which each row is added, as a line of JSON
"""

import dataclasses
import json
import os


order = 0               # the running test's place among all: tests run side by side, and rows are told in any order


@dataclasses.dataclass
class Row:
    group: str                  # "fault", "hostile peer", "hostile content", ...
    case: str                   # what was done, in a few words
    requests: int               # made while it was done and until all was well again
    failed: int = 0             # without an answer, or another one than stock's
    wrong: int = 0              # with a byte that is not the file's
    recovery_s: float | None = None     # from the end of the fault to the next hit; None: nothing to recover
    note: str = ""              # what a reader must know beside, such as what stock does


def tell(row):
    """Print the row, and add it to the table's file if one was asked for."""
    print(row)
    path = os.environ.get("FLASHPACHE_RELIABILITY")
    if path:
        with open(path, "a") as out:
            out.write(json.dumps({**dataclasses.asdict(row), "order": order}) + "\n")
