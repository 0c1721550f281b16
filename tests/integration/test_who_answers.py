# SPDX-License-Identifier: Apache-2.0
"""Only root, or the service manager, decides which daemon answers httpd's children."""

import contextlib
import os
import shutil
import signal
import subprocess

import pytest

import procs
import tree
import who_kit
from conftest import BUILD
from fetch import get
from httpd import HITS, user_ids
from service_kit import Manager
from test_auto_daemon import daemon_of, socket_of
from waiting import restart, wait_for

pytestmark = pytest.mark.needs_flashpache

FILE = b"what the file says\n"
DENIED = "another's secret\n"
NAMES = {"flashpached", "fp-closer", "fp-monitor", "fp-spawner", "fp-worker"}
STARTS = 5


@pytest.fixture(scope="module")
def root(base):
    root = base / "who-tree"
    tree.put(root / "file.txt", FILE.decode())
    tree.put(root / "closed/file.txt", DENIED)
    tree.put(root / "hidden/file.txt", "only without the mount\n")
    return root


def as_user():
    """The command that starts another one as the daemon's user."""
    uid, gid = user_ids()
    return ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--init-groups", "--"]


class Auto:
    """httpd starts the daemon."""

    def __init__(self, lab, root, module_path, program, config):
        self.server = lab.stock(f"w{len(lab.started)}", root, module=module_path, mpm="event",
                                config=f"FlashpacheDaemonProgram {program}\n{config}").start()
        self.socket = socket_of(self.server)

    @property
    def pid(self):
        return daemon_of(self.server)

    def log_text(self):
        return self.server.error_text()

    def make_again(self):
        """As FP0005 advises."""
        before = self.pid
        self.server.graceful()
        daemon_of(self.server, but=before)

    def stop(self):
        self.server.stop()


class External:
    """Another program starts the daemon, with or without the socket."""

    def __init__(self, lab, root, config):
        self.daemon = lab.daemon(f"w{len(lab.started)}")
        self.socket = self.daemon.socket
        self.begin()
        self.server = lab.flash(f"h{len(lab.started)}", root, self.socket, mpm="event", config=config).start()

    def log_text(self):
        return self.daemon.log_text()

    @property
    def pid(self):
        return self.daemon.pid

    def stop(self):
        self.server.stop()
        self.daemon.stop()


class ByRoot(External):
    def begin(self):
        self.daemon.start()

    def make_again(self):
        self.daemon.stop()
        self.socket.unlink()
        self.daemon.start()


class Service(External):
    """systemd has made the socket, and starts the daemon as its user."""

    def begin(self):
        self.manager = Manager(self.daemon)
        self.manager.start(within=as_user())
        self.manager.hear()

    def make_again(self):
        self.stop_daemon()
        self.socket.unlink()
        self.manager.address.unlink()
        self.begin()

    def stop_daemon(self):
        self.manager.close()

    def stop(self):
        self.server.stop()
        self.stop_daemon()


class Activated(External):
    """The daemon is started by the first connection."""

    def begin(self):
        command = ["systemd-socket-activate", "--seqpacket", "-l", str(self.socket), *as_user(), *self.daemon.command()]
        with open(self.daemon.log, "ab") as log:
            self.daemon.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   start_new_session=True)
        wait_for(self.socket.exists, "the socket")
        os.chown(self.socket, 0, user_ids()[1])
        self.socket.chmod(0o660)

    def make_again(self):
        self.daemon.stop()
        self.socket.unlink()
        self.begin()


FORMS = {"auto": Auto, "by root": ByRoot, "service": Service, "activated": Activated}


@pytest.fixture(params=FORMS)
def form(request, lab, root):
    """A server and its daemon, in each form in which it can be started."""
    config = f"<Directory {root}/closed>\nRequire all denied\n</Directory>\n"
    if request.param in ("service", "activated"):
        if "#define HAVE_SYSTEMD 1" not in (BUILD / "config.h").read_text():
            pytest.skip("built without libsystemd")
        if not shutil.which("systemd-socket-activate") or not shutil.which("setpriv"):
            pytest.skip("needs systemd-socket-activate and setpriv")
    if request.param == "auto":
        made = Auto(lab, root, request.getfixturevalue("module_path"), request.getfixturevalue("flashpached_program"),
                    config)
    else:
        made = FORMS[request.param](lab, root, config)
    who_kit.until_note(made.server, "/file.txt", HITS)
    yield made
    made.stop()


def test_users_processes_cannot_touch_the_socket(form):
    assert who_kit.as_user(who_kit.take_place, str(form.socket)) == 0
    st = form.socket.stat()
    assert (st.st_uid, st.st_mode & 0o007) == (0, 0)


