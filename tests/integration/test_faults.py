# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to the daemon, every request is answered, and hits come back."""

import os
import signal
import time

import pytest

import procs
import tree
from fetch import Load, get
from httpd import HITS
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

SIZES = {f"f{i}.bin": 100 + 997 * i for i in range(60)}
HITS_AGAIN_S = 5
SOME = 300          # so many requests show that the load goes on
FRESH = 2500        # new paths for the helper test, each asked for once


@pytest.fixture(scope="module")
def root(base):
    root = base / "faults-tree"
    tree.hot_files(root, SIZES)
    for i in range(FRESH):
        tree.put(root / f"fresh/file{i}.txt", f"fresh {i}\n")
    return root


@pytest.fixture(scope="module")
def daemon(lab):
    return lab.daemon(ttl_ms=60000, helpers=3).start()


@pytest.fixture(scope="module")
def server(lab, root, daemon):
    return lab.flash("flash", root, daemon.socket, mpm="event").start()


@pytest.fixture(autouse=True)
def daemon_runs(request):
    """Each test starts with a daemon that answers, whatever the last one did to it."""
    yield
    if "daemon" in request.fixturenames:
        daemon = request.getfixturevalue("daemon")
        if daemon.process is None or daemon.process.poll() is not None:
            daemon.start()


def load(bodycheck_program, server, root):
    return Load(bodycheck_program, server.url(), root, list(SIZES))


def more_requests(server, count=SOME):
    """Wait until the load has made `count` more requests; their entries."""
    return server.wait_entries(count, server.mark())


def until_hit(server, path="/f7.bin"):
    """Ask until the note says hit; the seconds it took."""
    start = time.monotonic()

    def hit():
        mark = server.mark()
        assert get(server.port, path)[0] == 200
        return server.wait_entries(1, mark)[-1].note in HITS
    wait_for(hit, f"a hit for {path}", HITS_AGAIN_S)
    return time.monotonic() - start


def assert_clean(ended):
    bodies, wrong, failed, complaints = ended
    print(f"bodies={bodies} wrong={wrong} failed={failed}")
    assert (wrong, failed) == (0, 0), complaints
    assert bodies > 0


def test_killed_daemon_fails_no_request_and_hits_come_back(server, root, daemon, bodycheck_program):
    until_hit(server)
    with load(bodycheck_program, server, root) as running:
        more_requests(server)
        daemon.kill()
        seen = more_requests(server)
        assert "fallback" in {e.note for e in seen + more_requests(server)}
        daemon.start()
        seconds = until_hit(server)
        more_requests(server)
        assert_clean(running.end())
    print(f"hits again {seconds:.2f} s after the daemon was ready")


def test_killed_helper_is_replaced_and_new_paths_succeed(server, root, daemon):
    helpers = daemon.helper_pids()
    assert helpers, "no fp-helper process found"
    victim = helpers[0]
    fresh = (i for i in range(FRESH))

    def ask():
        number = next(fresh)
        assert get(server.port, f"/fresh/file{number}.txt") == (200, f"fresh {number}\n".encode())
    for _ in range(20):
        ask()
    os.kill(victim, signal.SIGKILL)
    for _ in range(20):
        ask()

    def replaced():
        ask()
        now = daemon.helper_pids()
        return len(now) == len(helpers) and victim not in now
    wait_for(replaced, "the helper to be replaced", 20)
    for _ in range(20):
        ask()


def test_every_helper_killed_under_load(server, root, daemon, bodycheck_program):
    before = daemon.helper_pids()
    with load(bodycheck_program, server, root) as running:
        more_requests(server)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: len(daemon.helper_pids()) == len(before)
                 and not set(daemon.helper_pids()) & set(before), "all helpers to be replaced")
        more_requests(server)
        assert_clean(running.end())


def test_stopped_daemon_fails_no_request(server, root, daemon, bodycheck_program):
    until_hit(server)
    daemon.signal(signal.SIGSTOP)
    try:
        wait_for(lambda: procs.state(daemon.pid) == "T", "the daemon to stop")
        with load(bodycheck_program, server, root) as running:
            more_requests(server)
            assert_clean(running.end())
    finally:
        daemon.signal(signal.SIGCONT)
    print(f"hits again {until_hit(server):.2f} s after SIGCONT")


def test_daemon_restarted_in_order_under_load(server, root, daemon, bodycheck_program):
    with load(bodycheck_program, server, root) as running:
        more_requests(server)
        daemon.restart()
        until_hit(server)
        assert_clean(running.end())


def test_graceful_restart_of_httpd_under_load(server, root, daemon, bodycheck_program):
    with load(bodycheck_program, server, root) as running:
        more_requests(server)
        for _ in range(2):
            server.graceful()
            more_requests(server)
        assert_clean(running.end())
    until_hit(server)


def test_old_workers_leave_no_connection_behind(server, daemon):
    """Graceful restarts must not pile up descriptors in the daemon."""
    until_hit(server)
    server.graceful()
    until_hit(server)
    before = daemon.fd_count()
    for _ in range(3):
        server.graceful()
        until_hit(server)
    # A worker's connection of the generation that is just ending may still be there.
    wait_for(lambda: daemon.fd_count() <= before + 4, "the old workers' connections to close", 30)


@pytest.mark.parametrize("mpm", ("prefork", "worker", "event"))
def test_without_a_daemon_requests_fall_back(lab, root, base, mpm):
    server = lab.flash(f"alone-{mpm}", root, base / "nobody-listens-here.sock", mpm=mpm).start()
    for name in list(SIZES)[:20]:
        assert get(server.port, "/" + name) == (200, tree.content(name, SIZES[name]))
    assert get(server.port, "/missing")[0] == 404
    notes = {e.note for e in server.wait_entries(21)[-21:] if e.method == "GET"}
    server.stop()
    assert notes == {"fallback"}


def test_engine_off_asks_nobody(lab, root, daemon):
    server = lab.flash("off", root, daemon.socket, config="FlashpacheEngine Off").start()
    mark = server.mark()
    assert get(server.port, "/f1.bin")[0] == 200
    assert not {e.note for e in server.wait_entries(1, mark)} & (HITS | {"miss"})
    server.stop()
