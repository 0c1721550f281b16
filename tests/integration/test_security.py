# SPDX-License-Identifier: Apache-2.0
"""Nobody gains access: no rights beyond those of the asking Apache, no descriptor for another request."""

import grp
import os
import stat
import random
import shutil

import pytest

import procs
import tree
import wire
from conftest import BUILD
from fetch import Client, get
from httpd import HITS, user_ids
from service_kit import Manager
from waiting import Threads, wait_for

pytestmark = pytest.mark.needs_flashpache

GROUP = "deputy"
UNIQUE_FILES = 400
THREADS = 16
REQUESTS_EACH = 400


@pytest.fixture(scope="module")
def root(base):
    root = base / "security-tree"
    tree.put(root / "index.html", "index\n")
    tree.put(root / "rootonly.txt", "for root alone\n", mode=0o600)
    tree.put(root / "rootdir/file.txt", "in root's directory\n")
    (root / "rootdir").chmod(0o700)
    tree.put(root / "groupshadow.txt", "for group shadow\n", mode=0o040)
    os.chown(root / "groupshadow.txt", 0, grp.getgrnam("shadow").gr_gid)
    tree.put(root / "groupdir/file.txt", "in group shadow's directory\n")
    (root / "groupdir").chmod(0o050)
    os.chown(root / "groupdir", 0, grp.getgrnam("shadow").gr_gid)
    tree.put(root / "excluded/file.txt", "excluded\n")
    tree.put(root / "excluded-not/file.txt", "only its name begins so\n")
    tree.put(root / "inside/file.txt", "inside the roots\n")
    tree.put(root / "outside/file.txt", "outside of the roots\n")
    os.symlink("../outside/file.txt", root / "inside/out")
    os.mkfifo(root / "fifo")
    os.chown(root / "fifo", *user_ids())
    for i in range(UNIQUE_FILES):
        tree.put(root / f"unique/file{i}.txt", f"content of file {i} " * (1 + i * 3))
    return root


@pytest.fixture(scope="module")
def server(lab, root):
    return lab.under_test("flash", root, daemon_settings={"ttl_ms": 60000, "open_files": 100},
                          config=f"FlashpacheExclude {root}/excluded\n")


def note_of(server, path, status=200):
    mark = server.mark()
    assert get(server.port, path)[0] == status
    return server.wait_entries(1, mark)[-1].note


def assert_becomes_hit(server, path, status=200):
    """At the second request, unless something on the way changed during the first."""
    note_of(server, path, status)
    wait_for(lambda: note_of(server, path, status) in HITS, f"a hit for {path}")


@pytest.mark.parametrize("path", ("/rootonly.txt", "/rootdir/file.txt", "/groupshadow.txt"))
def test_files_that_httpd_may_not_read_are_403(server, path):
    for _ in range(4):
        status, body = get(server.port, path)
        assert status == 403
        assert b"for root" not in body and b"in root" not in body and b"shadow" not in body


def test_no_process_of_the_daemon_keeps_rights(server):
    uid, gid = user_ids()
    for pid in server.daemon.family():
        with open(f"/proc/{pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status if ":" in line)
        assert set(fields["Uid"].split()) == {str(uid)}, pid
        assert set(fields["Gid"].split()) == {str(gid)}, pid
        assert int(fields["CapEff"], 16) == 0 and int(fields["CapPrm"], 16) == 0, pid
        assert "0" not in fields["Groups"].split(), f"{pid} kept root's group"


def test_permission_taken_away_is_noticed_after_the_ttl(lab, base):
    """A cached descriptor must not outlive the right to open it beyond the TTL."""
    root = base / "revoked"
    path = tree.put(root / "file.txt", "for a while\n")
    server = lab.under_test("revoked", root, daemon_settings={"ttl_ms": 200})
    for _ in range(3):
        assert get(server.port, "/file.txt") == (200, b"for a while\n")
    path.chmod(0o600)
    wait_for(lambda: get(server.port, "/file.txt")[0] == 403, "403 after chmod 600")
    for _ in range(5):
        assert get(server.port, "/file.txt")[0] == 403


def test_a_descriptor_never_reaches_another_request(server):
    """Unique contents, more than the daemon may keep descriptors, many at once."""
    wrong = []

    def fetch(seed):
        rng = random.Random(seed)
        with Client(server.port) as client:
            for _ in range(REQUESTS_EACH):
                i = rng.randrange(UNIQUE_FILES)
                answer = client.get(f"/unique/file{i}.txt")
                if answer != (200, (f"content of file {i} " * (1 + i * 3)).encode()):
                    wrong.append((i, answer[0], answer[1][:60]))
    mark = server.mark()
    with Threads(fetch, [(n,) for n in range(THREADS)]):
        pass
    assert not wrong, wrong[:5]
    entries = server.wait_entries(THREADS * REQUESTS_EACH, mark)
    notes = {n: sum(1 for e in entries if e.note == n) for n in {e.note for e in entries}}
    print(f"notes: {notes}")
    assert sum(notes.get(n, 0) for n in HITS) > 0


def test_excluded_directory_is_bypassed(server):
    for _ in range(3):
        assert note_of(server, "/excluded/file.txt") == "bypass"
    assert_becomes_hit(server, "/excluded-not/file.txt")


def test_outside_of_the_roots_is_stock(lab, root, outcome):
    server = lab.under_test("roots", root, daemon_settings={"roots": [f"{root}/inside"]})
    for _ in range(3):
        mark = server.mark()
        assert get(server.port, "/outside/file.txt") == (200, b"outside of the roots\n")
        assert server.wait_entries(1, mark)[-1].note in ("bypass", "fallback")
    assert_becomes_hit(server, "/inside/file.txt")
    for _ in range(3):                  # a link leads out of the roots
        mark = server.mark()
        assert get(server.port, "/inside/out") == (200, b"outside of the roots\n")
        assert server.wait_entries(1, mark)[-1].note in ("bypass", "fallback")
    outcome(GROUP, "files outside of the roots, and a link that leads there", 6, note="served as without the daemon")


def peers():
    """(who, uid, gid, further groups, is it refused?)"""
    uid, gid = user_ids()
    return [("another user", 12345, 12345, [], True), ("another user of the same group", 12345, gid, [gid], True),
            ("nobody", 65534, 65534, [], True), ("the same user in another group", uid, 12345, [gid], True),
            ("the same user and group", uid, gid, [], False),
            ("with more groups", uid, gid, [gid, 12345], True), ("root", 0, 0, [], False)]


def test_who_may_ask(server, outcome):
    """It does not depend on the current permissions of the socket and its directory."""
    daemon = server.daemon
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (daemon.socket, daemon.socket_dir)}
    daemon.socket_dir.chmod(0o755)
    daemon.socket.chmod(0o777)
    try:
        before = daemon.counters()["refused"]
        found = {who: wire.refused_with(uid, gid, groups, daemon.socket) for who, uid, gid, groups, _ in peers()}
        refused = daemon.counters()["refused"] - before
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    expected = {who: wanted for who, *_, wanted in peers()}
    outcome(GROUP, "processes of other users and groups connect", len(found),
            wrong=sum(found[who] != wanted for who, wanted in expected.items()))
    assert found == expected
    assert refused == sum(expected.values())


