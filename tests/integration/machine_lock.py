# SPDX-License-Identifier: Apache-2.0
"""Tests that change what the whole machine has run while no other test does, of this run or of another.

Every test holds a lock: shared, or, if it is marked `alone`, exclusive. It is a lock on the very file with
the machine's limits: all runs on the machine have that one, whichever directory they are in. A test that
waits for the exclusive lock keeps the gate, so that no more tests begin until it has run.

A run that was killed leaves the limits as small as its test had made them, and hardly anything is a hit
from then on. So whoever gets the lock raises them first to what the tests need.
"""

import fcntl
from contextlib import contextmanager, suppress
from pathlib import Path

INOTIFY = Path("/proc/sys/fs/inotify")
LIMITS = INOTIFY / "max_user_watches"
GATE = INOTIFY / "max_user_instances"
LEAST = {"max_user_watches": 65536, "max_user_instances": 128, "max_queued_events": 16384}


def _raise_limits():
    """With the lock no test has made them small on purpose. Who is not root goes on with what there is."""
    for name, least in LEAST.items():
        file = INOTIFY / name
        if int(file.read_text()) < least:
            with suppress(OSError):
                file.write_text(str(least))
                print(f"{file} was below {least}, which a killed run may leave behind: raised")


@contextmanager
def held(exclusive):
    how = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        gate, limits = GATE.open(), LIMITS.open()
    except FileNotFoundError:       # a kernel without these limits: nothing can change them, either
        yield
        return
    with limits:
        with gate:
            fcntl.flock(gate, how)
            fcntl.flock(limits, how)
        _raise_limits()
        yield
