# SPDX-License-Identifier: Apache-2.0
"""flashpachectl, and its questions to the daemon: after it has returned, requests see its effect."""

import contextlib
import os
import pwd
import signal
import struct
import threading

import pytest

import test_hostile_daemon as hostile
import tree
import wire
from fetch import Client, get
from httpd import USER
from waiting import Threads, until_good, wait_for

pytestmark = pytest.mark.needs_flashpache

TTL_MS = 60000              # nothing but a purge shows a change in time
NO_LEASES = "FlashpacheLeases 0\n"
SWITCHES = 50
CLIENTS = 4
ENOUGH = 6                  # requests that begin and end between two switches
MISSING = "no-such-file"
MOST_PARTS = 10_000         # of a report; the daemon's own have a few


@pytest.fixture(scope="module")
def root(base):
    root = base / "control-tree"
    for name in ("one.txt", "two.txt", "dir/a.txt", "dir/sub/b.txt", "dirx/c.txt"):
        tree.put(root / name, f"{name}\n")
    return root


@pytest.fixture(scope="module")
def server(lab, root):
    return lab.under_test("flash", root, config=NO_LEASES + f"<Directory {root}>\nAllowOverride All\n</Directory>",
                          daemon_settings={"ttl_ms": TTL_MS, "watch": "ttl"})


@pytest.fixture
def ctl(flashpachectl, server):
    """Runs one command against the server's daemon."""
    def run(*args, **options):
        return flashpachectl("-s", server.daemon.socket, *args, **options)
    return run


def ask(server, path):
    """(status, body, note) of one request."""
    mark = server.mark()
    status, body = get(server.port, path)
    return status, body, server.wait_entries(1, mark)[-1].note


def assert_note(server, path, note):
    found = ask(server, path)
    assert found[2] == note, (path, found)


def warm(server, *paths):
    """If something was mounted during a look, the daemon looks once more."""
    for path in paths:
        wait_for(lambda: ask(server, path)[2] == "hit", f"{path} to be known")


def replace(path, text):
    """As a deployment does it: another file takes the name."""
    tree.put(path.with_name("beside"), text).rename(path)


def done(finished, code=0):
    assert finished.returncode == code, finished
    return finished.stdout


# purge

def test_purged_path_is_looked_at_again(server, root, ctl):
    warm(server, "/one.txt", "/two.txt")
    assert done(ctl("purge", root / "one.txt")) == "1 entries forgotten\n"
    assert_note(server, "/one.txt", "miss")
    assert_note(server, "/two.txt", "hit")
    replace(root / "one.txt", "changed\n")
    assert ask(server, "/one.txt") == (200, b"one.txt\n", "hit")
    done(ctl("purge", root / "one.txt"))
    assert ask(server, "/one.txt") == (200, b"changed\n", "miss")
    replace(root / "one.txt", "one.txt\n")
    done(ctl("purge", "one.txt", "./dir/../two.txt", cwd=root))
    assert_note(server, "/one.txt", "miss")
    assert_note(server, "/two.txt", "miss")


def test_purge_says_when_nothing_was_known(root, ctl):
    never_asked = tree.put(root / "never-asked.txt", "x\n")
    assert done(ctl("purge", never_asked)) == f"nothing was known of {never_asked}\n0 entries forgotten\n"
    out = done(ctl("purge", root / "misspelt.txt", "--tree"))
    assert out == f"nothing was known of {root}/misspelt.txt: No such file or directory\n0 entries forgotten\n"


def test_purged_absent_name_appears(server, root, ctl):
    ask(server, f"/{MISSING}")
    assert ask(server, f"/{MISSING}")[::2] == (404, "hit")
    tree.put(root / MISSING, "here\n")
    assert ask(server, f"/{MISSING}")[::2] == (404, "hit")
    done(ctl("purge", root / MISSING))
    assert ask(server, f"/{MISSING}") == (200, b"here\n", "miss")


