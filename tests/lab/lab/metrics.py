# SPDX-License-Identifier: Apache-2.0
"""Figures computed from latencies and sizes. Pure functions.

The service inversion, the four series of sizes and the decile breakdown are those of Ruan and Pai, section 4: "The
Origins of Network Server Latency".
"""

import itertools
import math
import statistics
from collections import namedtuple

PERCENTILES = (5, 50, 90, 95, 99, 99.9)
# Table 3 of the paper: upper bounds in bytes of the first three of four series. They are asked for about
# equally often (25.06, 28.05, 23.55, 23.34 %).
SERIES_BOUNDS = (550, 4_500, 6_500)
SERIES_NAMES = ("to 0.5 KB", "0.6 to 4 KB", "5 to 6 KB", "from 7 KB")

Spread = namedtuple("Spread", "median least most")


def percentile(ordered, percent):
    """The smallest value that at least so many percent of the values do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def latency_summary(latencies):
    """{"mean": ..., "p50": ...} in the unit of the latencies."""
    ordered = sorted(latencies)
    found = {f"p{p:g}": percentile(ordered, p) for p in PERCENTILES}
    return {"mean": statistics.fmean(ordered), **found, "max": ordered[-1]}


def cdf(latencies, points=200):
    """[(latency, share of the values up to it)], at even shares; the far tail in fine steps."""
    ordered = sorted(latencies)
    shares = [i / points for i in range(1, points)] + [0.999, 0.9999, 1.0]
    return [(percentile(ordered, share * 100), share) for share in shares]


def inversion(sizes, latencies):
    """0 if the responses came in the order of their sizes, 1 if in the reverse order.

    The sum of the distances of each response's place by latency from its place by size, divided by
    that of the reverse order, floor(n^2 / 2). Of responses of one size the N-th by latency belongs
    in the N-th place of that size, which a sort by (size, latency) gives.
    """
    count = len(sizes)
    if count < 2:
        return 0.0
    by_latency = sorted(range(count), key=lambda i: (latencies[i], sizes[i]))
    place = {response: observed for observed, response in enumerate(by_latency)}
    by_size = sorted(range(count), key=lambda i: (sizes[i], place[i]))
    moved = sum(abs(place[response] - ideal) for ideal, response in enumerate(by_size))
    return moved / (count * count // 2)


def series_of(size):
    """0 to 3: the series of a response of so many bytes."""
    return sum(size > bound for bound in SERIES_BOUNDS)


def deciles(sizes, latencies):
    """Ten rows, the fastest tenth first: the share of each series in it."""
    order = sorted(range(len(sizes)), key=lambda i: latencies[i])
    rows = []
    for tenth in range(10):
        part = order[len(order) * tenth // 10:len(order) * (tenth + 1) // 10]
        counts = [0] * 4
        for response in part:
            counts[series_of(sizes[response])] += 1
        rows.append([count / max(1, len(part)) for count in counts])
    return rows


def ready_events(before, after):
    """The distribution of the ready events of a turn, between two readings of {ready events: turns}; {} without turns."""
    counts = {ready: after[ready] - before.get(ready, 0) for ready in sorted(after)}
    turns = sum(counts.values())
    if not turns:
        return {}
    shares = list(itertools.accumulate(count / turns for count in counts.values()))
    cdf = [(ready, share) for ready, share, count in zip(counts, shares, counts.values()) if count]
    return {"turns": turns, "mean": sum(ready * count for ready, count in counts.items()) / turns,
            "p50": next(ready for ready, share in cdf if share >= 0.5), "max": cdf[-1][0], "cdf": cdf}


def spread(values):
    """Median and range of repetitions."""
    return Spread(statistics.median(values), min(values), max(values))


def ratio(first, second):
    """Spread of first / second, each a list of repetitions: the range is the widest they allow."""
    top, bottom = spread(first), spread(second)
    if not bottom.least:
        return None
    return Spread(top.median / bottom.median, top.least / bottom.most, top.most / bottom.least)
