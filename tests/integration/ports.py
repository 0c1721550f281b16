# SPDX-License-Identifier: Apache-2.0
"""Ports that stay free: each process of the tests takes them from a range of its own.

The kernel gives ports of ip_local_port_range to every process that connects or binds port 0, so the ranges lie
outside it. A range belongs to the process that has bound its first port. The kernel frees that port when the
process ends, and keeps it apart for each network namespace, as it does with ports.
"""

import itertools
import socket
from pathlib import Path

SIZE = 128              # a test module starts at most a few dozen servers, and ends them
FIRST, END = 10240, 65536       # below lie the ports of known services
LOCAL = Path("/proc/sys/net/ipv4/ip_local_port_range")

guard = None            # the socket that reserves the range
numbers = None          # the range's ports, over and over


def _ranges():
    """First ports of the ranges outside the kernel's own; of all ranges where the kernel uses everything."""
    low, high = map(int, LOCAL.read_text().split())
    outside = [*range(FIRST, low - SIZE + 1, SIZE), *range(max(high + 1, FIRST), END - SIZE + 1, SIZE)]
    return outside or list(range(FIRST, END - SIZE + 1, SIZE))


def _take_range():
    for first in _ranges():
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", first))
        except OSError:
            holder.close()
            continue
        return holder, itertools.cycle(range(first + 1, first + SIZE))
    raise RuntimeError(f"no {SIZE} ports in a row are free above {FIRST}: end what listens there")


def _is_free(port):
    """True if a server could listen on the port now; connections that ended a moment ago hinder none."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port():
    global guard, numbers
    if guard is None:
        guard, numbers = _take_range()
    for port in itertools.islice(numbers, SIZE):
        if _is_free(port):
            return port
    raise RuntimeError(f"all ports of {guard.getsockname()[1]} to {guard.getsockname()[1] + SIZE - 1} are in use")
