# SPDX-License-Identifier: Apache-2.0
"""A wall clock that a test sets: instead of waiting, the test tells its processes that time has passed."""

import os
import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest


class Clock:
    """Seconds ahead of the system's clock; it begins at none."""

    def __init__(self, directory):
        self.library, self.file = directory / "shifted_clock.so", directory / "shift"
        done = subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", self.library,
                               Path(__file__).with_name("shifted_clock.c")], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"needs a C compiler: {done.stderr[-300:]}")
        self.set(0)

    def set(self, seconds):
        # In place: every process with the library has the file mapped.
        with open(self.file, "r+b" if self.file.exists() else "wb") as out:
            out.write(struct.pack("q", seconds))

    @contextmanager
    def ahead(self, seconds):
        """By so many seconds until the block ends."""
        self.set(seconds)
        try:
            yield
        finally:
            self.set(0)


@contextmanager
def shifted(directory):
    """The clock of all processes that start in the block."""
    clock = Clock(directory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", f"{os.environ.get('LD_PRELOAD', '')} {clock.library}".strip())
        patch.setenv("SHIFTED_CLOCK", str(clock.file))
        yield clock
