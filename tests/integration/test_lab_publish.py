# SPDX-License-Identifier: Apache-2.0
"""The lab's report as it ships: complete, the same each time, small, and saying no more than its numbers."""

import csv
import importlib.machinery
import importlib.util
import re
import shutil
import sys
import xml.etree.ElementTree as ET

import pytest

from conftest import REPO

sys.path.insert(0, str(REPO / "tests" / "lab"))
pytest.importorskip("matplotlib", reason="needs python3-matplotlib")

import lab_results  # noqa: E402
import tree  # noqa: E402
from lab import catalog, conclusions, parts, publish  # noqa: E402
from lab.findings import Findings  # noqa: E402
from lab.metrics import Spread  # noqa: E402
from lab.store import Store  # noqa: E402

MOST_BYTES = 100_000
STOCK, FLASH = "stock-prefork-None", "flash-prefork-None"


PUT_PROGRAM = {"srpt.py": lab_results.put_srpt, "hit_cost.py": lab_results.put_hit, "growth.py": lab_results.put_growth}


def page_of(directory, name):
    return directory / f"{name}.md"


def results_of(directory, names):
    """Results of these parts, in which Flashpache is ten times faster on slowfs, and alike elsewhere."""
    store = Store(directory)
    store.facts("machine", {"processor": "2 x a processor", "command": "tests/lab/run"})
    for part in (parts.PARTS[name]() for name in names):
        for one in part.experiments:
            def rate_of(key, name=one.name):
                return (5000, 5) if key.startswith("flash") and name == "slowfs" else (500, 50)
            lab_results.put_experiment(store, one.name, {key: rate_of(key) for key in one.servers})
        for one in part.programs:
            PUT_PROGRAM[one.script](store, one.name)
        fact = {"spent_s": 60.0, "minutes": part.minutes, "left_out": ["a round"]}
        store.facts("parts", {**store.facts("parts"), part.name: fact})
    return store


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The pages of a whole run, whose figures take long to draw: in the full form."""
    base = tmp_path_factory.mktemp("published")
    publish.write(results_of(base / "results", parts.PARTS), base / "pages")
    return base / "pages"


def prose_of(repo):
    """scripts/prose, for the pages of another directory."""
    loader = importlib.machinery.SourceFileLoader("prose", str(REPO / "scripts/prose"))
    prose = importlib.util.module_from_spec(importlib.util.spec_from_loader("prose", loader))
    loader.exec_module(prose)
    prose.REPO = repo
    return prose


def mistakes(pages, work):
    """All that scripts/prose would find in the pages, if they lay in docs/results."""
    for page in (*REPO.glob("docs/**/*.md"), *REPO.glob("tests/lab/**/*.md")):
        tree.put(work / page.relative_to(REPO), page.read_text())
    results = work / "docs/results"
    shutil.rmtree(results, ignore_errors=True)
    shutil.copytree(pages, results)
    prose = prose_of(work)
    found = [f"{page.name}: {each}" for page in results.glob("*.md")
             for each in (*prose.wrong_links(page), *prose.wrong_begin(page), *prose.wrong_names(page))]
    spelling = prose.check_spelling() if shutil.which("codespell") else []
    return found + [line for line in spelling if "docs/results" in line]


def files_of(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_the_same_results_give_the_same_bytes(tmp_path):
    store = results_of(tmp_path / "results", ["link", "srpt"])
    publish.write(store, tmp_path / "once")
    (tmp_path / "twice").mkdir()
    page_of(tmp_path / "twice", "old").write_text("of a run before\n")
    (tmp_path / "twice/notes.txt").write_text("not ours\n")
    for name in publish.BY_HAND:
        page_of(tmp_path / "twice", name).write_text("of a writer\n")
    publish.write(store, tmp_path / "twice")
    once, twice = files_of(tmp_path / "once"), files_of(tmp_path / "twice")
    assert twice.pop("notes.txt") == b"not ours\n"
    assert {twice.pop(f"{name}.md") for name in publish.BY_HAND} == {b"of a writer\n"}
    assert once == twice and len(once) > 20


@pytest.mark.full
def test_plots_are_small_and_stand_alone(published):
    for path in (published / "figures").glob("*.svg"):
        assert path.stat().st_size < MOST_BYTES, path.name
        root = ET.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.get("viewBox")
        assert "<dc:date>" not in path.read_text()
        with open(path.with_suffix(".csv")) as points:
            rows = list(csv.DictReader(points))
        assert rows and all(row["series"] and float(row["median"]) >= 0 for row in rows), path.name


@pytest.mark.full
def test_links_lead_somewhere(published):
    for page in published.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            where = REPO / "docs/results" if target.startswith("../") else published
            assert (where / target).resolve().exists(), f"{page.name}: {target}"


@pytest.mark.full
def test_pages_pass_the_check_of_pages(published, tmp_path):
    """They are part of the documentation: scripts/test and CI check them with the others."""
    assert len(list(published.glob("*.md"))) == len(parts.PARTS) + 4 and mistakes(published, tmp_path) == []


@pytest.mark.full
def test_every_table_and_figure_of_the_papers_has_ours_or_a_reason(published):
    text = page_of(published, "papers").read_text()
    assert "Not measured in this run" not in text and "| 1,024 | 2.46 / 2.10 | 40.7 / 39.5 | 55.6 / 64.6 | 137 / 138 |" in text
    assert len(re.findall(r"^### ", text, re.M)) == len(catalog.ENTRIES)
    for entry in catalog.ENTRIES:
        assert f"### {entry.label}: {entry.title}\n" in text
        assert entry.same or bool(entry.draw) != bool(entry.reason)
        assert not entry.same or catalog.find(entry.same).draw or catalog.find(entry.same).reason
    named = {entry.name for entry in catalog.ENTRIES}
    wanted = ([f"ruan-table-{n}" for n in range(1, 7)] + [f"ruan-{n}" for n in range(1, 25)]
              + [f"ruan-other-table-{n}" for n in (1, 2)] + [f"ruan-other-{n}" for n in range(1, 19)]
              + [f"harchol-{n}" for n in (5, 6, *range(8, 13))] + [f"pariag-{n}" for n in range(1, 9)] + ["pariag-table-1"])
    assert set(wanted) <= named and len(named) == len(catalog.ENTRIES)


@pytest.mark.full
def test_raw_results_have_every_measurement(published):
    with open(published / "raw/slowfs.csv") as raw:
        rows = list(csv.DictReader(raw))
    of_stock = [row for row in rows if (row["server"], row["step"]) == ("stock-event-All", "capacity")]
    assert [float(row["requests_per_s"]) for row in of_stock] == [500, 505, 510]
    assert (published / "raw/srpt-10.csv").read_text().count("mean_ms") == 6


@pytest.mark.full
def test_telling_plots_and_architectures_of_all_rigs(published):
    with open(published / "figures/flashpache-by-rig.csv") as points:
        ratios = {row["series"]: float(row["median"]) for row in csv.DictReader(points)}
    assert ratios["slowfs, event, All"] == 10 and ratios["disk, prefork, None"] == 1
    with open(published / "figures/slowfs-mean.csv") as points:
        of_stock = [row["x"] for row in csv.DictReader(points) if row["series"] == "stock-event-All"]
    assert len(of_stock) == len(lab_results.LOADS)
    for page in ("README", "found"):
        assert "](figures/flashpache-by-rig.svg)" in page_of(published, page).read_text()
    assert "](figures/slowfs-mean.svg)" in page_of(published, "README").read_text()
    rows = re.findall(r"^\| arch-mp \|.*$", page_of(published, "architectures").read_text(), re.M)
    rigs = {one.rig for part in parts.full() for one in part.experiments}
    assert len(rows) == 2 and all(row.count("|") == len(rigs) + 3 and "| - |" not in row for row in rows)


@pytest.mark.full
def test_programs_have_tables(published):
    assert "| 10 | 0.9 | 72.0 | 9.00 | 8.00 | 40.0 | 4.00 | 10.0 | 80.0 | 10.0 | 8.00 |" in page_of(published, "srpt").read_text()
    assert "| event/All/5000/1 | lease |" in page_of(published, "memory").read_text()
    growth = page_of(published, "growth").read_text()
    assert "| 1,024 | 80.0 (72.0-88.0) | 40.0 (36.0-44.0) | 0.500 (0.450-0.550) |" in growth
    assert "| 100,000 | absent names | by Zipf's law |" in growth


@pytest.mark.full
def test_the_machine_and_what_was_left_out_are_named(published):
    assert "2 x a processor" in page_of(published, "README").read_text()
    assert "left out for lack of time: a round" in page_of(published, "disk").read_text()


@pytest.mark.full
def test_what_was_found_is_what_the_numbers_say(published):
    text = page_of(published, "found").read_text()
    helps, even, loses = (text.split(f"## {head}\n")[1].split("\n## ")[0] for head in
                          ("Where Flashpache helps", "Where nothing is gained", "Where it loses"))
    assert re.findall(r"^### `([\w-]+)`", helps, re.M) == ["slowfs"] and "10.0 times as many requests/s\n" in helps
    assert "`disk`" in even and "`slowfs`" in even and "`disk`" not in helps
    assert conclusions.NOTHING.strip() in loses and "Flashpache loses nowhere" in text
    assert "50 of 100 threads of stock httpd" in text and "5 of Flashpache's" in text


def found_page(directory, rate_of):
    """The page for results in which Flashpache has rate_of(experiment) times stock's requests/s."""
    store = Store(directory)
    for part in parts.full():
        for one in part.experiments:
            rates = {key: 100 * (rate_of(one.name) if key.startswith("flash") else 1) for key in one.servers}
            lab_results.put_experiment(store, one.name, {key: (rate, 2000 / rate) for key, rate in rates.items()})
    return conclusions.text(Findings(store))


