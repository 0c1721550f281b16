# SPDX-License-Identifier: Apache-2.0
"""Files that are served by their content, which a daemon keeps of a file that changed some time ago."""

import time

import wire
from waiting import wait_for

SETTLED_S = 2.2     # the daemon wants two seconds


def settle():
    """What was changed before is old enough afterwards."""
    time.sleep(SETTLED_S)


def stats(daemon):
    with wire.greet(daemon.socket) as conn:
        text = wire.parse_done(wire.ask(conn, wire.report(wire.STATS)))[3]
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


def content_files(daemon):
    return stats(daemon)["content_files"]


def forget_all(daemon):
    """What is asked for next is looked at anew."""
    with wire.greet(daemon.socket) as conn:
        assert wire.parse_done(wire.ask(conn, wire.purge(wire.ALL)))[0] == 0


def get_lease(connection, path):
    """Until the child of this connection answers by itself: the answer."""
    def leased():
        answer = connection.get(path)
        return answer if answer.headers.get("x-note") == "lease" else None
    return wait_for(leased, f"a lease on {path}")
