# SPDX-License-Identifier: Apache-2.0
"""Hostile clients: floods of absent names, names made to collide, tricks with paths, bodies read slowly. The outcome
is stock's, memory stays bounded, and the others keep their hits.

FLASHPACHE_LONG=1: a flood of a million names, not 30,000.
"""

import itertools
import json
import os
import subprocess
from collections import Counter

import pytest

import compare
import procs
import sanitizer
import status_kit
import tree
from compare import Ask
from confinement import CLOSER
from conftest import built
from hostile_kit import assert_well
from httpd import HITS
from keepalive import Connection
from lease_kit import NOTE_CONFIG
from waiting import Threads, wait_for

pytestmark = pytest.mark.needs_flashpache

GROUP = "hostile client"
FLOOD = 1_000_000 if int(os.environ.get("FLASHPACHE_LONG", "0")) else 30_000
WARM_UP = 5_000             # names, before the first look at memory
BLOCKS = 13                 # of two letters each; 2 ** BLOCKS names have equal hashes
HOT = 100
LIMITS = {"memory": 13 << 18}
ROOM = 8 << 18            # bytes of that for entries; each KiB allows one entry of each kind
GROWTH_KIB = 8_000          # of a process, once it is warm
HONEST_LOSS = 0.01          # of the hits
SLOW_CLIENTS = 40
SPARES = 8                  # descriptors that a child keeps of a file, to send it by them again
LARGE = 8 << 20             # more than a socket takes at once


@pytest.fixture(scope="module")
def root(base):
    root = base / "hostile-clients"
    tree.put(root / "index.html", "index\n")
    tree.put(root / "honest", "honest\n")
    tree.put(root / "dir/file.txt", "a file\n")
    tree.put(root / "dir/index.html", "index of dir\n")
    tree.put(root / "dir/.htaccess", "Header set X-From htaccess\n")
    tree.put(root / "dir/denied/file.txt", "denied\n")
    tree.put(root / "dir/denied/.htaccess", "Require all denied\n")
    tree.put(root / "dir/semi;colon/file.txt", "semicolon\n")
    tree.put(root / "dir/back\\slash", "backslash\n")
    tree.put(root / "large.bin", tree.content("large", LARGE))
    for i in range(HOT):
        tree.put(root / f"hot/file{i}.txt", f"hot {i}\n")
    os.symlink("dir", root / "link")
    return root


# ---- tricks with paths ----

TRICKS = ("..%2f", "..%5c", "..\\", "%2e%2e/", "%2e%2e%2f", ".%2e/", "%2e/", "%252e%252e/", "%252f",
          "%c0%ae%c0%ae/", "%c0%af", "%e0%80%af", "%00", "%2500", "/", "//", "./", ".//", "../", "../../",
          ";", ";x=y/", ";/", "\\", "%5c", "%", "%2", "%zz", "%u002e", ".", "..", "...", "....//", "%20",
          "%09", "%0d%0a", "%0a", "%7f", "%ff", "%fe%ff", "%e2%80%ae", "\udcff", "\udcc0\udcae", "é", "~",
          "~root/", "*", "?", "%3f", "%23", "+", ":", "::$DATA", "%2f", "%2F%2F", "denied/..%2f",
          "denied/../", "denied/%2e%2e/", ".htaccess", ".htaccess%00", ".htaccess/", ".ht%61ccess")
PLACES = ("/{}", "/{}file.txt", "/dir/{}file.txt", "/dir{}file.txt", "/dir/file.txt{}", "/dir/file.txt/{}",
          "/dir/{}", "/dir/denied/{}file.txt", "/link/{}file.txt", "/none/{}file.txt")
LONG = ("/" + "p" * 8150, "/dir" + "/p" * 4000, "/dir" + "/." * 4000 + "/file.txt",
        "/" + "dir/../" * 1000 + "dir/file.txt", "/" + "none/../" * 1000 + "dir/file.txt",
        "/dir" + "/" * 8000 + "file.txt", "/dir/file.txt" + "/x" * 1000, "/dir/file.txt" + "/" * 8000,
        "/dir/" + "%2e%2e/" * 1000 + "dir/file.txt", "/dir/" + "%2f" * 2600, "/" + "%41" * 2700,
        "/" + "a" * 255 + "/" + "b" * 256, "/" + "../" * 2700 + "etc/passwd", "/" + "p" * 9000)
