# SPDX-License-Identifier: Apache-2.0
"""Which system calls does a request cost? Counted by strace, sorted by what they are about."""

import contextlib
import re
import signal
import subprocess
import threading
from collections import Counter

KINDS = ("path", "file", "daemon", "network", "other")
PATH_CALLS = set("""stat lstat newfstatat statx open openat openat2 creat access faccessat
faccessat2 readlink readlinkat getdents64 name_to_handle_at""".split())
FILE_CALLS = {"mmap", "munmap", "sendfile", "copy_file_range", "splice"}
NETWORK_CALLS = {"accept", "accept4", "shutdown"}
# One line of strace -f -yy: who, what, and what its first descriptor is.
CALL = re.compile(r"^\d+\s+(\w+)\((?:\d+<(/|[A-Z]+)?)?")
# fstat is newfstatat(fd, "", ..., AT_EMPTY_PATH) in today's libc: a descriptor, not a path.
FSTAT = re.compile(r'^\d+\s+\w+\(\d+<[^>]*>, "",')


def kind_of(name, first, line):
    """One of KINDS."""
    if name in PATH_CALLS:
        return "file" if FSTAT.match(line) else "path"
    if name in NETWORK_CALLS or (first or "").startswith("TCP") and name not in FILE_CALLS:
        return "network"
    if name in FILE_CALLS:
        return "file" if name != "mmap" or "MAP_ANONYMOUS" not in line else "other"
    if (first or "").startswith("UNIX"):
        return "daemon"
    return "file" if first == "/" and name != "write" else "other"    # written is only the log


def _wait_until_attached(process, pids, said):
    waiting, attached = set(pids), threading.Event()

    def read():
        for line in process.stderr:
            said.append(line)
            found = re.search(r"Process (\d+) attached", line)
            waiting.discard(int(found.group(1)) if found else 0)
            if not waiting:
                attached.set()
        attached.set()
    threading.Thread(target=read, daemon=True).start()
    if not attached.wait(60) or process.poll() is not None:
        raise RuntimeError("strace did not attach: " + "".join(said[-5:]))


@contextlib.contextmanager
def tracing(pids, log):
    """All calls of these processes and their threads go to a file while this is open."""
    command = ["strace", "-f", "-yy", "-s", "16", "-e", "signal=none", "-o", str(log)]
    command += [word for pid in pids for word in ("-p", str(pid))]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        _wait_until_attached(process, pids, [])
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


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
    """{(kind, name): calls for each request}, from load(n) with two numbers of requests. What
    does not depend on their number, as connecting and attaching, falls out of the difference."""
    counts = []
    for number in (requests, 3 * requests):
        with tracing(pids, log):
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
