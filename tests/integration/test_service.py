# SPDX-License-Identifier: Apache-2.0
"""flashpached and a service manager: readiness, a passed socket, the unit's restrictions."""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading

import pytest

import confinement
import procs
import tree
import wire
from conftest import BUILD
from fetch import get
from httpd import user_ids
from service_kit import Manager
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

UNIT = "conf/systemd/flashpached.service"
CONNECTIONS = 40


@pytest.fixture(autouse=True, scope="module")
def with_systemd():
    if "#define HAVE_SYSTEMD 1" not in (BUILD / "config.h").read_text():
        pytest.skip("built without libsystemd: install libsystemd-dev and configure again")


@pytest.fixture
def manager(lab):
    made = Manager(lab.daemon(f"m{len(lab.started)}"))
    yield made
    made.close()


def answers(path):
    with wire.connect(path) as conn:
        conn.sendall(wire.hello())
        return bool(wire.receive(conn))


def test_ready_is_told_when_questions_are_answered(manager):
    manager.start()
    assert manager.hear()["READY"] == "1"
    assert answers(manager.daemon.socket)
    assert "FP0001" in manager.daemon.log_text()


def test_a_reload_and_the_end_are_told(manager):
    manager.start()
    manager.hear()
    manager.daemon.signal(signal.SIGHUP)
    reloading = manager.hear()
    assert reloading["RELOADING"] == "1" and int(reloading["MONOTONIC_USEC"]) > 0
    assert manager.hear()["READY"] == "1"
    assert manager.daemon.stop() == 0
    assert manager.hear() == {"STOPPING": "1"}


def test_a_reload_of_a_wrong_file_ends_too(manager):
    manager.start()
    manager.hear()
    manager.daemon.write_config("nonsense = 1\n")
    manager.daemon.signal(signal.SIGHUP)
    assert "RELOADING" in manager.hear()
    assert manager.hear()["READY"] == "1"
    assert answers(manager.daemon.socket)


def test_connections_during_a_restart_wait_and_are_answered(manager):
    """No connection is refused: the socket stays, and its queue holds those that came meanwhile."""
    path = manager.daemon.socket
    manager.start()
    manager.hear()
    assert manager.daemon.stop() == 0
    assert path.is_socket()
    waiting = [wire.connect(path) for _ in range(CONNECTIONS)]
    for conn in waiting:
        conn.sendall(wire.hello())
    manager.start()
    for conn in waiting:
        assert wire.receive(conn)
        conn.close()


def test_requests_during_restarts_are_served(manager, lab, base):
    root = base / "service-tree"
    tree.put(root / "file.txt", "served\n")
    manager.start()
    manager.hear()
    server = lab.flash("restarts", root, manager.daemon.socket).start()
    wrong, over = [], threading.Event()

    def ask():
        while not over.is_set():
            answer = get(server.port, "/file.txt")
            if answer != (200, b"served\n"):
                wrong.append(answer)
    thread = threading.Thread(target=ask)
    thread.start()
    for _ in range(3):
        manager.daemon.stop()
        manager.start()
        while "READY" not in manager.hear():
            pass
    over.set()
    thread.join()
    assert not wrong, wrong[:3]
    assert manager.daemon.log_text().count("FP0001 info: ready") == 4

    def asked_again():
        mark = server.mark()
        get(server.port, "/file.txt")
        return server.wait_entries(1, mark)[-1].note == "lease"
    wait_for(asked_again, "a lease from the daemon that was started last")


def test_without_a_manager_the_socket_is_its_own(lab):
    daemon = lab.daemon("alone").start()
    assert answers(daemon.socket)
    daemon.stop()
    assert wire.nobody_listens(daemon.socket)


def test_a_second_daemon_is_kept_away(manager, lab):
    manager.start()
    manager.hear()
    done = manager.daemon.run()
    assert done.returncode == 1 and "FP0003" in done.stderr
    assert answers(manager.daemon.socket)


def test_a_socket_at_another_path_is_refused(manager):
    manager.daemon.settings["socket"] = manager.daemon.socket_dir / "other.sock"
    manager.daemon.write_config()
    manager.start()
    assert manager.daemon.process.wait(20) == 1
    assert "FP0005" in manager.daemon.log_text()


def test_two_sockets_are_refused(manager):
    manager.start(sockets=2)
    assert manager.daemon.process.wait(20) == 1
    assert "passed 2 sockets" in manager.daemon.log_text()


def test_workers_do_not_hold_the_socket(manager):
    manager.start()
    manager.hear()
    wait_for(manager.daemon.worker_pids, "workers")
    inode = re.search(r"\d+", os.readlink(f"/proc/{manager.daemon.pid}/fd/3")).group()
    for pid in manager.daemon.worker_pids():
        assert f"socket:[{inode}]" not in procs.open_files(pid)


