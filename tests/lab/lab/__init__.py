# SPDX-License-Identifier: Apache-2.0
"""The lab: rigs, servers side by side, measurements, and the report of them."""

import os
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("FLASHPACHE_BUILD", REPO / "build")).resolve()

# The package has all files of Python in one directory.
for where in (REPO / "tests" / "integration", REPO / "tests" / "lab"):
    if where.is_dir() and str(where) not in sys.path:
        sys.path.insert(0, str(where))
sys.dont_write_bytecode = sys.pycache_prefix is None


def program(name, variable):
    """In the build directory; a package gives its path in the environment."""
    return Path(os.environ.get(variable) or BUILD / name)


class Impossible(Exception):
    """This machine lacks something that is needed; the text names it."""