TARGETS = ("http://localhost/dir/file.txt", "HTTP://LOCALHOST/dir/file.txt",
           "http://elsewhere:99/dir/file.txt", "http:///dir/file.txt", "http://localhost",
           "https://localhost/dir/file.txt", "ftp://localhost/dir/file.txt", "//localhost/dir/file.txt",
           "file:///etc/passwd", "http://localhost/..%2f..%2fetc/passwd",
           "http://local%68ost/dir/file.txt", "http://a:b@localhost/dir/file.txt", "*", "dir/file.txt",
           "?x", "#x", "/dir/file.txt#x", "/dir/file.txt?x#y", "localhost:80", "/dir/file.txt?../../x",
           "%2fdir/file.txt")
METHODS = ("GET", "HEAD", "get", "G", "POST", "PUT", "DELETE", "TRACE", "CONNECT", "OPTIONS", "PATCH",
           "PROPFIND", "MOVE", "LOCK", "BASELINE-CONTROL", "X" * 200, "GET-", "G\tT", "\udcff")
HOSTS = {"localhost": "", "all": "AllowOverride All", "owner": "AllowOverride All\nOptions SymLinksIfOwnerMatch",
         "slashes": "", "nodecode": "", "nomerge": ""}
SERVER_WIDE = {"slashes": "AllowEncodedSlashes On", "nodecode": "AllowEncodedSlashes NoDecode",
               "nomerge": "MergeSlashes Off"}


def vhosts(root):
    return [([name], SERVER_WIDE.get(name, "") + (f"\n<Directory {root}>\n{text}\n</Directory>" if text else ""))
            for name, text in HOSTS.items()] + [status_kit.VHOST]


@pytest.fixture(scope="module")
def flash(lab, root):
    return lab.under_test("flash", root, config=NOTE_CONFIG, vhosts=vhosts(root), extra_modules=status_kit.MODULES,
                          daemon_settings=LIMITS)


def test_tricks_with_paths(lab, root, outcome):
    options = dict(config=compare.LOG_FORMAT + "TraceEnable off\nAcceptPathInfo On\n", vhosts=vhosts(root)[:-1])
    stock = lab.stock("tricks-stock", root, **options).start()
    flash = lab.under_test("tricks", root, daemon_settings=LIMITS, **options)
    asks = [Ask(host, place.format(trick)) for host in HOSTS for trick in TRICKS for place in PLACES]
    asks += [Ask(host, path) for host in HOSTS for path in (*LONG, *TARGETS)]
    asks += [Ask("localhost", path, method) for method in METHODS
             for path in ("/dir/file.txt", "/dir/", "/none", "*")]
    found = compare.differences(stock, flash, asks)
    assert not found, compare.told(found)
    assert_bounded(flash.daemon.counters())
    statuses = {int(entry.status) for entry in flash.entries()}
    assert statuses >= {200, 301, 400, 403, 404, 405, 414}, statuses
    outcome(GROUP, "tricks with paths, targets and methods", len(asks) * compare.TIMES,
            note="status, headers, body and error log compared with stock")


# ---- floods ----

def assert_bounded(counters):
    assert counters["negative"] <= ROOM // 1024
    assert counters["directories"] <= ROOM // 1024
    assert counters["bytes"] <= ROOM


def memory_of(server):
    """{pid: its memory}"""
    return {pid: procs.memory_kib(pid)
            for pid in (server.daemon.pid, *server.daemon.worker_pids(), *server.pids())}


class Honest(Threads):
    """A client that asks for existing files until the block ends: its notes."""

    def __init__(self, port):
        self.notes, self.wrong = Counter(), []
        self.connection = Connection(port)
        super().__init__(self._run, [()])

    def ask(self, i):
        answer = self.connection.get(f"/hot/file{i}.txt")
        if (answer.status, answer.body) != (200, f"hot {i}\n".encode()):
            self.wrong.append(answer)
        self.notes[answer.headers.get("x-note")] += 1

    def _run(self):
        for i in itertools.cycle(range(HOT)):
            if self.over.wait(0.001):
                return
            self.ask(i)

    def share(self):
        return sum(self.notes[note] for note in HITS) / self.notes.total()

    def __exit__(self, *_):
        super().__exit__()
        self.connection.close()


def share_before(server):
    """The share of the same client while nobody else asks, once it has asked for everything."""
    calm = Honest(server.port)
    for _ in range(3):
        calm.notes.clear()
        for i in range(HOT):
            calm.ask(i)
    calm.connection.close()
    assert not calm.wrong
    return calm.share()


def flood(server, paths, directory):
    """{status: number} of these paths, each requested once, over 16 connections."""
    urls, result = directory / "urls", directory / "result.json"
    urls.write_text("".join(f"{path}\n" for path in paths))
    subprocess.run([built("tests/lab/flashpache-bench"), "--port", str(server.port), "-c", "16", "-u", urls, "--once",
                    "--allow-errors", "--json", result], check=True, capture_output=True)
    return json.loads(result.read_text())["by_status"]


