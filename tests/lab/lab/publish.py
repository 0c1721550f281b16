# SPDX-License-Identifier: Apache-2.0
"""The report that ships: Markdown pages, a plot and its points for each figure, the raw results as CSV.

The same results give the same bytes. Old pages, plots and tables of the directory are removed. Nothing else is, and no page
that people write.
"""

import csv
import io
import re

from lab import across, catalog, conclusions, figures, parts, programs, redraw, sections
from lab.findings import Findings, flat
from lab.markdown import ARCHITECTURES, FOUND, INDEX, PAPERS, number, picture, ranged, table
from lab.metrics import ratio
from lab.rounds import counterpart

COLUMNS = ("mean", "p50", "p90", "p99")
MOST_LINES = 8              # of a plot
PLOTTED = (("mean", "mean"), ("p90", "90th percentile"))
SVG_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
# Pages of the directory that people write.
BY_HAND = {"former", "hits", "rigs", "runs", "slower", "slow-files"}
OUT_OF_CSV = {"at"}         # moments, which say nothing

INDEX_HEAD = """# Results of the last full run

For readers who want to check the figures for themselves. Every number is the median of the rounds, with their range. Compare
ratios: absolute times hold only for [this machine](#the-machine).

| page | |
|---|---|
| [What we found]({found}.md) | where Flashpache helps, where it does not, and what is new |
| [The papers' figures]({papers}.md) | each table and figure of the papers, with ours |
"""
ARCHITECTURES_ROW = f"| [Architectures]({ARCHITECTURES}.md) | one server with each of the papers' architectures, in all rigs |\n"
# The plot that shows most of a rig, beside that of all rigs.
TELLING = ("slowfs-mean", "Mean latency by load, with 2 ms for each lookup of a name")
INDEX_END = """
`raw/` has every measurement as CSV, `figures/` each plot with its points. `tests/lab/run` repeats the run, and `tests/lab/run
--publish docs/results` rewrites these pages.

## The machine
"""
PART_HEAD = """# {name}: {about}

For readers who want every number of this part of the run, and the conditions under which it was measured.{took}
`tests/lab/run --part {name}` repeats it.

"""
PAPERS_HEAD = """# The papers' tables and figures

For readers who know the papers. Each of their tables and figures is shown with today's values, or with the reason why these are
missing. `tests/lab/run --figure NAME` measures and draws one again, in minutes. `ruan-4` is Ruan and Pai's figure 4,
`ruan-table-5` their table 5. The points of a plot are in `figures/NAME.csv`.
"""