def test_file_in_a_directory_that_was_absent(server, root, ctl):
    ask(server, "/new/deep/file.txt")
    assert ask(server, "/new/deep/file.txt")[::2] == (404, "hit")
    tree.put(root / "new/deep/file.txt", "here\n")
    done(ctl("purge", root / "new/deep/file.txt"))
    assert ask(server, "/new/deep/file.txt") == (200, b"here\n", "miss")


def test_purged_access_file_holds(server, root, ctl):
    warm(server, "/dir/a.txt")
    tree.put(root / "dir/.htaccess", "Require all denied\n")
    done(ctl("purge", root / "dir/.htaccess"))
    assert ask(server, "/dir/a.txt")[0] == 403
    (root / "dir/.htaccess").unlink()
    done(ctl("purge", root / "dir/.htaccess"))
    assert ask(server, "/dir/a.txt")[0] == 200


def test_purged_tree(server, root, ctl):
    below = ("/dir/a.txt", "/dir/sub/b.txt")
    # Directories that changed before would be seen now, with all that is below them.
    done(ctl("purge", "--all"))
    warm(server, *below, "/dirx/c.txt", "/two.txt")
    for name in below:
        replace(root / name[1:], "changed\n")
        assert ask(server, name) == (200, f"{name[1:]}\n".encode(), "hit")
    done(ctl("purge", "--tree", root / "dir"))
    for path in below:
        assert ask(server, path) == (200, b"changed\n", "miss")
    assert_note(server, "/dirx/c.txt", "hit")
    assert_note(server, "/two.txt", "hit")


def test_replaced_directory(server, root, ctl):
    """A walk may begin at a directory that is kept open, but not at one that was replaced."""
    tree.put(root / "swap/f.txt", "old\n")
    tree.put(root / "swap.new/f.txt", "new\n")
    warm(server, "/swap/f.txt")
    (root / "swap").rename(root / "swap.old")
    (root / "swap.new").rename(root / "swap")
    done(ctl("purge", "--tree", root / "swap"))
    assert ask(server, "/swap/f.txt") == (200, b"new\n", "miss")


def test_purge_all(server, root, ctl):
    warm(server, "/one.txt", "/dirx/c.txt")
    done(ctl("purge", "--all"))
    counters = dict(line.split() for line in done(ctl("stats")).splitlines())
    assert (counters["files"], counters["directories"], counters["negative"]) == ("0", "0", "0")
    assert_note(server, "/one.txt", "miss")
    assert_note(server, "/dirx/c.txt", "miss")


def test_no_descriptor_is_left(server, root, ctl):
    done(ctl("purge", "--all"))
    before = server.daemon.fd_count()
    for _ in range(3):
        warm(server, "/one.txt", "/two.txt", "/dir/a.txt")
        done(ctl("purge", "--all"))
    wait_for(lambda: server.daemon.fd_count() <= before, "the descriptors to be closed")


# warm

def test_warmed_path_is_a_hit_at_once(server, root, ctl):
    done(ctl("purge", "--all"))
    out = done(ctl("warm", "--access-file", ".htaccess", "-", input=f"{root}/one.txt\n\n{root}/dir/a.txt\n{root}/none\n"))
    assert out == "2 found, 1 absent, 0 failed\n"
    assert_note(server, "/one.txt", "hit")
    assert_note(server, "/dir/a.txt", "hit")
    assert_note(server, "/none", "hit")


def test_warm_from_a_file_with_other_access_files(server, root, ctl, base):
    paths = tree.put(base / "paths", "two.txt\ndir/sub/b.txt")
    done(ctl("purge", "--all"))
    assert done(ctl("warm", "--access-file", ".acl", paths, cwd=root)) == "2 found, 0 absent, 0 failed\n"
    # The daemon looks for the names of all its clients.
    assert_note(server, "/two.txt", "hit")


def test_warm_goes_on_after_a_failure(server, root, ctl):
    secret = root / "secret"
    tree.put(secret / "f.txt", "x\n")
    secret.chmod(0o700)
    names = f"{secret}/f.txt\n/{'x' * 5000}\n{root}/dirx/c.txt\n"
    finished = ctl("warm", "-", input=names)
    assert done(finished, 1) == "1 found, 0 absent, 2 failed\n"
    assert f"{secret}/f.txt: permission denied" in finished.stderr
    assert "longer than" in finished.stderr


