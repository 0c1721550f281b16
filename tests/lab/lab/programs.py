# SPDX-License-Identifier: Apache-2.0
"""Tables of what the lab's programs measured. Each function takes a program's result, and returns Markdown."""

from lab.markdown import number, ranged, table
from lab.metrics import Spread

POLICIES = ("FAIR", "SRPT")
LARGEST = "largest 1 %"
KINDS = {"file": "files", "absent": "absent names"}
LAWS = {"even": "evenly", "zipf": "by Zipf's law"}
COSTS = ["stock, CPU us/request", "Flashpache, CPU us/request", "to stock's"]


def spread(summary):
    """lab_kit.summary's numbers as those of the lab's own measurements."""
    return Spread(summary["median"], summary["min"], summary["max"])


def both(run, value):
    """FAIR's and SRPT's number, and how many times less SRPT's is."""
    fair, srpt = (value(run[policy]) for policy in POLICIES)
    return [number(fair), number(srpt), number(fair / srpt) if srpt else "-"]


def srpt(result):
    rows = [[f"{run['megabits']:g}", f"{run['load']:g}", *both(run, lambda one: one["mean_ms"]),
             *both(run, lambda one: one["slowdown"]), *both(run, lambda one: one["group_ms"].get(LARGEST))]
            for run in result["results"]]
    head = ["Mbit/s", "load"]
    for what in ("mean ms", "slowdown", f"mean ms of the {LARGEST}"):
        head += [f"{what}, FAIR", "SRPT", "FAIR / SRPT"]
    return table(head, rows)


def hit(result):
    rows = [[row["cell"], name, ranged(spread(row["rate"])), ranged(spread(row["cpu_us"])),
             *(ranged(spread(row["of_stock"][what])) if name != "stock" else "-" for what in ("rate", "cpu_us"))]
            for cell in result for name, row in cell.items()]
    head = ["MPM/configuration/bytes/connections", "server", "requests/s", "CPU us/request", "requests/s to stock's", "CPU to stock's"]
    return table(head, rows) + "\n`message` asks the daemon for each request; `lease` is Flashpache with its defaults.\n"


def costs(row):
    return [ranged(spread(row[what])) for what in ("stock_cpu_us", "cpu_us", "of_stock")]


def workers(rows):
    return table(["children", *COSTS], [[f"{row['workers']:,}", *costs(row)] for row in rows])


def paths(rows):
    return table(["paths", "of", "asked for", *COSTS, "bytes an entry", "shared bytes a path"],
                 [[f"{row['paths']:,}", KINDS[row["kind"]], LAWS[row["law"]], *costs(row), f"{row['bytes_each']:.0f}",
                   f"{row['shared_each']:.0f}"] for row in rows])


GROWTH = {"workers": workers, "paths": paths}


def growth(result):
    return "".join(GROWTH[part](found) for part, found in result.items())


TABLES = {"srpt.py": srpt, "hit_cost.py": hit, "growth.py": growth}
