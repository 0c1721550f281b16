# SPDX-License-Identifier: Apache-2.0
"""The report's sections on one experiment. Each function returns HTML, or "" if nothing was measured."""

from collections import Counter
from html import escape

from lab import figures, metrics
from lab.page import details, figure, note, number, ranged, table

COLUMNS = ("mean", "p5", "p50", "p90", "p95", "p99", "p99.9")
CDF_LINES = 6
DECILE_FIGURES = 2


def reference(found, experiment):
    """The stock server to compare with: of the same kind if there is one."""
    keys = found.servers(experiment)
    return next((key for key in keys if key.startswith("stock")), keys[0])


def counterpart(found, experiment, key):
    """The other server of a ratio: for Flashpache, stock Apache with the same settings."""
    twin = key.replace("flash-", "stock-")
    known = twin in found.servers(experiment) and twin.startswith("stock-")
    return twin if known else reference(found, experiment)


def warnings(found, experiment):
    """Disturbances of the measurements, and limits from outside."""
    limited, disturbed = [], []
    for key in found.servers(experiment):
        rounds = found.rounds(experiment, key, "capacity")
        if any(each.get("client_limited") for each in rounds):
            limited.append(key)
        if any((each.get("others_cpu") or 0) > 0.25 for each in rounds):
            disturbed.append(key)
    text = ""
    if limited:
        text += note("The client, not the server, was the limit in at least one round of: " + ", ".join(limited)
                     + ". Their capacity is at least what is shown.", warn=True)
    if disturbed:
        text += note("Other processes of this machine took more than a quarter of a processor in at least one "
                     "round of: " + ", ".join(disturbed) + ". Believe ratios only as far as their ranges go.", warn=True)
    return text


def premises(found, experiment):
    facts = found.rigs[experiment]
    if facts["impossible"]:
        return note(f"Not measured: {facts['impossible']}", warn=True)
    items = "".join(f"<li>{'holds' if p['holds'] else '<b>does not hold</b>'}: {escape(p['what'])} "
                    f"({escape(p['detail'])})</li>" for p in facts["premises"])
    return f"<p>{escape(facts['about'])}</p><ul class=\"note\">{items}</ul>"


def capacities(found, experiment):
    if not found.has(experiment, "capacity"):
        return ""
    rows = []
    for key in found.servers(experiment):
        def of(name, step="capacity", key=key):
            return found.spread(experiment, key, step, name)
        twin = counterpart(found, experiment, key)
        factor = None if twin == key else metrics.ratio(
            found.values(experiment, key, "capacity", "requests_per_s"),
            found.values(experiment, twin, "capacity", "requests_per_s"))
        rows.append([key, ranged(of("requests_per_s")), ranged(factor), ranged(of("mbit_per_s")),
                     ranged(of("cpu_us")), ranged(of("calls", "system_calls")), ranged(of("memory_mib")),
                     number(sum(found.values(experiment, key, "capacity", "errors")))])
    head = ["server", "requests/s", "to stock", "Mbit/s", "CPU &micro;s/request", "system calls/request",
            "memory MiB", "errors"]
    return "<h3>Capacity (closed loop)</h3>" + table(head, rows) + warnings(found, experiment)


def profiles(found, experiment):
    """Latency by load, a plot for each of the first servers, as the paper's figures 4 and 17."""
    loads = found.loads(experiment)
    if len(loads) < 2:
        return ""
    text = "<h3>Latency by load</h3>"
    for kind, label in (("mean", "mean"), ("p50", "median"), ("p90", "90th percentile")):
        series = {}
        for key in found.servers(experiment):
            points = [(load, found.spread(experiment, key, f"latency@{load:g}", "ms", kind)) for load in loads]
            if any(value for _, value in points):
                series[key] = [point for point in points if point[1]]
        text += figure(figures.lines(f"{experiment}-{kind}", f"{experiment}: {label}", "share of own capacity",
                                     "ms", series, log_y=True),
                       f"{label} latency by load on rig {experiment}; median and range of the rounds", found.stamp())
    return text


def percentiles(found, experiment):
    steps = [(f"{load:g} of own capacity", f"latency@{load:g}") for load in found.loads(experiment)]
    if found.has(experiment, "latency=equal"):
        steps.append(("the same rate for all", "latency=equal"))
    text = ""
    for label, step in steps:
        rows = []
        for key in found.servers(experiment):
            if found.values(experiment, key, step, "rate"):
                row = [found.spread(experiment, key, step, "ms", name) for name in COLUMNS]
                rows.append([key, ranged(found.spread(experiment, key, step, "rate")), *map(ranged, row),
                             number(sum(found.values(experiment, key, step, "failed")))])
        text += f"<h3>Latency in ms, {label}</h3>" + table(["server", "requests/s", *COLUMNS, "failed"], rows)
    return text


def distributions(found, experiment):
    """The CDF at the highest load."""
    loads = found.loads(experiment)
    if not loads:
        return ""
    step = f"latency@{loads[-1]:g}"
    series = {}
    for key in found.servers(experiment):
        middle = found.middle(experiment, key, step, "ms", "p50")
        if middle and len(series) < CDF_LINES:
            series[key] = [(latency, share * 100) for latency, share in middle["cdf"]]
    svg = figures.lines(f"{experiment}-cdf", f"{experiment}: latency CDF at {loads[-1]:g}", "ms",
                        "% of responses", series, log_x=True)
    return "<h3>Distribution</h3>" + figure(svg, f"latencies at {loads[-1]:g} of each server's own capacity, "
                                                 "the round with the median p50", found.stamp())


