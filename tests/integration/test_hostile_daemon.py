# SPDX-License-Identifier: Apache-2.0
"""A false daemon at the socket misbehaves: httpd answers as it does without Flashpache."""

import contextlib
import fcntl
import os
import select
import socket
import struct
import time

import pytest

import procs
import reliability
import tree
import wire
from fetch import get
from httpd import HITS
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

# One child, so one connection: its descriptors are counted.
ONE_CHILD = ("StartServers 1\nServerLimit 1\nThreadsPerChild 25\nMaxRequestWorkers 25\n"
             "MinSpareThreads 1\nMaxSpareThreads 25\n")
FILES = {"small.txt": 900, "large.bin": 400_000}
ASKED = 2               # the child must have met the wrong answer this often
TIMEOUT_MS = 400
LATE_S = 0.6            # longer than the child's timeout
QUESTION = 23           # bytes of one up to its path
MARKS, EVENTS, ALIVE, ANSWERS, CONTENTS = 9, 10, 11, 13, 14
FD, LOCAL, CONTENT = 1, 2, 16
TABLE_MAGIC, SLOTS = 0x46505335, 16
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
ANSWERS_MAGIC, CONTENTS_MAGIC, RING = 0x46504136, 0x46504331, 65536


def memfd(content, seals=SEALS):
    fd = os.memfd_create("hostile", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, content)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def generations(slots=SLOTS, magic=TABLE_MAGIC, **options):
    """A lease table that is valid for ever."""
    return memfd(struct.pack("=IIQQQ", magic, slots, 2**63, 0, 0) + bytes(8 * slots), **options)


def ring(magic, buckets=0, data=None, size=RING, tail=RING, **options):
    """A head, an index without a word, zeros."""
    data = 128 + 64 * buckets if data is None else data
    head = struct.pack("=IIQQ", magic, buckets, data, size).ljust(64, b"\0") + struct.pack("=Q", tail)
    return memfd(head.ljust(128 + 64 * buckets + RING, b"\0"), **options)


def answers(magic=ANSWERS_MAGIC, buckets=8, **options):
    return ring(magic, buckets, **options)


def contents(magic=CONTENTS_MAGIC, **options):
    return ring(magic, **options)


def meta(path):
    return packed(os.lstat(path))


def packed(st):
    times = b"".join(struct.pack(">qI", ns // 10**9, ns % 10**9)
                     for ns in (st.st_atime_ns, st.st_mtime_ns, st.st_ctime_ns))
    return struct.pack(">IIIQQQQQ", st.st_mode, st.st_uid, st.st_gid, st.st_dev, st.st_ino, st.st_nlink,
                       st.st_size, st.st_blocks) + times + struct.pack(">I", st.st_blksize)


def right_steps(path):
    """The daemon's right steps, without access files and leases."""
    steps, ends = [], [1] + [i for i, c in enumerate(path) if c == "/" and i] + [len(path)]
    for end in ends:
        try:
            steps.append(struct.pack(">HB", end, 0) + meta(path[:end]) + bytes(8))
        except FileNotFoundError:
            return [*steps, struct.pack(">HB", end, 1) + bytes(8)]
    return steps


def answer(path, number, flags=0, steps=None, kind=wire.ANSWER, place=b""):
    steps = right_steps(path) if steps is None else steps
    return wire.frame(kind, bytes([0, 1, flags, 0, len(steps)]) + b"".join(steps) + place, number)


class FakeDaemon(wire.Listener):
    """greet and reply define its behaviour; asked counts its wrong answers."""

    def __init__(self, path):
        self.greet, self.reply, self.asked = right_greeting, right_reply, 0
        self.connections = []
        super().__init__(path)

    def begin(self, conn):
        self.connections.append(conn)
        super().begin(conn)

    def serve(self, conn):
        with conn, contextlib.suppress(OSError):
            conn.recv(100)
            self.asked += self.greet is not right_greeting
            self.greet(conn)
            while packet := conn.recv(65536):
                if len(packet) < QUESTION:
                    continue
                number, length = struct.unpack(">8xQ5xH", packet[:QUESTION])
                path = os.fsdecode(packet[QUESTION:QUESTION + length])
                self.asked += self.reply(conn, path, number) or self.greet is not right_greeting

    def become(self, greet, reply):
        """For all connections from now on."""
        self.greet, self.reply, self.asked = greet, reply, 0
        for conn in self.connections:
            with contextlib.suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)
        self.connections.clear()

    def end(self):
        self.become(lambda conn: None, lambda conn, path, number: False)
        super().end()


