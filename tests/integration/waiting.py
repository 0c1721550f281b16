# SPDX-License-Identifier: Apache-2.0
"""Waiting for events. Bounds are generous: they end a hang, they measure nothing."""

import signal
import threading
import time

FIRST_S, LONGEST_S = 0.005, 0.05        # between two looks: a look may cost the start of a program
ATTEMPTS = 8


def wait_for(condition, what, timeout=60.0):
    """Call condition() until it is true; return its value, or raise naming `what`."""
    end = time.monotonic() + timeout
    step = FIRST_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {timeout:g} s for {what}")
        time.sleep(step)
        step = min(1.5 * step, LONGEST_S)


def restart(server):
    """SIGHUP, and wait until the new generation is up."""
    before = server.error_text().count("resuming normal operations")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: server.error_text().count("resuming normal operations") > before, "the restart")


def until_good(work, good):
    """work()'s result, repeated where it is not good and the machine may have stalled; the last one if none is. The
    caller still asserts that it is good."""
    for _ in range(ATTEMPTS):
        result = work()
        if good(result):
            break
    return result


class Threads:
    """with Threads(target, arguments): each tuple's call in a thread of its own, behind it the event `over` if the
    target takes that. Behind the block `over` is set, all have ended, and an error of any is raised."""

    def __init__(self, target, arguments, until_over=False):
        self.over = threading.Event()
        self.raised = []
        more = (self.over,) if until_over else ()
        self.threads = [threading.Thread(target=self.run, args=(target, (*each, *more))) for each in arguments]

    def run(self, target, arguments):
        try:
            target(*arguments)
        except Exception as problem:
            self.raised.append(problem)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        if self.raised:
            raise self.raised[0]
