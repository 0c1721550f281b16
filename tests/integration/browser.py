# SPDX-License-Identifier: Apache-2.0
"""A page in a real browser: headless Chromium, which measures it and draws it. The page is a file, so the browser asks no
server."""

import html
import json
import re
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HEIGHT = 900
FONTS = {"DejaVuSans": "DejaVu Sans, Verdana, sans-serif", "DejaVuSansMono": "DejaVu Sans Mono, Menlo, monospace"}
# Makes the sheet as large as the page. The status page's bars behind numbers are gradients, which would become bitmaps.
SHEET = """<style>@page { margin: 0 }
td.n { background: none; position: relative; isolation: isolate }
td.n::before { content: ""; position: absolute; inset: 0 0 0 auto; width: var(--share, 0%); z-index: -1;
  background: color-mix(in srgb, var(--bar) 25%, var(--box)) }
</style><script>
onload = () => document.head.insertAdjacentHTML("beforeend",
  `<style>@page { size: ${innerWidth}px ${document.documentElement.scrollHeight}px }</style>`);
</script>"""

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
  });
};
"""


def _run(directory, text, dark, *options):
    file = directory / "page.html"
    file.write_text(text)
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--disable-dev-shm-usage", f"--user-data-dir={directory / 'profile'}", "--virtual-time-budget=2000",
               f"--blink-settings=preferredColorScheme={0 if dark else 1}", *options, file.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=directory)


def measure(directory, page, width, dark=False):
    """The result of MEASURE. The page stands in a frame of that width: no window of Chromium is as narrow as a phone."""
    frame = ('<!DOCTYPE html><html><body style="margin:0">'
             f'<iframe id="frame" style="border:0;display:block;width:{width}px;height:{HEIGHT}px" '
             f'srcdoc="{html.escape(page)}"></iframe><script>{MEASURE}</script></body></html>')
    done = _run(directory, frame, dark, "--dump-dom")
    found = re.search(r'data-measured="([^"]*)"', done.stdout)
    assert found, f"{done.stdout[-300:]}{done.stderr[-1000:]}"
    return json.loads(html.unescape(found.group(1)))


def draw(directory, page, width, target, dark=False):
    """Writes the page as SVG: one sheet as wide as the window and as high as the page, with its text as text."""
    sheet = directory / "page.pdf"
    # A browser prints in light colours, whatever it prefers.
    coloured = page.replace("(prefers-color-scheme: dark)", "all" if dark else "not all")
    done = _run(directory, coloured.replace("</body>", f"{SHEET}</body>"), dark, f"--window-size={width},{HEIGHT}",
                "--no-pdf-header-footer", "--disable-pdf-tagging", f"--print-to-pdf={sheet}")
    assert sheet.exists(), done.stderr[-1000:]
    subprocess.run(["mutool", "convert", "-O", "text=text", "-o", directory / "page%d.svg", sheet, "1"], check=True,
                   capture_output=True, timeout=60)
    target.write_text(plain((directory / "page1.svg").read_text()))


def shoot(directory, page, width, height, target):
    """Writes the page's first screen as PNG, in light colours."""
    done = _run(directory, page, False, f"--window-size={width},{height}", f"--screenshot={directory / 'page.png'}")
    assert (directory / "page.png").exists(), done.stderr[-1000:]
    shutil.copy(directory / "page.png", target)


def plain(svg):
    """With fonts that other machines have as well, and without digits of coordinates that nobody sees."""
    def short(found):
        return re.sub(r"\d+\.\d{2,}", lambda number: f"{float(number.group()):.1f}", found.group())
    for name, families in FONTS.items():
        svg = svg.replace(f'font-family="{name}"', f'font-family="{families}"')
    return re.sub(r' (?:x|y|d)="[^"]*"', short, svg)
