# SPDX-License-Identifier: Apache-2.0
"""Another local user at work in the document root, and checks that a server recovered from it."""

import ctypes
import multiprocessing
import os
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import status_kit
from fetch import get
from httpd import HITS
from keepalive import Connection
from waiting import wait_for

UID = 12345                     # belongs to no real user
EXCHANGE = 2                    # RENAME_EXCHANGE
AT_FDCWD = -100
LIBC = ctypes.CDLL(None, use_errno=True)


def exchange(one, other):
    """Swaps the targets of both names in one moment."""
    if LIBC.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), EXCHANGE) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one))


def give(path):
    """Makes the other user the owner of everything there."""
    os.lchown(path, UID, UID)
    for _, directories, files, at in os.fwalk(path):
        for name in directories + files:
            os.chown(name, UID, UID, dir_fd=at, follow_symlinks=False)


def become():
    os.setgroups([])
    os.setgid(UID)
    os.setuid(UID)


class Attack:
    """Processes of the other user, one for each step; each repeats its step until the block ends."""

    def __init__(self, *steps):
        context = multiprocessing.get_context("fork")
        self.processes = [context.Process(target=self._run, args=(step,), daemon=True) for step in steps]

    @staticmethod
    def _run(step):
        become()
        while True:
            step()

    def __enter__(self):
        for process in self.processes:
            process.start()

    def __exit__(self, *_):
        ended = [p.exitcode for p in self.processes]
        for process in self.processes:
            process.kill()
            process.join()
        assert ended == [None] * len(ended), "an attack ended by itself"


def ask_until(port, paths, end, kind_of, **options):
    """Counter of (path, kind of answer) over one connection; a new one where it was closed."""
    found = Counter()
    connection = Connection(port, **options)
    while time.monotonic() < end:
        for path in paths:
            answer = connection.get(path)
            found[path, kind_of(path, answer)] += 1
            if not answer.complete or answer.headers.get("connection") == "close":
                connection.close()
                connection = Connection(port, **options)
    connection.close()
    return found


def load(port, paths, seconds, kind_of, connections=8, **options):
    """The same over several connections at once."""
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(connections) as pool:
        parts = pool.map(lambda _: ask_until(port, paths, end, kind_of, **options), range(connections))
        return sum(parts, Counter())


def busy_workers(server):
    """Without the worker that runs the report."""
    _, _, text = status_kit.fetch(server, status_kit.MOD_STATUS + "?auto")
    return int(re.search(r"^BusyWorkers: (\d+)$", text, re.MULTILINE).group(1)) - 1


def assert_well(server, path, content):
    """No worker hangs, nothing waits, and an honest request is a hit."""
    wait_for(lambda: busy_workers(server) == 0, "all workers to be idle")
    wait_for(lambda: not any(server.daemon.counters()[name] for name in ("inflight", "running", "queued")),
             "all workers to be idle")

    def hit():
        mark = server.mark()
        assert get(server.port, path) == (200, content)
        return server.wait_entries(1, mark)[-1].note in HITS
    wait_for(hit, f"a hit for {path}")
