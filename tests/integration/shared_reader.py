# SPDX-License-Identifier: Apache-2.0
"""A second reader of the daemon's shared memory, written from docs/protocol.md alone."""

import fcntl
import mmap
import os
import select
import socket
import stat
import struct
import time

HELLO, MAGIC, VERSION = 1, 0x46504348, 5
GREETING = (2, 9, 10, 11, 13, 14)       # WELCOME, REFERENCED, EVENTS, ALIVE, ANSWERS, CONTENTS
TABLE_MAGIC, ANSWERS_MAGIC, CONTENTS_MAGIC = 0x46505335, 0x46504137, 0x46504331
HEAD, RECORD, RECORD_MOST = 128, 32, 32768
DIR, LEAF = 1, 2
READABLE, LOCAL, WATCHED, CONTENT = 1, 2, 4, 16
TICK_MS = 16
MASK = 2**64 - 1


def siphash(key, data):
    """SipHash-2-4, as a number."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]

    def rotate(n, bits):
        return (n << bits | n >> (64 - bits)) & MASK

    def rounds(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    whole = len(data) // 8 * 8
    words = [*struct.unpack(f"<{whole // 8}Q", data[:whole])]
    last = data[whole:] + bytes(7 - (len(data) - whole)) + bytes([len(data) & 255])
    for word in [*words, *struct.unpack("<Q", last)]:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class Malformed(Exception):
    """Bytes that no daemon writes."""


class Fields:
    """Big-endian fields, one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def get(self, form):
        size = struct.calcsize(">" + form)
        if self.at + size > len(self.data):
            raise Malformed("a field lies behind the end")
        found = struct.unpack_from(">" + form, self.data, self.at)
        self.at += size
        return found[0] if len(found) == 1 else found

    def take(self, size):
        return bytes(self.get(f"{size}s"))

    def end(self):
        if self.at != len(self.data):
            raise Malformed("something follows")


def get_meta(fields):
    names = ("mode", "uid", "gid", "dev", "ino", "nlink", "size", "blocks")
    meta = dict(zip(names, fields.get("IIIQQQQQ")))
    for name in ("atime", "mtime", "ctime"):
        seconds, nanoseconds = fields.get("qI")
        meta[name] = seconds * 10**9 + nanoseconds
    meta["blksize"] = fields.get("I")
    return meta


def get_access(fields):
    access = {"status": fields.get("B")}
    if access["status"] == 0:
        access.update(zip(("mode", "dev", "ino", "size"), fields.get("IQQQ")))
        access["times"] = fields.get("qIqI")
    return access


def get_step(fields, n_names):
    end, status = fields.get("HB")
    step = {"end": end, "status": status, "access": []}
    target = None
    if status == 0:
        target = step["self"] = get_meta(fields)
        if stat.S_ISLNK(target["mode"]):
            step["target_status"], target = fields.get("B"), None
            if step["target_status"] == 0:
                target = step["target"] = get_meta(fields)
    step["end_meta"] = target
    if is_dir(step):
        step["access"] = [get_access(fields) for _ in range(n_names)]
    step["slot"], step["generation"] = fields.get("II")
    return step


def is_dir(step):
    return step["end_meta"] is not None and stat.S_ISDIR(step["end_meta"]["mode"])


def sealed_size(fd):
    if not fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
        raise Malformed("it may shrink")
    return os.fstat(fd).st_size


class Ring:
    """A head, and what lies at positions."""

    def __init__(self, fd, magic):
        size = sealed_size(fd)
        self.map = mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ)
        found, self.n_buckets, self.data, self.size = struct.unpack_from("=IIQQ", self.map, 0)
        self.key = self.map[24:40]
        if found != magic or self.data < HEAD or self.size == 0 or self.data + self.size > size:
            raise Malformed("no such ring")

    def copy(self, at, length):
        start = at % self.size
        if start + length > self.size:
            raise Malformed("it lies outside")
        return self.map[self.data + start:self.data + start + length]

    def is_whole(self, at):
        """Checks the copied bytes."""
        return at >= struct.unpack_from("=Q", self.map, 64)[0]


