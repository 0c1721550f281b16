# SPDX-License-Identifier: Apache-2.0
"""An operator's page: one sentence, two plots for each kind of request, then tables in an operator's words.

Above 1 % of unexpected statuses there is no verdict and no plot: the page says which statuses came instead.
"""

from collections import Counter, namedtuple
from html import escape

from lab import charts, metrics, verdict
from lab.page import details, number, page, ranged, table
from lab.verdict import NOISE

MOST_WRONG = 0.01
STEPS = ("capacity", "latency=equal")
# name: of the experiment; label: in the sentence.
Part = namedtuple("Part", "name label")
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; max-width: 46em; margin: 0 auto; padding: 12px; color: #1b1f24; background: #fff; }
h1 { font-size: 1.35em; line-height: 1.35; } h2 { font-size: 1.1em; margin: 2em 0 .4em; }
.key b { font-weight: 600; } .wide { overflow-x: auto; } figure { margin: 1.2em 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92em; width: 100%; }
th, td { padding: .35em .6em; border-bottom: 1px solid #d8dee4; text-align: right; vertical-align: top; }
th:first-child, td:first-child, td.text, th.text { text-align: left; } small, .note { color: #59636e; font-size: .88em; }
pre { overflow-x: auto; font-size: .8em; }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117; }
  th, td { border-color: #30363d; } small, .note { color: #9da7b3; } a { color: #6cb0ff; } }
""" + charts.STYLE
ROWS = (("Requests a second, at most", "capacity", ("requests_per_s",), False),
        ("Half of the answers are there within (ms)", "latency=equal", ("ms", "p50"), True),
        ("99 of 100 answers are there within (ms)", "latency=equal", ("ms", "p99"), True),
        ("Processor time for a request (µs)", "capacity", ("cpu_us",), True),
        ("Memory of the server (MiB)", "capacity", ("memory_mib",), True))


def better(found, part, pair, step, path, less):
    """(stock's Spread, Flashpache's, how many times better), or None."""
    theirs, ours = (found.values(part.name, key, step, *path) for key in pair)
    if not theirs or not ours:
        return None
    ratio = metrics.ratio(theirs, ours) if less else metrics.ratio(ours, theirs)
    return (metrics.spread(theirs), metrics.spread(ours), ratio) if ratio else None


def factor(ratio):
    return NOISE if verdict.judge(ratio) == NOISE else f"{number(ratio.median)}x"


def reason(found, part, pair, page_ms):
    """The first measure that differs beyond the noise, or None."""
    for step, path, text in (("latency=equal", ("ms", "mean"), "{} ms become {} ms at the same load"),
                             ("capacity", ("cpu_us",), "{} µs of processor time become {}")):
        found_both = better(found, part, pair, step, path, True)
        if found_both and verdict.judge(found_both[2]) != NOISE:
            break
    else:
        return None
    text = text.format(*(number(spread.median) for spread in found_both[:2]))
    if part.name == "pages" and step != "capacity":
        return f"{text}, of which the page's own program takes {number(page_ms)} ms either way"
    return text


def sentence(found, parts, pair, page_ms):
    """The answer: how many times as many requests a second, and why; None where nothing was measured."""
    said, why = [], []
    for part in parts:
        most = better(found, part, pair, "capacity", ("requests_per_s",), False)
        if most:
            said.append(f"{part.label}: {factor(most[2])}")
            because = reason(found, part, pair, page_ms) if factor(most[2]) != NOISE else None
            why += [f"{'for a page' if part.name == 'pages' else 'for a static request'} {because}"] if because else []
    if not said:
        return None
    more = " Longer measurements have less noise (--seconds, --rounds)." if any(NOISE in part for part in said) else ""
    return ", ".join(said) + (f", because {'; '.join(why)}." if why else f".{more}")


def unexpected(found, part, pair):
    """(largest share of a step's answers that have another status than expected, Counter of those)"""
    share, seen = 0.0, Counter()
    for key in pair:
        for each in (one for step in STEPS for one in found.rounds(part.name, key, step)):
            others = Counter(each.get("unexpected") or {})
            wrong = max(sum(others.values()), each.get("errors") or 0)
            if wrong > sum(others.values()):
                others["no answer"] += wrong - sum(others.values())
            share = max(share, wrong / max(1, each.get("requests") or 0))
            seen += others
    return share, seen


def refusal(found, parts, pair):
    """Why there is no verdict, or None."""
    left_out = found.store.facts("left_out")
    if left_out.get("unexpected", 0) > MOST_WRONG:
        return (f"No verdict: {left_out['unexpected']:.1%} of the requests have another status than the log says "
                f"({left_out['what']}). A later log, or the log's own documents and configuration, would fit better.")
    for part in parts:
        share, seen = unexpected(found, part, pair)
        if share > MOST_WRONG:
            what = ", ".join(f"{count} times {status}" for status, count in seen.most_common())
            return (f"No verdict: {share:.1%} of the responses had another status than expected ({part.label}: {what}). "
                    "The error.log of the servers, or a shorter list of requests, shows why.")
    return None


def plots(found, part, pair):
    series = {}
    for name, key in zip(("stock", "flash"), pair):
        middle = found.middle(part.name, key, "latency=equal", "ms", "p50")
        if middle:
            series[name] = middle["cdf"]
    speeds = [(name, found.spread(part.name, key, "capacity", "requests_per_s")) for name, key in zip(("stock", "flash"), pair)]
    speeds = [row for row in speeds if row[1]]
    text = ""
    if series:
        text += f"<figure>{charts.distribution(f'How long {part.label} take, at the same load', series)}</figure>"
    if speeds:
        text += f"<figure>{charts.bars(f'{part.label.capitalize()} a second, at most', speeds)}</figure>"
    return text


def numbers(found, part, pair):
    rows = []
    for label, step, path, less in ROWS:
        row = better(found, part, pair, step, path, less)
        if row:
            rows.append([escape(label), ranged(row[0]), ranged(row[1]), escape(factor(row[2]))])
    return (f"<h2>{escape(part.label.capitalize())}</h2>"
            + table(["", "stock Apache", "with Flashpache", "better by"], rows)) if rows else ""


def terms(found, parts, page_ms):
    """The requests, their source, and all that the numbers leave out."""
    lines = [found.rigs[part.name]["about"] for part in parts if part.name in found.rigs]
    lines.append("The same load is half of what stock Apache can serve. Small numbers are the range of the rounds.")
    if any(part.name == "pages" for part in parts):
        lines.append(f"A stub stands for PHP, other interpreters and proxies: it answers after {number(page_ms)} ms (--page-ms). "
                     "Files that your PHP itself opens are not in these numbers.")
    lines.append("Both servers were private ones, in a network that has nothing but a loopback of its own.")
    return "".join(f'<p class="note">{escape(line)}</p>' for line in lines)


def body(found, parts, pair, page_ms, more=""):
    refused = refusal(found, parts, pair)
    head = refused or sentence(found, parts, pair, page_ms) or "Nothing could be measured."
    shown = "" if refused else "".join(plots(found, part, pair) for part in parts)
    tables = "" if refused else "".join(numbers(found, part, pair) for part in parts)
    machine = "\n".join(f"{name}: {value}" for name, value in found.store.facts("machine").items())
    configurations = "".join(details(f"Configuration: {key}", text)
                             for key, text in found.store.facts("configurations").items())
    return (f"<h1>{escape(head)}</h1>{shown}{tables}<h2>What was measured</h2>{terms(found, parts, page_ms)}"
            + more + details("Machine", machine) + configurations)


def write(found, parts, pair, page_ms, more=""):
    """Writes report.html, which needs nothing else; its path."""
    path = found.store.directory / "report.html"
    path.write_text(page("Stock Apache and Flashpache on this site", body(found, parts, pair, page_ms, more), STYLE))
    return path
