# SPDX-License-Identifier: Apache-2.0
"""The common part of the lab's programs: servers in pairs, loads, CPU time, medians."""

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "integration"))

import procs  # noqa: E402
from daemon import Flashpached  # noqa: E402
from httpd import Httpd  # noqa: E402

BUILD = Path(os.environ.get("FLASHPACHE_BUILD", REPO / "build")).resolve()
BENCH = BUILD / "tests/lab/flashpache-bench"
DAEMON = BUILD / "backend/flashpached"
CONTROL = BUILD / "backend/flashpachectl"
MODULE = BUILD / "mod_flashpache/.libs/mod_flashpache.so"
QUIET = Path("/mnt")
OUTSIDE = "FLASHPACHE_LAB_OUTSIDE"      # names the mount namespace from which the program came
SLOWFS = BUILD / "tests/lab/slowfs/slowfs"
NO_FILES = BUILD / "tests/lab/no_files/.libs/mod_no_files.so"


def say(text):
    """Prints progress; only tables go to standard output."""
    print(text, file=sys.stderr, flush=True)


def enter_own_mounts():
    """Starts this program once more, in a mount namespace of its own."""
    if os.readlink("/proc/self/ns/mnt") == os.environ.get(OUTSIDE, os.readlink("/proc/self/ns/mnt")):
        os.environ[OUTSIDE] = os.readlink("/proc/self/ns/mnt")
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])


def prepare():
    """Ends the program unless it can start servers here; raises the limit on descriptors."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))     # so that servers are stopped
    name = Path(sys.argv[0]).name
    if os.getuid() != 0:
        sys.exit(f"{name}: needs root: httpd and flashpached run as www-data")
    for program in (BENCH, DAEMON, MODULE):
        if not program.exists():
            sys.exit(f"{name}: {program} is not built: run make, or set FLASHPACHE_BUILD")
    enter_own_mounts()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextlib.contextmanager
def work_directory():
    """A directory that www-data can pass, with "out" for results; removed at the end.

    The daemon watches the directories on the way to documents. It gets an event for each line that a process
    writes to a file in one of them. That may be in TMPDIR, or a trace beside the documents. So the directory is mounted
    at /mnt, where no other process writes, and results lie one level deeper.
    """
    path = Path(tempfile.mkdtemp(prefix="flashpache-lab-"))
    path.chmod(0o755)
    subprocess.run(["mount", "--bind", path, QUIET], check=True)
    try:
        (QUIET / "out").mkdir()
        yield QUIET
    finally:
        subprocess.run(["umount", "-l", QUIET], check=True)
        shutil.rmtree(path)


@contextlib.contextmanager
def memory_directory(path):
    """A tmpfs."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def parser(doc, rounds, seconds, quick):
    """The options that all programs have; doc: the program's docstring, of which the first line counts."""
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    made.add_argument("--rounds", type=int, default=rounds)
    made.add_argument("--seconds", type=float, default=seconds, help="of each measurement")
    made.add_argument("--quick", action="store_true", help=quick)
    made.add_argument("--json", metavar="FILE")
    return made


@dataclass
class Server:
    """One server under measurement, with its daemon if it has one (a context manager)."""
    name: str
    front: object                  # the HTTP server: an Httpd, or an object that starts and stops alike
    daemon: object = None

    def __enter__(self):
        if self.daemon:
            self.daemon.start()
        self.front.start()
        return self

    def __exit__(self, *_):
        self.front.stop()
        if self.daemon:
            self.daemon.stop()

    @property
    def port(self):
        return self.front.port

    def pids(self):
        """All processes of it, the daemon and its workers included."""
        roots = [one.process.pid for one in (self.front, self.daemon) if one]
        return [pid for root in roots for pid in (root, *procs.descendants(root))]


def stock(base, name, root, label="stock", **options):
    return Server(label, Httpd(base, name, root, **options))