# switch

@pytest.fixture
def releases(root):
    """releases/a, releases/b and the link `current`, which leads to a."""
    for name in ("a", "b"):
        for i in range(5):
            tree.put(root / f"releases/{name}/x{i}.txt", f"release {name}\n")
    (root / "current").unlink(missing_ok=True)
    (root / "current").symlink_to("releases/a")
    return root / "current"


def switched(run, link, target):
    """Points the link at the target as docs/cookbook/deployments.md does; what the purge of the tree below printed."""
    new = link.with_name(f"{link.name}.new")
    new.symlink_to(target)
    os.replace(new, link)
    return done(run("purge", "--tree", link))


def test_switched_link_leads_elsewhere(server, root, ctl, releases):
    done(ctl("purge", "--all"))
    warm(server, "/current/x0.txt", "/two.txt")
    assert switched(ctl, releases, "releases/b").endswith(" entries forgotten\n")
    assert ask(server, "/current/x0.txt") == (200, b"release b\n", "miss")
    # Nothing else in the directory of the link is concerned.
    assert_note(server, "/two.txt", "hit")
    switched(ctl, releases, root / "releases/a")
    assert ask(server, "/current/x0.txt")[1] == b"release a\n"


def test_link_that_is_made(server, root, ctl, releases):
    releases.unlink()
    done(ctl("purge", "--all"))
    assert [ask(server, "/current/x0.txt")[::2] for _ in range(2)] == [(404, "miss"), (404, "hit")]
    switched(ctl, releases, "releases/b")
    assert ask(server, "/current/x0.txt")[:2] == (200, b"release b\n")


class Clients(Threads):
    """Threads that ask for /current/x*.txt and check that one release alone explains each answer."""

    def __init__(self, server):
        super().__init__(self._run, [()] * CLIENTS)
        self.server = server
        self.state = None               # (number, body) from a switch's return until the next begins
        self.judged, self.wrong, self.problems = {}, [], []
        self.lock = threading.Lock()

    def _run(self):
        try:
            with Client(self.server.port) as client:
                turn = 0
                while not self.over.is_set():
                    turn += 1
                    self._ask(client, f"/current/x{turn % 5}.txt")
        except Exception as problem:    # a thread that ended checks nothing any more
            self.problems.append(problem)

    def _ask(self, client, path):
        before = self.state
        answer = client.get(path)
        if before is None or self.state is not before:
            return
        with self.lock:
            number, body = before
            self.judged[number] = self.judged.get(number, 0) + 1
            if answer != (200, body):
                self.wrong.append((number, path, answer))

    def enough(self, number):
        return self.problems or self.judged.get(number, 0) >= ENOUGH


def switch_often(server, ctl, link):
    """Switch between a and b under load; the clients."""
    with Clients(server) as clients:
        for number in range(SWITCHES):
            name = "ba"[number % 2]
            clients.state = None
            switched(ctl, link, f"releases/{name}")
            clients.state = (number, f"release {name}\n".encode())
            wait_for(lambda: clients.enough(number), f"requests after switch {number}")
        clients.state = None
    return clients


def test_requests_after_a_switch_see_the_new_release(server, ctl, releases):
    mark = server.mark()
    clients = switch_often(server, ctl, releases)
    assert clients.problems == []
    assert clients.wrong == [], f"{len(clients.wrong)} of {sum(clients.judged.values())}"
    assert len(clients.judged) == SWITCHES
    notes = [entry.note for entry in server.entries(mark)]
    assert notes.count("hit") > SWITCHES, "the daemon's cache was hardly used"
    assert set(notes) <= {"hit", "miss"}


