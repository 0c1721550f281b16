# SPDX-License-Identifier: Apache-2.0
"""The page "What we found": a short summary and lists of numbers, both chosen by what the numbers say."""

import json
import math
import re
from collections import namedtuple

from lab import metrics, papers, samples
from lab.markdown import PAPERS, number, ranged, table

# Each round of a comparison must differ by so much; one round alone, whose noise is not known, by more.
LITTLE, LITTLE_OF_ONE = 1.1, 1.5
CONVOY = samples.WAITS["d_alloc_parallel"]
# The threads that make a convoy, as a share of all.
MANY_WAIT = 0.1
Question = namedtuple("Question", "what step path less_is_better")
# better: how many times Flashpache is better, over the rounds.
Claim = namedtuple("Claim", "experiment servers question better rounds")
# {experiment: (its name in a sentence, what it is)}; seven of the names must fit into a sentence.
EXPERIMENTS = {
    "memory": ("memory", "21,600 files of 3 GB in memory, 1,024 connections"),
    "contention": ("changing names", "names created and removed next to files read from memory"),
    "slowfs": ("a slow file system", "2 ms for each lookup of a name, 1,024 connections"),
    "slowfs-kept": ("slow but kept names", "as `slowfs`, but the kernel keeps names for a second"),
    "network": ("sshfs", "sshfs with its defaults"), "link": ("a slow link", "an uplink of 100 Mbit/s"),
    "disk": ("a disk", "a disk of 150 reads/s, the set three times the memory"),
    "metadata": ("names on disk", "201,600 files, whose names and inodes are on a disk of 150 reads/s")}
REQUESTS = Question("as many requests/s", "capacity", ("requests_per_s",), False)
MEAN = Question("mean latency at 0.95 of its own capacity", "latency@0.95", ("ms", "mean"), True)
QUESTIONS = (REQUESTS, Question("CPU per request", "capacity", ("cpu_us",), True), MEAN,
             Question("90th percentile at 0.95 of its own capacity", "latency@0.95", ("ms", "p90"), True),
             Question("mean latency at the same rate", "latency=equal", ("ms", "mean"), True))


def factors(found, experiment, pair, question):
    """How many times better the second of the pair is, for each round that both have."""
    theirs, ours = ({n: follow(each, question.path) for n, each in found.store.by_round(experiment, key, question.step).items()}
                    for key in pair)
    return [theirs[n] / ours[n] if question.less_is_better else ours[n] / theirs[n] for n in ours if ours[n] and theirs.get(n)]


def follow(value, path):
    for name in path:
        value = (value or {}).get(name)
    return value


def pairs(found, experiment):
    servers = found.servers(experiment)
    return [(key, key.replace("stock-", "flash-")) for key in servers
            if key.startswith("stock-") and key.replace("stock-", "flash-") in servers]


def claim(found, experiment, pair, question):
    """None where no round has both."""
    ratios = factors(found, experiment, pair, question)
    if not ratios:
        return None
    mpm, override = pair[0].split("-")[1:3]
    return Claim(experiment, f"{mpm}, `AllowOverride {override}`", question, metrics.spread(ratios), len(ratios))


def claims(found):
    """Every comparison of Flashpache with stock httpd."""
    every = [claim(found, experiment, pair, question) for experiment in EXPERIMENTS
             for pair in pairs(found, experiment) for question in QUESTIONS]
    return [each for each in every if each]


def verdict(each):
    """helps, loses or even."""
    little = LITTLE if each.rounds > 1 else LITTLE_OF_ONE
    if each.better.least > little:
        return "helps"
    return "loses" if each.better.most < 1 / little else "even"


def weight(each):
    return abs(math.log(each.better.median))


def said(each, show=ranged):
    """The comparison, in words that begin a line or end a sentence."""
    if not each.question.less_is_better:
        return f"{show(each.better)} times {each.question.what}"
    if each.better.median >= 1:
        return f"{each.question.what} {show(each.better)} times lower"
    more = metrics.Spread(*(1 / value for value in (each.better.median, each.better.most, each.better.least)))
    return f"{each.question.what} {show(more)} times as high"


