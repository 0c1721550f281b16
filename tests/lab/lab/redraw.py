# SPDX-License-Identifier: Apache-2.0
"""The papers' tables and figures with today's numbers, and the papers' own beside them where their text has them.

Each function takes Findings and an entry of the catalog, and returns a Drawing, or None if nothing was measured for it.
"""

import json
from collections import namedtuple

import workload

from lab import catalog, figures, metrics, papers, search
from lab.markdown import number, ranged, table

# svg, or None for a table; text: Markdown below it; points: (series, x, median, least, most) for its CSV.
Drawing = namedtuple("Drawing", "svg text points")
PERCENTILES = {"p5": "5th percentile", "p50": "median", "mean": "mean", "p95": "95th percentile"}
TOP = 0.95
FULL_BUSY, IDLE = 0.8, 0.0


def name_of(key):
    """A server's name in a figure: the paper's, with ours in brackets."""
    theirs = next((name for name, ours in papers.OURS.items() if ours == key), None)
    return f"{theirs} ({key})" if theirs else key


def points_of(series):
    for label, points in series.items():
        for x, value in points:
            yield (label, x, *(value if isinstance(value, metrics.Spread) else (value, "", "")))


def plot(entry, x, y, series, text="", **axes):
    series = {label: points for label, points in series.items() if points}
    if not series:
        return None
    svg = figures.lines(entry.name, f"{entry.label}: {entry.title}", x, y, series, **axes)
    return Drawing(svg, text, list(points_of(series)))


def by_load(found, experiment, key, *path):
    points = [(load, found.spread(experiment, key, f"latency@{load:g}", *path)) for load in found.loads(experiment)]
    return [(load, value) for load, value in points if value]


# Files and requests: computed, not measured

def popularity_table(found, entry):
    """Table 2."""
    del found, entry
    rows = []
    for megabytes, theirs in papers.POPULARITY.items():
        ours = workload.bytes_for(workload.directories_for(megabytes << 20), papers.TOP)
        rows.append([f"{megabytes:,}", *(f"{number(size / (1 << 20))} / {number(paper)}" for size, paper in zip(ours, theirs))])
    head = ["MB of the set", *(f"top {share:.0%} of the requests, MB, ours / paper" for share in papers.TOP)]
    return Drawing(None, table(head, rows), [])


def series_table(found, entry):
    """Table 3."""
    del found, entry
    shares = [0.0] * len(papers.SERIES)
    for class_, file in workload.KINDS:
        shares[metrics.series_of(workload.size_of(class_, file))] += workload.CLASS_SHARE[class_] / workload.FILES_PER_CLASS
    rows = [[name, f"{share:.1%} / {paper:g} %"] for name, share, paper in zip(metrics.SERIES_NAMES, shares, papers.SERIES)]
    text = "\nWithin a class, all files are equally popular: the papers do not contain SPECweb99's own table for that."
    return Drawing(None, table(["size", "of the requests, ours / paper"], rows) + text, [])


# Latency

def profile(found, entry):
    """Figures 4, 5, 16 and 17: percentiles of one server by load; crosses are the paper's at 0.95."""
    key = entry.options["server"]
    experiment, theirs = catalog.METADATA[key], papers.LATENCIES[entry.options["paper"]]
    series = {label: by_load(found, experiment, key, "ms", name) for name, label in PERCENTILES.items()}
    if not any(series.values()):
        return None
    bend = search.knee({load: value.median for load, value in series["mean"]})
    text = (f"From load {bend:g} on, the mean is at least twice that at the lowest load." if bend
            else "The mean stays below twice that at the lowest load.")
    series |= {"paper: median": [(TOP, theirs[0])], "paper: mean": [(TOP, theirs[1])]}
    return plot(entry, "share of own capacity", "ms", series, text, log_y=True)


def means(found, entry):
    """Figures 22 to 24."""
    series = {name_of(key): by_load(found, entry.options["where"][key], key, "ms", "mean") for key in entry.options["servers"]}
    return plot(entry, "share of own capacity", "ms", series, entry.options["note"], log_y=True)


