# SPDX-License-Identifier: Apache-2.0
"""A tree that is mounted when a path goes on behind its mount point (autofs) is there with the first request, as with
stock. A look at the point alone mounts nothing."""

import ctypes
import fcntl
import itertools
import os
import signal
import struct
import subprocess

import pytest

import tree
from fetch import Client
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

PROTOCOL, READY, FAIL = 5, 0x9360, 0x9361                   # AUTOFS_IOC_READY, AUTOFS_IOC_FAIL
PACKET = struct.Struct("=iiIIQIIIII256s")                   # struct autofs_v5_packet
TOKEN, LENGTH, NAME = 2, 9, 10                              # its fields
NUMBERS = itertools.count()
libc = ctypes.CDLL(None, use_errno=True)


def mount(source, point, kind, options):
    if libc.mount(source, os.fsencode(point), kind, 0, options) == -1:
        raise OSError(ctypes.get_errno(), f"{point}: {kind.decode()}")


def serve(point, names, put_files, reading, ready):
    """The automounter: a process group of its own, which passes through the point without mounting anything. names: of
    an indirect map; the first one has a directory already."""
    os.setpgid(0, 0)
    os.read(ready, 1)
    token_fd = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    for name in names[:1]:
        (point / name).mkdir()
    while packet := os.read(reading, 4096):
        fields = PACKET.unpack_from(packet)
        name = fields[NAME][:fields[LENGTH]].decode()
        at = point / name if names else point
        if not names or name in names:
            at.mkdir(exist_ok=True)
            mount(b"none", at, b"tmpfs", b"mode=755")
            put_files(at)
        fcntl.ioctl(token_fd, READY if not names or name in names else FAIL, fields[TOKEN])


class Automount:
    """A direct mount point of autofs, over which a small tmpfs with these files is mounted. Or an indirect one, in
    which that happens to these names."""

    def __init__(self, point, put_files, names=()):
        self.point = point
        point.mkdir(parents=True)
        reading, writing = os.pipe()
        ready, begin = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(writing)
                os.close(begin)
                serve(point, names, put_files, reading, ready)
            finally:
                os._exit(1)
        os.close(reading)
        os.close(ready)
        wait_for(lambda: os.getpgid(self.pid) == self.pid, "the automounter")
        try:
            mount(b"unit", point, b"autofs", b"fd=%d,pgrp=%d,minproto=%d,maxproto=%d,%s"
                  % (writing, self.pid, PROTOCOL, PROTOCOL, b"indirect" if names else b"direct"))
        except OSError as e:
            self.end()
            pytest.skip(f"needs autofs in the kernel: {e}")
        finally:
            os.close(writing)
        os.write(begin, b"x")
        os.close(begin)

    def is_mounted(self, name=""):
        with open("/proc/self/mountinfo") as mounts:
            return any(line.split()[4] == str(self.point / name) and " - tmpfs " in line for line in mounts)

    def unmount(self):
        """Even if somebody holds a file of it open."""
        subprocess.run(["umount", "-l", str(self.point)], check=True)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        while subprocess.run(["umount", "-l", "-R", str(self.point)], capture_output=True).returncode == 0:
            pass


def put_files(root):
    for name in ("index.html", "sub/page.txt", "sub/.htaccess"):
        tree.put(root / name, "Header set X-Rules these\n" if name.endswith("access") else f"{name}\n")


@pytest.fixture
def names():
    """Of a direct map."""
    return ()


@pytest.fixture
def point(base, names):
    made = Automount(base / str(next(NUMBERS)) / "point", put_files, names)
    yield made
    made.end()


@pytest.fixture
def server(lab, point, kind, under):
    """Whose document root is the point, a link to it, or the directory above."""
    above = point.point.parent
    (above / "link").symlink_to("point")
    root = {"root": point.point, "link": above / "link", "below": above}[under]
    config = f"<Directory {above}>\nAllowOverride All\nOptions +Indexes +FollowSymLinks\n</Directory>\n"
    make = lab.stock if kind == "stock" else lab.under_test
    one = make(f"{kind}-{above.name}", root, config=config)
    yield one if kind != "stock" else one.start()
    lab.end()


def get(server, path):
    with Client(server.port) as client:
        client.conn.request("GET", path, headers={"Host": "localhost"})
        answer = client.conn.getresponse()
        return answer.status, answer.headers["X-Rules"], answer.read().decode()


@pytest.mark.parametrize("kind", ("stock", "flash"))
@pytest.mark.parametrize("under", ("root", "link", "below"))
@pytest.mark.parametrize("first", ("/", "/index.html", "/sub/page.txt", "/sub/missing"))
def test_what_lies_behind_is_there(server, point, under, first):
    prefix = "/point" if under == "below" else ""
    right = {"/": (200, None, "index.html\n"), "/index.html": (200, None, "index.html\n"),
             "/sub/page.txt": (200, "these", "sub/page.txt\n")}
    assert not point.is_mounted()
    for path in (first, *right, first):
        status, rules, body = get(server, prefix + path)
        assert (status, rules, body) == right.get(path, (404, None, body)), path
    assert point.is_mounted()


@pytest.mark.parametrize("kind", ("stock", "flash"))
@pytest.mark.parametrize("under", ("root", "below"))
def test_what_was_unmounted_is_mounted_again(server, point, under):
    prefix = "/point" if under == "below" else ""
    for _ in range(3):
        assert get(server, prefix + "/sub/page.txt")[0] == 200
    point.unmount()
    assert get(server, prefix + "/sub/page.txt")[0] == 200
    assert point.is_mounted()


@pytest.mark.parametrize("kind", ("stock", "flash"))
@pytest.mark.parametrize("under", ("root", "link", "below"))
@pytest.mark.parametrize("names", (("first", "second"),), ids=("indirect",))
def test_names_of_an_indirect_map(server, point, under, names):
    """Of one there is a directory, of the other nothing before somebody asks; and a third is in no map."""
    prefix = "/point" if under == "below" else ""
    right = (("/index.html", "index.html\n"), ("/", "index.html\n"), ("/sub/page.txt", "sub/page.txt\n"))
    for _ in range(3):
        for name in names:
            for path, body in right:
                status, _, found = get(server, f"{prefix}/{name}{path}")
                assert (status, found) == (200, body), (name, path)
            assert point.is_mounted(name)
        assert get(server, f"{prefix}/third/index.html")[0] == 404
