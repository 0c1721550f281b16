# SPDX-License-Identifier: Apache-2.0
"""Plays systemd for one daemon."""

import os
import socket
import subprocess

from httpd import user_ids


class Manager:
    """Plays systemd for one daemon: holds its socket, and reads its messages."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.hears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.address = daemon.dir / "notify"
        self.hears.bind(str(self.address))
        os.chown(self.address, *user_ids())
        self.hears.settimeout(20)
        self.passed = self.listen(daemon.socket)

    def listen(self, path):
        held = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        held.bind(str(path))
        os.chown(path, 0, user_ids()[1])
        os.chmod(path, 0o660)
        held.listen(1024)
        return held

    def start(self, sockets=1, around=(), within=()):
        """Start the daemon with the socket as descriptor 3, 4, ...

        around and within: commands that start the shell, and the daemon from it.
        """
        fd = self.passed.fileno()
        redirections = " ".join(f"{3 + i}<&{fd}" for i in range(sockets))
        # The shell's process becomes the daemon: LISTEN_PID has to be its own.
        line = f"LISTEN_PID=$$ exec \"$@\" {redirections}"
        env = {**os.environ, "NOTIFY_SOCKET": str(self.address), "LISTEN_FDS": str(sockets),
               "LISTEN_FDNAMES": ":".join(["flashpached.socket"] * sockets)}
        with open(self.daemon.log, "ab") as log:
            self.daemon.process = subprocess.Popen(
                [*around, "bash", "-c", line, "bash", *within, *self.daemon.command()], pass_fds=[fd],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def hear(self):
        """The next message: {name: value}."""
        text = self.hears.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def close(self):
        self.daemon.stop()
        self.hears.close()
        self.passed.close()
