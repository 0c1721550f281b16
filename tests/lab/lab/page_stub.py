#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stands for an interpreter or a proxied server: page_stub.py SOCKET MS answers each request after so many ms.

The status is one that no file is served with, so a client can count what came from here.
"""

import asyncio
import os
import sys

STATUS = 203
BODY = b"<!DOCTYPE html><title>stub</title>" + b"." * 12_000
ANSWER = (b"HTTP/1.1 %d Non-Authoritative Information\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
          % (STATUS, len(BODY)) + BODY)


class Answerer(asyncio.Protocol):
    def __init__(self, seconds):
        self.seconds, self.seen, self.transport = seconds, b"", None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        """Requests have no body: only GET is asked for."""
        *requests, self.seen = (self.seen + data).split(b"\r\n\r\n")
        for _ in requests:
            asyncio.get_running_loop().call_later(self.seconds, self.answer)

    def answer(self):
        if not self.transport.is_closing():
            self.transport.write(ANSWER)


async def serve(path, seconds):
    server = await asyncio.get_running_loop().create_unix_server(lambda: Answerer(seconds), path, backlog=4096)
    os.chmod(path, 0o666)       # httpd's children have another user
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], float(sys.argv[2]) / 1e3))
