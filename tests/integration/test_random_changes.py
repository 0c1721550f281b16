# SPDX-License-Identifier: Apache-2.0
"""Random changes of a small tree, and right after each some random questions: the answers are stock's.

Nobody thought of the cases here. Names are few, so each is a file, a directory and a link in turn, also an access file,
an index or a variant. The questions are for files, directory indexes, negotiated names, conditions and
expressions that test files. A stock httpd is asked the same while nothing changes.
"""

import os
import random
import shutil
import time
from contextlib import nullcontext

import pytest

import filesystems
from change_cases import exchange
from content_kit import SETTLED_S, clock  # noqa: F401 (fixture)
from forms import chosen, full
from freshness import WATCHED, bound_s, settings
from httpd import user_ids
from lease_kit import NOTE_CONFIG
from linear_kinds import Spot
from quick import Quick, field, note

pytestmark = pytest.mark.skipif(not WATCHED, reason="FLASHPACHE_WATCH=ttl: nothing is told")
CHANGES = chosen(250, 10_000)
CHANGES_BY_ANOTHER = 1000       # each waits for the TTL
CLEARED_AFTER = 60              # changes: a broken access file at the top would hide the rest
CONNECTIONS = 3                 # so several children are asked
SHOWN = 10
OTHER = "another-machine"       # changes the files: the directory behind FUSE
KINDS = {"unsettled": "disk", OTHER: "fuse"}
OLD = 1_500_000_000
DIRECTORIES = ("a", "b")
NAMES = (*DIRECTORIES, "c.html", "d.en.html", "index.html", ".htaccess")
ACCESS_FILES = ("", "Require all denied\n", "Require all granted\n", "Options -Indexes\n", "Options -FollowSymLinks\n",
                "Options +SymLinksIfOwnerMatch -FollowSymLinks\n", "DirectoryIndex c.html index.html\n",
                "ErrorDocument 404 /c.html\n", "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\n"
                "RewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule . /index.html [L]\n")
TESTS = ("-f", "-d", "-s", "-l", "-x", "!-f", "!-d")
HEADERS = ("Last-Modified", "X-Tests", "X-If", "Content-Type", "Content-Location", "Vary", "Location")


def config(root):
    rules = "".join(f"RewriteCond %{{HTTP:X-Path}} {test}\nRewriteRule ^ - [E=T{number}:1]\n"
                    for number, test in enumerate(TESTS))
    results = " ".join(f"%{{T{number}}}e" for number in range(len(TESTS)))
    return f"""{NOTE_CONFIG}
RewriteEngine On
{rules}
Header always set X-Tests "{results}"
<Directory {root}>
AllowOverride All
Options FollowSymLinks Indexes MultiViews
IndexOptions FancyIndexing
<If "-f '%{{DOCUMENT_ROOT}}/a/b' || -d req('X-Path')">
Header always set X-If 1
</If>
</Directory>
"""


class Tree:
    """The directory with the changes, which httpd knows as `served`. Each method in CHANGES_OF makes one, and
    returns the names that it concerns if it chose others; OSError: not possible now. links: a file may have several
    names. On FUSE each name may be a file of its own.

    No directory may be passed but not read (mode 711): inotify cannot watch it, and ttl_ms holds there.
    """

    def __init__(self, root, served, seed, links):
        self.root, self.served = root, served
        self.random, self.number, self.history = random.Random(seed), 0, []
        self.kinds = [kind for kind in CHANGES_OF if links or kind is not Tree.link]

    def name(self):
        depth = self.random.choice((1, 1, 2, 2, 3))
        return "/".join((*self.random.choices(DIRECTORIES, k=depth - 1), self.random.choice(NAMES)))

    def directory(self):
        return "/".join(self.random.choices(DIRECTORIES, k=self.random.choice((1, 2, 3))))

    def text(self, name):
        self.number += 1
        if name.endswith(".htaccess"):
            return self.random.choice(ACCESS_FILES)
        return f"{self.number:06d}" + "x" * self.random.choice((0, 10, 20_000))

    def change(self):
        """Makes one, and returns two names that it concerns."""
        while True:
            name, other = self.name(), self.name()
            what = self.random.choice(self.kinds)
            try:
                concerned = what(self, name, other) or (name, other)
            except OSError:
                continue
            self.history.append(f"{what.__name__} {' '.join(concerned)}")
            return concerned

    def clear(self):
        for path in self.root.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def write(self, name, _other):
        (self.root / name).write_text(self.text(name))

    def write_in_place(self, name, _other):
        Spot(self.root, "").pwrite(name, self.text(name).encode())

    def link_a_nameless_file(self, name, _other):
        fd = os.open(self.root, os.O_TMPFILE | os.O_WRONLY, 0o644)
        try:
            os.write(fd, self.text(name).encode())
            (self.root / name).unlink(missing_ok=True)
            os.link(f"/proc/self/fd/{fd}", self.root / name, src_dir_fd=fd)
        finally:
            os.close(fd)

    def truncate(self, name, _other):
        os.truncate(self.root / name, self.random.choice((0, 3)))

    def unlink(self, name, _other):
        (self.root / name).unlink()

    def make_directory(self, _name, other):
        name = self.directory()
        (self.root / name).mkdir(parents=True)
        return name, other

    def remove_directory(self, _name, other):
        name = self.directory()
        shutil.rmtree(self.root / name)
        return name, other

    def rename(self, name, other):
        os.rename(self.root / name, self.root / other)

    def rename_directory(self, _name, _other):
        name, other = self.directory(), self.directory()
        os.rename(self.root / name, self.root / other)
        return name, other

    def exchange(self, name, other):
        exchange(self.root / name, self.root / other)

    def symlink(self, name, other):
        target = self.random.choice((str(self.served / other), "../" * name.count("/") + other))
        (self.root / name).unlink(missing_ok=True)
        os.symlink(target, self.root / name)

    def link(self, name, other):
        os.link(self.root / name, self.root / other)

    def set_mode(self, name, _other):
        os.chmod(self.root / name, self.random.choice((0o644, 0o755, 0o600, 0o744)))

    def set_mode_of_directory(self, _name, other):
        name = self.directory()
        os.chmod(self.root / name, self.random.choice((0o755, 0o755, 0o744, 0o700)))
        return name, other

    def set_owner(self, name, _other):
        os.chown(self.root / name, self.random.choice((0, user_ids()[0])), -1, follow_symlinks=False)

    def set_time(self, name, _other):
        self.number += 1
        os.utime(self.root / name, (OLD + self.number, OLD + self.number))


