# SPDX-License-Identifier: Apache-2.0
"""No path, peer or purge makes a turn of the daemon's loop long. The tests try deep paths, floods of names, children
that mark everything as used, and purges of large trees.

The tests assert counts of work. Pieces over 5 ms (`long_pieces`, in processor time) may be a hundredth of the
questions, as a machine may be slow at any moment. Work without a bound makes as many as there are questions.
"""

import contextlib
import mmap
import os
import socket

import pytest

import compare
import tree
import wire
from compare import Ask
from fetch import get
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

TOO_DEEP = 19
STEPS = 64                  # of a path, "/" included
ASKED = 300
DEEP = "/p" * 2000
EXISTS = "/e" * 70 + "/file.txt"
NAMES = 20_000
MARKED = 4000               # names that fill the memory
BESIDE = 32                 # connections at once
SETTLED = 128               # entries that one eviction visits at most, plus two of its own
FORGOTTEN_AT_ONCE = 64      # entries of a tree, by one purge
SHARE = 100


@pytest.fixture(scope="module")
def root(base):
    root = base / "budget"
    tree.put(root / "index.html", "index\n")
    tree.put(root / "file.txt", "a file\n")
    tree.put(root / "many/file.txt", "one of many\n")
    tree.put(root / "some/file.txt", "one of some\n")
    tree.put(root / EXISTS.strip("/"), "deeper than answers go\n")
    return root


@contextlib.contextmanager
def greeted(daemon, n=1):
    conns = [wire.greet(daemon.socket) for _ in range(n)]
    try:
        yield conns if n > 1 else conns[0]
    finally:
        for conn in conns:
            conn.close()


def ask(conn, path):
    return wire.parse_answer(wire.ask(conn, wire.whole_lookup(path)))


def ask_all(conns, paths):
    """(status, source, leasable?) of each, some at once."""
    found = []
    for at in range(0, len(paths), len(conns)):
        some = list(zip(conns, paths[at:at + len(conns)]))
        for conn, path in some:
            conn.sendall(wire.whole_lookup(path))
        found += [wire.parse_answer(wire.receive(conn)) for conn, _ in some]
    return found


def assert_short(daemon, before, asked):
    """Few of those were long, whatever the machine's load."""
    after = daemon.counters()
    grown = after["long_pieces"] - before["long_pieces"]
    assert grown <= asked / SHARE, daemon.log_text()
    return after


# ---- deep paths ----

def test_deep_paths_are_refused_at_once(lab, root):
    """Such a path needs no walk, and nothing of it is kept."""
    with lab.daemon("deep") as daemon, greeted(daemon) as conn:
        ask(conn, f"{root}/file.txt")
        before = daemon.counters()
        for _ in range(ASKED):
            assert ask(conn, f"{root}{DEEP}"[:4094])[0] == TOO_DEEP
        assert ask(conn, "/x" * STEPS)[0] == TOO_DEEP
        after = assert_short(daemon, before, ASKED)
        for name in ("walks", "misses", "negative", "directories"):
            assert after[name] == before[name], name
        assert after["unanswered"] - before["unanswered"] == ASKED + 1
        assert ask(conn, "/x" * (STEPS - 1))[0] == 0


def test_deep_paths_get_stocks_answer(lab, root):
    """As many components as the daemon answers, one more, and very many: the response does not depend on its source."""
    depth = str(root).count("/") + 1
    paths = ["/q" * (STEPS - depth + more) for more in (-1, 0, 1)] + [DEEP, f"/file.txt{DEEP}", f"/many{DEEP}", EXISTS]
    stock = lab.stock("deep-stock", root, config=compare.LOG_FORMAT).start()
    flash = lab.under_test("deep-flash", root, config=compare.LOG_FORMAT)
    found = compare.differences(stock, flash, [Ask("localhost", path) for path in paths])
    assert not found, compare.told(found)
    before = flash.daemon.counters()
    mark = flash.mark()
    get(flash.port, DEEP)
    assert [(e.note, e.reason) for e in flash.wait_entries(1, mark)] == [("bypass", "deep")]
    assert flash.daemon.counters()["unanswered"] == before["unanswered"]


# ---- floods ----

def memory_for(entries):
    """The setting with which there is room for so many entries of each kind."""
    return entries * 1024 // 8 * 13


