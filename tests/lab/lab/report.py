# SPDX-License-Identifier: Apache-2.0
"""The report: one page that needs nothing else, and the same numbers as CSV and JSON."""

import csv
import json
import re
from html import escape

from lab import figures, metrics, papers, sections
from lab.findings import Findings
from lab.page import details, figure, note, number, page, ranged, table
from lab.servers import kinds

TITLE = "Flashpache: the lab's report"
DISK_PAIR = ("stock-prefork-None", "flash-prefork-None")
LINK_LOAD = 0.95
# Of tests/lab/srpt.py's result.
SRPT_NUMBERS = ("mean_ms", "slowdown", "bytes_per_s", "open_mean")


def machine(found):
    facts = found.store.facts("machine")
    rows = [[escape(name), escape(str(value))] for name, value in facts.items()]
    return ("<h2 id=machine>Machine</h2>" + table(["", ""], rows, text_columns=(1,))
            + note("Every number is the median of the rounds, with their range below it. A ratio's range is the widest "
                   "that the ranges of its two parts allow. Times hold for this machine only; compare ratios."))


def servers(found):
    texts = found.store.facts("configurations")
    rows = [[key, escape(kind.architecture)] for key, kind in kinds().items() if key in texts]
    listing = "".join(details(key, text) for key, text in texts.items())
    return ("<h2 id=servers>Servers and what they stand for</h2>"
            + table(["server", "architecture in the papers' terms"], rows, text_columns=(1,))
            + "<p class=note>prefork, worker, event: stock Apache's MPMs (stock-) and the same with Flashpache (flash-). "
              "None and All: AllowOverride. Configurations:</p>" + listing)


def factor_rows(found):
    """Ours and the paper's factors of stock Apache over Flashpache on the disk."""
    stock, flash = DISK_PAIR
    for what, theirs in papers.factors().items():
        if what == "capacity":
            ours = metrics.ratio(found.values("disk", flash, "capacity", "requests_per_s"),
                                 found.values("disk", stock, "capacity", "requests_per_s"))
        else:
            ours = metrics.ratio(*(found.values("disk", key, "latency@0.95", "ms", what) for key in (stock, flash)))
        label = "capacity, Flashpache / stock" if what == "capacity" else f"{what} latency, stock / Flashpache"
        yield [label, ranged(ours), number(theirs)]


def inversion_rows(found):
    for load, theirs in papers.INVERSION.items():
        stock, flash = (found.spread("link", key, f"latency@{load:g}", "inversion") for key in DISK_PAIR)
        if stock:
            yield [f"inversion at {load:g}: Apache", ranged(stock), number(theirs)]
        if flash:
            yield [f"inversion at {load:g}: Flashpache", ranged(flash),
                   "almost half of Apache's" if load == LINK_LOAD else "-"]


def against_papers(found):
    rows = []
    if found.values("disk", DISK_PAIR[0], "latency@0.95", "ms", "mean"):
        rows += factor_rows(found)
    rows += inversion_rows(found)
    if not rows:
        return ""
    latencies = [[name, *map(number, values)] for name, values in papers.LATENCIES.items()]
    return ("<h2 id=papers>Beside the paper's numbers</h2>" + table(["", "here", "paper"], rows)
            + note("Above 1 Flashpache is better. Latency: prefork, rig disk, 0.95 of each server's own capacity. "
                   "Inversion: rig link.")
            + "<h3>The paper's table 5 (ms at 0.95 load, Mbit/s)</h3>"
            + table(["server", "median", "mean", "90 %", "capacity"], latencies)
            + note(f"Burstiness in the paper: {papers.BURSTS}."))


def by_size(found):
    """Latency against the size of the set: the experiments that differ in nothing else."""
    names = sorted((name for name in found.experiments() if name.startswith(("size-", "disk"))),
                   key=lambda name: found.rigs[name]["bytes"])
    if len(names) < 2:
        return ""
    text = "<h2 id=size>Latency by size of the set</h2>" + "".join(sections.premises(found, name) for name in names)
    for kind, label in (("p50", "median"), ("mean", "mean")):
        series = {}
        for name in names:
            size = found.rigs[name]["bytes"] / (1 << 20)
            for key in found.servers(name):
                value = found.spread(name, key, "latency@0.6", "ms", kind)
                if value:
                    series.setdefault(key, []).append((size, value))
        text += figure(figures.lines(f"size-{kind}", f"{label} by size of the set", "MiB", "ms", series, log_y=True),
                       f"{label} latency at 0.6 load on the disk; each size's rig is described with its own premises", found.stamp())
    return text


def scheduling(path):
    """The result of tests/lab/srpt.py (--json): its figures for both policies, in one run each."""
    if path is None:
        return ""
    rows = []
    for run in json.loads(path.read_text())["results"]:
        for what in SRPT_NUMBERS:
            fair, srpt = run["FAIR"][what], run["SRPT"][what]
            rows.append([f"{run['megabits']:g} Mbit/s, load {run['load']:g}: {what}", number(fair), number(srpt),
                         number(fair / srpt) if srpt else "-"])
    return ("<h2 id=srpt>Size-based scheduling</h2>"
            + table(["", "FAIR", "SRPT", "FAIR / SRPT"], rows)
            + note("One run of each: tests/lab/srpt.py says more, and more exactly."))


def failures(store):
    rows = [[escape(f"{a}: {b}"), c, escape(text)] for a, b, c, text in store.failures()]
    return ("<h2 id=failures>What could not be measured</h2>"
            + table(["where", "what", "why"], rows, text_columns=(1, 2))) if rows else ""


def body(found, srpt):
    experiments = [name for name in found.experiments() if not name.startswith("size-")]
    parts = [against_papers(found)]
    parts += [f"<h2 id={name}>Rig {name}</h2>" + sections.of(found, name) for name in experiments]
    parts += [by_size(found), scheduling(srpt), failures(found.store), servers(found), machine(found)]
    whole = "".join(parts)
    links = "".join(f'<a href="#{name}">{name}</a>' for name in re.findall(r"<h2 id=([\w-]+)>", whole))
    return f"<h1>{TITLE}</h1><nav>{links}</nav>{whole}"


def write_csv(found, path):
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["experiment", "server", "step", "round", "what", "value"])
        writer.writerows(found.rows())


def write(store, srpt=None, name="report.html"):
    """Writes the page, results.csv and results.json beside the results; the page's path."""
    found = Findings(store)
    path = store.directory / name
    path.write_text(page(TITLE, body(found, srpt)))
    write_csv(found, store.directory / "results.csv")
    rows = [dict(zip(("experiment", "server", "step", "round", "what", "value"), row)) for row in found.rows()]
    (store.directory / "results.json").write_text(json.dumps({"machine": store.facts("machine"), "rows": rows}))
    return path
