# SPDX-License-Identifier: Apache-2.0
"""After any fault of the daemon every request is answered, and hits come back."""

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager, suppress

import pytest

import fault_kit
import procs
import tree
from conftest import HERE
from fault_kit import HOT, PAUSE, ROUNDS, SETTINGS, daemon, server, until_well  # noqa: F401 (fixtures)
from fetch import get
from httpd import HITS
from shifted_clock import shifted
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

DAY = 86400
AS_USER = ["setpriv", "--reuid=www-data", "--regid=www-data", "--init-groups", "--"]
JUMPS = (DAY, -DAY, 400 * DAY, -400 * DAY)


@pytest.fixture(autouse=True)
def daemon_runs(request):
    """Each test starts with a daemon that answers, whatever the last one did to it."""
    yield
    if "daemon" in request.fixturenames:
        daemon = request.getfixturevalue("daemon")
        if daemon.process is None or daemon.process.poll() is not None:
            daemon.start()


# The daemon

def test_daemon_killed(under_load, server, daemon):
    with under_load(server, "daemon killed, started again as systemd would") as fault:
        for _ in range(ROUNDS):
            daemon.kill()
            fault.falls_back()
            daemon.start()
            fault.ends()


def test_daemon_stopped(under_load, server, daemon):
    with under_load(server, "daemon stopped (SIGSTOP), continued") as fault:
        for _ in range(ROUNDS):
            daemon.signal(signal.SIGSTOP)
            try:
                wait_for(lambda: procs.state(daemon.pid) == "T", "the daemon to stop")
                fault.falls_back()
            finally:
                daemon.signal(signal.SIGCONT)
            fault.ends()


def test_daemon_restarted(under_load, server, daemon):
    with under_load(server, "daemon restarted in order") as fault:
        for _ in range(ROUNDS):
            daemon.restart()
            fault.ends()


def test_settings_reread(under_load, server, daemon):
    usual = dict(daemon.settings)
    with under_load(server, "daemon's settings changed and reread, to and fro") as fault:
        for most in (1000, 200000) * ROUNDS:
            daemon.settings.update(content_file_max=most % 999, ttl_ms=most)
            daemon.write_config()
            daemon.signal(signal.SIGHUP)
            fault.goes_on()
        daemon.settings = usual
        daemon.write_config()
        daemon.signal(signal.SIGHUP)
        fault.ends()


# Another version of the wire

@pytest.fixture(scope="module")
def other_version(base):
    """A daemon of another release, where www-data may run it."""
    directory = base / "other-version"
    directory.mkdir()
    for name in ("other_version.py", "wire.py"):
        shutil.copy(HERE / name, directory)
    (directory / "other_version.py").chmod(0o755)
    return directory / "other_version.py"


def until_refused(server):
    mark = server.mark()
    wait_for(lambda: "version" in {e.reason for e in server.entries(mark)}, "the other version's answer")


def test_other_version(under_load, server, daemon, other_version):
    with under_load(server, "daemon of another protocol version in its place, and back") as fault:
        for _ in range(ROUNDS):
            daemon.stop()
            other = subprocess.Popen([other_version, f"socket={daemon.socket}"])
            try:
                wait_for(daemon.socket.exists, "the other daemon's socket")
                until_refused(server)
                fault.goes_on()
            finally:
                procs.end(other)
            daemon.start()
            fault.ends()


@pytest.fixture
def httpds_own(lab, fault_root, module_path, flashpached_program):
    """httpd with a daemon of its own, run by way of a link that can lead to another release."""
    program = lab.base / "flashpached"
    lead_to(program, flashpached_program)
    server = fault_kit.with_own_daemon(lab, fault_root, module_path, program)
    server.program = program
    return server.start()


def lead_to(program, target):
    """At no moment is the program absent."""
    new = program.with_name("program.new")
    new.symlink_to(target)
    new.rename(program)


def test_own_daemon_upgraded(under_load, httpds_own, other_version, flashpached_program):
    server = httpds_own
    with under_load(server, "httpd's own daemon replaced by one of another version, and back",
                    note=PAUSE) as fault:
        for _ in range(ROUNDS):
            lead_to(server.program, other_version)
            server.graceful()
            until_refused(server)
            fault.goes_on()
            lead_to(server.program, flashpached_program)
            server.graceful()
            fault.ends()


def test_own_daemon_killed(under_load, httpds_own):
    with under_load(httpds_own, "httpd's own daemon killed",
                    note="httpd starts it again, one that had lived for less than 30 s after a pause") as fault:
        os.kill(fault_kit.own_daemon(httpds_own), signal.SIGKILL)
        fault.ends()


# Workers

def are_replaced(daemon, victims):
    def replaced():
        now = daemon.worker_pids()
        return len(now) == SETTINGS["workers"] and not set(now) & set(victims)
    wait_for(replaced, "other workers")