def test_names(lab, root):
    """A flood of absent names, more than are kept."""
    paths = [f"{root}/many/none{i}" for i in range(NAMES)]
    with lab.daemon("names", memory=memory_for(NAMES // 4)) as daemon, greeted(daemon, BESIDE) as conns:
        before = daemon.counters()
        assert {status for status, _, _ in ask_all(conns, paths)} == {0}
        after = assert_short(daemon, before, NAMES)
    assert after["negative"] == NAMES // 4
    assert after["visits"] - before["visits"] <= (SETTLED + 2) * (after["evictions"] - before["evictions"])


class Marks:
    """The bytes by which a child reports the slots of the lease table that it used."""

    def __init__(self, daemon):
        self.conn = wire.connect(daemon.socket)
        self.conn.sendall(wire.hello())
        self.fds = [socket.recv_fds(self.conn, 65536, 4)[1][0] for _ in wire.GREETING]
        self.size = os.fstat(self.fds[1]).st_size
        self.memory = mmap.mmap(self.fds[1], self.size)

    def set_all(self):
        self.memory[:] = b"\1" * self.size

    def close(self):
        self.memory.close()
        self.conn.close()
        for fd in self.fds:
            os.close(fd)


def test_marks(lab, root):
    """A child that always reports all slots as used makes neither evictions nor refreshes long."""
    limits = {"memory": memory_for(MARKED), "open_files": 100}
    with lab.daemon("marks", **limits) as daemon, greeted(daemon, BESIDE) as conns:
        ask_all(conns, [f"{root}/many/none{i}" for i in range(MARKED)])
        marks = Marks(daemon)
        before = daemon.counters()
        for i in range(0, 1000, BESIDE):
            marks.set_all()
            ask_all(conns, [f"{root}/many/more{i + n}" for n in range(BESIDE)])
        after = assert_short(daemon, before, 1000)
        marks.close()
    evictions = after["evictions"] - before["evictions"]
    # On a busy machine fewer of the 1,000 names are kept.
    assert evictions >= 500, {name: after[name] - before[name] for name in after}
    assert after["visits"] - before["visits"] <= (SETTLED + 2) * evictions


# ---- purges ----

@pytest.mark.not_sanitized("its memory is the sanitizer's as well")
def test_purge_of_a_large_tree(lab, root):
    """The reply comes before the entries are gone, and after it no answer is old. The purge visits only the entries
    that it removes. The memory is given back."""
    many = [f"{root}/many/none{i}" for i in range(NAMES)]
    some = [f"{root}/some/none{i}" for i in range(200)]
    with lab.daemon("purge", memory=memory_for(2 * NAMES)) as daemon, greeted(daemon, BESIDE) as conns:
        ask_all(conns, some + many)
        assert {source for _, source, _ in ask_all(conns, some + many[-200:])} == {wire.KNOWN}
        before = daemon.counters()
        status, count, _, _ = wire.parse_done(wire.ask(conns[0], wire.purge(wire.TREE, f"{root}/many")))
        told = ask_all(conns, many[-200:])
        # Walks that only passed through the directory made no entry for it.
        assert status == 0 and NAMES <= count <= NAMES + 1
        assert {source for _, source, _ in told} == {wire.LOOKED}
        assert {source for _, source, _ in ask_all(conns, some)} == {wire.KNOWN}
        wait_for(lambda: daemon.counters()["purging"] == 0, "the entries to be gone")
        assert {source for _, source, _ in ask_all(conns, some + many[-200:])} == {wire.KNOWN}
        wait_for(lambda: daemon.counters()["resident_bytes"] < before["resident_bytes"] - before["bytes"] / 2,
                 "the memory to be given back")
        after = assert_short(daemon, before, NAMES)
        assert after["negative"] == 400
        assert after["visits"] - before["visits"] <= NAMES + 400
        # A second purge, of nothing, looks at nothing.
        wire.ask(conns[0], wire.purge(wire.TREE, f"{root}/many/absent"))
        assert daemon.counters()["visits"] == after["visits"]


def test_many_purges(lab, root):
    """As many purges as one client can send, while others ask: each costs the entries that it removes."""
    with lab.daemon("purges", memory=memory_for(2 * NAMES)) as daemon, greeted(daemon, BESIDE) as conns:
        ask_all(conns, [f"{root}/some/none{i}" for i in range(NAMES // 4)])
        before = daemon.counters()
        for i in range(ASKED):
            ask_all(conns, [f"{root}/many/none{n}" for n in range(BESIDE)])
            status, count, _, _ = wire.parse_done(wire.ask(conns[0], wire.purge(wire.TREE, f"{root}/many")))
            assert status == 0 and count >= BESIDE, i
        after = assert_short(daemon, before, ASKED)
        assert after["visits"] - before["visits"] <= ASKED * (BESIDE + 2)
        assert {source for _, source, _ in ask_all(conns, [f"{root}/some/none{i}" for i in range(200)])} == {wire.KNOWN}
