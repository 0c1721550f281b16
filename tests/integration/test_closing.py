# SPDX-License-Identifier: Apache-2.0
"""Closing a file may wait: for a FUSE file system that does not answer, or for the blocks of a large removed file.
The daemon's loop must not."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

import pytest

import confinement
import procs
import slowfs
import tree
import wire
from conftest import built
from content_kit import SETTLED_S
from dead_mounts_kit import Breakable
from fetch import Client
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

FILES = 100
WAIT_MS = 300
LOOK_MS = 60_000            # a killed worker would let the close go on
WORKERS = 4
HUNG = 6                    # file systems: more than processes that close
OK, UNAVAILABLE = 0, 23     # statuses


class Closable(Breakable):
    """slowfs that gets a question at each close of a file, and may leave it without an answer."""

    def command(self):
        command = super().command()
        return [*command[:1], "--flush", *command[1:]]

    def behave(self, word):
        before = self.process and self.control.read_text()
        self.control.write_text(word + "\n")
        self.process.send_signal(signal.SIGHUP)
        if word == "hang-flush" and before:
            wait_for(self.hangs, "closes to hang")

    def hangs(self):
        """True if a close waits: cat closes the file at its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["cat", str(self.target / "probe.txt")], capture_output=True, timeout=0.5)
            return False
        return True


class World:
    def __init__(self, lab, base, name, **settings):
        slowfs.needed()
        self.root = base / f"{name}-root"
        for i in range(FILES):
            for where in (self.root / "local", base / f"{name}-source"):
                tree.put(where / f"file{i}.txt", tree.content(f"file{i}", 3000))
        tree.put(base / f"{name}-source" / "probe.txt", "probe\n")
        self.mount = Closable(built("tests/lab/slowfs/slowfs"), base / f"{name}-source", self.root / "slow")
        self.mount.mount()
        self.daemon = lab.daemon(f"{name}-daemon", **{"workers": WORKERS, "content_file_max": 0,
                                 "lookup_timeout_ms": LOOK_MS, "mount_timeout_ms": WAIT_MS, **settings}).start()

    def ask(self, tail):
        """The status of the answer about a path. The test does not receive the descriptor: closing it would hang."""
        with wire.greet(self.daemon.socket) as conn:
            conn.sendall(wire.whole_lookup(self.root / tail))
            return wire.parse_answer(conn.recv(65536))[0]

    def stats(self):
        with wire.greet(self.daemon.socket) as conn:
            text = wire.parse_done(wire.ask(conn, wire.report(wire.STATS)))[3]
        return {k: int(v) for k, v in (line.split() for line in text.splitlines())}

    def learn(self, directory, number=FILES):
        return [self.ask(f"{directory}/file{i}.txt") for i in range(number)]

    def purge(self, directory):
        with wire.greet(self.daemon.socket) as conn:
            return wire.parse_done(wire.ask(conn, wire.purge(wire.TREE, self.root / directory)))[1]

    def end(self):
        self.mount.behave("normal")
        self.daemon.stop()
        self.mount.unmount()


@pytest.fixture
def world(lab, base, request):
    world = World(lab, base, request.node.name.replace("test_", "")[:20])
    yield world
    world.end()


def closers(daemon):
    return [pid for pid, name in procs.descendants(daemon.pid).items() if name == confinement.CLOSER]


def test_workers_that_hang_at_a_close_are_counted(world):
    """A worker closes the files that it opened. Until then it counts as at work at that mount."""
    assert world.ask("local/file0.txt") == OK
    world.mount.behave("hang-flush")
    assert world.ask("slow/file0.txt") == OK        # and the worker hangs
    assert world.stats()["running"] >= 1
    for i in range(1, WORKERS):
        world.ask(f"slow/file{i}.txt")
    assert world.learn("local", 50) == [OK] * 50
    assert world.stats()["timeouts"] == 0
    wait_for(lambda: world.ask(f"slow/file{FILES - 1}.txt") == UNAVAILABLE, "the mount to be out of service")
    world.mount.behave("normal")
    wait_for(lambda: world.stats()["running"] == 0, "the workers to come back")
    wait_for(lambda: world.ask("slow/file1.txt") == OK, "the mount to be in service")


def ask_while_closes_hang(world):
    """Of a file that may not be held open the daemon has its descriptor closed as soon as it is answered."""
    world.mount.behave("hang-flush")
    assert world.ask("slow/file0.txt") == OK
    wait_for(lambda: world.stats()["closing"] >= 1, "a close to wait")


