#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the first touch of a page costs on this machine, in processor time of the thread.

  tests/lab/first_touch.py [MIB]

A virtual machine may get the page from its host only then. The wait counts as the thread's own processor time, so the
daemon's loop would take it for work (FP0090)."""

import mmap
import sys
import time

BUDGET_US = 5000        # FP_TURN_BUDGET_US of backend/common/turn.h
DEFAULT_MIB = 4096


def touch(mib):
    """(pages, of them over the budget of the daemon's loop, the longest in us). The memory is given back."""
    size = mib << 20
    over = longest = 0
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        before = time.thread_time_ns()
        for at in range(0, size, mmap.PAGESIZE):
            memory[at] = 1
            now = time.thread_time_ns()
            took = (now - before) // 1000
            before = now
            over += took > BUDGET_US
            longest = max(longest, took)
    return size // mmap.PAGESIZE, over, longest


def text(mib=DEFAULT_MIB):
    pages, over, longest = touch(mib)
    return f"{pages} pages touched for the first time: {over} took over {BUDGET_US / 1000:g} ms, the longest {longest / 1000:.1f} ms"


if __name__ == "__main__":
    print(text(*map(int, sys.argv[1:])))
