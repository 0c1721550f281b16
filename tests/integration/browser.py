# SPDX-License-Identifier: Apache-2.0
"""A page in a real browser: headless Chromium, which measures it and takes its picture.

The page stands in a frame of the wanted width, as a window of Chromium cannot be as narrow as a phone. The frame
is a file, so the browser asks no server."""

import html
import json
import re
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HEIGHT = 900

# Measures a page wider than the screen, cut text, and colours: a reader notices these.
MEASURE = """
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement, view = frame.contentWindow;
  frame.style.height = root.scrollHeight + "px";
  const seen = [...page.body.querySelectorAll("*")].filter(e => e.checkVisibility() && !e.closest(".wide"));
  const colour = e => { const c = view.getComputedStyle(e); return [c.color, c.backgroundColor]; };
  document.documentElement.dataset.measured = JSON.stringify({
    width: view.innerWidth, needed: root.scrollWidth, height: root.scrollHeight,
    outside: seen.filter(e => e.getBoundingClientRect().right > view.innerWidth + 1).map(e => e.outerHTML.slice(0, 80)),
    body: colour(page.body), health: colour(page.querySelector(".health")),
    state: colour(page.querySelector(".health strong"))[0],
    parts: Object.fromEntries([...page.querySelectorAll(".bar:first-of-type i")].map(
      e => [e.className, [colour(e)[1], e.getBoundingClientRect().width]])),
    heights: [...page.querySelectorAll(".hist i")].map(e => e.getBoundingClientRect().height),
    open: page.querySelectorAll("details[open]").length,
    folded: [...page.querySelectorAll("details dl")].filter(e => e.checkVisibility()).length,
  });
};
"""


def _run(directory, page, width, dark, *options):
    frame = directory / "frame.html"
    frame.write_text('<!DOCTYPE html><html><body style="margin:0">'
                     f'<iframe id="frame" style="border:0;display:block;width:{width}px;height:{HEIGHT}px" '
                     f'srcdoc="{html.escape(page)}"></iframe><script>{MEASURE}</script></body></html>')
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--disable-dev-shm-usage", f"--user-data-dir={directory / 'profile'}", "--virtual-time-budget=2000",
               f"--blink-settings=preferredColorScheme={0 if dark else 1}", *options, frame.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=directory)


def measure(directory, page, width, dark=False):
    """The result of MEASURE."""
    done = _run(directory, page, width, dark, "--dump-dom")
    found = re.search(r'data-measured="([^"]*)"', done.stdout)
    assert found, f"{done.stdout[-300:]}{done.stderr[-1000:]}"
    return json.loads(html.unescape(found.group(1)))


def take_picture(directory, page, width, height, target, dark=False):
    _run(directory, page, width, dark, f"--window-size={width},{height}", f"--screenshot={target}")
    assert target.stat().st_size > 0