def event_set():
    """An epoll set in which nothing is ready."""
    with select.epoll() as empty:
        return os.dup(empty.fileno())


def greeting(first=generations, second=lambda: memfd(bytes(SLOTS)), third=event_set, fourth=event_set,
             fifth=answers, sixth=contents, between=()):
    def greet(conn):
        wire.give(conn, wire.welcome(), *filter(None, [first()]))
        for packet in between:
            conn.send(packet)
        wire.give(conn, wire.frame(MARKS), *filter(None, [second()]))
        wire.give(conn, wire.frame(EVENTS), *filter(None, [third()]))
        wire.give(conn, wire.frame(ALIVE), *filter(None, [fourth()]))
        wire.give(conn, wire.frame(ANSWERS), *filter(None, [fifth()]))
        wire.give(conn, wire.frame(CONTENTS), *filter(None, [sixth()]))
    return greet


right_greeting = greeting()


def right_reply(conn, path, number):
    opened = []
    if os.path.isfile(path):
        opened.append(os.open(path, os.O_RDONLY))
    wire.give(conn, answer(path, number, (FD | LOCAL) if opened else 0), *opened)
    return False


# Wrong answers. Each returns whether it was about a file, and so was wrong.

def with_descriptor(*open_them, flags=FD | LOCAL):
    """The right metadata, with another file as the descriptor."""
    def reply(conn, path, number):
        if not os.path.isfile(path):
            return right_reply(conn, path, number)
        wire.give(conn, answer(path, number, flags), *(open_it(path) for open_it in open_them))
        return True
    return reply


def with_packets(*make):
    def reply(conn, path, number):
        for packet in make:
            conn.send(packet(path, number))
        return True
    return reply


def closes(conn, _path, _number):
    conn.close()
    return True


def says_nothing(_conn, _path, _number):
    return True


def says_it_late(conn, path, number):
    time.sleep(LATE_S)
    with contextlib.suppress(OSError):      # no client waits for it any more
        right_reply(conn, path, number)
    return True


def pipe_end(_path=None):
    one, other = os.pipe()
    os.close(other)
    return one


def socket_end(_path):
    one, other = socket.socketpair()
    other.close()
    return one.detach()


def opened(flags, name=None):
    return lambda path: os.open(name or path, flags)


def with_content(place, *open_them, flags=LOCAL | CONTENT):
    """A place of the file's content that holds zeros, or nothing."""
    def reply(conn, path, number):
        if not os.path.isfile(path):
            return right_reply(conn, path, number)
        wire.give(conn, answer(path, number, flags, place=struct.pack(">Q", place)),
                  *(open_it(path) for open_it in open_them))
        return True
    return reply


def directory_of(path):
    return os.open(os.path.dirname(path), os.O_RDONLY)


def huge_step(_path, number):
    steps = [struct.pack(">HB", 65535, 0) + bytes(92 + 8)] * 64
    return answer("/", number, steps=steps)


