# SPDX-License-Identifier: Apache-2.0
"""A stock httpd and Flashpache on one mount of a network file system (network_mounts), and files that both have served.

FLASHPACHE_TRIES  how many files each server has for a test
"""

import functools
import itertools
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import filesystems
import network_mounts
import tree
from forms import chosen
from httpd import user_ids
from quick import Quick
from waiting import wait_for

KINDS = [kind for kind in filesystems.GIVEN or network_mounts.KINDS if kind in network_mounts.KINDS]
NFS = [kind for kind in KINDS if kind.startswith("nfs")]
TRIES = int(os.environ.get("FLASHPACHE_TRIES") or chosen(20, 200))
ROUNDS, PAUSE_S = 12, 0.25
AGAIN = 3               # of them, just before the change
# A slow machine may leave a connection idle for long, from its beginning on.
PATIENT = "KeepAliveTimeout 7200\nRequestReadTimeout header=0\n"
CONNECTIONS = 3         # so that several children have looked at each file
SIZES = (1 << 10, 300_000, 1 << 10, 300_000, 1 << 10, 3_000_000)
LATEST_S = 20           # ends a hang, measures nothing
NOTHING = object()      # any body


# Many times the same.
content = functools.cache(tree.content)


@dataclass
class Try:
    """One file of its own directory, below the mount; `url` leads to the file."""
    server: object
    directory: Path
    url: str
    size: int

    @property
    def file(self):
        return self.directory / "file.bin"

    @property
    def body(self):
        return content("old", self.size)

    @property
    def new(self):
        return content("new", self.size)

    def ask(self, url=None, method="GET", body=b"", fields=""):
        return self.server.ask(url or self.url, method, body, fields)

    def shows(self, status, body=NOTHING, url=None):
        reply = self.ask(url)
        return reply.status == status and (body is NOTHING or reply.body == body)

    def make(self, number):
        """Every other file is old: new ones are not kept as long."""
        self.directory.mkdir(parents=True)
        self.file.write_bytes(self.body)
        if number % 2:
            os.utime(self.file, (tree.MTIME, tree.MTIME))
        for path in (self.file, self.directory):
            os.chown(path, *user_ids())

    def warm(self):
        return self.shows(200, self.body)


class Server:
    """One of the two, with connections to it."""

    def __init__(self, name, httpd):
        self.name, self.httpd = name, httpd
        self.connections = itertools.cycle([Quick(httpd.port) for _ in range(CONNECTIONS)])

    def ask(self, url, method, body, fields):
        return next(self.connections).ask(url, method, body, fields)


class Site:
    def __init__(self, kind, mount, servers):
        self.kind, self.mount, self.servers = kind, mount, servers

    def tries(self, server, name):
        return [Try(server, self.mount.at / f"{name}-{server.name}/{number}", f"/{name}-{server.name}/{number}/file.bin",
                    SIZES[number % len(SIZES)]) for number in range(TRIES)]


# Of directories: a socket's path has room for 107 bytes.
_numbers = itertools.count()


@contextmanager
def served(kind, base, lab, options="", daemon_settings=None, flashpache=""):
    """A mount, and both servers on it. options: of the mount. flashpache: lines of that server's configuration alone."""
    base = base / f"m{next(_numbers)}"
    base.mkdir()
    with network_mounts.mounted(kind, base / "www", options) as mount:
        mount.at.chmod(0o755)
        servers = []
        for name in ("stock", "flashpache"):
            locks = base / f"locks-{name}"
            locks.mkdir()
            os.chown(locks, *user_ids())
            config = (f"{PATIENT}DavLockDB {locks}/lock\n"
                      f"<Directory {mount.at}>\nAllowOverride All\nDav On\n</Directory>\n")
            own = {"config": config, "extra_modules": ("dav", "dav_fs")}
            if name == "stock":
                httpd = lab.stock(f"{name}-{base.name}", mount.at, **own).start()
            else:
                own["config"] += flashpache
                httpd = lab.under_test(f"{name}-{base.name}", mount.at, daemon_settings=daemon_settings or {}, **own)
            servers.append(Server(name, httpd))
        yield Site(kind, mount, servers)
        lab.end()


def warm(tries):
    """Every file, a dozen times in some seconds; both servers in turn."""
    for number, one in enumerate(tries):
        one.make(number)
    for _ in range(ROUNDS - AGAIN):
        serve(tries)
        time.sleep(PAUSE_S)
    serve(tries, AGAIN)


def serve(tries, times=1):
    wrong = [one.url for _ in range(times) for one in tries if not one.warm()]
    assert not wrong, wrong


def row(capsys, kind, name, counts, tries=TRIES):
    with capsys.disabled():
        print(f"\n{kind:18} {name:20} stock {counts['stock']:3} of {tries}   flashpache {counts['flashpache']:3} of {tries}",
              flush=True)
    assert counts["flashpache"] <= counts["stock"], (kind, name, counts)


def becomes_true(condition, latest_s=LATEST_S):
    try:
        return wait_for(condition, "the change", latest_s)
    except TimeoutError:
        return False
