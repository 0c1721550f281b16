# SPDX-License-Identifier: Apache-2.0
"""Tests that change what the whole machine has run while no other test does, of this run or of another.

Every test holds a lock: shared, or, if it is marked `alone`, exclusive. It is a lock on the very file with
the machine's limits: all runs on the machine have that one, whichever directory they are in.
"""

import fcntl
from contextlib import contextmanager

LIMITS = "/proc/sys/fs/inotify/max_user_watches"


@contextmanager
def held(exclusive):
    try:
        file = open(LIMITS)
    except OSError:         # a machine without these limits: nothing can change them, either
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
