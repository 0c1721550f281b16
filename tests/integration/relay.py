# SPDX-License-Identifier: Apache-2.0
"""A relay between httpd and its daemon: a test acts before the daemon gets a question."""

import contextlib
import os
import socket
import struct

import wire


class Relay(wire.Listener):
    """Calls before(path of a question) before the daemon gets the question."""

    def __init__(self, path, daemon_socket, before):
        self.daemon_socket, self.before = daemon_socket, before
        super().__init__(path)

    def serve(self, conn):
        with conn, wire.connect(self.daemon_socket) as up, contextlib.suppress(OSError):
            up.send(conn.recv(wire.MAX_FRAME))
            for _ in wire.GREETING:
                pass_on(up, conn)
            while packet := conn.recv(wire.MAX_FRAME):
                if packet[4] == wire.LOOKUP:        # another test's flashpachectl may find this socket, and ask for a report
                    length, = struct.unpack(">H", packet[21:23])
                    self.before(os.fsdecode(packet[23:23 + length]))
                up.send(packet)
                pass_on(up, conn)


def pass_on(up, conn):
    data, fds, _, _ = socket.recv_fds(up, 65536, 4)
    wire.give(conn, data, *fds)
