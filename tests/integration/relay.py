# SPDX-License-Identifier: Apache-2.0
"""Between httpd and its daemon: something is done before a question is passed on."""

import contextlib
import os
import socket
import struct

import wire


class Relay(wire.Listener):
    """before(path of a question) is called before the daemon gets it."""

    def __init__(self, path, daemon_socket, before):
        self.daemon_socket, self.before = daemon_socket, before
        super().__init__(path)

    def serve(self, conn):
        with conn, wire.connect(self.daemon_socket) as up, contextlib.suppress(OSError):
            up.send(conn.recv(wire.MAX_FRAME))
            for _ in wire.GREETING:
                pass_on(up, conn)
            while packet := conn.recv(wire.MAX_FRAME):
                length, = struct.unpack(">H", packet[21:23])
                self.before(os.fsdecode(packet[23:23 + length]))
                up.send(packet)
                pass_on(up, conn)


def pass_on(up, conn):
    data, fds, _, _ = socket.recv_fds(up, 65536, 4)
    wire.give(conn, data, *fds)
