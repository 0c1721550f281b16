# SPDX-License-Identifier: Apache-2.0
"""Files that are served by their content, which a daemon keeps of a file that has not changed for some time."""

import pytest

import wire
from shifted_clock import shifted
from waiting import wait_for

SETTLED_S = 3       # the daemon requires two seconds


@pytest.fixture(scope="module")
def clock(lab):
    """The wall clock of daemons that start from now on. While it is ahead by SETTLED_S, all earlier changes are old
    enough."""
    with shifted(lab.base) as made:
        yield made


@pytest.fixture
def settled(clock):
    """All earlier changes are old enough, all through the test."""
    with clock.ahead(SETTLED_S):
        yield


def stats(daemon):
    with wire.greet(daemon.socket) as conn:
        text = wire.parse_done(wire.ask(conn, wire.report(wire.STATS)))[3]
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


def content_files(daemon):
    return stats(daemon)["content_files"]


def forget_all(daemon):
    """From now on the daemon looks anew at each path."""
    with wire.greet(daemon.socket) as conn:
        assert wire.parse_done(wire.ask(conn, wire.purge(wire.ALL)))[0] == 0


def get_lease(connection, path):
    """Asks until the child of this connection answers from a lease: the answer."""
    def leased():
        answer = connection.get(path)
        return answer if answer.headers.get("x-note") == "lease" else None
    return wait_for(leased, f"a lease on {path}")
