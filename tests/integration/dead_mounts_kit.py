# SPDX-License-Identifier: Apache-2.0
"""A document root with a local tree and, beside it, one on the lab's slowfs, which hangs or fails on request; and a
daemon."""

import contextlib
import signal
import subprocess
import time

import pytest

import slowfs
import tree
import wire
from conftest import built
from waiting import wait_for

FILES = 40
TTL_MS = 400
MOUNT_TIMEOUT_MS = 500
TIMEOUT_S = 2               # FlashpacheTimeout
STALE_MS = 600000
PROBE_S = 40                # a recovered mount is found within the longest probe interval


class Breakable(slowfs.Slowfs):
    """slowfs that hangs, fails and recovers on request."""

    def __init__(self, program, source, target):
        super().__init__(program, source, target, 0)
        self.control = target.with_name(target.name + ".control")
        self.control.write_text("normal\n")

    def command(self):
        command = super().command()
        return [*command[:1], "--control", str(self.control), *command[1:]]

    def look(self):
        """stat's report of the mount: ok, error or hang."""
        try:
            done = subprocess.run(["stat", str(self.target)], capture_output=True, timeout=0.5)
        except subprocess.TimeoutExpired:
            return "hang"
        return "error" if done.returncode else "normal"

    def behave(self, word):
        self.control.write_text(word + "\n")
        self.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.look() == word.partition("=")[0], f"slowfs to be {word}")

    def hang(self):
        """Does not look itself: that would be one more question."""
        self.control.write_text("hang\n")
        self.process.send_signal(signal.SIGHUP)

    def unmount(self):
        if self.process is not None:
            self.behave("normal")
        super().unmount()


class World:
    """A document root with both trees, a daemon, and perhaps a server."""

    def __init__(self, lab, base, name, **settings):
        self.lab, self.name = lab, name
        self.root = base / f"{name}-root"
        for i in range(FILES):
            for where in (self.root / "local", base / f"{name}-source"):
                tree.put(where / f"file{i}.txt", tree.content(f"file{i}", 3000))
        self.mount = Breakable(built("tests/lab/slowfs/slowfs"), base / f"{name}-source",
                               self.root / "slow")
        self.mount.mount()
        self.daemon = lab.daemon(f"{name}-daemon", **{"ttl_ms": TTL_MS, "workers": 4, "watch": "ttl",
                                 "mount_timeout_ms": MOUNT_TIMEOUT_MS, **settings}).start()

    def serve(self, timeout_s=TIMEOUT_S, config=""):
        return self.lab.flash(f"{self.name}-flash", self.root, self.daemon.socket,
                              config=f"FlashpacheTimeout {timeout_s}\n{config}").start()

    def path(self, tail):
        return self.root / tail

    def ask(self, tail, deadline_ms=20000):
        """(status, source, leasable?, seconds) over the wire."""
        with wire.greet(self.daemon.socket) as conn:
            begin = time.monotonic()
            packet = wire.ask(conn, wire.whole_lookup(self.path(tail), deadline_ms=deadline_ms))
            return (*wire.parse_answer(packet), time.monotonic() - begin)

    def report(self, what):
        with wire.greet(self.daemon.socket) as conn:
            return wire.parse_done(wire.ask(conn, wire.report(what)))[3]

    def stats(self):
        return {k: int(v) for k, v in (line.split() for line in self.report(wire.STATS).splitlines())}

    def fds(self):
        """The daemon's descriptors, without the directories that are kept open to begin walks at."""
        return self.daemon.fd_count() - self.stats()["open_dirs"]

    def settle(self):
        """Has the daemon keep the content of every file there: not at once, since they have just been made."""
        def all_kept():
            for i in range(FILES):
                self.ask(f"slow/file{i}.txt")
            return self.stats()["content_files"] >= FILES
        wait_for(all_kept, "the contents")

    @contextlib.contextmanager
    def hanging(self, number):
        """From now on the mount hangs, and so many connections wait for an answer."""
        self.mount.behave("hang")
        with contextlib.ExitStack() as stack:
            waiting = [stack.enter_context(wire.greet(self.daemon.socket)) for _ in range(number)]
            for i, conn in enumerate(waiting):
                conn.sendall(wire.whole_lookup(self.path(f"slow/none{i}/x/y"), deadline_ms=60000))
            yield waiting

    def is_out(self):
        line = [line for line in self.report(wire.MOUNTS).splitlines()
                if line.startswith(f"{self.mount.target} ")]
        assert len(line) == 1
        return line[0].endswith(" out-of-service")

    def until_out(self):
        """Asks until the mount is out of service."""
        def out():
            self.ask("slow/asked-until-out", 200)
            return self.is_out()
        wait_for(out, "the mount to go out of service")

    def until_back(self):
        wait_for(lambda: not self.is_out(), "the mount to be in service again", PROBE_S)


@pytest.fixture
def world(lab, base):
    slowfs.needed()
    worlds = []

    def make(name, **settings):
        worlds.append(World(lab, base, name, **settings))
        return worlds[-1]
    yield make
    for one in worlds:
        one.mount.unmount()
    lab.end()
