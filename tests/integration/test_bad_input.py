# SPDX-License-Identifier: Apache-2.0
"""Wrong settings, wrong peers, wrong directives: one clear message, and no effect on others."""

import itertools
import os
import random
import signal
import socket
import stat

import pytest

import procs
import tree
import wire
from fetch import get
from httpd import HITS, Httpd, user_ids
from system_limits import with_descriptors
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache


# flashpached: settings

def refused(daemon, *words):
    """The daemon ends with 1 and a message on stderr that has these words."""
    done = daemon.run()
    assert done.returncode == 1, done
    for word in words:
        assert str(word) in done.stderr, f"{word!r} is not in: {done.stderr}"
    assert len(done.stderr.strip().splitlines()) == 1, f"not one line: {done.stderr}"
    return done.stderr


NUMBERS = itertools.count()


@pytest.fixture
def daemon(lab):
    made = lab.daemon(f"d{next(NUMBERS)}")      # short: a socket path may have 107 bytes
    yield made
    made.stop()


def test_unknown_key(daemon):
    daemon.write_config("no_such_key = 3\n")
    line = daemon.config.read_text().splitlines().index("no_such_key = 3") + 1
    refused(daemon, f"{daemon.config}:{line}", "no_such_key")


@pytest.mark.parametrize("key,value", [
    ("workers", 0), ("workers", -1), ("workers", 10**7), ("ttl_ms", -5), ("lookup_timeout_ms", 0),
    ("memory", -1), ("max_connections", 0), ("memory", "64K"), ("max_entries", 5), ("workers", 2**70),
    ("log_level", "loud"), ("user", "nobody-of-that-name"), ("socket", "relative.sock")])
def test_value_out_of_range(daemon, key, value):
    daemon.settings[key] = value
    daemon.write_config()
    refused(daemon, daemon.config, key)


def test_wrong_type_and_syntax(daemon):
    daemon.write_config('workers = "many"\n')
    refused(daemon, daemon.config, "workers")
    daemon.write_config("workers = \n{")
    refused(daemon, daemon.config)


@pytest.mark.parametrize("arguments", [["-o", "no_such_key=1"], ["-o", "workers=0"], ["-o", "workers"],
                                       ["-o", "workers=3x"]])
def test_wrong_override_on_the_command_line(daemon, arguments):
    done = daemon.run(*arguments)
    assert done.returncode == 1, done
    assert arguments[1].split("=")[0] in done.stderr


def test_missing_configuration_file(daemon):
    daemon.config.unlink()
    refused(daemon, daemon.config)


def test_socket_directory_missing(daemon):
    daemon.socket_dir.rmdir()
    refused(daemon, daemon.socket_dir)


@pytest.mark.parametrize("mode", (0o777, 0o770, 0o757))
def test_socket_directory_writable_by_others(daemon, mode):
    daemon.socket_dir.chmod(mode)
    refused(daemon, daemon.socket_dir)


def test_socket_directory_of_another_owner(daemon):
    os.chown(daemon.socket_dir, 65534, 65534)
    refused(daemon, daemon.socket_dir)


def test_socket_path_too_long(daemon):
    daemon.settings["socket"] = daemon.socket_dir / ("s" * 108)
    daemon.write_config()
    refused(daemon, "too long")


def test_socket_path_is_not_a_socket(daemon):
    daemon.socket.write_text("precious\n")
    refused(daemon, daemon.socket, "not a socket")
    assert daemon.socket.read_text() == "precious\n"


def test_second_daemon_on_the_same_socket(lab, daemon):
    daemon.start()
    other = lab.daemon("second", socket=daemon.socket)
    refused(other, daemon.socket)
    with wire.connect(daemon.socket) as conn:       # the first one still serves
        conn.sendall(wire.hello())
        assert conn.recv(1000)


def test_socket_left_behind_is_replaced(daemon):
    daemon.start()
    daemon.kill()
    assert stat.S_ISSOCK(daemon.socket.stat().st_mode)
    daemon.start()


def test_too_few_descriptors_for_the_workers(daemon):
    """It would be ready, and never accept a connection."""
    daemon.settings["workers"] = 64
    daemon.write_config()
    daemon.program = with_descriptors(80, daemon.program, daemon.dir / "few")
    refused(daemon, "FP0007", "limit of 80 descriptors is too low for 64 workers", "ulimit -n", "lower workers")
    assert daemon.run("-t").returncode == 1
    daemon.settings["workers"] = 16
    daemon.write_config()
    assert daemon.run("-t").returncode == 0
    with daemon:
        wire.greet(daemon.socket).close()


