# SPDX-License-Identifier: Apache-2.0
"""An absent name in a directory with MultiViews: nothing is read while the directory's names are known. Each change
in it shows at once, as in a stock httpd."""

import os
import re
import shutil

import pytest

import tree
from fetch import Client
from test_walk_calls import LIMITS
from trace import Trace
from waiting import wait_for

SETTLED_S = 3.1         # names are kept of a directory without changes for two to three seconds
SAME = ("Content-Type", "Content-Length", "Content-Location", "Vary", "TCN", "ETag", "Last-Modified", "Allow")
CONFIG = """DirectoryIndex none index
<Directory {root}>
Options +MultiViews +Indexes
AllowOverride All
</Directory>
<Directory {root}/d/off>
Options -MultiViews
</Directory>
<Directory {root}/fallback>
FallbackResource /fallback/page.txt
</Directory>
"""
PATHS = ("/d/absent", "/d/absent/more", "/d/abs", "/d/absent.txt", "/d/", "/d/.hidden", "/d/sub/absent", "/d/off/absent", "/d/link/absent",
         "/fallback/absent", "/fallback/page", "/d/s", "/shut/absent", "/large/absent", "/large/name7", "/d/%61bsent", "/d/absent%20x")


def make(root):
    for name in ("d/other.txt", "d/sub/other.txt", "d/off/other.txt", "fallback/page.txt", "shut/other.txt"):
        tree.put(root / name, f"{name}\n")
    (root / "d/s.dir").mkdir()
    os.symlink("sub", root / "d/link")
    (root / "shut").chmod(0o711)
    for number in range(3000):
        tree.put(root / f"large/name{number}.txt", "x")
    return root


@pytest.fixture(scope="module", params=("prefork", "event"))
def servers(lab, base, request):
    root = make(base / f"www-{request.param}")
    options = dict(mpm=request.param, limits=LIMITS[request.param], config=CONFIG.format(root=root))
    stock = lab.stock(f"stock-{request.param}", root, **options).start()
    flash = lab.under_test(f"flash-{request.param}", root, **options)
    yield stock, flash, root
    lab.end()


def ask(client, path):
    client.conn.request("GET", path, headers={"Host": client.host})
    answer = client.conn.getresponse()
    body = answer.read()
    return answer.status, {name: answer.headers[name] for name in SAME}, body


def both(clients, path):
    """Of stock and ours; an entity tag is weak while the directory's time is less than a second old."""
    for _ in range(3):
        theirs, ours = [ask(client, path) for client in clients]
        if theirs == ours:
            break
    return theirs, ours


def reads(flash, base, client, path, name):
    """The number of opens of the directory for three requests."""
    children = [pid for pid in flash.pids() if pid != flash.process.pid]
    log = base / f"trace{len(list(base.glob('trace*')))}"
    with Trace(children, log, "open,openat,openat2") as trace:
        for _ in range(3):
            client.get(path)
    return len([line for line in trace.lines() if re.search(rf'"{re.escape(str(name))}/?", O_RDONLY\|O_NONBLOCK|'
                                                            rf'"{re.escape(str(name))}/?", .*O_DIRECTORY', line)])


def settle(root):
    """Waits until its directories have had no changes for a while."""
    youngest = max(os.stat(root / name).st_ctime for name in ("d", "d/sub", "fallback", "large"))
    now = root / "now"
    wait_for(lambda: tree.put(now, "").stat().st_ctime > youngest + SETTLED_S, "the directories to be settled")


@pytest.mark.needs_flashpache
def test_nothing_is_read_while_names_are_known(servers, base):
    stock, flash, root = servers
    settle(root)
    with Client(flash.port) as client, Client(stock.port) as plain:
        for _ in range(3):
            assert client.get("/d/absent")[0] == 404
        assert reads(stock, base, plain, "/d/absent", root / "d") == 3
        assert reads(flash, base, client, "/d/absent", root / "d") == 0
        assert reads(flash, base, client, "/d/missing", root / "d") == 0
        # A directory with more names than are kept is read by mod_negotiation.
        client.get("/large/absent")
        assert reads(flash, base, client, "/large/absent", root / "large") == 3


def test_every_change_shows_at_once(servers, base):
    stock, flash, root = servers
    shutil.rmtree(root / "d/x", ignore_errors=True)
    changes = (lambda: tree.put(root / "d/absent.txt", "variant\n"), lambda: (root / "d/absent.txt").unlink(),
               lambda: os.rename(tree.put(root / "new", "moved\n"), root / "d/absent.html"),
               lambda: os.rename(root / "d/absent.html", root / "gone.html"),
               lambda: os.symlink("other.txt", root / "d/absent.txt"), lambda: (root / "d/absent.txt").unlink(),
               lambda: (root / "d/absent.txt").mkdir(), lambda: (root / "d/absent.txt").rmdir(),
               lambda: tree.put(root / "d/.htaccess", "Options -MultiViews\n"), lambda: (root / "d/.htaccess").unlink(),
               lambda: os.rename(root / "d", root / "e"), lambda: os.rename(root / "e", root / "d"),
               lambda: os.link(root / "d/other.txt", root / "d/sub/absent.txt"), lambda: (root / "d/sub/absent.txt").unlink())
    seen = set()
    with Client(stock.port) as plain, Client(flash.port) as client:
        for number, change in enumerate(changes):
            if number % 2 == 0:
                settle(root)
            for path in PATHS:
                both((plain, client), path)
            change()
            for path in PATHS:
                theirs, ours = both((plain, client), path)
                assert ours == theirs, (number, path)
                seen.add((path, theirs[0]))
    assert {("/d/absent", 200), ("/d/absent", 404), ("/d/sub/absent", 200), ("/fallback/absent", 200)} <= seen


def test_errors_are_told_as_by_stock(servers):
    stock, flash, _ = servers
    lines = [sorted({re.sub(r"^.*?(AH\d+: [^\n]*?)(?:/tmp|/[^ ]*/www).*", r"\1", line) for line in server.error_text().splitlines()
                     if "negotiation:" in line}) for server in (stock, flash)]
    assert lines[0] == lines[1]
    assert any("AH00686" in line for line in lines[0]), lines[0]
