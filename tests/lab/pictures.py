#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The plots of a page of the lab (outage.py --page, scripts/compare), each as an SVG file of its own, for documents.

  tests/lab/pictures.py PAGE.html NAME      writes NAME-1.svg, NAME-2.svg, ...; NAME.svg if there is one plot
"""

import argparse
import re
import sys
from pathlib import Path

import lab_kit  # noqa: F401
from lab import charts

CHART = re.compile(r'<svg class="chart".*?</svg>', re.DOTALL)
BACKGROUND = ".chart { background: #fff; } @media (prefers-color-scheme: dark) { .chart { background: #0d1117; } }"


def picture(chart):
    """The plot as a document: it brings the style that the page had."""
    head, rest = chart.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">\n<style>{charts.STYLE}{BACKGROUND}</style>\n{rest}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("name", type=Path, help="of the pictures, without .svg")
    wanted = parser.parse_args()
    try:
        plots = CHART.findall(wanted.page.read_text())
    except OSError as problem:
        sys.exit(f"pictures.py: {problem}")
    if not plots:
        sys.exit(f"pictures.py: {wanted.page}: no plot in it; give a page of outage.py or scripts/compare")
    for number, chart in enumerate(plots, 1):
        file = wanted.name.with_name(wanted.name.name + (f"-{number}" if len(plots) > 1 else "") + ".svg")
        file.write_text(picture(chart))
        print(file)


if __name__ == "__main__":
    main()
