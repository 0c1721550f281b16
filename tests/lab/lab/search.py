# SPDX-License-Identifier: Apache-2.0
"""Which load to measure next: many where a latency curve bends, few where it is flat. Pure functions."""

import math

# Neighbours whose means differ by less than this factor have a flat curve between them.
FLAT = 1.3
# A curve has its knee where the mean has grown to so many times that of the least load.
KNEE = 2.0


def between(loads, low, high):
    return [load for load in loads if low < load < high]


def next_load(loads, measured, most):
    """The load to measure next, or None if the curve is known.

    loads: those to choose from, ascending. measured: {load: mean latency, or None if nothing was answered}; most: the
    number of loads at which the search ends in any case. The ends come first, then the middle of the steepest step.
    """
    for end in (loads[0], loads[-1]):
        if end not in measured:
            return end
    if len(measured) >= most:
        return None
    known = sorted(load for load in measured if measured[load])
    steps = [(abs(math.log(measured[high] / measured[low])), between(loads, low, high))
             for low, high in zip(known, known[1:])]
    steep = [(rise, inside) for rise, inside in steps
             if rise > math.log(FLAT) and any(load not in measured for load in inside)]
    if not steep:
        return None
    _, inside = max(steep, key=lambda step: step[0])
    fresh = [load for load in inside if load not in measured]
    return fresh[(len(fresh) - 1) // 2]


def knee(measured):
    """The least load at which the mean is KNEE times that of the first one; None if it never is."""
    known = sorted(load for load in measured if measured[load])
    return next((load for load in known if measured[load] >= KNEE * measured[known[0]]), None)