def test_leases_end_with_a_switch(lab, root, flashpachectl, releases):
    server = lab.under_test("leases", root, daemon_settings={"ttl_ms": TTL_MS, "watch": "ttl"})

    def run(*args):
        return flashpachectl("-s", server.daemon.socket, *args)
    try:
        for _ in range(50):         # until every child has one
            get(server.port, "/current/x0.txt")
        switched(run, releases, "releases/b")
        assert {get(server.port, "/current/x0.txt") for _ in range(50)} == {(200, b"release b\n")}
    finally:
        server.stop()


# reports

def test_stats_are_those_of_the_log(server, ctl):
    warm(server, "/one.txt")
    names = [line.split()[0] for line in done(ctl("stats")).splitlines()]
    before = len(server.daemon.log_text())
    server.daemon.signal(signal.SIGUSR1)

    def logged():
        lines = [line for line in server.daemon.log_text()[before:].splitlines() if "FP0006" in line]
        return lines and lines[-1].split("info: ")[1]
    line = wait_for(logged, "a line of counters")
    assert [field.split("=")[0] for field in line.split()] == names
    counters = dict(line.split() for line in done(ctl("stats")).splitlines())
    assert all(value.isdigit() for value in counters.values())
    assert int(counters["hits"]) > 0 and int(counters["files"]) > 0
    assert int(counters["wakeups"]) > 0 and int(counters["ready"]) > 0


def test_mounts(ctl):
    lines = [line.split() for line in done(ctl("mounts")).splitlines()]
    with open("/proc/self/mountinfo") as mounts:
        assert len(lines) == len(list(mounts))
    assert any(fields[0] == "/" for fields in lines)
    assert {fields[2] for fields in lines} <= {"ttl", "inotify"}
    looked_at = ("ttl_ms=0", "negative_ttl_ms=0", "stale_if_error_ms=0")
    assert {tuple(fields[3:6]) for fields in lines} == {
        (f"ttl_ms={TTL_MS}", f"negative_ttl_ms={TTL_MS}", "stale_if_error_ms=0"), looked_at}
    assert [(fields[2], *fields[3:6]) for fields in lines if fields[0] == "/proc"] == [("ttl", *looked_at)]


# without a daemon, and wrong command lines

@pytest.fixture
def nobody(flashpachectl, base):
    return lambda *args, **options: flashpachectl("-s", base / "nobody.sock", *args, **options)


@pytest.mark.parametrize("command", (["purge", "/a"], ["purge", "--tree", "/a", "/b"], ["purge", "--all"], ["stats"],
                                     ["mounts"]))
def test_without_a_daemon(nobody, base, command):
    finished = nobody(*command)
    assert done(finished, 3) == ""
    assert str(base / "nobody.sock") in finished.stderr and len(finished.stderr.splitlines()) == 1


def test_warm_without_a_daemon(nobody):
    finished = nobody("warm", "-", input="/a\n/b\n")
    assert done(finished, 3) == "0 found, 0 absent, 0 failed\n"


def test_socket_from_the_configuration(server, flashpachectl, root):
    done(flashpachectl("-c", server.daemon.config, "purge", root / "one.txt"))


def test_daemon_that_hangs(lab, flashpachectl):
    daemon = lab.daemon("hung").start()
    daemon.signal(signal.SIGSTOP)
    try:
        finished = flashpachectl("-s", daemon.socket, "-T", "200", "purge", "--all")
    finally:
        daemon.signal(signal.SIGCONT)
    assert done(finished, 3) == "" and "in time" in finished.stderr


def test_another_user_is_refused(server, ctl):
    entry = pwd.getpwnam("nobody")
    finished = ctl("purge", "--all", user=entry.pw_uid, group=entry.pw_gid, extra_groups=[])
    assert finished.returncode == 3 and "user" in finished.stderr


def test_daemon_s_own_user_may_ask(server, ctl):
    entry = pwd.getpwnam(USER)
    done(ctl("purge", "--all", user=entry.pw_uid, group=entry.pw_gid, extra_groups=[]))


