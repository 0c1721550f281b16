# SPDX-License-Identifier: Apache-2.0
"""A process's remaining rights, by /proc."""

from pathlib import Path

import procs
from conftest import BUILD
from daemon import WORKER
from waiting import wait_for

CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
DAEMON, MONITOR = "flashpached", "fp-monitor"
CLOSER, CLOSERS = "fp-closer", 4
FILTERED, FREE = "2", "0"           # modes of seccomp


def has_filters():
    """True if the daemon was built with filters."""
    return "#define HAVE_SECCOMP 1" in (BUILD / "config.h").read_text()


def status(pid):
    """{field: value} of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def assert_confined(daemon, capabilities=CAPABILITIES, filters=True):
    """Checks the daemon and all processes below it; returns the number of each name."""
    wanted = FILTERED if filters and has_filters() else FREE
    count = {}
    # A worker gets its name a moment before its filter, and no task before the filter.
    wait_for(lambda: all(status(pid)["Seccomp"] == wanted for pid, name in procs.descendants(daemon).items()
                         if name in (WORKER, CLOSER)), "the workers and closers to be ready")
    for pid in (daemon, *procs.descendants(daemon)):
        seen = status(pid)
        name = seen["Name"]
        assert [seen[c] for c in capabilities] == ["0" * 16] * len(capabilities), (name, seen)
        assert seen["NoNewPrivs"] == "1", name
        assert seen["Seccomp"] == (wanted if name in (DAEMON, WORKER, CLOSER) else FREE), name
        count[name] = count.get(name, 0) + 1
    return count