def test_users_processes_cannot_take_the_daemon(form):
    """Daemon, monitor, spawner and workers: no tracing, no reading of memory or environment, no descriptor."""
    family = {form.pid: "flashpached", **procs.descendants(form.pid)}
    assert set(family.values()) == NAMES
    taken = {(name, pid): who_kit.as_user(who_kit.take_process, pid) for pid, name in family.items()}
    assert not any(taken.values()), taken
    # The same attempts succeed on another process.
    with subprocess.Popen([*as_user(), "sleep", "60"]) as own:
        wait_for(lambda: os.readlink(f"/proc/{own.pid}/exe").endswith("sleep"), "a process of the user")
        assert who_kit.as_user(who_kit.take_process, own.pid) == 9
        own.kill()


def test_impostor_is_not_trusted(form, root):
    """It listens at the very place, by an administrator's mistake. Then its maker shows it."""
    mark = form.server.mark()
    close = who_kit.open_to_user(form.socket.parent)
    try:
        with who_kit.Impostor(str(form.socket)):
            wait_for(lambda: "FP0005" in form.log_text() and "was replaced" in form.log_text(), "the daemon to notice")
            # Children that connect now have no other daemon.
            restart(form.server)
            who_kit.until_note(form.server, "/file.txt", {"foreign", *(HITS if isinstance(form, Auto) else ())})
            if not isinstance(form, Auto):
                for _ in range(3):
                    assert get(form.server.port, "/file.txt") == (200, FILE)
                    assert get(form.server.port, "/closed/file.txt")[0] == 403
                text = form.server.error_text()
                assert "FP0114" in text and f"made by uid {user_ids()[0]}" in text and str(form.socket) in text
                assert not {e.note for e in form.server.entries(mark) if e.reason == "foreign"} & HITS
    finally:
        close()
    if not isinstance(form, Auto):
        form.make_again()
    who_kit.until_note(form.server, "/file.txt", HITS)
    assert get(form.server.port, "/file.txt") == (200, FILE)


def test_impostor_in_the_place_of_httpds_own_daemon(lab, root, module_path, flashpached_program):
    """httpd's parent gets no order to make the socket again: its children ask the impostor."""
    auto = Auto(lab, root, module_path, flashpached_program, "")
    try:
        who_kit.until_note(auto.server, "/file.txt", HITS)
        close = who_kit.open_to_user(auto.socket.parent)
        with who_kit.Impostor(str(auto.socket)):
            victims = [p for p in procs.children(auto.server.process.pid) if p != auto.pid]
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            # Killed children are replaced; the new ones connect anew.
            who_kit.until_note(auto.server, "/file.txt", {"foreign"})
            assert get(auto.server.port, "/file.txt") == (200, FILE)
            assert "FP0114" in auto.server.error_text()
        close()
        auto.make_again()
        who_kit.until_note(auto.server, "/file.txt", HITS)
    finally:
        auto.stop()


def test_daemon_that_users_could_have_started_is_not_trusted(lab, root, flashpachectl):
    """Of Apache's user, with a socket of its own: as any CGI could start one."""
    daemon = lab.daemon("by-user")
    os.chown(daemon.socket_dir, *user_ids())
    daemon.around = as_user()
    daemon.start()
    server = lab.flash("by-user-httpd", root, daemon.socket).start()
    who_kit.until_note(server, "/file.txt", {"foreign"})
    assert "FP0114" in server.error_text()
    said = flashpachectl("-s", daemon.socket, "check").stdout
    assert f"BAD   uid {user_ids()[0]} made the socket" in said, said


def steal_at_start(parent, known, until):
    """Tries without a pause to take the listening socket of each new daemon."""
    taken = 0
    with open(f"/proc/{parent}/task/{parent}/children") as children:
        while os.path.exists(until):
            children.seek(0)
            for pid in set(map(int, children.read().split())) - known:
                with contextlib.suppress(OSError):
                    os.close(who_kit.take_descriptor(pid, 3))
                    taken = 1
    return taken


@pytest.mark.not_sanitized("LeakSanitizer opens a process to others of its user while it looks")
def test_socket_cannot_be_taken_while_the_daemon_starts(lab, root, module_path, flashpached_program, base):
    """Between its exec, which opens a process's memory to others of its user, and its first call."""
    flag = tree.put(base / "stealing", "")
    auto = Auto(lab, root, module_path, flashpached_program, "")
    try:
        parent = auto.server.process.pid
        known = set(procs.children(parent))
        thief = os.fork()
        if thief == 0:
            code = 1
            try:
                who_kit.become_user()
                code = steal_at_start(parent, known, str(flag))
            finally:
                os._exit(code)
        config = auto.server.dir / "httpd.conf"
        for i in range(STARTS):
            before = auto.pid
            tree.put(base / f"own{i}.conf", "workers = 1\n")
            config.write_text(config.read_text() + f"FlashpacheDaemonConfig {base}/own{i}.conf\n")
            auto.server.graceful()
            daemon_of(auto.server, but=before)
        flag.unlink()
        assert os.waitstatus_to_exitcode(os.waitpid(thief, 0)[1]) == 0
        assert "FP0073" not in auto.log_text()
    finally:
        flag.unlink(missing_ok=True)
        auto.stop()


