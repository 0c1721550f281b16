# SPDX-License-Identifier: Apache-2.0
"""Leases end by themselves when the daemon can no longer report changes."""

import contextlib
import os
import signal
import time

import pytest

import procs
import tree
from fetch import Client
from freshness import bound_s, settings
from keepalive import Connection
from lease_kit import NEW, NOTE_CONFIG, File, new_root
from waiting import until_good, wait_for

pytestmark = pytest.mark.needs_flashpache
TIMEOUT_MS = 200
IDLE_S = 3.0        # longer than the daemon keeps unused leases in force


@pytest.fixture
def server(flashpached_program, module_path, lab, root):  # the programs first: lab looks for them
    config = NOTE_CONFIG + f"FlashpacheTimeout {TIMEOUT_MS}ms\n"
    return lab.under_test(root.name, root, mpm="event", config=config, daemon_settings=settings(True))


@pytest.fixture
def root(base):
    return new_root(base, "end")


@pytest.fixture
def file(root):
    return File(root, "file.txt")


@pytest.mark.parametrize("number", (signal.SIGSTOP, signal.SIGKILL), ids=("stopped", "killed"))
def test_without_a_daemon_that_keeps_up(server, file, number):
    connection = Connection(server.port)
    file.get_lease(connection)
    os.kill(server.daemon.pid, number)
    try:
        file.replace()
        time.sleep(bound_s(True))
        status, body, note = file.ask(connection)
        assert (status, body, note) == (200, NEW, "fallback")
    finally:
        os.kill(server.daemon.pid, signal.SIGCONT)


def test_a_change_while_nobody_asks(server, file):
    connection = Connection(server.port)
    file.get_lease(connection)
    time.sleep(IDLE_S)
    file.replace()
    time.sleep(bound_s(True))
    assert file.ask(connection)[:2] == (200, NEW)


def test_leases_go_on_after_a_rest(server, file):
    """The daemon stops keeping leases in force; one question later they are good again."""
    connection = Connection(server.port)

    def after_a_rest():
        file.get_lease(connection)
        time.sleep(IDLE_S)
        return [file.ask(connection)[2] for _ in range(2)]

    def good(notes):
        # The first is a lease already if something happened elsewhere in a watched directory a moment ago.
        return notes[0] in ("hit", "lease") and notes[1] == "lease"
    # A daemon that gets no processor for a moment ends all leases for that moment.
    notes = until_good(after_a_rest, good)
    assert good(notes), notes


@pytest.mark.parametrize("mpm", ("event", "worker", "prefork"))
def test_a_removed_file_is_closed(lab, base, mpm):
    """A lease that has ended does not keep the file's space in use, in no child, though no request comes any more."""
    root = new_root(base, f"removed-{mpm}")
    tree.put(root / "large.bin", tree.content("large", 3_000_000))
    tree.put(root / "small.txt", "small\n")
    server = lab.under_test(root.name, root, mpm=mpm, daemon_settings=settings(True))
    with contextlib.ExitStack() as stack:
        for connection in [stack.enter_context(Client(server.port)) for _ in range(4)]:
            # The first answers hold nothing open.
            for url in ("/small.txt", "/large.bin") * 4:
                assert connection.get(url)[0] == 200

        def holders():
            pids = [server.daemon.pid, *server.pids()]
            return [link for pid in pids for link in procs.open_files(pid) if link.startswith(f"{root}/large.bin")]
        assert holders()
        (root / "large.bin").unlink()
        wait_for(lambda: not holders(), "the removed file to be closed everywhere", 5)
    lab.end()
