# SPDX-License-Identifier: Apache-2.0
"""The bound within which a change must show, and the daemon's settings that go with it: the only place.

FLASHPACHE_WATCH=ttl    run as where nothing is watched: a local change, too, shows within the TTL
"""

import os

TTL_MS = 80
BOUND_S = 0         # seconds from the change's return to the request that must show it
# Far beyond any test: where changes are watched, no TTL may do the watching's work.
NEVER_MS = 600_000
WATCHED = os.environ.get("FLASHPACHE_WATCH") != "ttl"


def bound_s(reported):
    """A request that starts this long after a reported change has returned shows the change. Reported changes are
    those through this machine's own mount, of whatever type."""
    return BOUND_S if reported and WATCHED else TTL_MS / 1000


def settings(reported):
    """Settings of a daemon whose files change only by reported changes, or only by others."""
    if not WATCHED:
        return {"ttl_ms": TTL_MS, "watch": "ttl"}
    return {"ttl_ms": NEVER_MS if reported else TTL_MS}
