# SPDX-License-Identifier: Apache-2.0
"""The files that a child opens or keeps leave the descriptors that httpd needs for connections. Without one, httpd cannot
accept a connection, and ends. And a file that is cut while it is sent ends the connection."""

import os
import socket
import ssl

import pytest

import tree
from quick import Quick
from rawhttp import exchange, request
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

LIMIT = 512                 # descriptors of each process
LARGE = "x" * 20_000        # above content_file_max: it is kept by a descriptor
CONNECTIONS = 400           # idle
THREADS = 16
TESTS = 2000
LIMITS = (f"StartServers 1\nServerLimit 1\nThreadLimit {THREADS}\nThreadsPerChild {THREADS}\nMinSpareThreads 1\n"
          f"MaxSpareThreads {THREADS}\nMaxRequestWorkers {THREADS}\nAsyncRequestWorkerFactor 40\n")


def one_child(lab, name, root):
    return lab.under_test(name, root, mpm="event", limits=LIMITS, config=f"<Directory {root}>\nAllowOverride All\n</Directory>\n",
                          around=["prlimit", f"--nofile={LIMIT}:{LIMIT}"])


def descriptors(server):
    return max(len(os.listdir(f"/proc/{pid}/fd")) for pid in server.pids() if pid != server.process.pid)


def test_kept_files_give_way_to_connections(lab, base):
    root = base / "connections"
    for number in range(300):
        tree.put(root / f"{number}.bin", LARGE)
    tree.put(root / "index.html", "front\n")
    server = one_child(lab, "connections", root)
    client = Quick(server.port)

    def are_kept():
        assert {client.ask(f"/{number}.bin").status for number in range(300)} == {200}
        return descriptors(server) > LIMIT / 5
    wait_for(are_kept, "files that are kept open")
    pids = server.pids()
    idle = [Quick(server.port) for _ in range(CONNECTIONS)]
    assert {each.ask("/index.html").status for each in idle} == {200}
    assert server.pids() == pids
    lab.end()


def test_tests_of_many_files_keep_few(lab, base):
    """A tenant's access file tests thousands of large files, while a client reads the page slowly."""
    root = base / "tests"
    tree.put(root / "t/large.bin", LARGE)
    for number in range(TESTS):
        os.link(root / "t/large.bin", root / f"t/{number}")
    tree.put(root / "t/page.bin", "z" * 9_000_000)
    tree.put(root / "t/.htaccess", "RewriteEngine On\n" + "".join(f"RewriteCond {root}/t/{number} -f\n" for number in range(TESTS))
             + "RewriteRule ^page.bin$ -\n")
    tree.put(root / "index.html", "front\n")
    server = one_child(lab, "tests", root)
    for _ in range(3):
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(60)
            slow.connect(("127.0.0.1", server.port))
            slow.sendall(request("GET", "/t/page.bin"))
            assert slow.recv(100)[9:12] == b"200"
            assert descriptors(server) < LIMIT / 2
            assert exchange(server.port, request("GET", "/"))[9:12] == b"200"
    lab.end()


# With event, files above 64 KB are APR's buckets, which stock's connection survives over TLS.
@pytest.mark.parametrize("mpm, encrypted", (("prefork", True), ("prefork", False), ("event", False)))
def test_cut_while_it_is_sent(lab, base, certificate, mpm, encrypted):
    root = base / f"cut-{mpm}-{encrypted}"
    tree.put(root / "large.bin", "l" * 12_000_000)
    tree.put(root / "next.txt", "the next response\n")
    server = lab.under_test(f"cut-{mpm}-{encrypted}", root, mpm=mpm, tls=certificate, config="EnableMMAP Off\nEnableSendfile Off\n")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect(("127.0.0.1", server.tls_port if encrypted else server.port))
    if encrypted:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = context.wrap_socket(client, server_hostname="localhost")
    client.sendall(request("GET", "/large.bin", close=False) + request("GET", "/next.txt", close=True))
    data = client.recv(2000)
    os.truncate(root / "large.bin", 1_000_000)
    while more := client.recv(65536):
        data += more
    client.close()
    assert len(data) < 12_000_000
    assert b"the next response" not in data
    lab.end()