def test_check_flag(daemon):
    good = daemon.run("-t")
    assert good.returncode == 0, good
    daemon.write_config("no_such_key = 3\n")
    bad = daemon.run("-t")
    assert bad.returncode == 1 and "no_such_key" in bad.stderr


def test_hangup_with_a_broken_file_keeps_the_old_settings(daemon):
    daemon.start()
    before = len(daemon.log_text())
    daemon.write_config("no_such_key = 3\n")
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: "no_such_key" in daemon.log_text()[before:]
             and "keeping" in daemon.log_text()[before:], "the log to say so")
    with wire.connect(daemon.socket) as conn:
        conn.sendall(wire.hello())
        assert conn.recv(1000)
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: "reread" in daemon.log_text()[before:], "the log to say that it was reread")


def test_relative_configuration_is_made_absolute(daemon, flashpachectl, monkeypatch):
    monkeypatch.chdir(daemon.dir)
    daemon.command = lambda *more: [daemon.program, "-c", "../" + daemon.dir.name + "/flashpached.conf", *more]
    daemon.start()
    daemon.settings["log_level"] = "debug"
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    whole = f"{daemon.dir}/../{daemon.dir.name}/flashpached.conf"
    wait_for(lambda: f"configuration {whole} reread" in daemon.log_text(), "the file to be reread")
    assert "log_level debug" in flashpachectl("-s", daemon.socket, "status").stdout


def test_hangup_tells_a_file_that_cannot_be_opened_from_one_with_mistakes(daemon):
    daemon.start()
    daemon.config.unlink()
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: "keeping" in daemon.log_text(), "the log to say so")
    assert f"cannot open {daemon.config} as uid" in daemon.log_text()
    assert "No such file" in daemon.log_text() and "has mistakes" not in daemon.log_text()
    daemon.write_config("no_such_key = 3\n")
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: f"{daemon.config} has mistakes" in daemon.log_text(), "the log to say so")


def test_what_is_reread_often_hides_no_error(daemon):
    """The limit on messages is by id and level, not by id alone."""
    daemon.start()
    for done in range(5):
        daemon.signal(signal.SIGHUP)
        wait_for(lambda n=done: daemon.log_text().count("reread") > n, "the file to be reread")
    daemon.settings["log"] = daemon.dir / "missing" / "log"
    daemon.write_config()
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: f"cannot open the log {daemon.settings['log']}" in daemon.log.read_text(), "the log to say so")


def reopened(daemon):
    """The log is the file that the path names now."""
    wait_for(lambda: str(daemon.settings["log"]) in procs.open_files(daemon.pid), "the log to be reopened")


def test_log_that_root_makes_is_the_users_and_another_file_is_not(daemon):
    """root would give away any file to Apache's user."""
    log = daemon.settings["log"] = daemon.dir / "file.log"
    os.chown(daemon.dir, user_ids()[0], -1)
    daemon.write_config()
    daemon.start()
    assert log.stat().st_uid == user_ids()[0] and "after a rotation" not in daemon.log_text()
    log.rename(daemon.dir / "file.log.1")
    daemon.signal(signal.SIGHUP)
    reopened(daemon)
    daemon.stop()
    os.chown(log, 0, 0)
    log.chmod(0o600)
    daemon.start()
    assert log.stat().st_uid == 0 and "after a rotation" in daemon.log_text()


def test_log_that_cannot_be_written(daemon):
    daemon.settings["log"] = daemon.dir / "fifo"
    os.mkfifo(daemon.settings["log"])
    daemon.write_config()
    refused(daemon, "FP0008", daemon.settings["log"], "reader has to start first")
    daemon.settings["log"] = daemon.dir / "link"
    daemon.settings["log"].symlink_to("file.log")
    daemon.write_config()
    refused(daemon, "FP0008", "name the file that it leads to")


def test_log_is_a_fifo_that_is_read(daemon):
    daemon.settings["log"] = daemon.dir / "fifo"
    os.mkfifo(daemon.settings["log"])
    os.chown(daemon.settings["log"], user_ids()[0], -1)
    reader = os.open(daemon.settings["log"], os.O_RDONLY | os.O_NONBLOCK)
    text = []
    daemon.log_text = lambda: text.append(read_now(reader)) or "".join(text)
    daemon.write_config()
    daemon.start()
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: "reread" in daemon.log_text(), "the FIFO to be opened again")
    assert daemon.stop() == 0
    os.close(reader)


def read_now(fd):
    try:
        return os.read(fd, 65536).decode()
    except OSError:                     # nothing now, or it is closed
        return ""


