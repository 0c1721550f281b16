# SPDX-License-Identifier: Apache-2.0
"""What httpd changes is in the next answer to PHP's own calls, and what PHP changes is in httpd's next response."""

import errno
import os
import random

import pytest

import files_kit
import filesystems
import slowfs
from fetch import Client
from httpd import user_ids
from test_after_writing import call
from test_program_files import Program, program  # noqa: F401 (a fixture)

pytestmark = pytest.mark.needs_flashpache
CHANGES = int(os.environ.get("FLASHPACHE_CHANGES", "300"))
NAMES = [f"{i}.txt" for i in range(6)]
MOST = 60       # bytes of a file


class Both:
    """httpd and a program with the library, and what the files have to be."""

    def __init__(self, client, php, site):
        self.client, self.php, self.site = client, php, site
        self.expected = dict.fromkeys(NAMES)

    def change(self, who, name, text):
        path = self.site / name
        if who == "httpd" and text is None:
            assert call(self.client, "DELETE", f"/{name}")[0] in (204, 404)
        elif who == "httpd":
            assert call(self.client, "PUT", f"/{name}", text)[0] in (201, 204)
        elif text is None:
            assert self.php("remove", path) in ("0", str(errno.ENOENT))
        else:
            assert self.php("put", f"{path} {text}") == "0"
        self.expected[name] = text

    def seen(self, who, name):
        if who == "php":
            size = int(self.php("size", self.site / name))
            return None if size == -errno.ENOENT else size
        status, body = call(self.client, "GET", f"/{name}")
        assert status in (200, 404)
        return len(body) if status == 200 else None

    def check(self, changed, what):
        for who in ("php", "httpd"):
            for name in NAMES if who == "php" else (changed, random.choice(NAMES)):
                text = self.expected[name]
                assert self.seen(who, name) == (None if text is None else len(text)), f"{who}'s {name} after {what}"


@pytest.mark.parametrize("kind", filesystems.KINDS)
def test_writer_and_reader_in_either_order(kind, lab, base, program, slow_directory):  # noqa: F811
    random.seed(kind)
    own = base / f"both-{kind}"
    own.mkdir()
    if kind == "fuse":
        slowfs.needed()
    with filesystems.directory(kind, own, slow_directory) as directory:
        site = directory / "site"
        site.mkdir()
        os.chown(site, *user_ids())
        locks = own / "locks"
        locks.mkdir()
        os.chown(locks, *user_ids())
        server = lab.under_test(f"both-{kind}", site, mpm="event", extra_modules=("dav", "dav_fs"), daemon_settings={"ttl_ms": 60000},
                                config=f"<Directory {site}>\nDav On\n</Directory>\nDavLockDB {locks}/db\n")
        try:
            with Client(server.port, 60) as client, Program(program, site, server.daemon.socket) as php:
                both = Both(client, php, site)
                for i in range(CHANGES):
                    who, name = random.choice(("php", "httpd")), random.choice(NAMES)
                    text = random.choice((None, "x" * random.randint(1, MOST), "y" * random.randint(1, MOST)))
                    both.change(who, name, text)
                    both.check(name, f"change {i}, {who}'s of {name}")
                assert int(php("answered")) > CHANGES, "hardly an answer came from memory: nothing was tested"
        finally:
            lab.end()
