# SPDX-License-Identifier: Apache-2.0
"""Two plots as SVG text without any library: a distribution on a logarithmic axis, and bars with their range.

Colours are classes, so the page's style sets them for light and dark. Lines also differ by dashes.
"""

import math
from html import escape

from lab.page import number

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 34, 44
BAR, GAP = 26, 14
LABEL, NUMBER = 96, 140     # beside a bar: its name, and its number
LEGEND = {"stock": 400, "flash": 510}
NAMES = {"stock": "stock", "flash": "Flashpache"}
STEPS = (1, 2, 5)

STYLE = """
.chart { --ink: #1b1f24; --soft: #59636e; --grid: #d8dee4; --stock: #8a4b08; --flash: #0757ba; width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  .chart { --ink: #e6edf3; --soft: #9da7b3; --grid: #30363d; --stock: #e3a048; --flash: #6cb0ff; } }
.chart text { fill: var(--ink); font: 13px sans-serif; } .chart text.soft { fill: var(--soft); font-size: 12px; }
.chart text.title { font-weight: 600; font-size: 14px; }
.chart .grid { stroke: var(--grid); } .chart rect.shade { fill: var(--grid); opacity: .6; } .chart .range { stroke: var(--ink); stroke-width: 1.5; }
.chart path { fill: none; stroke-width: 2.2; } .chart path.stock { stroke: var(--stock); stroke-dasharray: 7 4; }
.chart path.flash { stroke: var(--flash); } .chart rect.stock { fill: var(--stock); } .chart rect.flash { fill: var(--flash); }
"""


def ticks(least, most):
    """1, 2, 5, 10, ... from the last one below the least to the first one above the most."""
    marks = [step * 10.0 ** power for power in range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 2)
             for step in STEPS]
    first = max(mark for mark in marks if mark <= least)
    last = min(mark for mark in marks if mark >= most)
    return [mark for mark in marks if first <= mark <= last]


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind and f" class={chr(34)}{kind}{chr(34)}"}>{escape(words)}</text>'


def chart(title, height, parts):
    return (f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
            f'{text(0, 16, title, "title")}{"".join(parts)}</svg>')


def distribution(title, series):
    """series: {"stock": [(ms, share)], "flash": ...}; the last thousandth of the responses is left out."""
    series = {key: [(max(ms, 1e-3), share) for ms, share in points if share <= 0.999] for key, points in series.items()}
    every = [ms for points in series.values() for ms, _ in points]
    marks = ticks(min(every), max(every))
    low, wide = math.log10(marks[0]), math.log10(marks[-1] / marks[0]) or 1

    def x(ms):
        return LEFT + (math.log10(ms) - low) / wide * (WIDTH - LEFT - RIGHT)

    def y(share):
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    parts = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        parts += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(share):.1f}" y2="{y(share):.1f}"/>',
                  text(LEFT - 6, y(share) + 4, f"{share:.0%}", "soft", "end")]
    shown = marks if len(marks) <= 10 else [mark for mark in marks if math.log10(mark).is_integer()]
    parts += [text(x(mark), HEIGHT - BOTTOM + 17, f"{mark:g}", "soft", "middle") for mark in shown]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "ms until the answer is there (logarithmic)", "soft", "middle"))
    for key, points in series.items():
        line = " ".join(f"{x(ms):.1f},{y(share):.1f}" for ms, share in points)
        parts += [f'<path class="{key}" d="M {line}"/>', f'<path class="{key}" d="M {LEGEND[key]},12 h 36"/>',
                  text(LEGEND[key] + 42, 16, NAMES[key])]
    return chart(title, HEIGHT, parts)


def over_time(title, series, shaded):
    """series: {"stock": [(second, share)], "flash": ...}; shaded: (from, to), in seconds."""
    last = max(second for points in series.values() for second, _ in points) or 1

    def x(second):
        return LEFT + second / last * (WIDTH - LEFT - RIGHT)

    def y(share):
        return HEIGHT - BOTTOM - min(share, 1) * (HEIGHT - TOP - BOTTOM)
    begin, end = (x(min(second, last)) for second in shaded)
    parts = [f'<rect class="shade" x="{begin:.1f}" y="{TOP}" width="{end - begin:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>']
    for share in (0, 0.5, 1):
        parts += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(share):.1f}" y2="{y(share):.1f}"/>',
                  text(LEFT - 6, y(share) + 4, f"{share:.0%}", "soft", "end")]
    parts += [text(x(last * part / 4), HEIGHT - BOTTOM + 17, f"{last * part / 4:.0f}", "soft", "middle") for part in range(5)]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "seconds", "soft", "middle"))
    for key, points in series.items():
        line = " ".join(f"{x(second):.1f},{y(share):.1f}" for second, share in points)
        parts += [f'<path class="{key}" d="M {line}"/>', f'<path class="{key}" d="M {LEGEND[key]},12 h 36"/>',
                  text(LEGEND[key] + 42, 16, NAMES[key])]
    return chart(title, HEIGHT, parts)


def bars(title, rows):
    """rows: [("stock" or "flash", Spread)], to one scale."""
    most = max(spread.most for _, spread in rows)
    room = WIDTH - LABEL - NUMBER
    parts, y = [], TOP
    for key, spread in rows:
        def x(value):
            return LABEL + value / most * room
        middle = y + BAR / 2
        parts += [text(0, middle + 5, NAMES[key]),
                  f'<rect class="{key}" x="{LABEL}" y="{y}" width="{x(spread.median) - LABEL:.1f}" height="{BAR}"/>',
                  f'<line class="range" x1="{x(spread.least):.1f}" x2="{x(spread.most):.1f}" y1="{middle}" y2="{middle}"/>',
                  text(x(spread.most) + 8, middle + 5, f"{number(spread.median)} a second")]
        y += BAR + GAP
    return chart(title, y, parts)