@pytest.mark.parametrize("arguments", ([], ["-f"]), ids=" ".join)
def test_it_stays_in_the_foreground(daemon, arguments):
    """The option of the former background mode is accepted, and does nothing."""
    command = daemon.command
    daemon.command = lambda *more: command(*arguments, *more)
    daemon.start()
    lock = daemon.socket.with_name(daemon.socket.name + ".lock")
    assert int(lock.read_text()) == daemon.pid
    assert daemon.stop() == 0


def test_termination_leaves_nobody(daemon):
    daemon.start()
    assert daemon.socket.exists()
    workers = daemon.worker_pids()
    assert daemon.stop() == 0
    assert wire.nobody_listens(daemon.socket)
    wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in workers), "workers to end")


def test_counters_on_request(daemon):
    daemon.start()
    before = len(daemon.log_text())
    daemon.signal(signal.SIGUSR1)
    wait_for(lambda: "hits=" in daemon.log_text()[before:], "a line of counters")


# flashpached: peers

@pytest.fixture(scope="module")
def served(lab, base):
    """(daemon, its httpd)"""
    root = base / "bad-input-tree"
    tree.put(root / "file.txt", "still served\n")
    tree.put(root / "index.html", "index\n")
    daemon = lab.daemon("for-peers", ttl_ms=60000).start()
    # One child, so few connections to the daemon: descriptors are counted.
    server = lab.flash("for-peers-httpd", root, daemon.socket, mpm="event", limits=ONE_CHILD).start()
    for _ in range(20):
        get(server.port, "/file.txt")
    return daemon, server


ONE_CHILD = ("StartServers 1\nServerLimit 1\nThreadsPerChild 25\nMaxRequestWorkers 25\n"
             "MinSpareThreads 1\nMaxSpareThreads 25\n")


def still_served(server):
    mark = server.mark()
    assert get(server.port, "/file.txt") == (200, b"still served\n")
    assert server.wait_entries(1, mark)[-1].note in HITS


def packets():
    rubbish = random.Random(11)
    long_path = "/" + "a" * 4095
    hello = wire.hello()
    yield "random-bytes", [rubbish.randbytes(200)]
    yield "random-after-hello", [hello, rubbish.randbytes(200)]
    yield "one-byte", [b"x"]
    yield "oversized", [rubbish.randbytes(wire.MAX_FRAME + 1)]
    yield "oversized-after-hello", [hello, wire.frame(wire.LOOKUP, b"z" * 30000)]
    yield "truncated-hello", [hello[:10]]
    yield "truncated-lookup", [hello, wire.lookup("/tmp")[:-2]]
    yield "length-too-large", [hello, wire.frame(wire.LOOKUP, b"abc", length=4000)]
    yield "length-too-small", [hello, wire.frame(wire.LOOKUP, b"abc", length=3)]
    yield "path-length-lies", [hello, wire.lookup("/tmp", claimed=4000)]
    yield "path-too-long", [hello, wire.lookup(long_path)]
    yield "path-relative", [hello, wire.lookup("etc/passwd")]
    yield "path-dots", [hello, wire.lookup("/tmp/../etc/passwd")]
    yield "path-with-nul", [hello, wire.lookup("/etc\0/passwd")]
    yield "path-empty", [hello, wire.lookup("")]
    yield "wrong-version", [wire.hello(77, 99)]
    yield "version-backwards", [wire.hello(9, 1)]
    yield "wrong-magic", [wire.hello(magic=0x12345678)]
    yield "no-hello", [wire.lookup("/etc/passwd")]
    yield "two-hellos", [hello, hello]
    yield "unknown-type", [hello, wire.frame(200, b"x")]
    yield "daemon-s-own-type", [hello, wire.frame(4, b"\0" * 40)]


@pytest.mark.parametrize("fds", (0, 1, 20), ids=("", "with-descriptor", "with-20-descriptors"))
@pytest.mark.parametrize("name,sent", list(packets()), ids=[n for n, _ in packets()])
def test_rubbish_ends_only_its_own_connection(served, tmp_path, name, sent, fds):
    daemon, server = served
    still_served(server)
    passed = tree.put(tmp_path / "passed", "")
    with open(passed) as file, wire.connect(daemon.socket) as conn:
        if wire.sent_all(conn, sent, [file.fileno()] * fds):
            assert wire.is_closed_by_peer(conn), "the connection was not ended"
        still_served(server)
    wait_for(lambda: str(passed) not in procs.open_files(daemon.pid), "the daemon to close what was passed to it")


def few_more(daemon, before):
    """No leak: httpd's child may have asked on a second connection meanwhile, the cache may have opened a file."""
    wait_for(lambda: daemon.fd_count() <= before + 3, f"the daemon to hold about {before} descriptors again")


