# SPDX-License-Identifier: Apache-2.0
"""Nobody gets in: no rights beyond the asking Apache's, no descriptor to another request."""

import os
import random
import threading

import pytest

import tree
from fetch import Client, get
from httpd import HITS, user_ids
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

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
    return lab.under_test("flash", root, daemon_settings={"ttl_ms": 60000, "max_descriptors": 100},
                          config=f"FlashpacheExclude {root}/excluded\n")


def note_of(server, path, status=200):
    mark = server.mark()
    assert get(server.port, path)[0] == status
    return server.wait_entries(1, mark)[-1].note


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
    """Unique contents, more of them than descriptors may be kept, many at once."""
    wrong = []

    def fetch(seed):
        rng = random.Random(seed)
        with Client(server.port) as client:
            for _ in range(REQUESTS_EACH):
                i = rng.randrange(UNIQUE_FILES)
                answer = client.get(f"/unique/file{i}.txt")
                if answer != (200, (f"content of file {i} " * (1 + i * 3)).encode()):
                    wrong.append((i, answer[0], answer[1][:60]))
    threads = [threading.Thread(target=fetch, args=(n,)) for n in range(THREADS)]
    mark = server.mark()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:5]
    entries = server.wait_entries(THREADS * REQUESTS_EACH, mark)
    notes = {n: sum(1 for e in entries if e.note == n) for n in {e.note for e in entries}}
    print(f"notes: {notes}")
    assert sum(notes.get(n, 0) for n in HITS) > 0


def test_excluded_directory_is_bypassed(server):
    for _ in range(3):
        assert note_of(server, "/excluded/file.txt") == "bypass"
    note_of(server, "/excluded-not/file.txt")
    assert note_of(server, "/excluded-not/file.txt") in HITS


def test_outside_of_the_roots_is_stock(lab, root):
    server = lab.under_test("roots", root, daemon_settings={"roots": [f"{root}/inside"]})
    for _ in range(3):
        mark = server.mark()
        assert get(server.port, "/outside/file.txt") == (200, b"outside of the roots\n")
        assert server.wait_entries(1, mark)[-1].note in ("bypass", "fallback")
    note_of(server, "/inside/file.txt")
    assert note_of(server, "/inside/file.txt") in HITS
    for _ in range(3):                  # a link leads out of the roots
        mark = server.mark()
        assert get(server.port, "/inside/out") == (200, b"outside of the roots\n")
        assert server.wait_entries(1, mark)[-1].note in ("bypass", "fallback")


def test_fifo_is_never_opened(server, root):
    try:
        for _ in range(3):
            assert get(server.port, "/fifo", timeout=10)[0] == 403
        for pid in [*server.daemon.family(), *server.pids()]:
            held = [os.path.realpath(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            assert str(root / "fifo") not in held
    finally:                            # whoever hangs in open() for a writer goes on
        try:
            os.close(os.open(root / "fifo", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass
