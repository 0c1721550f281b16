# SPDX-License-Identifier: Apache-2.0
"""The page "What we found": sentences whose numbers are the figures', sorted by what the numbers say."""

import json
import math
from collections import namedtuple

from lab import metrics, papers, samples
from lab.markdown import PAPERS, number, ranged

# Each round of a comparison must differ by so much; one round alone, whose noise is not known, by more.
LITTLE, LITTLE_OF_ONE = 1.1, 1.5
CONVOY = samples.WAITS["d_alloc_parallel"]
Claim = namedtuple("Claim", "experiment servers what better rounds")
EXPERIMENTS = {
    "memory": "21,600 files of 3 GB in memory, 1,024 connections",
    "contention": "names made and removed beside what is read in memory",
    "slowfs": "2 ms for each look at a name, 1,024 connections",
    "slowfs-kept": "as `slowfs`, and the kernel keeps names for a second",
    "network": "sshfs", "link": "an uplink of 100 Mbit/s",
    "disk": "a disk of 150 reads/s, the set three times the memory",
    "metadata": "201,600 files, whose names and inodes are on a disk of 150 reads/s"}
# (what, step, path, whether less is better)
QUESTIONS = (("requests/s", "capacity", ("requests_per_s",), False),
             ("CPU of a request", "capacity", ("cpu_us",), True),
             ("mean latency at 0.95 of the own capacity", "latency@0.95", ("ms", "mean"), True),
             ("its 90th percentile", "latency@0.95", ("ms", "p90"), True),
             ("mean latency at the same rate", "latency=equal", ("ms", "mean"), True))


def factors(found, experiment, pair, step, path, less_is_better):
    """How many times better the second of the pair is, for each round that both have."""
    theirs, ours = ({n: follow(each, path) for n, each in found.store.by_round(experiment, key, step).items()} for key in pair)
    return [theirs[n] / ours[n] if less_is_better else ours[n] / theirs[n] for n in ours if ours[n] and theirs.get(n)]


def follow(value, path):
    for name in path:
        value = (value or {}).get(name)
    return value


def pairs(found, experiment):
    servers = found.servers(experiment)
    return [(key, key.replace("stock-", "flash-")) for key in servers
            if key.startswith("stock-") and key.replace("stock-", "flash-") in servers]


def claims(found):
    """Every comparison of Flashpache with stock httpd."""
    for experiment in EXPERIMENTS:
        for pair in pairs(found, experiment):
            for what, step, path, less_is_better in QUESTIONS:
                ratios = factors(found, experiment, pair, step, path, less_is_better)
                if ratios:
                    mpm, override = pair[0].split("-")[1:3]
                    yield Claim(experiment, f"{mpm}, `AllowOverride {override}`", what, metrics.spread(ratios), len(ratios))


def verdict(claim):
    """helps, loses or even."""
    little = LITTLE if claim.rounds > 1 else LITTLE_OF_ONE
    if claim.better.least > little:
        return "helps"
    return "loses" if claim.better.most < 1 / little else "even"


def claim_lines(found, word):
    """A line for each place of which this holds, with all of its numbers; the largest first."""
    places = {}
    for claim in claims(found):
        if verdict(claim) == word:
            places.setdefault((claim.experiment, claim.servers), []).append(claim)
    ordered = sorted(places.items(), key=lambda place: -max(abs(math.log(claim.better.median)) for claim in place[1]))
    return "".join(f"- `{experiment}` ({EXPERIMENTS[experiment]}), {servers}: {', '.join(map(said, chosen))}.\n"
                   for (experiment, servers), chosen in ordered)


def said(claim):
    return f"{claim.what} {ranged(claim.better)}" + ("" if claim.rounds > 1 else ", one round")


# New since the papers