NUMBERS = pytest.mark.parametrize("number,named", ((1, "one worker"), (SETTINGS["workers"], "all workers")))


@NUMBERS
def test_workers_killed(under_load, server, daemon, number, named):
    with under_load(server, f"{named} killed") as fault:
        for _ in range(ROUNDS):
            victims = daemon.worker_pids()[:number]
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            are_replaced(daemon, victims)
            fault.ends()


@NUMBERS
def test_workers_hung(under_load, server, daemon, number, named):
    """The daemon kills a worker that does not answer, and makes another."""
    with under_load(server, f"{named} stopped (SIGSTOP)") as fault:
        for _ in range(ROUNDS):
            victims = daemon.worker_pids()[:number]
            for pid in victims:
                os.kill(pid, signal.SIGSTOP)
            fault.goes_on()
            fault.ends()
            # One worker alone may not have had a question.
            assert number == 1 or not set(victims) <= set(daemon.worker_pids())
            for pid in set(victims) & set(daemon.worker_pids()):
                with suppress(ProcessLookupError):      # the daemon has killed it by now
                    os.kill(pid, signal.SIGCONT)


def test_maker_of_workers_killed(under_load, server, daemon):
    with under_load(server, "the process that makes workers killed, which ends them") as fault:
        for _ in range(ROUNDS):
            victims = daemon.worker_pids()
            os.kill(daemon.spawner_pid(), signal.SIGKILL)
            are_replaced(daemon, victims)
            fault.ends()


# The socket

@contextmanager
def is_told(daemon, fault):
    """Root made the socket, and only root makes another: the daemon reports that, and goes on."""
    told = daemon.log_text().count("was removed")
    yield
    wait_for(lambda: daemon.log_text().count("was removed") > told, "word of the loss")
    assert "start this daemon again" in daemon.log_text()
    fault.goes_on()


def test_socket_removed(under_load, server, daemon):
    with under_load(server, "socket removed; then graceful restart, and the daemon started again",
                    note=PAUSE) as fault:
        for _ in range(ROUNDS):
            with is_told(daemon, fault):
                daemon.socket.unlink()
            # New children can connect only by the socket's name.
            server.graceful()
            fault.falls_back()
            daemon.restart()
            fault.ends()


def test_directory_above_the_socket_is_closed(lab, flashpachectl):
    """The socket is there, and nobody of Apache's user reaches it."""
    daemon = lab.daemon("closed", **SETTINGS)
    daemon.dir.chmod(0o700)
    daemon.start()

    def told(what):
        wait_for(lambda: what in daemon.log_text(), f"'{what}' in the log", timeout=10)

    def check():
        return flashpachectl("-s", daemon.socket, "check").stdout
    told("cannot be looked at (Permission denied)")
    assert f"cannot pass {daemon.dir}, so new children" in check()
    daemon.dir.chmod(0o755)
    assert "cannot pass" not in check()
    assert "was re" not in daemon.log_text()
    # The daemon sees again what becomes of it.
    daemon.socket.rename(daemon.socket.with_name("away"))
    told("was removed")


@contextmanager
def emptied(directory, user="root", mode=0o710):
    away = directory.with_name("away")
    directory.rename(away)
    shutil.rmtree(away)
    yield
    directory.mkdir(mode=mode)
    shutil.chown(directory, user, "www-data")


def test_socket_directory_emptied(under_load, server, daemon):
    """The lock goes, too. The next daemon takes both again."""
    with under_load(server, "socket's directory removed and made again; then graceful restart, and the daemon "
                    "started again", note=PAUSE) as fault:
        for _ in range(ROUNDS):
            with is_told(daemon, fault):
                with emptied(daemon.socket_dir):
                    pass
            server.graceful()
            daemon.restart()
            fault.ends()
    second = daemon.run()
    assert second.returncode != 0 and f"process {daemon.pid}" in second.stderr


# Of a daemon and an httpd that a user started

@pytest.fixture(scope="module")
def users_daemon(lab):
    made = lab.daemon("users", **SETTINGS)
    shutil.chown(made.socket_dir, "www-data", "www-data")
    made.around = AS_USER
    return made.start()


@pytest.fixture(scope="module")
def users_server(lab, fault_root, users_daemon):
    made = lab.flash("users-httpd", fault_root, users_daemon.socket, config=fault_kit.config(fault_root))
    shutil.chown(made.dir, "www-data", "www-data")
    made.around = AS_USER
    return made.start()


def connects_anew(server, daemon):
    """New children can connect only by the socket's name."""
    wait_for(daemon.socket.exists, "another socket")
    server.graceful()


def test_socket_of_a_user_removed(under_load, users_server, users_daemon):
    with under_load(users_server, "socket of a user's daemon removed; then graceful restart", note=PAUSE) as fault:
        for _ in range(ROUNDS):
            users_daemon.socket.unlink()
            connects_anew(users_server, users_daemon)
            fault.ends()


