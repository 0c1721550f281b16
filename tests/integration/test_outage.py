# SPDX-License-Identifier: Apache-2.0
"""tests/lab/outage.py: the server of a real network file system stops for a while."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

from conftest import BUILD, REPO

sys.path.insert(0, str(REPO / "tests/lab"))

from lab.rigs import RIGS  # noqa: E402
from lab.load import Content  # noqa: E402

pytestmark = [pytest.mark.needs_flashpache, pytest.mark.full]

ROW = re.compile(r"^(stock|Flashpache) +([\d.]+)% +([\d.]+)% +([\d.]+)%$", re.MULTILINE)


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
@pytest.mark.parametrize("rig", ("network", "rclone", "davfs", "gluster"))
def test_flashpache_answers_while_the_server_is_away(rig, base):
    """The files in use, after the moment in which the mount is found out of service."""
    missing = RIGS[rig](base / "rig", Content(1), 8).missing()
    if missing:
        pytest.skip("; ".join(missing))
    page = base / f"outage-{rig}.html"
    done = subprocess.run(["/usr/bin/python3", REPO / "tests/lab/outage.py", rig, "--seconds", "15", "--around", "5", "--rate", "20",
                           "--page", page], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "FLASHPACHE_BUILD": str(BUILD)})
    assert done.returncode == 0, done
    shares = {name: [float(share) for share in rest] for name, *rest in ROW.findall(done.stdout)}
    assert shares["Flashpache"][1] > shares["stock"][1], done.stdout
    drawn = xml.fromstring(re.search(r"<svg.*?</svg>", page.read_text(), re.DOTALL).group())
    assert {path.get("class") for path in drawn.iter("path")} == {"stock", "flash"}
    assert not any(str(base) in line for line in open("/proc/self/mounts"))
