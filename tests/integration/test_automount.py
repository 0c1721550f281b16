# SPDX-License-Identifier: Apache-2.0
"""A tree that is mounted when a path goes on behind its mount point (autofs; a look at the point alone mounts nothing): it
is there with the first request, as with stock."""

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

PROTOCOL, READY, PACKET = 5, 0x9360, struct.Struct("=iiIIQIIIII256s")     # AUTOFS_IOC_READY; struct autofs_v5_packet
NUMBERS = itertools.count()
libc = ctypes.CDLL(None, use_errno=True)


def mount(source, point, kind, options):
    if libc.mount(source, os.fsencode(point), kind, 0, options) == -1:
        raise OSError(ctypes.get_errno(), f"{point}: {kind.decode()}")


def serve(point, put_files, reading, ready):
    """The automounter: a process group of its own, which passes through the point without mounting anything."""
    os.setpgid(0, 0)
    os.read(ready, 1)
    token_fd = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    while packet := os.read(reading, 4096):
        mount(b"none", point, b"tmpfs", b"mode=755")
        put_files(point)
        fcntl.ioctl(token_fd, READY, PACKET.unpack_from(packet)[2])


class Automount:
    """A direct mount point of autofs, over which a small tmpfs with these files is mounted."""

    def __init__(self, point, put_files):
        self.point = point
        point.mkdir(parents=True)
        reading, writing = os.pipe()
        ready, begin = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(writing)
                os.close(begin)
                serve(point, put_files, reading, ready)
            finally:
                os._exit(1)
        os.close(reading)
        os.close(ready)
        wait_for(lambda: os.getpgid(self.pid) == self.pid, "the automounter")
        try:
            mount(b"unit", point, b"autofs", b"fd=%d,pgrp=%d,minproto=%d,maxproto=%d,direct"
                  % (writing, self.pid, PROTOCOL, PROTOCOL))
        except OSError as e:
            self.end()
            pytest.skip(f"needs autofs in the kernel: {e}")
        finally:
            os.close(writing)
        os.write(begin, b"x")
        os.close(begin)

    def is_mounted(self):
        with open("/proc/self/mountinfo") as mounts:
            return any(line.split()[4] == str(self.point) and " - tmpfs " in line for line in mounts)

    def unmount(self):
        """Even if somebody holds a file of it open."""
        subprocess.run(["umount", "-l", str(self.point)], check=True)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        while subprocess.run(["umount", "-l", str(self.point)], capture_output=True).returncode == 0:
            pass


def put_files(root):
    for name in ("index.html", "sub/page.txt", "sub/.htaccess"):
        tree.put(root / name, "Header set X-Rules these\n" if name.endswith("access") else f"{name}\n")


@pytest.fixture
def point(base):
    made = Automount(base / str(next(NUMBERS)) / "point", put_files)
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
