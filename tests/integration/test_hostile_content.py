# SPDX-License-Identifier: Apache-2.0
"""Another local user who can write in the document root, under load.

Flashpache serves nothing that stock would refuse, and no httpd worker or worker of the daemon hangs for good.
Files at rest are compared with a stock httpd on the same tree, moving ones with the set of allowed responses.
"""

import os
import socket
import stat
import time
from collections import Counter
from urllib.parse import quote

import pytest

import compare
import rawhttp
import status_kit
import tree
from compare import Ask
from fetch import get
from hostile_kit import Attack, assert_well, exchange, give, load
from httpd import user_ids

pytestmark = pytest.mark.needs_flashpache

GROUP = "hostile content"
RACE_S = 2
ROUNDS = 5                  # of at most so many seconds, on a busy machine
STOCK_S = 1                 # stock runs the links' race, too, as a reference
LEAST = 200                 # requests in a race; fewer would say little
SETTLED_S = 0.2             # after a change, longer than the bound of freshness
OWN, SECRET = b"what everybody may see\n", b"what the link leads to\n"
TERABYTE = 1 << 40
SLOW = 1 << 16              # bytes of a client's receive buffer: the response waits, and changes
SIZES = (10_000, 100_000)   # sent by content, by reading,
LARGE = 6_000_000           # and by mapping, more than a socket takes at once
PATTERN = bytes(range(1, 251)) * (2 * LARGE // 250)         # no NUL, which is what a hole has
CHANGING = [f"{name}-{size}" for size in SIZES for name in ("grown", "cut", "replaced", "moved/dir/file")]
CHANGING = CHANGING * 6 + [f"{name}-{LARGE}" for name in ("grown", "cut")]
HUGE = 17 << 20             # bytes of an access file: httpd's longest line has 16 MiB
NAMES = (b"n" * 255, b"\xe9" * 255, b"\n" * 255, b"-" * 255, b"%" * 255, b" " * 255)
MODES = {"setuid": 0o4755, "setgid": 0o2755, "sticky": 0o1644, "none": 0, "own": 0o600}
DEEP = 17                   # directories with such a name: more than PATH_MAX
MANY = 300                  # directories, more than the daemon walks


def put_pairs(root, secret):
    """For each name its first form, and beside it, with .other behind it, the one that it is exchanged for."""
    for kind in ("never", "owner"):
        tree.put(root / kind / "file", OWN)
        os.symlink(secret / "file", root / kind / "file.other")
        for name in ("dir", "dir.other"):
            tree.put(root / kind / "deep" / name / "sub/file", OWN)
        tree.put(root / kind / "dir/file", OWN)
        os.symlink(secret, root / kind / "dir.other")
        os.rename(root / kind / "deep/dir.other", root / kind / "deep/dir.real")
        os.symlink(secret, root / kind / "deep/dir.other")
    for kind in ("plain", "info"):
        for name in ("fifo", "socket"):
            tree.put(root / kind / name, OWN)
        os.mkfifo(root / kind / "fifo.other")
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(root / kind / "socket.other"))
    tree.put(root / "plain/unreadable", OWN, mode=0)
    os.mkfifo(root / "plain/unreadable.other")
    put_access_files(root / "ht", secret)


def put_access_files(root, secret):
    for name in ("fifo", "directory", "link", "huge", "unreadable", "big", "rules"):
        tree.put(root / name / "file", OWN)
        tree.put(root / name / ".htaccess", "Require all granted\n")
    other = ".htaccess.other"
    os.mkfifo(root / "fifo" / other)
    (root / "directory" / other).mkdir()
    os.symlink(secret / "file", root / "link" / other)
    tree.sparse(root / "huge" / other, HUGE, (0,))
    tree.put(root / "unreadable" / other, "Require all granted\n", mode=0)
    tree.put(root / "big/.htaccess", ("#" * 8000 + "\n") * 132)      # more than 1 MiB: opened by name
    os.mkfifo(root / "big" / other)
    tree.put(root / "rules" / other, "Require all denied\n")


