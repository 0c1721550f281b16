# SPDX-License-Identifier: Apache-2.0
"""The status page in a real browser: nothing is cut on a phone, and it is readable in the dark."""

import pytest

import browser
from dead_mounts_kit import world  # noqa: F401
from fetch import Client
from status_page_kit import serve, traffic, until

pytestmark = [pytest.mark.needs_flashpache, pytest.mark.full,
              pytest.mark.skipif(not browser.CHROMIUM, reason="needs chromium: scripts/test full installs it")]

WIDTHS = (400, 1200)        # a phone, a desk
READABLE = 4.5              # the least contrast of text, as WCAG 2 computes it


def luminance(colour):
    """Of "rgb(r, g, b)"."""
    parts = [int(each) / 255 for each in colour[colour.index("(") + 1:-1].split(",")[:3]]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    dim, bright = sorted((luminance(a), luminance(b)))
    return (bright + 0.05) / (dim + 0.05)


def page_of(state, lab, make):
    """The page of a site in that state."""
    site = make(state)
    server = serve(lab, site, f"{state}-httpd")
    traffic(server, site)
    if state == "degraded":
        with Client(server.port) as client:
            for number in range(400):
                client.get(f"/local/a-rather-long-name-of-a-file-that-nobody-has-made-yet-{number}.html")
        site.mount.behave("hang")
        site.until_out()
    elif state == "down":
        site.daemon.kill()
        with Client(server.port) as client:
            for number in range(20):
                client.get(f"/local/none{number}")
    return until(server, state).text


@pytest.mark.parametrize("state", ("healthy", "degraded", "down"))
def test_looks(lab, world, base, state):  # noqa: F811
    text = page_of(state, lab, world)
    colours = {}
    for width in WIDTHS:
        for dark in (False, True):
            found = browser.measure(base, text, width, dark)
            assert found["width"] == width and found["needed"] <= width, found["outside"]
            assert found["outside"] == []
            assert contrast(found["body"][0], found["body"][1]) >= READABLE
            assert contrast(found["state"], found["health"][1]) >= READABLE
            colours[dark] = found["body"][1]
            parts = found["parts"]
            assert {"lease", "miss"} <= set(parts) and all(size >= 3 for _, size in parts.values())
            assert len({colour for colour, _ in parts.values()}) == len(parts), "two parts of one colour"
    assert luminance(colours[True]) < 0.05 < 0.8 < luminance(colours[False])