@pytest.mark.parametrize("command", (
    [], ["forget"], ["purge"], ["purge", "--all", "/a"], ["purge", "--all", "--tree", "/a"], ["purge", "--no"],
    ["warm"], ["warm", "a", "b"], ["warm", "--access-file", "a/b", "-"],
    ["warm", *["--access-file", "n"] * 5, "-"],
    ["stats", "more"], ["mounts", "more"], ["-T", "0", "stats"], ["-T", "1s", "stats"], ["-x", "stats"],
    ["-c", "/no/such/file", "stats"], ["-s", "/" + "s" * 120, "stats"]), ids=" ".join)
def test_wrong_usage(nobody, flashpachectl, command):
    finished = (flashpachectl if command[:1] in (["-c"], ["-s"]) else nobody)(*command)
    assert done(finished, 2) == "" and finished.stderr


def test_help_and_version(flashpachectl):
    assert "purge --tree DIR" in done(flashpachectl("--help"))
    assert done(flashpachectl("--version")).startswith("flashpachectl ")


def test_output_that_cannot_be_written(server, flashpachectl):
    with open("/dev/full", "w") as full:
        finished = flashpachectl("-s", server.daemon.socket, "stats", stdout=full)
    assert finished.returncode == 1 and "standard output" in finished.stderr


# the wire

def counter(conn, name):
    text = wire.parse_done(wire.ask(conn, wire.report(wire.STATS)))[3]
    return int(dict(line.split() for line in text.splitlines())[name])


def test_walk_under_way_is_not_kept(lab, base, slow_directory):
    """A purge while a worker looks at a directory at which a walk to a file is to go on."""
    source = base / "walked-source"
    source.mkdir()
    mount = slow_directory(source, 150_000)
    daemon = lab.daemon("walked", ttl_ms=TTL_MS).start()
    names = (f"d{n}" for n in range(100))

    def walked():
        name = next(names)
        tree.put(source / name / "f.txt", "x\n")
        place = mount / name
        with (wire.greet(daemon.socket) as file, wire.greet(daemon.socket) as directory,
              wire.greet(daemon.socket) as late):
            joined = counter(late, "joined")
            file.sendall(wire.whole_lookup(place / "f.txt"))
            wait_for(lambda: counter(late, "running") == 1, "the walk to the directory to begin")
            directory.sendall(wire.whole_lookup(place))
            wait_for(lambda: counter(late, "joined") == joined + 1 or counter(late, "running") == 0,
                     "the second question to join it")
            forgotten = wire.parse_done(wire.ask(late, wire.purge(wire.TREE, place)))
            if forgotten != (0, 0, 0, "") or counter(late, "running") != 1:
                return "the walk ended too early for this test"
            # A new question gets nothing of that walk's result, though the walk has not ended.
            late.sendall(wire.whole_lookup(place))
            answers = [wire.parse_answer(wire.receive(conn)) for conn in (directory, late, file)]
            return answers, [wire.parse_answer(wire.ask(late, wire.whole_lookup(path)))[1]
                             for path in (place, place / "f.txt")]
    # The walk looks at the file only after the purge, so its answer is as good as any. If something was mounted
    # beside it meanwhile, no answer is.
    wanted = ([(0, wire.LOOKED, True)] * 3, [wire.KNOWN] * 2)
    found = until_good(walked, lambda found: found == wanted)
    assert found == wanted


def packets():
    yield "scope-0", wire.purge(0, "/a")
    yield "scope-4", wire.purge(4, "/a")
    yield "all-with-a-path", wire.purge(wire.ALL, "/a")
    yield "no-path", wire.purge(wire.PATH)
    yield "relative", wire.purge(wire.TREE, "etc")
    yield "dots", wire.purge(wire.TREE, "/tmp/../etc")
    yield "slash-at-the-end", wire.purge(wire.TREE, "/tmp/")
    yield "nul", wire.purge(wire.PATH, "/etc\0/passwd")
    yield "too-long", wire.purge(wire.PATH, "/" + "a" * 4095)
    yield "length-lies", wire.purge(wire.PATH, "/tmp", claimed=4000)
    yield "too-much", wire.frame(wire.CONTROL, b"\1\3\0\0\0", 1)
    yield "nothing", wire.frame(wire.CONTROL, b"", 1)
    yield "operation-0", wire.frame(wire.CONTROL, b"\0\1\0\0\0\0", 1)
    yield "operation-5", wire.frame(wire.CONTROL, b"\5\1\0\0\0\0", 1)
    yield "level-4", wire.frame(wire.CONTROL, b"\3\4", 1)
    yield "no-level", wire.frame(wire.CONTROL, b"\3", 1)
    yield "explained-dots", wire.frame(wire.CONTROL, b"\4\0\5/a/..\0", 1)
    yield "explained-too-many-names", wire.frame(wire.CONTROL, b"\4\0\2/a\5" + b"\1x" * 5, 1)
    yield "report-0", wire.report(0)
    yield "report-7", wire.report(7)
    yield "short-report", wire.report(wire.STATS)[:-1]
    yield "done", wire.frame(wire.DONE, b"\0" * 15, 1)


