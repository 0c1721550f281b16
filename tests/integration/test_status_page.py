# SPDX-License-Identifier: Apache-2.0
"""The status page for people: one line reports the health and the way out; the numbers stand below."""

import re

import pytest

import status_kit
from dead_mounts_kit import world  # noqa: F401
from fetch import Client
from status_page_kit import read, serve, traffic, until

pytestmark = pytest.mark.needs_flashpache

PARTS = {"lease": "Lease", "hit": "Hit", "miss": "Miss", "stale": "Stale"}


@pytest.fixture
def site(lab, world, request):  # noqa: F811
    name = request.node.name.removeprefix("test_").split("_")[-1]
    made = world(name)
    made.server = serve(lab, made, f"{name}-httpd")
    return made


def flex(page):
    """The parts of each bar: [{part: number of requests}]."""
    bars = []
    for tag, attributes in page.elements:
        if attributes.get("class") == "bar":
            bars.append({})
        elif tag == "i" and (found := re.fullmatch(r"flex-grow:(\d+)", attributes.get("style", ""))):
            bars[-1][attributes["class"]] = int(found.group(1))
    return bars


def test_healthy(site):
    traffic(site.server, site)
    page = until(site.server, "healthy")
    health = page.text_of("health")
    assert re.fullmatch(r"healthy The daemon answers\. \d+(\.\d)? % of \d+ requests were answered from memory\. "
                        r"There is nothing to do\.", health), health
    head = page.sections[""]
    assert re.search(r"mod_flashpache [\d.]+, httpd up \d+ s · flashpached [\d.]+, up \d+ s", head), head


def test_nothing_yet(lab, world):  # noqa: F811
    # Off where this kit asks whether the server has begun.
    page = until(serve(lab, world("nothing"), "nothing-httpd", engine="Off"), "healthy")
    assert page.text_of("health") == "healthy The daemon answers. No request has come yet."
    assert set(page.sections) == {"", "File systems"}, "sections without data"


def test_bars_are_the_counters(site):
    traffic(site.server, site)
    numbers, page = status_kit.figures(site.server), read(site.server)
    total, *of_hosts = flex(page)
    for part, name in PARTS.items():
        assert total.get(part, 0) == numbers[f"Flashpache{name}"], part
    assert total["bypass"] == sum(n for name, n in numbers.items() if re.fullmatch(r"FlashpacheBypass[a-zA-Z]+", name))
    # The busier host first, and no bar for one without requests.
    assert [sum(bar.values()) for bar in of_hosts] == sorted((sum(bar.values()) for bar in of_hosts), reverse=True)
    assert len(of_hosts) == 2 and sum(sum(bar.values()) for bar in of_hosts) == sum(total.values())
    assert re.search(r"localhost:\d+ \d+ requests.*shop\.test:\d+ \d+ requests",
                     re.sub(r"\s+", " ", page.sections["Requests"]))
    assert "bypass: excluded2FlashpacheExclude names it" in page.sections["Requests without an answer of Flashpache"]


def walks(server):
    """The number of walks that ended on each mount."""
    return [int(value) for (name, _), value in status_kit.metrics(server).items()
            if name == "flashpache_lookup_duration_seconds_count"]


def test_mounts_with_their_latency(site):
    traffic(site.server, site)
    # The daemon refreshes entries in use all the time: the page's number is one of those in between.
    before, page, after = walks(site.server), read(site.server), walks(site.server)
    text = page.sections["File systems"]
    assert f"{site.mount.target} fuse" in text and "answers" in text
    assert "no change is reported: requests see each within 400 ms (ttl_ms)" in text
    shown = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) lookups?: half of them within", text)]
    assert len(shown) == len(before) >= 2 and sum(before) <= sum(shown) <= sum(after)


def test_a_mount_that_does_not_answer(site):
    traffic(site.server, site)
    site.mount.behave("hang")
    site.until_out()
    page = read(site.server)
    assert page.state == "degraded"
    assert re.match(rf"degraded The fuse\S* file system at {re.escape(str(site.mount.target))} does not answer\. "
                    "Check its server", page.text_of("health")), page.text_of("health")
    assert page.text_of("out") == "does not answer"
    site.mount.behave("normal")
    site.until_back()
    until(site.server, "healthy")


def test_stale_answers_are_said(lab, world):  # noqa: F811
    site = world("stale", stale_if_error_ms=60000)
    server = serve(lab, site, "stale-httpd")
    traffic(server, site)
    site.mount.behave("hang")
    site.until_out()
    assert "Meanwhile stale answers are served" in read(server).text_of("health")
    assert "Stale answers for 1 min while it does not answer" in read(server).sections["File systems"]


def test_down_and_up_again(site):
    traffic(site.server, site)
    site.daemon.kill()
    with Client(site.server.port) as client:
        for number in range(20):
            assert client.get(f"/local/none-such{number}")[0] == 404
    page = read(site.server)
    assert page.state == "down"
    health = page.text_of("health")
    assert re.match(r"down The daemon at \S+ does not answer: nobody listens at its socket\. httpd serves each "
                    "request by itself, as without Flashpache. Start it: .* systemctl start flashpached", health)
    assert ("code", {}) in page.elements and "File systems" not in page.sections
    site.daemon.start()
    # The outage is over, and stays in the counters.
    page = until(site.server, "healthy")
    assert re.search(r"\d+ of \d+ requests since httpd was started fell back", page.text_of("health"))


def test_names_that_want_to_be_markup(lab, world):  # noqa: F811
    site = world("m<b>&`x`")
    server = serve(lab, site, "m-httpd")
    traffic(server, site)
    assert not {"b", "script"} & {tag for tag, _ in read(server).elements}
    site.mount.behave("hang")
    site.until_out()
    page = read(server)
    assert page.state == "degraded" and "m&lt;b&gt;&amp;`x`-root/slow" in page.text
    assert not {"b", "script"} & {tag for tag, _ in page.elements}
    # Backquotes are commands in our own words alone.
    assert str(site.mount.target) in page.text_of("health")


def test_nothing_from_elsewhere(site):
    traffic(site.server, site)
    page = read(site.server)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.elements}
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert links and all(re.fullmatch(r"\?\w+(=\d+)?", link) for link in links)
    style = page.text_of("style")
    assert "url(" not in style and "@import" not in style and "prefers-color-scheme: dark" in style
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
