#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""In a daemon's place, a daemon of another release: it refuses every offered version.

other_version.py [...] socket=PATH [...], as httpd starts its own daemon too
"""

import socket
import struct
import sys
from pathlib import Path

import wire

ERROR, VERSION = 5, 21          # a frame, a status
WAIT_S = 3600                   # the test has ended long before


def listening(path):
    """The socket that httpd has passed, or one of our own."""
    if "--passed" in sys.argv:
        return socket.socket(fileno=3)
    path.unlink(missing_ok=True)
    place = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    place.bind(str(path))
    path.chmod(0o666)
    place.listen(64)
    return place


def serve(path):
    with listening(path) as place:
        # httpd's socket does not block, and a daemon that is still ending may take the connection first.
        place.settimeout(WAIT_S)
        while True:
            with place.accept()[0] as conn:
                conn.recv(wire.MAX_FRAME)
                wire.send(conn, wire.frame(ERROR, struct.pack(">BB", VERSION, 0)))


if __name__ == "__main__":
    if "-t" in sys.argv:
        print("the configuration is good")
        sys.exit()
    serve(Path(next(a.removeprefix("socket=") for a in sys.argv if a.startswith("socket="))))
