# SPDX-License-Identifier: Apache-2.0
"""A file system that stops answering takes nothing from the others.

Two trees side by side in one document root: a local one, and the lab's slowfs, which hangs or fails on request.
"""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections import Counter

import pytest

import procs
import tree
import wire
from dead_mounts_kit import FILES, MOUNT_TIMEOUT_MS, PROBE_S, STALE_MS, TTL_MS, world  # noqa: F401
from fetch import Client, get
from httpd import HITS
from waiting import Threads, wait_for

pytestmark = pytest.mark.needs_flashpache

LONG_MS = 20_000            # far longer than any process waits for a mount
LOCAL_THREADS = 3
OK, UNAVAILABLE = 0, 23     # statuses
STALE = 3                   # an ANSWER's source
LARGE = bytes(range(256)) * 400     # more than content_file_max
TOO_LARGE = 2_000_000               # for its content to be kept


class LocalLoad(Threads):
    """Asks for the local tree all the time; (when, seconds, status) of each request."""

    def __init__(self, port):
        super().__init__(self._run, [()] * LOCAL_THREADS)
        self.port, self.seen = port, []

    def _run(self):
        number = 0
        with Client(self.port) as client:
            while not self.over.is_set():
                begin = time.monotonic()
                status, body = client.get(f"/local/file{number % FILES}.txt", "local")
                good = status == 200 and body == tree.content(f"file{number % FILES}", 3000)
                self.seen.append((begin, time.monotonic() - begin, good))
                number += 1
                time.sleep(0.002)


def quantiles(seconds):
    ordered = sorted(seconds)
    return ", ".join(f"{name} {ordered[min(int(q * len(ordered)), len(ordered) - 1)] * 1e3:.2f} ms"
                     for name, q in (("half", .5), ("90%", .9), ("99%", .99), ("all", 1)))


def fetch_slow(server, count=FILES):
    """Every file of the slow tree once: the notes; all bodies are right."""
    mark = server.mark()
    with Client(server.port, timeout=15) as client:
        for i in range(count):
            assert client.get(f"/slow/file{i}.txt", "slow") == (200, tree.content(f"file{i}", 3000))
    return Counter(e.note for e in server.wait_entries(count, mark, "slow"))


def test_the_other_tree_does_not_notice(world):
    """Neither a failure nor a wait, while one tree hangs and while it comes back."""
    w = world("beside", stale_if_error_ms=STALE_MS, lookup_timeout_ms=1500)
    server = w.serve()
    w.settle()
    print("warm:", dict(fetch_slow(server)), dict(fetch_slow(server)))
    for i in range(FILES):
        assert get(server.port, f"/local/file{i}.txt")[0] == 200
    fds = w.fds()
    with LocalLoad(server.port) as load:
        wait_for(lambda: len(load.seen) > 600, "the local load")
        mark, hung_at = server.mark(), time.monotonic()
        w.mount.behave("hang")
        # Before the breaker trips, a client waits for the deadline; after that, none does.
        w.until_out()
        out_at = time.monotonic()
        print(f"out of service {out_at - hung_at:.2f} s after the first stat hung")
        notes = fetch_slow(server)
        print(f"the hung tree: {dict(notes)} in {time.monotonic() - out_at:.3f} s")
        for i in range(FILES):
            assert w.ask(f"slow/file{i}.txt")[:2] == (OK, STALE)
        assert w.ask("slow/unknown", 20000)[0] == UNAVAILABLE
        local = len(load.seen)
        wait_for(lambda: len(load.seen) > local + 600, "the local load")
        wait_for(lambda: w.stats()["timeouts"] > 1, "a probe to be given up, too")
        assert set(fetch_slow(server)) == {"stale"}
        w.mount.behave("normal")
        back_at = time.monotonic()
        w.until_back()
        print(f"in service again after {time.monotonic() - back_at:.2f} s")
    before = [s for t, s, _ in load.seen if t < hung_at]
    while_hung = [s for t, s, _ in load.seen if t >= hung_at]
    print(f"local before: {len(before)}, {quantiles(before)}")
    print(f"local while hung: {len(while_hung)}, {quantiles(while_hung)}")
    assert all(good for _, _, good in load.seen)
    # A request that waited for a hung walk would have waited for the whole timeout, without an answer.
    local_notes = Counter(e.note for e in server.entries(mark, "local"))
    print("local notes while hung:", dict(local_notes))
    assert set(local_notes) <= HITS | {"miss"}
    assert set(notes) == {"stale"}
    # On a busy machine a round takes longer than TTL_MS: misses, as before.
    wait_for(lambda: set(fetch_slow(server)) <= HITS | {"miss"}, "everything as before")
    stats = w.stats()
    assert (stats["out_of_service"], stats["trips"]) == (0, 1)
    wait_for(lambda: w.stats()["workers"] == 4 and w.stats()["running"] == 0, "all workers to be alive")
    wait_for(lambda: w.fds() <= fds + 4, "the descriptors to be as many as before")
    log = w.daemon.log_text()
    assert (log.count("FP0044"), log.count("FP0045")) == (1, 1)
    assert str(w.mount.target) in log