def flashpache(base, name, root, label="Flashpache", daemon_settings=(), **options):
    daemon = Flashpached(base, name + "-d", DAEMON, **dict(daemon_settings))
    httpd = Httpd(base, name, root, socket=daemon.socket, module=MODULE, **options)
    return Server(label, httpd, daemon)


def no_files(base, root):
    """Configuration of an httpd that has the files' sizes alone: the most that anything could gain."""
    sizes = base / "out" / f"sizes-{root.name}"
    files = (path for path in root.rglob("*") if path.is_file())
    sizes.write_text("".join(f"{path.stat().st_size} /{path.relative_to(root)}\n" for path in files))
    return f"LoadModule no_files_module {NO_FILES}\nNoFiles {sizes}\n"


def answers(port):
    """True if a server accepts connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def note_counts(httpd, mark):
    """{note of Flashpache: requests} in the access log after a mark."""
    with open(httpd.access_log, "rb") as log:
        log.seek(mark)
        return dict(Counter(line.split(b"\t")[1].decode() for line in log if line.count(b"\t") > 2))


def shares(counts):
    """Notes in percent, as text."""
    total = sum(counts.values()) or 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return " ".join(f"{name} {100 * number / total:.1f} %" for name, number in ordered)


def bench(port, base, *options):
    """Runs flashpache-bench: its results, with client_cpu_s, the processor time it took itself."""
    result = base / "out" / "result.json"
    command = [BENCH, "--port", port, "--json", result, *options]
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        complaints = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"flashpache-bench failed: {complaints}")
    return {**json.loads(result.read_text()), "client_cpu_s": usage.ru_utime + usage.ru_stime}


def _thread_spent(task):
    try:
        ns, _, turns = (task / "schedstat").read_text().split()
        return int(ns), int(turns)
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0


def cpu_spent(pids):
    """{thread: (processor time in ns, turns on a processor)} of these processes. /proc/PID/stat
    counts in 10 ms: too coarse where the work is spread over a hundred of them."""
    return {task: _thread_spent(task) for pid in pids for task in Path(f"/proc/{pid}/task").glob("*")}


def cpu_between(before, after):
    """(us, turns) between two looks. An ended thread has taken its own along."""
    spent = [[max(0, now - then) for now, then in zip(both, before.get(task, (0, 0)))]
             for task, both in after.items()]
    return sum(ns for ns, _ in spent) / 1e3, sum(turns for _, turns in spent)


def page_faults(pids):
    """{process: its page faults without a read}."""
    found = {}
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])
    return found


def measure(server, base, *options, warmup=0):
    """One load: requests/s, and the client's share of a processor. For each request the CPU of the servers in us,
    how often a thread of theirs was given a processor, and their page faults."""
    pids = server.pids()
    before, faults_before = cpu_spent(pids), page_faults(pids)
    start = time.monotonic()
    found = bench(server.port, base, *options, *(["--warmup", warmup] if warmup else []))
    elapsed = time.monotonic() - start
    pids = server.pids()
    spent_us, turns = cpu_between(before, cpu_spent(pids))
    faults = sum(n - faults_before.get(pid, 0) for pid, n in page_faults(pids).items())
    done = found["requests"] + warmup
    return {"requests": done, "rate": found["requests_per_s"], "cpu_us": spent_us / done, "turns": turns / done,
            "faults": faults / done, "client_share": found["client_cpu_s"] / elapsed,
            "latency_ms": found["latency_ms"], "errors": found["errors"]}


def summary(rounds, key):
    """Median and range of one figure over the rounds."""
    values = [one[key] for one in rounds]
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def write_json(file, content):
    if file:
        Path(file).write_text(json.dumps(content, indent=1) + "\n")


def print_table(head, rows):
    """Columns as wide as they need; the first is to the left, numbers to the right."""
    texts = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(head))]
    for row in texts:
        cells = [cell.ljust(w) if i == 0 else cell.rjust(w)
                 for i, (cell, w) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())
