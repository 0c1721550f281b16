#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""In a daemon's place, a daemon of another release: it refuses every version that is offered.

other_version.py [...] socket=PATH [...], as httpd starts its own daemon too
"""

import socket
import struct
import sys
from pathlib import Path

import wire

ERROR, VERSION = 5, 21          # a frame, a status


def serve(path):
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as place:
        place.bind(str(path))
        path.chmod(0o666)
        place.listen(64)
        while True:
            with place.accept()[0] as conn:
                conn.recv(wire.MAX_FRAME)
                wire.send(conn, wire.frame(ERROR, struct.pack(">BB", VERSION, 0)))


if __name__ == "__main__":
    serve(Path(next(a.removeprefix("socket=") for a in sys.argv if a.startswith("socket="))))
