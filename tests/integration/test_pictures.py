# SPDX-License-Identifier: Apache-2.0
"""Pictures for the pages: docs/images. One is the status page of a site of two hosts, whose uploads are on a file system that
does not answer. The other is flashpache-compare's report on documents on a slow file system.

FLASHPACHE_PICTURES  a directory: the pictures are left there
"""

import contextlib
import os
import subprocess
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

import browser
import slowfs
import status_kit
import tree
from conftest import BUILD, REPO, built
from dead_mounts_kit import Breakable
from fetch import Client
from status_page_kit import read
from waiting import wait_for

PICTURES = os.environ.get("FLASHPACHE_PICTURES")
LARGEST = 150_000           # bytes of a picture
DELAY_US = 900              # of each call on the slow file system
FILES = 40
VISITED = {f"/uploads/file{number * number % 17}.txt" for number in range(60)} | {f"/local/file{number}.txt" for number in range(9)}
LINE = '192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] "GET {} HTTP/1.1" 200 7\n'

pytestmark = [pytest.mark.needs_flashpache, pytest.mark.full,
              pytest.mark.skipif(not PICTURES, reason="makes pictures: wants FLASHPACHE_PICTURES=DIRECTORY"),
              pytest.mark.skipif(not browser.CHROMIUM, reason="needs chromium: scripts/test full installs it")]


@pytest.fixture
def srv():
    """An empty /srv, in the mount namespace of the tests alone."""
    slowfs.needed()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", "/srv"], check=True)
    yield Path("/srv")
    subprocess.run(["umount", "-l", "/srv"], check=True)


@pytest.fixture
def slow(srv):
    """Mounts a slow file system with files; its target is to be named."""
    mounts = []

    def mount(target):
        for number in range(FILES):
            tree.put(srv / f"server/file{number}.txt", f"{number}\n")
        tree.put(srv / "server/index.php", "<?php echo 1;\n")
        mounts.append(Breakable(built("tests/lab/slowfs/slowfs"), srv / "server", target))
        mounts[-1].delay_us = DELAY_US
        mounts[-1].mount()
        return mounts[-1]
    yield mount
    for each in mounts:
        each.unmount()


def draw(base, page, width, name):
    for dark in (False, True):
        target = Path(PICTURES).resolve() / f"{name}-{'dark' if dark else 'light'}.svg"
        browser.draw(base, page, width, target, dark)
        assert target.stat().st_size < LARGEST
        assert xml.parse(target).getroot().tag.endswith("svg")


def test_report(base, srv, slow):
    """Visitors ask for files, and for a page."""
    slow(srv / "www")
    paths = [f"/file{number * number % FILES}.txt" for number in range(200)] + ["/index.php"] * 50
    log = tree.put(srv / "access.log", "".join(map(LINE.format, paths)))
    results = base / "results"
    subprocess.run(["/usr/bin/python3", REPO / "scripts/lib/compare.py", srv / "www", "--log", log, "--results", results,
                    "--rounds", "2"], check=True, capture_output=True, timeout=600,
                   env={**os.environ, "FLASHPACHE_BUILD": str(BUILD)})
    draw(base, (results / "report.html").read_text(), 800, "compare")


def test_status(lab, base, srv, slow):
    for number in range(FILES):
        tree.put(srv / f"www/local/file{number}.txt", f"{number}\n")
    mount = slow(srv / "www/uploads")
    daemon = lab.daemon("www", ttl_ms=1000, mount_timeout_ms=500, lookup_timeout_ms=2000, stale_if_error_ms=600000).start()
    server = lab.flash("www-httpd", srv / "www", daemon.socket, config="FlashpacheTimeout 1\n", vhosts=[
        (["www.example.org"], ""), (["shop.example.org"], ""), status_kit.VHOST], extra_modules=status_kit.MODULES).start()
    # Files that have just been made are kept by their content two seconds later.
    wait_for(lambda: visit(server) or daemon.counters()["content_files"] >= len(VISITED), "all contents")
    mount.hang()
    wait_for(lambda: daemon.counters()["out_of_service"] or outside(server), "the mount to be out of service", 60)
    visit(server)
    page = read(server).text
    draw(base, page, 1000, "status")
    screen = Path(PICTURES).resolve() / "status.png"       # forges show no fonts of an SVG
    browser.shoot(base, page, 1000, 815, screen)
    assert screen.stat().st_size < LARGEST and screen.read_bytes().startswith(b"\x89PNG")


def visit(server):
    """Visitors of both hosts, with more requests for some files than for others."""
    for host, times in (("www.example.org", 60), ("shop.example.org", 25)):
        with Client(server.port, host=host) as client:
            for number in range(times):
                client.get(f"/uploads/file{number * number % 17}.txt")
                client.get(f"/local/file{number % 9}.txt")
                client.get(f"/local/favicon{number % 5}.ico")


def outside(server):
    """Asks for a new path, and does not wait for the answer."""
    with contextlib.suppress(OSError), Client(server.port, timeout=0.5) as client:
        client.get("/uploads/file39.txt")
