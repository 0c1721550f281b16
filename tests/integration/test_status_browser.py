# SPDX-License-Identifier: Apache-2.0
"""The status page in a real browser: nothing is cut on a phone, and it is readable in the dark.

FLASHPACHE_PICTURES  a directory: pictures of the page are left there
"""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

import browser
import slowfs
import status_kit
import tree
from conftest import built
from dead_mounts_kit import Breakable, world  # noqa: F401
from fetch import Client
from status_page_kit import read, serve, traffic, until
from waiting import wait_for

Image = pytest.importorskip("PIL.Image", reason="needs python3-pil, which python3-matplotlib brings")
pytestmark = [pytest.mark.needs_flashpache, pytest.mark.full,
              pytest.mark.skipif(not browser.CHROMIUM, reason="needs chromium: scripts/test full installs it")]

WIDTHS = (400, 1200)        # a phone, a desk
READABLE = 4.5              # the least contrast of text, as WCAG 2 computes it
LARGEST = 60_000            # bytes of a picture
PICTURES = os.environ.get("FLASHPACHE_PICTURES")


def luminance(colour):
    """Of "rgb(r, g, b)"."""
    parts = [int(each) / 255 for each in colour[colour.index("(") + 1:-1].split(",")[:3]]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    dim, bright = sorted((luminance(a), luminance(b)))
    return (bright + 0.05) / (dim + 0.05)


def page_of(state, lab, make):
    """The page of a site in that state."""
    site = make(state)
    server = serve(lab, site, f"{state}-httpd")
    traffic(server, site)
    if state == "degraded":
        with Client(server.port) as client:
            for number in range(400):
                client.get(f"/local/a-rather-long-name-of-a-file-that-nobody-has-made-yet-{number}.html")
        site.mount.behave("hang")
        site.until_out()
    elif state == "down":
        site.daemon.kill()
        with Client(server.port) as client:
            for number in range(20):
                client.get(f"/local/none{number}")
    return until(server, state).text


@pytest.mark.parametrize("state", ("healthy", "degraded", "down"))
def test_looks(lab, world, base, state):  # noqa: F811
    text = page_of(state, lab, world)
    colours = {}
    for width in WIDTHS:
        for dark in (False, True):
            found = browser.measure(base, text, width, dark)
            assert found["width"] == width and found["needed"] <= width, found["outside"]
            assert found["outside"] == []
            assert (found["open"], found["folded"]) == (0, 0)
            assert contrast(found["body"][0], found["body"][1]) >= READABLE
            assert contrast(found["state"], found["health"][1]) >= READABLE
            colours[dark] = found["body"][1]
            parts = found["parts"]
            assert {"lease", "miss"} <= set(parts) and all(size >= 3 for _, size in parts.values())
            assert len({colour for colour, _ in parts.values()}) == len(parts), "two parts of one colour"
            assert state == "down" or max(found["heights"]) > 40
    assert luminance(colours[True]) < 0.05 < 0.8 < luminance(colours[False])


@pytest.fixture
def srv():
    """An empty /srv, in the mount namespace of the tests alone."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", "/srv"], check=True)
    yield Path("/srv")
    subprocess.run(["umount", "-l", "/srv"], check=True)


@pytest.mark.skipif(not PICTURES, reason="makes pictures: wants FLASHPACHE_PICTURES=DIRECTORY")
def test_pictures(lab, base, srv):
    """A site of two hosts, a file system that does not answer, and its operator's view."""
    slowfs.needed()
    root = tree.put(srv / "www/index.html", "hello\n").parent
    for number in range(40):
        for where in (root / "local", srv / "server"):
            tree.put(where / f"file{number}.txt", f"{number}\n")
    mount = Breakable(built("tests/lab/slowfs/slowfs"), srv / "server", root / "uploads")
    mount.delay_us = 900
    mount.mount()
    try:
        daemon = lab.daemon("www", mount_timeout_ms=500, lookup_timeout_ms=2000, stale_if_error_ms=600000).start()
        server = lab.flash("www-httpd", root, daemon.socket, config="FlashpacheTimeout 1\n", vhosts=[
            (["www.example.org"], ""), (["shop.example.org"], ""), status_kit.VHOST],
            extra_modules=status_kit.MODULES).start()
        visit(server)
        mount.hang()
        wait_for(lambda: daemon.counters()["out_of_service"] or outside(server), "the mount to be out of service", 60)
        visit(server)
        for name, width, height, dark in (("status", 1000, 1090, False), ("status-phone-dark", 400, 1250, True)):
            target = Path(PICTURES).resolve() / f"{name}.png"
            browser.take_picture(base, read(server).text, width, height, target, dark)
            image = Image.open(target).convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE)
            image.save(target, optimize=True)
            assert target.stat().st_size < LARGEST
    finally:
        mount.unmount()


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
