# SPDX-License-Identifier: Apache-2.0
"""Requests of every kind that may leave something behind, and the resources of processes."""

import http.client
import random
import socket
from collections import Counter, namedtuple

import procs
import tree

HOT, COLD = 20, 300
SIZES = {**{f"hot/f{i}.bin": 200 + 3000 * i for i in range(HOT)},
         **{f"cold/d{i % 30}/f{i}.bin": 500 + 40 * i for i in range(COLD)},
         "large.bin": 1 << 20, "guarded/f.bin": 700, "denied/f.bin": 700, "excluded/f.bin": 700,
         "listed/a.bin": 10, "listed/b.bin": 20}
PAGES = {"indexed/index.html": "index\n", "page.shtml": 'a <!--#include virtual="/part.html" --> b\n',
         "part.html": "part", "error.html": "nothing of that name\n",
         "guarded/.htaccess": "Header set X-Guarded yes\n", "denied/.htaccess": "Require all denied\n",
         "rewritten/.htaccess": "RewriteEngine On\nRewriteRule ^(.*)$ /hot/$1\n"}

# body: None if it contains the server's version, a time or a boundary.
Ask = namedtuple("Ask", "method path headers status body")
# rss_kib is the most of one process, descriptors the sum of all.
Level = namedtuple("Level", "rss_kib descriptors")


def make(root):
    tree.hot_files(root, SIZES)
    for name, text in PAGES.items():
        tree.put(root / name, text)
    tree.put(root / "rewritten/f0.bin", "never seen\n")
    (root / "link.bin").symlink_to("hot/f1.bin")


def config(root):
    return (f"<Directory {root}>\nAllowOverride All\nOptions FollowSymLinks Indexes Includes\n"
            "DirectoryIndex index.html\nAddOutputFilter INCLUDES .shtml\n</Directory>\n"
            "<Location /missing>\nErrorDocument 404 /error.html\n</Location>\n")


class Asks:
    """next() is a request of a random kind, (kind, Ask)."""

    WEIGHTS = {"hot": 30, "cold": 15, "absent": 10, "missing": 4, "guarded": 5, "denied": 4, "range": 5,
               "ranges": 3, "unchanged": 4, "head": 3, "index": 4, "page": 4, "listing": 2, "rewritten": 4,
               "link": 4, "excluded": 3, "large": 2, "below_a_file": 3, "aborted": 3}

    def __init__(self, root, seed):
        self.root, self.random = root, random.Random(seed)
        self.bodies = {name: tree.content(name, size) for name, size in SIZES.items()}
        self.hot_names = [name for name in SIZES if name.startswith("hot/")]
        self.cold_names = [name for name in SIZES if name.startswith("cold/")]
        self.number = 0

    def next(self):
        kind = self.random.choices(list(self.WEIGHTS), self.WEIGHTS.values())[0]
        self.number += 1
        return kind, getattr(self, kind)()

    def file(self, name, path=None, headers=(), status=200):
        return Ask("GET", path or "/" + name, dict(headers), status, self.bodies[name])

    def hot(self):
        return self.file(self.random.choice(self.hot_names))

    def cold(self):
        return self.file(self.random.choice(self.cold_names))

    def large(self):
        return self.file("large.bin")

    def guarded(self):
        return self.file("guarded/f.bin")

    def excluded(self):
        return self.file("excluded/f.bin")

    def link(self):
        return self.file("hot/f1.bin", "/link.bin")

    def rewritten(self):
        return self.file("hot/f0.bin", "/rewritten/f0.bin")

    def denied(self):
        return Ask("GET", "/denied/f.bin", {}, 403, None)

    def absent(self):
        return Ask("GET", f"/absent/{self.number}", {}, 404, None)

    def below_a_file(self):
        return Ask("GET", f"/hot/f2.bin/{self.number}", {}, 404, None)

    def missing(self):
        return Ask("GET", f"/missing/{self.number}", {}, 404, PAGES["error.html"].encode())

    def index(self):
        return Ask("GET", "/indexed/", {}, 200, PAGES["indexed/index.html"].encode())

    def page(self):
        return Ask("GET", "/page.shtml", {}, 200, b"a part b\n")

    def listing(self):
        return Ask("GET", "/listed/", {}, 200, None)

    def range(self):
        name = self.random.choice(self.hot_names)
        return Ask("GET", "/" + name, {"Range": "bytes=10-99"}, 206, self.bodies[name][10:100])

    def ranges(self):
        return Ask("GET", "/" + self.random.choice(self.hot_names), {"Range": "bytes=0-9,100-109"}, 206, None)

    def unchanged(self):
        name = self.random.choice(self.hot_names)
        return Ask("GET", "/" + name, {"If-None-Match": tree.etag(self.root / name)}, 304, b"")

    def head(self):
        return Ask("HEAD", "/" + self.random.choice(self.hot_names), {}, 200, b"")

    def aborted(self):
        return self.file("large.bin")


class Clients:
    """Some keep-alive connections, one request at a time, and the outcome of each request."""

    def __init__(self, port, asks, count=4):
        self.port, self.asks = port, asks
        self.connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(count)]
        self.kinds, self.complaints = Counter(), []
        self.failed = self.wrong = 0

    def run(self, count):
        for number in range(count):
            kind, ask = self.asks.next()
            self.kinds[kind] += 1
            if kind == "aborted":
                self.abort(ask)
            else:
                self.ask(self.connections[number % len(self.connections)], kind, ask)

    def ask(self, connection, kind, ask):
        try:
            connection.request(ask.method, ask.path, headers={"Host": "localhost", **ask.headers})
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as problem:
            connection.close()
            self.failed += 1
            self.complaints.append(f"{kind}: {problem!r}")
            return
        if answer.status != ask.status:
            self.failed += 1
            self.complaints.append(f"{kind}: {answer.status}")
        elif ask.body is not None and body != ask.body:
            self.wrong += 1
            self.complaints.append(f"{kind}: {body[:80]!r}")

    def abort(self, ask):
        """Leave in the middle of a response."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as leaving:
            leaving.sendall(f"GET {ask.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            leaving.recv(1000)

    def close(self):
        for connection in self.connections:
            connection.close()      # opened again by the next request


def level(pids):
    return Level(max(map(procs.memory_kib, pids)), sum(map(procs.fd_count, pids)))
