# SPDX-License-Identifier: Apache-2.0
"""Three machines' daemons over one tree: a purge on one reaches all, as long as there is Redis."""

import os
import signal
import subprocess

import pytest

import slowfs
import tree
from conftest import built
from dead_mounts_kit import Breakable
from fetch import get
from fleet_kit import SENDER, BadRedis, Redis, fleet_stats, section, why_not
from httpd import free_port
from waiting import wait_for

pytestmark = [pytest.mark.needs_flashpache,
              pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]

TTL_MS = 600000             # nothing but a message shows a change in time
NO_LEASES = "FlashpacheLeases 0\n"
STREAM = "flashpache:test"
FLOOD = 5000
QUEUE = 1024                # messages that wait for Redis
READ = 8                    # messages of one read of the stream
BESIDE = ".beside"


@pytest.fixture(scope="module")
def docroot(base):
    """A tmpfs: local, so watches on it report its changes."""
    root = base / "fleet-tree"
    root.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "flashpache-fleet", root],
                      capture_output=True, check=False).returncode != 0:
        pytest.skip("needs to mount a tmpfs")
    for name in ("shared/one.txt", "shared/two.txt", "shared/dir/a.txt", "outside.txt",
                 "shared/v1/page.txt", "shared/v2/page.txt"):
        tree.put(root / name, f"{name}\n")
    (root / "shared/current").symlink_to("v1")
    yield root
    subprocess.run(["umount", "-l", root], check=True)


@pytest.fixture(scope="module")
def redis(base):
    server = Redis(base, "fleet-redis").start()
    yield server
    server.stop()


class Machine:
    """An httpd and its daemon, which reaches Redis by a name of its own."""

    def __init__(self, lab, redis, docroot, name, **settings):
        self.door = redis.dir / f"{name}.sock"
        self.redis = redis
        self.open_door()
        watch = settings.pop("watch", "ttl")
        self.daemon = lab.daemon(name + "-daemon", watch=watch, ttl_ms=TTL_MS)
        self.daemon.write_config(section(f"unix:{self.door}", [docroot / "shared"], name="test", **settings))
        self.daemon.start()
        self.httpd = lab.flash(name, docroot, self.daemon.socket, config=NO_LEASES).start()

    def open_door(self):
        self.door.symlink_to(self.redis.socket)

    def ask(self, path):
        """(body, note) of one request, which is answered."""
        mark = self.httpd.mark()
        status, body = get(self.httpd.port, path)
        assert status == 200, (path, status)
        return body, self.httpd.wait_entries(1, mark)[-1].note

    def warm(self, *paths):
        for path in paths:
            wait_for(lambda path=path: self.ask(path)[1] == "hit", f"{path} to be known")


@pytest.fixture(scope="module")
def machines(lab, redis, docroot):
    return [Machine(lab, redis, docroot, name) for name in ("one", "two", "three")]


@pytest.fixture
def stats(flashpachectl):
    return lambda machine: fleet_stats(flashpachectl, machine.daemon)


@pytest.fixture
def until(stats):
    """until(machine, name, value): waits until a counter is at least that."""
    def wait(machine, name, value):
        return wait_for(lambda: stats(machine)[name] >= value, f"{name} to be {value}", 150)      # two of the longest pauses, and more
    return wait


@pytest.fixture
def fleet(machines, until):
    """The machines, each connected."""
    for machine in machines:
        if not machine.door.is_symlink():
            machine.open_door()
        until(machine, "connected", 1)
    return machines


@pytest.fixture
def ctl(flashpachectl):
    def run(machine, *args):
        done = flashpachectl("-s", machine.daemon.socket, *args)
        assert done.returncode == 0, done
    return run


def replace(path, text):
    """As a deployment does it: another file takes the name."""
    tree.put(path.with_name(path.name + BESIDE), text).rename(path)


def assert_old(machines, path, body):
    for machine in machines:
        assert machine.ask(path) == (body, "hit")


def assert_looks_again(machines, path, body):
    for machine in machines:
        assert machine.ask(path) == (body, "miss")


def stream(redis):
    """All messages, each a line, in their order."""
    return redis.cli("XRANGE", STREAM, "-", "+")


def counts(stats, machines, name):
    return [stats(machine)[name] for machine in machines]