def groups_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(line.split()[1:] for line in status if line.startswith("Groups:"))


def in_groups(daemon, *groups):
    """Root starts the daemon in these groups."""
    daemon.around = ["setpriv", "--reuid=0", "--regid=0", f"--groups={','.join(map(str, groups))}"]
    return daemon.start()


def shadow():
    return grp.getgrnam("shadow").gr_gid


def test_started_by_root_in_more_groups(lab, root, outcome):
    """They go with root's rights: files that only these groups could read are unreadable."""
    daemon = in_groups(lab.daemon("by-root"), 0, shadow())
    server = lab.flash("by-root-httpd", root, daemon.socket).start()
    assert {tuple(groups_of(pid)) for pid in daemon.family()} == {(str(user_ids()[1]),)}
    for _ in range(3):
        assert get(server.port, "/groupshadow.txt")[0] == 403
    assert_becomes_hit(server, "/groupshadow.txt", 403)
    outcome(GROUP, "a daemon that root starts in another group, for a file of that group", 4)


def test_started_in_a_group_that_httpd_is_not_in(lab, root, outcome):
    """The daemon could open more than its clients. So it answers none, and httpd serves as without it."""
    if "#define HAVE_SYSTEMD 1" not in (BUILD / "config.h").read_text():
        pytest.skip("built without libsystemd: takes no socket")
    daemon = lab.daemon("grouped")
    manager = Manager(daemon)           # a socket that httpd trusts
    manager.start(within=["setpriv", f"--reuid={user_ids()[0]}", f"--regid={user_ids()[1]}",
                          f"--groups={user_ids()[1]},{shadow()}"])
    manager.hear()
    server = lab.flash("grouped-httpd", root, daemon.socket).start()
    for path, expected in (("/groupshadow.txt", 403), ("/index.html", 200), ("/inside/file.txt", 200)):
        for _ in range(3):
            assert note_of(server, path, expected) == "fallback"
    assert f"this daemon is in group {shadow()}" in daemon.log_text()
    manager.close()
    outcome(GROUP, "a daemon in a group that httpd's children are not in", 9, note="it answers none of them")


def test_httpd_in_a_group_that_the_daemon_is_not_in(lab, root, outcome):
    """As after `usermod -aG shadow www-data`, when httpd was started again and the daemon was not. The daemon
    would call unreadable what httpd may read."""
    daemon = lab.daemon("fewer").start()
    server = lab.flash("fewer-httpd", root, daemon.socket)
    shutil.chown(server.dir, *user_ids())
    server.around = ["setpriv", f"--reuid={user_ids()[0]}", f"--regid={user_ids()[1]}",
                     f"--groups={user_ids()[1]},{shadow()}", "--"]
    server.start()
    for path in ("/groupshadow.txt", "/groupdir/file.txt", "/index.html"):
        for _ in range(3):
            assert note_of(server, path) == "fallback"
    assert f"it is in group {shadow()} and this daemon is not" in daemon.log_text()
    outcome(GROUP, "httpd's children in a group that the daemon is not in", 9, note="it answers none of them")


def test_fifo_is_never_opened(server, root):
    try:
        for _ in range(3):
            assert get(server.port, "/fifo", timeout=10)[0] == 403
        for pid in [*server.daemon.family(), *server.pids()]:
            assert str(root / "fifo") not in procs.open_files(pid)
    finally:                            # a process that waits in open() for a writer goes on
        try:
            os.close(os.open(root / "fifo", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass
