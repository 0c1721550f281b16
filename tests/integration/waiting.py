# SPDX-License-Identifier: Apache-2.0
"""Waiting for events. Bounds are generous: they end a hang, they measure nothing."""

import time

STEP_S = 0.01
ATTEMPTS = 8


def wait_for(condition, what, timeout=20.0):
    """Call condition() until it is true; return its value, or raise naming `what`."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {timeout:g} s for {what}")
        time.sleep(STEP_S)


def until_good(work, good):
    """work()'s result, of another time where it is not good and the machine may have stalled; the last one if
    none is. Whether it is good is still to be asserted."""
    for _ in range(ATTEMPTS):
        result = work()
        if good(result):
            break
    return result
