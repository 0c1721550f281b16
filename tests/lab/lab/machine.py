# SPDX-License-Identifier: Apache-2.0
"""This machine: its description for the report, and the owners of its processors."""

import ctypes
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

UNIT_DESCRIPTORS = 1 << 20     # LimitNOFILE= of conf/systemd/flashpached.service.in
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x00020000, 0x4000, 1 << 18
VERSIONS = {"Apache": ("apache2", "-v"), "nginx": ("nginx", "-v"), "lighttpd": ("lighttpd", "-v")}


def first_line(*command):
    """The first line that a command prints, or None if it is not installed."""
    program = shutil.which(command[0])
    if not program:
        return None
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=30)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else ""


def processor():
    found = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return found.group(1) if found else platform.machine()


def system():
    text = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    found = re.search(r'PRETTY_NAME="([^"]*)"', text)
    return found.group(1) if found else "unknown"


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def describe():
    """{fact: text} for the report."""
    versions = {name: first_line(*command) for name, command in VERSIONS.items()}
    congestion = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    return {"processor": f"{os.cpu_count()} x {processor()}",
            "memory": f"{memory_bytes() >> 20} MiB",
            "system": f"{system()}, kernel {platform.release()}",
            "descriptors a process may have": str(descriptor_limit()),
            "TCP congestion control": congestion,
            "command": " ".join(sys.argv),
            **{name: version or "not installed" for name, version in versions.items()}}


def descriptor_limit():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def raise_descriptor_limit():
    """Sets the limit of the daemon's unit, for every server, where that is allowed."""
    limit = max(descriptor_limit(), min(UNIT_DESCRIPTORS, int(Path("/proc/sys/fs/nr_open").read_text())))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    except (OSError, ValueError):       # only root may have more than the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptor_limit(), descriptor_limit()))


def own_mounts():
    """From here on what this process mounts is its own and its children's. Otherwise any process of the machine that gets
    mounts of its own would keep a copy, and with it the device."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "no mounts of its own; run it outside of the container")


def server_processors():
    """Half of the processors are the servers'; load and remote file servers have the others."""
    ours = sorted(os.sched_getaffinity(0))
    return set(ours[:max(1, len(ours) // 2)])


def other_processors():
    ours = os.sched_getaffinity(0)
    return ours - server_processors() or ours


def on_processors(which):
    """Prefix for a command that is to run on these processors only."""
    return ["taskset", "-c", ",".join(str(n) for n in sorted(which))]