def test_program_that_the_user_may_read_is_told(lab, root, module_path, flashpached_program):
    readable = lab.base / "readable-flashpached"
    shutil.copy(flashpached_program, readable)
    readable.chmod(0o755)
    auto = Auto(lab, root, module_path, readable, "")
    try:
        who_kit.until_note(auto.server, "/file.txt", HITS)
        assert "FP0073" in auto.log_text() and "chmod 0711" in auto.log_text()
    finally:
        auto.stop()


def test_removed_socket_of_httpds_own_daemon_is_made_again(lab, root, module_path, flashpached_program):
    """Only root can remove it; a graceful restart makes it again, and its message names the way out."""
    auto = Auto(lab, root, module_path, flashpached_program, "")
    try:
        who_kit.until_note(auto.server, "/file.txt", HITS)
        auto.socket.unlink()
        wait_for(lambda: "was removed" in auto.log_text(), "the daemon to notice")
        assert "apachectl graceful" in auto.log_text()
        auto.make_again()
        who_kit.until_note(auto.server, "/file.txt", HITS)
        assert auto.socket.exists()
    finally:
        auto.stop()


# The directory of httpd's own daemon

@pytest.fixture
def unstarted(lab, root, module_path, flashpached_program):
    server = lab.stock(f"w{len(lab.started)}", root, module=module_path, mpm="event",
                       config=f"FlashpacheDaemonProgram {flashpached_program}\n")
    yield server
    server.stop()


def test_directory_of_the_user_is_taken_over(unstarted, base):
    """As a former release made it; links that the user's processes left there lead root nowhere."""
    precious = tree.put(base / "precious", "not to be written\n")
    place = socket_of(unstarted).parent
    place.mkdir()
    os.link(precious, place / "flashpached.sock.lock")
    socket_of(unstarted).symlink_to(precious)
    os.chown(place, *user_ids())
    with unstarted:
        who_kit.until_note(unstarted, "/file.txt", HITS)
        st = place.stat()
        assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (0, user_ids()[1], 0o710)
        assert who_kit.as_user(who_kit.take_place, str(socket_of(unstarted))) == 0
    assert precious.read_text() == "not to be written\n" and precious.stat().st_uid == 0


def test_runtime_directory_of_the_user_is_refused(unstarted):
    """Those who may write there could put another directory in the place of ours."""
    os.chown(unstarted.dir, *user_ids())
    with unstarted:
        assert sees(unstarted) in ("absent", "paused")
        assert "FP0112" in unstarted.error_text() and "DefaultRuntimeDir" in unstarted.error_text()


def test_directory_of_another_group_stays(unstarted, lab, root, module_path, flashpached_program):
    """The first httpd's children could not pass any more."""
    with unstarted:
        who_kit.until_note(unstarted, "/file.txt", HITS)
        second = lab.stock(f"w{len(lab.started)}", root, module=module_path, mpm="event",
                           config=f"FlashpacheDaemonProgram {flashpached_program}\nGroup nogroup\n"
                                  f"DefaultRuntimeDir {unstarted.dir}\n")
        with second:
            assert "FP0112" in second.error_text() and "gid" in second.error_text()
        assert socket_of(unstarted).parent.stat().st_gid == user_ids()[1]
        unstarted.graceful()
        who_kit.until_note(unstarted, "/file.txt", HITS)


# An httpd that is not root's

@pytest.fixture
def plain(lab, root, module_path, flashpached_program):
    """httpd as Apache's user, with a daemon of its own."""
    server = lab.stock(f"p{len(lab.started)}", root, module=module_path, mpm="event",
                       config=f"FlashpacheDaemonProgram {flashpached_program}\n")
    os.chown(server.dir, *user_ids())
    server.around = as_user()
    server.start()
    yield server
    server.stop()


def test_httpd_of_a_user_trusts_its_own_user(plain):
    who_kit.until_note(plain, "/file.txt", HITS)
    st = socket_of(plain).stat()
    assert (st.st_uid, st.st_mode & 0o777) == (user_ids()[0], 0o600)
    first = daemon_of(plain)
    socket_of(plain).unlink()
    wait_for(socket_of(plain).exists, "another socket")
    plain.graceful()
    who_kit.until_note(plain, "/file.txt", HITS)
    assert daemon_of(plain) == first
    below = [first, *procs.descendants(first)]
    plain.stop()
    assert not socket_of(plain).exists()
    wait_for(lambda: all(procs.state(p) in (None, "Z") for p in below), "the daemon to end")