@pytest.mark.parametrize("packet", [p for _, p in packets()], ids=[n for n, _ in packets()])
def test_hostile_frame_ends_its_connection(server, packet):
    warm(server, "/two.txt")
    with wire.greet(server.daemon.socket) as conn:
        conn.sendall(packet)
        assert wire.is_closed_by_peer(conn)
    assert_note(server, "/two.txt", "hit")


def test_control_before_hello(server):
    with wire.connect(server.daemon.socket) as conn:
        conn.sendall(wire.purge(wire.ALL))
        assert wire.is_closed_by_peer(conn)


def test_cursor_beyond_the_end(server):
    with wire.greet(server.daemon.socket) as conn:
        for cursor in (1000, 2**32 - 1):
            assert wire.parse_done(wire.ask(conn, wire.report(wire.STATS, cursor))) == (0, 0, 0, "")


HOSTILE = "\x1b]0;owned\x07\u009b2J"       # sets a terminal's title, and clears its screen


@pytest.fixture(scope="module")
def hostile_socket(base):
    """The socket of a local user's own program, which answers each report with such a version."""
    class Liar(wire.Listener):
        def serve(self, conn):
            text = f"version 0{HOSTILE}\n".encode()
            with conn, contextlib.suppress(ConnectionError):
                conn.recv(100)
                hostile.right_greeting(conn)
                while packet := conn.recv(65536):
                    number, = struct.unpack(">8xQ", packet[:16])
                    conn.send(wire.frame(wire.DONE, struct.pack(">BQIH", 0, 0, 0, len(text)) + text, number))
    directory = base / f"flashpache{HOSTILE}"
    directory.mkdir()       # its owner is trusted, whoever that is
    liar = Liar(directory / "s.sock")
    yield directory / "s.sock"
    liar.end()


def shown(done):
    return set(done.stdout + done.stderr)


@pytest.mark.parametrize("command", ("stats", "status", "mounts", "check", "stats --json"))
def test_hostile_daemon_sends_nothing_to_the_terminal(flashpachectl, hostile_socket, command):
    done = flashpachectl("-s", hostile_socket, *command.split())
    assert done.returncode != 0 and not shown(done) & {"\x1b", "\x07", "\u009b"}, done


def test_report_without_end(flashpachectl, base):
    """A daemon that was taken over must not make the operator's tool use up the memory."""
    class Endless(wire.Listener):
        parts = 0

        def serve(self, conn):
            with conn, contextlib.suppress(ConnectionError):
                conn.recv(100)
                hostile.right_greeting(conn)
                text = (b"x" * 31 + b"\n") * 1000
                while packet := conn.recv(65536):
                    number, = struct.unpack(">8xQ", packet[:16])
                    Endless.parts += 1
                    head = struct.pack(">BQIH", 0, 0, Endless.parts, len(text))
                    conn.send(wire.frame(wire.DONE, head + text, number))
    directory = base / "endless"
    directory.mkdir()
    liar = Endless(directory / "s.sock")
    done = flashpachectl("-s", directory / "s.sock", "stats", timeout=120)
    liar.end()
    assert done.returncode != 0 and "never ends" in done.stderr and Endless.parts < MOST_PARTS
