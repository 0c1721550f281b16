# SPDX-License-Identifier: Apache-2.0
"""Where no changes are reported, a negative entry has a TTL of its own."""

import pytest

import tree
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache
LONG_MS, SHORT_MS = 600_000, 150


@pytest.fixture
def lookup(lab, flashpachectl, request):
    daemon = lab.daemon(request.node.name[-20:], watch="ttl", ttl_ms=LONG_MS, negative_ttl_ms=request.param).start()
    return lambda path: flashpachectl("-s", daemon.socket, "explain", path).stdout


@pytest.mark.parametrize("lookup", [SHORT_MS], indirect=True)
def test_new_name_is_seen_and_a_file_stays_as_it_was(lookup, base):
    old, new = tree.put(base / "short/old.txt", "1\n"), base / "short/new.txt"
    assert "2 bytes" in lookup(old) and f"{new}: no such file" in lookup(new)
    tree.put(new, "here\n")
    tree.put(old, "longer\n")
    wait_for(lambda: f"{new}: file" in lookup(new), "the new name")
    assert "2 bytes" in lookup(old)


@pytest.mark.parametrize("lookup", [LONG_MS], indirect=True)
def test_absence_may_hold_as_long_as_a_file(lookup, base):
    new = base / "long/new.txt"
    new.parent.mkdir()
    assert f"{new}: no such file" in lookup(new)
    tree.put(new, "here\n")
    assert f"{new}: no such file" in lookup(new)
