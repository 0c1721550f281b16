# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG text, also for black and white: lines differ by marker and style, bars by hatch."""

import io
import re

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3,
                            "font.family": "sans-serif", "legend.fontsize": 8, "legend.framealpha": 0.9})

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: E402

from lab.metrics import SERIES_NAMES  # noqa: E402

SIZE = (5.2, 3.4)           # inches: a phone shows it whole at nearly this size
STYLES = [("black", "-", "o"), ("tab:blue", "--", "s"), ("tab:red", "-.", "^"), ("tab:green", ":", "D"),
          ("tab:purple", "-", "v"), ("tab:brown", "--", "P"), ("tab:gray", "-.", "X"), ("tab:olive", ":", "*")]
HATCHES = ("", "/", "x", "-")    # sparse: each line of a hatch is a line of the file
GREYS = ("0.95", "0.8", "0.65", "0.5")


def svg(figure, name):
    """The figure as an element to be inlined; its ids begin with its name, so that none occurs twice."""
    out = io.StringIO()
    matplotlib.rcParams["svg.hashsalt"] = name
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    text = out.getvalue()[out.getvalue().index("<svg"):]
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    return re.sub(r'<svg (.*?)width="[^"]*" height="[^"]*"|<svg (.*?)height="[^"]*"(.*?)width="[^"]*"',
                  r"<svg \1\2\3", text, count=1, flags=re.DOTALL)


def plain(axis):
    """Numbers in place of powers, where the axis is logarithmic."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def axes(title, x, y, log_y=False, log_x=False):
    figure, ax = plt.subplots(figsize=SIZE)
    ax.set(title=title, xlabel=x, ylabel=y)
    if log_y:
        ax.set_yscale("log")
        plain(ax.yaxis)
    if log_x:
        ax.set_xscale("log")
        plain(ax.xaxis)
    return figure, ax


def lines(name, title, x, y, series, *, log_y=False, log_x=False, markers=True):
    """series: {label: [(x, y) or (x, Spread)]}; a range is drawn as an error bar."""
    figure, ax = axes(title, x, y, log_y, log_x)
    for (label, points), (colour, style, marker) in zip(series.items(), STYLES):
        middles = [getattr(value, "median", value) for _, value in points]
        places = [place for place, _ in points]
        if points and hasattr(points[0][1], "median"):
            errors = [[value.median - value.least for _, value in points],
                      [value.most - value.median for _, value in points]]
            ax.errorbar(places, middles, yerr=errors, label=label, color=colour, linestyle=style,
                        marker=marker, capsize=2, markersize=4, linewidth=1.2)
        else:
            ax.plot(places, middles, label=label, color=colour, linestyle=style, linewidth=1.2,
                    marker=marker if markers else None, markersize=4, markevery=max(1, len(places) // 10))
    ax.legend()
    return svg(figure, name)


def bars(name, title, x, values):
    """values: {label: Spread}; one bar each, with its range."""
    figure, ax = axes(title, x, "")
    labels = list(values)[::-1]
    middles = [values[label].median for label in labels]
    errors = [[values[label].median - values[label].least for label in labels],
              [values[label].most - values[label].median for label in labels]]
    ax.barh(labels, middles, xerr=errors, color=GREYS[1], edgecolor="black", linewidth=0.5, capsize=2)
    return svg(figure, name)


def ratio_bars(name, title, x, values):
    """values: {label: Spread}; bars that begin at 1, on a logarithmic axis."""
    figure, ax = axes(title, x, "", log_x=True)
    labels = list(values)[::-1]
    spreads = [values[label] for label in labels]
    errors = [[value.median - value.least for value in spreads], [value.most - value.median for value in spreads]]
    ax.barh(labels, [value.median - 1 for value in spreads], left=1, xerr=errors, color=GREYS[1], edgecolor="black",
            linewidth=0.5, capsize=2)
    ax.axvline(1, color="black", linewidth=1)
    return svg(figure, name)


def decile_bars(name, title, rows):
    """Ten bars of four parts: the sizes in the fastest, ..., slowest tenth of the responses."""
    figure, ax = axes(title, "tenth of the responses, the fastest first", "share (%)")
    bottom = [0.0] * len(rows)
    for series, label in enumerate(SERIES_NAMES):
        heights = [row[series] * 100 for row in rows]
        ax.bar(range(1, len(rows) + 1), heights, bottom=bottom, label=label, color=GREYS[series],
               hatch=HATCHES[series], edgecolor="black", linewidth=0.5)
        bottom = [b + h for b, h in zip(bottom, heights)]
    ax.set_xticks(range(1, len(rows) + 1))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncol=2)
    return svg(figure, name)
