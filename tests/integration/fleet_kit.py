# SPDX-License-Identifier: Apache-2.0
"""A real redis-server in a directory of its own, and one that gives the answers that a test chooses."""

import shutil
import socket
import subprocess
import threading
from pathlib import Path

import procs
from daemon import quoted
from waiting import wait_for

SENDER = "0123456789abcdef"


def why_not():
    """The reason why Redis cannot run here, or None."""
    missing = [name for name in ("redis-server", "redis-cli") if not shutil.which(name)]
    return f"needs {' and '.join(missing)} (packages redis-server, redis-tools)" if missing else None


class Redis:
    """One server, on a Unix-domain socket only. Its stored data outlive its end."""

    def __init__(self, base, name, *options):
        self.dir = Path(base) / name
        self.dir.mkdir(parents=True)
        self.dir.chmod(0o755)
        self.socket, self.options = self.dir / "redis.sock", options
        self.process = None

    def start(self):
        command = ["redis-server", "--port", "0", "--unixsocket", self.socket, "--unixsocketperm", "777",
                   "--dir", self.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
                   *self.options]
        with open(self.dir / "redis.log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        wait_for(lambda: self.cli("PING", check=False) in ("PONG", "NOAUTH Authentication required."),
                 "redis-server to answer")
        return self

    def cli(self, *args, check=True):
        done = subprocess.run(["redis-cli", "-s", self.socket, *map(str, args)], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
        assert not check or (done.returncode == 0 and "ERR" not in done.stdout), done
        return done.stdout.strip()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        if self.process is not None:
            procs.end(self.process)
        self.process = None


class BadRedis:
    """Lets everybody in, and then answers every question with the same bytes.

    With joins it takes entries, and gives each of them the same id."""

    def __init__(self, path, answer, joins=False):
        self.answer, self.answered = answer, 0
        self.joins, self.joined = joins, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        Path(path).chmod(0o777)
        self.listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        try:
            with conn:
                while (asked := conn.recv(65536)) and (b"PING" in asked or (self.joins and b"XADD" in asked)):
                    self.joined += b"XADD" in asked
                    conn.sendall(b"+PONG\r\n" if b"PING" in asked else b"$3\r\n1-1\r\n")
                while True:
                    conn.sendall(self.answer)
                    self.answered += 1
        except OSError:
            return

    def close(self):
        # A plain close would leave accept() waiting.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def section(url, roots, **settings):
    """The fleet's part of the configuration file."""
    lines = [f"url = {quoted(url)}", f"roots = {{{', '.join(quoted(r) for r in roots)}}}"]
    lines += [f"{k} = {quoted(v)}" for k, v in settings.items()]
    return "fleet {\n" + "\n".join(lines) + "\n}\n"


def fleet_stats(flashpachectl, daemon):
    """The fleet's counters of one daemon, without their prefix."""
    done = flashpachectl("-s", daemon.socket, "stats")
    assert done.returncode == 0, done
    found = dict(line.split() for line in done.stdout.splitlines())
    return {k[len("fleet_"):]: int(v) for k, v in found.items() if k.startswith("fleet_")}
