# SPDX-License-Identifier: Apache-2.0
"""Pieces of the page: tables, figures with their captions, numbers with their range."""

from html import escape

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 sans-serif; max-width: 60em; margin: 0 auto; padding: 0 12px; color: #111; background: #fff; }
h1 { font-size: 1.5em; } h2 { font-size: 1.25em; border-top: 2px solid #111; padding-top: .6em; margin-top: 2em; }
h3 { font-size: 1.05em; margin-bottom: .3em; }
.wide { overflow-x: auto; margin: .5em 0 1em; }
table { border-collapse: collapse; font-size: .85em; font-variant-numeric: tabular-nums; }
th, td { padding: .25em .6em; border-bottom: 1px solid #bbb; text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
td.text, th.text { text-align: left; }
td small { color: #444; white-space: nowrap; }
td:first-child { white-space: nowrap; }
td.text { min-width: 14em; }
figure { margin: 1em 0; max-width: 40em; } figure svg { width: 100%; height: auto; }
figcaption, .note { font-size: .85em; color: #333; }
.warn { border-left: 4px solid #111; padding-left: .6em; }
pre { font-size: .75em; overflow-x: auto; background: #f4f4f4; padding: .6em; }
nav a { display: inline-block; margin-right: 1em; }
"""


def number(value):
    """Three digits that count."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def ranged(spread):
    """The median with the range below it."""
    if spread is None:
        return "-"
    if spread.least == spread.most:
        return number(spread.median)
    return f"{number(spread.median)}<br><small>{number(spread.least)} to {number(spread.most)}</small>"


def table(head, rows, text_columns=()):
    """Cells are HTML already; text_columns are set flush left."""
    def cell(tag, index, value):
        kind = ' class="text"' if index in text_columns else ""
        return f"<{tag}{kind}>{value}</{tag}>"
    top = "".join(cell("th", i, value) for i, value in enumerate(head))
    body = "".join("<tr>" + "".join(cell("td", i, value) for i, value in enumerate(row)) + "</tr>\n"
                   for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def figure(svg, caption, stamp):
    """stamp: the machine and the command."""
    return f"<figure>{svg}<figcaption>{escape(caption)}<br><small>{escape(stamp)}</small></figcaption></figure>"


def details(title, text):
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def note(text, warn=False):
    return f'<p class="note{" warn" if warn else ""}">{escape(text)}</p>'


def page(title, body, style=STYLE):
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{style}</style></head>\n'
            f"<body>\n{body}\n</body></html>\n")
