# SPDX-License-Identifier: Apache-2.0
"""No response shows whether Flashpache served it.

A stock httpd and one with Flashpache get the same bytes, both real, with the same configuration and files.
Status line, headers (as a multiset, Date aside), body and access-log fields must be equal, on the first request for
a file and later.
"""

import socket
import subprocess

import pytest

import filesystems
import network_mounts
import parity_cases
import parity_config
import rawhttp
import tree
from forms import full_where, never_where
from httpd import HITS
from who_kit import until_note

WARM_PASSES = 2
CASES = parity_cases.every_case()
# In the normal form the other MPMs get one in EVERY of event's cases.
EVERY = 8
SOME = {case.name for case in CASES[::EVERY]} | {name for name, _, _ in parity_cases.HTTP2[::EVERY]}
HTTP2_MPMS = ("worker", "event")        # mod_http2 does not serve under prefork


@pytest.fixture(scope="module", params=filesystems.GIVEN or None)
def roots(base, request):
    kind = getattr(request, "param", "disk")
    if kind in network_mounts.WITHOUT_MODES:
        pytest.skip(f"needs a file system with owners, modes and links: {kind} has none")
    below = base / f"on-{kind}"
    below.mkdir()
    with filesystems.directory(kind, below, lambda *args: request.getfixturevalue("slow_directory")(*args)) as at:
        yield tree.parity_tree(at / "parity-tree")


@pytest.fixture(scope="module")
def servers(lab, roots, certificate, mpm):
    """(stock, with Flashpache)"""
    www, outside = roots
    where = f"{mpm}-{www.parents[1].name}"
    options = dict(mpm=mpm, config=parity_config.main(www, outside),
                   vhosts=parity_config.vhosts(www, outside), tls=certificate,
                   http2=mpm in HTTP2_MPMS, extra_modules=parity_config.MODULES)
    stock = lab.stock(f"stock-{where}", www, **options).start()
    flash = lab.under_test(f"flash-{where}", www, admission=2, **options)
    yield stock, flash
    lab.end()


def ask(server, case):
    """(normalised responses, access-log fields) of one case."""
    mark = server.mark()
    port = server.tls_port if case.tls else server.port
    try:
        data = rawhttp.exchange(port, case.data, case.tls)
    except socket.timeout:
        return "no answer: the server hangs", None
    responses = rawhttp.parse(data, case.methods)
    return [rawhttp.normalised(r) for r in responses], logged(server, case, mark, responses)


def logged(server, case, mark, responses):
    """The access log's entry, without the note."""
    if not case.log:
        return None
    final = sum(1 for r in responses if r.status is None or r.status >= 200)
    entries = server.wait_entries(final, mark, case.name)
    # A random boundary's length is part of the size.
    multipart = any("boundary=" in (r.get("content-type") or "") for r in responses)
    return sorted((e.status, None if multipart else e.size, e.method, e.url, e.filename, e.protocol) for e in entries)


def difference(stock, ours):
    """The first difference in words, bodies shortened."""
    if isinstance(stock, str) or isinstance(ours, str) or len(stock) != len(ours):
        return f"stock: {str(stock)[:1500]}\nours:  {str(ours)[:1500]}"
    lines = []
    for i, (a, b) in enumerate(zip(stock, ours)):
        for what, x, y in zip(("status line", "headers", "body"), a, b):
            if x != y and what == "headers":
                lines.append(f"response {i} headers: only stock {[h for h in x if h not in y]}, "
                             f"only ours {[h for h in y if h not in x]} (or another count)")
            elif x != y:
                lines.append(f"response {i} {what} ({len(x)}/{len(y)}):\n"
                             f"stock: {x[:400]!r}\nours:  {y[:400]!r}")
    return "\n".join(lines)


def compare(servers, case):
    stock, flash = servers
    expected, expected_log = ask(stock, case)
    if case.expect is not None:
        status = rawhttp.Response(expected[0][0]).status
        assert status == case.expect, f"the test itself: stock answers {expected[0]}"
    for number in range(1 + WARM_PASSES):
        when = "cold" if number == 0 else f"warm, pass {number}"
        ours, our_log = ask(flash, case)
        assert ours == expected, (f"{case.name} ({when}) differs from stock\n"
                                  f"request: {case.data[:600]!r}\n{difference(expected, ours)}")
        assert our_log == expected_log, (f"{case.name} ({when}): access log differs\n"
                                         f"stock: {expected_log}\nours:  {our_log}")


@full_where(lambda values: values["mpm"] != "event" and values["case"].name not in SOME)
@pytest.mark.parametrize("case", CASES, ids=lambda c: ascii(c.name)[1:70])
def test_same_as_stock(servers, case):
    compare(servers, case)