def cdfs(found, entry):
    """Figures 6 and 7: a line for each load."""
    key = entry.options["server"]
    series = {}
    for load in found.loads(catalog.METADATA[key]):
        middle = found.middle(catalog.METADATA[key], key, f"latency@{load:g}", "ms", "p50")
        if middle:
            series[f"load {load:g}"] = [(latency, share * 100) for latency, share in middle["cdf"]]
    return plot(entry, "ms", "% of responses", series, log_x=True)


def sizes(found, entry):
    """Figures 8 and 15."""
    series = {}
    for key in entry.options["servers"]:
        for name, label in (("mean", "mean"), ("p50", "median")):
            points = [(found.rigs[each]["bytes"] / (1 << 20), found.spread(each, key, "latency@0.6", "ms", name))
                      for each in (*catalog.SIZES, catalog.DISK[key]) if each in found.rigs]
            series[f"{name_of(key)}, {label}"] = sorted((point for point in points if point[1]), key=lambda point: point[0])
    return plot(entry, "MiB of the set; the memory is 256", "ms at 0.6 of the capacity", series, log_y=True)


def deciles(found, entry):
    """Figures 10, 11, 18, 20 and 21."""
    experiment, key = entry.options["experiment"], entry.options["server"]
    middle = found.middle(experiment, key, f"latency@{TOP:g}", "inversion")
    if not middle:
        return None
    title = f"{entry.label}: {name_of(key)} at {TOP:g}"
    points = [(label, tenth + 1, row[i] * 100, "", "") for i, label in enumerate(metrics.SERIES_NAMES)
              for tenth, row in enumerate(middle["deciles"])]
    svg = figures.decile_bars(entry.name, title, middle["deciles"])
    return Drawing(svg, f"Service inversion {middle['inversion']:.2f}.", points)


def latency_table(found, entry):
    """Table 5."""
    del entry
    rows = []
    for name, (median, mean, p90, capacity) in papers.LATENCIES.items():
        key = papers.OURS[name]
        experiment = catalog.METADATA[key]
        ours = [found.spread(experiment, key, f"latency@{TOP:g}", "ms", what) for what in ("p50", "mean", "p90")]
        rate = found.spread(experiment, key, "capacity", "mbit_per_s")
        inversion = found.spread(experiment, key, f"latency@{TOP:g}", "inversion")
        if rate:
            theirs = zip((*ours, rate), (median, mean, p90, capacity))
            rows.append([name, key, *(f"{ranged(value)} / {number(paper)}" for value, paper in theirs), ranged(inversion)])
    head = ["server", "ours", "median ms, ours / paper", "mean ms", "90th percentile ms", "Mbit/s", "inversion"]
    text = "\nThe paper has two steps between Flash and New-Flash, descriptors passed and no mmap; we have no such servers."
    return Drawing(None, table(head, rows) + text, []) if rows else None


def capacity_table(found, entry):
    """Table 6."""
    del entry
    rows = []
    for name, key in papers.OURS.items():
        ours = [found.spread(experiment, key, "capacity", "mbit_per_s") for experiment in ("memory-profile", catalog.DISK[key])]
        if any(ours):
            both = zip(ours, papers.CAPACITIES[name])
            rows.append([name, key, *(f"{ranged(value)} / {number(paper)}" for value, paper in both)])
    head = ["server", "ours", "in memory, Mbit/s, ours / paper", "on the disk"]
    return Drawing(None, table(head, rows) + "\n" + catalog.PROCESSORS, []) if rows else None


# Service inversion

def inversion_table(found, entry):
    """Table 4."""
    del entry
    theirs = {"stock-prefork-None": papers.INVERSION, "arch-amped": papers.INVERSION_FLASH}
    rows = []
    for name, key in papers.OURS.items():
        values = {load: found.spread(catalog.LINK[key], key, f"latency@{load:g}", "inversion") for load in papers.INVERSION}
        if any(values.values()):
            rows.append([name, key, *(ranged(values[load]) + (f" / {theirs[key][load]}" if key in theirs else "")
                                      for load in papers.INVERSION)])
    head = ["server", "ours", *(f"load {load:g}" for load in papers.INVERSION)]
    text = "\nOurs / the paper's. The link carries 100 Mbit/s: without it, a socket takes a whole response at once."
    return Drawing(None, table(head, rows) + text, []) if rows else None


