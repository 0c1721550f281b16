# SPDX-License-Identifier: Apache-2.0
"""Files that httpd looks at before it makes a request for them: included files, and variants. They come from
Flashpache, and pages are those of a stock httpd. A file that is replaced meanwhile is never mixed with another."""

import os

import pytest

import c_module
import tree
from content_kit import stats
from fetch import Client
from test_one_view import ask_while
from test_walk_calls import LIMITS
from trace import Trace

OWNER = "Options -FollowSymLinks +SymLinksIfOwnerMatch +Includes +MultiViews"
PAGES = ["/page.shtml", "/nested.shtml", "/owners/page.shtml", "/bad.shtml", "/closed/page.shtml", "/word", "/word.html", "/owners/word",
         "/link/page.shtml", "/", "/sub/", "/many", "/typed", "/broken"]
LANGUAGES = ({}, {"Accept-Language": "de"}, {"Accept-Language": "fr, en;q=0.5"})
ROUNDS = 4
ENTRIES = 30


@pytest.fixture(scope="module")
def root(base):
    root = base / "included"
    for where in ("", "owners/"):
        tree.put(root / f"{where}part.txt", f"part of {where}\n")
        tree.put(root / f"{where}large.txt", "0123456789\n" * 20000)
        tree.put(root / f"{where}page.shtml", "a\n<!--#include file=\"part.txt\" -->b\n<!--#include file=\"large.txt\" -->c\n"
                 "<!--#fsize file=\"part.txt\" --> <!--#include virtual=\"part.txt\" -->\n")
        tree.put(root / f"{where}word.html.en", "english\n")
        tree.put(root / f"{where}word.html.de", "deutsch\n")
    tree.put(root / "nested.shtml", "<!--#include file=\"page.shtml\" --><!--#include file=\"page.shtml\" -->\n")
    tree.put(root / "bad.shtml", "<!--#include file=\"none.txt\" --><!--#include file=\"unreadable.txt\" -->"
             "<!--#include file=\"to-part\" --><!--#include file=\"fifo\" -->\n")
    tree.put(root / "unreadable.txt", "secret\n").chmod(0o000)
    os.symlink("part.txt", root / "to-part")
    os.symlink("owners", root / "link")
    os.mkfifo(root / "fifo.x")
    tree.put(root / "closed/page.shtml", "<!--#include file=\"denied.txt\" --><!--#include file=\"part.txt\" -->\n")
    tree.put(root / "closed/part.txt", "open\n")
    tree.put(root / "closed/denied.txt", "denied\n")
    tree.put(root / "closed/.htaccess", "<Files denied.txt>\nRequire all denied\n</Files>\nHeader set X-In closed\n")
    tree.put(root / "sub/index.shtml", "<!--#include file=\"../part.txt\" --><!--#include file=\"in.txt\" -->\n")
    tree.put(root / "sub/in.txt", "in\n")
    tree.put(root / "many.txt", "many\n")
    tree.put(root / "many.html", "<p>many\n")
    tree.put(root / "typed.var", "URI: word.html.en\nContent-Type: text/html\nContent-Language: en\n")
    tree.put(root / "broken.unknown", "no type\n")
    for number in range(ENTRIES):
        tree.put(root / f"list/entry{number}", "x")
    tree.put(root / "one.shtml", "<!--#include file=\"changing.txt\" -->\n")
    return root


CONFIG = """DirectoryIndex index.shtml
AddOutputFilter INCLUDES .shtml
AddType text/html .shtml
AddHandler type-map .var
AddLanguage en .en
AddLanguage de .de
LanguagePriority en de
ForceLanguagePriority Prefer Fallback
<Directory {root}>
Options +Includes +MultiViews +Indexes
AllowOverride All
</Directory>
<Directory {root}/owners>
{owner}
</Directory>
KeepAliveTimeout 5
"""


@pytest.fixture(scope="module", params=("prefork", "event"))
def servers(lab, root, base, request):
    probe = c_module.probe(base / f"probe-{request.param}")
    options = dict(mpm=request.param, limits=LIMITS[request.param], config=probe + CONFIG.format(root=root, owner=OWNER))
    stock = lab.stock(f"stock-{request.param}", root, **options).start()
    flash = lab.under_test(f"flash-{request.param}", root, **options)
    yield stock, flash
    lab.end()