def cut_off(redis, machine, until_away):
    machine.door.unlink()
    redis.cli("CLIENT", "KILL", "TYPE", "normal")
    wait_for(until_away, "the daemon to notice")


# A purge of one daemon

def test_purge_reaches_all(fleet, stats, until, ctl, docroot):
    first, others = fleet[0], fleet[1:]
    for machine in fleet:
        machine.warm("/shared/one.txt", "/shared/two.txt")
    replace(docroot / "shared/one.txt", "changed\n")
    assert_old(fleet, "/shared/one.txt", b"shared/one.txt\n")
    obeyed, own = counts(stats, others, "obeyed"), stats(first)
    ctl(first, "purge", docroot / "shared/one.txt")
    for machine, before in zip(others, obeyed):
        until(machine, "obeyed", before + 1)
    assert_looks_again(fleet, "/shared/one.txt", b"changed\n")
    assert_old(fleet, "/shared/two.txt", b"shared/two.txt\n")
    until(first, "published", own["published"] + 1)
    # Its own message has no effect on it.
    assert stats(first) == {**own, "published": own["published"] + 1}


@pytest.mark.parametrize("scope", [("--tree", "shared/dir"), ("--tree", "."), ("--all",)])
def test_purge_of_trees(fleet, stats, until, ctl, docroot, scope):
    first, others = fleet[0], fleet[1:]
    for machine in fleet:
        machine.warm("/shared/dir/a.txt", "/outside.txt")
    body = " ".join(scope).encode()
    replace(docroot / "shared/dir/a.txt", body)
    obeyed = counts(stats, others, "obeyed")
    ctl(first, "purge", scope[0], *(docroot / where for where in scope[1:]))
    for machine, before in zip(others, obeyed):
        until(machine, "obeyed", before + 1)
    assert_looks_again(fleet, "/shared/dir/a.txt", body)
    # A path outside of the fleet's roots concerns the first daemon alone.
    assert_old(others, "/outside.txt", b"outside.txt\n")


def test_path_outside_is_not_told(fleet, stats, until, ctl, docroot):
    first, second = fleet[:2]
    before, published = stats(second), stats(first)["published"]
    ctl(first, "purge", docroot / "outside.txt")
    ctl(first, "purge", docroot / "shared/two.txt")
    until(second, "received", before["received"] + 1)
    assert stats(first)["published"] == published + 1
    assert stats(second) == {**before, "received": before["received"] + 1, "obeyed": before["obeyed"] + 1}


def test_switch_reaches_all(fleet, stats, until, ctl, docroot):
    for machine in fleet:
        machine.warm("/shared/current/page.txt")
    received = counts(stats, fleet[1:], "obeyed")
    (docroot / "shared/current.new").symlink_to("v2")
    os.replace(docroot / "shared/current.new", docroot / "shared/current")
    ctl(fleet[0], "purge", "--tree", docroot / "shared/current")
    for machine, before in zip(fleet[1:], received):
        until(machine, "obeyed", before + 1)
    for machine in fleet:
        assert machine.ask("/shared/current/page.txt")[0] == b"shared/v2/page.txt\n"


# A change that one daemon sees

def test_changes_are_published(lab, redis, fleet, stats, until, docroot):
    watcher = Machine(lab, redis, docroot, "watcher", watch="inotify", publish_changes="true")
    until(watcher, "connected", 1)
    for name in ("f.txt", "before.txt", "after.txt"):
        tree.put(docroot / "shared/seen" / name, "old\n")
    for machine in (*fleet, watcher):
        machine.warm(*(f"/shared/seen/{name}" for name in ("f.txt", "before.txt", "after.txt")))
    received = counts(stats, fleet, "received")
    replace(docroot / "shared/seen/f.txt", "new\n")
    for machine in fleet:
        wait_for(lambda m=machine: m.ask("/shared/seen/f.txt")[0] == b"new\n", "the change to be seen", 60)
    for machine, before in zip(fleet, received):
        assert stats(machine)["received"] > before
    # A daemon does not publish again an event of the fleet. It publishes its own in the order of the changes.
    def change(name):
        replace(docroot / "shared/seen" / name, "new\n")
        wait_for(lambda: f"/shared/seen/{name}" in stream(redis), f"{name} to be published")
    change("before.txt")
    redis.cli("XADD", STREAM, "*", "fp1", f"{SENDER} path {docroot}/shared/seen/f.txt")
    until(watcher, "obeyed", 1)
    change("after.txt")
    _, message, later = stream(redis).partition(f"{SENDER} path {docroot}/shared/seen/f.txt")
    assert message and "/seen/after.txt" in later and "/seen/f.txt" not in later
    watcher.daemon.stop()


