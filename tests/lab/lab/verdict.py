# SPDX-License-Identifier: Apache-2.0
"""Flashpache's effect on a site, in sentences: no more than the numbers show."""

from lab import metrics
from lab.page import number

# A difference below this is called little even if it exceeds the noise.
LITTLE = 0.1
NOISE = "no difference beyond the noise"
QUESTIONS = (("requests per second at most", "capacity", ("requests_per_s",), False),
             ("processor time per request", "capacity", ("cpu_us",), True),
             ("mean latency at the same load", "latency=equal", ("ms", "mean"), True),
             ("99th percentile at the same load", "latency=equal", ("ms", "p99"), True))


def judge(better):
    """A word for a ratio that is above 1 where Flashpache is better."""
    if better.least <= 1 <= better.most:
        return NOISE
    if abs(better.median - 1) < LITTLE:
        return "little"
    return "better" if better.median > 1 else "WORSE"


def of(found, experiment, stock, flash):
    """[(question, stock's Spread, Flashpache's, how many times better, word)]"""
    rows = []
    for question, step, path, less_is_better in QUESTIONS:
        ours, theirs = (found.values(experiment, key, step, *path) for key in (flash, stock))
        if not ours or not theirs:
            continue
        better = metrics.ratio(theirs, ours) if less_is_better else metrics.ratio(ours, theirs)
        if better:
            rows.append((question, metrics.spread(theirs), metrics.spread(ours), better, judge(better)))
    return rows


def text(rows):
    lines = [f"{'':36}{'stock':>12}{'Flashpache':>12}{'better by':>12}   (range)"]
    for question, theirs, ours, better, word in rows:
        lines.append(f"{question:36}{number(theirs.median):>12}{number(ours.median):>12}{number(better.median):>12}"
                     f"   ({number(better.least)} to {number(better.most)}): {word}")
    return "\n".join(lines)


def sentence(rows, kind="this site"):
    """The meaning of the rows for requests of a kind."""
    words = [row[4] for row in rows]
    if "WORSE" in words:
        return (f"For {kind} on this file system Flashpache makes something worse: see the lines above, and keep "
                "it off unless the others matter more.")
    if "better" not in words:
        return f"For {kind} on this file system Flashpache would do little."
    best = max((row for row in rows if row[4] == "better"), key=lambda row: row[3].median)
    return f"For {kind} on this file system: {best[0]}, better by a factor of {number(best[3].median)}."