CHANGES_OF = (Tree.write, Tree.write, Tree.write, Tree.write, Tree.write_in_place, Tree.link_a_nameless_file,
              Tree.truncate, Tree.unlink, Tree.make_directory, Tree.make_directory, Tree.remove_directory, Tree.rename,
              Tree.rename, Tree.rename_directory, Tree.exchange, Tree.symlink, Tree.symlink, Tree.link, Tree.set_mode,
              Tree.set_mode_of_directory, Tree.set_owner, Tree.set_time)


def question(tree, name, other):
    """(URL, path that the conditions test)"""
    base = tree.random.choice((name, name, other, tree.name()))
    parent = base.rpartition("/")[0]
    url = tree.random.choice((base, base, base, f"{base}/", f"{parent}/".lstrip("/"), f"{base}/a", f"{base}/index.html",
                              base.replace(".html", "").replace(".en", "")))
    return f"/{url}", tree.served / tree.random.choice((name, other, tree.name()))


def ask(connection, asked):
    """The reply. httpd closes a connection after some requests and errors: the next request may find it closed."""
    url, tested = asked
    fields = f"X-Path: {tested}\r\nAccept-Language: en\r\n"
    try:
        reply = connection.ask(url, fields=fields)
    except ConnectionError:
        connection.again()
        reply = connection.ask(url, fields=fields)
    if field(reply, "Connection").lower() == "close":
        connection.again()
    return reply


def seen(reply):
    return (reply.status, reply.body, *(field(reply, name) for name in HEADERS))


class Comparison:
    """Flashpache and stock, asked the same."""

    def __init__(self, tree, flash, stock):
        self.tree, self.random = tree, tree.random
        self.ours, self.theirs = [Quick(flash.port) for _ in range(CONNECTIONS)], Quick(stock.port)
        self.tries, self.different, self.notes = 0, [], set()

    def after(self, name, other):
        """Flashpache has to answer all before stock is asked: the change has just returned."""
        asked = [question(self.tree, name, other) for _ in range(self.random.choice((1, 2, 4)))]
        answers = [ask(self.random.choice(self.ours), each) for each in asked]
        for each, ours in zip(asked, answers):
            theirs = ask(self.theirs, each)
            self.tries += 1
            self.notes.add(note(ours))
            if seen(ours) != seen(theirs):
                self.different.append(f"after {self.tree.history[-8:]}: {each} by {note(ours)}\n"
                                      f"    ours  {str(seen(ours))[:400]}\n    stock {str(seen(theirs))[:400]}")

    def warm(self, name, other):
        for _ in range(CONNECTIONS):
            asked = question(self.tree, name, other)
            for connection in self.ours:
                ask(connection, asked)


@pytest.mark.parametrize("mpm", ("event", full("prefork")))
@pytest.mark.parametrize("where", filesystems.GIVEN or ("disk", "overlay", "fuse", full("tmpfs"), full("unsettled"), full(OTHER)))
def test_as_stock(lab, base, slow_directory, where, mpm, clock):  # noqa: F811
    """unsettled: by the system's clock. Elsewhere the daemon's is ahead, so new files are served by their content."""
    seed = int(os.environ.get("FLASHPACHE_SEED", time.time_ns() % 1_000_000))
    below = base / f"{where}-{mpm}"
    below.mkdir()
    reported = where != OTHER
    with (filesystems.directory(KINDS.get(where, where), below, slow_directory) as served,
          nullcontext() if where == "unsettled" else clock.ahead(SETTLED_S)):
        flash = lab.under_test(f"flash-{where}-{mpm}", served, mpm=mpm, config=config(served), admission=2,
                               daemon_settings=settings(reported))
        stock = lab.stock(f"stock-{where}-{mpm}", served, mpm=mpm, config=config(served)).start()
        tree = Tree(served if reported else below / "fuse-source", served, seed, KINDS.get(where, where) != "fuse")
        compared = Comparison(tree, flash, stock)
        for number in range(CHANGES if reported else CHANGES_BY_ANOTHER):
            if number % CLEARED_AFTER == 0:
                tree.clear()
            changed = tree.change()
            time.sleep(bound_s(reported))
            compared.after(*changed)
            if tree.random.random() < 0.5:
                compared.warm(*changed)
        lab.end()
    assert not compared.different, (f"FLASHPACHE_SEED={seed}: {len(compared.different)} of {compared.tries} differ\n"
                                    + "\n".join(compared.different[:SHOWN]))
    assert compared.notes >= {"lease", "miss"} or not hasattr(flash, "daemon")
