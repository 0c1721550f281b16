# SPDX-License-Identifier: Apache-2.0
"""Between httpd and its daemon: something is done before a question is passed on."""

import contextlib
import os
import socket
import struct
import threading

import wire
from httpd import user_ids


class Relay:
    """Listens at `path`. before(path of a question) is called before the daemon gets it."""

    def __init__(self, path, daemon_socket, before):
        self.daemon_socket, self.before = daemon_socket, before
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        os.chown(path, *user_ids())
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, conn):
        with conn, wire.connect(self.daemon_socket) as up, contextlib.suppress(OSError):
            up.send(conn.recv(wire.MAX_FRAME))
            pass_on(up, conn)
            pass_on(up, conn)       # a greeting has two answers
            while packet := conn.recv(wire.MAX_FRAME):
                length, = struct.unpack(">H", packet[20:22])
                self.before(os.fsdecode(packet[22:22 + length]))
                up.send(packet)
                pass_on(up, conn)

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def pass_on(up, conn):
    data, fds, _, _ = socket.recv_fds(up, 65536, 4)
    try:
        wire.send(conn, data, fds)
    finally:
        for fd in fds:
            os.close(fd)
