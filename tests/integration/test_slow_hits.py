# SPDX-License-Identifier: Apache-2.0
"""On a slow file system a warm hit does not wait for it.

Hits are answered while it hangs. The full form measures as well: a ratio within one run, never an absolute time.
The file system is the lab's slowfs: 2 ms for each lookup, getattr and open, nothing kept by the kernel.
"""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import procs
import slowfs
import tree
from conftest import built
from content_kit import SETTLED_S, clock  # noqa: F401 (fixture)
from dead_mounts_kit import Breakable
from fetch import Client, get
from httpd import HITS
from keepalive import Connection
from test_slowfs import mount  # noqa: F401 (fixture)
from test_walk_calls import LIMITS as ONE_CHILD
from trace import CALL, Trace
from waiting import wait_for

DELAY_US = 2000
FILES = 1000
SIZE = 5000
SAMPLE_STOCK = 40
SAMPLE_HITS = 250
WARM_UP_THREADS = 32
RATIO = 50
SLOW_CLIENT_S = 0.1
LARGE_REQUESTS = 5
LARGE = 100_000         # not served by its content at once
TOO_LARGE = 8_000_000   # nor later
TTL_MS, LOOKS = 80, 10
OPENS = "open,openat,close,dup"


def paths():
    return [f"a{i % 4}/b{i % 5}/c{i % 3}/d{i % 7}/file{i}.html" for i in range(FILES)]


def make_source(source):
    for path in paths():
        tree.put(source / path, tree.content(path, SIZE))
    return source


@pytest.fixture(scope="module")
def slow_root(base, slow_directory):
    return slow_directory(make_source(base / "slow-source"), DELAY_US)


def fetch_all(server, wanted):
    """One after the other."""
    with Client(server.port) as client:
        for path in wanted:
            status, body = client.get("/" + path)
            assert status == 200 and len(body) == SIZE


def timed_pass(server, wanted):
    """Mean seconds for one request."""
    start = time.perf_counter()
    fetch_all(server, wanted)
    return (time.perf_counter() - start) / len(wanted)


def ask_for_all(server):
    """Every file once, many at a time: one after the other would take minutes."""
    def fetch(path):
        assert get(server.port, "/" + path)[0] == 200
    mark = server.mark()
    with ThreadPoolExecutor(WARM_UP_THREADS) as pool:
        list(pool.map(fetch, paths()))
    return server.wait_entries(FILES, mark)


def notes(entries):
    return dict(Counter((e.note, e.reason) for e in entries))


def hits_of(entries):
    return sum(1 for e in entries if e.note in HITS)


