# SPDX-License-Identifier: Apache-2.0
"""Somebody mounts and unmounts file systems outside of every document root. The documents' leases hold, and what is not yet known
becomes known, also on a slow file system. A mount over documents counts at once."""

import ctypes
import os
import threading
from collections import Counter

import pytest

import tree
from fetch import Client
from forms import chosen

pytestmark = pytest.mark.needs_flashpache

FILES = 20
REQUESTS = chosen(3000, 20_000)
AT_ONCE = (1, 12)           # mounts that come and go together
LEAST_LEASES = 0.9       # 0.96 and more where nothing else runs
MNT_DETACH = 2
libc = ctypes.CDLL(None, use_errno=True)


def mount(point, size="64k"):
    if libc.mount(b"stranger", os.fsencode(point), b"tmpfs", 0, f"size={size}".encode()) == -1:
        pytest.skip(f"needs to mount: {os.strerror(ctypes.get_errno())}")


def unmount(point):
    libc.umount2(os.fsencode(point), MNT_DETACH)


class Storm:
    """Mounts and unmounts all the time, until the block ends."""

    def __init__(self, home, at_once):
        self.points = [home / f"mnt{number}" for number in range(at_once)]
        for point in self.points:
            point.mkdir(parents=True, exist_ok=True)
        self.rounds, self.over = 0, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.over.is_set():
            for act in (mount, unmount):
                for point in self.points:
                    act(point)
                    self.over.wait(0.005)       # as long as fusermount3 takes
            self.rounds += 1

    def __enter__(self):
        mount(self.points[0])       # it skips here
        unmount(self.points[0])
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


@pytest.fixture(scope="module", params=("local", "slow"))
def server(lab, base, slow_directory, request):
    root = base / request.param
    for number in range(FILES):
        tree.put(root / f"site/file{number}.txt", f"{number}\n")
    shown = root if request.param == "local" else slow_directory(root, 2000)
    yield lab.under_test(f"strangers-{request.param}", shown, daemon_settings={"ttl_ms": 600_000})
    lab.end()


def ask(client, number):
    assert client.get(f"/site/file{number % FILES}.txt") == (200, f"{number % FILES}\n".encode())


@pytest.mark.parametrize("at_once", AT_ONCE)
def test_leases_hold(server, base, at_once):
    with Client(server.port) as client, Storm(base / "home", at_once) as storm:
        # Paths that are not known yet become known in the storm.
        for number in range(FILES * 20):
            ask(client, number)
        mark = server.mark()
        for number in range(REQUESTS):
            ask(client, number)
        entries = server.wait_entries(REQUESTS, mark)
    notes = Counter(e.note for e in entries)
    print("\n", server.name, at_once, "at once:", storm.rounds, "rounds,", notes)
    assert storm.rounds > 2
    assert notes["lease"] + notes["hit"] == len(entries)
    assert notes["lease"] >= LEAST_LEASES * REQUESTS


def test_a_mount_over_documents_counts_at_once(server, base):
    if server.name.endswith("slow"):
        pytest.skip("one tree is enough")
    site = server.docroot / "site"
    with Client(server.port) as client, Storm(base / "home", AT_ONCE[-1]):
        for _ in range(20):
            ask(client, 1)
            mount(site)
            try:
                assert client.get("/site/file1.txt")[0] == 404
                tree.put(site / "file1.txt", "over\n")
                assert client.get("/site/file1.txt") == (200, b"over\n")
            finally:
                unmount(site)
