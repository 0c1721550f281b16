# SPDX-License-Identifier: Apache-2.0
"""After many requests of every kind, and many graceful restarts, no process holds more than before.

FLASHPACHE_LONG=1: 100,000 requests and 100 graceful restarts, and stock's growth beside it.
"""

import os
import signal
from pathlib import Path

import pytest

import leak_kit
import sanitizer
import tree
from content_kit import clock, settled  # noqa: F401 (fixtures)
from fetch import get
from forms import chosen
from leak_kit import Asks, Clients, Level
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

LONG = int(os.environ.get("FLASHPACHE_LONG", "0"))
REQUESTS, RESTARTS = (100_000, 100) if LONG else chosen((2_500, 5), (5_000, 10))
WARM_UP = 500               # requests until everything with a limit is full
SAMPLES = 4                 # after each restart
SLICE = REQUESTS // RESTARTS // SAMPLES // 2
STOP_EVERY = 5              # rounds: in one of so many the daemon is stopped for some requests
STOPPED = 20
# The limits are below the requests' needs, so that entries and leases come and go all the time.
SETTINGS = {"ttl_ms": 60000, "workers": 4, "open_files": 100, "memory": "208K"}
LEASES = 50
# Always two children, whatever the load.
CHILDREN, THREADS = 2, 8
LIMITS = (f"StartServers {CHILDREN}\nServerLimit 4\nThreadLimit {THREADS}\nThreadsPerChild {THREADS}\n"
          "MinSpareThreads 16\nMaxSpareThreads 32\nMaxRequestWorkers 16\n")
NOTES = {"lease", "hit", "miss", "bypass", "fallback"}
NOISE_DESCRIPTORS, NOISE_KIB, KIB_PER_1000 = 2, 256, 8
# Children keep a connection to the daemon for as many threads as ever asked at once: a descriptor of each side.
CONNECTIONS = {"children": CHILDREN * THREADS, "daemon": CHILDREN * THREADS}


@pytest.fixture(scope="module")
def root(base):
    root = base / "leaks-tree"
    leak_kit.make(root)
    return root


def groups(server):
    """{who: pids}"""
    parent, *children = server.pids()
    found = {"parent": [parent], "children": children}
    if server.socket:
        found |= {"daemon": [server.daemon.pid], "workers": server.daemon.worker_pids()}
    return found


def levels(server):
    return {who: leak_kit.level(pids) for who, pids in groups(server).items()}


def restart(server, clients):
    """Restarts gracefully, and waits until the last old child is gone."""
    clients.close()
    before = set(server.pids()[1:])
    server.graceful()
    wait_for(lambda: not before & set(now := server.pids()[1:]) and len(now) == CHILDREN,
             "new children in the place of the old", 60)