def alternating(experiment):
    return (2, 0.5, 1)[list(conclusions.EXPERIMENTS).index(experiment) % 3] if experiment in conclusions.EXPERIMENTS else 1


@pytest.mark.parametrize("rate_of, present, absent", [
    (lambda _: 3, ["helps most with", "It also helps with", "loses nowhere"], ["Nothing is gained", "may say why", "No convoy"]),
    (lambda _: 0.5, ["helps nowhere", "loses most with", "It also loses with", "2.00 times as high"], ["Nothing is gained"]),
    (lambda _: 1, ["helps nowhere", "loses nowhere", "may say why", "within the noise"], ["It also"]),
    (alternating, ["helps most with memory", "It also helps with slow but kept names and a disk",
                   "Nothing is gained with a slow file system and a slow link", "loses most with"], ["nowhere"])])
def test_sentences_of_what_was_found_go_by_the_numbers_and_are_short(tmp_path, rate_of, present, absent):
    text = found_page(tmp_path / "results", rate_of)
    assert [words for words in present if words not in text] == [] == [words for words in absent if words in text]
    page = tree.put(page_of(tmp_path, "found"), text)
    prose = prose_of(REPO)
    assert [" ".join(one.words) for one in prose.sentences(page) if len(one.words) > prose.LONG or prose.is_headless(one)] == []


