# SPDX-License-Identifier: Apache-2.0
"""What the measurements of tests/vm share: files, and a stock httpd or one with Flashpache."""

import os
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "tests/integration"), str(REPO / "tests/lab")]

import lab_kit  # noqa: E402
import mount_namespace  # noqa: E402
import network_mounts  # noqa: E402

SERVERS = {"stock": lab_kit.stock, "flashpache": lab_kit.flashpache}
A_DIRECTORY = 100       # files in each
LONG_AGO = 1_500_000_000


def begin():
    """In a mount namespace of its own; ends the program outside the virtual machine."""
    if not network_mounts.INSIDE:
        sys.exit(network_mounts.NEEDS)
    mount_namespace.enter()
    os.umask(0o022)


def url(number):
    return f"/d{number // A_DIRECTORY}/f{number}.html"


def make(behind, files, size):
    """Old files, at the server."""
    behind.chmod(0o755)
    for number in range(files):
        path = behind / url(number).lstrip("/")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (LONG_AGO, LONG_AGO))


def server(name, base, root, mpm="event", override="None", config="", ttl_ms=None):
    """One of SERVERS on the documents (a context manager)."""
    settings = {"daemon_settings": {"ttl_ms": ttl_ms}} if ttl_ms and name != "stock" else {}
    config += (f"KeepAliveTimeout 7200\nMaxKeepAliveRequests 0\n<Directory {root}>\nAllowOverride {override}\n</Directory>\n"
               f"{network_mounts.manual_advice(root)}")
    return SERVERS[name](base, name, root, mpm=mpm, config=config, **settings)