LINK_PAIRS = [f"{kind}/{name}" for kind in ("never", "owner") for name in ("file", "dir", "deep/dir")]
LINK_PATHS = [f"/{kind}/{name}" for kind in ("never", "owner") for name in ("file", "dir/file", "deep/dir/sub/file")]
KIND_PAIRS = ["plain/unreadable"] + [f"{kind}/{name}" for kind in ("plain", "info") for name in ("fifo", "socket")]
KIND_PATHS = ["/plain/unreadable", "/plain/fifo", "/plain/socket", "/info/fifo/more", "/info/socket/more", "/info/fifo"]
ACCESS = ("fifo", "directory", "link", "huge", "unreadable", "big", "rules")
ACCESS_PAIRS = [f"ht/{name}/.htaccess" for name in ACCESS]
ACCESS_PATHS = [f"/ht/{name}/file" for name in ACCESS]


def put_oddities(root):
    """The files at rest."""
    tree.sparse(root / "odd/sparse", TERABYTE, (0, TERABYTE - 16))
    for name in MODES:
        tree.put(root / "odd" / name, f"{name}\n")
    for i, name in enumerate(NAMES):
        tree.put(os.fsdecode(os.fsencode(root / "odd") + b"/" + name), f"name {i}\n")
    for name, target in (("self", "self"), ("a", "b"), ("b", "a"), ("dot", "."), ("up", ".."), ("long", "x/" * 2000)):
        os.symlink(target, root / "odd" / name)
    put_deep(root / "odd/deep", ["d" * 255] * DEEP)
    put_deep(root / "odd/many", ["d"] * MANY)


def put_deep(path, names):
    """Nested directories, with a file in the last one; a path may be longer than any call takes."""
    path.mkdir()
    at = os.open(path, os.O_PATH)
    for name in names:
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_PATH, dir_fd=at)
        os.close(at)
        at = below
    file = os.open("file", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at)
    os.write(file, OWN)
    os.utime(file, (tree.MTIME, tree.MTIME))
    os.close(file)
    os.close(at)


def put_changing(root):
    for size in (*SIZES, LARGE):
        for name in ("grown", "cut", "moved/dir/file", "moved/other/file"):
            tree.put(root / f"{name}-{size}", PATTERN[:size])
        tree.put(root / f"replaced-{size}", letters("a", size))


def letters(letter, size):
    """Each letter occurs in another number."""
    return letter.encode() * (size + ord(letter))


def odd_paths():
    names = [*MODES, "device", "block", "linked", "linked-root",
             "self", "a", "a/x", "dot/setuid", "dot/dot/setuid", "up/odd/setuid", "long", *map(quote, NAMES),
             quote(b"n" * 256), "dot/" * 10 + "setuid", "dot/" * 39 + "setuid", "dot/" * 45 + "setuid",
             "deep/" + ("d" * 255 + "/") * 3, "deep/" + ("d" * 255 + "/") * DEEP + "file",
             "many/" + "d/" * 50 + "absent", "many/" + "d/" * MANY + "file", "many/" + "d/" * MANY + "absent"]
    return ["/odd/" + name for name in names]