@contextlib.contextmanager
def nobody_waits(w):
    """In the block no question waits for a walk: none begins one, and none joins one."""
    def waits():
        stats = w.stats()
        return stats["misses"], stats["joined"]
    before = waits()
    yield
    assert waits() == before


def test_what_is_out_of_service_is_answered_without_a_walk(world):
    w = world("out", stale_if_error_ms=STALE_MS)
    w.settle()
    w.mount.behave("hang")
    w.until_out()
    with nobody_waits(w):
        for i in range(FILES):
            assert w.ask(f"slow/file{i}.txt")[:2] == (OK, STALE)
        assert w.ask("slow/unknown")[0] == UNAVAILABLE
    w.mount.behave("normal")
    w.until_back()


def test_who_waits_is_answered_when_it_trips(world):
    w = world("waits", mount_timeout_ms=1000)
    w.mount.behave("hang")
    assert w.ask("slow/file1.txt", LONG_MS)[0] == UNAVAILABLE
    assert w.is_out()
    with nobody_waits(w):
        assert w.ask("slow/file2.txt", LONG_MS)[0] == UNAVAILABLE
    w.mount.behave("normal")
    w.until_back()
    assert w.ask("slow/file1.txt")[0] == OK


def test_a_pause_of_the_daemon_is_not_the_file_systems(world):
    """The daemon reads replies that came while it was stopped before it looks which workers are late."""
    w = world("paused")
    w.ask("slow/file0.txt")
    with w.hanging(1) as waiting:
        wait_for(lambda: w.stats()["running"] == 1, "a worker to look")
        w.daemon.signal(signal.SIGSTOP)
        w.mount.behave("normal")
        time.sleep(2 * MOUNT_TIMEOUT_MS / 1000)
        w.daemon.signal(signal.SIGCONT)
        assert wire.parse_answer(wire.receive(waiting[0]))[0] == OK
    assert "FP0044" not in w.daemon.log_text()


def test_requests_of_the_hung_tree_are_left_to_httpd(world):
    """Without stale answers httpd itself waits, as without Flashpache."""
    w = world("left")
    server = w.serve()
    fetch_slow(server)
    w.mount.behave("hang")
    w.until_out()
    mark = server.mark()
    with pytest.raises(TimeoutError):
        get(server.port, "/slow/file1.txt", "slow", timeout=1)
    w.mount.behave("normal")
    entry = server.wait_entries(1, mark, "slow")[0]
    assert (entry.note, entry.reason) == ("fallback", "unavailable")
    w.until_back()
    fetch_slow(server)


def test_requests_of_the_hung_tree_are_refused(world):
    """FlashpacheUnavailable 503: nothing waits, and what is in memory is served."""
    w = world("refused", stale_if_error_ms=STALE_MS)
    server = w.serve(config="FlashpacheUnavailable 503\nAcceptPathInfo On\n")
    tree.put(w.mount.source / "large.bin", LARGE)
    wait_for(lambda: fetch_slow(server) and w.stats()["content_files"] == FILES, "all contents to be in memory")
    assert get(server.port, "/slow/large.bin", "slow") == (200, LARGE)
    w.mount.behave("hang")
    w.until_out()
    for wanted in (True, False):
        with wire.greet(w.daemon.socket) as conn:
            conn.sendall(wire.whole_lookup(w.path("slow/large.bin"), no_stale_fd=not wanted))
            packet, fds, _, _ = socket.recv_fds(conn, 65536, 1)
            assert (*wire.parse_answer(packet)[:2], len(fds)) == (OK, STALE, 0)
    mark = server.mark()
    assert set(fetch_slow(server)) == {"stale"}
    with Client(server.port, timeout=5) as client:
        for _ in range(100):
            for url in ("large.bin", "large.bin/info", "unknown.txt", "unknown/", ""):
                assert client.get(f"/slow/{url}", "refused")[0] == 503
            assert client.get("/local/file1.txt", "local")[0] == 200
        for method, url, status, later in (("HEAD", "large.bin", 503, "30"), ("OPTIONS", "large.bin", 200, None),
                                           ("GET", "unknown.txt", 503, "30")):
            client.conn.request(method, f"/slow/{url}")
            answer = client.conn.getresponse()
            answer.read()
            assert (answer.status, answer.headers["Retry-After"]) == (status, later)
    assert Counter((e.note, e.reason) for e in server.wait_entries(500, mark, "refused")) == {
        ("stale", "-"): 300, ("fallback", "unavailable"): 200}
    assert "FP0101" not in server.error_text()
    w.mount.behave("normal")
    w.until_back()
    wait_for(lambda: get(server.port, "/slow/large.bin") == (200, LARGE), "the large file")