def test_local_files_are_closed_while_others_hang(lab, base):
    """However many file systems hang."""
    world = World(lab, base, "many", workers=4 * HUNG, content_file_max=0)
    mounts = [world.mount] + [Closable(world.mount.program, world.mount.source, world.root / f"slow{i}") for i in range(1, HUNG)]
    try:
        for mount in mounts:
            if mount is not world.mount:
                mount.mount()
            mount.behave("hang-flush")
            assert world.ask(f"{mount.target.name}/file0.txt") == OK
        wait_for(lambda: world.stats()["closing"] >= HUNG, "closes to wait")
        waiting = world.stats()["closing"]
        for _ in range(3):
            assert world.learn("local") == [OK] * FILES
            assert world.purge("local") >= FILES
        wait_for(lambda: world.stats()["closing"] <= waiting, "all of the local files to be closed")
    finally:
        for mount in mounts[1:]:
            mount.behave("normal")
        world.end()
        for mount in mounts[1:]:
            mount.unmount()


def test_it_ends_while_closes_hang(world):
    ask_while_closes_hang(world)
    assert world.daemon.stop() == 0
    world.daemon.start()
    assert world.ask("local/file0.txt") == OK


def test_a_killed_one_lets_go_while_closes_hang(world):
    """The hung closer keeps the descriptors; another one closes those of the next daemon."""
    ask_while_closes_hang(world)
    with wire.greet(world.daemon.socket) as conn:
        world.daemon.kill()
        assert wire.is_closed_by_peer(conn)
    world.daemon.start()
    assert world.ask("local/file0.txt") == OK


def test_the_end_of_a_closer_ends_the_daemon(world):
    os.kill(closers(world.daemon)[0], signal.SIGKILL)
    assert world.daemon.process.wait(20) == 1
    assert "FP0080" in world.daemon.log_text()
    world.daemon.start()


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace to see the calls")
def test_the_loop_closes_no_file(lab, base, tmp_path):
    """strace shows which process closes files of the tree."""
    root = base / "closing-strace"
    for i in range(20):
        tree.put(root / f"file{i}.txt", tree.content(f"file{i}", 3000))
    daemon = lab.daemon("closing-traced", workers=2, content_file_max=0)
    with daemon:
        trace = tmp_path / "trace"
        tracer = subprocess.Popen(["strace", "-qq", "-y", "-e", "trace=close,dup2,dup3,close_range", "-o",
                                   str(trace), "-p", str(daemon.pid)])
        wait_for(lambda: confinement.status(daemon.pid)["TracerPid"] != "0", "strace to be attached")
        with wire.greet(daemon.socket) as conn:
            for i in range(20):
                wire.ask(conn, wire.whole_lookup(root / f"file{i}.txt"))
            for i in range(20):
                os.unlink(root / f"file{i}.txt")
                wire.ask(conn, wire.whole_lookup(root / f"file{i}.txt"))
        wait_for(lambda: daemon.counters()["closing"] == 0, "all to be closed")
        wait_for(lambda: daemon.counters()["files"] == 0, "all to be forgotten")
        tracer.terminate()
        tracer.wait(20)
        closed = [line for line in trace.read_text().splitlines() if line.startswith("close(")]
        assert closed, "strace saw the connections"
        assert not [line for line in closed if str(root) in line]


def open_on(device, daemon):
    """The number of files and directories of the device that the daemon and its processes have open."""
    def is_there(file):
        with contextlib.suppress(OSError):
            return os.stat(file).st_dev == device
        return False
    return sum(is_there(f"/proc/{pid}/fd/{fd}") for pid in daemon.family() for fd in os.listdir(f"/proc/{pid}/fd"))


def test_a_file_system_that_is_unmounted_is_let_go(lab, base):
    """Nobody asks for anything there again, and its device is free."""
    point = base / "let-go"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", point], check=True)
    try:
        for i in range(FILES):
            tree.put(point / f"d{i}" / "file.txt", "content\n")
        device = point.stat().st_dev
        daemon = lab.daemon("let-go-daemon", content_file_max=0).start()
        with wire.greet(daemon.socket) as conn:
            for i in range(FILES):
                assert wire.parse_answer(wire.ask(conn, wire.whole_lookup(point / f"d{i}" / "file.txt")))[0] == OK
                assert wire.parse_answer(wire.ask(conn, wire.whole_lookup(point / f"d{i}")))[0] == OK
        assert open_on(device, daemon) > FILES
    finally:
        subprocess.run(["umount", "-l", point], check=True)
    wait_for(lambda: open_on(device, daemon) == 0, "the daemon to let go of the file system", timeout=20)


@pytest.mark.parametrize("asked", ("absent", "file.txt"))
def test_a_file_system_can_be_unmounted(lab, base, asked):
    """Some seconds after the last request, by a plain umount: small files are kept by their content, and no directory is
    open for ever."""
    point = base / f"unmounted-{asked}"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", point], check=True)
    tree.put(point / "d/file.txt", "content\n")
    time.sleep(SETTLED_S)       # then it is kept by its content
    server = lab.under_test(f"unmounted-{asked}", point)
    with Client(server.port) as client:
        for _ in range(12):
            client.get(f"/d/{asked}")
        wait_for(lambda: subprocess.run(["umount", point], capture_output=True).returncode == 0, "the umount", 20)
    lab.end()
