# SPDX-License-Identifier: Apache-2.0
"""A daemon that writes anything into the table of answers: httpd answers as without Flashpache, and lives."""

import os
import random
import struct
import time

import pytest

import tree
from fetch import get
from shared_reader import ANSWERS_MAGIC, CONTENT, CONTENTS_MAGIC, DIR, HEAD, LEAF, LOCAL, READABLE, TICK_MS, siphash
from test_hostile_daemon import (FILES, ONE_CHILD, RING, SLOTS, TABLE_MAGIC, FakeDaemon, as_stock, greeting, memfd,
                                 right_reply, right_steps)

pytestmark = pytest.mark.needs_flashpache

BUCKETS, SLOT, GENERATION, AT = 8, 3, 1, RING      # AT: the first position of a ring from which nothing was dropped
MODE_AT, SIZE_AT, BLOCKS_AT, TIMES_AT = 3, 3 + 36, 3 + 44, 3 + 52       # in a step
RANDOM_TABLES = 12


def generations():
    """Each slot is valid for long; the heartbeat as well."""
    word = GENERATION << 32 | (time.monotonic_ns() // 10**6 // TICK_MS + 10**6) & 0xffffffff
    return memfd(struct.pack("=IIQQQ", TABLE_MAGIC, SLOTS, 2**63, 0, 0) + struct.pack("=Q", word) * SLOTS)


def step(path, end, slot=SLOT):
    return right_steps(path[:end])[-1][:-8] + struct.pack(">II", slot, GENERATION)


def ends_of(path):
    return [1] + [i for i, c in enumerate(path) if c == "/" and i] + [len(path)]


def leaf_body(path, flags, content_at=0, slot=SLOT, end=None):
    body = bytearray(step(path, len(path), slot))
    body[:2] = struct.pack(">H", len(path) if end is None else end)
    return struct.pack(">BBIIQ", flags, 0, SLOT, GENERATION, content_at) + body


def dir_body(path, ends=None):
    ends = ends_of(path) if ends is None else ends
    return bytes([0, 0, len(ends)]) + b"".join(step(path, end) for end in ends)


class Table:
    """The records of some paths, and their index."""

    def __init__(self):
        self.ring, self.words = bytearray(), [[] for _ in range(BUCKETS)]
        self.contents = bytearray(16)

    def put(self, kind, path, body, *, size=None, key_len=None, body_len=None, position=None):
        key = bytes([kind]) + os.fsencode(path)
        value = siphash(bytes(16), key)
        length = (32 + len(key) + len(body) + 15) // 16 * 16
        at = AT + len(self.ring) if position is None else position
        self.words[value % BUCKETS].append(value >> 48 << 48 | at // 16)
        self.ring += (struct.pack("=IIIIIIQ", length if size is None else size, len(key) if key_len is None else key_len,
                                  len(body) if body_len is None else body_len, 0, SLOT, GENERATION, value)
                      + key + body).ljust(length, b"\0")

    def content(self, data):
        at = AT + len(self.contents)
        self.contents += data.ljust((len(data) + 15) // 16 * 16, b"\0")
        return at

    def answers(self):
        index = b"".join(struct.pack("=8Q", *(words + [0] * 8)[:8]) for words in self.words)
        return self._area(ANSWERS_MAGIC, BUCKETS, index, self.ring)

    def content_area(self):
        return self._area(CONTENTS_MAGIC, 0, b"", self.contents)

    @staticmethod
    def _area(magic, buckets, index, ring):
        head = struct.pack("=IIQQ", magic, buckets, HEAD + len(index), RING).ljust(64, b"\0") + struct.pack("=Q", AT)
        return memfd(head.ljust(HEAD, b"\0") + index + bytes(ring).ljust(RING, b"\0"))


def right_leaf(table, path):
    name = os.path.basename(path)
    if name not in FILES:
        return leaf_body(path, 0)
    if name == "large.bin":
        return leaf_body(path, READABLE | LOCAL)
    return leaf_body(path, READABLE | LOCAL | CONTENT, table.content(tree.content(name, FILES[name])))


def table_of(root, leaf=right_leaf, directory=dir_body, **wrong):
    table = Table()
    for name in (*FILES, "missing"):
        table.put(LEAF, f"{root}/{name}", leaf(table, f"{root}/{name}"), **wrong)
    table.put(DIR, str(root), directory(str(root)))
    return table


def edited(place, data):
    """A leaf with some changed bytes in its step."""
    def leaf(table, path):
        body = bytearray(right_leaf(table, path))
        at = len(body) - len(step(path, len(path))) + place
        body[at:at + len(data)] = data
        return bytes(body)
    return leaf


def with_flags(flags, content_at=0):
    return lambda table, path: leaf_body(path, flags, content_at)


def noise(seed, most=400):
    made = random.Random(seed)
    return lambda *_: made.randbytes(made.randrange(most))


WRONG = {
    "a slot beyond the table": lambda root: table_of(root, lambda table, path: leaf_body(path, 0, slot=1 << 30)),
    "a content of 2^62 bytes": lambda root: table_of(root, edited(SIZE_AT, struct.pack(">Q", 1 << 62))),
    "a content of the ring's size and one": lambda root: table_of(root, edited(SIZE_AT, struct.pack(">Q", RING + 1))),
    "a content of a megabyte and one": lambda root: table_of(root, edited(SIZE_AT, struct.pack(">Q", 2**20 + 1))),
    "2^62 blocks": lambda root: table_of(root, edited(BLOCKS_AT, struct.pack(">Q", 1 << 62))),
    "times after the end of the world": lambda root: table_of(root, edited(TIMES_AT, struct.pack(">qI", 2**63 - 1, 0) * 3)),
    "times before its begin": lambda root: table_of(root, edited(TIMES_AT, struct.pack(">qI", -2**63, 0) * 3)),
    "a content far outside": lambda root: table_of(root, with_flags(READABLE | LOCAL | CONTENT, (1 << 64) - 1)),
    "a content that was overwritten": lambda root: table_of(root, with_flags(READABLE | LOCAL | CONTENT, 16)),
    "a file that is a FIFO": lambda root: table_of(root, edited(MODE_AT, struct.pack(">I", 0o10644))),
    "files for all": lambda root: table_of(root, with_flags(READABLE | LOCAL)),
    "unknown flags": lambda root: table_of(root, with_flags(255)),
    "records larger than the ring": lambda root: table_of(root, size=RING * 2),
    "records of no size": lambda root: table_of(root, size=0),
    "records with bodies that end elsewhere": lambda root: table_of(root, body_len=0xffffffff),
    "records with keys that end elsewhere": lambda root: table_of(root, key_len=0xfffffff0),
    "records at the ring's last bytes": lambda root: table_of(root, position=2 * RING - 16),
    "records of no time": lambda root: table_of(root, position=(1 << 52) - 16),
    "64 steps that are not there": lambda root: table_of(root, directory=lambda path: bytes([0, 0, 64])),
    "255 names": lambda root: table_of(root, lambda table, path: b"\0\377" + right_leaf(table, path)[2:]),
    "64 steps": lambda root: table_of(root, directory=lambda path: dir_body(path, [1] * 64)),
    "steps that go back": lambda root: table_of(root, directory=lambda path: dir_body(path, [1, len(path), 4])),
    "a step above that ends below": lambda root: table_of(root, lambda table, path: leaf_body(path, 0, end=4)),
    "a last step that ends below": lambda root: table_of(root, lambda table, path: leaf_body(path, 0, end=4095)),
    "a last step that ends nowhere": lambda root: table_of(root, lambda table, path: leaf_body(path, 0, end=0)),
    "a step above that is another's": lambda root: table_of(root, directory=lambda path: dir_body(os.path.dirname(path))),
    **{f"noise for leaves {seed}": lambda root, seed=seed: table_of(root, noise(seed)) for seed in range(RANDOM_TABLES)},
    **{f"noise for directories {seed}": lambda root, seed=seed: table_of(root, directory=noise(seed))
       for seed in range(RANDOM_TABLES)},
}


@pytest.fixture(scope="module")
def root(base):
    root = base / "hostile-table-tree"
    tree.hot_files(root, FILES)
    return root


@pytest.fixture(scope="module")
def fake(base):
    made = FakeDaemon(base / "table.sock")
    yield made
    made.end()


@pytest.fixture(scope="module")
def server(lab, root, base, fake):
    server = lab.flash("hostile-table-httpd", root, base / "table.sock", mpm="event", limits=ONE_CHILD)
    server.start()
    yield server
    lab.end()       # checks whether a child crashed


def give(fake, table):
    """Holds from the next question on; returns a counter of questions."""
    asked, passed = [0], []

    def reply(conn, path, number):
        asked[0] += 1
        return right_reply(conn, path, number)

    def first():
        fd = generations()
        passed.append(os.dup(fd))
        return fd
    for fd in getattr(fake, "passed", ()):
        os.pwrite(fd, bytes(8), 8)      # no heartbeat: the child asks, and gets the new table
        os.close(fd)
    fake.passed = passed
    fake.become(greeting(first=first, fifth=table.answers, sixth=table.content_area), reply)
    return asked


def test_the_right_table(server, root, fake):
    """The reference for the others: the child uses it, without a question."""
    asked = give(fake, table_of(root))
    for _ in range(3):
        assert as_stock(server)[1:] == (0, 0)
    assert asked[0] <= 1        # for a child that cannot open the large file from memory
    assert server.wait_entries(1)[-1].note == "lease"


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables(server, root, fake, case):
    give(fake, WRONG[case](root))
    for _ in range(3):
        assert as_stock(server)[1:] == (0, 0)
    assert get(server.port, "/small.txt")[0] == 200
    assert not server.crashes()
