# SPDX-License-Identifier: Apache-2.0
"""The daemon without rights: the limits of its processes, and everything that still works."""

import os
import shutil
import signal

import pytest

import confinement
import procs
import tree
import wire
from daemon import SPAWNER, WORKER
from fetch import get
from httpd import HITS, user_ids
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

WORKERS = 3


@pytest.fixture
def root(base):
    root = base / "sandbox-tree"
    for i in range(20):
        tree.put(root / f"file{i}.txt", f"{i}\n")
    return root


def ready(daemon):
    wait_for(lambda: len(daemon.worker_pids()) == WORKERS, "all workers")
    # A worker enters its filter before it reads a task.
    wait_for(lambda: all(procs.state(p) == "S" for p in daemon.worker_pids()), "workers that wait")
    return daemon


def one(daemon, name):
    return next(p for p, comm in procs.descendants(daemon.pid).items() if comm == name)


def ask(daemon, path):
    """The answer about a path."""
    with wire.greet(daemon.socket) as conn:
        return wire.ask(conn, wire.whole_lookup(path))


def test_no_process_has_rights(lab):
    with lab.daemon("rights", workers=WORKERS) as daemon:
        count = confinement.assert_confined(ready(daemon).pid)
        assert count == {confinement.DAEMON: 1, confinement.MONITOR: 1, SPAWNER: 1, WORKER: WORKERS,
                         confinement.CLOSER: confinement.CLOSERS}


def test_filters_can_be_left_out(lab, flashpachectl):
    with lab.daemon("free", workers=WORKERS, seccomp="false") as daemon:
        confinement.assert_confined(ready(daemon).pid, filters=False)
        assert "seccomp off" in flashpachectl("-s", daemon.socket, "status").stdout
        assert "no filters of system calls" in flashpachectl("-s", daemon.socket, "check").stdout
        daemon.settings["seccomp"] = "true"
        daemon.write_config()
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: "FP0009" in daemon.log_text(), "word that a restart is needed")


def test_filters_are_told_of(lab, flashpachectl):
    if not confinement.has_filters():
        pytest.skip("built with --without-seccomp")
    with lab.daemon("told") as daemon:
        assert "seccomp on" in flashpachectl("-s", daemon.socket, "status").stdout
        assert "FP0070" not in daemon.log_text()


def test_a_replaced_spawner_makes_confined_workers(lab, root, outcome):
    with lab.daemon("spawner", workers=WORKERS) as daemon:
        server = lab.flash("spawner-httpd", root, daemon.socket).start()
        assert get(server.port, "/file0.txt") == (200, b"0\n")
        before = set(ready(daemon).worker_pids())
        os.kill(daemon.spawner_pid(), signal.SIGKILL)
        answers = [get(server.port, f"/file{i}.txt") for i in range(10)]
        wait_for(lambda: not before & set(daemon.worker_pids()), "the end of its workers")
        confinement.assert_confined(ready(daemon).pid)
        assert "FP0022" in daemon.log_text()
        mark = server.mark()
        answers += [get(server.port, f"/file{i}.txt") for i in range(10, 20)]
        assert {e.note for e in server.wait_entries(10, mark)} == {"miss"}
        failed = sum(answer != (200, f"{i}\n".encode()) for i, answer in enumerate(answers))
        outcome("fault", "the process that forks workers killed", requests=len(answers), failed=failed)
        assert failed == 0


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace to take a call away")
@pytest.mark.parametrize("victim", ("daemon", "monitor"))
def test_processes_end_together_without_close_range(lab, root, tmp_path, victim):
    """As with a kernel before 5.9: a child that kept the other end of its own socket would go on for ever."""
    daemon = lab.daemon(f"old-{victim}", workers=WORKERS)
    daemon.around = ["strace", "-D", "-f", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=close_range",
                     "-e", "inject=close_range:error=ENOSYS"]
    daemon.start()
    wait_for(lambda: len(daemon.worker_pids()) == WORKERS, "all workers")
    assert ask(daemon, root / "file0.txt")
    family = daemon.family()
    assert "ENOSYS" in (tmp_path / "trace").read_text()
    if victim == "daemon":
        daemon.kill()
    else:
        os.kill(one(daemon, confinement.MONITOR), signal.SIGKILL)
    wait_for(lambda: not any(procs.state(pid) not in (None, "Z") for pid in family), "all to end")


def test_without_its_monitor_the_daemon_ends(lab, root):
    """It could open no file again; its supervisor starts it again."""
    daemon = lab.daemon("monitor", workers=WORKERS).start()
    os.kill(one(ready(daemon), confinement.MONITOR), signal.SIGKILL)
    assert daemon.process.wait(20) == 1
    assert "FP0071" in daemon.log_text()
    with daemon:
        assert ask(daemon, root / "file0.txt")


def test_httpd_starts_a_daemon_without_monitor_again(lab, root, module_path, flashpached_program, outcome):
    config = f"FlashpacheDaemonProgram {flashpached_program}\n"
    server = lab.stock("monitor-auto", root, module=module_path, config=config)

    def daemon():
        below = procs.descendants(server.process.pid)
        return next((p for p, comm in below.items() if comm == confinement.DAEMON), None)

    def hit():
        mark = server.mark()
        assert get(server.port, "/file1.txt") == (200, b"1\n")
        return server.wait_entries(1, mark)[-1].note in HITS
    with server:
        wait_for(hit, "a hit")
        first = daemon()
        confinement.assert_confined(first)
        monitor = next(p for p, comm in procs.descendants(first).items() if comm == confinement.MONITOR)
        os.kill(monitor, signal.SIGKILL)
        answers = [get(server.port, f"/file{i}.txt") for i in range(20)]
        wait_for(lambda: daemon() not in (None, first), "another daemon")
        wait_for(hit, "a hit again")
        failed = sum(answer != (200, f"{i}\n".encode()) for i, answer in enumerate(answers))
        outcome("fault", "the process that opens files for the daemon killed, FlashpacheDaemon auto",
                requests=len(answers), failed=failed)
        assert failed == 0


# Files that the daemon has the monitor open

def test_log_that_is_rotated_and_another_one(lab, base):
    logs = base / "sandbox-logs"
    logs.mkdir()
    os.chown(logs, *user_ids())
    with lab.daemon("files", workers=WORKERS, log=logs / "first.log") as daemon:
        os.rename(logs / "first.log", logs / "rotated.log")
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: "reread" in daemon.log_text(), "the rotated log's successor")
        daemon.settings["log"] = logs / "second.log"
        daemon.write_config()
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: "reread" in daemon.log_text(), "the other log")
        daemon.write_config("nonsense = 1\n")
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: "has mistakes" in daemon.log_text(), "word of mistakes")
        confinement.assert_confined(daemon.pid)
    assert wire.nobody_listens(daemon.socket)


def test_mistakes_are_told_where_the_daemon_was_started(lab):
    with lab.daemon("mistakes") as daemon:
        daemon.write_config("ttl_ms = 0\n")
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: "has mistakes" in daemon.log_text(), "word of mistakes")
        assert "ttl_ms = 0 is out of range" in daemon.log_text()
        daemon.write_config()
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: "reread" in daemon.log_text(), "the reload")
