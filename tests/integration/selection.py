# SPDX-License-Identifier: Apache-2.0
"""The tests of the form (forms) that run, their order, and their groups when they run side by side.

FLASHPACHE_QUICK  1: only those of the modules in QUICK
FLASHPACHE_PART   beside: all but those marked `alone`; alone: only those
"""

import os

import pytest

import forms

QUICK_ONLY = os.environ.get("FLASHPACHE_QUICK") == "1"
PART = os.environ.get("FLASHPACHE_PART", "")

# One module for each promise: stock's answers, visible changes, control, faults, security, start and end.
QUICK = {"test_parity", "test_changes", "test_control", "test_faults", "test_security", "test_auto_daemon",
         "test_hardening", "test_pages", "test_documents"}
# These take longest and begin first, so no worker has one left at the end.
FIRST = ("test_vm", "test_linearizable", "test_packages", "test_walk_matrix", "test_read_your_writes", "test_bodies",
         "test_leaks", "test_changes", "test_parity", "test_soak",
         "test_content_changes", "test_auto_daemon", "test_tree", "test_workload", "test_bench", "test_faults")
# Modules with independent, slow tests: each value of a module's parameter is a group of its own.
SPLIT = {"test_walk_matrix", "test_bodies", "test_changes", "test_parity", "test_linearizable",
         "test_read_your_writes"}

PLACE = pytest.StashKey[int]()          # a test's place among all


def configure(config):
    config.addinivalue_line("markers", "full: only in scripts/test full")
    config.addinivalue_line("markers", "quick: in scripts/test quick, too; added here")
    config.addinivalue_line("markers", "alone: changes or counts what the whole machine has; runs beside no other test")


def _is_wanted(item):
    marked = item.get_closest_marker
    return (forms.is_wanted(item) and (not QUICK_ONLY or bool(marked("quick")))
            and (not PART or (PART == "alone") == bool(marked("alone"))))


def _group(item):
    """The unit of one pytest worker: a module, or the tests of one value of its parameter."""
    name = item.module.__name__
    values = getattr(getattr(item, "callspec", None), "params", {}) if name in SPLIT else {}
    of_module = [str(values[key]) for key in ("mpm", "site") if key in values]
    return "-".join([name, *of_module])


def select(config, items):
    """Keeps only the wanted tests in the list, the longest modules first."""
    for place, item in enumerate(items):
        item.stash[PLACE] = place
        if item.module.__name__ in QUICK:
            item.add_marker("quick")
    wanted = [item for item in items if _is_wanted(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _is_wanted(item)])
    ranks = {name: rank for rank, name in enumerate(FIRST)}
    wanted.sort(key=lambda item: ranks.get(item.module.__name__, len(ranks)))
    for item in wanted:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items[:] = wanted


def plain(report):
    """Takes the group from the name of a reported test: pytest cannot select a test by a name with a group."""
    if "PYTEST_XDIST_WORKER" not in os.environ and report.nodeid.rfind("@") > report.nodeid.rfind("]"):
        report.nodeid = report.nodeid.rpartition("@")[0]
