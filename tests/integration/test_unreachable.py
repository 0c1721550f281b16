# SPDX-License-Identifier: Apache-2.0
"""A daemon that cannot be reached: httpd's log and flashpachectl name the cause, and the way out."""

import errno
import os
import socket
import subprocess

import pytest

import httpd
import tree
from fetch import get
from httpd import USER, user_ids
from system_limits import with_descriptors
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

FEW_DESCRIPTORS = 300       # hold less than the connections that max_connections allows


@pytest.fixture(scope="module")
def root(base):
    return tree.put(base / "root/one.txt", "one\n").parent


def missing(daemon):
    daemon.stop()
    daemon.socket.unlink()      # in root's directory the daemon may not remove it itself


def denied(daemon):
    daemon.socket_dir.chmod(0o700)


def is_deserted(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        return probe.connect_ex(str(path)) == errno.ECONNREFUSED


def deserted(daemon):
    daemon.kill()
    # Its other processes end when they notice, and until then the socket may have a listener.
    wait_for(lambda: is_deserted(daemon.socket), "the listener to be gone")


def refused(daemon):
    daemon.settings.update(user="nobody", group=USER)
    daemon.write_config()
    daemon.restart()


CAUSES = {missing: ("there is no such socket", "FlashpacheSocket"),
          denied: ("permission denied", "User and Group"),
          deserted: ("nobody listens there", "start it again"),
          refused: ("refused this child", "FP0010")}


@pytest.fixture(params=CAUSES, ids=lambda cause: cause.__name__)
def server(request, lab, root):
    name = request.param.__name__
    daemon = lab.daemon(f"{name}-daemon").start()
    request.param(daemon)
    server = lab.flash(name, root, daemon.socket).start()
    server.daemon, server.cause = daemon, request.param
    return server


def test_httpd_says_why(server):
    assert get(server.port, "/one.txt")[0] == 200
    told = wait_for(lambda: [line for line in server.error_text().splitlines() if "FP0101" in line], "the warning")
    assert all(word in told[0] for word in CAUSES[server.cause]), told[0]
    assert "peer closed" not in server.error_text()


@pytest.mark.parametrize("cause,text", (
    (missing, "there is no such socket; start flashpached"), (deserted, "nobody listens there"),
    (denied, "permission denied; run this as root or as the daemon's user"),
    (refused, "flashpached refuses this user; run this as root or as the daemon's user")),
    ids=lambda one: getattr(one, "__name__", ""))
def test_tool_says_why(lab, flashpachectl, cause, text):
    daemon = lab.daemon(f"{cause.__name__}-asked").start()
    cause(daemon)
    done = flashpachectl("-s", daemon.socket, "stats", user=USER, group=USER, extra_groups=[])
    assert (done.returncode, done.stdout) == (3, "")
    assert text in done.stderr and str(daemon.socket) in done.stderr


def test_check_names_the_way_out(lab, flashpachectl, base):
    out = flashpachectl("-s", base / "no-such-directory/nobody.sock", "check").stdout
    assert out.count("FlashpacheDaemon auto") == 2 and "systemctl start flashpached" in out
    daemon = lab.daemon("left-behind").start()
    daemon.kill()
    # The daemon's closers have the socket for a moment more.
    done = wait_for(lambda: (made := flashpachectl("-s", daemon.socket, "check"))
                    and "BAD   nobody listens at the socket" in made.stdout and made, "the end of its socket")
    assert done.returncode == 3 and "systemctl start flashpached" in done.stdout


def test_check_by_the_daemons_own_user(lab, flashpachectl, root):
    """It may ask, and cannot see the modules that httpd's children have loaded: nothing is wrong."""
    server = lab.under_test("own-user", root)
    get(server.port, "/one.txt")
    done = flashpachectl("-s", server.daemon.socket, "check", user=USER, group=USER, extra_groups=[])
    assert done.returncode == 0 and "BAD" not in done.stdout, done.stdout
    assert "note  cannot see whether httpd has loaded mod_flashpache: run this as root" in done.stdout


def test_check_tells_whose_limit_is_low(lab, flashpachectl, flashpached_program, module_path, root, base,
                                        monkeypatch):
    """httpd hands its limits on to the daemon that it starts."""
    daemon = lab.daemon("few")
    daemon.program = with_descriptors(FEW_DESCRIPTORS, daemon.program, base / "few-flashpached")
    with daemon:
        out = flashpachectl("-s", daemon.socket, "check").stdout
        assert "LimitNOFILE= of flashpached.service" in out and "APACHE_ULIMIT" not in out
    monkeypatch.setattr(httpd, "APACHE", with_descriptors(FEW_DESCRIPTORS, httpd.APACHE, base / "few-httpd"))
    server = lab.stock("few-auto", root, module=module_path,
                       config=f"FlashpacheDaemonProgram {flashpached_program}\n").start()
    place = server.dir / "flashpache/flashpached.sock"
    wait_for(lambda: flashpachectl("-s", place, "stats").returncode == 0, "httpd's daemon")
    out = flashpachectl("-s", place, "check").stdout
    assert "APACHE_ULIMIT_MAX_FILES" in out and "flashpached.service" not in out


SCENE = """
mount -t tmpfs none /run && mkdir -p /run/flashpache /run/apache2/flashpache
mount --bind "$1" /run/apache2/flashpache
cp -a "$2" /run/flashpache/flashpached.sock
shift 2
exec "$@"
"""


def test_a_socket_that_was_left_behind_hides_no_daemon(lab, flashpachectl, base):
    """In a mount namespace whose /run has both sockets: the service's, and that of httpd's own daemon."""
    stale = base / "stale.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.bind(str(stale))
    os.chown(stale, 0, user_ids()[1])
    program = flashpachectl("--version").args[0]
    with lab.daemon("alive") as daemon:
        def run(*args):
            return subprocess.run(["unshare", "-m", "sh", "-ec", SCENE, "sh", daemon.socket_dir, stale, program, *args],
                                  capture_output=True, text=True, timeout=60)
        found = run("check")
        assert "ok    the socket /run/apache2/flashpache/flashpached.sock is there" in found.stdout, found
        assert f"process {daemon.pid}" in found.stdout
        # A file for httpd's own daemon need not name user and socket.
        conf = tree.put(base / "auto.conf", "ttl_ms = 5000\n")
        configured = run("-c", conf, "check")
        assert configured.returncode == 0 and f"configuration {conf} has no mistakes" in configured.stdout, configured
        assert f"process {daemon.pid}" in configured.stdout
        other = run("-s", "/run/flashpache/flashpached.sock", "check")
        assert other.returncode == 3 and "BAD   nobody listens at the socket /run/flashpache" in other.stdout
        assert "another daemon listens at /run/apache2/flashpache/flashpached.sock" in other.stdout
