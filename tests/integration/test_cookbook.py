# SPDX-License-Identifier: Apache-2.0
"""Statements of docs/cookbook that no other test shows. test_documents runs its examples."""

import re
import subprocess

import pytest

import tree
import who_kit
from conftest import REPO
from fetch import get
from httpd import HITS
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

# The namespaces that a container has by default, without the network: the test connects by that.
CONTAINER = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
             "--ipc", "--uts", "--cgroup"]
MOST_LINES = 70
OTHER_MS, ABSENT_MS = 3000, 300     # ttl_ms and negative_ttl_ms of "another machine"


@pytest.mark.parametrize("page", ["README.md", *sorted(f"docs/cookbook/{path.name}"
                                                       for path in (REPO / "docs/cookbook").glob("*.md"))])
def test_pages_are_short_and_lead_somewhere(page):
    text = (REPO / page).read_text()
    assert len(text.splitlines()) <= MOST_LINES
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (REPO / page).parent.joinpath(link).exists(), link


def test_two_containers(lab, base):
    """The daemon in other namespaces than httpd, which share documents and socket."""
    if subprocess.run([*CONTAINER, "true"], capture_output=True).returncode:
        pytest.skip("needs the namespaces of containers")
    tree.put(base / "www/file.txt", "in both containers\n")
    daemon = lab.daemon("container").start()
    server = lab.flash("container-httpd", base / "www", daemon.socket, mpm="event",
                       config="FlashpacheDaemon elsewhere\n")
    server.around = [*CONTAINER, "sh", "-ec", f'mount -t tmpfs none {base / "lab"}/container/hidden; exec "$@"', "sh"]
    (daemon.dir / "hidden").mkdir()
    with server:
        who_kit.until_note(server, "/file.txt", HITS)
        assert get(server.port, "/file.txt") == (200, b"in both containers\n")


def test_who_sees_what_when(lab, base, flashpachectl):
    """The table of docs/cookbook/many-servers.md: a daemon without reports stands for another machine's."""
    root = base / "shared"
    old = tree.put(root / "old.txt", "1\n")
    new, later = root / "new.txt", root / "later.txt"
    there = lab.daemon("there", watch="ttl", ttl_ms=OTHER_MS, negative_ttl_ms=ABSENT_MS).start()
    here = lab.daemon("here", ttl_ms=OTHER_MS, negative_ttl_ms=ABSENT_MS).start()

    def sees(daemon, path):
        return flashpachectl("-s", daemon.socket, "explain", path).stdout
    for daemon in (here, there):
        assert "no such file" in sees(daemon, new) and "2 bytes" in sees(daemon, old)
    tree.put(old, "longer\n")
    tree.put(new, "here\n")
    tree.put(later, "nobody has asked for it\n")
    assert "7 bytes" in sees(here, old) and f"{new}: file" in sees(here, new), "at once"
    assert f"{later}: file" in sees(there, later), "at the first request"
    wait_for(lambda: "7 bytes" in sees(there, old), "ttl_ms")
    assert f"{new}: file" in sees(there, new), "negative_ttl_ms is over before"
