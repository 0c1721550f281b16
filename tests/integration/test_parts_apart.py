# SPDX-License-Identifier: Apache-2.0
"""A page includes what a link leads to while another process switches that link. Each response ends where its framing says,
and the next one on the connection is the server's own, never the text of that page. A raw client, which loses no byte."""

import os
import re
import socket

import pytest

import tree
from forms import chosen
from test_link_race import Swapping
from httpd import user_ids

pytestmark = pytest.mark.needs_flashpache

TIMEOUT_S = 20
PAIRS = chosen(600, 6000)       # of requests: the page, then another site's file
MOST_PAIRS = 20 * PAIRS
OTHER = b"another site's own file\n"
FORGED = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Type: text/html\r\n\r\nFORGED\n"
# The part that the page includes, and what the link leads to in turn.
KINDS = {
    "a variant": ("/t1/d/s", ("pub", "more")),
    "a directory with an index": ("/t1/d/", ("pub", "more")),
    "a file": ("/t1/d/s.html", ("pub", "more")),
    "a file or nothing": ("/t1/d/s.html", ("pub", "none")),
    "a variant or nothing": ("/t1/d/s", ("pub", "none")),
    "a part with parts": ("/t1/d/nested.shtml", ("pub", "none")),
}
CONFIG = """DirectoryIndex index.html
AddOutputFilter INCLUDES .shtml
AddType text/html .shtml
KeepAlive On
MaxKeepAliveRequests 0
<Directory {root}>
Options +Includes +MultiViews +FollowSymLinks
AllowOverride All
</Directory>
"""


class Connection:
    """A kept connection; answers are read by their framing alone."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *paths):
        self.send_raw("".join(f"GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n" for path in paths))

    def send_raw(self, text):
        self.socket.sendall(text.encode())

    def _more(self):
        part = self.socket.recv(1 << 16)
        assert part, f"the connection ended after {self.data[-200:]!r}"
        self.data += part

    def _until(self, end):
        while end not in self.data:
            self._more()
        found, _, self.data = self.data.partition(end)
        return found

    def _exactly(self, n):
        while len(self.data) < n:
            self._more()
        found, self.data = self.data[:n], self.data[n:]
        return found

    def _chunks(self):
        while True:
            line = self._until(b"\r\n")
            assert re.fullmatch(rb"[0-9a-fA-F]+", line), f"no size of a chunk: {line[:200]!r}"
            size = int(line, 16)
            yield self._exactly(size)
            end = self._until(b"\r\n")
            assert end == b"", f"bytes behind a chunk: {end[:200]!r}"
            if size == 0:
                return

    def response(self):
        """(status, body)"""
        head = self._until(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        found = re.fullmatch(r"HTTP/1\.1 (\d{3}) .*", line)
        assert found, f"no status line: {head[:200]!r}"
        headers = {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}
        if found.group(1) == "304":
            return 304, b""
        if headers.get("transfer-encoding") == "chunked":
            return int(found.group(1)), b"".join(self._chunks())
        return int(found.group(1)), self._exactly(int(headers["content-length"]))


@pytest.fixture(scope="module")
def root(base):
    root = base / "apart"
    for name in ("pub", "more"):
        for file in ("s.html", "index.html", "part.html"):
            tree.put(root / f"t1/{name}/{file}", f"<p>{name}\n" * 40)
        tree.put(root / f"t1/{name}/nested.shtml", "(<!--#include file=\"part.html\" -->)")
    for number, (part, _) in enumerate(KINDS.values()):
        tree.put(root / f"t1/page{number}.shtml", f"a<!--#include virtual=\"{part}\" -->{FORGED}")
    os.symlink("pub", root / "t1/d")
    tree.put(root / "other/file.txt", OTHER)
    return root


@pytest.fixture(scope="module")
def server(lab, root, mpm):
    yield lab.under_test(f"apart-{mpm}", root, mpm=mpm, config=CONFIG.format(root=root))
    lab.end()


@pytest.mark.parametrize("pipelined", (False, True), ids=("one by one", "pipelined"))
@pytest.mark.parametrize("kind", KINDS)
def test_the_next_response_is_the_servers(server, root, kind, pipelined):
    page = f"/t1/page{list(KINDS).index(kind)}.shtml"
    _, targets = KINDS[kind]
    bodies = set()
    with Swapping({root / "t1/d": targets}, user_ids()[0]), Connection(server.port) as client:
        for number in range(MOST_PAIRS):
            # The process that switches the link may get no time for a while.
            if number >= PAIRS and len(bodies) > 1:
                break
            if pipelined:
                client.send(page, "/other/file.txt")
            else:
                client.send(page)
            status, body = client.response()
            assert status == 200 and body.startswith(b"a") and body.endswith(FORGED.encode()), (number, status, body[-300:])
            bodies.add(body)
            if not pipelined:
                assert client.data == b"", (number, client.data[:300])
                client.send("/other/file.txt")
            assert client.response() == (200, OTHER), number
            assert client.data == b"", (number, client.data[:300])
    assert len(bodies) > 1, "the link always led to the same directory"
