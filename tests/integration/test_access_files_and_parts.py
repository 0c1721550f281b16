# SPDX-License-Identifier: Apache-2.0
"""Access files on a file system with coarse times, in a directory that may be passed but not read, and below
mounts. Parts of a page that it makes itself. All as in stock."""

import os
import subprocess
from contextlib import contextmanager

import pytest

import tree
from fetch import Client

pytestmark = pytest.mark.needs_flashpache
KNOWN = 4                   # requests, after which children have a lease
DENY = "Require all denied\n"
PAGE = '<!--#exec cmd="echo $QUERY_STRING >{0}/new; mv {0}/new {0}/part.txt" --><!--#include virtual="/made/part.txt" -->'


def mark(text):
    return f"Header set X-Mark {text}\n"


@contextmanager
def mounted(at, *options):
    subprocess.run(["mount", *map(str, options), at], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", at], check=True)


@contextmanager
def served(lab, name, root, settings=None, **options):
    config = f"<Directory {root}>\nAllowOverride All\nOptions +FollowSymLinks +Includes\nAddOutputFilter INCLUDES .shtml\n</Directory>\n"
    server = lab.under_test(name, root, config=config, extra_modules=("include", "cgid"),
                            daemon_settings=settings or {"ttl_ms": 600_000}, **options)
    with Client(server.port) as client:
        def ask(path):
            client.conn.request("GET", path, headers={"Host": "localhost"})
            reply = client.conn.getresponse()
            body = reply.read()
            return reply.headers["X-Mark"] or body if reply.status == 200 else reply.status
        yield ask
    lab.end()


def known(ask, path):
    assert len(found := {ask(path) for _ in range(KNOWN)}) == 1
    return found.pop()


def test_an_access_file_changed_twice_within_its_time(lab, base):
    """Small inodes of ext4 have times in seconds; others a tick of the kernel's clock before Linux 6.13."""
    root, image = base / "seconds", base / "image"
    root.mkdir()
    with open(image, "wb") as new:
        new.truncate(8 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-I", "128", image], check=True)
    with mounted(root, "-o", "loop", image):
        root.chmod(0o755)
        tree.put(root / "file.txt", "text")
        with served(lab, "seconds", root) as ask:
            found = []
            for number in range(20):
                (root / ".htaccess").write_text(mark(number % 10))
                found.append(ask("/file.txt"))
            assert found == [str(number % 10) for number in range(20)]


def replaced_link(link, to):
    (link.parent / "new").symlink_to(to)
    os.replace(link.parent / "new", link)


@pytest.mark.parametrize("path,change,expected", (
    ("file.txt", lambda at: (at / ".htaccess").write_text(DENY), 403),
    ("sub/file.txt", lambda at: (at / ".htaccess").write_text(DENY), 403),
    ("file.txt", lambda at: (at / ".htaccess").chmod(0), 403),
    ("file.txt", lambda at: (at / "file.txt").rename(at / "other.txt"), 404),
    ("sub/file.txt", lambda at: (at / "sub").rename(at / "other"), 404),
    ("link.txt", lambda at: replaced_link(at / "link.txt", "none"), 403)),
    ids=("access-file", "access-file-above", "closed-access-file", "file-moved", "directory-moved", "link"))
def test_a_directory_that_may_be_passed_but_not_read(lab, base, request, path, change, expected):
    root = base / request.node.callspec.id
    at = root / "passed"
    for name in ("file.txt", "sub/file.txt"):
        tree.put(at / name, "text")
    tree.put(at / ".htaccess", mark("first"))
    (at / "link.txt").symlink_to("file.txt")
    at.chmod(0o711)
    with served(lab, request.node.callspec.id, root) as ask:
        assert known(ask, f"/passed/{path}") == "first"
        change(at)
        assert ask(f"/passed/{path}") == expected


@pytest.mark.parametrize("linked", (False, True), ids=("on-it", "over-its-target"))
def test_a_mount_over_an_access_file(lab, base, linked):
    root, rules = base / f"mount-{linked}", base / f"rules-{linked}"
    tree.put(root / "a/file.txt", "text")
    tree.put(rules / "htaccess", mark("first"))
    tree.put(rules / "other", DENY)
    if linked:
        (root / "a/.htaccess").symlink_to(rules / "htaccess")
    else:
        tree.put(root / "a/.htaccess", mark("first"))
    with served(lab, f"mount-{linked}", root) as ask:
        assert known(ask, "/a/file.txt") == "first"
        with mounted(*((rules, "-t", "tmpfs", "none") if linked else (root / "a/.htaccess", "--bind", rules / "other"))):
            assert ask("/a/file.txt") == (b"text" if linked else 403)


def test_a_command_of_a_page_makes_its_next_part(lab, base):
    root = base / "pages"
    (root / "made").mkdir(parents=True)
    (root / "made").chmod(0o777)
    tree.put(root / "page.shtml", PAGE.format(root / "made"))
    with served(lab, "pages", root, {"watch": "ttl", "ttl_ms": 600_000}) as ask:
        assert [ask(f"/page.shtml?{text}") for text in ("one", "three")] == [b"one\n", b"three\n"]


def put_deep(root, most):
    """A file with a name of one letter in a directory whose path has so many bytes."""
    path = root
    while len(str(path)) + 100 < most:
        path /= "d" * min(98, most - len(str(path)) - 2)
    if len(str(path)) < most:
        path /= "d" * (most - len(str(path)) - 1)
    assert len(str(path)) == most
    tree.put(path / "f", "deep\n")
    return f"/{path.relative_to(root)}/f"


def test_where_the_access_files_path_would_be_too_long(lab, base):
    """Core cannot look for one there, and refuses."""
    root = base / "deep"
    urls = [f"/{most}{put_deep(root / str(most), most)}" for most in range(4080, 4094)]
    config = f"<Directory {root}>\nAllowOverride All\n</Directory>\n"
    seen = []
    for server in (lab.stock("deep-stock", root, config=config).start(), lab.under_test("deep-flash", root, config=config)):
        with Client(server.port) as client:
            seen.append([client.get(url)[0] for url in urls for _ in range(KNOWN)])
    lab.end()
    assert seen[0] == seen[1] and {200, 403} <= set(seen[0])