# curl's exit status
PARTIAL_FILE = 18
STREAM_ERROR = 92
TRIES = 30


def curl(server, path, *arguments, tls):
    """The response through curl with HTTP/2.

    Stock mod_http2 (2.4.71) itself cuts about one in 200 responses of mod_include short on h2c. On a busy machine
    it resets up to half of the streams whose request body it did not read before it answered. Only those are asked
    for again.
    """
    expected = {PARTIAL_FILE} if path.endswith(".shtml") else {STREAM_ERROR} if "-d" in arguments else set()
    for _ in range(TRIES):
        done = run_curl(server, path, *arguments, tls=tls)
        if done.returncode not in expected:
            break
    assert done.returncode == 0, (done.returncode, done.stderr, path)
    assert done.stdout.startswith(b"HTTP/2 "), done.stdout[:200]
    method = "HEAD" if "-I" in arguments else "GET"
    return [rawhttp.normalised(r) for r in rawhttp.parse(done.stdout, [method])]


def run_curl(server, path, *arguments, tls):
    port = server.tls_port if tls else server.h2c_port
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}{path}"
    version = "--http2" if tls else "--http2-prior-knowledge"
    return subprocess.run(["curl", "-sk", "-m", "20", "--path-as-is", "--noproxy", "*", version, "-D",
                           "-", "-H", f"Host: {rawhttp.HOST}", *arguments, url], capture_output=True)


@never_where(lambda values: values["mpm"] not in HTTP2_MPMS)
@full_where(lambda values: values["mpm"] != "event" and values["name"] not in SOME)
@pytest.mark.parametrize("tls", (True, False), ids=("h2", "h2c"))
@pytest.mark.parametrize("name,path,arguments", parity_cases.HTTP2, ids=[c[0] for c in parity_cases.HTTP2])
def test_http2_same_as_stock(servers, name, path, arguments, tls):
    stock, flash = servers
    expected = curl(stock, path, *arguments, tls=tls)
    for number in range(1 + WARM_PASSES):
        ours = curl(flash, path, *arguments, tls=tls)
        assert ours == expected, f"{name} (request {number}) differs\n{difference(expected, ours)}"


@full_where(lambda values: values["mpm"] != "event")
@pytest.mark.needs_flashpache
def test_fifo_is_not_opened(servers, roots):
    """Stock may hang an httpd worker on a FIFO; where it does not, the answers are equal.

    Where it does, ours must give core's response for anything that is neither a file nor a directory: 403.
    """
    stock, flash = servers
    data = rawhttp.request("GET", "/perm/fifo")
    try:
        expected = rawhttp.parse(rawhttp.exchange(stock.port, data, timeout=3), ["GET"])
    except socket.timeout:
        expected = None
    finally:
        tree.release(roots[0] / "perm/fifo")
    try:
        ours = rawhttp.parse(rawhttp.exchange(flash.port, data), ["GET"])
    except socket.timeout:
        pytest.fail("httpd with Flashpache hangs in open() on a FIFO", pytrace=False)
    finally:
        tree.release(roots[0] / "perm/fifo")
    if expected is None:
        assert [r.status for r in ours] == [403]
    else:
        assert [rawhttp.normalised(r) for r in ours] == [rawhttp.normalised(r) for r in expected]


@full_where(lambda values: values["mpm"] != "event")
def test_big_file_in_full(servers):
    """More than 2 GiB arrive, and no byte more than Content-Length says."""
    _, flash = servers
    with socket.create_connection(("127.0.0.1", flash.port), 60) as conn:
        conn.sendall(rawhttp.request("GET", "/big.bin"))
        head = b""
        while b"\r\n\r\n" not in head:
            head += conn.recv(65536)
        head, _, rest = head.partition(b"\r\n\r\n")
        assert f"Content-Length: {tree.BIG_SIZE}".encode() in head
        count, buffer = len(rest), bytearray(1 << 20)
        while length := conn.recv_into(buffer):
            count += length
    assert count == tree.BIG_SIZE


@pytest.mark.needs_flashpache
def test_the_comparison_met_hits(servers):
    """The comparison would prove nothing if stock's code had served everything."""
    _, flash = servers
    notes = {}
    for entry in flash.entries():
        notes[entry.note] = notes.get(entry.note, 0) + 1
    print(f"notes: {notes}")
    for path in (parity_cases.PLAIN, "/large.bin", "/a/b/c/d/e/f/deep.txt", "/links/follow/same"):
        until_note(flash, path, HITS)
