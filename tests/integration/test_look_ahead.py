# SPDX-License-Identifier: Apache-2.0
"""Paths that were asked for one after another expire one after another. At the first question that follows, the daemon
looks at the others as well, side by side. It looks only at those that somebody came back to, and once for each time."""

import time

import pytest

import tree
import wire
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache
N, TTL_MS = 100, 400
FEW = N // 2        # of the directories above, which are in use


@pytest.fixture
def site(lab, base, request):
    daemon = lab.daemon(request.node.name[-20:] + "d", watch="ttl", ttl_ms=TTL_MS).start()
    conn = wire.greet(daemon.socket)
    yield Site(base / request.node.name[-20:], daemon, conn)
    conn.close()


class Site:
    def __init__(self, root, daemon, conn):
        self.base, self.daemon, self.conn, self.made = root, daemon, conn, 0
        self.make_others()

    def make_others(self):
        """Files that nobody has asked for."""
        self.made += 1
        self.root = self.base / str(self.made)
        for i in range(N):
            tree.put(self.root / f"{i:03}.php", "<?php\n")

    def ask(self, numbers):
        """How many of these questions were answered by what is known."""
        return sum(wire.parse_answer(wire.ask(self.conn, wire.whole_lookup(self.root / f"{i:03}.php")))[1] == wire.KNOWN
                   for i in numbers)

    def let_expire(self):
        time.sleep(1.5 * TTL_MS / 1000)

    def looks(self):
        return self.daemon.counters()["refreshed"]


def test_a_page_is_looked_at_when_its_first_file_is_asked_for(site):
    def others_are_looked_at():
        site.make_others()
        for _ in range(2):
            assert site.ask(range(N)) == 0
            site.let_expire()
        before = site.looks()
        assert site.ask([0]) == 0
        end = time.monotonic() + 3
        while site.looks() < before + N - 1 and time.monotonic() < end:
            time.sleep(TTL_MS / 4000)
        return site.looks() >= before + N - 1
    # On a busy machine the questions may take longer than the TTL, and some files are looked at too early.
    wait_for(others_are_looked_at, "a look at each of the others")
    # Nobody used them: they are asked for no more than requests would.
    site.let_expire()
    after = site.looks()
    assert site.ask([0]) == 0
    assert site.looks() < after + FEW, "looked at again without a use"


def test_what_was_asked_for_once_is_not_looked_at(site):
    assert site.ask(range(N)) == 0
    site.let_expire()
    before = site.looks()
    assert site.ask(range(N)) == 0
    assert site.looks() < before + FEW