def test_peer_that_says_nothing_or_leaves_early(served):
    daemon, server = served
    before = daemon.fd_count()
    silent = [wire.connect(daemon.socket) for _ in range(20)]
    still_served(server)
    for conn in silent[:10]:
        conn.sendall(wire.hello())
        conn.sendall(wire.lookup("/etc/passwd"))    # does not read the answer
    for conn in silent:
        conn.close()
    still_served(server)
    few_more(daemon, before)        # /etc/passwd's descriptor is in the cache now


def test_peer_that_does_not_read_is_no_burden(served):
    """Questions without end from a peer that never reads: the daemon ends or holds it, and serves others."""
    daemon, server = served
    with wire.connect(daemon.socket, timeout=2) as conn:
        conn.sendall(wire.hello())
        try:
            for number in range(2, 20000):
                conn.sendall(wire.lookup(f"/etc/no-such-{number % 50}", number))
        except (ConnectionError, socket.timeout):
            pass
        still_served(server)
    still_served(server)


@pytest.mark.parametrize("user", ("nobody", "daemon"))
def test_peer_of_another_user_is_refused(served, user):
    daemon, server = served
    # Even where the directory would let them in.
    daemon.socket_dir.chmod(0o755)
    daemon.socket.chmod(0o777)
    try:
        before = len(daemon.log_text())
        assert wire.refused_as(user, daemon.socket)
        wait_for(lambda: "uid" in daemon.log_text()[before:], "the log to name the peer")
    finally:
        daemon.socket_dir.chmod(0o710)
    still_served(server)


def test_random_peers_in_numbers(served):
    daemon, server = served
    before = daemon.fd_count()
    rubbish = random.Random(23)
    for _ in range(300):
        with wire.connect(daemon.socket) as conn:
            try:
                if rubbish.random() < 0.7:
                    conn.sendall(wire.hello())
                conn.sendall(rubbish.randbytes(rubbish.randint(1, 600)))
            except ConnectionError:
                pass
    still_served(server)
    few_more(daemon, before)


# mod_flashpache: directives

def conf_name(request):
    """A directory name of its own for each test."""
    return "conf-" + "".join(c if c.isalnum() else "_" for c in request.node.name)[:80]


def not_a_socket(base):
    return tree.put(base / "no-socket", "a file\n")


@pytest.mark.parametrize("directive,value", [
    ("FlashpacheEngine", "Maybe"),
    ("FlashpacheSocket", "relative/flashpached.sock"),
    ("FlashpacheSocket", "/tmp/" + "s" * 120),
    ("FlashpacheSocket", "FILE"),
    ("FlashpacheAdmission", "0"),
    ("FlashpacheAdmission", "-16"),
    ("FlashpacheAdmission", "16x"),
    ("FlashpacheAdmission", "65536"),
    ("FlashpacheTimeout", "soon"),
    ("FlashpacheTimeout", "0"),
    ("FlashpacheTimeout", "-3"),
    ("FlashpacheTimeout", "12parsecs"),
    ("FlashpacheTimeout", "10ms5"),
    ("FlashpacheTimeout", "2sheep"),
    ("FlashpacheExclude", "relative/dir"),
    ("FlashpacheExclude", "/var/../etc"),
])
def test_wrong_directive(base, lab, module_path, request, directive, value):
    value = str(not_a_socket(base)) if value == "FILE" else value
    name = conf_name(request)
    server = Httpd(lab.base, name, base, module=module_path, config=f"{directive} {value}\n")
    done = server.check()
    message = done.stdout + done.stderr
    assert done.returncode != 0, message
    assert directive in message and value in message, message


@pytest.mark.parametrize("text", [
    "FlashpacheSocket /run/flashpache/flashpached.sock", "FlashpacheTimeout 250ms",
    "FlashpacheTimeout 2", "FlashpacheAdmission 65535", "FlashpacheExclude /srv/a /srv/b", "FlashpacheEngine Off"])
def test_right_directive(base, lab, module_path, text):
    name = f"right{len(list(lab.base.iterdir()))}"     # short: the path of the daemon's socket is below it
    done = Httpd(lab.base, name, base, module=module_path, config=text + "\n").check()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("directive", ("FlashpacheSocket /run/x.sock", "FlashpacheTimeout 2"))
def test_server_wide_directive_in_a_virtual_host(base, lab, module_path, request, directive):
    name = conf_name(request)
    server = Httpd(lab.base, name, base, module=module_path, vhosts=[(["localhost"], directive)])
    done = server.check()
    assert done.returncode != 0 and directive.split()[0] in done.stderr, done.stderr
