# SPDX-License-Identifier: Apache-2.0
"""Size-based scheduling: the priorities of sockets, by strace, and unchanged bodies."""

import os
import random
import re
import subprocess
import time
import zlib
from collections import Counter

import pytest

from fetch import bodycheck
from keepalive import Connection
from rawhttp import exchange, normalised, parse, request
from trace import Trace
from waiting import until_good, wait_for

pytestmark = pytest.mark.needs_flashpache

SIZES = [0, 1, 1024, 1025, 5000, 16384, 16385, 51200, 51201, 70000, 2_000_000]
PRIORITY = re.compile(r"setsockopt\(\d+<[^>]*>, SOL_SOCKET, SO_PRIORITY, \[(\d+)\]")
ONE_CHILD = "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 1\nMaxRequestWorkers 1\n"
# None is started later, which strace could miss.
CHILDREN = 16
FIXED = ONE_CHILD.replace(" 1\n", f" {CHILDREN}\n").replace(f"MinSpareServers {CHILDREN}", "MinSpareServers 1")
SERVERS = ("prefork", "event")
# Files by Flashpache, or by httpd itself with sendfile.
WAYS = {"flashpache": "", "stock": "FlashpacheEngine Off\nEnableSendfile On\n"}
SRPT = "FlashpacheSchedule SRPT\n"


