# SPDX-License-Identifier: Apache-2.0
"""Leaves the machine's network and its sockets: from then on this process and those that it starts reach neither."""

import ctypes
import fcntl
import os
import socket
import stat
import struct
from pathlib import Path

from lab import Impossible

CLONE_NEWNS, CLONE_NEWNET, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x40000000, 0x1000, 0x4000, 0x40000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
SOCKETS = Path("/run")          # where programs have their sockets; they make new ones there at any time
LIBC = ctypes.CDLL(None, use_errno=True)


def leave(kept):
    """kept: paths that stay to be seen. A new network has a loopback alone, and no abstract socket of the machine. A
    new table of mounts has an empty directory in place of /run, and a device in place of each other socket."""
    known = sockets()
    if LIBC.unshare(CLONE_NEWNET | CLONE_NEWNS) == -1:
        raise Impossible(f"no network of its own ({os.strerror(ctypes.get_errno())}): without one the site's own servers "
                         "could be reached; run this outside of the container")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    empty(SOCKETS, [Path(path).resolve() for path in kept])
    for path in known:
        hide(path)


def sockets():
    """The paths that sockets are bound to, in each network of the machine: a container may share a directory."""
    found, networks = set(), set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            network = os.stat(f"/proc/{process}/ns/net").st_ino
            if network not in networks:
                found |= set(paths_in(Path(f"/proc/{process}/net/unix").read_text(errors="surrogateescape")))
                networks.add(network)
        except OSError:
            continue            # it has ended
    return sorted(found)


def paths_in(table):
    """The paths in the text of /proc/net/unix."""
    rows = (line.split(None, 7) for line in table.splitlines()[1:])
    return (row[7] for row in rows if len(row) == 8 and row[7].startswith("/"))


def empty(place, kept):
    """An empty directory in its place, or in those of its directories where that would hide something kept."""
    if place in kept or not place.is_dir():
        return
    if not any(place in path.parents for path in kept):
        mount("tmpfs", place, kind="tmpfs")
        return
    for entry in sorted(place.iterdir()):
        if not entry.is_symlink():
            empty(entry, kept)


def hide(path):
    """Nobody can connect to a device."""
    try:
        found = stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return              # it is gone, or below a directory of another table of mounts
    if found:
        mount("/dev/null", path, flags=MS_BIND)


def mount(source, target, kind=None, flags=0):
    if LIBC.mount(os.fsencode(source), os.fsencode(target), kind and kind.encode(), flags, None) == -1:
        raise Impossible(f"{target} cannot be hidden: {os.strerror(ctypes.get_errno())}")
