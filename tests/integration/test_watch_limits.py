# SPDX-License-Identifier: Apache-2.0
"""The system's limits on watching cost speed, never freshness: the queue of events is full, or no watches are left.
Reports show the kind of watch, and settings choose it."""

import os
import signal
import time

import pytest

import tree
from freshness import NEVER_MS, bound_s, settings
from keepalive import Connection
from lease_kit import NEW, NOTE_CONFIG, OLD, File, new_root
from system_limits import inotify
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache
QUEUE = 16
CHANGES = 500           # many times the queue
WATCHES = 3
ONCE = 300              # files that are asked for once


@pytest.fixture
def root(base):
    return new_root(base, "limits")


@pytest.fixture
def file(root):
    return File(root)


@pytest.fixture
def start(flashpached_program, module_path, lab, root):     # the programs first: lab looks for them
    def server(**daemon_settings):
        return lab.under_test(root.name, root, mpm="event", config=NOTE_CONFIG,
                              daemon_settings=daemon_settings)
    return server


@pytest.mark.alone
def test_full_queue(start, root, file):
    with inotify("max_queued_events", QUEUE):     # for new instances
        server = start(**settings(True))
    connection = Connection(server.port)
    file.get_lease(connection)
    server.daemon.signal(signal.SIGSTOP)
    for number in range(CHANGES):
        tree.put(root / f"a/b/{number}", "x")
    file.replace()
    server.daemon.signal(signal.SIGCONT)
    time.sleep(bound_s(True))
    assert file.ask(connection)[:2] == (200, NEW)
    assert "FP0041" in server.daemon.log_text()
    wait_for(lambda: file.ask(connection)[2] == "lease", "leases again")


@pytest.mark.alone
def test_no_watches_left(start, file, flashpachectl):
    with inotify("max_user_watches", WATCHES):
        server = start(ttl_ms=NEVER_MS)
        connection = Connection(server.port)
        assert [file.ask(connection) for _ in range(3)] == [(200, OLD, "miss")] * 3
        file.replace()
        assert file.ask(connection) == (200, NEW, "miss")
        assert "FP0042" in server.daemon.log_text()
        refused = server.daemon.counters()["watches_refused"]
        checked = flashpachectl("-s", server.daemon.socket, "check")
    assert refused > 0 and checked.returncode == 1
    assert f"BAD   {refused} watches were refused" in checked.stdout


@pytest.mark.alone
def test_no_instance_left(lab, root):
    """Processes of the daemon's user have them all: it serves nothing, rather than what was. Who started it tries again."""
    daemon = lab.daemon(root.name)
    with inotify("max_user_instances", 0):
        with pytest.raises(ChildProcessError):
            daemon.start()
        assert "FP0043 error: no inotify (Too many open files)" in daemon.log_text()
    daemon.start()


@pytest.mark.alone
def test_what_is_in_use_gets_a_watch(start, root, file):
    """Files that were asked for once give up theirs."""
    for number in range(ONCE):
        tree.put(root / f"once/{number}.txt", "once")
    with inotify("max_user_watches", ONCE // 3):
        server = start(ttl_ms=NEVER_MS)
        connection = Connection(server.port)
        assert {connection.get(f"/once/{number}.txt").status for number in range(ONCE)} == {200}
        assert "FP0042" in server.daemon.log_text()
        file.get_lease(connection)
        file.replace()
        assert file.ask(connection)[:2] == (200, NEW)
        wait_for(lambda: file.ask(connection) == (200, NEW, "lease"), "a lease again")


def test_nothing_is_watched_if_told_so(start, file, flashpachectl):
    server = start(watch="ttl", ttl_ms=NEVER_MS)
    connection = Connection(server.port)
    file.get_lease(connection)
    file.replace()
    time.sleep(2 * bound_s(True))
    assert file.ask(connection) == (200, OLD, "lease")
    shown = flashpachectl("-s", server.daemon.socket, "mounts")
    assert {line.split()[2] for line in shown.stdout.splitlines()} == {"ttl"}


def test_a_section_overrides_for_its_mount(start, root, file, flashpachectl):
    """The mount that the documents are on is watched, and no other."""
    point = str(root)
    while not os.path.ismount(point):
        point = os.path.dirname(point)
    server = start(watch="ttl", ttl_ms=NEVER_MS)
    connection = Connection(server.port)
    file.get_lease(connection)
    server.daemon.write_config(f'mount "{point}" {{\n  watch = "inotify"\n}}\n')
    server.daemon.signal(signal.SIGHUP)
    wait_for(lambda: "reread" in server.daemon.log_text(), "the settings to be reread")
    shown = flashpachectl("-s", server.daemon.socket, "mounts").stdout.splitlines()
    assert {line.split()[0] for line in shown if line.split()[2] == "inotify"} == {point}
    # Paths seen before are not watched; those seen from now on are.
    assert flashpachectl("-s", server.daemon.socket, "purge", "--all").returncode == 0
    file.get_lease(connection)
    file.replace()
    time.sleep(bound_s(True))
    assert file.ask(connection)[:2] == (200, NEW)
