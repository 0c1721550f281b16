# SPDX-License-Identifier: Apache-2.0
"""WordPress, DokuWiki and MediaWiki whole, each with PHP of its own: stock's pages, and no call on a path by a warm httpd.

Debian's packages are needed; scripts/test full and scripts/compare --app unpack them in the build directory.
"""

import re
import sys
import time

import pytest

from conftest import REPO
from content_kit import clock, settled  # noqa: F401 (fixtures)
from fetch import Client
from test_walk_calls import LIMITS
from trace import PathTrace
from waiting import wait_for

sys.path.insert(0, str(REPO / "tests/lab"))

import app_kit  # noqa: E402

ROUNDS = 3
WAYS = ("event", "prefork")        # with php-fpm, with mod_php
ANSWERED = "prefork, calls answered"
# Calls that nobody answers, and looks at descriptors.
OTHER = re.compile(r'open|getcwd|chdir|W_OK|newfstatat\(\d+, ""|utimensat|unlink|mkdir|chmod|rename')
KINDS = ("static", "pretty", "missing", "front")
TIMES = 3
# Nothing expires while a trace runs.
SETTINGS = {"ttl_ms": 60000}
pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(app_kit.why_not()), reason=app_kit.why_not() or "")]


@pytest.fixture(scope="module")
def php(base):
    with app_kit.Php(base / "php") as server:
        yield server


@pytest.fixture(scope="module")
def database(base):
    server = app_kit.Database(base / "database")
    server.make()
    with server:
        yield server


@pytest.fixture(scope="module", params=app_kit.APPS)
def app(base, php, request):
    """Sets the application up, with a database if it needs one."""
    made = app_kit.APPS[request.param](base, php)
    return made.make(request.getfixturevalue("database") if made.needs_database else None)


def servers(lab, app, way, what):
    """(stock, Flashpache) with one child, started."""
    mpm = way.split(",")[0]
    config = app.config(app.docroot) if mpm == "event" else app.config_mod_php(app.docroot)
    options = dict(mpm=mpm, config=config, limits=LIMITS[mpm], extra_modules=app_kit.MODULES,
                   around=app_kit.around())
    stock = lab.stock(f"{app.name}-{what}-stock-{mpm}", app.docroot, **options).start()
    options["config"] += "FlashpacheIntercept mod_php\n" if way == ANSWERED else ""
    return stock, lab.under_test(f"{app.name}-{what}-{mpm}", app.docroot, daemon_settings=SETTINGS, **options)


def pages(server, app):
    """{path: (status, headers, body)} without the parts that differ each time."""
    found = {}
    for page in app.pages:
        with Client(server.port, app_kit.PATIENT_S) as client:
            client.conn.request("GET", page.path, headers={"Host": "localhost"})
            answer = client.conn.getresponse()
            changing = app.changing_headers + (("Last-Modified",) if app.is_redirect_dated and answer.status == 301 else ())
            headers = [(name, value) for name, value in answer.getheaders() if name not in changing]
            found[page.path] = answer.status, headers, app_kit.plain(app, answer.read())
    return found


def lasting_pages(server, app):
    """The pages, once two passes agree that are more than a second apart. DokuWiki makes its feed anew while its sources
    are of the same second."""
    passes = [pages(server, app)]

    def agree():
        time.sleep(1.1)
        passes.append(pages(server, app))
        return passes[-1] == passes[-2]
    wait_for(agree, f"two equal passes over {app.name}")
    return passes[-1]


def first_difference(different):
    """The path, and both texts at the first difference."""
    path, (theirs, ours) = next(iter(different.items()))
    if theirs[:2] != ours[:2]:
        return path, theirs[0], ours[0], set(theirs[1]) ^ set(ours[1])
    at = next((i for i, pair in enumerate(zip(theirs[2], ours[2])) if pair[0] != pair[1]), 0)
    return path, theirs[2][max(0, at - 60):at + 60], ours[2][max(0, at - 60):at + 60]


@pytest.mark.parametrize("way", [*WAYS, pytest.param(ANSWERED, marks=pytest.mark.needs_flashpache)])
def test_pages_are_as_stocks(lab, app, way):
    stock, flash = servers(lab, app, way, "pages")
    expected = lasting_pages(stock, app)
    assert {path: answer[0] for path, answer in expected.items()} == {page.path: page.status for page in app.pages}
    for _ in range(ROUNDS):
        ours = pages(flash, app)
        different = {path: (expected[path], ours[path]) for path in expected if ours[path] != expected[path]}
        assert not different, first_difference(different)
    lab.end()


@pytest.mark.needs_flashpache
def test_phps_calls_are_answered(lab, app):
    """But for files that it opens on a local disk, and a question whether it may write."""
    left = []
    for way in ("prefork", ANSWERED):
        flash = servers(lab, app, way, f"php-{len(left)}")[1]
        for _ in range(5):
            pages(flash, app)
        left.append([line for line in traced(flash, app, "pretty") if not OTHER.search(line)])
        lab.end()
    print(f"{app.name}: {len(left[0]) / TIMES:.0f} looks of PHP at paths a page, {len(left[1]) / TIMES:.0f} with answers")
    assert len(left[1]) < len(left[0]) / 4, left[1]


def traced(server, app, kind):
    """Calls on paths of some warm requests for a page."""
    page, mark = app.page(kind), server.mark()
    with Client(server.port, app_kit.PATIENT_S) as client, \
            PathTrace(server.pids(), server.dir / f"strace-{kind}.txt") as trace:
        for _ in range(TIMES):
            assert client.get(page.path)[0] == page.status
        server.wait_entries(TIMES, mark)
        return trace.calls("")


def is_httpds(line, app, page):
    """True in a process with mod_php, too: PHP looks neither at the name in the URL nor at access files."""
    name = page.path.strip("/")
    return "/.htaccess" in line or bool(name) and f"{app.docroot}/{name}" in line


def own_calls(server, app, mpm):
    """{kind: calls that httpd made itself}. mod_php makes PHP's calls in httpd's processes: of those of a page only
    the ones that can be told apart are counted."""
    for _ in range(3):
        pages(server, app)
    found = {kind: traced(server, app, kind) for kind in KINDS}
    return {kind: [line for line in lines if mpm == "event" or kind == "static" or is_httpds(line, app, app.page(kind))]
            for kind, lines in found.items()}


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("mpm", WAYS)
def test_a_warm_httpd_makes_no_path_calls(lab, app, mpm, settled):  # noqa: F811 (settled)
    """PHP makes its calls as before, with php-fpm in processes of its own."""
    stock, flash = (own_calls(server, app, mpm) for server in servers(lab, app, mpm, "calls"))
    print(f"{app.name}, {mpm}: calls a request: " + ", ".join(
        f"{kind} stock {len(stock[kind]) / TIMES:.1f}, Flashpache {len(flash[kind]) / TIMES:.1f}" for kind in KINDS))
    assert min(map(len, stock.values())) >= TIMES, "the trace does not see each request of stock"
    made = {kind: lines[:5] for kind, lines in flash.items() if lines}
    assert not made, made
    lab.end()