def decile_breakdowns(found, experiment):
    loads = found.loads(experiment)
    if not loads:
        return ""
    text = "<h3>Which sizes are fast, which are slow</h3>"
    shown = 0
    for key in found.servers(experiment):
        middle = found.middle(experiment, key, f"latency@{loads[-1]:g}", "inversion")
        if middle and shown < DECILE_FIGURES:
            shown += 1
            svg = figures.decile_bars(f"{experiment}-{key}-deciles", f"{key} at {loads[-1]:g}", middle["deciles"])
            text += figure(svg, "responses by tenth of latency; no service inversion would be the smallest sizes "
                                "to the left, the largest to the right", found.stamp())
    return text


def inversions(found, experiment):
    loads = found.loads(experiment)
    if not loads:
        return ""
    rows = [[key, *(ranged(found.spread(experiment, key, f"latency@{load:g}", "inversion")) for load in loads)]
            for key in found.servers(experiment)
            if found.values(experiment, key, f"latency@{loads[-1]:g}", "inversion")]
    text = "<h3>Service inversion</h3>" + table(["server", *(f"load {load:g}" for load in loads)], rows)
    if experiment != "link":
        text += note("0 is the order of sizes, 1 its reverse, 0.667 a random order. On loopback a socket takes a "
                     "response at once, so this is near random whatever the server does; see the link.")
    return text


def burstiness(found, experiment):
    if not found.has(experiment, "bursts"):
        return ""
    series, ready = {}, []
    for key in found.servers(experiment):
        middle = found.middle(experiment, key, "bursts", "threads")
        if middle and "ready_per_wakeup" in middle:
            ready.append(f"{key}: {middle['ready_per_wakeup']:.2f}")
        if middle and middle["runnable"]:
            counts = middle["runnable"]
            series[key] = [(count / middle["threads"] * 100, (i + 1) / len(counts) * 100)
                           for i, count in enumerate(counts)]
    svg = figures.lines(f"{experiment}-bursts", f"{experiment}: runnable threads", "% of the server's threads",
                        "% of moments", series)
    text = note(f"Events that the daemon finds ready at each wakeup: {', '.join(ready)}.") if ready else ""
    return "<h3>Burstiness</h3>" + text + figure(svg, "how many threads of each server are runnable at once, sampled from "
                                               "/proc: a curve that rises at both ends is bursty", found.stamp())


def sleeping(found, experiment):
    if not found.has(experiment, "sleepers"):
        return ""
    servers = found.servers(experiment)
    names = Counter(name for key in servers for each in found.rounds(experiment, key, "sleepers")
                    for name in each["mean"])
    rows = []
    for key in servers:
        row = [ranged(found.spread(experiment, key, "sleepers", "mean", name)) for name in names]
        rows.append([key, ranged(found.spread(experiment, key, "sleepers", "threads")), *row])
    text = "<h3>What threads sleep for</h3>" + table(["server", "threads", *map(escape, names)], rows)
    text += note("Kernel stacks (/proc/PID/stack) of all threads of the server, sampled under the closed loop's load; "
                 "the mean number asleep there. Threads that wait for a connection or a client are left out.")
    for key in servers:
        middle = found.middle(experiment, key, "sleepers", "convoy", "threads")
        if middle and middle["convoy"]["threads"]:
            text += details(f"{key}: {middle['convoy']['threads']} threads had this stack at one moment",
                            "\n".join(middle["convoy"]["stack"]))
    return text


def hot_file(found, experiment):
    if not found.has(experiment, "head_of_line"):
        return ""
    rows = [[key, *(ranged(found.spread(experiment, key, "head_of_line", "ms", name)) for name in COLUMNS)]
            for key in found.servers(experiment)]
    return ("<h3>A hot 1 KB file while others miss</h3>" + table(["server", *COLUMNS], rows)
            + note("Latency in ms of one file that is always in memory, beside 0.8 of the server's capacity."))


def slow_system_calls(found, experiment):
    if not found.has(experiment, "slow_calls"):
        return ""
    rows = []
    for key in found.servers(experiment):
        total = {}
        for each in found.rounds(experiment, key, "slow_calls"):
            for call, (count, slow, most) in each["calls"].items():
                row = total.setdefault(call, [0, 0, 0.0])
                total[call] = [row[0] + count, row[1] + slow, max(row[2], most)]
        rows += [[key, call, number(count), number(slow), number(most)]
                 for call, (count, slow, most) in sorted(total.items(), key=lambda item: -item[1][1]) if slow]
    return ("<h3>System calls that took over a millisecond</h3>"
            + table(["server", "call", "calls traced", "over 1 ms", "slowest ms"], rows, text_columns=(1,))
            + note("By strace of some workers and all of Flashpache's processes, at 0.8 load."))


ALL = (premises, capacities, profiles, percentiles, distributions, decile_breakdowns, inversions, burstiness,
       sleeping, hot_file, slow_system_calls)


def of(found, experiment):
    """Everything about one experiment."""
    if found.rigs[experiment]["impossible"] or not found.servers(experiment):
        return premises(found, experiment)
    return "".join(section(found, experiment) for section in ALL)
