# SPDX-License-Identifier: Apache-2.0
"""A keep-alive connection with as little overhead as Python allows: one send, one receive, no dictionary of headers."""

import re
import socket
from collections import namedtuple

TIMEOUT_S = 30
LENGTH = re.compile(rb"\r\nContent-Length: (\d+)", re.IGNORECASE)
WITHOUT_BODY = (204, 304)

# head: the status line and all headers, as they came.
Reply = namedtuple("Reply", "status head body")


def field(reply, name):
    """A header's value, or an empty text."""
    found = re.search(rf"\r\n{name}: ([^\r]*)".encode(), reply.head, re.IGNORECASE)
    return found.group(1).decode("latin-1") if found else ""


def note(reply):
    """The answer's source: the header that NOTE_CONFIG adds (lease_kit)."""
    return field(reply, "X-Note")


class Quick:
    """One connection. A test may call send() and read() apart, to act between them."""

    def __init__(self, port):
        self.port = port
        self.socket = None
        self._connect()

    def _connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        self.socket.close()

    def again(self):
        """A new connection in place of a useless one."""
        self.close()
        self._connect()

    def send(self, path, method="GET", body=b"", fields=""):
        """fields: header lines, each with its end."""
        length = f"Content-Length: {len(body)}\r\n" if method == "PUT" else ""
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}{fields}\r\n".encode() + body)

    def read(self):
        """The reply; ConnectionError if the connection ends before its end. A server that closes it after a reply, as
        httpd does after status 500, gets a new one."""
        data = self._more(b"")
        while (end := data.find(b"\r\n\r\n")) < 0:
            data = self._more(data)
        head, body = data[:end + 2], data[end + 4:]
        status = int(head[9:12])
        length = 0 if status in WITHOUT_BODY else int(LENGTH.search(head).group(1))
        while len(body) < length:
            body = self._more(body)
        if b"\r\nconnection: close" in head.lower():
            self.again()
        return Reply(status, head, body)

    def _more(self, data):
        part = self.socket.recv(1 << 18)
        if not part:
            raise ConnectionError(f"the connection ended after {data[:200]!r}")
        return data + part

    def ask(self, path, method="GET", body=b"", fields=""):
        self.send(path, method, body, fields)
        return self.read()