SAME = ("Content-Type", "Content-Length", "Content-Location", "Content-Language", "Vary", "TCN", "ETag", "Last-Modified", "X-In", "Location")


def ask(client, path, headers):
    client.conn.request("GET", path, headers={"Host": client.host, **headers})
    answer = client.conn.getresponse()
    body = answer.read()
    return answer.status, {name: answer.headers[name] for name in SAME}, body


def differences(servers):
    found = []
    with Client(servers[0].port) as stock, Client(servers[1].port) as flash:
        for path in PAGES:
            for headers in LANGUAGES:
                # An entity tag is weak while the directory's time is less than a second old.
                for _ in range(3):
                    theirs, ours = ask(stock, path, headers), ask(flash, path, headers)
                    if theirs == ours:
                        break
                if theirs != ours:
                    found.append((path, headers, theirs, ours))
    return found


def test_pages_are_those_of_stock(servers, root):
    tree.put(root / "owners/word.html.en", "english\n")
    for number in range(ROUNDS):
        tree.put(root / "part.txt", f"part {number} {'x' * number}\n")
        tree.put(root / "owners/word.html.de", f"deutsch {number}\n")
        if number == 2:
            tree.put(root / "new", "many, replaced\n").rename(root / "many.txt")
            (root / "owners/word.html.en").unlink()
        found = differences(servers)
        assert not found, f"{len(found)} in round {number}: {found[:3]}"


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("path,opened", (("/page.shtml", ("part.txt", "large.txt")), ("/owners/page.shtml", ("part.txt", "large.txt")),
                                         ("/word", ("word.html.en",)), ("/owners/word", ("word.html.de",))))
def test_included_files_are_not_opened(servers, root, path, opened, base):
    """Stock opens each; ours looks at them as httpd itself does, and opens none."""
    _, flash = servers
    where = root / path.lstrip("/").rpartition("/")[0]
    children = [pid for pid in flash.pids() if pid != flash.process.pid]
    with Client(flash.port) as client:
        for _ in range(5):
            assert client.get(path)[0] == 200
        with Trace(children, base / f"opened{len(list(base.glob('opened*')))}", "open,openat,openat2") as trace:
            for _ in range(3):
                assert client.get(path)[0] == 200
        found = [line for line in trace.lines() if any(f'"{where / name}"' in line for name in opened)]
    assert not found, found


@pytest.mark.parametrize("kind", ("replaced", "rewritten", "removed", "link"))
@pytest.mark.parametrize("size", (700, 200_000))
def test_changed_after_httpd_has_looked(servers, root, base, kind, size):
    """Core has found one file when the child asks about another: that one is sent whole. Stock sends as many bytes of it as the former
    file had."""
    flags = base / "flags"
    flags.mkdir(exist_ok=True)
    flags.chmod(0o777)
    page = root / "changing.txt"
    changes = {"replaced": lambda: os.rename(tree.put(root / "new", "B" * (size + 9)), page), "rewritten": lambda: tree.put(page, "B" * (size + 9)),
               "removed": page.unlink, "link": lambda: (os.symlink("longer.txt", root / "new"), os.rename(root / "new", page))}
    # A shorter file, of which core sends the length that it found before, ends stock's connection.
    tree.put(root / "longer.txt", "C" * (size + 5))
    answers = []
    for number, server in enumerate(servers):
        page.unlink(missing_ok=True)
        tree.put(page, "A" * size)
        with Client(server.port) as client:
            before = [client.get("/one.shtml") for _ in range(3)]
        assert all(status == 200 and body.count(b"A") == size for status, body in before)
        status, _, body = ask_while(server, "/one.shtml", "included", changes[kind], flags / f"{kind}{size}{number}")
        answers.append((status, body))
        with Client(server.port) as client:
            answers[-1] += client.get("/one.shtml")
    theirs, ours = answers
    assert theirs[2:] == ours[2:] and ours[:2] == ours[2:]


@pytest.mark.needs_flashpache
def test_a_listing_asks_for_none_of_its_entries(servers, root):
    _, flash = servers
    with Client(flash.port) as client:
        before = stats(flash.daemon)["files"]
        status, body = client.get("/list/")
        known = stats(flash.daemon)["files"] - before
    assert status == 200 and body.count(b"entry") >= ENTRIES
    assert known < ENTRIES / 2, known