def csv_text(head, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


def rounded(value):
    """Numbers with six digits: no more are known."""
    return f"{value:.6g}" if isinstance(value, float) else value


class Pages:
    """Collects the files of a directory, and writes them at the end."""

    def __init__(self, directory):
        self.directory, self.files = directory, {}

    def add(self, name, text):
        self.files[name] = text

    def draw(self, name, svg, points):
        """A plot, and its points beside it."""
        if svg:
            self.add(f"figures/{name}.svg", SVG_HEAD + re.sub(r"[ \t]+\n", "\n", svg).strip() + "\n")
        if points:
            rows = [[rounded(value) for value in point] for point in points]
            self.add(f"figures/{name}.csv", csv_text(("series", "x", "median", "least", "most"), rows))

    def write(self):
        for pattern in ("*.md", "figures/*.svg", "figures/*.csv", "raw/*.csv"):
            for old in self.directory.glob(pattern):
                if str(old.relative_to(self.directory)) not in self.files and old.stem not in BY_HAND:
                    old.unlink()
        for name, text in self.files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


# One experiment

def reference_of(experiment):
    """The plan's, for an experiment of the full run."""
    return next((one.reference for part in parts.full() for one in part.experiments if one.name == experiment), None)


def capacity_rows(found, experiment):
    keys, reference = found.servers(experiment), reference_of(experiment)
    for key in keys:
        rates = found.store.by_round(experiment, key, "capacity")
        other = counterpart(key, keys, reference)
        theirs = found.store.by_round(experiment, other, "capacity")
        ratios = [rates[n]["requests_per_s"] / theirs[n]["requests_per_s"] for n in rates
                  if theirs.get(n, {}).get("requests_per_s")]
        factor = ratio(ratios, [1]) if ratios and other != key else None
        row = [found.spread(experiment, key, "capacity", what) for what in ("mbit_per_s", "cpu_us", "memory_mib", "reads")]
        calls = found.spread(experiment, key, "system_calls", "calls")
        if rates:
            rate = found.spread(experiment, key, "capacity", "requests_per_s")
            errors = sum(found.values(experiment, key, "capacity", "errors"))
            yield [key, len(rates), ranged(rate), ranged(factor), other if factor else "-", *map(ranged, row), ranged(calls),
                   number(errors)]


def capacity(found, experiment):
    rows = list(capacity_rows(found, experiment))
    head = ["server", "rounds", "requests/s", "ratio", "to", "Mbit/s", "CPU us/request", "memory MiB", "disk reads/request",
            "system calls/request", "errors"]
    return "\n### Capacity\n" + table(head, rows) if rows else ""


def latency(found, experiment):
    steps = [(f"at {load:g} of its own capacity", f"latency@{load:g}") for load in found.loads(experiment)]
    steps.append(("at the same rate, half of the reference's capacity", "latency=equal"))
    rows = []
    for label, step in steps:
        for key in found.servers(experiment):
            if found.values(experiment, key, step, "ms", "mean"):
                rows.append([label, key, *(ranged(found.spread(experiment, key, step, "ms", name)) for name in COLUMNS),
                             ranged(found.spread(experiment, key, step, "inversion")),
                             number(sum(found.values(experiment, key, step, "failed")))])
    head = ["load", "server", *(f"{name} ms" for name in COLUMNS), "inversion", "failed"]
    return "\n### Latency\n" + table(head, rows) if rows else ""


def plots(found, experiment, pages):
    """Mean and 90th percentile by load, where there are loads enough for a curve."""
    text = ""
    for what, label in PLOTTED:
        series = {key: redraw.by_load(found, experiment, key, "ms", what) for key in found.servers(experiment)}
        series = {key: points for key, points in series.items() if len(points) > 1}
        if not series:
            continue
        series = dict(list(series.items())[:MOST_LINES])
        name = f"{experiment}-{what}"
        svg = figures.lines(name, f"{experiment}: {label} latency", "share of own capacity", "ms", series, log_y=True)
        pages.draw(name, svg, list(redraw.points_of(series)))
        text += picture(name, f"{label} latency by load, {experiment}")
    return text


def hot_file(found, experiment):
    rows = [[key, *(ranged(found.spread(experiment, key, "head_of_line", "ms", name)) for name in COLUMNS)]
            for key in found.servers(experiment) if found.rounds(experiment, key, "head_of_line")]
    head = ["server", *(f"{name} ms" for name in COLUMNS)]
    return "\n### A hot 1 KB file while others miss, at 0.8 of the capacity\n" + table(head, rows) if rows else ""


def sleepers(found, experiment):
    rows = []
    for key in found.servers(experiment):
        threads = found.spread(experiment, key, "sleepers", "threads")
        waits = sorted({name for each in found.rounds(experiment, key, "sleepers") for name in each["most"]})
        rows += [[key, ranged(threads), name, ranged(found.spread(experiment, key, "sleepers", "mean", name)),
                  ranged(found.spread(experiment, key, "sleepers", "most", name))] for name in waits]
    head = ["server", "threads", "wait for", "on average", "at most"]
    return "\n### What threads wait for\n" + table(head, rows) if rows else ""


def disturbances(found, experiment):
    """The report in HTML has the same warnings."""
    return re.sub(r"<[^>]+>", "", sections.warnings(found, experiment).replace("</p>", "\n\n"))


def experiment_text(found, experiment, pages):
    facts = found.rigs[experiment]
    text = f"\n## {experiment}\n\n"
    if facts["impossible"]:
        return text + f"Not measured: {facts['impossible']}\n"
    text += f"{facts['about']}; {facts['connections']:,} connections.\n\n"
    text += "".join(f"- {'holds' if each['holds'] else '**does not hold**'}: {each['what']} ({each['detail'].strip()})\n"
                    for each in facts["premises"])
    parts_of = (capacity(found, experiment), disturbances(found, experiment), plots(found, experiment, pages),
                latency(found, experiment), hot_file(found, experiment), sleepers(found, experiment))
    return text + "".join(parts_of)


def raw(found, experiment):
    """A row for each measurement, with all its numbers."""
    rows = []
    for key in found.servers(experiment):
        for path in sorted((found.store.directory / experiment / key).glob("*.json")):
            step, number_, _ = path.name.rsplit(".", 2)
            values = dict(flat(found.store.get(experiment, key, step, number_)))
            rows.append({"server": key, "step": step, "round": number_, **values})
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in OUT_OF_CSV]
    return csv_text(names, [[rounded(row.get(name, "")) for name in names] for row in rows])


# Parts

def program_text(found, program):
    path = found.store.program(program.name)
    if not path.exists():
        return ""
    command = " ".join(["tests/lab/" + program.script, *program.options])
    numbers = programs.TABLES[program.script](found.store.read(path))
    return f"\n## {program.name}\n\n`{command}`: [all its numbers](raw/{program.name}.csv).\n{numbers}"