def pair(slow_root, lab, override):
    """(stock, with Flashpache), not yet asked for anything."""
    options = dict(mpm="event", config=f"<Directory {slow_root}>\nAllowOverride {override}\n"
                                       "</Directory>\n")
    stock = lab.stock(f"stock-{override}", slow_root, **options).start()
    return stock, lab.under_test(f"flash-{override}", slow_root,
                                 daemon_settings={"ttl_ms": 60000}, **options)


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("override", ("None", "All"))
def test_a_hit_does_not_wait(base, lab, override):
    """Any question to the file system would hang with it."""
    slowfs.needed()
    root = base / f"hanging-{override}"
    root.mkdir()
    mount = Breakable(built("tests/lab/slowfs/slowfs"), make_source(base / f"hanging-{override}-source"), root / "slow")
    mount.mount()
    try:
        flash = lab.under_test(f"hanging-{override}", root, daemon_settings={"ttl_ms": 600_000},
                               config=f"FlashpacheTimeout 10\n<Directory {root}>\nAllowOverride {override}\n"
                                      "</Directory>\n")
        some = ["slow/" + path for path in paths()[::FILES // SAMPLE_HITS]]
        # The files have just been made: their contents are kept later.
        wait_for(lambda: fetch_all(flash, some) or flash.daemon.counters()["content_files"] >= len(some), "the contents")
        mount.behave("hang")
        mark = flash.mark()
        fetch_all(flash, some)
        entries = flash.wait_entries(len(some), mark)
    finally:
        mount.unmount()
        lab.end()
    assert hits_of(entries) == len(some), notes(entries)


# Speed

@pytest.mark.full
@pytest.mark.alone
@pytest.mark.not_sanitized("it compares speeds")
@pytest.mark.needs_flashpache
@pytest.mark.parametrize("override", ("None", "All"))
def test_a_hit_is_far_faster_than_stock(slow_root, lab, override):
    stock, flash = pair(slow_root, lab, override)
    first = ask_for_all(flash)
    second = ask_for_all(flash)
    mark = flash.mark()
    ours = timed_pass(flash, paths()[::FILES // SAMPLE_HITS])
    entries = flash.wait_entries(SAMPLE_HITS, mark)
    theirs = timed_pass(stock, paths()[:SAMPLE_STOCK])
    lab.end()
    print(f"AllowOverride {override}: stock {theirs * 1000:.2f} ms, hit {ours * 1000:.3f} ms, "
          f"ratio {theirs / ours:.0f}; notes {notes(first)}, then {notes(second)}, then {notes(entries)}")
    assert hits_of(entries) >= 0.99 * SAMPLE_HITS
    assert theirs >= RATIO * ours


@pytest.mark.needs_flashpache
def test_files_first_asked_for_at_once_are_hits_afterwards(slow_root, lab):
    """Walks that overlap must not cost each other's results."""
    flash = lab.under_test("at-once", slow_root, daemon_settings={"ttl_ms": 60000})
    ask_for_all(flash)
    time.sleep(SETTLED_S)       # the files have just been made: now their contents can be kept
    ask_for_all(flash)
    entries = ask_for_all(flash)
    lab.end()
    assert hits_of(entries) >= 0.99 * FILES, notes(entries)


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("sendfile", ("Off", "On"))
def test_a_large_file_is_opened_once_for_a_response(base, lab, slow_directory, sendfile):
    """As by stock, and nobody looks at its path. Also to a client that takes its time: an event worker does not wait for
    that one, and core sets the rest aside. Between requests nobody has it open."""
    source = base / f"large-source-{sendfile}"
    tree.put(source / "large.bin", tree.content("large", TOO_LARGE))
    root = slow_directory(source, DELAY_US)
    flash = lab.under_test(f"large-{sendfile}", root, mpm="event", limits=ONE_CHILD["event"],
                           config=f"EnableSendfile {sendfile}\n", daemon_settings={"ttl_ms": 600_000})
    connection = Connection(flash.port, receive_buffer=4096)

    def fetch():
        start = connection.begin("/large.bin")
        time.sleep(SLOW_CLIENT_S)
        return connection.finish(start)

    def holders():
        return [pid for pid in flash.pids() if str(root / "large.bin") in procs.open_files(pid)]
    try:
        for _ in range(3):
            fetch()
        with Trace(flash.pids(), lab.base / "large-calls.txt", f"{OPENS},lseek,pread64,sendfile") as trace:
            answers = [fetch() for _ in range(LARGE_REQUESTS)]
        wait_for(lambda: not holders(), "the file to be closed")
    finally:
        connection.close()
        lab.end()
    assert {(answer.status, answer.body) for answer in answers} == {(200, tree.content("large", TOO_LARGE))}
    calls = calls_on(trace, "slow")
    assert calls["openat"] <= LARGE_REQUESTS
    # The first piece, and then by the descriptor that core has.
    assert calls["pread64"] == LARGE_REQUESTS
    assert calls["sendfile" if sendfile == "On" else "lseek"] >= LARGE_REQUESTS


def calls_on(trace, part):
    """{call: number} of those whose line names a path with that part."""
    return Counter(CALL.match(line).group(1) for line in trace.lines() if part in line and CALL.match(line))


@pytest.mark.needs_flashpache
def test_opened_again_until_a_change_has_settled(lab, mount, clock):  # noqa: F811 (fixtures)
    """FUSE keeps pages that were read beside a write until the next open: stock opens for each request."""
    made = mount()
    tree.put(made.source / "large.bin", tree.content("large.bin", LARGE))
    server = lab.under_test("settles", made.path, daemon_settings={"ttl_ms": TTL_MS})
    with Client(server.port) as client:
        def opens():
            """So many while the daemon looks at the file again and again."""
            before = made.counters()
            while made.counters()["lookup"] < before["lookup"] + LOOKS:
                assert client.get("/large.bin")[0] == 200
            return made.counters()["open"] - before["open"]
        assert opens() > 1
        with clock.ahead(SETTLED_S):
            wait_for(lambda: opens() == 0, "looks without an open")
