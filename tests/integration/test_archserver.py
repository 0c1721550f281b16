# SPDX-License-Identifier: Apache-2.0
"""The lab's server with the papers' architectures: every body of every combination, what it refuses, its bounds."""

import array
import contextlib
import ctypes
import itertools
import mmap
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import procs
import tree
from conftest import built
from fetch import bodycheck
from forms import chosen, full, full_where, never_where
from ports import free_port
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

ARCHITECTURES = ("mp", "mt", "sped", "symped", "shared-symped", "amped", "new-flash", "pipeline")
SENDS = ("blocking-sendfile", "nonblocking-sendfile", "writev", "mmap")
CACHES = ("none", "fd", "content")
# In the usual tests each architecture, way of sending and cache is there at least twice.
SHORT = {("mp", "mmap", "none"), ("mp", "blocking-sendfile", "fd"), ("mt", "blocking-sendfile", "fd"),
         ("mt", "writev", "content"), ("sped", "nonblocking-sendfile", "fd"), ("sped", "writev", "none"),
         ("symped", "blocking-sendfile", "fd"), ("symped", "writev", "content"),
         ("shared-symped", "nonblocking-sendfile", "fd"), ("shared-symped", "writev", "fd"), ("amped", "mmap", "fd"),
         ("amped", "writev", "content"), ("new-flash", "nonblocking-sendfile", "fd"),
         ("new-flash", "nonblocking-sendfile", "none"), ("pipeline", "nonblocking-sendfile", "fd"),
         ("pipeline", "mmap", "none")}
# Around a page, what is sent at once, and what a cache keeps.
SIZES = (1, 100, 4095, 4096, 4097, 65536, (128 << 10) - 1, 128 << 10, (128 << 10) + 1, 300_000, 1 << 20)
BODIES = chosen(200, 5000)
CLIENTS = 64
# More than clients: libcurl keeps some connections for later, and mp and mt have a worker for each.
CONNECTIONS = 256
# Caches of fewer files than there are, so that files leave while they are sent.
ENTRIES = 6


def goes_together(named):
    """True if these options go together by the server's page (tests/lab/archserver/README.md)."""
    arch, send, cache = named["arch"], named["send"], named["cache"]
    if cache == "content" and send != "writev":
        return False
    return {"mp": True, "mt": True, "symped": True,
            "sped": send != "blocking-sendfile",
            "shared-symped": cache == "fd" and send != "mmap",
            "amped": send != "blocking-sendfile",
            "new-flash": send == "nonblocking-sendfile" and cache != "content",
            "pipeline": send != "blocking-sendfile"}[arch]


def command(*options):
    return [str(built("tests/lab/archserver/archserver")), *map(str, options)]


def run(*options):
    return subprocess.run(command(*options), capture_output=True, text=True, timeout=30)


