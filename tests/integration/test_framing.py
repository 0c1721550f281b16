# SPDX-License-Identifier: Apache-2.0
"""Every byte that a connection brings is as stock's: heads, chunks, trailers and the bytes behind them. The requests are random, of many
kinds, pipelined and one by one, on connections that stay. Over HTTP/2 the fields and bodies of each stream."""

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
def servers(lab, root, mpm, certificate):
    config = framing_kit.CONFIG.format(root=root)
    options = {"mpm": mpm, "config": config, "http2": mpm != "prefork", "tls": certificate, "extra_modules": framing_kit.modules()}
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

STREAMS = chosen(50, 1000)              # of each kind
FIELDS = ("", "range = 0-9", 'header = "Range: bytes=0-1,5-6"', 'header = "Accept-Encoding: gzip"', 'header = "Accept-Language: de"',
          'header = "If-None-Match: *"')


def by_http2(server, place, paths, field):
    """Head and body of each path, as curl has them, over one connection. It checks the framing itself. Of HEAD and POST
    streams of stock's end with an error now and then, so these are compared over HTTP/1 alone."""
    lines = ["http2", "insecure", "silent", "show-error", "parallel", "parallel-max = 20", "path-as-is", "include", field]
    for number, path in enumerate(paths):
        lines += [f'url = "https://127.0.0.1:{server.tls_port}{path}"', f'output = "{place}/{number}"']
    place.mkdir()
    (place / "config").write_text("\n".join(lines) + "\n")
    done = subprocess.run(["curl", "-K", place / "config"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (field, done.stderr)
    found = [framing_kit.comparable((place / str(number)).read_bytes(), server.tls_port) for number in range(len(paths))]
    shutil.rmtree(place)
    return found


@pytest.mark.parametrize("field", FIELDS)
def test_every_stream(servers, base, mpm, field):
    if mpm == "prefork":
        pytest.skip("httpd offers no HTTP/2 with prefork")
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    dice = framing_kit.random.Random(f"{SEED} {mpm} {field}")
    paths = [dice.choice(framing_kit.PATHS) for _ in range(STREAMS)]
    theirs, ours = (by_http2(server, base / f"h2-{server.name}-{FIELDS.index(field)}", paths, field) for server in servers)
    assert {found[:7] for found in theirs} == {b"HTTP/2 "}
    for path, one, other in zip(paths, theirs, ours):
        assert one == other, f"{path}: {len(one)} and {len(other)} bytes, {first_difference(one, other)}"
