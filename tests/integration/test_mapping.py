# SPDX-License-Identifier: Apache-2.0
"""A process that touches the missing part of a mapped file, cut meanwhile, is killed (SIGBUS).

mod_deflate touches all of a body in the child itself, and waits for a client that does not read on. So at each cut
most of the file is still to be touched.
"""

import itertools
import os
import socket
import struct
from pathlib import Path

import pytest

import procs
import tree
from fetch import get
from httpd import user_ids
from rawhttp import request
from test_hostile_daemon import FD, LOCAL, ONE_CHILD, FakeDaemon, answer, memfd, packed, right_reply, right_steps
from waiting import until_good, wait_for

pytestmark = pytest.mark.needs_flashpache

SIZE = 12_000_000
CONFIG = "SetOutputFilter DEFLATE\nDeflateCompressionLevel 1\nEnableMMAP On\nEnableSendfile Off\nFlashpacheTimeout 5\n"
STOCK = CONFIG.replace("FlashpacheTimeout 5\n", "")
DIED = "exit signal Bus error"


@pytest.fixture(scope="module")
def root(base):
    root = base / "mapping-tree"
    tree.put(root / "small.txt", "small\n")
    return root


def fill(path):
    path.write_bytes(os.urandom(SIZE))
    return path


def read_late(port, name, cut):
    """Begins to read a response, cuts the file, reads the rest; true if the body was whole."""
    with socket.socket() as conn:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        conn.settimeout(60)
        conn.connect(("127.0.0.1", port))
        conn.sendall(request("GET", name, Accept_Encoding="gzip"))
        data = conn.recv(2000)
        assert data.startswith(b"HTTP/1.1 200 ")
        cut()
        size = len(data)
        try:
            while data := conn.recv(65536):
                size += len(data)
        except ConnectionError:
            pass
        return size > SIZE


def is_well(server):
    wait_for(lambda: get(server.port, "/small.txt") == (200, b"small\n"), "an answer")


# Ways of a hostile daemon to pass a file that it can cut: (the descriptor, the metadata for it).

def of_memory(path):
    fd = memfd(os.urandom(SIZE), seals=0)
    return fd, packed(os.stat(path))


def of_memory_told(_path):
    fd = memfd(os.urandom(SIZE), seals=0)
    return fd, packed(os.fstat(fd))


def of_another_file(path):
    other = fill(path.parent.with_name("mapping-other.bin"))
    os.chown(other, *user_ids())
    return os.open(other, os.O_RDWR), packed(os.stat(other))


@pytest.mark.parametrize("mpm", ("event", "prefork"))
@pytest.mark.parametrize("make", (of_memory, of_memory_told, of_another_file))
def test_a_hostile_daemon_cuts_what_it_passed(lab, base, root, make, mpm):
    path = fill(root / "big.bin")
    fake = FakeDaemon(base / f"mapping-{make.__name__}-{mpm}.sock")
    opened = []

    def reply(conn, asked, number):
        if not asked.endswith("big.bin"):
            return right_reply(conn, asked, number)
        fd, told = make(path)
        opened.append(fd)
        steps = right_steps(asked)
        reader = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        steps[-1] = struct.pack(">HB", len(os.fsencode(asked)), 0) + told + bytes(8)
        conn_give(conn, answer(asked, number, FD | LOCAL, steps=steps), reader)
        return True

    fake.become(fake.greet, reply)
    server = lab.flash(f"mapping-{make.__name__}-{mpm}", root, base / f"mapping-{make.__name__}-{mpm}.sock",
                       mpm=mpm, config=CONFIG, limits=ONE_CHILD if mpm == "event" else "").start()
    try:
        read_late(server.port, "/big.bin", lambda: [os.ftruncate(fd, 0) for fd in opened])
        assert opened, "the daemon was asked"
        is_well(server)
        assert DIED not in server.error_text()
    finally:
        fake.end()
        for fd in opened:
            os.close(fd)


def conn_give(conn, packet, fd):
    socket.send_fds(conn, [packet], [fd])
    os.close(fd)


@pytest.mark.parametrize("owner", ("root", "apache"))
@pytest.mark.parametrize("mpm", ("event", "prefork"))
def test_a_cut_document_is_no_worse_than_with_stock(lab, root, mpm, owner):
    """The race that stock httpd has with EnableMMAP On. A child dies only if it is still reading the document."""
    path = root / f"cut-{mpm}-{owner}.bin"
    attempts = itertools.count()

    def deaths(start):
        server = start()
        fill(path)
        if owner == "apache":
            os.chown(path, *user_ids())
        whole = [read_late(server.port, "/" + path.name, lambda: None) for _ in range(2)]
        assert whole == [True, True]
        cut = read_late(server.port, "/" + path.name, lambda: os.truncate(path, 0))
        assert not cut
        is_well(server)
        died = server.error_text().count(DIED)
        server.stop()
        lab.started.remove(server)      # a child that died fails no other test
        return died

    def both():
        name = f"{mpm}-{owner}-{next(attempts)}"
        return (deaths(lambda: lab.stock(f"mapping-stock-{name}", root, mpm=mpm, config=STOCK).start()),
                deaths(lambda: lab.under_test(f"mapping-flash-{name}", root, mpm=mpm, config=CONFIG)))
    stock, flash = until_good(both, lambda made: made[1] <= made[0])
    assert flash <= stock


def test_documents_are_mapped(lab, root):
    """With a right daemon: without this the other tests here would show nothing."""
    path = fill(root / "mapped.bin")
    server = lab.under_test("mapping-mapped", root, mpm="prefork",
                            config=CONFIG.replace("SetOutputFilter DEFLATE\n", ""))

    def maps():
        return "".join(Path(f"/proc/{pid}/maps").read_text() for pid in procs.children(server.process.pid))

    def mapped():
        seen = []
        assert read_slowly(server.port, "/mapped.bin", lambda: seen.append(str(path) in maps()))
        return any(seen)
    wait_for(mapped, "a child with the document mapped")


def read_slowly(port, name, look):
    """As read_late(), without compression."""
    with socket.socket() as conn:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        conn.settimeout(60)
        conn.connect(("127.0.0.1", port))
        conn.sendall(request("GET", name))
        data = conn.recv(2000)
        look()
        size = len(data)
        while data := conn.recv(65536):
            size += len(data)
        return size > SIZE
