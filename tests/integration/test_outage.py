# SPDX-License-Identifier: Apache-2.0
"""tests/lab/outage.py: the server of a real network file system stops for a while."""

import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

import slowfs
import tree
from conftest import BUILD, REPO, built

sys.path.insert(0, str(REPO / "tests/lab"))

from lab.rigs import RIGS  # noqa: E402
from lab.load import Content  # noqa: E402

pytestmark = [pytest.mark.needs_flashpache, pytest.mark.full]

ROW = re.compile(r"^(stock|Flashpache) +([\d.]+)% +([\d.]+)% +([\d.]+)%$", re.MULTILINE)


def outage(rig, page, *options):
    """The program's end, after a short outage."""
    return subprocess.run(["/usr/bin/python3", REPO / "tests/lab/outage.py", rig, "--seconds", "15", "--around", "5", "--rate", "20",
                           "--page", page, *options], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "FLASHPACHE_BUILD": str(BUILD)})


def answers_while_the_server_is_away(done, page):
    """The files in use, after the moment in which the mount is found out of service."""
    assert done.returncode == 0, done
    shares = {name: [float(share) for share in rest] for name, *rest in ROW.findall(done.stdout)}
    assert shares["Flashpache"][1] > shares["stock"][1], done.stdout
    subprocess.run(["/usr/bin/python3", REPO / "tests/lab/pictures.py", page, page.with_suffix("")], check=True)
    drawn = xml.fromstring(page.with_suffix(".svg").read_text())
    assert {path.get("class") for path in drawn.iter("{http://www.w3.org/2000/svg}path")} == {"stock", "flash"}


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
@pytest.mark.parametrize("rig", ("network", "rclone", "davfs", "gluster"))
def test_flashpache_answers_while_the_server_is_away(rig, base):
    missing = RIGS[rig](base / "rig", Content(1), 8).missing()
    if missing:
        pytest.skip("; ".join(missing))
    page = base / f"outage-{rig}.html"
    answers_while_the_server_is_away(outage(rig, page), page)
    assert not any(str(base) in line for line in open("/proc/self/mounts"))


@pytest.fixture
def own(base):
    """A mount that the program has not made: its files are below it."""
    slowfs.needed()
    for number in range(60):
        tree.put(base / f"server/www/file{number}.txt", f"{number}\n")
    made = slowfs.Slowfs(built("tests/lab/slowfs/slowfs"), base / "server", base / "own", 100)
    made.mount()
    yield made
    made.process.send_signal(signal.SIGCONT)
    made.unmount()


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
def test_an_outage_of_one_s_own_mount(own, base):
    """By the operator's commands, and never without the second one."""
    page, place = base / "outage-own.html", ("--docroot", own.target / "www")
    commands = ("--stop", f"kill -STOP {own.process.pid}", "--go", f"kill -CONT {own.process.pid}")
    answers_while_the_server_is_away(outage("own", page, *place, *commands), page)
    assert "own needs --docroot, --stop and --go" in outage("own", page, *place).stderr
    page.unlink()
    failed = outage("own", page, *place, "--stop", "false", "--go", "true", "--seconds", "1", "--around", "1")
    assert failed.returncode == 1 and "this command failed: false" in failed.stderr and not page.exists()
    assert (own.target / "www/file1.txt").read_text() == "1\n", "the mount stays"
