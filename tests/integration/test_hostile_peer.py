# SPDX-License-Identifier: Apache-2.0
"""A peer that misbehaves, while httpds are under load: it harms only itself."""

import contextlib
import fcntl
import os
import pwd
import random
import resource
import select
import signal
import socket
import struct
import termios

import pytest

import procs
import tree
import wire
from fetch import Load, get
from httpd import HITS, user_ids
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

SIZES = {f"f{i}.bin": 200 + 1511 * i for i in range(40)}
MAX_CONNECTIONS = 300
IDLE = MAX_CONNECTIONS + 1000
DEEP = "/".join(["deep"] * 40)
SOME = 200          # requests before and after: the load goes on
NOT_READING = 10
HINTS = 20_000
RSS_KIB = 8192      # KiB; unread replies to a few peers need less


@pytest.fixture(scope="module")
def root(base):
    root = base / "hostile-peer-tree"
    tree.hot_files(root, SIZES)
    (root / DEEP).mkdir(parents=True)
    return root


@pytest.fixture(scope="module")
def daemon(lab):
    return lab.daemon(ttl_ms=60000, max_connections=MAX_CONNECTIONS).start()


@pytest.fixture(scope="module")
def server(lab, root, daemon):
    return lab.flash("hostile-peer-httpd", root, daemon.socket, mpm="event").start()


def send_all(conn, packets, fds=()):
    """The number that the daemon took before it ended the connection."""
    for number, packet in enumerate(packets):
        try:
            wire.send(conn, packet, fds)
        except OSError:         # ended, or larger than what the system sends
            return number
    return len(packets)


def all_refused(daemon, conversations, fds=()):
    """Each on a connection of its own; the daemon must end all of them."""
    for packets in conversations:
        with wire.connect(daemon.socket) as conn:
            send_all(conn, packets, fds)
            assert wire.is_closed_by_peer(conn), packets
    return len(conversations)


# The attacks: each returns its number of connections.

HELLO, LOOKUP, PURGE = wire.hello(), wire.whole_lookup("/etc/hosts"), wire.purge(wire.PATH, "/no/such")


def truncated(daemon, _root):
    """Every beginning of a frame."""
    return all_refused(daemon, [[HELLO[:n]] for n in range(1, len(HELLO))]
                       + [[HELLO, packet[:n]] for packet in (LOOKUP, PURGE) for n in range(1, len(packet))])


def oversized(daemon, _root):
    sizes = (wire.MAX_FRAME * 2 + 1, 65536, 150000)
    return all_refused(daemon, [before + [wire.frame(kind, b"/" * size)] for size in sizes
                                for kind in (wire.HELLO, wire.LOOKUP, wire.CONTROL) for before in ([], [HELLO])])


def byte_by_byte(daemon, _root):
    """A packet is a frame: there is nothing to wait for."""
    return all_refused(daemon, [[bytes([b]) for b in HELLO]] * 20 + [[HELLO, *(bytes([b]) for b in LOOKUP)]] * 20)


def repeated(daemon, _root):
    """A second greeting, and questions that do not wait for their answers."""
    used = all_refused(daemon, [[HELLO, HELLO]] * 10)
    for question in (LOOKUP, PURGE):
        for _ in range(10):
            with wire.connect(daemon.socket) as conn:
                send_all(conn, [HELLO] + [question] * 200)
                used += 1
    return used


def reordered(daemon, _root):
    """Questions first, and frames that only a daemon or a worker sends."""
    others = [wire.frame(kind, b"\0" * 60) for kind in (0, 2, 4, 5, 6, 8, 9, 255)]
    return all_refused(daemon, [[LOOKUP], [PURGE], [LOOKUP, HELLO], [PURGE, HELLO]]
                       + [before + [other] for other in others for before in ([], [HELLO])])


def held(daemon, below):
    """True if the daemon has anything open there."""
    return any(link.startswith(str(below)) for link in procs.open_files(daemon.pid))


def descriptors(daemon, root):
    """With right frames of all kinds; also a connection, passed through itself."""
    passed = root.with_name("passed")
    file = tree.put(passed / "file", b"nobody asked for it")
    used = 0
    with contextlib.ExitStack() as stack:
        opened = [os.open(name, flags) for name, flags in ((file, os.O_RDONLY), (file, os.O_RDWR), (file, os.O_PATH),
                                                           (passed, os.O_RDONLY), ("/dev/null", os.O_RDWR))]
        for fd in opened:
            stack.callback(os.close, fd)
        for count in (1, 2, 6, 253):
            for packets in ([HELLO], [HELLO, LOOKUP], [HELLO, PURGE]):
                conn = stack.enter_context(wire.connect(daemon.socket))
                send_all(conn, packets[:-1])
                if wire.sent_all(conn, packets[-1:], [*(opened * 51)[:count - 1], conn.fileno()]):
                    assert wire.is_closed_by_peer(conn), (count, packets)
                used += 1
        wait_for(lambda: not held(daemon, passed), "what was passed to be closed")
    return used