def fall_back(server, clients):
    """Some requests while the daemon does not answer, and more until children ask it again."""
    server.daemon.signal(signal.SIGSTOP)
    clients.run(STOPPED)
    server.daemon.signal(signal.SIGCONT)

    def asked_again():
        mark = server.mark()
        clients.run(STOPPED)
        return not any(e.note == "fallback" for e in server.wait_entries(STOPPED // 2, mark))
    wait_for(asked_again, "the daemon to be asked again", 60)


def sampled(server, clients, count):
    """The levels after each of so many slices."""
    made = []
    for _ in range(count):
        clients.run(SLICE)
        made.append(levels(server))
    return made


def run(server, clients):
    """(levels with restarts all the time, levels of one generation); as many requests in each"""
    restarts = []
    clients.run(WARM_UP)
    for number in range(RESTARTS):
        restart(server, clients)
        if server.socket and number % STOP_EVERY == 0:
            fall_back(server, clients)
        restarts += sampled(server, clients, SAMPLES)
    return restarts, sampled(server, clients, SAMPLES * RESTARTS)


def growth(samples, who):
    """By how much the least of the last quarter exceeds the most of the second. Resources in use come and go, lost
    ones never come back. The first quarter is for warming up. Children hold files that they sent, in varying
    numbers: their descriptors are compared with all before."""
    mine = [sample[who] for sample in samples]
    quarter = len(mine) // 4
    second, last = mine[quarter:2 * quarter], mine[-quarter:]
    before = mine[:-quarter] if who == "children" else second
    return Level(min(x.rss_kib for x in last) - max(x.rss_kib for x in second),
                 min(x.descriptors for x in last) - max(x.descriptors for x in before))


def table(name, samples):
    for who in samples[0]:
        first, last, more = samples[len(samples) // 4][who], samples[-1][who], growth(samples, who)
        print(f"  {name:20} {who:8}  RSS {first.rss_kib} KiB after a quarter, {last.rss_kib} at the end, growth "
              f"{more.rss_kib}; descriptors {first.descriptors}, {last.descriptors}, growth {more.descriptors}")


def check(samples, stock):
    """Descriptors: no growth but by chance. Memory: little, compared with stock's growth."""
    for who in samples[0]:
        more = growth(samples, who)
        allowed = NOISE_DESCRIPTORS + CONNECTIONS.get(who, 0)
        assert more.descriptors <= allowed, f"{who}: {[s[who].descriptors for s in samples]}"
        theirs = max(0, growth(stock, who).rss_kib) if who in stock[0] else 0
        most = theirs + NOISE_KIB + KIB_PER_1000 * SLICE * len(samples) // 1000
        # A sanitizer keeps freed memory, to find later uses of it; it reports leaks itself.
        assert more.rss_kib <= most or sanitizer.KIND, f"{who}: {[s[who].rss_kib for s in samples]}"


def measured(server, root):
    clients = Clients(server.port, Asks(root, 1))
    parts = run(server, clients)
    clients.close()
    for name, samples in zip(("with restarts", "one generation"), parts):
        table(f"{server.name} {name}", samples)
    assert (clients.failed, clients.wrong) == (0, 0), clients.complaints[:10]
    return clients, parts


def test_nothing_is_left_behind(lab, root, outcome):
    stock_parts = [[{}], [{}]]
    if LONG and not sanitizer.KIND:
        stock = lab.stock("stock", root, limits=LIMITS, config=leak_kit.config(root)).start()
        _, stock_parts = measured(stock, root)
        stock.stop()
    server = lab.under_test("flash", root, limits=LIMITS, daemon_settings=SETTINGS, config=leak_kit.config(root)
                            + f"FlashpacheExclude {root}/excluded\nFlashpacheLeases {LEASES}\n")
    clients, parts = measured(server, root)
    total = sum(clients.kinds.values())
    print(f"  {total} requests: {dict(clients.kinds)}")
    assert {e.note for e in server.entries()} >= NOTES
    for samples, stock_samples in zip(parts, stock_parts):
        check(samples, stock_samples)
    begin, end = parts[0][len(parts[0]) // 4]["daemon"], parts[1][-1]["daemon"]
    outcome("leak", f"all kinds of requests, {RESTARTS} graceful restarts", requests=total, failed=clients.failed,
            wrong=clients.wrong, note=f"no growth; the daemon held {begin.descriptors} descriptors and "
            f"{begin.rss_kib} KiB early, {end.descriptors} and {end.rss_kib} at the end")


def test_growth_is_seen():
    """The checker itself: varying use is no growth, lost resources are."""
    samples = [{"one": Level(5000 + i % 7, 60 + i % 5), "other": Level(5000 + 3 * i, 60 + i % 5 + i // 2)}
               for i in range(40)]
    assert growth(samples, "one") == (-6, -4)
    assert min(growth(samples, "other")) > 0


ONE_CHILD = ("StartServers 1\nServerLimit 1\nThreadsPerChild 8\nMaxRequestWorkers 8\n"
             "MinSpareThreads 1\nMaxSpareThreads 8\n")
LIVES = 4


@pytest.mark.usefixtures("settled")
def test_a_daemon_of_before_leaves_no_tables(lab, base):
    """Rules and names that a child keeps, of directories that nobody asks for again, do not hold them."""
    root = base / "lives"
    for life in range(LIVES):
        tree.put(root / f"{life}/.htaccess", "Options +MultiViews\n")
        tree.put(root / f"{life}/page.txt", "page\n")
    tree.put(root / "other.txt", "other\n")
    server = lab.under_test("lives", root, limits=ONE_CHILD, daemon_settings={"ttl_ms": 500},
                            config=f"<Directory {root}>\nAllowOverride All\n</Directory>\n")

    def held():
        """The lease tables that the child maps."""
        assert get(server.port, "/other.txt")[0] == 200
        return Path(f"/proc/{server.pids()[1]}/maps").read_text().count("/memfd:flashpache-generations")
    for life in range(LIVES):
        if life:
            server.daemon.restart()
            wait_for(lambda: held() > 0 and get(server.port, "/other.txt", "now")[0] == 200
                     and server.wait_entries(1, tag="now")[-1].note == "lease", "the new daemon's leases")
        for _ in range(3):
            assert get(server.port, f"/{life}/page.txt")[0] == 200
            assert get(server.port, f"/{life}/missing")[0] == 404
    wait_for(lambda: held() == 1, "the last daemon's table alone")