# Without Redis, and again with it

def test_redis_dies_and_comes_back(fleet, redis, stats, until, ctl, docroot):
    for machine in fleet:
        machine.warm("/shared/one.txt")
    known = fleet[0].ask("/shared/one.txt")[0]
    obeyed, lost = counts(stats, fleet, "obeyed"), counts(stats, fleet, "lost")
    redis.kill()
    for machine in fleet:
        wait_for(lambda m=machine: stats(m)["connected"] == 0, "the daemon to notice")
    replace(docroot / "shared/one.txt", "without redis\n")
    ctl(fleet[0], "purge", docroot / "shared/one.txt")
    assert_looks_again(fleet[:1], "/shared/one.txt", b"without redis\n")
    # The others have only the TTL.
    assert_old(fleet[1:], "/shared/one.txt", known)
    redis.start()
    for machine, before in zip(fleet[1:], obeyed[1:]):
        until(machine, "obeyed", before + 1)
    assert_looks_again(fleet[1:], "/shared/one.txt", b"without redis\n")
    assert counts(stats, fleet, "lost") == lost
    for machine in fleet:
        for effect in ("other machines' changes are seen only after the TTL", "other machines are not told of changes made here"):
            assert f"until there is one, {effect}" in machine.daemon.log_text()


def test_more_than_can_wait_is_everything(fleet, redis, stats, until, ctl, docroot):
    first, others = fleet[0], fleet[1:]
    for machine in others:
        machine.warm("/shared/one.txt", "/outside.txt")
    redis.kill()
    wait_for(lambda: stats(first)["connected"] == 0, "the daemon to notice")
    published, obeyed = stats(first)["published"], counts(stats, others, "obeyed")
    ctl(first, "purge", *(docroot / f"shared/{n}" for n in range(QUEUE + 1)))
    redis.start()
    for machine in others:
        wait_for(lambda m=machine: m.ask("/shared/one.txt")[1] == "miss", "everything to be forgotten", 60)
        assert machine.ask("/outside.txt")[1] == "hit"
    assert stats(first)["published"] == published + 1
    assert counts(stats, others, "obeyed") == [n + 1 for n in obeyed]


def test_messages_while_one_was_cut_off(fleet, redis, stats, until, ctl, docroot):
    first, last = fleet[0], fleet[-1]
    last.warm("/shared/two.txt", "/shared/dir/a.txt")
    before = stats(last)
    cut_off(redis, last, lambda: stats(last)["connected"] == 0)
    until(first, "connected", 1)
    replace(docroot / "shared/two.txt", "while away\n")
    for _ in range(2):
        published = stats(first)["published"]
        ctl(first, "purge", docroot / "shared/two.txt")
        until(first, "published", published + 1)
    assert last.ask("/shared/two.txt")[1] == "hit"
    last.open_door()
    until(last, "obeyed", before["obeyed"] + 2)
    assert_looks_again([last], "/shared/two.txt", b"while away\n")
    assert last.ask("/shared/dir/a.txt")[1] == "hit"
    assert stats(last)["lost"] == before["lost"]


def test_trimmed_stream(fleet, redis, stats, until, docroot):
    last = fleet[-1]
    last.warm("/shared/two.txt", "/outside.txt")
    lost = stats(last)["lost"]
    cut_off(redis, last, lambda: stats(last)["connected"] == 0)
    replace(docroot / "shared/two.txt", "trimmed\n")
    for machine in fleet[:-1]:
        until(machine, "connected", 1)
    received = counts(stats, fleet[:-1], "received")
    redis.cli("XADD", STREAM, "*", "fp1", f"{SENDER} join")
    for machine, before in zip(fleet[:-1], received):
        until(machine, "received", before + 1)
    redis.cli("XTRIM", STREAM, "MAXLEN", "1")
    last.open_door()
    until(last, "lost", lost + 1)
    until(last, "connected", 1)
    wait_for(lambda: last.ask("/shared/two.txt")[0] == b"trimmed\n", "everything to be forgotten", 60)
    assert last.ask("/outside.txt")[1] == "hit"
    assert "FP0063" in last.daemon.log_text()


