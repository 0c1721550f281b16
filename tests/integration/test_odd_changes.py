# SPDX-License-Identifier: Apache-2.0
"""Rare changes by root: owners of links, mounts that are moved or get other options, files that an overlay writes
into its upper layer. Each shows in the very next request, as in stock; new options of a mount do so after a moment."""

import os
import subprocess
import time
from contextlib import contextmanager

import pytest

import tree
from forms import chosen
from quick import Quick

pytestmark = pytest.mark.needs_flashpache
TRIES = chosen(20, 2000)
OPTIONS_S = 0.05            # until new options of a mount are noticed, which no queue reports
KNOWN = 3                   # requests, after which children have a lease


@pytest.fixture(scope="module")
def root(base):
    root = base / "odd"
    tree.put(root / "real/file.txt", "real")
    (root / "link.txt").symlink_to("real/file.txt")
    (root / "link").symlink_to("real")
    for name in ("first", "second"):
        tree.put(root / name / "file.txt", name)
    return root


@pytest.fixture(scope="module")
def server(lab, root):
    return lab.under_test("odd", root, mpm="event", config=f"<Directory {root}>\nOptions -FollowSymLinks +SymLinksIfOwnerMatch\n"
                                                           "AllowOverride None\n</Directory>\n"
                                                           f"<Directory {root}/first>\nOptions +FollowSymLinks -SymLinksIfOwnerMatch\n</Directory>\n")


@pytest.fixture
def ask(server):
    connection = Quick(server.port)

    def of(path):
        reply = connection.ask(path)
        return reply.body if reply.status == 200 else reply.status
    yield of
    connection.close()


def known(ask, path):
    """The same each time, at last from memory."""
    found = {ask(path) for _ in range(KNOWN)}
    assert len(found) == 1
    return found.pop()


def run(*command):
    subprocess.run([str(word) for word in command], check=True)


@contextmanager
def mounted(point, *options):
    run("mount", *options, point)
    try:
        yield
    finally:
        run("umount", "-l", point)


@pytest.mark.parametrize("path,changed", (("/link.txt", "link.txt"), ("/link.txt", "real/file.txt"),
                                          ("/link/file.txt", "link"), ("/link/file.txt", "real")))
def test_owners_of_links_and_targets(ask, root, path, changed):
    for _ in range(TRIES):
        assert known(ask, path) == b"real"
        os.lchown(root / changed, 1234, -1)
        assert known(ask, path) == 403
        os.lchown(root / changed, 0, -1)
    assert known(ask, path) == b"real"


def test_a_moved_mount(ask, root):
    for _ in range(TRIES):
        with mounted(root / "second", "-t", "tmpfs", "none"):
            run("mount", "--move", root / "second", root / "first")
            tree.put(root / "first/file.txt", "moved")
            assert (known(ask, "/first/file.txt"), known(ask, "/second/file.txt")) == (b"moved", b"second")
            run("mount", "--move", root / "first", root / "second")
            assert (known(ask, "/first/file.txt"), known(ask, "/second/file.txt")) == (b"first", b"moved")


def remount(point, option):
    run("mount", "-o", f"remount,{option}", point)
    time.sleep(OPTIONS_S)


@pytest.mark.parametrize("place", ["first", "second"])
def test_links_are_followed_no_more(place, ask, root):
    with mounted(root / place, "-t", "tmpfs", "none"):
        tree.put(root / f"{place}/file.txt", "text")
        (root / f"{place}/link.txt").symlink_to("file.txt")
        tree.put(root / f"{place}/real/file.txt", "text")
        (root / f"{place}/link").symlink_to("real")
        for _ in range(TRIES):
            for path in (f"/{place}/link.txt", f"/{place}/link/file.txt"):
                assert known(ask, path) == b"text"
            remount(root / place, "nosymfollow")
            for path in (f"/{place}/link.txt", f"/{place}/link/file.txt"):
                assert known(ask, path) == 403
            remount(root / place, "symfollow")


def test_an_upper_layer(ask, root, base):
    """Served by itself, while writes go through the overlay."""
    for name in ("lower", "upper", "work"):
        (root / name).mkdir()
    (base / "merged").mkdir()
    tree.put(root / "upper/file.txt", "at first")
    with mounted(base / "merged", "-t", "overlay", "none", "-o",
                 f"lowerdir={root}/lower,upperdir={root}/upper,workdir={root}/work"):
        for number in range(TRIES):
            known(ask, "/upper/file.txt")
            (base / "merged/file.txt").write_text(f"{number}")
            assert known(ask, "/upper/file.txt") == b"%d" % number
            (base / "merged/file.txt").chmod(0o600)
            assert known(ask, "/upper/file.txt") == 403
            (base / "merged/file.txt").chmod(0o644)
