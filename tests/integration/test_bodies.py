# SPDX-License-Identifier: Apache-2.0
"""Bodies are right, byte by byte, at high concurrency on every way that a body can go out.

All holders of a passed descriptor share its offset. A process that reads through the offset would send wrong
bytes, and this test would find it.
"""

import os

import pytest

import tree
from conftest import SELFCHECK
from fetch import Client, bodycheck
from forms import chosen
from httpd import HITS

TOTAL = int(os.environ.get("FLASHPACHE_BODIES", chosen(8000, 200_000)))
# {size: (files, weight)}: 1 MiB is about 3 % of the requests.
SIZES = {100: (4, 6), 4096: (4, 6), 8192: (4, 6), 65536: (4, 5), 1 << 20: (3, 1)}
WAYS = ("plain", "tls", "http2", "deflate")
SWITCHES = ("On", "Off")
HIT_SHARE = 0.99
# event gets every combination, the others a smaller number of the same.
SHARE = {"event": 0.7, "worker": 0.15, "prefork": 0.15}
# Compressing all bodies would measure zlib.
WAY_SHARE = {"plain": 0.34, "tls": 0.24, "http2": 0.24, "deflate": 0.18}
COMBINATIONS = [(m, w, mmap, send) for m in ("event", "worker", "prefork") for w in WAYS
                for mmap in SWITCHES for send in SWITCHES
                if not (m == "prefork" and w == "http2")]


def hot_set():
    """({name: size}, [path:weight])"""
    sizes, weighted = {}, []
    for size, (count, weight) in SIZES.items():
        for i in range(count):
            sizes[f"hot{size}-{i}.bin"] = size
            weighted.append(f"hot{size}-{i}.bin:{weight}")
    return sizes, weighted


def bodies_of(mpm, way):
    """The number of bodies that one combination compares: in total, TOTAL."""
    weight = {c: SHARE[c[0]] * WAY_SHARE[c[1]] for c in COMBINATIONS}
    one = SHARE[mpm] * WAY_SHARE[way]
    return max(64, -(-int(TOTAL * one * 1000 / sum(weight.values())) // 1000))


@pytest.fixture(scope="module")
def hot(base):
    root = base / "hot"
    sizes, weighted = hot_set()
    for mmap in SWITCHES:
        for send in SWITCHES:
            for way in ("raw", "deflate"):
                tree.hot_files(root / f"{way}-{mmap}-{send}", sizes)
    return root, weighted


# A threaded child whose workers are all busy closes the connections that wait for their next request. Stock does so,
# too, and a request may be under way on them. So each child has more workers than there are clients.
LIMITS = "ServerLimit 2\nStartServers 2\nThreadLimit 80\nThreadsPerChild 80\n" \
         "MinSpareThreads 1\nMaxSpareThreads 160\nMaxRequestWorkers 160\n"


def config(root):
    parts = []
    for mmap in SWITCHES:
        for send in SWITCHES:
            switches = f"EnableMMAP {mmap}\nEnableSendfile {send}\n"
            parts.append(f"<Directory {root}/raw-{mmap}-{send}>\n{switches}</Directory>")
            parts.append(f"<Directory {root}/deflate-{mmap}-{send}>\n{switches}"
                         "SetOutputFilter DEFLATE\n</Directory>")
    parts.append("DeflateCompressionLevel 1")
    return "\n".join(parts)


@pytest.fixture(scope="module")
def servers(lab, hot, certificate):
    root, _ = hot
    made = {}

    def of(mpm):
        if mpm not in made:
            made[mpm] = lab.under_test(f"flash-{mpm}", root, mpm=mpm, tls=certificate,
                                       http2=mpm != "prefork", config=config(root),
                                       limits=None if mpm == "prefork" else LIMITS,
                                       daemon_settings={"ttl_ms": 60000})
        return made[mpm]
    return of


def warm_up(server, directory):
    """Each file twice, one after the other: later answers have to be hits."""
    with Client(server.port) as client:
        for name, size in [*hot_set()[0].items()] * 2:
            status, body = client.get(f"/{directory}/{name}")
            assert (status, len(body)) == (200, size)


@pytest.mark.parametrize("mpm,way,mmap,sendfile", COMBINATIONS,
                         ids=lambda v: str(v))
def test_bodies(servers, hot, bodycheck_program, mpm, way, mmap, sendfile):
    root, weighted = hot
    server = servers(mpm)
    directory = f"{'deflate' if way == 'deflate' else 'raw'}-{mmap}-{sendfile}"
    options = {"plain": [], "tls": ["--insecure"], "http2": ["--insecure", "--http2"],
               "deflate": ["--accept-encoding", "gzip"]}[way]
    count = bodies_of(mpm, way)
    before = len(server.entries())
    warm_up(server, directory)
    server.wait_entries(before + 2 * len(weighted))
    mark = server.mark()
    url = server.url("/" + directory, tls=way in ("tls", "http2"))
    bodies, wrong, failed, complaints = bodycheck(
        bodycheck_program, url, root / directory, weighted, count, *options)
    print(f"bodies={bodies} wrong={wrong} failed={failed}")
    assert (wrong, failed) == (0, 0), complaints
    assert bodies == count
    entries = server.wait_entries(count, mark)
    hits = sum(1 for e in entries if e.note in HITS)
    print(f"hits: {hits} of {len(entries)}")
    if not SELFCHECK:
        assert hits >= HIT_SHARE * len(entries), "served, but not from the cache"


def test_the_total(record_property):
    """The sum of the combinations."""
    total = sum(bodies_of(m, w) for m, w, _, _ in COMBINATIONS)
    record_property("bodies", total)
    print(f"{total} bodies in {len(COMBINATIONS)} combinations")
    assert total >= TOTAL
