# SPDX-License-Identifier: Apache-2.0
"""A test that changes limits of the whole machine runs while no other test does, of this run or of another.

Every test holds a lock: shared, or, if it is marked `alone`, exclusive. The locked file is the one with the
machine's limits: all runs on the machine have that one, whichever directory they are in. A test that waits for the
exclusive lock keeps the gate, so no more tests begin until it has run.

A killed run leaves the limits as small as its test had made them. From then on hardly any answer is a hit. So each
holder of the lock first raises them to the tests' needs.
"""

import fcntl
import os
from contextlib import contextmanager, suppress
from pathlib import Path

INOTIFY = Path("/proc/sys/fs/inotify")
LIMITS = INOTIFY / "max_user_watches"
GATE = INOTIFY / "max_user_instances"
LEAST = {"max_user_watches": 65536, "max_user_instances": 128, "max_queued_events": 16384}

_open = set()           # files with a lock of this process


def _close_in_child():
    """A lock belongs to the open file. A forked helper that outlives its test would keep the lock of a test that has ended.
    A test of its own run would wait for the gate behind one that waits for that lock."""
    for file in _open:
        file.close()
    _open.clear()


os.register_at_fork(after_in_child=_close_in_child)


def _raise_limits():
    """With the lock no test has made them small on purpose. Without root's rights the present limits stay."""
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
    except FileNotFoundError:       # a kernel without these limits: no test can change them, either
        yield
        return
    with limits:
        _open.update((gate, limits))
        with gate:
            fcntl.flock(gate, how)
            fcntl.flock(limits, how)
        _open.discard(gate)
        _raise_limits()
        try:
            yield
        finally:
            _open.discard(limits)
