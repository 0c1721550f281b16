# SPDX-License-Identifier: Apache-2.0
"""The outcome of a fault or an attack, for the table of docs/reliability.md.

FLASHPACHE_RELIABILITY  a file to which each row is added, as a line of JSON
"""

import dataclasses
import json
import os


order = 0               # the running test's place among all: tests run side by side, and rows come in any order


@dataclasses.dataclass
class Row:
    group: str                  # "fault", "hostile peer", "hostile content", ...
    case: str                   # the fault or attack in a few words
    requests: int               # from its begin until full recovery
    failed: int = 0             # without an answer, or with another one than stock's
    wrong: int = 0              # with a byte that is not the file's
    recovery_s: float | None = None     # from the end of the fault to the next hit; None: nothing to recover
    note: str = ""              # further facts that a reader needs, such as stock's behaviour


def tell(row):
    """Print the row, and add it to the table's file if one was asked for."""
    print(row)
    path = os.environ.get("FLASHPACHE_RELIABILITY")
    if path:
        with open(path, "a") as out:
            out.write(json.dumps({**dataclasses.asdict(row), "order": order}) + "\n")