def put_made_by_root(root, secret):
    """Devices, hard links to files that only others may read, and bits that a change of the owner removes."""
    for name, mode in MODES.items():
        (root / "odd" / name).chmod(mode)
    os.mknod(root / "odd/device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.mknod(root / "odd/block", stat.S_IFBLK | 0o666, os.makedev(7, 0))
    for name in ("device", "block"):
        os.utime(root / "odd" / name, (tree.MTIME, tree.MTIME))
    os.link(secret / "rootonly", root / "odd/linked-root")
    os.link(secret / "file", root / "odd/linked")


@pytest.fixture(scope="module")
def root(base):
    root, secret = base / "hostile/site", base / "hostile/secret"
    for path in ("file", "sub/file"):
        os.chown(tree.put(secret / path, SECRET, mode=0o640), 0, user_ids()[1])
    tree.put(secret / "rootonly", SECRET, mode=0o600)
    tree.put(root / "honest", OWN)
    put_pairs(root, secret)
    put_oddities(root)
    put_changing(root)
    give(root)
    put_made_by_root(root, secret)
    for directory in (secret, secret / "sub"):
        directory.chmod(0o750)
        os.chown(directory, 0, user_ids()[1])
    return root


def config(root):
    sections = {"never": "Options None", "owner": "Options SymLinksIfOwnerMatch", "info": "AcceptPathInfo On",
                "ht": "AllowOverride AuthConfig"}
    return compare.LOG_FORMAT + "DirectorySlash Off\n" + "".join(
        f"<Directory {root}/{name}>\n{text}\n</Directory>\n" for name, text in sections.items())


@pytest.fixture(scope="module")
def servers(lab, root):
    """(stock, with Flashpache)"""
    options = dict(config=config(root), extra_modules=status_kit.MODULES)
    stock = lab.stock("stock", root, **options).start()
    flash = lab.under_test("flash", root, vhosts=[(["localhost"], ""), status_kit.VHOST], **options)
    return stock, flash


def compared(servers, paths):
    """Both answer the same when nothing moves; returns the number of requests."""
    asks = [Ask("localhost", path) for path in paths]
    found = compare.differences(*servers, asks)
    assert not found, compare.told(found)
    return len(asks) * compare.TIMES


def test_what_lies_still(servers, root, outcome):
    requests = compared(servers, odd_paths())
    for part in (None, "bytes=0-15", f"bytes={TERABYTE - 16}-", "bytes=-4"):
        method, headers = ("GET", (("Range", part),)) if part else ("HEAD", ())
        found = compare.differences(*servers, [Ask("localhost", "/odd/sparse", method, headers)])
        assert not found, compare.told(found)
        requests += compare.TIMES
    assert_well(servers[1], "/honest", OWN)
    outcome(GROUP, "long and deep names, cycles, devices, hard links, setuid, a sparse terabyte", requests)


def test_a_terabyte_is_begun_and_left(servers, outcome):
    """Nobody can read the file to its end: a client takes some bytes and goes."""
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", servers[1].port), 20) as conn:
            conn.sendall(rawhttp.request("GET", "/odd/sparse"))
            assert f"Content-Length: {TERABYTE}".encode() in conn.recv(1 << 16)
            conn.recv(1 << 16)
    assert_well(servers[1], "/honest", OWN)
    outcome(GROUP, "a sparse terabyte, left after some KiB", 20)


class Pairs:
    """Names below root that all have their first form, or all the other one."""

    def __init__(self, root, names):
        self.pairs = [(root / name, root / f"{name}.other") for name in names]
        self.inodes = [os.lstat(name).st_ino for name, _ in self.pairs]

    def step(self):
        for pair in self.pairs:
            exchange(*pair)

    def settle(self, other=False):
        """All names have one form or the other, and every process knows."""
        for pair, inode in zip(self.pairs, self.inodes):
            if (os.lstat(pair[0]).st_ino != inode) != other:
                exchange(*pair)
        time.sleep(SETTLED_S)


def kind_of(path, answer):
    if SECRET in answer.body:
        return "SECRET"
    if answer.status == 200 and answer.complete and answer.body == OWN:
        return "own"
    return answer.status


def totals(found):
    kinds = Counter()
    for (_, kind), count in found.items():
        kinds[kind] += count
    return kinds


def race(server, paths, step, seconds=RACE_S, kind_of=kind_of, **options):
    """The responses to requests during the race: Counter of (path, kind). On a busy machine it takes more than one
    round until both had their turns."""
    found = Counter()
    with Attack(step):
        for _ in range(ROUNDS):
            found += load(server.port, paths, seconds, kind_of, **options)
            if is_met(found):
                break
    print("\n" + "\n".join(f"{count:7} {what}" for what, count in sorted(found.items(), key=str)))
    return found


def is_met(found):
    return found.total() >= LEAST and len(totals(found)) > 1


def tell(outcome, case, found, allowed, note=""):
    kinds = totals(found)
    wrong = {kind: count for kind, count in kinds.items() if kind not in allowed}
    outcome(GROUP, case, kinds.total(), failed=kinds[0], wrong=sum(wrong.values()) - kinds[0], note=note)
    assert not wrong, wrong
    assert is_met(found), "there were few requests, or all answers were the same"


def test_links_race(servers, root, outcome):
    """Files and directories become links to places that only httpd's checks keep in, and back."""
    stock, flash = servers
    pairs = Pairs(root, LINK_PAIRS)
    with_stock = totals(race(stock, LINK_PATHS, pairs.step, STOCK_S))
    found = race(flash, LINK_PATHS, pairs.step)
    for other in (False, True):
        pairs.settle(other)
        compared(servers, LINK_PATHS)
    assert_well(flash, "/honest", OWN)
    tell(outcome, "files and directories become links that are not allowed, and back", found, ("own", 403, 404),
         f"stock let {with_stock['SECRET']} of {with_stock.total()} out")


def test_kinds_race(servers, root, outcome):
    """Files become FIFOs and sockets, also where httpd's own handler opens them by name."""
    _, flash = servers
    pairs = Pairs(root, KIND_PAIRS)
    try:
        found = race(flash, KIND_PATHS, pairs.step)
        pairs.settle(other=True)
        for path in ("/plain/unreadable", "/plain/fifo", "/plain/socket", "/info/fifo"):
            assert get(flash.port, path)[0] == 403
        pairs.settle()
        compared(servers, KIND_PATHS)
        assert_well(flash, "/honest", OWN)
    finally:
        for name in ("plain/unreadable", "plain/fifo", "info/fifo"):
            tree.release(root / f"{name}.other")
    tell(outcome, "files become FIFOs and sockets, and back", found, ("own", 403, 404))


def test_access_files_race(servers, root, outcome):
    """An .htaccess becomes a file of another kind, another text, or one that denies, and back."""
    _, flash = servers
    pairs = Pairs(root, ACCESS_PAIRS)
    try:
        # A huge one costs so much that there would be no race.
        found = race(flash, [path for path in ACCESS_PATHS if "huge" not in path], pairs.step)
        pairs.settle(other=True)
        expected = {path: get(flash.port, path)[0] for path in ACCESS_PATHS}
        assert expected == {path: 500 if path in ("/ht/link/file", "/ht/huge/file") else 403 for path in ACCESS_PATHS}
        compared(servers, [path for path in ACCESS_PATHS if path not in ("/ht/fifo/file", "/ht/big/file")])
        pairs.settle()
        compared(servers, ACCESS_PATHS)
        assert_well(flash, "/honest", OWN)
    finally:
        for name in ("fifo", "big"):
            tree.release(root / f"ht/{name}/.htaccess.other")
    tell(outcome, "an .htaccess becomes a FIFO, a directory, a link, huge, unreadable, one that denies, and back",
         found, ("own", 403, 500))


def change_files(root):
    """Grows, cuts, replaces and moves files during their responses; restores everything at the end."""
    for size in (*SIZES, LARGE):
        with open(root / f"grown-{size}", "ab") as out:
            out.write(PATTERN[size:2 * size])
        with open(root / f"cut-{size}", "r+b") as out:
            out.truncate(size // 3)
            out.truncate(0)
            out.write(PATTERN[:size])
        (root / "grown.new").write_bytes(PATTERN[:size])
        os.rename(root / "grown.new", root / f"grown-{size}")
    for size in SIZES:
        for letter in "bca":
            (root / "replaced.new").write_bytes(letters(letter, size))
            os.rename(root / "replaced.new", root / f"replaced-{size}")
        os.rename(root / "moved/dir", root / "moved/away")
        time.sleep(0.001)
        os.rename(root / "moved/away", root / "moved/dir")


def kind_of_change(path, answer):
    """whole: a length that the file has had, and its bytes; cut: fewer bytes, and the client knows."""
    name, body = path[1:].split("-")[0], answer.body
    if answer.status == 0 and name == "cut":     # before its first byte was read: no header either
        return "cut"
    if answer.status != 200:
        return answer.status
    if name == "replaced":
        right = body in [letters(letter, int(path.split("-")[1])) for letter in "abc"]
    else:
        right = PATTERN.startswith(body)
    return "WRONG" if not right else "whole" if answer.complete else "cut"


def test_files_change_while_they_are_sent(servers, root, outcome):
    """A response has bytes of the file, never others, and a client knows when they are not all."""
    _, flash = servers
    found = race(flash, ["/" + name for name in CHANGING], lambda: change_files(root), kind_of=kind_of_change,
                 receive_buffer=SLOW)
    cut = {path for path, kind in found if kind == "cut" and not path.startswith(("/cut", "/grown"))}
    missing = {path for path, kind in found if kind == 404 and not path.startswith("/moved")}
    assert_well(flash, "/honest", OWN)
    tell(outcome, "files grow, are cut and replaced, their directory is renamed, while they are sent", found,
         ("whole", "cut", 404), f"{totals(found)['cut']} were cut while they were sent, and the connection with them")
    assert not cut and not missing, (cut, missing)