def names(count):
    """Beside the hot files, in absent directories, below a file."""
    patterns = ("/hot/missing{}.php", "/gone{}/x", "/hot/no{}/deep/er/file", "/hot/file1.txt/info{}", "/dir/{}/")
    return [patterns[i % len(patterns)].format(i) for i in range(count)]


def colliding():
    """Equal under every hash that multiplies by 33 and adds, whatever its start value."""
    return ["/hot/" + "".join(blocks) for blocks in itertools.product(("Ez", "FY"), repeat=BLOCKS)]


def run_flood(server, paths, directory):
    """{status: number}; meanwhile an honest client keeps its hits, and no process grows."""
    before = share_before(server)
    flood(server, names(WARM_UP), directory)
    warm = memory_of(server)
    with Honest(server.port) as honest:
        statuses = flood(server, paths, directory)
    now = memory_of(server)
    assert not honest.wrong, honest.wrong[:3]
    grown = {pid: now[pid] - kib for pid, kib in warm.items() if pid in now}
    print(f"\nhits before {before:.4f}, during {honest.share():.4f} of {honest.notes.total()}; "
          f"KiB more: {max(grown.values())}")
    assert honest.share() >= before - HONEST_LOSS, honest.notes
    assert_bounded(server.daemon.counters())
    assert max(grown.values()) < GROWTH_KIB or sanitizer.KIND, grown       # a sanitizer keeps freed memory
    assert_well(server, "/honest", b"honest\n")
    return statuses


FLOODS = {"absent": (f"{FLOOD} names that are not there", lambda: names(FLOOD + WARM_UP)[WARM_UP:]),
          "colliding": (f"{2 ** BLOCKS} names of one hash", colliding)}


@pytest.mark.parametrize("kind", FLOODS)
def test_flood(flash, outcome, tmp_path, kind):
    case, make = FLOODS[kind]
    paths = make()
    statuses = run_flood(flash, paths, tmp_path)
    outcome(GROUP, case, len(paths), failed=len(paths) - statuses.get("404", 0),
            note="meanwhile an honest client's hits are as before")
    assert statuses == {"404": len(paths)}


# ---- slow clients ----

def held(server, path):
    """The number of descriptors of that file in the children, and in the daemon and its workers. The processes that
    close for the daemon have no descriptors but its own."""
    pids = server.pids()
    if server.socket:
        below = procs.descendants(server.daemon.pid)
        pids += [server.daemon.pid, *(pid for pid, comm in below.items() if comm != CLOSER)]
    return sum(1 for pid in pids for fd in os.listdir(f"/proc/{pid}/fd") if leads_to(pid, fd, path))


def leads_to(pid, fd, path):
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}") == str(path)
    except FileNotFoundError:       # the descriptor by which the list was read
        return False


def held_for_slow_clients(server, root):
    """Descriptors of a file while many clients have begun to read it and do not go on."""
    connections = [Connection(server.port, receive_buffer=4096) for _ in range(SLOW_CLIENTS)]
    for connection in connections:
        connection.begin("/large.bin")
    for connection in connections:
        assert connection.receive(1024).startswith(b"HTTP/1.1 200 ")
    count = held(server, root / "large.bin")
    for connection in connections:
        connection.close()
    wait_for(lambda: held(server, root / "large.bin") <= kept(server), "their descriptors to be closed")
    return count


def kept(server):
    """The most kept beside those of requests: in each child a lease's and those for later responses, and the
    daemon's."""
    return (1 + SPARES) * len(server.pids()) if server.socket else 0


def test_slow_clients(lab, root, flash, outcome):
    """Each request holds what it holds with stock. Where many ask for a file that no child knew, each holds the
    answer's, too."""
    stock = lab.stock("slow-stock", root).start()
    with_stock = held_for_slow_clients(stock, root)
    cold = held_for_slow_clients(flash, root)
    # Other events on the machine may end a lease in between: then the next ones ask again.
    warm = min(held_for_slow_clients(flash, root) for _ in range(3))
    print(f"\ndescriptors for {SLOW_CLIENTS} slow clients: stock {with_stock}, ours {cold}, then {warm}")
    assert with_stock >= SLOW_CLIENTS
    assert cold <= 2 * with_stock + kept(flash)
    assert warm <= with_stock + kept(flash)
    assert_well(flash, "/honest", b"honest\n")
    outcome(GROUP, f"{2 * SLOW_CLIENTS} clients that do not go on reading", 2 * SLOW_CLIENTS,
            note=f"descriptors of the file for {SLOW_CLIENTS}: {cold} cold, {warm} warm, with stock {with_stock}")