def test_socket_directory_of_a_user_emptied(under_load, users_server, users_daemon):
    """The lock goes, too: still no second daemon takes the place."""
    with under_load(users_server, "its directory removed and made again; then graceful restart",
                    note=PAUSE) as fault:
        for _ in range(ROUNDS):
            with emptied(users_daemon.socket_dir, "www-data", 0o750):
                fault.goes_on()
            connects_anew(users_server, users_daemon)
            fault.ends()
    second = subprocess.run([*users_daemon.around, *users_daemon.command()], capture_output=True, text=True, timeout=20)
    assert second.returncode != 0 and f"process {users_daemon.pid}" in second.stderr


# Clocks and logs

@pytest.fixture
def clock(lab):
    """set(seconds): sets the wall clock of all processes started from now on ahead by that."""
    with shifted(lab.base) as made:
        yield made.set


def test_clock_jumps(under_load, lab, fault_root, clock):
    """httpd measures by that clock how long a request takes to come, so stock, too, answers 408 now and then."""
    def jumps(one, fault, tell=lambda: None):
        for jump in JUMPS * ROUNDS:
            clock(jump)
            tell()
            changed = fault_root / "changed.txt"
            tree.put(changed, f"jump {jump}\n")
            wait_for(lambda: get(one.port, "/changed.txt") == (200, changed.read_bytes()), "the change")
            fault.ends()
    daemon = lab.daemon("clock", **SETTINGS).start()
    stock = lab.stock("clock-stock", fault_root, config=fault_kit.config(fault_root)).start()
    server = lab.flash("clock-flash", fault_root, daemon.socket,
                       config=fault_kit.config(fault_root)).start()
    with under_load(stock, "", denies=True) as beside:
        jumps(stock, beside)
    with under_load(server, "wall clock set, a day and 400 days, forth and back", beside=beside,
                    denies=True) as fault:
        jumps(server, fault, lambda: daemon.signal(signal.SIGUSR1))
    assert len({line[:4] for line in daemon.log_text().splitlines()}) >= 3, "years that the daemon saw"


def test_logs_rotated(under_load, lab, fault_root):
    """The daemon's own file is opened again on SIGHUP, httpd's at a graceful restart."""
    daemon = lab.daemon("rotated", **SETTINGS)
    log = daemon.dir / "logs/log"
    log.parent.mkdir()
    shutil.chown(log.parent, "www-data", "www-data")
    daemon.settings.update(log=log)
    daemon.write_config()
    daemon.start()
    server = lab.flash("rotated-flash", fault_root, daemon.socket,
                       config=fault_kit.config(fault_root)).start()
    try:
        with under_load(server, "logs of daemon and httpd rotated", note=PAUSE) as fault:
            for number in range(ROUNDS):
                rotate(server, number)
                log.rename(f"{log}.{number}")
                daemon.signal(signal.SIGHUP)
                wait_for(lambda: log.exists() and "reread" in log.read_text(), "the daemon's new log")
                fault.ends()
    finally:
        server.stop()
        daemon.stop()


def rotate(server, number):
    for log in (server.access_log, server.error_log):
        log.rename(f"{log}.{number}")
    server.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: server.error_log.exists() and "resuming" in server.error_log.read_text()
             and server.access_log.exists(), "httpd's new logs")


# Without a fault

def test_old_workers_leave_no_connection_behind(server, daemon):
    """Graceful restarts must not pile up descriptors in the daemon."""
    until_well(server)
    server.graceful()
    until_well(server)
    before = daemon.fd_count()
    for _ in range(3):
        server.graceful()
        until_well(server)
    # A connection of the generation that is just ending may still be there.
    wait_for(lambda: daemon.fd_count() <= before + 4, "the old workers' connections to close", 30)


@pytest.mark.parametrize("mpm", ("prefork", "worker", "event"))
def test_without_a_daemon_requests_fall_back(lab, fault_root, base, mpm):
    server = lab.flash(f"alone-{mpm}", fault_root, base / "nobody-listens-here.sock", mpm=mpm).start()
    for name in list(HOT)[:20]:
        assert get(server.port, "/" + name) == (200, tree.content(name, HOT[name]))
    assert get(server.port, "/missing")[0] == 404
    notes = {e.note for e in server.wait_entries(21)[-21:] if e.method == "GET"}
    server.stop()
    assert notes == {"fallback"}


def test_engine_off_asks_nobody(lab, fault_root, daemon):
    server = lab.flash("off", fault_root, daemon.socket, config="FlashpacheEngine Off").start()
    mark = server.mark()
    assert get(server.port, "/f1.bin")[0] == 200
    assert not {e.note for e in server.wait_entries(1, mark)} & (HITS | {"miss"})
    server.stop()