def test_emptied_redis(fleet, redis, stats, until, ctl, docroot):
    """Those that wait for the next entry notice it, too."""
    for machine in fleet:
        machine.warm("/shared/two.txt")
    lost = counts(stats, fleet, "lost")
    replace(docroot / "shared/two.txt", "emptied\n")
    redis.cli("FLUSHALL")
    for machine, before in zip(fleet, lost):
        until(machine, "lost", before + 1)
        wait_for(lambda m=machine: m.ask("/shared/two.txt")[0] == b"emptied\n", "all to be forgotten", 60)
    received = stats(fleet[1])["obeyed"]
    ctl(fleet[0], "purge", docroot / "shared/two.txt")
    until(fleet[1], "obeyed", received + 1)


# Content that must not be trusted

def test_garbage_in_the_stream(fleet, redis, stats, until, docroot):
    one = fleet[0]
    one.warm("/shared/one.txt", "/outside.txt")
    before = stats(one)
    shared = docroot / "shared"
    entries = [("fp1", "garbage"), ("fp1", ""), ("fp2", f"{SENDER} all"), ("fp1", f"{SENDER} path relative"),
               ("fp1", f"{SENDER} path {shared}/../outside.txt"), ("fp1", f"{SENDER} tree {shared}/"),
               ("fp1", f"{SENDER} all", "more", "fields"), ("fp1", f"{SENDER} path /" + "x" * 5000),
               ("fp1", f"{SENDER} path {docroot}/outside.txt"), ("fp1", f"{SENDER} tree /"),
               ("fp1", f"{SENDER} all\n"), ("fp1", "\x1b[2J" * 4)]
    for entry in entries:
        redis.cli("XADD", STREAM, "*", *entry)
    until(one, "dropped", before["dropped"] + len(entries))
    assert_old([one], "/shared/one.txt", one.ask("/shared/one.txt")[0])
    assert_old([one], "/outside.txt", b"outside.txt\n")
    after = stats(one)
    assert (after["obeyed"], after["connected"]) == (before["obeyed"], 1)
    assert "\x1b" not in one.daemon.log_text()


ODD_ENTRIES = ["redis.call('XADD', KEYS[1], '*', 'fp1', string.rep('x', 2000000))",
               "local f = {} for i = 1, 2002 do f[i] = tostring(i) end redis.call('XADD', KEYS[1], '*', unpack(f))",
               "redis.call('XADD', KEYS[1], '*', string.rep('x', 2000000), 'fp1')"]


def test_larger_entries_are_stepped_over(fleet, redis, stats, until):
    """Entries that are larger than any message, and that an answer has room for."""
    before = [stats(machine) for machine in fleet]
    redis.cli("EVAL", f"for i = 1, 130 do redis.call('XADD', KEYS[1], '*', 'fp1', '{'x' * 9000}') end", 1, STREAM)
    redis.cli("EVAL", ODD_ENTRIES[1].replace("2002", "202"), 1, STREAM)
    for machine, was in zip(fleet, before):
        until(machine, "dropped", was["dropped"] + 131)
        now = stats(machine)
        assert (now["dropped"], now["lost"], now["connected"]) == (was["dropped"] + 131, was["lost"], 1)


