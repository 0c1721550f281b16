# SPDX-License-Identifier: Apache-2.0
"""What the measurements of tests/vm share: files, a stock httpd or one with Flashpache, a delay to the NFS server, and its operations."""

import contextlib
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "tests/integration"), str(REPO / "tests/lab")]

import lab_kit  # noqa: E402
import mount_namespace  # noqa: E402
import network_mounts  # noqa: E402

SERVERS = {"stock": lab_kit.stock, "flashpache": lab_kit.flashpache}
A_DIRECTORY = 100       # files in each
LONG_AGO = 1_500_000_000
NFS_PORT = 2049
NFS_OPERATION = re.compile(r"^\s+(\w+): (\d+)", re.M)


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


def _tc(*arguments):
    subprocess.run(["tc", *map(str, arguments)], check=True)


@contextlib.contextmanager
def delayed(ms):
    """Packets to the file server, on loopback, and no others."""
    subprocess.run(["modprobe", "-a", "sch_prio", "sch_netem", "cls_u32"], check=True)
    _tc("qdisc", "add", "dev", "lo", "root", "handle", "1:", "prio", "priomap", *[0] * 16)
    try:
        _tc("qdisc", "add", "dev", "lo", "parent", "1:3", "netem", "delay", f"{ms}ms", "limit", 100_000)
        _tc("filter", "add", "dev", "lo", "parent", "1:", "protocol", "ip", "u32", "match", "ip", "dport", NFS_PORT, "0xffff",
            "flowid", "1:3")
        yield
    finally:
        _tc("qdisc", "del", "dev", "lo", "root")


def nfs_operations(at):
    text = Path("/proc/self/mountstats").read_text()
    part = next(each for each in text.split("\ndevice ") if f"mounted on {at} with" in each)
    return Counter({name: int(number) for name, number in NFS_OPERATION.findall(part.split("per-op statistics")[1])})