def test_a_convoy_is_told_only_where_there_was_one(tmp_path):
    store = Store(tmp_path)
    lab_results.put_experiment(store, "slowfs", {"stock-event-All": (100, 5)})
    assert "No convoy on missing `.htaccess` files" in conclusions.text(Findings(store))


@pytest.mark.parametrize("least, most, rounds, word", [
    (1.2, 1.4, 3, "helps"), (1.05, 1.4, 3, "even"), (0.5, 0.8, 3, "loses"), (0.5, 0.95, 3, "even"),
    (1.2, 1.2, 1, "even"), (1.6, 1.6, 1, "helps"), (0.6, 0.6, 1, "loses"), (0.8, 0.8, 1, "even")])
def test_a_difference_counts_only_beyond_the_noise(least, most, rounds, word):
    claim = conclusions.Claim("disk", "prefork", conclusions.REQUESTS, Spread((least + most) / 2, least, most), rounds)
    assert conclusions.verdict(claim) == word


def test_a_ratio_is_of_rounds_that_both_have(tmp_path):
    """The machine was twice as fast in the second round, and Flashpache's third one failed."""
    store = Store(tmp_path)
    lab_results.put_experiment(store, "disk", {STOCK: (1, 1), FLASH: (1, 1)})
    for number, (stock, flash) in enumerate(((100, 200), (200, 400), (100, None))):
        store.put(("disk", STOCK, "capacity", number), {"requests_per_s": stock})
        store.put(("disk", FLASH, "capacity", number), {"requests_per_s": flash} if flash else {"failure": "why"})
    found = conclusions.factors(Findings(store), "disk", (STOCK, FLASH), conclusions.REQUESTS)
    assert found == [2.0, 2.0]


def test_a_part_of_a_run_is_published_without_the_rest(tmp_path):
    store = Store(tmp_path / "results")
    store.facts("machine", {"processor": "one"})
    lab_results.put_experiment(store, "slowfs", {"stock-event-All": (100, 50)})
    facts = store.facts("rigs")
    facts["network"] = {"about": "", "impossible": "rig network: sshfs is not installed (package sshfs)", "connections": 1,
                        "bytes": 1, "premises": []}
    store.facts("rigs", facts)
    publish.write(store, tmp_path / "pages")
    text = page_of(tmp_path / "pages", "papers").read_text()
    assert "Not measured in this run: `tests/lab/run --figure ruan-4`" in text
    assert "sshfs is not installed" in page_of(tmp_path / "pages", "network").read_text()
    assert mistakes(tmp_path / "pages", tmp_path / "repository") == []
    assert not page_of(tmp_path / "pages", "disk").exists() and conclusions.NOTHING in page_of(tmp_path / "pages", "found").read_text()


def test_one_figure_is_drawn_alone(tmp_path):
    store = Store(tmp_path)
    lab_results.put_experiment(store, "metadata", {STOCK: (100, 50)})
    page = publish.write_figure(store, "ruan-4", tmp_path)
    assert "](ruan-4.svg)" in page.read_text() and (tmp_path / "figures/ruan-4.svg").exists()
    rows = list(csv.DictReader((tmp_path / "figures/ruan-4.csv").open()))
    assert {row["series"] for row in rows} == {"5th percentile", "median", "mean", "95th percentile", "paper: median",
                                               "paper: mean"}
