# SPDX-License-Identifier: Apache-2.0
"""Tests that change what the whole machine has run while no other test does, of this run or of another.

Every test holds a lock: shared, or, if it is marked `alone`, exclusive. It is a lock on the very file with
the machine's limits: all runs on the machine have that one, whichever directory they are in. A test that
waits for the exclusive lock keeps the gate, so that no more tests begin until it has run.
"""

import fcntl
from contextlib import contextmanager

LIMITS = "/proc/sys/fs/inotify/max_user_watches"
GATE = "/proc/sys/fs/inotify/max_user_instances"


@contextmanager
def held(exclusive):
    how = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        gate, limits = open(GATE), open(LIMITS)
    except FileNotFoundError:       # a kernel without these limits: nothing can change them, either
        yield
        return
    with limits:
        with gate:
            fcntl.flock(gate, how)
            fcntl.flock(limits, how)
        yield
