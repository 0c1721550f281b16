# SPDX-License-Identifier: Apache-2.0
"""Faults at random moments while the soak runs: of the daemon, its workers, httpd, and of limits."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter

import procs
from httpd import USER

PAUSE_S = (0.1, 1.5)        # between two faults
LASTS_S = (0.05, 1.5)
FEW_DESCRIPTORS = (20, 200)  # the range of the most descriptors that the daemon may open


def limit_of(pid):
    """The most descriptors of a process."""
    with open(f"/proc/{pid}/limits") as limits:
        return next(int(line.split()[3]) for line in limits if line.startswith("Max open files"))


def hit(pid, number):
    """A signal, unless an earlier fault has ended the process by now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class Faults:
    """step() makes a fault whenever its time has come; each has ended when step() returns."""

    KINDS = ("killed", "stopped", "restarted", "reloaded", "workers_killed", "worker_stopped", "spawner_killed",
             "graceful", "purged", "purged_tree", "few_descriptors")

    def __init__(self, server, flashpachectl, root, seed):
        self.server, self.daemon, self.root = server, server.daemon, root
        self.tool, self.random = flashpachectl, random.Random(seed)
        self.made = Counter()
        self.next = time.monotonic() + self.random.uniform(*PAUSE_S)

    def step(self):
        if time.monotonic() < self.next:
            return
        kind = self.random.choice(self.KINDS)
        getattr(self, kind)()
        self.made[kind] += 1
        self.next = time.monotonic() + self.random.uniform(*PAUSE_S)

    def last(self):
        time.sleep(self.random.uniform(*LASTS_S))

    def killed(self):
        self.daemon.kill()
        self.last()
        self.daemon.start()

    def stopped(self):
        self.daemon.signal(signal.SIGSTOP)
        self.last()
        self.daemon.signal(signal.SIGCONT)

    def restarted(self):
        self.daemon.restart()

    def reloaded(self):
        self.daemon.signal(signal.SIGHUP)

    def workers_killed(self):
        workers = self.daemon.worker_pids()
        for pid in self.random.sample(workers, self.random.randint(0, len(workers))):
            hit(pid, signal.SIGKILL)

    def worker_stopped(self):
        """The daemon kills it after lookup_timeout_ms."""
        workers = self.daemon.worker_pids()
        if workers:
            hit(self.random.choice(workers), signal.SIGSTOP)

    def spawner_killed(self):
        for pid, comm in procs.descendants(self.daemon.pid).items():
            if comm == "fp-spawner":
                hit(pid, signal.SIGKILL)

    def graceful(self):
        self.server.graceful()

    def purged(self):
        self.purge("--all")

    def purged_tree(self):
        self.purge("--tree", self.random.choice(sorted(p for p in self.root.iterdir() if p.is_dir())))

    def purge(self, *what):
        done = self.tool("-s", self.daemon.socket, "purge", *what)
        assert done.returncode == 0, done.stderr

    def few_descriptors(self):
        before = limit_of(self.daemon.pid)
        self.limit(self.random.randint(*FEW_DESCRIPTORS))
        self.last()
        self.limit(before)

    def limit(self, descriptors):
        """As its own user: root without CAP_SYS_RESOURCE may not."""
        subprocess.run(["prlimit", f"--pid={self.daemon.pid}", f"--nofile={descriptors}:"], user=USER, group=USER,
                       check=True)
