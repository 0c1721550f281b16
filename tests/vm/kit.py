# SPDX-License-Identifier: Apache-2.0
"""What the measurements of tests/vm share: files, and a stock httpd or one with Flashpache."""

import os
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests/integration"))

import mount_namespace  # noqa: E402
import network_mounts  # noqa: E402
from daemon import Flashpached  # noqa: E402
from httpd import Httpd  # noqa: E402

BUILD = Path(os.environ["FLASHPACHE_BUILD"])
SERVERS = ("stock", "flashpache")
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


class Server:
    """One of SERVERS on the documents (a context manager)."""

    def __init__(self, name, base, root, mpm="event", override="None"):
        config = (f"KeepAliveTimeout 7200\nMaxKeepAliveRequests 0\n<Directory {root}>\nAllowOverride {override}\n</Directory>\n"
                  f"{network_mounts.manual_advice(root)}")
        self.daemon = None
        if name == "stock":
            self.httpd = Httpd(base, name, root, mpm=mpm, config=config)
        else:
            self.daemon = Flashpached(base, f"{name}-daemon", BUILD / "backend/flashpached")
            self.httpd = Httpd(base, name, root, mpm=mpm, config=config, socket=self.daemon.socket,
                               module=BUILD / "mod_flashpache/.libs/mod_flashpache.so")

    def __enter__(self):
        if self.daemon:
            self.daemon.start()
        self.httpd.start()
        return self

    def __exit__(self, *_):
        self.httpd.stop()
        if self.daemon:
            self.daemon.stop()