@contextlib.contextmanager
def running(root, *options, connections=CONNECTIONS):
    """A server of these options: (its process, its port)."""
    port = free_port()
    process = subprocess.Popen(command("--root", root, "--port", port, "--connections", connections, *options),
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_for(lambda: answers(process, port), "archserver to answer")
        yield process, port
    finally:
        procs.end(process)
        process.stderr.close()


def answers(process, port):
    assert process.poll() is None, process.stderr.read()
    try:
        connection(port).close()
    except ConnectionRefusedError:
        return False
    return True


def connection(port):
    return socket.create_connection(("127.0.0.1", port), 20)


def reply(client, request):
    """The reply to this input until the server closes or is silent; the input is sent at once."""
    client.sendall(request)
    return client.recv(65536)


def until_closed(client):
    return b"".join(iter(lambda: client.recv(65536), b""))


@pytest.fixture(scope="module")
def files(base):
    root = base / "files"
    for size in SIZES:
        tree.put(root / f"dir/f{size}", tree.content(f"f{size}", size))
    os.mkfifo(root / "fifo")
    return root


TARGETS = [f"dir/f{size}" for size in SIZES] + ["dir:1:403", "fifo:1:403", "dir/nothing:1:404", "..%2fdir:1:403"]


def forget(files):
    """Takes the files out of the page cache, where the file system lets them go."""
    for path in (files / "dir").iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@full_where(lambda named: (named["arch"], named["send"], named["cache"]) not in SHORT)
@never_where(lambda named: not goes_together(named))
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("send", SENDS)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_bodies(files, bodycheck_program, arch, send, cache):
    forget(files)
    with running(files, "--arch", arch, "--send", send, "--cache", cache, "--cache-entries", ENTRIES) as (_, port):
        found = bodycheck(bodycheck_program, f"http://127.0.0.1:{port}", files, TARGETS, BODIES, "--renew", "7",
                          concurrency=CLIENTS)
    assert found[:3] == (BODIES, 0, 0), found


def test_what_does_not_go_together_is_refused(files):
    taken = set()
    for arch, send, cache in itertools.product(ARCHITECTURES, SENDS, CACHES):
        done = run("--arch", arch, "--send", send, "--cache", cache, "--root", files, "--port", 1, "--test")
        if goes_together({"arch": arch, "send": send, "cache": cache}):
            assert (done.returncode, done.stderr) == (0, "")
            taken.add(f"{arch} {send} {cache}")
        else:
            assert done.returncode == 1 and re.search(r"--(send|cache) \S+.*: .*(--list|add --send)", done.stderr), done
    assert set(run("--list").stdout.splitlines()) == taken


@pytest.mark.parametrize("options, message", [
    (("--arch", "seda"), "--arch seda: unknown"), (("--port", "0"), "--port 0: must be a whole number from 1"),
    (("--connections", "-1"), "--connections -1: must be"), (("more",), "argument more: unknown"),
    (("--cache-entries", "1000000", "--connections", "16384"), "descriptors may be needed"),
    ((), "needs --arch, --root and --port")])
def test_bad_options_are_refused(options, message):
    given = () if not options else ("--arch", "sped", "--root", "/", "--port", "1", "--test", *options)
    done = subprocess.run(["prlimit", "--nofile=4096:4096", *command(*given)], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and message in done.stderr, done


HOST = b"Host: x\r\n\r\n"
REQUESTS = [
    (b"HEAD /dir/f100 HTTP/1.1\r\n" + HOST, b"200 OK", b"Content-Length: 100", False),
    (b"GET /dir/../dir/f100 HTTP/1.1\r\n" + HOST, b"403 Forbidden", b"Connection: keep-alive", False),
    (b"GET /dir/%2e%2e/x HTTP/1.1\r\n" + HOST, b"403 Forbidden", b"Connection: keep-alive", False),
    (b"GET /dir HTTP/1.1\r\n" + HOST, b"403 Forbidden", b"Connection: keep-alive", False),
    (b"GET /dir/f100x HTTP/1.1\r\n" + HOST, b"404 Not Found", b"Connection: keep-alive", False),
    (b"GET http://x/dir/f%31?query HTTP/1.1\r\n" + HOST, b"200 OK", b"Content-Length: 1\r\n", False),
    (b"GET /dir/f1 HTTP/1.1\r\nConnection: close\r\n" + HOST, b"200 OK", b"Connection: close", True),
    (b"GET /dir/f1 HTTP/1.0\r\n\r\n", b"200 OK", b"Connection: close", True),
    (b"GET /dir/f1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"200 OK", b"Connection: keep-alive", False),
    (b"GET /dir/f1 HTTP/1.1\r\n\r\n", b"400 Bad Request", b"Connection: close", True),
    (b"GET /%00 HTTP/1.1\r\n" + HOST, b"400 Bad Request", b"Connection: close", True),
    (b"GET /%zz HTTP/1.1\r\n" + HOST, b"400 Bad Request", b"Connection: close", True),
    (b"GET /dir/f1 HTTP/1.1\r\nContent-Length: 3\r\n" + HOST, b"400 Bad Request", b"Connection: close", True),
    (b"nonsense\r\n\r\n", b"400 Bad Request", b"Connection: close", True),
    (b"POST / HTTP/1.1\r\n" + HOST, b"405 Method Not Allowed", b"Allow: GET, HEAD", True),
    (b"GET /" + b"x" * 2000 + b" HTTP/1.1\r\n" + HOST, b"414 URI Too Long", b"Connection: close", True),
    (b"GET / HTTP/1.1\r\nX: " + b"x" * 8192, b"431 Request Header Fields Too Large", b"Connection: close", True),
    (b"GET / HTTP/3.0\r\n" + HOST, b"505 HTTP Version Not Supported", b"Connection: close", True)]


@pytest.mark.parametrize("arch", ("mt", "sped"))
def test_requests(files, arch):
    """The code is the same in all architectures; where it waits is not, so of both kinds of waiting."""
    with running(files, "--arch", arch) as (_, port):
        for request, status, field, closes in REQUESTS:
            with connection(port) as client:
                head, _, body = reply(client, request).partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 " + status + b"\r\n") and field in head + b"\r\n", (request, head)
                length = int(re.search(rb"Content-Length: (\d+)", head).group(1))
                assert len(body) == (0 if request.startswith(b"HEAD") else length)
                if closes:
                    assert until_closed(client) == b""
                else:
                    assert reply(client, REQUESTS[0][0]).startswith(b"HTTP/1.1 200 OK"), request


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_several_requests_at_once_and_one_in_pieces(files, arch):
    names = [f"f{size}" for size in SIZES] * 2
    whole = b"".join(f"GET /dir/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for name in names[:-1])
    last = f"GET /dir/{names[-1]} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    with running(files, "--arch", arch) as (_, port), connection(port) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(whole)
        for byte in last:
            client.sendall(bytes([byte]))
        data = until_closed(client)
    for name in names:
        head, _, data = data.partition(b"\r\n\r\n")
        expected = (files / "dir" / name).read_bytes()
        assert head.startswith(b"HTTP/1.1 200 OK") and data.startswith(expected), name
        data = data[len(expected):]
    assert data == b""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_client_that_does_not_read_delays_nobody(files, arch):
    name, size, count = f"f{SIZES[-1]}", SIZES[-1], 12
    with running(files, "--arch", arch) as (_, port), socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(20)
        slow.connect(("127.0.0.1", port))
        slow.sendall(f"GET /dir/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * count)
        for _ in range(20):
            with connection(port) as client:
                client.sendall(b"GET /dir/f100 HTTP/1.1\r\nConnection: close\r\n" + HOST)
                assert until_closed(client).endswith(tree.content("f100", 100))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        slow.shutdown(socket.SHUT_WR)
        parts = until_closed(slow).split(b"HTTP/1.1 200 OK\r\n")
    assert parts[0] == b"" and len(parts) == count + 1
    assert all(part.partition(b"\r\n\r\n")[2] == tree.content(name, size) for part in parts[1:])


@pytest.mark.parametrize("arch", [arch if arch in ("mt", "sped") else full(arch) for arch in ARCHITECTURES])
def test_bounds_of_connections_and_silence(files, arch):
    """At the limit others wait; a silent client is dropped, and makes room."""
    with running(files, "--arch", arch, "--idle", 1, connections=4) as (_, port):
        silent = [connection(port) for _ in range(4)]
        with connection(port) as client:
            client.sendall(b"GET /dir/f100 HTTP/1.1\r\nConnection: close\r\n" + HOST)
            assert until_closed(client).endswith(tree.content("f100", 100))
        for one in silent:
            assert one.recv(1) == b""
            one.close()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_it_ends_when_told_and_when_a_process_dies(files, arch):
    for victim in ("itself", "a process"):
        with running(files, "--arch", arch, connections=8) as (process, port), connection(port):
            below = wait_for(lambda: procs.descendants(process.pid), "its processes")
            os.kill(process.pid if victim == "itself" else min(below), signal.SIGTERM)
            status = process.wait(15)
            assert not any(Path(f"/proc/{pid}").exists() for pid in below)
            if victim == "itself":
                assert (status, process.stderr.read()) == (0, "")
            else:
                assert status == 1 and f"of {arch} ended by itself" in process.stderr.read()


@pytest.mark.parametrize("arch, counts", (("sped", True), ("symped", True), ("amped", True), ("mt", False), ("pipeline", False)))
def test_turns_of_event_loops_are_counted(files, tmp_path, arch, counts):
    """Each of these requests needs a turn: the next one is sent when the one before was answered."""
    path = tmp_path / "turns"
    with running(files, "--arch", arch, "--turns", path) as (_, port), connection(port) as client:
        for _ in range(20):
            assert reply(client, b"GET /dir/f100 HTTP/1.1\r\n" + HOST).startswith(b"HTTP/1.1 200 OK")
        turns = array.array("Q", path.read_bytes())
    assert len(turns) == 1025 and turns[0] == 0 and (sum(turns) >= 20 if counts else sum(turns) == 0)


def test_a_file_of_turns_that_cannot_be_made_is_named(files):
    done = run("--arch", "sped", "--root", files, "--port", free_port(), "--turns", files / "nothing/turns")
    assert done.returncode == 1 and f"cannot count turns in {files}/nothing/turns: No such file" in done.stderr, done


def is_in_memory(path):
    """True if any page of it is in the page cache. Unlike a read, this look begins no reading ahead."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
        size = len(mapped)
        start = ctypes.c_char.from_buffer(mapped)
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        done = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), pages)
        del start
        assert done == 0, os.strerror(ctypes.get_errno())
    return any(page & 1 for page in pages)


def read_bytes(pid):
    return int(re.search(r"rchar: (\d+)", Path(f"/proc/{pid}/io").read_text()).group(1))


def opened(pid):
    return [path for path in procs.open_files(pid) if "/dir/f" in path]


@pytest.mark.parametrize("arch", ("amped", "new-flash"))
def test_helpers_read_only_what_is_not_in_memory(files, arch):
    name, size = f"f{SIZES[-1]}", SIZES[-1]
    path, content = files / "dir" / name, tree.content(name, size)
    try:
        wait_for(lambda: forget(files) or not is_in_memory(path), "the file to leave the memory", timeout=5)
    except TimeoutError:
        pytest.skip("this file system keeps files in memory that it is asked to forget")
    with running(files, "--arch", arch, "--workers", 1) as (process, port), connection(port) as client:
        helper, loop = sorted(wait_for(lambda: len(found := procs.descendants(process.pid)) == 2 and found, "both"))
        before = read_bytes(helper)
        client.sendall(f"GET /dir/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        data = b""
        while not data.endswith(content):
            data += client.recv(1 << 20)
        cold = read_bytes(helper)
        client.sendall(f"GET /dir/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert until_closed(client).endswith(content)
        warm = read_bytes(helper)
        assert opened(loop) == [str(path)]
        wait_for(lambda: opened(helper) == [], "the helper to close the file")
    # Of the rest, the kernel reads ahead.
    assert cold - before >= 128 << 10 and warm == cold
