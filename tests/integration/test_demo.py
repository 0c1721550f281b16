# SPDX-License-Identifier: Apache-2.0
"""scripts/demo, as a newcomer runs it, but with a second of measuring."""

import os
import subprocess
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "scripts" / "demo"
# The part of stock's path calls that is too much. In a second on the local disk children look at many files themselves.
PLACES = {"local disk": 1, "slow file system": 0.25}


@pytest.fixture
def work(base):
    """Apache's user serves the files in it."""
    made = base / "demo"
    made.mkdir(exist_ok=True)
    return made


@pytest.fixture
def run(work):
    def demo(*args):
        return subprocess.run([DEMO, *args], env={**os.environ, "TMPDIR": str(work)}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=400)
    return demo


@pytest.mark.needs_flashpache
@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
@pytest.mark.skipif(os.getuid() != 0 or not os.path.exists("/dev/fuse"), reason="the slow half needs root and /dev/fuse")
def test_demo(run, work):
    done = run("--seconds", "1")
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    for place, part in PLACES.items():
        rows = {server: line.removeprefix(place).split(server)[1].split() for line in done.stdout.splitlines()
                if line.startswith(place) for server in ("stock Apache", "Flashpache") if server in line}
        assert float(rows["stock Apache"][0]) > 0, rows       # path calls a request
        # A child opens a larger file once, from the kernel's memory.
        assert float(rows["Flashpache"][0]) < part * float(rows["stock Apache"][0]), rows
        assert {row[-1] for row in rows.values()} == {"0"}, rows      # errors
    assert not list(work.iterdir())


@pytest.mark.parametrize("args", (("--seconds", "0"), ("--seconds",), ("--second", "1"), ("more",)))
def test_mistakes(run, args):
    done = run(*args)
    assert done.returncode != 0
    assert "--seconds" in done.stderr