class Reader:
    """One connection's areas."""

    def __init__(self, path, names=()):
        self.conn = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.conn.settimeout(20)
        self.conn.connect(str(path))
        body = struct.pack(">IHHB", MAGIC, VERSION, VERSION, len(names)) + b"".join(bytes([len(n)]) + n for n in names)
        self.conn.sendall(struct.pack(">IBBHQ", 16 + len(body), HELLO, 0, 0, 0) + body)
        self.names = []                 # those that the daemon looks for
        self.fds = [self.hear(kind) for kind in GREETING]
        generations, _, events, _, answers, contents = self.fds
        self.table = mmap.mmap(generations, sealed_size(generations), mmap.MAP_SHARED, mmap.PROT_READ)
        assert struct.unpack_from("=I", self.table, 0)[0] == TABLE_MAGIC
        self.events = select.epoll.fromfd(os.dup(events))
        self.answers, self.contents = Ring(answers, ANSWERS_MAGIC), Ring(contents, CONTENTS_MAGIC)
        if self.answers.n_buckets.bit_count() != 1 or HEAD + 64 * self.answers.n_buckets > self.answers.data:
            raise Malformed("the index")

    def hear(self, kind):
        data, fds, _, _ = socket.recv_fds(self.conn, 32768, 1)
        assert data[4] == kind and len(fds) == 1, data
        if kind == GREETING[0]:
            rest = Fields(data[16 + 6 + 7 * 8:])
            self.names = [rest.take(rest.get("B")) for _ in range(rest.get("B"))]
            rest.end()
        return fds[0]

    def close(self):
        self.events.close()
        self.conn.close()
        for fd in self.fds:
            os.close(fd)

    # The lease table.

    def is_current(self):
        if self.events.poll(0, 1):
            return False
        until, busy = struct.unpack_from("=QQ", self.table, 8)
        return busy == 0 and until > time.monotonic_ns() // 10**6

    def is_valid(self, step):
        n = struct.unpack_from("=I", self.table, 4)[0]
        slot, generation = step["slot"], step["generation"]
        if slot == 0 or slot >= n or generation == 2**32 - 1:
            return False
        word = struct.unpack_from("=Q", self.table, 32 + 8 * slot)[0]
        left = ((word & 0xffffffff) - time.monotonic_ns() // 10**6 // TICK_MS) & 0xffffffff
        return word >> 32 == generation and 0 < left <= 2**24

    # The table of answers.

    def record(self, at, key):
        ring = self.answers
        size, key_len, body_len = struct.unpack("=III", ring.copy(at, 12))
        if size > RECORD_MOST or size < RECORD or RECORD + key_len + body_len > size or key_len != len(key):
            return None
        copy = ring.copy(at, size)
        if not ring.is_whole(at) or copy[RECORD:RECORD + key_len] != key:
            return None
        return Fields(copy[RECORD + key_len:RECORD + key_len + body_len])

    def find(self, kind, path):
        key = bytes([kind]) + path
        h = siphash(self.answers.key, key)
        bucket = HEAD + 64 * (h & (self.answers.n_buckets - 1))
        for word in struct.unpack_from("=8Q", self.answers.map, bucket):
            if word != 0 and word >> 48 == h >> 48:
                body = self.record((word & (2**48 - 1)) * 16, key)
                if body is not None:
                    return body
        return None

    def answer(self, path, names=()):
        """The published answer about a path (bytes): flags, n_names, content_at, steps; None: there is none."""
        leaf = self.find(LEAF, path)
        if leaf is None:
            return None
        flags, n_names, slot, generation, content_at = leaf.get("BBIIQ")
        if n_names > 4:
            raise Malformed("more names than there can be")
        last, steps = get_step(leaf, n_names), []
        leaf.end()
        if last["end"] > 1:
            above_flags, steps = self.directory(path[:max(path.rindex(b"/", 0, last["end"]), 1)], n_names)
            if not steps or (steps[-1]["slot"], steps[-1]["generation"]) != (slot, generation):
                return None
            flags &= above_flags | ~WATCHED
        steps.append(last)
        check_steps(steps, len(path))
        chosen = [self.names.index(name) if name in self.names else 4 for name in names]
        if max(chosen, default=0) >= n_names:
            chosen = []
        for step in steps:
            step["access"] = [step["access"][at] for at in chosen if step["access"]]
        return {"flags": flags, "n_names": len(chosen), "content_at": content_at, "steps": steps}

    def directory(self, path, n_names):
        found = self.find(DIR, path)
        if found is None:
            return 0, []
        flags = found.get("B")
        if found.get("B") != n_names:
            return 0, []
        steps = [get_step(found, n_names) for _ in range(found.get("B"))]
        found.end()
        return flags, steps if steps and steps[-1]["end"] == len(path) else []

    def valid_answer(self, path, names=()):
        """The same answer, if it is valid now."""
        answer = self.answer(path, names)
        if answer is None or not self.is_current() or not all(map(self.is_valid, answer["steps"])):
            return None
        return answer

    def content(self, answer):
        """None: the daemon has overwritten it."""
        at, size = answer["content_at"], answer["steps"][-1]["end_meta"]["size"]
        found = self.contents.copy(at, size)
        return found if self.contents.is_whole(at) else None


def check_steps(steps, length):
    ends = [step["end"] for step in steps]
    if ends[0] != 1 or ends != sorted(set(ends)) or not all(map(is_dir, steps[:-1])):
        raise Malformed("steps that do not follow each other")
    if ends[-1] != length and (ends[-1] > length or is_dir(steps[-1])):
        raise Malformed("the walk does not end there")
