# SPDX-License-Identifier: Apache-2.0
"""Questions that wait for each other's walks all get their answer. They are about a directory, a file in it, and one
below that, asked at once and unknown before."""

import threading

import pytest

import tree
from fetch import Client
from httpd import HITS
from waiting import Threads

DELAY_US = 2000
ROUNDS = 12


@pytest.fixture(scope="module")
def server(lab, base, slow_directory):
    source = base / "joined-source"
    for i in range(ROUNDS):
        tree.put(source / f"here{i}" / "sub" / "file.txt", b"content\n")
    root = slow_directory(source, DELAY_US)
    return lab.under_test("flash", root, config="FlashpacheTimeout 5\n",
                          daemon_settings={"ttl_ms": 60000})


def ask_at_once(server, paths):
    """{path: status}"""
    ready, found = threading.Barrier(len(paths)), {}

    def ask(path):
        with Client(server.port) as client:
            ready.wait()
            found[path] = client.get(path)[0]
    with Threads(ask, [(path,) for path in paths]):
        pass
    return found


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("top,status", [("here", 200), ("none", 404)])
def test_nobody_is_left_waiting(server, top, status):
    mark = server.mark()
    for i in range(ROUNDS):
        below = f"/{top}{i}/sub"
        found = ask_at_once(server, [f"{below}/file.txt", f"{below}/", f"{below}/file.txt/more",
                                     below, f"{below}/other/deep/x"])
        assert found[f"{below}/file.txt"] == status
        assert found[f"{below}/other/deep/x"] == 404
    entries = server.wait_entries(5 * ROUNDS, mark)
    assert [e for e in entries if e.note not in HITS | {"miss"}] == []