# The daemon's and the children's sight

def sees(server, path="/file.txt"):
    """The note or the reason of a request."""
    mark = server.mark()
    get(server.port, path)
    entry = server.wait_entries(1, mark)[-1]
    return entry.reason if entry.note == "fallback" else entry.note


def elsewhere(lab, root, around, name, config=""):
    daemon = lab.daemon(name).start()
    server = lab.flash(f"{name}-httpd", root, daemon.socket, mpm="event", config=config)
    server.around = around
    return server.start()


def unshared(*commands):
    """A mount namespace of its own, after these commands."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", "; ".join([*commands, 'exec "$@"']), "sh"]


@pytest.fixture(scope="module")
def can_unshare():
    if subprocess.run(unshared("true") + ["true"], capture_output=True).returncode:
        pytest.skip("needs mount namespaces")


def test_children_with_other_mounts_are_not_answered(lab, root, can_unshare):
    """As ProtectHome= hides directories: the daemon still sees their files."""
    server = elsewhere(lab, root, unshared(f"mount -t tmpfs none {root}/hidden"), "hiding")
    who_kit.until_note(server, "/file.txt", {"elsewhere"})
    for _ in range(3):
        assert get(server.port, "/hidden/file.txt")[0] == 404
    assert "FP0115" in server.error_text() and "other mounts" in server.error_text()


def test_children_elsewhere_are_answered_if_the_operator_says_so(lab, root, can_unshare):
    """httpd in one container, the daemon in another: the documents are the same."""
    server = elsewhere(lab, root, unshared(f"mount -t tmpfs none {root}/hidden"), "two-containers", "FlashpacheDaemon elsewhere\n")
    who_kit.until_note(server, "/file.txt", HITS)


def test_children_with_another_part_mounted_are_not_answered(lab, root, can_unshare):
    """The same file system at the same place, but another directory of it."""
    server = elsewhere(lab, root, unshared(f"mount --bind {root}/closed {root}/hidden"), "another-part")
    who_kit.until_note(server, "/file.txt", {"elsewhere"})
    assert get(server.port, "/hidden/file.txt") == (200, DENIED.encode())


def test_children_in_another_namespace_with_the_same_mounts_are_answered(lab, root, can_unshare):
    """As systemd starts services: directories mounted on themselves, and the kernel's own file systems, make no
    difference."""
    around = unshared(f"mount --bind {root} {root}", f"mount -o remount,bind,ro {root}", "mount -t tmpfs none /dev/shm",
                      "mount -t proc none /proc")
    server = elsewhere(lab, root, around, "same-mounts")
    who_kit.until_note(server, "/file.txt", HITS)


def test_daemon_that_sees_no_other_process_is_asked(lab, root, can_unshare):
    """ProtectProc=invisible: other processes of its user may not look at it either, and it looks at itself."""
    if "#define HAVE_SYSTEMD 1" not in (BUILD / "config.h").read_text():
        pytest.skip("built without libsystemd")
    manager = Manager(lab.daemon("alone"))
    manager.start(around=unshared("mount -t proc -o hidepid=2 none /proc"), within=as_user())
    manager.hear()
    server = lab.flash("alone-httpd", root, manager.daemon.socket, mpm="event").start()
    try:
        who_kit.until_note(server, "/file.txt", HITS)
    finally:
        server.stop()
        manager.close()


def test_children_in_another_time_namespace_are_not_answered(lab, root):
    around = ["unshare", "--time", "--monotonic", "86400", "--fork", "--kill-child"]
    if not os.path.exists("/proc/self/ns/time") or subprocess.run([*around, "true"], capture_output=True).returncode:
        pytest.skip("needs time namespaces")
    daemon = lab.daemon("timely").start()
    server = lab.flash("timely-httpd", root, daemon.socket, mpm="event")
    server.around = around
    with server:
        who_kit.until_note(server, "/file.txt", {"elsewhere"})
        assert "another time namespace" in server.error_text()


def test_only_the_children_have_to_see_the_same(lab, can_unshare):
    """An operator's shell may be anywhere."""
    daemon = lab.daemon("shell").start()
    tool = daemon.program.replace("flashpached", "flashpachectl")
    done = subprocess.run([*unshared("mount -t tmpfs none /mnt"), tool, "-s", daemon.socket, "status"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"process {daemon.pid}" in done.stdout
