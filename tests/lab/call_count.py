# SPDX-License-Identifier: Apache-2.0
"""The system calls of a request, counted by strace, sorted by their objects."""

import re
from collections import Counter

import lab_kit  # noqa: F401 (the way to the next one)
from trace import REOPEN, Trace

KINDS = ("path", "file", "daemon", "network", "other")
PATH_CALLS = set("""stat lstat newfstatat statx open openat openat2 creat access faccessat
faccessat2 readlink readlinkat getdents64 name_to_handle_at""".split())
FILE_CALLS = {"mmap", "munmap", "sendfile", "copy_file_range", "splice"}
NETWORK_CALLS = {"accept", "accept4", "shutdown"}
# One line of strace -f -yy: the process, the call, and the target of its first descriptor.
CALL = re.compile(r"^\d+\s+(\w+)\((?:\d+<(/|[A-Z]+)?)?")
# fstat is newfstatat(fd, "", ..., AT_EMPTY_PATH) in today's libc: a descriptor, not a path.
# A removed file's name has "(deleted)" behind it, and a process may look at the name of its own descriptor.
FSTAT = re.compile(r'^\d+\s+\w+\((\d+<[^>]*>(\(deleted\))?, "",|"/proc/self/fd)')


def kind_of(name, first, line):
    """One of KINDS."""
    if name in PATH_CALLS:
        return "file" if FSTAT.match(line) or REOPEN.search(line) else "path"
    if name in NETWORK_CALLS or (first or "").startswith("TCP") and name not in FILE_CALLS:
        return "network"
    if name in FILE_CALLS:
        return "file" if name != "mmap" or "MAP_ANONYMOUS" not in line else "other"
    if (first or "").startswith("UNIX"):
        return "daemon"
    return "file" if first == "/" and name != "write" else "other"    # only the log is written


def count(log):
    """{(kind, name): calls} of a trace. A call in two pieces is counted at its begin."""
    found = Counter()
    with open(log, errors="replace") as lines:
        for line in lines:
            match = CALL.match(line)
            if match:
                found[(kind_of(match[1], match[2], line), match[1])] += 1
    return found


def per_request(pids, log, load, requests):
    """{(kind, name): calls for each request}, from load(n) with two numbers of requests. The difference removes calls
    that do not depend on their number, as connecting and attaching."""
    counts = []
    for number in (requests, 3 * requests):
        with Trace(pids, log, detail=("-yy", "-s", "16")):
            load(number)
        counts.append(count(log))
    few, many = counts
    rates = {key: (many[key] - few[key]) / (2 * requests) for key in {**few, **many}}
    return {key: rate for key, rate in rates.items() if abs(rate) >= 0.005}


def by_kind(calls):
    """{kind: calls for each request}"""
    return {kind: sum(rate for (k, _), rate in calls.items() if k == kind) for kind in KINDS}


def names(calls):
    """Calls with their names, most frequent first, as text."""
    ordered = sorted(calls.items(), key=lambda item: -item[1])
    return " ".join(f"{name}:{rate:.2f}".rstrip("0").rstrip(".") for (_, name), rate in ordered
                    if rate >= 0.05)
