# SPDX-License-Identifier: Apache-2.0
"""A tenant changes the attributes of his own directory all the time. A link beside it, which root made, has its leases all the same,
and a new owner of the link still counts at once."""

import os
import time
from collections import Counter

import pytest

import procs
import tree
from forms import chosen
from freshness import WATCHED, settings
from lease_kit import NOTE_CONFIG, new_root
from quick import Quick, note
from waiting import until_good, wait_for

pytestmark = [pytest.mark.needs_flashpache,
              pytest.mark.skipif(not WATCHED, reason="FLASHPACHE_WATCH=ttl: nothing is told")]
FILES = 20
HITS = chosen(3000, 100_000)
LEAST_LEASES = 0.95
SWITCHES = chosen(30, 300)
# The link that a request passes, and where it leads.
LINKS = {"relative": "hot", "absolute": "{root}/hot", "by a link": "other", "from elsewhere": "../hot"}


def _chmod(directory):
    while True:
        os.chmod(directory, 0o755)


@pytest.fixture
def root(base):
    root = new_root(base, "beside")
    for number in range(FILES):
        tree.put(root / f"hot/page{number}.html", f"<p>{number}</p>\n")
    (root / "tenant").mkdir()
    (root / "sub").mkdir()
    (root / "other").symlink_to("hot")
    for number, target in enumerate(LINKS.values()):
        (root / ("sub" if target.startswith("..") else ".") / f"cur{number}").symlink_to(target.format(root=root))
    return root


@pytest.fixture(params=("FollowSymLinks", "SymLinksIfOwnerMatch"))
def server(lab, root, request):
    return lab.under_test(f"{root.name}-{request.param}", root, mpm="event", daemon_settings=settings(True),
                          config=f"{NOTE_CONFIG}<Directory {root}>\nOptions {request.param}\nAllowOverride All\n</Directory>\n")


def urls(link):
    number = list(LINKS).index(link)
    return [f"/{'sub/' if LINKS[link].startswith('..') else ''}cur{number}/page{page}.html" for page in range(FILES)]


def ask_all(connection, link):
    return [note(connection.ask(url)) for url in urls(link)]


def notice(server, connection):
    wait_for(lambda: ask_all(connection, "relative") and server.daemon.counters()["noisy"] > 0, "the storm to be noticed")


@pytest.mark.parametrize("link", LINKS)
def test_leases_by_the_link(server, root, link):
    connection = Quick(server.port)
    wait_for(lambda: set(ask_all(connection, link)) == {"lease"}, "leases")
    with procs.beside(_chmod, root / "tenant"):
        notice(server, connection)
        page = urls(link)[3]
        notes = until_good(lambda: Counter(note(connection.ask(page)) for _ in range(HITS)),
                           lambda found: found["lease"] >= LEAST_LEASES * HITS)
        print(f"{server.name}, {link}: {dict(notes)}")
    assert notes["lease"] >= LEAST_LEASES * HITS


def test_a_new_owner_of_the_link_counts(server, root):
    """Where owners have to match, the link leads nowhere while it is another one's."""
    follows = server.name.endswith("-FollowSymLinks")
    connection = Quick(server.port)
    with procs.beside(_chmod, root / "tenant"):
        notice(server, connection)
        for number in range(SWITCHES):
            os.lchown(root / "cur0", 1 if number % 2 == 0 else 0, -1)
            expected = 200 if follows or number % 2 == 1 else 403
            deadline = time.monotonic() + 5
            while (status := connection.ask("/cur0/page1.html").status) != expected and time.monotonic() < deadline:
                pass
            assert status == expected, number
