# SPDX-License-Identifier: Apache-2.0
"""A scanner that asks for thousands of absent names does not slow the hot files."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import procs
import tree
from fetch import Client
from forms import chosen
from httpd import HITS

pytestmark = pytest.mark.needs_flashpache

HOT = 200
ABSENT = chosen(6000, 20_000)
THREADS = 8
HIT_SHARE = 0.99
MEMORY_GROWTH_KIB = ABSENT      # one for each name
# The scanner's requests: names beside the hot files, in absent directories, below files.
PATTERNS = ("/hot/d{d}/missing{i}.php", "/gone{i}/x", "/hot/d{d}/no{i}/deep/er/file", "/hot/d{d}/file{f}.txt/info{i}")


@pytest.fixture(scope="module")
def root(base):
    root = base / "scan"
    for i in range(HOT):
        tree.put(root / f"hot/d{i % 10}/file{i}.txt", f"hot {i}\n")
    return root


@pytest.fixture(scope="module", params=("None", "All"))
def server(lab, root, request):
    server = lab.under_test(f"flash-{request.param}", root, mpm="event",
                            config=f"<Directory {root}>\nAllowOverride {request.param}\n</Directory>\n",
                            daemon_settings={"ttl_ms": 60000, "memory": "1M", "open_files": 400})
    yield server
    lab.end()


def hot():
    return [f"/hot/d{i % 10}/file{i}.txt" for i in range(HOT)]


def absent():
    return [PATTERNS[i % len(PATTERNS)].format(i=i, d=i % 10, f=i % 10) for i in range(ABSENT)]


def ask_all(server, paths, status):
    def some(part):
        with Client(server.port) as client:
            for path in part:
                assert client.get(path)[0] == status, path
    mark = server.mark()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(some, (paths[i::THREADS] for i in range(THREADS))))
    return server.wait_entries(len(paths), mark)


def hits(entries):
    return sum(1 for e in entries if e.note in HITS)


@pytest.mark.not_sanitized("its memory is the sanitizer's as well")
def test_a_scan_leaves_the_hot_files(server):
    ask_all(server, hot(), 200)
    ask_all(server, hot(), 200)
    warm = hits(ask_all(server, hot(), 200))
    before = procs.memory_kib(server.daemon.pid)
    scanned = ask_all(server, absent(), 404)
    entries = ask_all(server, hot(), 200)
    after = procs.memory_kib(server.daemon.pid)
    print(f"hot hits {warm} before, {hits(entries)} after {len(scanned)} absent names ({hits(scanned)} hits); "
          f"daemon {before} -> {after} KiB")
    assert warm >= HIT_SHARE * HOT
    assert hits(entries) >= HIT_SHARE * HOT, f"{Counter((e.note, e.reason) for e in entries)} {server.daemon.counters()}"
    assert after - before < MEMORY_GROWTH_KIB
