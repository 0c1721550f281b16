# SPDX-License-Identifier: Apache-2.0
"""The slow pass-through file system of the lab, mounted for a test."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from waiting import wait_for


def why_not():
    """The reason why slowfs cannot be mounted here, or None."""
    if os.geteuid() != 0:
        return "needs root to mount slowfs"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "needs FUSE: /dev/fuse is not there or not accessible"
    if not shutil.which("fusermount3"):
        return "needs fusermount3 (package fuse3)"
    return None


def needed():
    """Skips the test where slowfs cannot be mounted."""
    import pytest       # the lab uses this file too, and needs no pytest

    if why_not():
        pytest.skip(why_not())


def counters(process, stats):
    """What a slowfs with --stats has counted, and its mode, as a dictionary."""
    before = stats.stat().st_size if stats.exists() else 0
    process.send_signal(signal.SIGUSR1)
    wait_for(lambda: stats.exists() and stats.stat().st_size > before and stats.read_text().endswith("\n"), "a line of counters")
    return {name: int(value) if value.isdigit() else value
            for name, value in (word.split("=") for word in stats.read_text().splitlines()[-1].split())}


class Slowfs:
    """Shows source at target, with delay_us added to each metadata operation; options: slowfs's."""

    def __init__(self, program, source, target, delay_us, *options):
        self.program, self.source, self.target = str(program), Path(source), Path(target)
        self.delay_us, self.options = delay_us, options
        self.stats = self.target.with_name(f"{self.target.name}.stats")
        self.process = None

    def command(self):
        return [self.program, "--foreground", "--delay-us", str(self.delay_us), "--stats", str(self.stats), *self.options,
                str(self.source), str(self.target)]

    def mount(self):
        self.target.mkdir(exist_ok=True)
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL,
                                        start_new_session=True)

        def mounted():
            if self.process.poll() is not None:
                raise ChildProcessError("slowfs ended: " + " ".join(self.command()))
            return os.path.ismount(self.target)
        wait_for(mounted, f"slowfs at {self.target}")
        return self.target

    def counters(self):
        return counters(self.process, self.stats)

    def unmount(self):
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if os.path.ismount(self.target):
            subprocess.run(["fusermount3", "-u", "-z", str(self.target)], capture_output=True)
        self.process = None
