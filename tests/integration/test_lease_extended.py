# SPDX-License-Identifier: Apache-2.0
"""The daemon refreshes answers in use, and no child asks about them; unused answers are left alone.

Leases come back after the daemon had to give up their table: for another cache size, or by a new start. No request
fails meanwhile.
"""

import signal
import time

import pytest

from forms import full_where
from keepalive import Connection
from lease_kit import NOTE_CONFIG, OLD, File, new_root
from waiting import Threads, until_good, wait_for

pytestmark = pytest.mark.needs_flashpache

TTL_MS = 600
LIVES = 6
BETWEEN_S = 0.1
DELAY_US = 2000
SETTINGS = {"ttl_ms": TTL_MS, "watch": "ttl"}
CLIENTS = 4
ENOUGH = 50                 # answers that each client gets before and after an event


# One MPM's result stands for both.
OF_EVENT = full_where(lambda values: values["mpm"] != "event")


@pytest.fixture(params=("prefork", "event"))
def mpm(request):
    return request.param


def start(lab, root, mpm, **settings):
    return lab.under_test(root.name, root, mpm=mpm, config=NOTE_CONFIG, daemon_settings={**SETTINGS, **settings})


@pytest.fixture
def root(base):
    return new_root(base, "ext")


@pytest.fixture
def stats(flashpachectl):
    def read(server):
        finished = flashpachectl("-s", server.daemon.socket, "stats")
        assert finished.returncode == 0, finished
        return {name: int(value) for name, value in (line.split() for line in finished.stdout.splitlines())}
    return read


def use(file, connection, lives):
    """The notes of requests during so many lifetimes."""
    notes = []
    end = time.monotonic() + lives * TTL_MS / 1000
    while time.monotonic() < end:
        status, body, note = file.ask(connection)
        assert (status, body) == (200, OLD)
        notes.append(note)
        time.sleep(BETWEEN_S)
    return notes


def test_used_for_many_lives(lab, base, slow_directory, stats, mpm):
    source = new_root(base, "exts")
    File(source)
    server = start(lab, slow_directory(source, DELAY_US), mpm)
    file = File(source)
    connection = Connection(server.port)
    assert file.ask(connection) == (200, OLD, "miss")

    def used():
        before, notes, after = stats(server), use(file, connection, LIVES), stats(server)
        # A question comes only where an event waits, from other tests beside it in /tmp, say.
        questions = len(notes) - notes.count("lease")
        good = (set(notes) <= {"lease", "hit"} and questions <= len(notes) // 2
                and after["misses"] == before["misses"] and after["hits"] - before["hits"] == questions)
        return good, before, notes, after
    good, before, notes, after = until_good(used, lambda made: made[0])
    assert good, (notes, before, after)
    # The file and the directories above it, at least once in each life.
    assert after["refreshed"] - before["refreshed"] >= 2 * (LIVES - 1)
    assert after["walks"] > before["walks"]


@OF_EVENT
def test_not_used(lab, root, stats, mpm):
    server = start(lab, root, mpm)
    file = File(root)
    connection = Connection(server.port)
    assert file.ask(connection)[2] == "miss"
    before = stats(server)
    time.sleep(3 * TTL_MS / 1000)
    after = stats(server)
    assert (after["refreshed"], after["walks"]) == (before["refreshed"], before["walks"])
    assert file.ask(connection) == (200, OLD, "miss")


@OF_EVENT
def test_one_is_used_and_its_neighbour_is_not(lab, root, stats, mpm):
    server = start(lab, root, mpm)
    used, unused = File(root, "a/used.txt"), File(root, "a/unused.txt")
    connection = Connection(server.port)
    assert used.ask(connection)[2] == "miss"
    assert unused.ask(connection)[2] == "miss"
    notes = until_good(lambda: use(used, connection, 3), lambda notes: "miss" not in notes)
    assert "miss" not in notes, notes
    assert unused.ask(connection) == (200, OLD, "miss")


class Load(Threads):
    """Clients that ask for one file all the time, each on a connection of its own."""

    def __init__(self, server, file):
        self.file = file
        self.answers = [[] for _ in range(CLIENTS)]
        super().__init__(self._ask, [(Connection(server.port), answers) for answers in self.answers])

    def _ask(self, connection, answers):
        while not self.over.is_set():
            answers.append(self.file.ask(connection))
            time.sleep(0.002)

    def more(self):
        """Returns when every client has got some more answers."""
        counts = [len(answers) for answers in self.answers]
        wait_for(lambda: all(len(answers) >= count + ENOUGH
                             for answers, count in zip(self.answers, counts)), "more answers")

    def __enter__(self):
        super().__enter__()
        self.more()
        return self

    def failed(self):
        return [answer for answers in self.answers for answer in answers if answer[:2] != (200, OLD)]


def assert_leases(server, file):
    connection = Connection(server.port)
    file.get_lease(connection)

    def are_good(notes):
        return notes.count("lease") > len(notes) // 2 and "miss" not in notes
    # Mounts of other tests beside it end leases.
    notes = until_good(lambda: use(file, connection, 2), are_good)
    assert are_good(notes), notes


@OF_EVENT
def test_settings_that_are_reread_keep_the_table(lab, root, mpm):
    server = start(lab, root, mpm)
    file = File(root)
    connection = Connection(server.port)
    file.get_lease(connection)
    server.daemon.signal(signal.SIGHUP)
    wait_for(lambda: "reread" in server.daemon.log_text(), "the settings to be reread")
    notes = use(file, connection, 1)
    # All that is known is looked at once more.
    assert "miss" not in notes[1:] and notes.count("lease") > len(notes) // 2, notes


def test_another_daemon(lab, root, mpm):
    server = start(lab, root, mpm)
    file = File(root)
    with Load(server, file) as load:
        for _ in range(2):
            server.daemon.stop()
            load.more()
            server.daemon.start()
            load.more()
    assert load.failed() == []
    assert any(answer[2] == "fallback" for answers in load.answers for answer in answers)
    assert_leases(server, file)