ALL_FLAGS = FD | LOCAL | CONTENT
WRONG_REPLIES = {
    "garbage": with_packets(lambda _p, _n: os.urandom(300)),
    "another id": with_packets(lambda p, n: answer(p, n + 1)),
    "another type": with_packets(lambda p, n: answer(p, n, kind=wire.DONE)),
    "a truncated answer": with_packets(lambda p, n: answer(p, n)[:-5]),
    "an oversized answer": with_packets(lambda _p, n: wire.frame(wire.ANSWER, bytes(70000), n)),
    "steps that do not fit": with_packets(huge_step),
    "reserved flags": with_packets(lambda p, n: answer(p, n, flags=64)),
    "more answers than questions": with_packets(*[answer] * 5),
    "no descriptor": with_descriptor(),
    "an unexpected descriptor": with_descriptor(opened(os.O_RDONLY), flags=0),
    "two descriptors": with_descriptor(*[opened(os.O_RDONLY)] * 2),
    "40 descriptors": with_descriptor(*[opened(os.O_RDONLY)] * 40),
    "a directory": with_descriptor(directory_of),
    "a FIFO": with_descriptor(pipe_end),
    "a socket": with_descriptor(socket_end),
    "a device": with_descriptor(opened(os.O_RDWR, "/dev/null")),
    "a file opened for writing": with_descriptor(opened(os.O_WRONLY)),
    "a file that is not open": with_descriptor(opened(os.O_PATH)),
    "a content without a place": with_descriptor(flags=LOCAL | CONTENT),
    "a content that was overwritten": with_content(RING - 1),
    "a content behind the end": with_content(2 * RING - 1),
    "a content at the last place of all": with_content(2**64 - 1),
    "a content that is not local": with_content(RING, flags=CONTENT),
    "a content with a descriptor": with_content(RING, opened(os.O_RDONLY), flags=ALL_FLAGS),
    "a descriptor as content": with_descriptor(opened(os.O_RDONLY), flags=ALL_FLAGS),
    "the end of the connection": closes,
}
WRONG_GREETINGS = {
    "garbage": lambda conn: conn.send(os.urandom(60)),
    "nothing": lambda conn: conn.close(),
    "no table": greeting(first=lambda: None),
    "no marks": greeting(second=lambda: None),
    "no events": greeting(third=lambda: None),
    "events that are a pipe": greeting(third=pipe_end),
    "no pipe": greeting(fourth=lambda: None),
    "no answers": greeting(fifth=lambda: None),
    "no contents": greeting(sixth=lambda: None),
    "an answer before the marks": greeting(between=[wire.frame(wire.ANSWER, bytes(5))]),
    "another version": lambda conn: wire.give(conn, wire.welcome(77), generations()),
}
# Without a table there are no leases, and no other harm.
WRONG_TABLES = {
    "not sealed": greeting(first=lambda: generations(seals=0)),
    "too small": greeting(first=lambda: generations(slots=2)),
    "empty": greeting(first=lambda: memfd(b""), second=lambda: memfd(b"")),
    "of another layout": greeting(first=lambda: generations(magic=1)),
    "marks that are not sealed": greeting(second=lambda: memfd(bytes(SLOTS), seals=0)),
    "a directory": greeting(first=lambda: os.open("/", os.O_RDONLY)),
    "a pipe": greeting(second=pipe_end),
    "answers that are not sealed": greeting(fifth=lambda: answers(seals=0)),
    "answers of another layout": greeting(fifth=lambda: answers(magic=1)),
    "answers with a ring that lies outside": greeting(fifth=lambda: answers(size=RING + 16)),
    "answers with an index over the ring": greeting(fifth=lambda: answers(data=128)),
    "answers with three buckets": greeting(fifth=lambda: answers(buckets=3)),
    "answers that are a pipe": greeting(fifth=pipe_end),
    "contents that are not sealed": greeting(sixth=lambda: contents(seals=0)),
    "contents that lie outside": greeting(sixth=lambda: contents(data=2**63)),
    "contents that are a directory": greeting(sixth=lambda: os.open("/", os.O_RDONLY)),
}
CASES = {**{("answers", k): (right_greeting, v) for k, v in WRONG_REPLIES.items()},
         **{("greetings", k): (v, right_reply) for k, v in WRONG_GREETINGS.items()},
         **{("tables", k): (v, right_reply) for k, v in WRONG_TABLES.items()}}


class Totals:
    """The sums of all cases of a kind."""

    def __init__(self):
        self.rows = {}

    def add(self, kind, requests, failed, wrong):
        row = self.rows.setdefault(kind, reliability.Row("hostile daemon", f"wrong {kind}", 0))
        row.requests += requests
        row.failed += failed
        row.wrong += wrong
        row.note = f"{int(row.note.split()[0]) + 1 if row.note else 1} kinds"


