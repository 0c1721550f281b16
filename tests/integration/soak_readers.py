# SPDX-License-Identifier: Apache-2.0
"""The soak's clients: many keep-alive connections in one process, at a given rate.

Each response becomes a record (soak_model.RECORD), which is judged afterwards.
"""

import marshal
import random
import select
import socket
import time
from itertools import accumulate
from bisect import bisect

import soak_tree as tree
from keepalive import head, request
from soak_model import CUT, NOTHING, ODD, RECORD, WHOLE

ZIPF = 0.9
BATCH = 1 << 16
SERVED = "x-served"         # the header with the module's note, if the server sends it
BY_HTTPD = ("fallback", "bypass")       # its notes where httpd serves as without Flashpache; bypass: the file changed


class Zipf:
    """choose(random): a number below count, small ranks often; ranks are spread over the numbers."""

    def __init__(self, count):
        self.sums = list(accumulate(1 / (rank + 1) ** ZIPF for rank in range(count)))
        self.numbers = list(range(count))
        random.Random("ranks").shuffle(self.numbers)

    def __call__(self, rng):
        return self.numbers[bisect(self.sums, rng.random() * self.sums[-1])]


class Asked:
    """A connection and the request under way on it."""

    def __init__(self, port):
        self.port = port
        self.connect()

    def connect(self):
        self.answers = 0
        self.socket = socket.create_connection(("127.0.0.1", self.port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, number, path, start=None):
        self.number, self.data, self.head = number, bytearray(), None
        self.start = start or time.monotonic()
        self.socket.sendall(request(path))

    def ready(self):
        """Take the bytes that came: None while the response goes on, else whether all of it came."""
        try:
            part = self.socket.recv(1 << 17)
        except ConnectionResetError:
            part = b""
        if not part:
            return False
        self.data += part
        if self.head is None:
            self.head = head(self.data)
        if self.head is None:
            return None
        return True if len(self.data) - self.head[2] >= int(self.head[1]["content-length"]) else None


class Reader:
    """Asks at random until the time is over; write() then has the records on disk.

    again: ask once more where a used connection ends without a byte, as clients do: a graceful restart may close
    it just then.
    """

    def __init__(self, layout, choose, port, connections, rate, seed, records, again=False):
        self.layout, self.choose, self.rate, self.again = layout, choose, rate, again
        self.random = random.Random(seed)
        self.records, self.packed, self.odd = open(records, "wb"), bytearray(), {}
        self.poll = select.epoll()
        self.idle = []
        self.asked = {}
        for _ in range(connections):
            self.add(Asked(port))

    def add(self, one):
        self.asked[one.socket.fileno()] = one
        self.poll.register(one.socket.fileno(), select.EPOLLIN)
        self.idle.append(one)

    def run(self, seconds):
        begin, sent = time.monotonic(), 0
        end = begin + seconds
        while (now := time.monotonic()) < end or len(self.idle) < len(self.asked):
            while now < end and self.idle and sent < (now - begin) * self.rate:
                number = self.choose(self.random)
                self.ask(self.idle.pop(), number)
                sent += 1
            for descriptor, _ in self.poll.poll(0.001 if self.idle and now < end else 1):
                one = self.asked[descriptor]
                if one in self.idle:            # closed without a request under way
                    self.renew(one)
                elif (whole := one.ready()) is not None:
                    self.done(one, whole)
        self.flush()

    def ask(self, one, number, start=None):
        try:
            one.ask(number, self.layout.path(number), start)
        except (BrokenPipeError, ConnectionResetError):
            pass                                # read as a connection that ended

    def done(self, one, whole):
        end = time.monotonic()
        if self.again and not whole and not one.data and one.answers:
            self.once_more(one)
            return
        self.keep(one, end, whole)
        one.answers += 1
        if whole and one.head[1].get("connection") != "close":
            self.idle.append(one)
        else:
            self.renew(one)

    def renew(self, one):
        descriptor = one.socket.fileno()
        self.poll.unregister(descriptor)
        del self.asked[descriptor]
        if one in self.idle:
            self.idle.remove(one)
        one.socket.close()
        one.connect()
        self.add(one)

    def once_more(self, one):
        self.renew(one)
        self.idle.remove(one)
        self.ask(one, one.number, one.start)

    def keep(self, one, end, whole):
        status, length = (one.head[0], int(one.head[1]["content-length"])) if one.head else (0, 0)
        kind, which, version = self.judge(one, status, length, whole)
        if status != 200 and kind == WHOLE:
            length = 0
        fell_back = one.head is not None and one.head[1].get(SERVED) in BY_HTTPD
        self.packed += RECORD.pack(one.start, end, one.number, status, kind, which, version, length, fell_back)
        if len(self.packed) > BATCH:
            self.flush()

    def judge(self, one, status, length, whole):
        """(kind, which object, version)"""
        if one.head is None:
            return NOTHING, 0, 0
        body = bytes(one.data[one.head[2]:])
        if not whole and len(body) < tree.HEADER_MOST:      # too short to show what it was
            return CUT, 0, 0
        if status != 200:
            return (WHOLE if whole else CUT), 0, 0
        found = tree.read_body(self.layout.name(one.number), body)
        if found is None or len(body) > length:
            self.odd[one.start, one.number] = body
            return ODD, 0, 0
        return (WHOLE if whole else CUT), *found

    def flush(self):
        self.records.write(self.packed)
        self.records.flush()
        self.packed.clear()


def run(layout, choose, port, connections, rate, seed, seconds, records, again=False):
    """A process's body."""
    reader = Reader(layout, choose, port, connections, rate, seed, records, again)
    reader.run(seconds)
    with open(f"{records}.odd", "wb") as out:
        marshal.dump(reader.odd, out)
