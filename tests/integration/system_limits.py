# SPDX-License-Identifier: Apache-2.0
"""The system's release, and very small limits for new or for running processes."""

import errno
import itertools
import os
import platform
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

INOTIFY = Path("/proc/sys/fs/inotify")
LIMITS = {"nofile": "Max open files", "as": "Max address space"}     # in /proc/PID/limits


def needs_linux(major, minor, what):
    """Skips on an older kernel; what: the part of it that the test is about."""
    if tuple(map(int, platform.release().split(".")[:2])) < (major, minor):
        pytest.skip(f"needs Linux {major}.{minor} ({what})")


@contextmanager
def inotify(name, value):
    """The system's inotify limits: as small as possible."""
    file = INOTIFY / name
    before = file.read_text()
    try:
        file.write_text(str(value))
    except OSError as problem:
        pytest.skip(f"needs to set {file}: {problem}")
    try:
        yield
    finally:
        file.write_text(before)


def with_descriptors(number, program, script):
    """A script that runs the program with so few."""
    script.write_text(f'#!/bin/sh\nulimit -n {number}\nexec {program} "$@"\n')
    script.chmod(0o755)
    return str(script)


def _set_limit(pid, limit):
    """Runs as the process's own user, who may do that without any privilege. The process may have ended."""
    try:
        owner = os.stat(f"/proc/{pid}")
    except FileNotFoundError:
        return
    done = subprocess.run(["prlimit", "--pid", str(pid), limit], user=owner.st_uid, group=owner.st_gid,
                          extra_groups=[], capture_output=True, text=True)
    assert done.returncode == 0 or not os.path.exists(f"/proc/{pid}"), done.stderr


@contextmanager
def lowered(name, limits):
    """Limits (prlimit's names) of running processes: {pid: number}."""
    usual = {pid: re.search(rf"{LIMITS[name]} +(\w+)", Path(f"/proc/{pid}/limits").read_text())[1] for pid in limits}
    for pid, number in limits.items():
        _set_limit(pid, f"--{name}={number}:")
    try:
        yield
    finally:
        for pid in limits:
            _set_limit(pid, f"--{name}={usual[pid]}:")


def next_descriptor(pid):
    """The limit that leaves no descriptor free: the kernel gives out none from that number on."""
    used = set(map(int, os.listdir(f"/proc/{pid}/fd")))
    return next(fd for fd in itertools.count() if fd not in used)


class SmallDisk:
    """A tmpfs of its own that a test can fill to the last byte and the last name."""

    def __init__(self, path, size, inodes):
        self.path = path
        path.mkdir(exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes},mode=755",
                               "none", path], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"needs to mount a tmpfs: {done.stderr}")

    def fill(self):
        try:
            with open(self.path / "filler", "wb", buffering=0) as out:
                while out.write(bytes(4096)):
                    pass
        except OSError as problem:
            assert problem.errno == errno.ENOSPC
        try:
            for number in itertools.count():
                (self.path / f"filler{number}").symlink_to("nowhere")
        except OSError as problem:
            assert problem.errno == errno.ENOSPC

    def clear(self):
        for filler in self.path.glob("filler*"):
            filler.unlink()

    def unmount(self):
        subprocess.run(["umount", "-l", self.path], check=True)
