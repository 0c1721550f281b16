# SPDX-License-Identifier: Apache-2.0
"""Changes of files that are served by their content show as soon as those of others.

All cases of change_cases go on together, one step of each at a time. Before each step the files have settled and
are asked for anew, so that the children have contents.
"""

import mmap
import os
import signal
import time

import pytest

import procs
import slowfs
import test_changes
import tree
from change_cases import CASES, PAGE
from conftest import SELFCHECK
from content_kit import SETTLED_S, clock, content_files, forget_all, get_lease, settled  # noqa: F401 (fixtures)
from dead_mounts_kit import STALE_MS, World
from fetch import get
from forms import full
from freshness import bound_s, settings
from keepalive import Connection
from lease_kit import NOTE_CONFIG
from test_changes import Site, check, warm
from test_walk_calls import LIMITS
from waiting import wait_for

ROUNDS = 12         # more than the longest case has steps that matter here
PARSED_S = 4        # httpd's own clock counts: only access files of more than three seconds are kept parsed
CONTENTS = 20       # at least so many, in the first rounds


@pytest.fixture(scope="module")
def site(base, lab, clock):  # noqa: F811
    root, elsewhere = base / "content-changes", base / "content-elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    made = Site("event-disk", root, root, elsewhere).start(lab)
    yield made
    lab.end()
    made.children.close()


class Running:
    """A case under way."""

    def __init__(self, site, name):
        self.name, self.made = name, CASES[name]
        self.steps = self.made(site.place(name))
        self.wants = next(self.steps)

    def step(self, site, number):
        """Makes the next change, and tells whether it shows; False: that was the last one."""
        wants = next(self.steps, None)
        if wants is None:
            return False
        time.sleep(site.bound_s)
        self.wants = wants
        check(site, self.name, wants, self.made.headers, f"{self.name}, change {number}")
        return True


def test_every_case(site, clock):  # noqa: F811
    cases = [Running(site, name) for name in CASES]
    seen = []
    for number in range(1, ROUNDS + 1):
        with clock.ahead(SETTLED_S):
            if not SELFCHECK:
                forget_all(site.ours.daemon)
            for case in cases:
                warm(site, case.name, case.wants)
            seen.append(0 if SELFCHECK else content_files(site.ours.daemon))
        cases = [case for case in cases if case.step(site, number)]
    print(f"contents before each round: {seen}")
    for case in cases:
        case.steps.close()
    assert SELFCHECK or min(seen[:2]) >= CONTENTS


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("kind", ("disk", full("tmpfs")))
@pytest.mark.usefixtures("settled")
def test_a_long_mapping(base, lab, request, kind):
    """No event reports writes through a mapping; the end of the mapping is reported, and shows the last of them."""
    root = base / "mapped" if kind == "disk" else request.getfixturevalue("tmpfs") / "mapped"
    tree.put(root / "file.txt", "a" * PAGE)
    server = lab.under_test(f"mapped-{kind}", root, config=NOTE_CONFIG, daemon_settings=settings(True))
    connection = Connection(server.port)
    with open(root / "file.txt", "r+b") as file, mmap.mmap(file.fileno(), PAGE) as area:
        area[:] = b"b" * PAGE       # from here on the page is dirty, and no time changes
        assert get_lease(connection, "/file.txt").body == b"b" * PAGE
        assert content_files(server.daemon) == 1
        area[:] = b"c" * PAGE
    time.sleep(bound_s(True))
    assert connection.get("/file.txt").body == b"c" * PAGE
    connection.close()
    lab.end()


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("mpm", ("event", "prefork"))
@pytest.mark.usefixtures("settled")
def test_a_long_mapping_of_an_access_file(base, lab, mpm):
    """The same of what httpd has parsed: the file keeps its times and its length."""
    root = base / f"mapped-{mpm}"
    granted, denied = b"Require all granted\n", b"Require all denied \n"
    tree.put(root / "file.txt", "text\n")
    tree.put(root / ".htaccess", denied)
    with open(root / ".htaccess", "r+b") as file, mmap.mmap(file.fileno(), len(granted)) as area:
        area[:] = granted           # from here on the page is dirty, and no time changes
        server = lab.under_test(f"mapped-access-{mpm}", root, mpm=mpm, limits=LIMITS[mpm], daemon_settings=settings(True),
                                config=f"<Directory {root}>\nAllowOverride All\n</Directory>\n{NOTE_CONFIG}")
        connection = Connection(server.port)
        time.sleep(PARSED_S)
        assert get_lease(connection, "/file.txt").status == 200
        assert connection.get("/file.txt").status == 200
        area[:] = denied
    time.sleep(bound_s(True))
    assert [connection.get("/file.txt").status for _ in range(3)] == [403] * 3
    with open(root / ".htaccess", "r+b") as file:
        file.write(granted)
    assert [connection.get("/file.txt").status for _ in range(3)] == [200] * 3
    connection.close()
    lab.end()


@pytest.mark.needs_flashpache
@pytest.mark.usefixtures("settled")
def test_a_removed_file_is_not_held_open(base, lab):
    """Not even before any process knows of its removal."""
    root = base / "removed"
    tree.put(root / "file.txt", "text\n")
    server = lab.under_test("removed", root, config=NOTE_CONFIG, daemon_settings=settings(True))
    connection = Connection(server.port)
    get_lease(connection, "/file.txt")
    held = [link for pid in (server.daemon.pid, *server.pids()) for link in links_of(pid)
            if link.startswith(str(root / "file.txt"))]
    connection.close()
    lab.end()
    assert not held


def links_of(pid):
    """The files of its descriptors and mappings."""
    with open(f"/proc/{pid}/maps") as maps:
        found = [line.split(maxsplit=5)[5] for line in maps if line.count(" ") > 5 and "/" in line]
    return found + procs.open_files(pid)


@pytest.mark.needs_flashpache
@pytest.mark.usefixtures("settled")
def test_bodies_while_the_mount_hangs(base, lab):
    """The kernel has nothing of the files in memory, and no process waits for them."""
    slowfs.needed()
    world = World(lab, base, "hung-content", stale_if_error_ms=STALE_MS)
    try:
        server = world.serve()
        names = [f"file{i}" for i in range(10)]
        wait_for(lambda: {get(server.port, f"/slow/{name}.txt")[0] for name in names} == {200}
                 and content_files(world.daemon) == len(names), "the contents")
        files = [os.open(world.root / "slow" / f"{name}.txt", os.O_RDONLY) for name in names]
        # slowfs's own way to hang lets reads through.
        world.mount.process.send_signal(signal.SIGSTOP)
        for fd in files:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        world.until_out()
        for name in names:
            assert get(server.port, f"/slow/{name}.txt") == (200, tree.content(name, 3000))
        world.mount.process.send_signal(signal.SIGCONT)
        for fd in files:
            os.close(fd)
    finally:
        world.mount.process.send_signal(signal.SIGCONT)
        world.mount.unmount()
        lab.end()


tmpfs = test_changes.tmpfs