def part_page(found, part, pages):
    texts = [experiment_text(found, one.name, pages) for one in part.experiments if one.name in found.rigs]
    texts += [program_text(found, one) for one in part.programs]
    if not any(texts):
        return False
    fact = found.store.facts("parts").get(part.name, {})
    took = f" It took {fact['spent_s'] / 60:.1f} of at most {fact['minutes']:g} minutes." if fact else ""
    left = "".join(f"- left out for lack of time: {what}\n" for what in dict.fromkeys(fact.get("left_out", [])))
    pages.add(f"{part.name}.md", PART_HEAD.format(name=part.name, about=part.about, took=took) + left + "".join(texts))
    for one in part.experiments:
        if one.name in found.rigs:
            pages.add(f"raw/{one.name}.csv", raw(found, one.name))
    for one in part.programs:
        add_program_csv(found, one, pages)
    return True


def add_program_csv(found, program, pages):
    path = found.store.program(program.name)
    if path.exists():
        rows = [(name, rounded(value)) for name, value in numbered(found.store.read(path))]
        pages.add(f"raw/{program.name}.csv", csv_text(("what", "value"), rows))


def numbered(value, before=""):
    """(dotted name, value) of all values, those in lists by their place."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in pairs:
        if isinstance(each, (dict, list)):
            yield from numbered(each, f"{before}{name}.")
        elif each is not None:
            yield f"{before}{name}", each


# The papers

def anchor(entry):
    """The anchor that GitHub makes of its heading."""
    return re.sub(r"[^\w\- ]", "", f"{entry.label}: {entry.title}".lower()).replace(" ", "-")


def entry_text(found, entry, pages):
    text = f"\n### {entry.label}: {entry.title}\n\n" + (f"The paper: {entry.theirs}.\n" if entry.theirs else "")
    if entry.same:
        one = catalog.find(entry.same)
        return text + f"\nSee [{one.label}](#{anchor(one)}) in the first list. {entry.reason or ''}".rstrip() + "\n"
    if entry.reason:
        return text + f"\nNone here. {entry.reason}\n"
    drawing = redraw.drawn(found, entry)
    if not drawing:
        return text + f"\nNot measured in this run: `tests/lab/run --figure {entry.name}`.\n"
    pages.draw(entry.name, drawing.svg, drawing.points)
    return text + (picture(entry.name, entry.title) if drawing.svg else "") + f"\n{drawing.text.strip()}\n"


def paper_page(found, pages):
    text = PAPERS_HEAD
    for paper in dict.fromkeys(entry.paper for entry in catalog.ENTRIES):
        text += f"\n## {paper}\n" + "".join(entry_text(found, entry, pages) for entry in catalog.ENTRIES if entry.paper == paper)
    pages.add(f"{PAPERS}.md", text)


# The whole

def telling(pages):
    """The two plots that say most, if there are any."""
    chosen = ((across.BY_RIG, across.BY_RIG_TITLE), TELLING)
    return "".join(picture(name, title) for name, title in chosen if f"figures/{name}.svg" in pages.files)


def index(found, measured, pages):
    machine = found.store.facts("machine")
    links = ARCHITECTURES_ROW if f"{ARCHITECTURES}.md" in pages.files else ""
    links += "".join(f"| [{part.name}]({part.name}.md) | {part.about} |\n" for part in measured)
    text = INDEX_HEAD.format(found=FOUND, papers=PAPERS) + links + telling(pages) + INDEX_END
    text += table(["", ""], [[name, value] for name, value in machine.items()])
    failures = [[experiment, server, step, why] for experiment, server, step, why in found.store.failures()]
    if failures:
        text += "\n## What could not be measured\n" + table(["where", "server", "what", "why"], failures)
    pages.add(f"{INDEX}.md", text)
    pages.add("raw/machine.csv", csv_text(("what", "value"), machine.items()))


def write(store, directory):
    """Writes all pages; the index's path."""
    found, pages = Findings(store), Pages(directory)
    measured = [part for part in parts.full() if part_page(found, part, pages)]
    plot = picture(across.BY_RIG, across.BY_RIG_TITLE) if across.draw_by_rig(found, pages) else ""
    pages.add(f"{FOUND}.md", conclusions.text(found, plot))
    architectures = across.architectures(found)
    if architectures:
        pages.add(f"{ARCHITECTURES}.md", architectures)
    paper_page(found, pages)
    index(found, measured, pages)
    pages.write()
    return directory / f"{INDEX}.md"


def write_figure(store, name, directory):
    """Writes one figure, its points and its text; the path of the text."""
    found, pages, entry = Findings(store), Pages(directory), catalog.find(name)
    pages.add(f"figures/{name}.md", f"# {entry.paper}\n{entry_text(found, entry, pages)}".replace("](figures/", "]("))
    for file, text in pages.files.items():
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).write_text(text)
    return directory / f"figures/{name}.md"
