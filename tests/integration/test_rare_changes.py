# SPDX-License-Identifier: Apache-2.0
"""Changes on this machine that reach an answer by a way of their own: one alone, then the next answer is stock's.

Another event at the same moment would end the lease as well and hide that nothing reported the change.
"""

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import tree
from forms import chosen
from freshness import settings
from lease_kit import NOTE_CONFIG
from quick import Quick

pytestmark = pytest.mark.needs_flashpache
TRIES = chosen(2, 50)
KNOWN = 3                   # requests, after which children have a lease
DEEP = 38                   # more access files than one walk keeps names
LONG = "/".join(f"n{number}" for number in range(36))
NEIGHBOURS = {}             # what is asked for between the change and the question
CASES = {}
# Each prepares <root>/<its name> and returns the URL below that, the change, and what takes the change back.


def case(function):
    CASES[function.__name__] = function
    return function


def run(*command):
    subprocess.run([str(word) for word in command], check=True)


def bound(source, target):
    return (lambda: run("mount", "--bind", source, target)), (lambda: run("umount", "-l", target))


def modes(path, changed=0o700, before=0o755):
    return (lambda: path.chmod(changed)), (lambda: path.chmod(before))


def access_texts(path):
    return (lambda: path.write_text("Require all denied \n")), (lambda: path.write_text("Require all granted\n"))


def exchange(here, one, other):
    def swap():
        (here / one).rename(here / "third")
        (here / other).rename(here / one)
        (here / "third").rename(here / other)
    return swap, swap


def switch(link, first, second):
    def to(target):
        (link.parent / "new").symlink_to(target)
        (link.parent / "new").rename(link)
    return (lambda: to(second)), (lambda: to(first))


def owners(path):
    return (lambda: os.lchown(path, 1234, -1)), (lambda: os.lchown(path, 0, -1))


@case
def owner_of_a_link_by_its_other_name(at):
    tree.put(at / "owner/real.txt", "real")
    (at / "owner/link.txt").symlink_to("real.txt")
    os.link(at / "owner/link.txt", at / "other", follow_symlinks=False)
    return "owner/link.txt", *owners(at / "other")


@case
def owner_of_a_link_by_a_name_made_since(at):
    tree.put(at / "owner/real.txt", "real")
    (at / "owner/link.txt").symlink_to("real.txt")

    def change():
        os.link(at / "owner/link.txt", at / "other", follow_symlinks=False)
        os.lchown(at / "other", 1234, -1)

    def back():
        os.lchown(at / "owner/link.txt", 0, -1)
        (at / "other").unlink()
    return "owner/link.txt", change, back


@case
def mode_of_a_mounts_root_that_a_link_passes(at):
    tree.put(at / "source/file.txt", "text")
    (at / "point").mkdir()
    bound(at / "source", at / "point")[0]()
    (at / "link.txt").symlink_to("point/file.txt")
    return "link.txt", *modes(at / "source")


@case
def mode_of_a_mounts_root_that_an_access_files_link_passes(at):
    tree.put(at / "file.txt", "text")
    tree.put(at / "source/rules", "Require all granted\n")
    (at / "point").mkdir()
    bound(at / "source", at / "point")[0]()
    (at / ".htaccess").symlink_to("point/rules")
    return "file.txt", *modes(at / "source")


@case
def mode_of_a_directory_that_a_link_leaves_again(at):
    tree.put(at / "file.txt", "text")
    (at / "passed").mkdir()
    (at / "link.txt").symlink_to("passed/../file.txt")
    return "link.txt", *modes(at / "passed")


@case
def mounted_over_an_access_file(at):
    tree.put(at / "file.txt", "text")
    tree.put(at / ".htaccess", "Require all granted\n")
    tree.put(at / "rules", "Require all denied\n")
    return "file.txt", *bound(at / "rules", at / ".htaccess")


@case
def mounted_over_what_an_access_files_link_leads_to(at):
    tree.put(at / "served/file.txt", "text")
    tree.put(at / "rules/.htaccess", "Require all granted\n")
    tree.put(at / "others/.htaccess", "Require all denied\n")
    (at / "served/.htaccess").symlink_to("../rules/.htaccess")
    return "served/file.txt", *bound(at / "others", at / "rules")


@case
def unmounted_below_a_renamed_directory(at):
    """No report says that the mount point has another path."""
    tree.put(at / "source/file.txt", "mounted")
    tree.put(at / "one/point/file.txt", "below")
    mount, unmount = bound(at / "source", at / "two/point")
    run("mount", "--bind", at / "source", at / "one/point")
    (at / "one").rename(at / "two")
    return "two/point/file.txt", unmount, mount


@case
def mounted_behind_a_link_through_an_unreadable_directory(at):
    tree.put(at / "home/site/file.txt", "old")
    tree.put(at / "other/file.txt", "new")
    (at / "home").chmod(0o711)
    (at / "link").symlink_to("home/site")
    return "link/file.txt", *bound(at / "other", at / "home/site")


@case
def trees_exchanged_in_an_unreadable_directory(at):
    tree.put(at / "home/site/file.txt", "one")
    tree.put(at / "home/other/file.txt", "two")
    (at / "home").chmod(0o711)
    return "home/site/file.txt", *exchange(at / "home", "site", "other")


