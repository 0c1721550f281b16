# SPDX-License-Identifier: Apache-2.0
"""Waiting for events. Bounds are generous: they end a hang, they measure nothing."""

import time

STEP_S = 0.01


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