@pytest.mark.parametrize("odd", range(len(ODD_ENTRIES)))
def test_entry_that_no_answer_has_room_for(fleet, redis, stats, until, ctl, docroot, flashpachectl, odd):
    """All forget everything, and are a fleet again behind it."""
    first, others = fleet[0], fleet[1:]
    for machine in fleet:
        machine.warm("/shared/one.txt", "/outside.txt")
    before = [stats(machine) for machine in fleet]
    replace(docroot / "shared/one.txt", f"behind odd entry {odd}\n")
    redis.cli("EVAL", ODD_ENTRIES[odd], 1, STREAM)
    for machine, was in zip(fleet, before):
        until(machine, "lost", was["lost"] + 1)
        until(machine, "connected", 1)
        wait_for(lambda m=machine: m.ask("/shared/one.txt")[0] == f"behind odd entry {odd}\n".encode(),
                 "everything to be forgotten", 60)
        assert machine.ask("/outside.txt")[1] == "hit"
        assert stats(machine)["lost"] == was["lost"] + 1
    obeyed = counts(stats, others, "obeyed")
    ctl(first, "purge", docroot / "shared/one.txt")
    for machine, was in zip(others, obeyed):
        until(machine, "obeyed", was + 1)
        said = lambda m=machine: flashpachectl("-s", m.daemon.socket, "check").stdout
        wait_for(lambda: "ok    the fleet's stream is being read" in said(), "messages to be taken again", 60)
        assert "entries of the fleet's stream were not messages" in said()


def test_stream_that_cannot_be_read_is_joined_anew(lab, base, docroot, flashpachectl):
    path = base / "stuck.sock"
    stuck = BadRedis(path, b"!\r\n", joins=True)
    daemon = lab.daemon("stuck-daemon", watch="ttl")
    daemon.write_config(section(f"unix:{path}", [docroot / "shared"]))
    with daemon:
        wait_for(lambda: "FP0064" in daemon.log_text(), "the place to be given up", 60)
        wait_for(lambda: fleet_stats(flashpachectl, daemon)["lost"] >= 1, "everything to be forgotten", 60)
        wait_for(lambda n=stuck.joined: stuck.joined > n, "the daemon to join anew", 60)
        assert fleet_stats(flashpachectl, daemon)["dropped"] >= 1
    stuck.close()


def test_fleet_that_hears_nothing_is_unhealthy(lab, base, redis, docroot, flashpachectl):
    """The same when the fleet hears nothing: any process that may add entries may use up the numbers of the stream."""
    daemon = lab.daemon("deaf-daemon", watch="ttl")
    said = lambda: flashpachectl("-s", daemon.socket, "check").stdout
    with daemon:
        assert "fleet's" not in said()
    daemon.write_config(section(f"unix:{base}/nobody.sock", [docroot / "shared"]))
    with daemon:
        done = flashpachectl("-s", daemon.socket, "check")
        assert done.returncode == 1 and "BAD   the fleet's stream is not being read" in done.stdout, done
    daemon.write_config(section(f"unix:{redis.socket}", [docroot / "shared"], name="full"))
    with daemon:
        wait_for(lambda: "ok    the fleet's stream" in said(), "the fleet to be heard", 60)
        redis.cli("XADD", "flashpache:full", "18446744073709551615-18446744073709551615", "fp1", "x")
        assert flashpachectl("-s", daemon.socket, "purge", docroot / "shared/one.txt").returncode == 0
        wait_for(lambda: "BAD   Redis accepts no message" in said(), "check to say so", 60)
    redis.cli("DEL", "flashpache:full")


def test_flood(fleet, redis, stats, until, docroot):
    """Too many changes become one "everything" a second, and requests go on."""
    one = fleet[0]
    before = counts(stats, fleet, "obeyed")
    script = (f"for i = 1, {FLOOD} do redis.call('XADD', KEYS[1], '*', 'fp1', "
              f"'{SENDER} tree {docroot}/shared/' .. i) end")
    redis.cli("EVAL", script, 1, STREAM)
    while stats(one)["obeyed"] < before[0] + FLOOD:
        assert one.ask("/shared/one.txt")[0] == (docroot / "shared/one.txt").read_bytes()
    for machine, obeyed in zip(fleet, before):
        until(machine, "obeyed", obeyed + FLOOD)
        until(machine, "connected", 1)


def test_message_counts_once_its_entries_are_forgotten(fleet, redis, stats, docroot):
    last = fleet[-1]
    messages = [f"/nothing/{i}" for i in range(READ - 1)] + ["/one.txt"]
    script = (f"for _, path in ipairs(ARGV) do redis.call('XADD', KEYS[1], '*', 'fp1', "
              f"'{SENDER} path {docroot}/shared' .. path) end")
    for _ in range(10):
        last.warm("/shared/one.txt")
        obeyed = stats(last)["obeyed"]
        redis.cli("EVAL", script, 1, STREAM, *messages)
        wait_for(lambda: stats(last)["obeyed"] == obeyed + READ, "all to be obeyed")
        assert last.ask("/shared/one.txt")[1] == "miss"