def mutated(daemon, _root):
    """Right frames with a few bits turned."""
    rubbish = random.Random(7)
    for _ in range(300):
        packet = bytearray(rubbish.choice((LOOKUP, PURGE, HELLO, wire.report(wire.STATS))))
        for _ in range(rubbish.randint(1, 4)):
            packet[rubbish.randrange(len(packet))] ^= 1 << rubbish.randrange(8)
        with wire.connect(daemon.socket) as conn:
            send_all(conn, [HELLO, bytes(packet)])
    return 300


def unread_bytes(conn):
    return struct.unpack("i", fcntl.ioctl(conn, termios.FIONREAD, b"\0" * 4))[0]


def is_hung_up(conn):
    poll = select.poll()
    poll.register(conn, 0)
    return bool(poll.poll(0))


def rss_kib(daemon):
    with open(f"/proc/{daemon.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def not_reading(daemon, root):
    """Questions without end, each after the last one's answer has come; no answer is read."""
    question = wire.whole_lookup(root / DEEP)
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(wire.greet(daemon.socket)) for _ in range(NOT_READING)]
        unread = dict.fromkeys(conns, -1)
        before = rss_kib(daemon)

        def all_dropped():
            for conn in conns:
                if unread_bytes(conn) > unread[conn] and not is_hung_up(conn):
                    unread[conn] = unread_bytes(conn)
                    send_all(conn, [question])
            assert rss_kib(daemon) < before + RSS_KIB
            return all(map(is_hung_up, conns))
        wait_for(all_dropped, "the daemon to drop them all")
    assert "does not read its answer" in daemon.log_text()
    return NOT_READING


def hints(daemon, root):
    """Hints without end of names that are absent, for which nobody waits: only spare workers walk for them. A question
    behind them has its answer."""
    before = daemon.counters()
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(wire.greet(daemon.socket)) for _ in range(NOT_READING)]
        for number in range(HINTS):
            conns[number % NOT_READING].sendall(wire.whole_lookup(root / f"none{number}", hint=True))
        for conn in conns:
            conn.sendall(wire.whole_lookup(root / "f1.bin"))
            assert wire.parse_answer(wire.receive(conn))[0] == 0
    after = daemon.counters()
    assert sum(after[key] - before[key] for key in ("hinted", "hints_dropped")) == HINTS
    return NOT_READING


def connect_idle(daemon):
    """A silent connection; None where the daemon, or its queue, has no room."""
    with contextlib.suppress(OSError):
        return wire.connect(daemon.socket)
    return None