def test_capabilities_of_a_user_are_given_up(lab, base):
    """Not root, but with a right to use once, as a service manager may start it."""
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv (util-linux)")
    uid, gid = user_ids()
    daemon = lab.daemon("ambient", roots=[str(base)])
    os.chown(daemon.socket_dir, uid, gid)
    cap = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--init-groups",
           "--inh-caps=-all,+sys_admin,+setpcap", "--ambient-caps=-all,+sys_admin,+setpcap",
           "--bounding-set=-all,+sys_admin,+setpcap"]
    command, daemon.command = daemon.command, lambda *args: [*cap, *command(*args)]
    daemon.start()
    wait_for(daemon.worker_pids, "workers")
    wait_for(lambda: all(procs.state(p) == "S" for p in daemon.worker_pids()), "workers that wait")
    confinement.assert_confined(daemon.pid)
    daemon.stop()


# ---- the unit ----

def analyze(*args):
    return subprocess.run(["systemd-analyze", *args], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def unit(base):
    """The built unit with its socket's, naming an existing program."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze (package systemd)")
    directory = base / "units"
    directory.mkdir()
    for path in (BUILD / UNIT, (BUILD / UNIT).with_suffix(".socket")):
        text = re.sub(r"^ExecStart=\S+", f"ExecStart={BUILD}/backend/flashpached",
                      path.read_text(), flags=re.M)
        (directory / path.name).write_text(text)
    return directory / "flashpached.service"


def test_the_units_are_well_formed(unit):
    done = analyze("verify", str(unit), str(unit.with_suffix(".socket")))
    mistakes = [line for line in done.stderr.splitlines() if "flashpached" in line]
    assert not mistakes, mistakes


def test_the_service_is_confined(unit):
    done = analyze("security", "--offline=yes", "--threshold=20", "--no-pager", str(unit))
    assert done.returncode == 0, done.stdout[-400:] + done.stderr


def group(name):
    """The calls of one of systemd's groups, those of the groups in it too."""
    calls = set()
    for line in analyze("syscall-filter", "--no-pager", name).stdout.splitlines()[1:]:
        word = line.strip()
        if word and not word.startswith("#"):
            calls |= group(word) if word.startswith("@") else {word}
    return calls


def allowed_calls(unit):
    """The calls that SystemCallFilter= allows: its lines in their order."""
    allowed = set()
    for value in re.findall(r"^SystemCallFilter=(.*)$", unit.read_text(), flags=re.M):
        names = value.lstrip("~").split()
        calls = set().union(*(group(n) if n.startswith("@") else {n} for n in names))
        allowed = allowed - calls if value.startswith("~") else allowed | calls
    return allowed


def calls_of_the_program(trace):
    """The names of all calls since the start of the daemon's program."""
    lines = trace.read_text(errors="replace").splitlines()
    start = max(i for i, line in enumerate(lines) if "execve(" in line and line.endswith(" = 0"))
    found = (re.match(r"\d+ +(?:<\.\.\. )?(\w+)[( ]", line) for line in lines[start:])
    return {match.group(1) for match in found if match}


def use_everything(daemon, root):
    for i in range(20):
        with wire.greet(daemon.socket) as conn:
            assert wire.ask(conn, wire.whole_lookup(root / f"d{i}/file.txt"))
            assert wire.ask(conn, wire.report(wire.MOUNTS))
    with wire.greet(daemon.socket) as conn:
        wire.ask(conn, wire.purge(wire.ALL))
    worker = wait_for(daemon.worker_pids, "workers")[0]
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: "FP0020" in daemon.log_text(), "FP0020: a worker died")
    daemon.signal(signal.SIGUSR1)
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: "reread" in daemon.log_text(), "the reload")


@pytest.mark.not_sanitized("the sanitizer's calls are not ours")
def test_no_call_of_daemon_or_workers_is_filtered(unit, manager, base):
    """Started as the unit starts it; asked, a worker killed, reloaded, ended."""
    if not shutil.which("strace") or not shutil.which("setpriv"):
        pytest.skip("needs strace and setpriv (util-linux)")
    uid, gid = user_ids()
    trace = base / "service-calls"
    root = base / "filter-tree"
    for i in range(20):
        path = tree.put(root / f"d{i}/file.txt", "x" * (i * 3000))
        os.utime(path, (1e9, 1e9))
    manager.start(around=["strace", "-D", "-f", "-qq", "-s", "64", "-o", str(trace)],
                  within=["setpriv", f"--reuid={uid}", f"--regid={gid}", "--init-groups"])
    manager.hear()
    use_everything(manager.daemon, root)
    pid = manager.daemon.pid
    manager.daemon.stop()
    wait_for(lambda: re.search(rf"^{pid} +exit_group", trace.read_text(), re.M), "the trace's end")
    calls = calls_of_the_program(trace)
    assert {"recvmsg", "memfd_create", "openat"} <= calls
    assert not calls - allowed_calls(unit), calls - allowed_calls(unit)
    # Nor by their own filters.
    assert not [line for line in trace.read_text().splitlines() if " = -1 ENOSYS" in line]