def inversions(found, entry):
    """Figure 19."""
    series = {name_of(key): by_load(found, where, key, "inversion") for key, where in catalog.LINK.items()}
    if not any(series.values()):
        return None
    series |= {"paper: Apache": list(papers.INVERSION.items()), "paper: Flash": list(papers.INVERSION_FLASH.items())}
    return plot(entry, "share of own capacity", "service inversion", series)


# Processes

def bursts(found, entry):
    """Figures 2 and 14."""
    series, said = {}, []
    for key in entry.options["servers"]:
        middle = found.middle("metadata", key, "bursts", "threads")
        if not middle or not middle["runnable"]:
            continue
        shares = [count / middle["threads"] for count in middle["runnable"]]
        series[name_of(key)] = [(share * 100, (i + 1) / len(shares) * 100) for i, share in enumerate(shares)]
        idle, busy = (sum(chosen) / len(shares) for chosen in ([share <= IDLE for share in shares],
                                                               [share > FULL_BUSY for share in shares]))
        said.append(f"{key}: none runnable in {idle:.0%} of the moments, over 80 % of them in {busy:.0%}, "
                    f"{sum(shares) / len(shares):.0%} on average.")
        if "ready_per_wakeup" in middle:
            said.append(f"The daemon finds {middle['ready_per_wakeup']:.2f} events ready at a wakeup.")
    return plot(entry, "% of the server's threads that are runnable", "% of the moments", series, "".join(f"- {line}\n" for line in said))


def ready_events(found, entry):
    """Figures 1 and 13, at the capacity, as the paper."""
    series, text = {}, ""
    for key in entry.options["servers"]:
        middle = found.middle(catalog.METADATA[key], key, "capacity", "ready_events", "mean")
        if middle:
            ready = middle["ready_events"]
            series[name_of(key)] = [(count, share * 100) for count, share in ready["cdf"]]
            text += f"- {key}: mean {number(ready['mean'])}, median {ready['p50']}, at most {ready['max']}.\n"
    return plot(entry, "ready events of a turn", "% of the turns", series, text, log_x=True)


# Architectures

def capacities(found, keys):
    return {key: found.spread("architectures", key, "capacity", "requests_per_s") for key in keys}


def architectures(found, entry):
    """Figure 7, as the capacity in memory; beside it the same servers where names are on the disk."""
    keys = [key for key, value in capacities(found, entry.needs["architectures"]).items() if value]
    if not keys:
        return None
    most = max(value.median for value in capacities(found, keys).values())
    best = max(replies for _, replies in papers.REPLIES.values())
    rows = []
    for key in keys:
        name, replies = papers.REPLIES.get(key, ("userver, one process", None))
        rate = capacities(found, keys)[key]
        rows.append([key, name, ranged(rate), number(rate.median / most), number(replies / best if replies else None),
                     ranged(found.spread("metadata-architectures", key, "capacity", "requests_per_s"))])
    head = ["server", "paper's", "requests/s in memory", "of the best", "paper, of the best", "requests/s, names on the disk"]
    svg = figures.bars(entry.name, f"{entry.label}: {entry.title}", "requests/s", capacities(found, keys))
    text = "\nThe paper has a curve for each server, by rate of requests. Ours has one bar per server: its capacity."
    return Drawing(svg, table(head, rows) + text, [(key, 0, *capacities(found, keys)[key]) for key in keys])


def architecture_latencies(found, entry):
    """Figure 8, at one load in memory and at one where names are on the disk."""
    rows = []
    for key in entry.needs["architectures"]:
        row = [found.spread(*where, "ms", what) for where in (("architectures", key, "latency@0.8"),
                                                              ("metadata-architectures", key, "latency@0.95"))
               for what in ("mean", "p50", "p90")]
        row.append(found.spread("metadata-architectures", key, "latency@0.95", "inversion"))
        if any(row):
            rows.append([key, *map(ranged, row)])
    head = ["server", "in memory at 0.8: mean ms", "median", "90th percentile", "names on the disk at 0.95: mean ms", "median",
            "90th percentile", "inversion"]
    text = "\nThe paper has a curve for each server, by rate of requests. Ours has one load per rig, near the server's own capacity."
    return Drawing(None, table(head, rows) + text, []) if rows else None