def statuses(server):
    return [get(server.port, f"/slow/{name}")[0] for name in ("file1.txt", "file2.txt", "absent", "")]


def test_errors_are_told_as_httpd_tells_them(world, lab):
    w = world("errors")
    server = w.serve()
    stock = lab.stock("errors-stock", w.root).start()
    fetch_slow(server)
    w.mount.behave("error=EIO")
    time.sleep(2 * TTL_MS / 1e3)
    failing = statuses(server)
    assert failing == statuses(stock)
    assert 200 not in failing
    assert not w.is_out()
    assert w.stats()["trips"] == 0
    w.mount.behave("normal")
    time.sleep(2 * TTL_MS / 1e3)
    assert statuses(server) == statuses(stock)


def test_errors_are_covered_by_what_was_known(world):
    w = world("covered", stale_if_error_ms=STALE_MS)
    server = w.serve()
    w.settle()
    w.mount.behave("error=EIO")
    time.sleep(2 * TTL_MS / 1e3)
    for _ in range(3):
        assert set(fetch_slow(server)) == {"stale"}
        time.sleep(TTL_MS / 1e3)
    assert not w.is_out()
    w.mount.behave("normal")
    (w.mount.source / "file1.txt").write_bytes(b"new\n")
    wait_for(lambda: get(server.port, "/slow/file1.txt") == (200, b"new\n"), "the new content")


def test_a_hung_mount_has_its_share_of_workers_only(world):
    w = world("share", mount_workers=2, mount_timeout_ms=60000, lookup_timeout_ms=60000)
    w.ask("local/file0.txt")
    w.ask("slow/file0.txt")
    with w.hanging(10) as waiting:
        wait_for(lambda: w.stats()["running"] == 2, "the hung mount's workers to be busy")
        for i in range(FILES):
            tree.put(w.path(f"local/new{i}.txt"), b"new\n")
            assert w.ask(f"local/new{i}.txt", 20000)[:2] == (OK, wire.LOOKED)
        # Entries of the local file system may have expired: a worker may look at them just now.
        wait_for(lambda: w.stats()["running"] == 2, "the hung mount's workers alone")
        assert w.stats()["queued"] >= 1
        w.mount.behave("normal")
        for conn in waiting:
            assert wire.parse_answer(wire.receive(conn))[0] == OK


def test_settings_hold_on_reload(world):
    w = world("reload", mount_workers=1, mount_timeout_ms=60000, lookup_timeout_ms=60000)

    def reload(**settings):
        w.daemon.settings.update(settings)
        w.daemon.write_config()
        w.daemon.signal(signal.SIGHUP)
    w.ask("slow/file0.txt")
    with w.hanging(4) as waiting:
        wait_for(lambda: w.stats()["running"] == 1, "one worker to be busy")
        reload(mount_workers=3)
        wait_for(lambda: w.stats()["running"] == 3, "three workers to be busy")
        reload(mount_timeout_ms=100)
        for conn in waiting:
            assert wire.parse_answer(wire.receive(conn))[0] == UNAVAILABLE


def test_workers_that_cannot_be_killed(world):
    """slowfs has taken their questions and never replies: they hang in the kernel."""
    w = world("stopped", stale_if_error_ms=STALE_MS, lookup_timeout_ms=1500, mount_workers=2)
    for i in range(FILES):
        assert w.ask(f"local/file{i}.txt")[0] == OK
    w.settle()
    fds = w.fds()
    w.mount.behave("hang")
    w.until_out()
    w.mount.process.send_signal(signal.SIGSTOP)
    try:
        wait_for(lambda: w.stats()["timeouts"] > 2, "some probes to be given up", PROBE_S)
        hung = [pid for pid in w.daemon.family() if procs.state(pid) == "D"]
        print(f"{len(hung)} workers hang")
        assert 1 <= len(hung) <= 3
        for i in range(FILES):
            assert w.ask(f"slow/file{i}.txt")[:2] == (OK, STALE)
            tree.put(w.path(f"local/new{i}.txt"), b"new\n")
            assert w.ask(f"local/new{i}.txt")[:2] == (OK, wire.LOOKED)
    finally:
        w.mount.process.send_signal(signal.SIGCONT)
    w.mount.behave("normal")
    begin = time.monotonic()
    w.until_back()
    print(f"in service again after {time.monotonic() - begin:.2f} s")
    assert w.ask("slow/file1.txt")[:2] != (OK, STALE)
    wait_for(lambda: len(w.daemon.worker_pids()) == 4, "the hung workers to be gone")
    try:
        wait_for(lambda: w.fds() <= fds + FILES + 4, "their descriptors to be closed")
    except TimeoutError:
        print(fds, sorted(procs.open_files(w.daemon.pid)))
        raise


