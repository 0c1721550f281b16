# SPDX-License-Identifier: Apache-2.0
"""Which form of the tests runs.

FLASHPACHE_FULL=1: the full form. It repeats what the normal form shows once: on every kind of file
system, with every MPM, with large numbers. Tests of it alone are marked `full`.
"""

import os

import pytest

FULL = os.environ.get("FLASHPACHE_FULL") == "1"


def full(*values, **named):
    """A parameter of the full form alone."""
    return pytest.param(*values, marks=pytest.mark.full, **named)


def chosen(normal, in_full):
    """A number that is smaller in the normal form."""
    return in_full if FULL else normal


def full_where(is_full):
    """Combinations of parameters of which is_full({name: value}) is true are of the full form alone."""
    return pytest.mark.full_where(is_full)


def mark(item):
    """Mark a collected test `full` where its parameters say so."""
    for marker in item.iter_markers("full_where"):
        if hasattr(item, "callspec") and marker.args[0](item.callspec.params):
            item.add_marker("full")
