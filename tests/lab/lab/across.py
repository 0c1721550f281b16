# SPDX-License-Identifier: Apache-2.0
"""All rigs together: Flashpache beside stock httpd, and the architectures."""

from lab import conclusions, figures, parts, servers
from lab.markdown import ranged, table

BY_RIG = "flashpache-by-rig"
BY_RIG_TITLE = "Requests/s of Flashpache to those of stock httpd, by rig"

SERVER = "tests/lab/archserver/README.md"
ARCHITECTURES_HEAD = f"""# Architectures in all rigs

For readers who compare server architectures: how each of the papers' architectures performs in each rig, all else being equal. All
are options of [one server](../../{SERVER}); none is the papers' own program.

Each number is from one round; in memory, from two or more.
"""


def ratios(found):
    """{place: how many times stock's requests/s}"""
    every = [each for each in conclusions.claims(found) if each.question is conclusions.REQUESTS]
    return {f"{each.experiment}, {each.servers.replace('`AllowOverride ', '').replace('`', '')}": each.better for each in every}


def draw_by_rig(found, pages):
    """The plot, if there is something to draw; true if so."""
    values = ratios(found)
    if values:
        svg = figures.ratio_bars(BY_RIG, "Flashpache to stock httpd", "requests/s, times stock's", values)
        pages.draw(BY_RIG, svg, [(label, 0, *value) for label, value in values.items()])
    return bool(values)


def experiments(found):
    """{rig: (its experiment that has all architectures, the load of its latencies)}"""
    chosen = {}
    for one in (one for part in parts.full() for one in part.experiments):
        if set(parts.EACH_ARCH) <= set(one.servers) and found.servers(one.name):
            load = next(step.options["share"] for step in one.steps if step.call == "latency")
            chosen[one.rig] = (one.name, load)
    return chosen


def architectures(found):
    """The page, or "" where nothing was measured."""
    rigs = experiments(found)
    if not rigs:
        return ""
    return (ARCHITECTURES_HEAD + "\n## Requests/s\n" + of_all(found, rigs, lambda load: ("capacity", "requests_per_s"))
            + "\n## Mean latency in ms near the server's own capacity\n\n"
            + "The load is 0.95 of that capacity, in memory 0.8.\n"
            + of_all(found, rigs, lambda load: (f"latency@{load:g}", "ms", "mean")))


def of_all(found, rigs, path):
    rows = [[key, servers.arch_kinds()[key].architecture, *(ranged(found.spread(name, key, *path(load))) for name, load in rigs.values())]
            for key in parts.EACH_ARCH]
    return table(["server", "architecture", *rigs], rows)
