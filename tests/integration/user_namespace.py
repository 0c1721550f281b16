# SPDX-License-Identifier: Apache-2.0
"""A user namespace with all users of the machine, for limits that no other process has."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

CLONE_NEWUSER = 0x10000000
USERS = "0 0 65536\n"


def around(limit):
    """The command that starts a program in such a namespace, with a limit of /proc/sys/user: "name=number"."""
    command = [sys.executable, __file__, limit]
    done = subprocess.run([*command, "true"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs a user namespace: {done.stderr[-200:]}")
    return command


def enter():
    """Only a process that stays outside may map all users."""
    left, mapped = os.pipe(), os.pipe()
    program = os.getpid()
    if os.fork() == 0:
        os.read(left[0], 1)
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{program}/{name}").write_text(USERS)
        os.write(mapped[1], b"x")
        os._exit(0)
    if ctypes.CDLL(None).unshare(CLONE_NEWUSER) == -1:
        sys.exit("cannot leave the user namespace")
    os.write(left[1], b"x")
    os.read(mapped[0], 1)
    os.wait()


if __name__ == "__main__":
    enter()
    limit_name, number = sys.argv[1].split("=")
    Path("/proc/sys/user", limit_name).write_text(number)
    os.execvp(sys.argv[2], sys.argv[2:])