def architecture_table(found, entry):
    """Table 1: the parts that can be counted here."""
    rows = [[key, ranged(rate), ranged(found.spread("architectures", key, "capacity", "cpu_us")),
             ranged(found.spread("architectures", key, "system_calls", "calls")),
             ranged(found.spread("architectures", key, "capacity", "memory_mib"))]
            for key, rate in capacities(found, entry.needs["architectures"]).items() if rate]
    head = ["server", "requests/s", "CPU us a request", "system calls a request", "memory MiB"]
    text = "\nThe paper's shares of functions come from OProfile; this kernel lacks the counters for it."
    return Drawing(None, table(head, rows) + text, []) if rows else None


# Size-based scheduling

def runs_of(found, name):
    path = found.store.program(name)
    return json.loads(path.read_text())["results"] if path.exists() else []


def srpt_by_load(found, entry, value):
    series = {}
    for program in entry.programs:
        for policy in ("FAIR", "SRPT"):
            label = policy + (", partly open" if "partly" in program else "")
            series[label] = sorted((run["load"], value(run[policy])) for run in runs_of(found, program))
    return series


def times_less(series):
    """By load: how many times less SRPT is than FAIR."""
    pairs = zip(series.get("FAIR", []), series.get("SRPT", []))
    return "FAIR / SRPT: " + ", ".join(f"{number(fair / srpt)} at {load:g}" for (load, fair), (_, srpt) in pairs) + "."


def srpt_means(found, entry):
    """Figures 5 and 8."""
    series = srpt_by_load(found, entry, lambda policy: policy["mean_ms"])
    return plot(entry, "load of the uplink", "mean ms", series, times_less(series), log_y=True)


def srpt_slowdowns(found, entry):
    """Figure 6."""
    series = srpt_by_load(found, entry, lambda policy: policy["slowdown"])
    return plot(entry, "load of the uplink", "mean slowdown", series, times_less(series), log_y=True)


def srpt_sizes(found, entry):
    """Figure 9, by percentile of the size, at the load of its middle row."""
    run = next((run for run in runs_of(found, "srpt-10") if run["load"] == 0.8), None)
    if not run or "percentile_ms" not in run["FAIR"]:
        return None
    series = {policy: [tuple(point) for point in run[policy]["percentile_ms"]] for policy in ("FAIR", "SRPT")}
    groups = "; ".join(f"{name}: {number(run['FAIR']['group_ms'][name] / run['SRPT']['group_ms'][name])} times lower"
                       for name in run["FAIR"]["group_ms"])
    return plot(entry, "percentile of the size", "mean ms at load 0.8", series, groups + ".", log_y=True)


def srpt_losses(found, entry):
    """Figure 11."""
    series = {}
    for program in entry.programs:
        loss = float(program.rsplit("-", 1)[1]) if "loss" in program else 0.0
        for run in runs_of(found, program):
            if run["load"] in (0.7, 0.9):
                for policy in ("FAIR", "SRPT"):
                    series.setdefault(f"{policy} at {run['load']:g}", []).append((loss, run[policy]["mean_ms"]))
    series = {label: sorted(points) for label, points in series.items()}
    return plot(entry, "% of the packets lost", "mean ms", series, log_y=True)


DRAW = {draw.__name__: draw for draw in (
    popularity_table, series_table, profile, means, cdfs, sizes, deciles, latency_table, capacity_table, inversion_table, inversions, bursts, ready_events, architectures,
    architecture_latencies, architecture_table, srpt_means, srpt_slowdowns, srpt_sizes, srpt_losses)}


def drawn(found, entry):
    """The Drawing of an entry; None if it cannot be measured, or was not."""
    return DRAW[entry.draw](found, entry) if entry.draw else None
