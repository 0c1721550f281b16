# SPDX-License-Identifier: Apache-2.0
"""The activity of a server's processes, sampled from /proc and counted by perf."""

import os
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

from lab import Impossible

OWN_MEMORY = re.compile(r"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
FRAME = re.compile(r"\] ([\w.]+)\+")
# The meaning of each frame, in the order of a search from a stack's top.
WAITS = {"d_alloc_parallel": "another's lookup (d_alloc_parallel)",
         "request_wait_answer": "the FUSE server",
         "rwsem_down": "a directory's lock", "folio_wait_bit": "data of a file",
         "__wait_on_buffer": "metadata on disk", "wait_on_bit_io": "metadata on disk",
         "bit_wait": "metadata on disk",
         "skb_wait_for_more_packets": "the daemon", "unix_stream_read": "the daemon"}


def tasks(pids):
    """(pid, tid) of every thread."""
    for pid in pids:
        try:
            yield from ((pid, int(tid)) for tid in os.listdir(f"/proc/{pid}/task"))
        except FileNotFoundError:
            continue


def read(pid, tid, name):
    try:
        return Path(f"/proc/{pid}/task/{tid}/{name}").read_text()
    except OSError:
        return ""


def cpu_seconds(pids):
    """Time on a processor of all threads, exact to the nanosecond."""
    total = 0
    for pid, tid in tasks(pids):
        fields = read(pid, tid, "schedstat").split()
        total += int(fields[0]) if fields else 0
    return total / 1e9


def memory_bytes(pids):
    """The processes' own memory, with shared memory counted once, without the page cache."""
    total = 0
    for pid in pids:
        text = read(pid, pid, "../../smaps_rollup")
        total += sum(int(kib) for kib in OWN_MEMORY.findall(text))
    return total << 10


def machine_cpu_seconds():
    """Time that all processors were busy."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def state(pid, tid):
    text = read(pid, tid, "stat")
    return text[text.rindex(")") + 2] if text else ""


def runnable(pids):
    """(runnable threads, threads) at this moment."""
    states = [state(*task) for task in tasks(pids)]
    return states.count("R"), len(states)


def wait_of(stack):
    """A sleeping thread's wait, among those that matter here; None for any other."""
    for frame in FRAME.findall(stack):
        for name, meaning in WAITS.items():
            if frame.startswith(name):
                return meaning
    return None


def waits(pids):
    """{wait: number of threads}, at this moment."""
    found = Counter(wait_of(read(pid, tid, "stack")) for pid, tid in tasks(pids))
    found.pop(None, None)
    return found


def fullest_stack(pids, meaning):
    """The most frequent stack among the threads with this wait: (number of threads, its functions)."""
    stacks = (read(pid, tid, "stack") for pid, tid in tasks(pids))
    same = Counter(tuple(FRAME.findall(stack)) for stack in stacks if wait_of(stack) == meaning)
    return same.most_common(1)[0][::-1] if same else (0, ())


class Sampler(threading.Thread):
    """Calls look() every so often until stop(); .seen has its results."""

    def __init__(self, look, interval=0.05):
        super().__init__(daemon=True)
        self.look, self.interval = look, interval
        self.seen, self.ended = [], threading.Event()

    def run(self):
        while not self.ended.wait(self.interval):
            self.seen.append(self.look())

    def stop(self):
        self.ended.set()
        self.join()
        return self.seen


def system_calls(pids, seconds):
    """The number of the processes' system calls in so many seconds, by perf's tracepoint."""
    if not shutil.which("perf"):
        raise Impossible("counting system calls needs perf (package linux-perf)")
    command = ["perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter",
               "-p", ",".join(map(str, pids)), "sleep", str(seconds)]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"^(\d+),,raw_syscalls:sys_enter", done.stderr, re.MULTILINE)
    if not found:
        raise Impossible("perf counted nothing: " + done.stderr.strip()[-200:])
    return int(found.group(1)), time.monotonic() - began


SLOW_CALL = re.compile(r"^(?:\[pid +\d+\] )?(?:<\.\.\. )?(\w+)(?:\(| resumed>).*<(\d+\.\d+)>$")
TRACED_CALLS = "newfstatat,statx,openat,openat2,open,stat,lstat,writev,sendfile,read,pread64,recvmsg"
TRACED_WORKERS = 24
SLOW_S = 0.001


def slow_calls(pids, seconds):
    """{call: [how many, over a millisecond, slowest in ms]} of some of the processes, by strace."""
    if not shutil.which("strace"):
        raise Impossible("tracing needs strace")
    command = ["timeout", "-s", "INT", str(seconds), "strace", "-f", "-T", "-e", f"trace={TRACED_CALLS}",
               "-e", "signal=none"]
    # The parent of all serves no requests; the daemon and its workers are the last ones.
    for pid in [*pids[1:TRACED_WORKERS], *pids[TRACED_WORKERS:][-TRACED_WORKERS:]]:
        command += ["-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    found = {}
    for name, took in (match.groups() for match in map(SLOW_CALL.search, done.stderr.splitlines()) if match):
        row = found.setdefault(name, [0, 0, 0.0])
        row[0] += 1
        row[1] += float(took) > SLOW_S
        row[2] = max(row[2], float(took) * 1e3)
    return found