@case
def tree_made_anew_in_an_unreadable_directory(at):
    tree.put(at / "home/site/file.txt", "0")
    (at / "home").chmod(0o711)

    def again():
        shutil.rmtree(at / "home/site")
        tree.put(at / "home/site/file.txt", str(next(numbers)))
    numbers = itertools.count(1)
    return "home/site/file.txt", again, again


@case
def file_renamed_in_an_unreadable_directory(at):
    tree.put(at / "home/file.txt", "one")
    tree.put(at / "home/other.txt", "two")
    (at / "home").chmod(0o711)
    return "home/file.txt", *exchange(at / "home", "file.txt", "other.txt")


@case
def access_file_written_in_an_unreadable_directory(at):
    tree.put(at / "home/file.txt", "text")
    tree.put(at / "home/.htaccess", "Require all granted\n")
    (at / "home").chmod(0o711)
    return "home/file.txt", *access_texts(at / "home/.htaccess")


@case
def link_through_more_names_than_are_kept(at):
    for name in ("one", "two"):
        tree.put(at / LONG / name / "file.txt", name)
    (at / LONG / "current").symlink_to("one")
    (at / "link").symlink_to(f"{LONG}/current")
    return "link/file.txt", *switch(at / LONG / "current", "one", "two")


@case
def one_of_more_access_files_than_are_kept(at):
    deep = at.joinpath(*("d" * DEEP))
    tree.put(deep / "file.txt", "text")
    for number in range(DEEP + 1):
        tree.put(at.joinpath(*("d" * number)) / ".htaccess", "Require all granted\n")
    return f"{deep.relative_to(at)}/file.txt", *access_texts(deep / ".htaccess")


def two_ways(at, to_directory):
    """A link that leads through another one; from the directory behind both, ".." leads to one or two."""
    for name in ("one", "two"):
        tree.put(at / name / "of.txt", name)
    (at / "now").symlink_to("one")
    (at / "here").symlink_to(f"now/{to_directory}")
    NEIGHBOURS["here/link.txt"] = "here/a.txt"
    return "here/link.txt", *switch(at / "now", "one", "two")


@case
def another_way_to_the_same_mount(at):
    tree.put(at / "source/a.txt", "a")
    (at / "source/link.txt").symlink_to("../of.txt")
    url, change, back = two_ways(at, "d")
    for name in ("one", "two"):
        (at / name / "d").mkdir()
        bound(at / "source", at / name / "d")[0]()
    return url, change, back


@case
def a_directory_and_the_way_to_it_moved(at):
    tree.put(at / "one/z/y/a.txt", "a")
    (at / "one/z/y/link.txt").symlink_to("../../of.txt")
    url, to_second, to_first = two_ways(at, "z/y")

    def change():
        (at / "one/z").rename(at / "two/z")
        to_second()

    def back():
        (at / "two/z").rename(at / "one/z")
        to_first()
    return url, change, back


@pytest.fixture(scope="module")
def root(base):
    root = base / "rare"
    root.mkdir()
    yield root
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in points:
        if point.startswith(f"{root}/"):
            run("umount", "-l", point)


@pytest.fixture(scope="module")
def config(root):
    return (f"{NOTE_CONFIG}<Directory {root}>\nOptions FollowSymLinks\nAllowOverride All\n</Directory>\n"
            f"<Directory {root}/*/owner>\nOptions -FollowSymLinks +SymLinksIfOwnerMatch\n</Directory>\n")


@pytest.fixture(scope="module")
def stock(lab, root, config):
    return lab.stock("rare-stock", root, mpm="event", config=config).start()


@pytest.fixture(scope="module", params=("event", "prefork"))
def server(lab, root, config, request):
    return lab.under_test(f"rare-{request.param}", root, mpm=request.param, config=config, daemon_settings=settings(reported=True))


def last(connection, path, count=1):
    """Of so many requests. One connection is one child for long, which has the access files that it parsed."""
    for _ in range(count):
        reply = connection.ask(path)
    return reply.status, reply.body if reply.status == 200 else None


@pytest.fixture
def both(server, stock):
    connections = Quick(server.port), Quick(stock.port)
    yield connections
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("name", CASES)
def test_one_change_alone(server, both, root, name):
    ours, theirs = both
    wrong, tries = [], 0
    for number in range(TRIES):
        at = root / f"{server.dir.name}-{name}{number}"
        at.mkdir()
        path, *changes = CASES[name](at)
        url = f"/{at.relative_to(root)}/{path}"
        for change in changes:
            before = last(theirs, url)
            last(ours, url, KNOWN)
            change()
            if path in NEIGHBOURS:
                last(ours, f"/{at.relative_to(root)}/{NEIGHBOURS[path]}")
            seen, right = last(ours, url), last(theirs, url)
            assert right != before, "the change shows nowhere"
            tries += 1
            wrong += [(seen, right)] if seen != right else []
    assert not wrong, f"{len(wrong)} of {tries} answers were of before the change: {wrong[:2]}"
