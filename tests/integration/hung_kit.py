# SPDX-License-Identifier: Apache-2.0
"""A mount that hangs under traffic, and the moment when the daemon puts it out of service."""

import contextlib
import random
import time

from fetch import Client
from waiting import Threads, wait_for

NAMES = [f"file{i}.txt" for i in range(5)]
HEAVY_THREADS = 4
SETTLED_S = 2.2                 # seconds; the daemon keeps no content of a younger file


class Traffic(Threads):
    """Asks for the files in turn, on connections of its own; (when, seconds, HTTP status) of each."""

    def __init__(self, port, tails, pause_s, threads):
        super().__init__(self._run, [()] * threads)
        self.port, self.tails, self.pause_s, self.seen = port, tails, pause_s, []

    def _run(self):
        number = random.randrange(len(self.tails))
        with Client(self.port, timeout=60) as client:
            while not self.over.is_set():
                begin = time.monotonic()
                status, _ = client.get("/" + self.tails[number % len(self.tails)], "traffic")
                end = time.monotonic()
                self.seen.append((begin, end - begin, status))
                number += 1
                self.over.wait(max(0, begin + self.pause_s - end))


def light(port, below="slow"):
    return Traffic(port, [f"{below}/{name}" for name in NAMES], 1, 1)


def heavy(port, below="slow"):
    return Traffic(port, [f"{below}/{name}" for name in NAMES], 0.002, HEAVY_THREADS)


class Try:
    """One hang under that traffic, before_s after its first answers. out_s: from the hang until the mount was out of
    service; None: it never was. slowest_s: the slowest answer about a known file. after: statuses and sources of
    answers once the mount was out of service, and after_s the slowest of them."""

    def __init__(self, world, traffic, before_s, patience_s=20):
        first = len(traffic.tails)
        out = None
        with traffic:
            wait_for(lambda: len(traffic.seen) >= first, "the first answers")
            time.sleep(before_s)
            hung = time.monotonic()
            world.mount.hang()
            with contextlib.suppress(TimeoutError):
                wait_for(lambda: world.stats()["out_of_service"] == 1, "the mount to go out of service", patience_s)
                out = time.monotonic()
            asked = len(traffic.seen)
            wait_for(lambda: len(traffic.seen) >= asked + 3, "more answers", 60)
        seen = [one for one in traffic.seen if one[0] + one[1] > hung]
        later = [one for one in seen if out is not None and one[0] > out]
        self.out_s = out - hung if out is not None else None
        self.unanswered = sum(one[2] != 200 for one in seen)
        self.slowest_s = max(one[1] for one in seen)
        self.after = {one[2] for one in later}
        self.after_s = max((one[1] for one in later), default=0)

    def __str__(self):
        out = f"{self.out_s:5.2f} s" if self.out_s is not None else "never  "
        return (f"out of service after {out}; slowest answer {self.slowest_s:5.2f} s, {self.unanswered} unanswered; "
                f"then slowest {self.after_s * 1e3:7.2f} ms")


def settle():
    time.sleep(SETTLED_S)
