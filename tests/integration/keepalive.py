# SPDX-License-Identifier: Apache-2.0
"""Keep-alive connections on bare sockets, with the begin and end of each request."""

import select
import socket
import time
from collections import namedtuple

from waiting import wait_for

TIMEOUT_S = 30

# complete: the whole promised body came. start, end: time.monotonic() before the request was sent and after the last
# byte came.
Answer = namedtuple("Answer", "status headers body complete start end")


def request(path, tag=None, host="localhost"):
    """A GET as bytes."""
    extra = f"X-Test: {tag}\r\n" if tag else ""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode()


def head(data):
    """(status, {lower-case name: value}, where the body begins), or None: the head is incomplete."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = bytes(data[:end]).decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines[1:])
    return int(lines[0][9:12]), {n.lower(): v.strip() for n, _, v in fields}, end + 4


class Connection:
    """One connection; get() waits for the answer."""

    def __init__(self, port, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        self.socket.close()

    def spoilt(self):
        """True if it is closed, or has bytes of an answer that nobody read."""
        return self.socket.fileno() < 0 or bool(select.select([self.socket], [], [], 0)[0])

    def begin(self, path, tag=None):
        """Send a request; returns when that began."""
        start = time.monotonic()
        self.socket.sendall(request(path, tag))
        return start

    def receive(self, size=1 << 16):
        """Some bytes; none at the connection's end."""
        try:
            return self.socket.recv(size)
        except ConnectionResetError:
            return b""

    def read_head(self):
        """(status, headers, the body's first bytes); ConnectionError if the connection ends before."""
        data = bytearray()
        while (found := head(data)) is None:
            part = self.receive()
            if not part:
                raise ConnectionError(f"the connection ended after {len(data)} bytes of a header")
            data += part
        return found[0], found[1], data[found[2]:]

    def get(self, path, tag=None):
        """The answer; its status is 0 if the connection ended before the header's end."""
        return self.finish(self.begin(path, tag))

    def finish(self, start):
        """The answer to the request that began at that time."""
        try:
            status, headers, body = self.read_head()
        except ConnectionError:
            return Answer(0, {}, b"", False, start, time.monotonic())
        length = int(headers["content-length"])
        while len(body) < length and (part := self.receive()):
            body += part
        return Answer(status, headers, bytes(body), len(body) == length, start, time.monotonic())


def children_config(log):
    """Configuration for Children: the server writes to this file which child served which request."""
    return f'LogFormat "%{{X-Test}}i %P" children\nCustomLog "{log}" children\nKeepAliveTimeout 600\n'


def child_of(log, tag):
    """The child that served the request of this tag."""
    def logged():
        # The last line may be half of one.
        rows = (line.split() for line in log.read_text().split("\n")[:-1])
        return next((int(pid) for seen, pid in rows if seen == tag), None)
    return wait_for(logged, f"{tag} in {log}")


class Children:
    """Connections to a server so that each of its `count` children serves at least `each`."""

    TRIES = 600     # of many connections one child may take all
    SPARE = 60      # this many extra ones stay open, which leads later ones to other children

    def __init__(self, server, log, count, each=1):
        self.port, self.log = server.port, log
        # A child with threads may take all connections that come one by one; a prefork child serves one.
        self.at_once = 1 if server.mpm == "prefork" else 8
        self.by_child = {}
        self.tags = 0
        self._connect(lambda child: len(self.by_child.get(child, ())) < each,
                      lambda: len(self.by_child) == count
                      and all(len(c) == each for c in self.by_child.values()))

    def _connect(self, wanted, enough):
        """Make connections, keep those to wanted children, until there are enough."""
        spare = []
        for _ in range(self.TRIES // self.at_once):
            if enough():
                break
            for connection, child in self._some():
                (self.by_child.setdefault(child, []) if wanted(child) else spare).append(connection)
            while len(spare) > self.SPARE:
                spare.pop(0).close()
        for connection in spare:
            connection.close()
        assert enough(), f"connections to children: { {p: len(c) for p, c in self.by_child.items()} }"

    def _some(self):
        """New connections, each with its child."""
        begun = []
        for _ in range(self.at_once):
            self.tags += 1
            tag, connection = f"child-{self.tags}", Connection(self.port)
            begun.append((connection, tag, connection.begin("/", tag)))
        for connection, _, start in begun:
            connection.finish(start)
        return [(connection, child_of(self.log, tag)) for connection, tag, _ in begun]

    def again(self, ended):
        """Another connection to the same child, in place of one that has ended."""
        ended.close()
        child = next(p for p, connections in self.by_child.items() if ended in connections)
        connections = self.by_child[child]
        connections.remove(ended)
        count = len(connections)
        self._connect(lambda met: met == child and len(connections) == count,
                      lambda: len(connections) == count + 1)

    def all(self):
        return [c for connections in self.by_child.values() for c in connections]

    def close(self):
        for connection in self.all():
            connection.close()