def test_stale_answers_where_killed_workers_hang(world):
    """They have all places of their mount, which is in service: nothing waits for them to die."""
    w = world("taken", stale_if_error_ms=STALE_MS, lookup_timeout_ms=1500, mount_timeout_ms=3 * LONG_MS, mount_workers=2)
    w.settle()
    w.mount.behave("hang")
    time.sleep(2 * TTL_MS / 1e3)
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(wire.greet(w.daemon.socket)) for _ in range(6)]
        for i, conn in enumerate(waiting):
            conn.settimeout(LONG_MS / 1e3)
            conn.sendall(wire.whole_lookup(w.path(f"slow/none{i}/x/file.txt" if i < 2 else f"slow/file{i}.txt"), deadline_ms=3 * LONG_MS))
        wait_for(lambda: w.stats()["running"] == 2 and w.stats()["queued"] >= 1, "two workers to hang")
        time.sleep(0.2)         # slowfs has taken their questions
        w.mount.process.send_signal(signal.SIGSTOP)
        try:
            assert [wire.parse_answer(wire.receive(conn))[:2] for conn in waiting[2:]] == [(OK, STALE)] * 4
            assert w.stats()["out_of_service"] == 0
            assert w.ask("slow/file1.txt", 3 * LONG_MS)[:2] == (OK, STALE)
            assert w.ask("slow/unknown.txt", 3 * LONG_MS)[0] == UNAVAILABLE
        finally:
            w.mount.process.send_signal(signal.SIGCONT)
    w.mount.behave("normal")
    wait_for(lambda: w.ask("slow/file1.txt")[:2] != (OK, STALE), "the files to be looked at again")


def test_a_pool_of_hung_workers_recovers(world):
    """One worker, and it hangs: it is killed, and its successor serves the other tree."""
    w = world("pool", workers=1, lookup_timeout_ms=1500)
    w.ask("local/file0.txt")
    before = w.daemon.worker_pids()
    w.mount.behave("hang")
    w.until_out()
    wait_for(lambda: w.ask("local/file1.txt", 5000)[0] == OK, "the other tree to be served")
    assert w.daemon.worker_pids() != before
    # Probes hang as well, and do not stay.
    killed = w.stats()["timeouts"]
    wait_for(lambda: w.stats()["timeouts"] > killed, "a probe to be given up", PROBE_S)
    assert w.is_out()
    w.mount.behave("normal")
    w.until_back()
    assert w.ask("slow/file1.txt")[0] == OK
    assert w.stats()["workers"] == 1


def test_an_unmounted_file_system_is_not_out_of_service(world):
    w = world("gone")
    w.mount.behave("hang")
    w.until_out()
    subprocess.run(["umount", "-l", str(w.mount.target)], check=True)
    w.mount.process.kill()
    w.mount.process.wait()
    w.mount.process = None
    wait_for(lambda: w.stats()["out_of_service"] == 0, "the breaker to be dropped")
    tree.put(w.path("slow/file1.txt"), b"below\n")
    assert w.ask("slow/file1.txt")[0] == OK


@pytest.mark.parametrize("sendfile", ("Off", "On"))
def test_a_large_file_that_cannot_be_read_any_more(world, lab, sendfile):
    """It is opened for each response. Httpd looks by itself, and says what is so."""
    w = world(f"dies-{sendfile}", ttl_ms=600_000)
    tree.put(w.mount.source / "large.bin", tree.content("large", TOO_LARGE))
    options = dict(mpm="event", config=f"EnableSendfile {sendfile}\nFlashpacheTimeout 2\n")
    server = lab.flash(f"dies-{sendfile}-flash", w.root, w.daemon.socket, **options).start()
    for _ in range(3):
        assert get(server.port, "/slow/large.bin") == (200, tree.content("large", TOO_LARGE))
    w.mount.process.kill()
    w.mount.process.wait()
    assert get(server.port, "/slow/large.bin")[0] == 403
    assert get(server.port, "/local/file1.txt")[0] == 200
    subprocess.run(["umount", "-l", str(w.mount.target)], check=True)
    w.mount.process = None
