# SPDX-License-Identifier: Apache-2.0
"""Which form of the tests runs.

FLASHPACHE_FULL=1: the full form. It repeats tests that the normal form runs once: on every kind of file system,
with every MPM, with large numbers. Tests of the full form alone are marked `full`. It includes the long forms of
soak, leaks and flood (FLASHPACHE_LONG, conftest).
"""

import os

import pytest

FULL = os.environ.get("FLASHPACHE_FULL") == "1" or os.environ.get("FLASHPACHE_LONG", "0") != "0"


def full(*values, **named):
    """A parameter of the full form only."""
    return pytest.param(*values, marks=pytest.mark.full, **named)


def chosen(normal, in_full):
    """A number that is smaller in the normal form."""
    return in_full if FULL else normal


def full_where(is_full):
    """Combinations of parameters with a true is_full({name: value}) belong to the full form only."""
    return pytest.mark.full_where(is_full)


def never_where(is_senseless):
    """Combinations of parameters with a true is_senseless({name: value}) are no test at all."""
    return pytest.mark.never_where(is_senseless)


def mark(item):
    """Mark a collected test `full` or `never` where its parameters ask for it."""
    for name in ("full", "never"):
        for marker in item.iter_markers(f"{name}_where"):
            if marker.args[0](item.callspec.params):
                item.add_marker(name)


def is_wanted(item):
    """True if the test belongs to the current form."""
    return not item.get_closest_marker("never") and (FULL or not item.get_closest_marker("full"))
