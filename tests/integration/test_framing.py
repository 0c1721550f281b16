# SPDX-License-Identifier: Apache-2.0
"""Every byte that a connection brings, heads, chunks, trailers and what follows them, is as stock's: random requests of many kinds,
pipelined and one by one, on connections that stay. Over HTTP/2 the fields and bodies of each stream."""

import os
import shutil
import socket
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import framing_kit
from forms import chosen
from waiting import restart

SEED = int(os.environ.get("FLASHPACHE_SEED", "1"))
CONVERSATIONS = chosen(40, 1200)        # of each way
REQUESTS = 25                           # in each
THREADS = 4
TIMEOUT_S = 30
PIECE = 700                             # bytes of a write, one by one


@pytest.fixture(scope="module")
def root(base):
    framing_kit.make(base / "framing")
    return base / "framing"


@pytest.fixture(scope="module")
def servers(lab, root, mpm):
    config = framing_kit.CONFIG.format(root=root)
    options = {"mpm": mpm, "config": config, "http2": mpm != "prefork", "extra_modules": framing_kit.modules()}
    made = (lab.stock(f"framing-stock-{mpm}", root, **options).start(),
            lab.under_test(f"framing-{mpm}", root, daemon_settings={"ttl_ms": 300}, **options))
    for server in made:
        while framing_kit.width(server.port) != framing_kit.WIDTH:
            restart(server)
    yield made
    lab.end()


def read_all(connection):
    parts = []
    while True:
        try:
            part = connection.recv(1 << 18)
        except ConnectionResetError:
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


def pipelined(port, requests):
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        connection.sendall(b"".join(requests))
        return read_all(connection)


def in_pieces(port, requests):
    """A writer of its own, since the server may not read on before it has written."""
    data = b"".join(requests)
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection, ThreadPoolExecutor(1) as pool:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def write():
            for at in range(0, len(data), PIECE):
                try:
                    connection.sendall(data[at:at + PIECE])
                except OSError:
                    return      # the server has ended the connection
        pool.submit(write)
        return read_all(connection)


WAYS = {"pipelined": pipelined, "in pieces": in_pieces}


def first_difference(theirs, ours):
    at = next((i for i, (a, b) in enumerate(zip(theirs, ours)) if a != b), min(len(theirs), len(ours)))
    return f"at byte {at} of {len(theirs)} and {len(ours)}:\n{theirs[max(0, at - 400):at + 200]!r}\n{ours[max(0, at - 400):at + 200]!r}"


@pytest.mark.parametrize("way", WAYS)
def test_every_byte(servers, mpm, way):
    """Each conversation twice with ours: paths that are not known yet, and known ones."""
    def compare(number):
        requests = framing_kit.conversation(f"{SEED} {mpm} {way} {number}", REQUESTS)
        theirs, *ours = (framing_kit.comparable(WAYS[way](server.port, requests), server.port)
                         for server in (servers[0], servers[1], servers[1]))
        return [f"conversation {number} {requests[:3]}: {first_difference(theirs, one)}" for one in ours if one != theirs]
    with ThreadPoolExecutor(THREADS) as pool:
        found = [text for some in pool.map(compare, range(CONVERSATIONS)) for text in some]
    # Some requests end their conversation.
    print(f"\n{mpm}: {len(servers[1].entries())} responses by now, {way}: {len(found)} conversations differ; "
          f"{dict(Counter(e.note for e in servers[1].entries()))}")
    assert not found, f"{len(found)}: {found[0]}"


# ---- HTTP/2 ----

STREAMS = chosen(400, 8000)
FIELDS = ("", "-I", "-r 0-9", "-H Range:bytes=0-1,5-6", "-H Accept-Encoding:gzip", "-H Accept-Language:de", "-H If-None-Match:*", "-d body")


def by_http2(server, base, number, urls):
    """What curl says of each URL, all over one connection: exit status, head and body. It checks the framing itself."""
    place = base / f"h2-{server.name}-{number}"
    place.mkdir()
    lines = ["http2-prior-knowledge", "silent", "parallel", "parallel-max = 20", "no-progress-meter", "path-as-is"]
    for index, (path, fields) in enumerate(urls):
        flag, _, value = fields.partition(" ")
        option = {"-I": "head", "-r": f'range = "{value}"', "-H": f'header = "{value}"', "-d": f'data = "{value}"'}.get(flag)
        lines += [f'url = "http://127.0.0.1:{server.h2c_port}{path}"', f'output = "{place}/{index}.body"', f'dump-header = "{place}/{index}.head"',
                  *([option] if option else []), "next", "http2-prior-knowledge", "path-as-is"]
    (place / "config").write_text("\n".join(lines[:-3]) + "\n")
    done = subprocess.run(["curl", "-K", place / "config"], capture_output=True, timeout=300)

    def of(index):
        files = [place / f"{index}.{kind}" for kind in ("head", "body")]
        return framing_kit.comparable(b"|".join(file.read_bytes() if file.exists() else b"none" for file in files), server.h2c_port)
    found = [of(index) for index in range(len(urls))]
    shutil.rmtree(place)
    return done.returncode, found


def test_every_stream(servers, base, mpm):
    if mpm == "prefork":
        pytest.skip("httpd offers no HTTP/2 with prefork")
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    dice = framing_kit.random.Random(f"{SEED} {mpm}")
    for number in range(STREAMS // 100):
        urls = [(dice.choice(framing_kit.PATHS), dice.choice(FIELDS)) for _ in range(100)]
        (their_status, theirs), (our_status, ours) = (by_http2(server, base, number, urls) for server in servers)
        assert their_status == our_status
        for url, one, other in zip(urls, theirs, ours):
            assert one == other, f"{url}\n{one}\n{other}"[:3000]