@pytest.fixture(scope="module")
def totals():
    made = Totals()
    yield made
    for row in made.rows.values():
        reliability.tell(row)


@pytest.fixture(scope="module")
def root(base):
    root = base / "hostile-daemon-tree"
    tree.hot_files(root, FILES)
    return root


@pytest.fixture(scope="module")
def fake(base):
    made = FakeDaemon(base / "hostile.sock")
    yield made
    made.end()


@pytest.fixture(scope="module")
def server(lab, root, base, fake):
    return lab.flash("hostile-daemon-httpd", root, base / "hostile.sock", mpm="event", limits=ONE_CHILD,
                     config=f"FlashpacheTimeout {TIMEOUT_MS}ms\nAcceptPathInfo On\n").start()


def as_stock(server):
    """(requests, failed, wrong) of a small file, a large one, and an absent one."""
    failed = wrong = 0
    for name, size in FILES.items():
        status, body = get(server.port, "/" + name)
        failed += status != 200
        wrong += status == 200 and body != tree.content(name, size)
    failed += get(server.port, "/missing")[0] != 404
    return len(FILES) + 1, failed, wrong


def asked_until(server, met):
    """As as_stock, over and over: a child that gave the daemon up leaves it alone for a while."""
    counts = [0, 0, 0]

    def ask():
        counts[:] = map(sum, zip(counts, as_stock(server)))
        return met()
    wait_for(ask, "the child to meet it")
    return counts


def child_fds(server):
    return procs.fd_count(procs.children(server.process.pid)[0])


def until_trusted(server, fake):
    """With a right daemon the child asks again, and uses the answers."""
    fake.become(right_greeting, right_reply)

    def trusted():
        mark = server.mark()
        get(server.port, "/small.txt")
        return server.wait_entries(1, mark)[-1].note in HITS
    wait_for(trusted, "a hit")


@pytest.mark.parametrize("case", CASES, ids=": ".join)
def test_hostile_daemon(server, fake, totals, case):
    until_trusted(server, fake)
    before = child_fds(server)
    fake.become(*CASES[case])
    requests, failed, wrong = asked_until(server, lambda: fake.asked >= ASKED)
    totals.add(case[0], requests, failed, wrong)
    assert (failed, wrong) == (0, 0)
    # One connection that is kept, at most.
    wait_for(lambda: child_fds(server) <= before + 1, "the descriptors that came to be closed")


def test_no_file_in_front_of_path_info(server, fake, root):
    """The second answer, about the file itself, has as many steps and names no file."""
    whole = f"{root}/small.txt"

    def reply(conn, path, number):
        if not path.startswith(whole):
            return right_reply(conn, path, number)
        steps = right_steps(whole)
        if path == whole:
            end, = struct.unpack(">H", steps[1][:2])
            steps[1] = struct.pack(">H", end + 1) + steps[1][2:]
            steps[-1] = struct.pack(">HB", len(whole), 1) + bytes(8)
        conn.send(answer(path, number, steps=steps))
        return path == whole
    until_trusted(server, fake)
    fake.become(right_greeting, reply)
    answers = set()

    def met():
        answers.add(get(server.port, "/small.txt/info"))
        return fake.asked >= ASKED
    wait_for(met, "the child to meet it")
    assert answers == {(200, tree.content("small.txt", FILES["small.txt"]))}


@pytest.mark.parametrize("case,reply", [("no answer at all", says_nothing), ("answers that come late", says_it_late)])
def test_daemon_that_is_slow(server, fake, outcome, case, reply):
    """One wait, then the child leaves the daemon alone for a while."""
    until_trusted(server, fake)
    fake.become(right_greeting, reply)
    requests, failed, wrong = asked_until(server, lambda: fake.asked >= 1)
    more = [as_stock(server) for _ in range(5)]
    requests, failed, wrong = map(sum, zip((requests, failed, wrong), *more))
    outcome("hostile daemon", case, requests=requests, failed=failed, wrong=wrong)
    assert (failed, wrong) == (0, 0)
