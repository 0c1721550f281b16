# SPDX-License-Identifier: Apache-2.0
"""Over a restart the daemon keeps the list of paths in use (warm_file), and looks these up again by itself."""

import itertools
import os
import signal
import stat

import pytest

import procs
import tree
from fetch import Client
from freshness import NEVER_MS
from httpd import user_ids
from waiting import Threads, wait_for

pytestmark = pytest.mark.needs_flashpache

FILES = [f"/{n % 5}/{n}.txt" for n in range(200)]
DELAY_US = 2000
WITHIN_S = 10           # far above the time for 200 files on an idle machine: less than a second
AGAIN = "looked up again"
NUMBERS = itertools.count()
REFUSED = "ignoring the list of paths"


@pytest.fixture(scope="module")
def source(base):
    root = base / "source"
    for path in FILES:
        tree.put(root / path[1:], path + "\n")
    tree.put(root / "0/.htaccess", "Header set X-Rules these\n")
    tree.put(root / "outside.txt", "outside\n")
    return root


@pytest.fixture
def keep(lab):
    """The file, in a directory of the daemon's user."""
    path = lab.base / f"keep{next(NUMBERS)}"
    path.mkdir()
    os.chown(path, *user_ids())
    path.chmod(0o700)
    return path / "paths"


@pytest.fixture
def daemon(lab, keep):
    """daemon(**settings), not started. It writes a list at its end, and with warm_file_s before."""
    def make(**settings):
        return lab.daemon(keep.parent.name + "-d", warm_file=keep, ttl_ms=NEVER_MS, **settings)
    yield make
    lab.end()


def server_of(lab, daemon, root):
    return lab.flash(daemon.dir.name + "-h", root, daemon.socket, mpm="event",
                     config=f"<Directory {root}>\nAllowOverride All\n</Directory>\n").start()


def ask_all(server):
    with Client(server.port) as client:
        for path in FILES:
            status, body = client.get(path)
            assert (status, body) == (200, (path + "\n").encode()), path


def misses(daemon, work):
    before = daemon.counters()["misses"]
    work()
    return daemon.counters()["misses"] - before


def put(keep, text, mode=0o600, owner=None):
    keep.write_bytes(text)
    keep.chmod(mode)
    os.chown(keep, *(owner or user_ids()))


def listing(*lines, names="names"):
    return "\n".join(["flashpached paths 2", names, *lines, f"end {len(lines)}", ""]).encode()


def test_what_was_in_use_is_looked_up_again(daemon, lab, keep, source, slow_directory):
    """Slow files, with the access files of their directories."""
    root = slow_directory(source, DELAY_US)
    one = daemon().start()
    server = server_of(lab, one, root)
    ask_all(server)
    assert one.stop() == 0
    mode = keep.stat()
    assert (stat.S_IMODE(mode.st_mode), mode.st_uid) == (0o600, user_ids()[0])
    assert os.listdir(keep.parent) == [keep.name]
    text = keep.read_text()
    assert {f"{root}{path}" for path in FILES} <= set(text.splitlines())
    assert "names/.htaccess\n" in text

    one.start()
    wait_for(lambda: AGAIN in one.log_text(), "the paths to be looked up again")
    assert one.counters()["inflight"] == 0      # it is said when the last walk has ended
    # The files have just been made, so that their contents are kept two seconds later, and the first of them are asked for.
    wait_for(lambda: misses(one, lambda: ask_all(server)) == 0, "hits alone", WITHIN_S)


def test_under_load_the_hits_are_back(daemon, lab, source, slow_directory):
    root = slow_directory(source, DELAY_US)
    one = daemon().start()
    server = server_of(lab, one, root)
    ask_all(server)

    def ask_on(over):
        while not over.is_set():
            ask_all(server)
    with Threads(ask_on, [(), ()], until_over=True):
        one.restart()
        wait_for(lambda: misses(one, lambda: ask_all(server)) == 0, "hits alone", WITHIN_S)
        wait_for(lambda: AGAIN in one.log_text(), "the paths to be looked up again", WITHIN_S)


def has_all(keep, source):
    text = keep.read_text() if keep.exists() else ""
    return {f"{source}{path}" for path in FILES} <= set(text.splitlines()) and "\nend " in text


def lister_of(daemon):
    lister, = (pid for pid, name in procs.descendants(daemon.pid).items() if name == "fp-lister")
    return lister


def test_a_killed_daemon_has_left_a_list(daemon, lab, keep, source):
    """It writes lists while it runs, so the next one knows what was in use."""
    one = daemon(warm_file_s=1).start()
    server = server_of(lab, one, source)
    ask_all(server)
    wait_for(lambda: has_all(keep, source), "a list to be written")
    one.kill()
    one.start()
    wait_for(lambda: AGAIN in one.log_text(), "the paths to be looked up again")
    assert misses(one, lambda: ask_all(server)) == 0


