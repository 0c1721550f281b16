# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.x byte for byte: writes requests exactly as given, and takes responses apart."""

import re
import socket
import ssl
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

HOST = "parity.test:8080"
TIMEOUT_S = 20


def request(method, path, host=HOST, close=True, body=b"", version="HTTP/1.1", tag=None, **headers):
    """One request as bytes. Underscores in header names stand for hyphens."""
    lines = [f"{method} {path} {version}".encode("utf-8", "surrogateescape")]
    fields = {"Host": host, **{k.replace("_", "-"): v for k, v in headers.items()}}
    if tag:
        fields["X-Test"] = tag
    if close:
        fields["Connection"] = "close"
    if body:
        fields["Content-Length"] = str(len(body))
    lines += [f"{k}: {v}".encode() for k, v in fields.items() if v is not None]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def exchange(port, data, tls=False, timeout=TIMEOUT_S):
    """Send everything in one write, read until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout) as conn:
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            conn = context.wrap_socket(conn, server_hostname="parity.test")
        with conn:
            conn.sendall(data)
            return _read_all(conn)


def _read_all(conn):
    parts = []
    while True:
        try:
            part = conn.recv(1 << 18)
        except (ConnectionResetError, ssl.SSLEOFError):
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


@dataclass
class Response:
    status_line: str
    headers: list = field(default_factory=list)
    body: bytes = b""

    @property
    def status(self):
        found = re.match(r"HTTP/\S+ (\d+)", self.status_line)
        return int(found.group(1)) if found else None

    def get(self, name):
        return next((v for k, v in self.headers if k == name.lower()), None)


def _head(data):
    lines = data.decode("latin-1").split("\r\n")
    headers = []
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers.append((name.strip().lower(), value.strip()))
    return Response(lines[0], headers)


def _chunked(data):
    """(decoded body and trailer, rest)."""
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        if length == 0:
            trailer, _, rest = data.partition(b"\r\n")
            return body + trailer, rest
        body, data = body + data[:length], data[length + 2:]


def _body(response, method, data):
    """(body, rest of the stream)."""
    if method == "HEAD" or response.status in (204, 304) or response.status < 200:
        return b"", data
    if (response.get("transfer-encoding") or "").lower() == "chunked":
        return _chunked(data)
    if response.get("content-length") is not None:
        length = int(response.get("content-length"))
        return data[:length], data[length:]
    return data, b""


def parse(data, methods):
    """The responses in a stream. Bytes that do not look like HTTP become one raw response."""
    methods, responses = list(methods), []
    while data:
        if not data.startswith(b"HTTP/"):
            responses.append(Response("(raw)", [], data))
            break
        head, _, data = data.partition(b"\r\n\r\n")
        response = _head(head)
        interim = response.status is not None and response.status < 200
        method = "GET" if interim or not methods else methods.pop(0)
        response.body, data = _body(response, method, data)
        responses.append(response)
    return responses


def _expires(response):
    """Expires counts from Date: compare the distance, not the clock."""
    try:
        return str(parsedate_to_datetime(response.get("expires"))
                   - parsedate_to_datetime(response.get("date")))
    except (TypeError, ValueError):
        return response.get("expires")


def _is_now(value, response):
    """For a file from the future httpd gives the time of the request as its time, maybe a second before Date."""
    try:
        since = parsedate_to_datetime(response.get("date")) - parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return False
    return 0 <= since.total_seconds() <= 1


def normalised(response):
    """The parts that must be equal: status line, headers without order and clock, body."""
    body, boundary = response.body, None
    found = re.search(r"multipart/byteranges; boundary=(\S+)", response.get("content-type") or "")
    if found:
        boundary = found.group(1)
        surplus = body.count(boundary.encode()) * (len(boundary) - len("BOUNDARY"))
        body = body.replace(boundary.encode(), b"BOUNDARY")
    headers = []
    for name, value in response.headers:
        if name == "date" or name == "last-modified" and _is_now(value, response):
            value = "(date)"
        elif name == "expires":
            value = _expires(response)
        elif name == "allow":       # in the order of a hash with a random seed
            value = ",".join(sorted(value.split(",")))
        elif boundary and name == "content-length":     # boundaries differ in length
            value = str(int(value) - surplus)
        elif boundary:
            value = value.replace(boundary, "BOUNDARY")
        headers.append((name, value))
    return response.status_line, sorted(headers), body