# The summary

def listed(names):
    """a, b and c"""
    names = list(names)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def named(chosen):
    return listed(EXPERIMENTS[name][0] for name in dict.fromkeys(each.experiment for each in chosen))


def extreme(chosen):
    """The largest difference: of requests/s, if there is one."""
    return max([each for each in chosen if each.question is REQUESTS] or chosen, key=weight)


def middle(spread):
    return number(spread.median)


def gained_or_lost(chosen, word, nowhere):
    """Sentences on those claims of which this word holds."""
    if not chosen:
        return [nowhere]
    first = extreme(chosen)
    others = named(each for each in chosen if each.experiment != first.experiment)
    return [f"Flashpache {word} most with {EXPERIMENTS[first.experiment][0]} ({first.servers}): {said(first, middle)}.",
            *([f"It also {word} with {others}."] if others else [])]


def summary(every):
    """Where it helps and by how much, where nothing is gained, where it loses."""
    by_word = {word: [each for each in every if verdict(each) == word] for word in ("helps", "even", "loses")}
    changed = {each.experiment for each in by_word["helps"] + by_word["loses"]}
    idle = [each for each in by_word["even"] if each.experiment not in changed]
    return "\n".join((
        *gained_or_lost(by_word["helps"], "helps", "Flashpache helps nowhere beyond the noise."),
        *([f"Nothing is gained with {named(idle)}."] if idle and changed else []),
        *gained_or_lost(by_word["loses"], "loses", "Flashpache loses nowhere beyond the noise."))) + "\n"


# The lists

def place(experiment):
    return f"`{experiment}`: {EXPERIMENTS[experiment][1]}"


def claim_lines(every, word):
    """A list for each experiment of which this holds somewhere, a number in each line; the largest first."""
    chosen = [each for each in every if verdict(each) == word]
    experiments = sorted({each.experiment for each in chosen},
                         key=lambda name: -max(weight(each) for each in chosen if each.experiment == name))
    text = ""
    for name in experiments:
        lines = sorted((each for each in chosen if each.experiment == name), key=lambda each: -weight(each))
        text += f"\n### {place(name)}\n\n" + "".join(f"- {each.servers}: {said(each)}{rounds(each)}\n" for each in lines)
    return text


def noise(each):
    return ", within the noise" if verdict(each) == "even" else ""


def rounds(each):
    return "" if each.rounds > 1 else ", one round"


def even_table(every):
    """How many times better, a row for each comparison of two servers."""
    even = [each for each in every if verdict(each) == "even"]
    rows = []
    for experiment, servers in dict.fromkeys((each.experiment, each.servers) for each in even):
        cells = {each.question: ranged(each.better) + rounds(each) for each in even
                 if (each.experiment, each.servers) == (experiment, servers)}
        rows.append([f"`{experiment}`", servers, *(cells.get(question, "") for question in QUESTIONS)])
    return table(["where", "servers", "requests/s", *(question.what for question in QUESTIONS[1:])], rows) if rows else ""


# New since the papers

def convoy(found):
    """Threads of stock httpd that wait for one lookup of a missing .htaccess."""
    stock, flash = (found.spread("slowfs", f"{who}-event-All", "sleepers", "most", CONVOY) for who in ("stock", "flash"))
    threads = found.spread("slowfs", "stock-event-All", "sleepers", "threads")
    if not stock or not threads:
        return []
    if stock.median < MANY_WAIT * threads.median:
        return ["No convoy on missing `.htaccess` files was seen.",
                f"{stock.median:.0f} of {threads.median:.0f} threads of stock httpd at most waited in `d_alloc_parallel`, on `slowfs`."]
    return ["A convoy on missing `.htaccess` files: threads wait in `d_alloc_parallel` until another thread has looked up the same name.",
            f"{stock.median:.0f} of {threads.median:.0f} threads of stock httpd waited there at one moment, on `slowfs`.",
            f"{flash.median if flash else 0:.0f} of Flashpache's threads waited there.",
            "The papers describe threads that wait for a vnode lock of FreeBSD."]