def convoy(found):
    """Threads of stock httpd that wait for one lookup of a missing .htaccess."""
    stock, flash = (found.spread("slowfs", f"{who}-event-All", "sleepers", "most", CONVOY) for who in ("stock", "flash"))
    threads = found.spread("slowfs", "stock-event-All", "sleepers", "threads")
    if not stock or not threads:
        return ""
    ours = number(flash.median if flash else 0)
    return ("- **The convoy on missing `.htaccess` files.** Where the kernel keeps no absent names, one thread looks and all others "
            f"wait in `d_alloc_parallel`. On `slowfs` {number(stock.median)} of {number(threads.median)} threads of stock httpd were "
            f"there at one moment, and {ours} of Flashpache's. The papers found the same in FreeBSD's vnode lock.\n")


def local_disk(found):
    """The papers' main result, today."""
    theirs = papers.factors()
    pair = ("stock-prefork-None", "flash-prefork-None")
    ours = {where: factors(found, where, pair, "latency@0.95", ("ms", "mean"), True) for where in ("disk", "metadata")}
    if not all(ours.values()):
        return ""
    disk, metadata = (ranged(metrics.spread(ours[where])) for where in ("disk", "metadata"))
    return ("- **The local disk.** In the paper Flashpache's mean latency at 0.95 of the own capacity was "
            f"{number(theirs['mean'])} times less than Apache's. On `disk` the factor is {disk} today. On `metadata`, where each miss "
            f"is a name or an inode, it is {metadata}. Linux finds names in memory without a lock: a process that waits for the disk "
            "waits alone.\n")


def architectures(found):
    rates = {key: found.spread("architectures", key, "capacity", "requests_per_s") for key in found.servers("architectures")}
    ours = {key: rate for key, rate in rates.items() if rate and key.startswith("arch-")}
    if len(ours) < 2:
        return ""
    ordered = sorted(ours, key=lambda key: -ours[key].median)
    first, last = ordered[0], ordered[-1]
    return (f"- **Architectures, all else the same.** In memory `{first}` is first with {number(ours[first].median)} requests/s, "
            f"`{last}` last with {number(ours[last].median)}. [The papers' figures]({PAPERS}.md) have all of them.\n")


def scheduling(found):
    path = found.store.program("srpt-10")
    if not path.exists():
        return ""
    runs = json.loads(path.read_text())["results"]
    by_load = ", ".join(f"{number(run['FAIR']['mean_ms'] / run['SRPT']['mean_ms'])} at load {run['load']:g}" for run in runs)
    return ("- **Shortest remainder first.** On 10 Mbit/s the mean response time is so many times less than with a fair queue: "
            f"{by_load}.\n")


def a_warm_hit(found):
    path = found.store.program("hit")
    if not path.exists():
        return ""
    rows = json.loads(path.read_text())
    shares = [(row["lease"]["cell"].rsplit("/", 2)[0], row["lease"]["of_stock"]["cpu_us"]["median"]) for row in rows]
    return ("- **A warm hit.** CPU of a request for 5 KB in memory, to stock's: "
            + ", ".join(f"{cell} {number(share)}" for cell, share in shares) + ".\n")


NOTHING = "Nothing was measured of which this holds.\n"


def text(found):
    """The page."""
    new = "".join(part(found) for part in (convoy, local_disk, architectures, scheduling, a_warm_hit))
    helps, even, loses = (claim_lines(found, word) or NOTHING for word in ("helps", "even", "loses"))
    return f"""# What we found

For readers who decide whether Flashpache pays for their site. After this page you know where it helps, where it does not,
and what has changed since the papers. The lab wrote it from the figures beside it.

Each number says how many times better Flashpache is than stock httpd with the same settings: the median of the rounds, and their
range. 2 is twice the requests, or half of the latency. Both servers took turns in each round.

## Where Flashpache helps

Each round was at least {LITTLE:g} times better, a single round {LITTLE_OF_ONE:g} times.

{helps}
## Where nothing is to be gained

The rounds do not agree, or differ by less.

{even}
## Where it loses

Each round was at least {LITTLE:g} times worse, a single round {LITTLE_OF_ONE:g} times.

{loses}
## New since 2006

{new or NOTHING}"""