def test_path_that_is_no_stream(lab, redis, docroot, flashpachectl):
    """A daemon of its own: one that lost connections lately logs no more of them (five in ten seconds)."""
    daemon = lab.daemon("no-stream-daemon", watch="ttl")
    daemon.write_config(section(f"unix:{redis.socket}", [docroot / "shared"], name="text"))

    def connects():
        wait_for(lambda: fleet_stats(flashpachectl, daemon)["connected"] == 1, "the daemon to connect", 60)
    with daemon:
        connects()
        redis.cli("SET", "flashpache:text", "text")
        wait_for(lambda: "WRONGTYPE" in daemon.log_text(), "the error to be logged")
        redis.cli("DEL", "flashpache:text")
        connects()


BAD = {"unasked": b"+OK\r\n" * 3, "string": b"$-1\r\n", "array": b"*2000000000\r\n", "nested": b"*7\r\n" * 9,
       "long": b"$500000000\r\n" + b"x" * 65536, "elements": b"*900\r\n" + b"*900\r\n" * 2 + b"+\r\n" * 20000,
       "no protocol": b"HTTP/1.0 200 OK\r\n\r\n", "error": b"-ERR \x1b[2J no\r\n", "id": b"$3\r\n../\r\n",
       "entries": b"$3\r\n1-1\r\n*1\r\n*2\r\n$3\r\n1-1\r\n$-1\r\n"}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_bad_redis(lab, base, docroot, flashpachectl, answer):
    path = base / f"bad{list(BAD.values()).index(answer)}.sock"
    bad = BadRedis(path, answer)
    daemon = lab.daemon(f"bad-{path.stem}", watch="ttl")
    daemon.write_config(section(f"unix:{path}", [docroot / "shared"]))
    with daemon:
        wait_for(lambda: daemon.log_text().count("FP0061") > 0, "the connection to be given up", 60)
        wait_for(lambda b=bad.answered: bad.answered > b, "another attempt", 60)
        assert fleet_stats(flashpachectl, daemon)["published"] == 0
        assert int(next(line.split()[1] for line in open(f"/proc/{daemon.pid}/status")
                        if line.startswith("VmRSS"))) < 200000
        assert "\x1b" not in daemon.log_text()
    bad.close()


def test_password(lab, base, docroot, flashpachectl):
    server = Redis(base, "locked", "--requirepass", "right").start()
    secret = base / "secret"
    secret.write_text("wrong\n")
    secret.chmod(0o644)
    daemon = lab.daemon("locked-daemon", watch="ttl")
    daemon.write_config(section(f"unix:{server.socket}", [docroot / "shared"], password_file=secret))
    with daemon:
        wait_for(lambda: "WRONGPASS" in daemon.log_text(), "the password to be refused")
        assert fleet_stats(flashpachectl, daemon)["connected"] == 0
        secret.write_text("right\n")
        wait_for(lambda: fleet_stats(flashpachectl, daemon)["connected"] == 1, "the right password to do", 60)
        assert "wrong" not in daemon.log_text() and "right\n" not in daemon.log_text()
    server.stop()


def test_password_on_a_file_system_that_hangs(lab, base, docroot, flashpachectl):
    """The daemon goes on answering, and has the connection once the file can be read."""
    slowfs.needed()
    server = Redis(base, "hung", "--requirepass", "right").start()
    source, here = base / "hung-source", base / "hung-secret"
    tree.put(source / "secret", "right\n")
    (source / "secret").chmod(0o644)
    mount = Breakable(built("tests/lab/slowfs/slowfs"), source, here)
    mount.mount()
    try:
        mount.behave("hang")
        daemon = lab.daemon("hung-daemon", watch="ttl")
        daemon.write_config(section(f"unix:{server.socket}", [docroot], password_file=here / "secret"))
        with daemon:
            for _ in range(3):
                assert fleet_stats(flashpachectl, daemon)["connected"] == 0
                assert flashpachectl("-s", daemon.socket, "explain", docroot / "outside.txt").returncode == 0
            mount.behave("normal")
            wait_for(lambda: fleet_stats(flashpachectl, daemon)["connected"] == 1, "the password", 60)
    finally:
        mount.unmount()
        server.stop()