def local_disk(found):
    """The papers' main result, today."""
    theirs = papers.factors()["mean"]
    today = [claim(found, where, ("stock-prefork-None", "flash-prefork-None"), MEAN) for where in ("disk", "metadata")]
    if not all(today):
        return []
    lines = [f"In the paper Flashpache's mean latency on a disk is {number(theirs)} times lower than Apache's.",
             *(f"On `{each.experiment}` today: {said(each)}{rounds(each)}{noise(each)}." for each in today)]
    if "helps" not in map(verdict, today):
        lines.append("Linux's documentation of path lookup may say why: the kernel finds names in memory without a lock.")
    return lines


def architectures(found):
    lines = []
    for experiment, where in (("architectures", "memory"), ("metadata-architectures", "`metadata`")):
        rates = {key: found.spread(experiment, key, "capacity", "requests_per_s") for key in found.servers(experiment)}
        ours = {key: rate.median for key, rate in rates.items() if rate and key.startswith("arch-")}
        if len(ours) > 1:
            first, last = (choose(ours, key=ours.get) for choose in (max, min))
            lines += [f"The fastest architecture in {where} is `{first}`: {number(ours[first])} requests/s.",
                      f"The slowest there is `{last}`: {number(ours[last])} requests/s."]
    return lines


def scheduling(found):
    path = found.store.program("srpt-10")
    runs = json.loads(path.read_text())["results"] if path.exists() else []
    return [f"At load {run['load']:g} of 10 Mbit/s, a fair queue's mean response time is "
            f"{number(run['FAIR']['mean_ms'] / run['SRPT']['mean_ms'])} times that of the shortest remaining response first." for run in runs]


def a_warm_hit(found):
    path = found.store.program("hit")
    rows = json.loads(path.read_text()) if path.exists() else []
    return [f"A warm hit of 5 KB ({row['lease']['cell'].rsplit('/', 2)[0]}) takes "
            f"{number(row['lease']['of_stock']['cpu_us']['median'])} of stock's CPU." for row in rows]


def new_lines(found):
    groups = (("The convoy", convoy), ("The local disk", local_disk), ("Architectures, all else the same", architectures),
              ("Shortest remaining response first", scheduling), ("A warm hit", a_warm_hit))
    said_of = [(head, part(found)) for head, part in groups]
    return "".join(f"\n### {head}\n\n" + "".join(f"- {line}\n" for line in lines) for head, lines in said_of if lines)


NOTHING = "No measurement shows this.\n"


def text(found, plot=""):
    """The page; plot: below its summary."""
    every = claims(found)
    helps, loses = (claim_lines(every, word) or NOTHING for word in ("helps", "loses"))
    page = f"""# What we found

For readers who are deciding whether Flashpache pays for their site: where it helps, where it does not, and what has
changed since the papers. The lab wrote this page from the numbers of the run.

{summary(every) if every else NOTHING}{plot}
Each number compares Flashpache with stock httpd under the same settings. It is the median of the rounds, with their range. Both
servers took turns in each round.

## Where Flashpache helps

In each round Flashpache was at least {LITTLE:g} times better; where there is only one round, {LITTLE_OF_ONE:g} times.

{helps}
## Where nothing is gained

The rounds disagree, or differ by less than that.

A cell says how many times better Flashpache is. It is empty where Flashpache helps or loses.

{even_table(every) or NOTHING}
## Where it loses

In each round Flashpache was at least {LITTLE:g} times worse; where there is only one round, {LITTLE_OF_ONE:g} times.

{loses}
## New since 2006

[The papers' figures]({PAPERS}.md) have the rest.

{new_lines(found) or NOTHING}"""
    return re.sub("\n{3,}", "\n\n", page)