def idle(daemon, _root):
    """A thousand above the limit: each replaces an idle one, and silent ones are dropped."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, IDLE + 500)), hard))
    before = daemon.counters()
    conns = [connect_idle(daemon) for _ in range(IDLE)]
    try:
        for conn in conns:
            assert conn is None or wire.is_closed_by_peer(conn)
    finally:
        for conn in filter(None, conns):
            conn.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    after = daemon.counters()
    assert after["accepted"] - before["accepted"] >= len(conns) - conns.count(None)
    # The others were dropped before there was need of their places: they said nothing for too long.
    assert after["displaced"] > before["displaced"]
    return IDLE


ATTACKS = {"truncated frames": truncated, "oversized frames": oversized, "one byte a packet": byte_by_byte,
           "repeated frames": repeated, "reordered frames": reordered,
           "descriptors where none belong": descriptors, "mutated frames": mutated,
           "answers that are never read": not_reading, "hints without end": hints, "idle connections over the limit": idle}


@pytest.mark.parametrize("case", ATTACKS)
def test_peer_harms_only_itself(case, daemon, server, root, bodycheck_program, outcome):
    get(server.port, "/f1.bin")
    before = daemon.fd_count()
    with Load(bodycheck_program, server.url(), root, list(SIZES)) as load:
        server.wait_entries(SOME, server.mark())
        mark = server.mark()
        connections = ATTACKS[case](daemon, root)
        during = server.entries(mark)
        server.wait_entries(SOME, server.mark())
        bodies, wrong, failed, complaints = load.end()
    without = sum(e.note == "fallback" for e in during)
    outcome("hostile peer", case, requests=bodies, failed=failed, wrong=wrong,
            note=f"{connections} connections; {without} of {len(during)} requests served without the daemon")
    assert (wrong, failed) == (0, 0), complaints
    # The httpds' own connections come and go; the daemon may also keep files open that the attack requested.
    wait_for(lambda: daemon.fd_count() <= before + server_connections(), "the attack's descriptors to be closed")


def server_connections():
    """As many as two children of 48 threads can have, and a few files."""
    return 2 * 48 + 4


@contextlib.contextmanager
def as_apache():
    uid, gid = user_ids()
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_root_is_not_locked_out(lab, root, flashpachectl):
    """A CGI may hold all connections with questions, and ask for more as soon as one is free."""
    daemon = lab.daemon("crowded", workers=1, max_connections=2, lookup_timeout_ms=60000).start()
    os.kill(wait_for(daemon.worker_pids, "the worker")[0], signal.SIGSTOP)
    with contextlib.ExitStack() as stack:
        with as_apache():
            for name in ("f1.bin", "f2.bin"):
                stack.enter_context(wire.greet(daemon.socket)).sendall(wire.whole_lookup(root / name))
        wait_for(lambda: sum(map(daemon.counters().get, ("misses", "joined"))) == 2, "both to be busy", timeout=15)
        refused_as_apache(daemon)
        for _ in range(4):
            assert flashpachectl("-s", daemon.socket, "status").returncode == 0
        own = [stack.enter_context(wire.greet(daemon.socket)) for _ in range(2)]
        refused_as_apache(daemon)
        for conn in own:
            assert wire.ask(conn, wire.report(wire.STATS)), "an idle connection of root's made room for another user's"
    assert "said nothing" not in daemon.log_text()


def refused_as_apache(daemon):
    with as_apache(), wire.connect(daemon.socket) as conn:
        assert wire.is_closed_by_peer(conn)


def test_slow_peers_that_are_right_are_served(daemon, server, root, bodycheck_program, outcome):
    """One frame now and then, on many connections: each gets its answer, and httpd all of its own."""
    with Load(bodycheck_program, server.url(), root, list(SIZES)) as load, contextlib.ExitStack() as stack:
        conns = []
        for _ in range(50):
            conns.append(stack.enter_context(wire.greet(daemon.socket)))
            server.wait_entries(1, server.mark())
        for conn in conns:
            conn.sendall(LOOKUP)
        server.wait_entries(SOME, server.mark())
        answers = [wire.parse_answer(wire.receive(conn))[0] for conn in conns]
        bodies, wrong, failed, complaints = load.end()
    assert answers == [0] * len(conns)
    outcome("hostile peer", "slow peers that are right", requests=bodies, failed=failed, wrong=wrong,
            note=f"{len(conns)} connections, all answered")
    assert (wrong, failed) == (0, 0), complaints


LIMIT = 2000                # the daemon's descriptors; the kernel counts those under way against it
USER = "nobody"             # no other test's daemon has it: the kernel counts for each user


@contextlib.contextmanager
def unread_descriptors(count):
    """A process of that user with so many descriptors under way that nobody receives."""
    ready, other = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(pwd.getpwnam(USER).pw_gid)
        os.setuid(pwd.getpwnam(USER).pw_uid)
        kept = []
        for at in range(0, count, 200):
            kept.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
            socket.send_fds(kept[-1][0], [b"x"], [ready] * 200)
        os.write(other, b"x")
        signal.pause()
    os.close(other)
    try:
        assert os.read(ready, 1) == b"x"
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready)


def test_unread_descriptors_of_the_same_user(lab, root, outcome):
    """The kernel lets the daemon pass none then. Its log says so, httpd serves alone, and recovers. So it is where the daemon
    starts at such a moment."""
    group = pwd.getpwnam(USER).pw_gid
    daemon = lab.daemon("unread-daemon", ttl_ms=60000, user=USER)
    daemon.around = ["prlimit", f"--nofile={LIMIT}:{LIMIT}"]
    os.chown(daemon.socket_dir, 0, group)
    daemon.start()
    server = lab.flash("unread-httpd", root, daemon.socket, mpm="event", config=f"User {USER}\nGroup #{group}\n").start()
    asked = failed = 0

    def ask():
        nonlocal asked, failed
        for name, size in SIZES.items():
            asked += 1
            failed += get(server.port, f"/{name}") != (200, tree.content(name, size))
    with unread_descriptors(LIMIT + 400):
        ask()
        wait_for(lambda: "FP0032" in daemon.log_text(), "the daemon to say why it passes nothing")
        daemon.stop()
        daemon.start()
        wait_for(lambda: "FP0022" in daemon.log_text() and "Too many references" in daemon.log_text(), "the daemon to say why it has no workers")
        ask()
    assert failed == 0

    def hit():
        mark = server.mark()
        get(server.port, "/f1.bin")
        return server.wait_entries(1, mark)[-1].note in HITS
    wait_for(hit, "a hit")
    outcome("hostile peer", "descriptors that nobody receives", requests=asked, failed=failed, wrong=0)