def test_a_list_follows_what_is_asked(daemon, lab, keep, source):
    one = daemon(warm_file_s=1).start()
    server = server_of(lab, one, source)
    ask_all(server)
    wait_for(lambda: has_all(keep, source), "a list to be written")
    with Client(server.port) as client:
        assert client.get("/none.txt")[0] == 404
    wait_for(lambda: f"{source}/none.txt" in keep.read_text().splitlines(), "a list with another path")
    assert has_all(keep, source)


def test_a_disk_that_does_not_answer(daemon, lab, keep, source):
    """The process that writes hangs: the daemon answers, and goes on when it is back."""
    one = daemon(warm_file_s=1).start()
    server = server_of(lab, one, source)
    lister = lister_of(one)
    os.kill(lister, signal.SIGSTOP)
    ask_all(server)
    assert misses(one, lambda: ask_all(server)) == 0
    assert not keep.exists()
    os.kill(lister, signal.SIGCONT)
    wait_for(lambda: has_all(keep, source), "a list to be written")


def test_the_process_that_writes_is_killed(daemon, lab, keep, source):
    one = daemon(warm_file_s=1).start()
    server = server_of(lab, one, source)
    ask_all(server)
    wait_for(lambda: has_all(keep, source), "a list to be written")
    before = keep.read_bytes()
    os.kill(lister_of(one), signal.SIGKILL)
    wait_for(lambda: "(fp-lister) has ended" in one.log_text(), "FP0013")
    ask_all(server)
    assert one.stop() == 0
    assert keep.read_bytes() == before


def test_a_daemon_that_is_killed_early_leaves_the_former_list(daemon, lab, keep, source):
    one = daemon().start()
    server = server_of(lab, one, source)
    ask_all(server)
    assert one.stop() == 0
    before = keep.read_bytes()
    one.start()
    wait_for(lambda: AGAIN in one.log_text(), "the paths to be looked up again")
    one.kill()
    assert keep.read_bytes() == before


def test_nobody_asked(daemon, keep, source):
    """A daemon that knows nothing has no list, and leaves the former one."""
    put(keep, listing())
    one = daemon().start()
    assert one.stop() == 0
    assert keep.read_bytes() == listing()


def test_outside_roots(daemon, keep, source):
    put(keep, listing(f"{source}/0/0.txt", f"{source}/outside.txt", "/etc/passwd", f"{source}/1", names="names/.htaccess"))
    one = daemon(roots=[source / "0", source / "1"]).start()
    wait_for(lambda: AGAIN in one.log_text(), "the paths to be looked up again")
    assert "2 looked up again" in one.log_text()
    assert "2 left out" in one.log_text()
    assert one.counters()["files"] == 1


GARBAGE = {
    "empty": b"", "binary": bytes(range(256)) * 100, "truncated": listing("/a", "/b")[:-6], "relative": listing("a"),
    "dots": listing("/etc/../etc/passwd"), "no-count": listing("/a").replace(b"end 1", b"end 7"),
    "names": listing("/a", names="names/../x"), "nul": listing("/a\0b"), "other-version": listing().replace(b" 2\n", b" 1\n", 1),
    "more-after-it": listing("/a") + b"/b\n",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage(daemon, keep, kind):
    put(keep, GARBAGE[kind])
    is_ignored(daemon())


def is_ignored(one, words=REFUSED):
    one.start()
    assert "FP0013" in one.log_text() and words in one.log_text()
    assert one.counters()["walks"] == 0
    assert AGAIN not in one.log_text()


def test_another_users_file(daemon, keep):
    put(keep, listing("/etc/passwd"), owner=(0, 0), mode=0o644)
    is_ignored(daemon(), "another user")


def test_a_file_that_others_may_write(daemon, keep):
    put(keep, listing("/etc/passwd"), mode=0o666)
    is_ignored(daemon(), "others than")


def test_no_file(daemon, keep):
    """A directory, a link, a FIFO without a writer, a large file."""
    keep.mkdir()
    one = daemon()
    is_ignored(one, "not a regular file")
    assert one.stop() == 0
    keep.rmdir()
    put(keep.with_name("real"), listing("/etc/passwd"))
    keep.symlink_to("real")
    is_ignored(one, "cannot read the list of paths")
    assert one.stop() == 0
    keep.unlink()
    os.mkfifo(keep)
    os.chown(keep, *user_ids())
    is_ignored(one, "not a regular file")
    assert one.stop() == 0
    keep.unlink()
    put(keep, b"x")
    os.truncate(keep, 17 << 20)
    is_ignored(one, "too large")


def test_a_directory_where_it_cannot_write(daemon, lab, keep, source):
    os.chown(keep.parent, 0, 0)
    keep.parent.chmod(0o755)
    one = daemon().start()
    ask_all(server_of(lab, one, source))
    assert one.stop() == 0
    assert "FP0013 warning: cannot write the list of paths" in one.log_text()
    assert os.listdir(keep.parent) == []