def test_least_rights_over_tcp(lab, base, docroot, flashpachectl):
    """A user of Redis with the rights from docs/fleet.md, a port, and a database."""
    port = free_port()
    server = Redis(base, "tcp", "--port", str(port)).start()
    server.cli("ACL", "SETUSER", "flashpache", "on", ">pass word", "resetkeys", "~flashpache:www", "resetchannels",
               "-@all", "+ping", "+select", "+xadd", "+xread", "+xrange")
    secret = base / "least"
    secret.write_text("pass word\n")
    secret.chmod(0o644)
    daemon = lab.daemon("least-daemon", watch="ttl")
    daemon.write_config(section(f"redis://127.0.0.1:{port}/3", [docroot], name="www", user="flashpache",
                                password_file=secret))
    with daemon:
        wait_for(lambda: fleet_stats(flashpachectl, daemon)["connected"] == 1, "the connection", 60)
        assert flashpachectl("-s", daemon.socket, "purge", docroot / "shared/one.txt").returncode == 0
        wait_for(lambda: fleet_stats(flashpachectl, daemon)["published"] == 1, "the message to be stored", 60)
        assert server.cli("-n", "3", "XLEN", "flashpache:www") == "2"
    server.stop()


# Settings

def test_reload(lab, redis, docroot, flashpachectl):
    daemon = lab.daemon("reload-daemon", watch="ttl").start()

    def reload_with(text, connected):
        daemon.write_config(text)
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: fleet_stats(flashpachectl, daemon)["connected"] == connected, "the reload", 60)

    with_fleet = section(f"unix:{redis.socket}", [docroot / "shared"], name="reload")
    length = lambda name: int(redis.cli("XLEN", f"flashpache:{name}"))
    reload_with(with_fleet, 1)
    joined = length("reload")
    # The same once more: the position in the stream stays.
    reread = daemon.log_text().count("reread")
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: daemon.log_text().count("reread") > reread, "the same again")
    assert (fleet_stats(flashpachectl, daemon)["connected"], length("reload")) == (1, joined)
    daemon.write_config(with_fleet.replace('"reload"', '"other"'))
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: length("other") == 1, "another fleet")
    reload_with("", 0)
    reload_with(with_fleet, 1)
    assert daemon.stop() == 0


@pytest.mark.parametrize("text, message", [
    ('fleet { url = "rediss://10.0.0.1" roots = {"/srv"} }', "no TLS"),
    ('fleet { url = "redis://redis.example" roots = {"/srv"} }', "is numeric"),
    ('fleet { url = "redis://10.0.0.1:70000" roots = {"/srv"} }', "ADDRESS"),
    ('fleet { url = "redis://10.0.0.1/x" roots = {"/srv"} }', "ADDRESS"),
    ('fleet { url = "unix:relative" roots = {"/srv"} }', "unix:/PATH"),
    ('fleet { url = "redis://10.0.0.1" }', "needs roots"),
    ('fleet { roots = {"/srv"} }', "needs a url"),
    ('fleet { url = "redis://10.0.0.1" roots = {"/srv/"} }', "not an absolute path"),
    ('fleet { url = "redis://10.0.0.1" roots = {"/srv"} name = "a b" }', "name"),
    ('fleet { url = "redis://10.0.0.1" roots = {"/srv"} user = "x" }', "password_file"),
    ('fleet { url = "redis://10.0.0.1" roots = {"/srv"} stream_max = 0 }', "stream_max"),
])
def test_mistakes(lab, text, message):
    daemon = lab.daemon("mistake" + str(abs(hash(text))))
    daemon.write_config(text + "\n")
    done = daemon.run("-t")
    assert done.returncode == 1 and message in done.stderr, done


@pytest.mark.parametrize("url", ["redis://127.0.0.1", "redis://10.0.0.1:6380/3", "redis://[::1]:6379/",
                                 "unix:/run/redis/redis.sock"])
def test_good_urls(lab, url):
    daemon = lab.daemon("good" + str(abs(hash(url))))
    daemon.write_config(section(url, ["/srv"], publish_changes="true"))
    done = daemon.run("-t")
    assert done.returncode == 0, done
