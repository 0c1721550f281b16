# SPDX-License-Identifier: Apache-2.0
"""Processes: their parents, their descriptors, and their end."""

import multiprocessing
import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def beside(work, *args):
    """Runs work(*args), which has no end, in a process of its own, and kills it behind the block."""
    process = multiprocessing.get_context("fork").Process(target=work, args=args)
    process.start()
    try:
        yield
        assert process.is_alive(), f"{work.__name__} has ended: see its traceback"
    finally:
        process.kill()
        process.join()


def _stat(pid):
    """(comm, state, ppid) of a process, or None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    comm = text[text.index("(") + 1:text.rindex(")")]
    rest = text[text.rindex(")") + 2:].split()
    return comm, rest[0], int(rest[1])


def descendants(pid):
    """{pid: comm} of everything below pid, zombies left out."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            found = _stat(int(name))
            if found and found[1] != "Z":
                parents[int(name)] = found
    below = {}
    grown = True
    while grown:
        grown = False
        for child, (comm, _, ppid) in parents.items():
            if child not in below and (ppid == pid or ppid in below):
                below[child] = comm
                grown = True
    return below


def children(pid):
    """Pids whose parent is pid."""
    return [p for p in descendants(pid) if (_stat(p) or ("", "", 0))[2] == pid]


def state(pid):
    """The one-letter state of a process, or None when it is gone."""
    found = _stat(pid)
    return found[1] if found else None


def fd_count(pid):
    """The number of a process's descriptors."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def open_files(pid):
    """The target of each descriptor."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except FileNotFoundError:
            pass
    return found


def memory_kib(pid):
    """Of one process. The tables that daemon and children share have a fixed size, and count for none of them."""
    with open(f"/proc/{pid}/status") as status:
        return sum(int(line.split()[1]) for line in status if line.startswith(("RssAnon:", "RssFile:")))


def end(process, seconds=15):
    """Asks a Popen with a session of its own to end; kills the session if it does not."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
