# SPDX-License-Identifier: Apache-2.0
"""conf/monitoring: each metric and label of the rules and the dashboard is on the status page. Prometheus' own tool
shows that the rules fire as documented."""

import json
import os
import re
import subprocess

import pytest

import exposition
import status_kit
import tree
from conftest import REPO
from fetch import get
from status_kit import page

pytestmark = pytest.mark.needs_flashpache

RULES = REPO / "conf/monitoring/flashpache.rules.yml"
DASHBOARD = REPO / "conf/monitoring/flashpache-dashboard.json"
METRIC = re.compile(r"\bflashpached?_[a-z_]+")
# A selector's labels, and those that an expression groups or joins by.
SELECTED = re.compile(r'([a-z_]+)=~?"')
GROUPED = re.compile(r"\b(?:by|on) \(([a-z_, ]+)\)")
OF_PROMETHEUS = {"job", "instance"}
ALERTS = {"FlashpachedDown", "FlashpacheFallback", "FlashpacheMountOutOfService", "FlashpacheWatchesRefused",
          "FlashpacheVersionsDiffer"}
# A healthy server, and one for each fault: their series, minute by minute, and the rules' expected verdicts.
SCENES = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'flashpached_up{{instance="well"}}', values: '1x30'}}
      - {{series: 'flashpached_up{{instance="down"}}', values: '1x10 0x20'}}
      - {{series: 'flashpache_requests_total{{instance="well",outcome="hit"}}', values: '0+1000x30'}}
      - {{series: 'flashpache_requests_total{{instance="well",outcome="fallback"}}', values: '0+9x30'}}
      - {{series: 'flashpache_requests_total{{instance="bad",outcome="hit"}}', values: '0+1000x30'}}
      - {{series: 'flashpache_requests_total{{instance="bad",outcome="fallback"}}', values: '0+12x30'}}
      - {{series: 'flashpache_mount_in_service{{instance="well",mount="/",watch="inotify"}}', values: '1x30'}}
      - {{series: 'flashpache_mount_in_service{{instance="bad",mount="/nfs",watch="ttl"}}', values: '1x10 0x20'}}
      - {{series: 'flashpached_watches_refused_total{{instance="well"}}', values: '0x30'}}
      - {{series: 'flashpached_watches_refused_total{{instance="bad"}}', values: '0x10 7x20'}}
      - {{series: 'flashpache_build_info{{instance="well",version="2"}}', values: '1x30'}}
      - {{series: 'flashpached_build_info{{instance="well",version="2"}}', values: '1x30'}}
      - {{series: 'flashpache_build_info{{instance="bad",version="2"}}', values: '1x30'}}
      - {{series: 'flashpached_build_info{{instance="bad",version="1"}}', values: '1x30'}}
    promql_expr_test:
      - expr: count by (alertname, instance) (ALERTS{{alertstate="firing"}})
        eval_time: 5m
        exp_samples: []
      - expr: count by (alertname, instance) (ALERTS{{alertstate="firing"}})
        eval_time: 25m
        exp_samples:
          - {{labels: '{{alertname="FlashpachedDown",instance="down"}}', value: 1}}
          - {{labels: '{{alertname="FlashpacheFallback",instance="bad"}}', value: 1}}
          - {{labels: '{{alertname="FlashpacheMountOutOfService",instance="bad"}}', value: 1}}
          - {{labels: '{{alertname="FlashpacheWatchesRefused",instance="bad"}}', value: 1}}
          - {{labels: '{{alertname="FlashpacheVersionsDiffer",instance="bad"}}', value: 1}}
"""


@pytest.fixture(scope="module")
def watched(lab, base):
    """A server that has answered a request."""
    tree.put(base / "monitored/a.txt", "a\n")
    server = lab.under_test("watched", base / "monitored", vhosts=[(["localhost"], ""), status_kit.VHOST])
    get(server.port, "/a.txt")
    return server


@pytest.fixture(scope="module")
def exported(watched):
    """{metric: its labels} of that server."""
    found = {}
    for name, labels in exposition.parse(page(watched, "?prometheus")):
        found.setdefault(name, set()).update(dict(labels))
    return found


def expressions_of_rules():
    """Each `expr`, over all its lines."""
    text = RULES.read_text()
    return [re.sub(r"\s+", " ", found.replace(">-", "")) for found in
            re.findall(r"^        expr: (.*?)\n        [a-z]", text, re.M | re.S)]


def expressions_of_dashboard():
    board = json.loads(DASHBOARD.read_text())
    queries = [variable["query"]["query"] for variable in board["templating"]["list"] if variable["type"] == "query"]
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]] + queries


@pytest.mark.parametrize("expressions", (expressions_of_rules, expressions_of_dashboard))
def test_metrics_and_labels_are_exported(expressions, exported):
    found = expressions()
    assert len(found) >= len(ALERTS)
    for one in found:
        names = set(METRIC.findall(re.sub(r'"[^"]*"', '""', one)))
        assert names and names <= set(exported), f"{names - set(exported)} in {one}"
        # A bucket's bound, and Prometheus' own labels, beside the page's.
        known = set.union(OF_PROMETHEUS, *(exported[name] for name in names))
        labels = set(SELECTED.findall(one)).union(*(group.split(", ") for group in GROUPED.findall(one)))
        assert labels <= known, f"{labels - known} in {one}"


def test_legends_name_labels_of_their_expression(exported):
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            groups = GROUPED.findall(target["expr"])
            labels = set(groups[0].split(", ")) if groups else set.union(
                OF_PROMETHEUS, *(exported[name] for name in METRIC.findall(target["expr"])))
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels, panel["title"]


def test_dashboard_has_a_form_that_grafana_takes():
    board = json.loads(DASHBOARD.read_text())
    assert board["uid"] == "flashpache" and board["title"] and board["schemaVersion"] >= 36
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) >= 10
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + i, place["y"] + j) for i in range(place["w"]) for j in range(place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, f"{panel['title']} lies over another"
        taken |= cells
        assert panel["datasource"]["uid"] == "${datasource}" and panel["title"]


def test_rules_are_the_promised_ones():
    text = RULES.read_text()
    assert set(re.findall(r"^      - alert: (\w+)$", text, re.M)) == ALERTS
    assert text.count("        annotations:\n          summary: ") == len(ALERTS) == text.count("          description: ")
    guide = (REPO / "docs/status.md").read_text()
    assert all(f"`{name}`" in guide for name in ALERTS)


def run_promtool(*args, given=""):
    return subprocess.run(["promtool", *map(str, args)], input=given, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "GOMAXPROCS": "1"})


def said_by_promtool(*args):
    done = run_promtool(*args)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.full
def test_promtool_takes_the_rules():
    assert f"{len(ALERTS)} rules found" in said_by_promtool("check", "rules", RULES)


@pytest.mark.full
def test_promtool_takes_the_metrics(watched):
    """By its lint, too."""
    done = run_promtool("check", "metrics", given=page(watched, "?prometheus"))
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.full
def test_rules_fire(base):
    scenes = tree.put(base / "scenes.yml", SCENES.format(rules=RULES))
    assert "SUCCESS" in said_by_promtool("test", "rules", scenes)
