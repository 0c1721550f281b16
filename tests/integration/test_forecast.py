# SPDX-License-Identifier: Apache-2.0
"""FlashpacheEngine Shadow predicts: the time of a request in the file system, and what would remain of it."""

import html
import json
import re
import time

import pytest

import tree
from content_kit import SETTLED_S
from fetch import get
from status_kit import MODULES, VHOST, figures, metrics, page
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

DELAY_MS = 4                # of each call on a path
ROUNDS = 8
LINE = re.compile(r"(\S+): (\d+\.\d{3}) ms a request in the file system, (\d+\.\d{3}) ms would remain \((\d+) requests\)")


@pytest.fixture(scope="module")
def site(lab, base, slow_directory):
    """A tree on a slow file system; denied.txt has the walk of file.txt, and is not opened."""
    source = base / "forecast-source"
    for name in ("file.txt", "denied.txt"):
        tree.put(source / name, "text\n")
    root = slow_directory(source, DELAY_MS * 1000)
    config = (f"FlashpacheEngine Shadow\nFlashpacheTimeout 10s\n<Directory {root}>\nAllowOverride None\n</Directory>\n"
              "<Files denied.txt>\nRequire all denied\n</Files>\n")
    here = "<Location /fp>\nSetHandler flashpache-status\nFlashpacheStatus On\n</Location>\n"
    server = lab.under_test("forecast", root, config=config, extra_modules=MODULES,
                            vhosts=[(["localhost"], here), (["quiet.test"], ""), VHOST])
    yield server
    lab.end()


def host_of(server):
    return f"localhost:{server.port}"


def numbers(server):
    """(requests, ms in the file system, ms that would remain) of the first host, so far."""
    found = figures(server)
    timed, stock, remaining = (found[f"FlashpacheShadow{name}[{host_of(server)}]"]
                               for name in ("Timed", "StockUs", "RemainingUs"))
    return timed, stock / 1e3, remaining / 1e3


def one(server, path, status):
    """The times of one request; without an answer of the daemon there are none, and it is asked again."""
    def timed():
        before = numbers(server)
        assert get(server.port, path)[0] == status
        after = numbers(server)
        return after[0] > before[0] and tuple(now - then for now, then in zip(after[1:], before[1:]))
    return wait_for(timed, "a timed request")


def measured(server, path, status):
    """The least times of further requests for a path that the daemon knows: a busy machine only adds."""
    get(server.port, path)
    return tuple(map(min, zip(*(one(server, path, status) for _ in range(ROUNDS)))))


def test_walk_and_open_are_timed(site):
    one(site, "/file.txt", 200)
    time.sleep(SETTLED_S)       # it has just been made: now it can be kept by its content
    one(site, "/file.txt", 200)
    walk, left = measured(site, "/denied.txt", 403)
    whole, left_of_whole = measured(site, "/file.txt", 200)
    assert walk >= DELAY_MS and whole - walk >= DELAY_MS, (walk, whole)
    assert left < walk / 4 and left_of_whole < whole / 4, (left, left_of_whole)


def test_a_question_that_waits_for_the_file_system_remains(site):
    assert one(site, "/never-asked-before.txt", 404)[1] >= DELAY_MS


def test_the_page_and_the_metrics_have_it(site):
    one(site, "/file.txt", 200)
    text = html.unescape(page(site))
    table = text.split("What Flashpache would save")[1].split("</table>")[0]
    assert host_of(site) in table and "quiet.test" not in table and " ms" in table
    timed, stock, remaining = numbers(site)
    found = metrics(site)
    for name, value in (("timed", timed), ("stock_seconds", stock / 1e3), ("remaining_seconds", remaining / 1e3)):
        samples = {dict(labels)["vhost"]: got for (sample, labels), got in found.items()
                   if sample == f"flashpache_shadow_{name}_total"}
        assert samples[host_of(site)] == pytest.approx(value, abs=2e-6), name
        assert samples[f"quiet.test:{site.port}"] == 0


def test_the_tool_says_it_by_virtual_host(site, flashpachectl):
    one(site, "/file.txt", 200)
    timed, stock, remaining = numbers(site)
    expected = pytest.approx([stock / timed, remaining / timed, timed], abs=0.002)
    in_us = pytest.approx([stock / timed * 1e3, remaining / timed * 1e3, timed], abs=1.1)
    kept = page(site, "?auto")
    host, *told = LINE.fullmatch(flashpachectl("shadow", "-", input=kept).stdout.strip()).groups()
    assert host == host_of(site) and [float(number) for number in told] == expected
    row, = json.loads(flashpachectl("shadow", "--json", "-", input=kept).stdout)["hosts"]
    assert row["host"] == host and [row["file_system_us"], row["remaining_us"], row["requests"]] == in_us
    done = flashpachectl("shadow", f"http://localhost:{site.port}/fp")
    assert done.returncode == 0, done
    found = LINE.fullmatch(done.stdout.strip()).groups()
    assert found[0] == host and int(found[3]) >= timed


def test_the_tool_names_the_way_out(site, flashpachectl):
    at = f"localhost:{site.port}"
    for url, why in ((f"https://{at}/fp", "curl -s 'URL?auto' | flashpachectl shadow -"), (f"http://{at}/file.txt", "no status page"),
                     (f"http://{at}/denied.txt", "status 403; give the URL of httpd's status page"),
                     ("http://localhost:1/fp", "no connection: "), ("http:///fp", "no host in it"),
                     ("http://no-such-host.invalid/fp", "http://no-such-host.invalid/fp: ")):
        done = flashpachectl("shadow", url)
        assert (done.returncode, done.stdout) == (1, "") and why in done.stderr, done
    nothing = "FlashpacheLease: 1\nFlashpacheShadowTimed[a:80]: 0\n"
    done = flashpachectl("shadow", "-", input=nothing)
    assert done.returncode == 1 and "no request was timed: set FlashpacheEngine Shadow" in done.stderr
    assert flashpachectl("shadow", "a", "b").returncode == 2


def test_without_shadow_nothing_is_timed(lab, base):
    root = base / "forecast-on"
    tree.put(root / "file.txt", "text\n")
    server = lab.under_test("forecast-on", root, extra_modules=MODULES, vhosts=[(["localhost"], ""), VHOST])
    assert get(server.port, "/file.txt") == (200, b"text\n")
    found = figures(server)
    assert (found["FlashpacheShadowTimed"], found["FlashpacheShadowStockUs"]) == (0, 0)
    assert "What Flashpache would save" not in page(server)
    lab.end()