@pytest.fixture(scope="module")
def root(base):
    directory = base / "schedule-root"
    directory.mkdir()
    for size in SIZES:
        pattern = bytes((i * 7 + size) % 251 for i in range(251))
        (directory / f"{size}.bin").write_bytes((pattern * (size // 251 + 1))[:size])
    (directory / "page.txt").write_text(random.Random(1).randbytes(200_000).hex())
    (directory / "script.cgi").write_text(
        "#!/bin/sh\ncat > /dev/null\nprintf 'Content-Type: text/plain\\nContent-Length: 60000\\n\\n'\n"
        "head -c 60000 /dev/zero\n")
    (directory / "script.cgi").chmod(0o755)
    for path in directory.iterdir():    # a file of this second has a weak entity tag
        os.utime(path, (1_600_000_000, 1_600_000_000))
    return directory


class Scheduled:
    """Makes servers of one test module, each once."""

    def __init__(self, lab, root, certificate):
        self.lab, self.root, self.certificate = lab, root, certificate
        self.made, self.count = {}, 0
        self.daemon = lab.daemon().start()

    def server(self, mpm, way="flashpache", schedule=SRPT, **options):
        key = (mpm, way, schedule, str(options))
        if key not in self.made:
            if mpm == "prefork":
                options.setdefault("limits", FIXED)
            options.setdefault("tls", self.certificate)
            options.setdefault("http2", mpm == "event")
            self.count += 1
            cgi = "cgi" if mpm == "prefork" else "cgid"
            self.made[key] = self.lab.flash(
                f"{mpm}{self.count}", self.root, self.daemon.socket, mpm=mpm,
                config=WAYS[way] + schedule + "ScriptSock cgid.sock\n" * (cgi == "cgid")
                + "SetEnv ap_trust_cgilike_cl 1\n"
                "<Files *.cgi>\nSetHandler cgi-script\nOptions +ExecCGI\n</Files>\n"
                "<Files page.txt>\nSetOutputFilter DEFLATE\n</Files>\n",
                extra_modules=[cgi], **options).start()
        return self.made[key]

    def stock(self, mpm):
        key = ("stock", mpm)
        if key not in self.made:
            self.made[key] = self.lab.stock(f"stock-{mpm}", self.root, mpm=mpm, tls=self.certificate,
                                            http2=mpm == "event").start()
        return self.made[key]


@pytest.fixture(scope="module")
def scheduled(lab, root, certificate):
    return Scheduled(lab, root, certificate)


def priorities(server, log, work):
    """The priorities that sockets got while work() ran, in order."""
    if server.limits == FIXED:
        wait_for(lambda: len(server.pids()) > CHILDREN, "all children")
    with Trace(server.pids(), log, "setsockopt") as trace:
        work()
    return [int(found.group(1)) for line in trace.lines() if (found := PRIORITY.search(line))]


def get(connection, path):
    answer = connection.get(path)
    assert answer.status == 200 and answer.complete
    return answer


# Bodies

REQUESTS = [("GET", f"/{size}.bin", {}) for size in SIZES] + [
    ("HEAD", "/70000.bin", {}),
    ("GET", "/70000.bin", {"Range": "bytes=100-60000"}),
    ("GET", "/70000.bin", {"Range": "bytes=0-20000,30000-65000"}),
    ("GET", "/70000.bin", {"If_None_Match": "*"}),
    ("GET", "/absent", {}),
]


@pytest.mark.parametrize("tls", (False, True), ids=("http", "https"))
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mpm", SERVERS)
def test_pipelined_responses_are_those_of_stock(scheduled, mpm, way, tls):
    data = b"".join(request(m, p, close=i == len(REQUESTS) - 1, **h)
                    for i, (m, p, h) in enumerate(REQUESTS))
    answers = []
    for server in (scheduled.server(mpm, way), scheduled.stock(mpm)):
        raw = exchange(server.tls_port if tls else server.port, data, tls=tls)
        answers.append([normalised(r) for r in parse(raw, [m for m, _, _ in REQUESTS])])
    assert len(answers[0]) == len(REQUESTS)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("mpm,option", [("prefork", None), ("event", None), ("event", "--http2")])
def test_bodies_under_load(scheduled, bodycheck_program, root, mpm, option):
    server = scheduled.server(mpm)
    paths = [f"{size}.bin" for size in SIZES if size]
    bodies, wrong, failed, complaints = bodycheck(
        bodycheck_program, server.url("/", tls=bool(option)), root, paths, 1500,
        *(["--insecure", option] if option else []), concurrency=8)
    assert (bodies, wrong, failed) == (1500, 0, 0), complaints


# Priorities

@pytest.mark.parametrize("mpm", SERVERS)
@pytest.mark.parametrize("size,priority", [(1024, 1), (1025, 2), (5000, 3), (16384, 4)])
def test_a_small_response_gets_one_priority_once(scheduled, base, mpm, size, priority):
    server = scheduled.server(mpm)
    connection = Connection(server.port)
    found = priorities(server, base / "trace", lambda: [get(connection, f"/{size}.bin") for _ in range(5)])
    connection.close()
    assert found == [priority]


def slowly(server, path, size):
    """Reads a body in pieces, so that the server has to wait for its socket again and again."""
    connection = Connection(server.port, receive_buffer=4096)
    connection.begin(path)
    _, _, body = connection.read_head()
    while len(body) < size:
        if len(body) > size - 150_000:
            time.sleep(0.002)
        part = connection.receive(4096)
        assert part, "the connection ended early"
        body += part
    connection.close()
    return bytes(body)


def falling(found):
    return sorted(set(found), reverse=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mpm", SERVERS)
def test_the_priority_rises_as_a_file_drains(scheduled, base, root, mpm, way):
    server = scheduled.server(mpm, way, SRPT + "SendBufferSize 4096\n")
    bodies = []
    # Bytes in the socket count, too: where the reader stalls near the end they may grow again.
    found = until_good(lambda: priorities(server, base / "trace", lambda: bodies.append(
                           slowly(server, "/2000000.bin", 2_000_000))), lambda found: found == falling(found))
    assert set(bodies) == {(root / "2000000.bin").read_bytes()}
    assert found[:3] == [6, 5, 4]
    assert found == falling(found)


@pytest.mark.parametrize("mpm", SERVERS)
def test_each_response_begins_anew(scheduled, base, mpm):
    server = scheduled.server(mpm)
    connection = Connection(server.port)

    def work():
        for name in ("1024.bin", "51201.bin", "1024.bin", "51200.bin", "5000.bin"):
            get(connection, f"/{name}")
            # The client acknowledges all of it before the next one begins.
            time.sleep(0.05)
    found = priorities(server, base / "trace", work)
    connection.close()
    assert found[:2] == [1, 6]
    assert 5 in found[2:] and found[-1] == 3


def test_a_length_that_is_known_from_elsewhere(scheduled, base):
    """CGI with Content-Length, and a range, which is shorter than its file."""
    server = scheduled.server("prefork")
    found = priorities(server, base / "trace",
                       lambda: exchange(server.port, request("GET", "/script.cgi")))
    assert found[0] == 6
    found = priorities(server, base / "trace", lambda: exchange(
        server.port, request("GET", "/2000000.bin", Range="bytes=0-3999")))
    assert found == [3]


def test_no_body_is_the_smallest_class(scheduled, base):
    server = scheduled.server("prefork")
    data = request("HEAD", "/2000000.bin", close=False) + request(
        "GET", "/2000000.bin", If_None_Match="*")
    assert priorities(server, base / "trace", lambda: exchange(server.port, data)) == [1]


def test_an_unknown_length_counts_what_was_sent(scheduled, base, root):
    server = scheduled.server("prefork")
    answers = []
    found = priorities(server, base / "trace", lambda: answers.extend(parse(exchange(
        server.port, request("GET", "/page.txt", Accept_Encoding="gzip")), ["GET"])))
    assert answers[0].get("transfer-encoding") == "chunked"
    assert zlib.decompress(answers[0].body, 31) == (root / "page.txt").read_bytes()
    assert found and found == sorted(found) and found[0] == 1


def test_a_request_with_a_body_begins_at_the_top(scheduled, base):
    server = scheduled.server("prefork")
    connection = Connection(server.port)

    def work():
        get(connection, "/5000.bin")
        connection.socket.sendall(request("POST", "/script.cgi", body=b"x" * 100, close=False))
        wait_for(lambda: len(connection.receive()) > 0, "the answer")
    found = priorities(server, base / "trace", work)
    connection.close()
    assert found[:3] == [3, 0, 6]


def test_http2_counts_all_that_a_connection_has_to_send(scheduled, base):
    server = scheduled.server("event")

    def fetch(*paths):
        urls = [f"https://localhost:{server.tls_port}{p}" for p in paths]
        done = subprocess.run(["curl", "-sk", "--http2", "-o", "/dev/null", urls[0],
                               *(a for u in urls[1:] for a in ("-o", "/dev/null", u))],
                              capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
    found = priorities(server, base / "trace", lambda: fetch("/2000000.bin", "/1024.bin"))
    assert 6 in found
    assert found[-1] < 6, "it never rose"
    assert 6 not in priorities(server, base / "trace", lambda: fetch("/1024.bin", "/5000.bin"))


@pytest.mark.parametrize("mpm", SERVERS)
def test_clients_that_leave_harm_nobody(scheduled, mpm):
    server = scheduled.server(mpm, "stock", SRPT + "SendBufferSize 4096\n")
    for _ in range(30):
        connection = Connection(server.port, receive_buffer=4096)
        connection.begin("/2000000.bin")
        connection.receive(100)
        connection.close()
    left = Connection(server.port, receive_buffer=4096)
    left.begin("/2000000.bin")
    left.receive(100)
    server.graceful()
    left.close()
    assert get(Connection(server.port), "/70000.bin").complete


# Off

def calls(server, log):
    """The number of each call by one child for a fixed number of requests on one connection."""
    connection = Connection(server.port)
    get(connection, "/70000.bin")
    # Not the parent, which looks after its children now and then.
    with Trace(server.pids()[1:], log, "all") as trace:
        for name in ("1024.bin", "70000.bin", "5000.bin"):
            get(connection, f"/{name}")
        connection.close()
        wait_for(lambda: "accept4(" in trace.log.read_text(), "the wait for the next connection")
    counted = Counter(m.group(1) for line in trace.lines() if (m := re.match(r"\d+ +(\w+)\(", line)))
    # A child that is quicker than its client reads in vain and waits.
    return {name: n for name, n in counted.items() if name not in ("read", "poll", "restart_syscall")}


@pytest.mark.not_sanitized("the sanitizer's calls are not ours")
def test_off_makes_no_call_more(scheduled, base, root, lab):
    off = scheduled.server("prefork", "stock", "FlashpacheSchedule Off\n", tls=None, limits=ONE_CHILD)
    plain = lab.stock("plain", root, mpm="prefork", limits=ONE_CHILD, config="EnableSendfile On\n").start()
    assert calls(off, base / "trace") == calls(plain, base / "trace")


def test_only_the_virtual_host_that_wants_it(scheduled, base, lab, root):
    server = lab.flash("hosts", root, scheduled.daemon.socket, mpm="prefork", limits=FIXED,
                       vhosts=[(["off.test"], ""), (["on.test"], SRPT)]).start()
    for host, expected in (("off.test", []), ("on.test", [3])):
        data = request("GET", "/5000.bin", host=host)
        assert priorities(server, base / "trace", lambda d=data: exchange(server.port, d)) == expected


# Configuration

@pytest.mark.parametrize("text,complaint", [
    ("FlashpacheSchedule FIFO", "give Off or SRPT"),
    ("FlashpachePriorities 1K 5", "give the smaller size first"),
    ("FlashpachePriorities 1K 1K", "give the smaller size first"),
    ("FlashpachePriorities 1G", "such as 500, 20K or 1M"),
    ("FlashpachePriorities", "give 1 to 6 sizes, not 0"),
    ("FlashpachePriorities 1 2 3 4 5 6 7", "give 1 to 6 sizes, not 7"),
])
def test_mistakes_are_told(lab, root, module_path, text, complaint):
    server = lab.stock(f"wrong{abs(hash(text))}", root, module=module_path, config=text + "\n")
    done = server.check()
    assert done.returncode != 0
    assert complaint in done.stderr + server.error_text()


# The module

def load(lab, name, root, names, module_path):
    """A stock server with `FlashpacheSchedule SRPT` and these modules of ours, in this order."""
    lines = [f"LoadModule {n}_module {module_path.with_name(f'mod_{n}.so')}\n" for n in names]
    return lab.stock(name, root, mpm="prefork", limits=FIXED, config="".join(lines) + SRPT)


@pytest.mark.parametrize("names", [("flashpache_srpt",), ("flashpache", "flashpache_srpt"),
                                   ("flashpache_srpt", "flashpache")], ids="-".join)
def test_loaded_alone_and_in_both_orders(lab, base, root, module_path, names):
    server = load(lab, "-".join(names), root, names, module_path)
    server.config += "FlashpacheEngine Off\n" * ("flashpache" in names)
    server.start()
    found = priorities(server, base / "trace", lambda: exchange(server.port, request("GET", "/5000.bin")))
    server.stop()
    assert found == [3]


def test_other_classes(scheduled, base):
    server = scheduled.server("prefork", "flashpache", SRPT + "FlashpachePriorities 2K 1M\n")
    found = [priorities(server, base / "trace", lambda n=n: exchange(server.port, request("GET", f"/{n}.bin")))
             for n in (1024, 5000)]
    assert found == [[1], [2]]
