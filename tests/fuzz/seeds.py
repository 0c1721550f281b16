#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of tests/fuzz/corpus whose bytes are not text, from the protocol's own words.

  tests/fuzz/seeds.py [DIRECTORY]

tests/unit/check_reference.py fails where the corpus has another seed. Others in the corpus were found: by scripts/fuzz,
as reaching more, or as what was wrong once.
"""

import stat
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
sys.dont_write_bytecode = True

import shared_reader  # noqa: E402
import wire  # noqa: E402

WELCOME, ERROR, MARKS = 2, 5, 9
EXPLAIN = 3
DIRECTORY, FILE, LINK = stat.S_IFDIR | 0o755, stat.S_IFREG | 0o644, stat.S_IFLNK | 0o777
WITH_FD, LOCAL, UNCHANGED, LEASE, CONTENT = 1, 2, 4, 8, 16
PATH = b"/srv/file"
WATCH, OTHER_WATCH = (bytes([4, number, 0, 0, 0]) + struct.pack(">QQI", 254, number, 33) for number in (7, 8))


def names(*list_):
    return bytes([len(list_)]) + b"".join(bytes([len(n)]) + n for n in list_)


def path(text, size=2):
    return len(text).to_bytes(size, "big") + text


def times(n):
    return struct.pack(">QI", 1700000000, 5) * n


def meta(mode, size=0):
    return struct.pack(">IIIQQQQQ", mode, 33, 33, 64769, 12, 1, size, 8) + times(3) + struct.pack(">I", 4096)


def access(size=None):
    return b"\1" if size is None else b"\0" + struct.pack(">IQQQ", FILE, 64769, 99, size) + times(2)


def step(end, body, slot=3):
    return struct.pack(">H", end) + body + struct.pack(">II", slot, 1)


def found(mode, size=0):
    return b"\0" + meta(mode, size)


def answer(flags, n_names, *steps, status=0, source=1):
    place = struct.pack(">Q", 65536 + 100) if flags & (WITH_FD | CONTENT) == CONTENT else b""
    return bytes([status, source, flags, n_names, len(steps)]) + b"".join(steps) + place


ROOT, SRV = found(DIRECTORY), found(DIRECTORY)
WHOLE = (step(1, ROOT), step(4, SRV), step(9, found(FILE, 7)))
NAMED = (step(1, ROOT + access()), step(4, SRV + access(40)), step(9, found(FILE, 7)))
LINKED = (step(1, ROOT), step(4, found(LINK) + b"\0" + meta(DIRECTORY)), step(9, found(LINK) + b"\1"))
ANSWERS = {
    "file": (WITH_FD | LOCAL | LEASE, 0, *WHOLE), "content": (LOCAL | CONTENT, 0, *WHOLE),
    "names": (0, 1, *NAMED), "links": (0, 0, *LINKED), "absent": (0, 0, step(1, ROOT), step(4, b"\1", 0)),
}


def questions():
    yield "hello", wire.hello()
    yield "hello-names", wire.hello(names=(b".htaccess", b"x"))
    yield "hello-of-a-later-version", wire.frame(wire.HELLO, wire.hello()[16:] + b"more")
    yield "lookup", wire.whole_lookup("/srv/www/index.html")
    yield "purge", wire.purge(wire.TREE, "/srv")
    yield "purge-all", wire.purge(wire.ALL)
    yield "report", wire.report(wire.STATS)
    yield "explain", wire.frame(wire.CONTROL, bytes([EXPLAIN]) + path(PATH), 1)


def done(status, count, cursor, text):
    return wire.frame(wire.DONE, struct.pack(">BQI", status, count, cursor) + path(text), 1)


def welcome():
    return wire.frame(WELCOME, struct.pack(">IH7Q", wire.MAGIC, wire.VERSION, *range(7)) + names(b".htaccess"))


def replies():
    yield "welcome", welcome()
    yield "error", wire.frame(ERROR, b"\x16" + path(b"the peer broke the protocol", 1))
    yield "done-purge", done(0, 12, 0, b"")
    yield "done-report", done(0, 0, 2, b"hits 12\nmisses 3\n")
    yield "done-failed", done(20, 0, 0, b"")


def answers():
    for name, (flags, *rest) in ANSWERS.items():
        yield name, struct.pack(">HB", len(PATH) - 1, flags & WITH_FD) + answer(flags, *rest)
    yield "no-answer", b"\0\x08\0" + answer(0, 0, status=16)


def task(base, known, content_max=16384):
    return struct.pack(">HBI", base, 1 if base else 0, content_max) + (b"\1" + meta(FILE, 7) if known else b"\0") \
        + names(b".htaccess") + struct.pack(">IB", 900, 0) + path(PATH)


def trail(*origins, vias=b"\0"):
    steps = b"".join(struct.pack(">IBB", 22, verdict, 1) + key for verdict, key in enumerate(origins))
    return bytes([len(origins)]) + steps + struct.pack(">I", 1) + vias + struct.pack(">BIIIB", 1, 900, 700, 5, 2)


def results():
    via = b"\1\1" + WATCH + path(b"file", 1)
    yield "from-root", struct.pack(">HHBB", 8, 0, 0, 1) + answer(WITH_FD, 0, *WHOLE) \
        + trail(WATCH, OTHER_WATCH, b"\0", vias=via)
    yield "below-base", struct.pack(">HHBB", 8, 4, 1, 0) + answer(UNCHANGED, 1, WHOLE[2]) + trail(WATCH)
    yield "directory", struct.pack(">HHBB", 3, 0, 1, 1) + answer(WITH_FD, 1, *NAMED[:2]) \
        + trail(OTHER_WATCH, OTHER_WATCH)
    yield "failed", struct.pack(">HHBB", 8, 0, 1, 0) + answer(0, 0, status=20) + trail()
    yield "failed-at-a-link", struct.pack(">HHBB", 8, 0, 1, 0) + answer(0, 0, status=20) + trail(WATCH, WATCH, vias=via)


def packets(*of):
    """Each (what goes beside it, packet)."""
    return b"".join(bytes([beside]) + path(packet) for beside, packet in of)


def peers():
    hello, lookup = wire.hello(), wire.whole_lookup("/srv/file")
    for name, packet in questions():
        yield name, packets((4, hello), (4, packet))
    yield "two-questions", packets((4, hello), (4, lookup), (4, lookup))
    yield "two-at-once", packets((4, hello), (12, lookup), (12, lookup))
    report, silence = (0, wire.report(wire.STATS)), (4 | 16, b"")
    yield "reads-late", packets((0, hello), *[report] * 8, silence, silence, report)
    yield "does-not-read", packets((0, hello), *[report] * 10)
    yield "with-descriptor", packets((4, hello), (5, lookup))
    yield "question-first", packets((4, lookup))


def daemons():
    """One byte in front: 1 where the greeting is made for it, 2 to ask for a report."""
    reply = {"file": 1 | 3 << 2}
    for name, (flags, *rest) in ANSWERS.items():
        frame = wire.frame(wire.ANSWER, answer(flags, *rest), 1)
        yield name, b"\1" + packets((reply.get(name, 0), frame),
                                    (reply.get(name, 0), frame[:8] + b"\0" * 7 + b"\2" + frame[16:]))
    yield "report", b"\3" + packets((0, done(0, 0, 0, b"hits 12\n")))
    yield "greets-itself", b"\0" + packets((1, welcome()), (1 | 1 << 2, wire.frame(MARKS)))
    yield "other-version", b"\0" + packets((0, wire.frame(ERROR, b"\x15\0")))
    yield "three-descriptors", b"\1" + packets((3, wire.frame(wire.ANSWER, answer(0, 0, *WHOLE), 1)))


def tables():
    def table(slots, magic=shared_reader.TABLE_MAGIC, seals=6, marks=None, busy=0):
        head = bytes([seals, 6]) + struct.pack(">HII", slots if marks is None else marks, 3, 1)
        return head + struct.pack("=IIQQQ", magic, slots, 2**63, busy, 13000) + struct.pack("=Q", 1 << 32 | 99) * slots
    yield "table", table(9)
    yield "busy", table(9, busy=1)
    yield "other-layout", table(9, magic=shared_reader.TABLE_MAGIC - 1)
    yield "not-sealed", table(9, seals=0)
    yield "too-small", table(9, marks=8)


def answer_tables():
    """A head, an index of one bucket, a ring: a leaf, the directory that it lies in."""
    def record(kind, key_path, body, slot=3, len_=None, body_len=None):
        key = bytes([kind]) + key_path
        size = (32 + len(key) + len(body) + 15) // 16 * 16
        return (struct.pack("=IIIIIIQ", size if len_ is None else len_, len(key),
                            len(body) if body_len is None else body_len, 0, slot, 1, 0) + key + body).ljust(size, b"\0")

    def area(*records, seals=6, word=0, magic=shared_reader.ANSWERS_MAGIC, buckets=1, data=192, size=None, zeros=0):
        ring = b"".join(records)
        head = struct.pack("=IIQQ", magic, buckets, data, len(ring) if size is None else size) + b"K" * 16
        return bytes([seals, zeros, word]) + head.ljust(64, b"\0") + bytes(64) + bytes(64) + ring
    leaf = record(2, PATH, b"\x13\0" + struct.pack(">IIQ", 3, 1, 512) + step(9, found(FILE, 7)))
    dir_ = record(1, b"/srv", b"\4\0\2" + step(1, ROOT) + step(4, SRV))
    root = record(2, b"/", struct.pack(">BBIIQ", 0, 0, 3, 1, 0) + step(1, ROOT))
    at_dir = 8 * (len(leaf) // 16)
    yield "leaf", area(leaf, dir_)
    yield "leaf-and-directory", area(leaf, dir_, word=at_dir)
    yield "root", area(root)
    yield "longer-than-the-ring", area(record(2, PATH, leaf[42:], len_=4096), dir_)
    yield "longer-than-the-record", area(record(2, PATH, leaf[42:], body_len=4096), dir_)
    yield "ring-outside", area(leaf, dir_, size=4096)
    yield "no-buckets", area(leaf, dir_, buckets=0)
    yield "too-many-buckets", area(leaf, dir_, buckets=1 << 31)
    yield "not-sealed", area(leaf, dir_, seals=0)
    yield "contents", area(leaf, bytes(512), magic=shared_reader.CONTENTS_MAGIC, word=255)


def operations():
    """Pieces for the cache: an operation, and bytes that choose the path and what was found."""
    def piece(how, of):
        return bytes([how]) + len(of).to_bytes(2, "big") + of

    walk, lookup, changed, unwatched, lost, forget, evict, limits = 0, 1, 3, 4, 5, 7, 8, 11
    file, other, below = b"\x00\x16", b"\x01\x14", b"\x00\x09\x17"
    known = piece(walk, file) + piece(walk + 48, other) + piece(walk + 24, below)
    yield "walks", known + piece(lookup, file) + piece(lookup, below)
    yield "changes", known + piece(changed, b"\x00\x02") + piece(unwatched, b"\x00") + piece(lost, b"") + known
    yield "no-room", piece(limits, b"") + known + piece(evict, file) + piece(forget + 132, b"\x00") + known


def sequences():
    """Pieces for the dispatch: an operation in the low half of a byte, who or how in the other one."""
    def piece(what, other=0, of=b""):
        return bytes([what + 16 * other]) + len(of).to_bytes(2, "big") + of

    (ask, fresh, finish, give_up, change, event, purge, leave, passing, timers, beat, evict, limits,
     place) = range(14)
    file, below = b"\x01\x02", b"\x00\x01\x03"
    found = [piece(finish, of=b"\x00\x00\x06"), piece(finish, of=b"\x00\x00\x00\x06")]
    known = [piece(ask, 0, file), *found, piece(ask, 1, below), *found]
    again = [piece(ask, 2, file), piece(fresh, 3, below), *found]
    yield "walks", b"".join(known + again)
    yield "watched", b"".join([piece(place, 4), *known, piece(change), *again, piece(event, 0, b"\x01"), *again])
    yield "purged", b"".join([piece(ask, 0, file), piece(change), piece(purge, 8, file[:1]), piece(ask, 1, file),
                              *found, *found, piece(ask, 2, file)])
    yield "out-of-service", b"".join([*known, piece(place, 2), piece(ask, 0, below), piece(passing, 9),
                                      piece(give_up), piece(timers), piece(ask, 1, below), *found, piece(timers)])
    yield "refreshed", b"".join([*known, piece(passing, 6), piece(beat), *found, piece(limits), piece(evict),
                                 piece(leave), *again])


def redis():
    def bulk(text):
        return b"$%d\r\n%s\r\n" % (len(text), text)

    def entry(at, text, field=b"fp1"):
        return b"*2\r\n" + bulk(b"17-%d" % at) + b"*2\r\n" + bulk(field) + bulk(text)
    sender = b"0123456789abcdef"
    greeting = [(0, b"+PONG\r\n"), (1, b"+PONG\r\n"), (0, bulk(b"17-0")), (0, b"*0\r\n")]
    messages = [sender + b" path /srv/a", sender + b" tree /data/a", sender + b" all", sender + b" join",
                sender + b" path /etc", b"rubbish"]
    yield "joins", packets(*greeting)
    yield "messages", packets(*greeting, (0, b"*%d\r\n" % (len(messages) + 1) + entry(0, sender + b" join")
                                         + b"".join(entry(1 + i, m) for i, m in enumerate(messages))))
    yield "trimmed", packets(*greeting, (0, b"*1\r\n" + entry(9, sender + b" all")))
    yield "error", packets((0, b"-NOAUTH Authentication required.\r\n"), (1, b"+PONG\r\n"))
    yield "too-many-elements", packets((0, b"*100000000\r\n"))


TARGETS = {"question": questions, "reply": replies, "answer": answers, "result": results, "connection": peers,
           "client": daemons, "table": tables, "answer_table": answer_tables, "cache": operations, "dispatch": sequences,
           "fleet": redis,
           "task": lambda: [("from-root", task(0, False)), ("below-base", task(4, True))]}

corpus = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "corpus"
for target, seeds in TARGETS.items():
    directory = corpus / target
    directory.mkdir(parents=True, exist_ok=True)
    for seed, content in seeds():
        (directory / seed).write_bytes(content)
