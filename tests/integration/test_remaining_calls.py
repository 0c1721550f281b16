# SPDX-License-Identifier: Apache-2.0
"""Calls of httpd's own modules on the file system in a warm request: the table of docs/directives.md, "What stays
httpd's own"."""

import os
import pwd

import pytest

import tree
from fetch import Client
from httpd import MODULES_DIR, USER
from test_walk_calls import LIMITS
from trace import PathTrace
from waiting import wait_for

REQUESTS = 4
SETTLED_S = 3.1
ENTRIES = 10
OWNERS = "Options -FollowSymLinks +SymLinksIfOwnerMatch"
# path: (ours, status)
CASES = {
    "multi/absent": (0, 404),
    "multi/word": (3, 200),                     # reads the directory, one stat a variant
    "listing/": (3 + ENTRIES, 200),             # reads the directory, one stat an entry, . and .. included
    "ssi/page.shtml": (2, 200),                 # two included files: one stat each
    "speling/fil.txt": (1, 301),                # reads the directory
    "speling/absent-thing": (0, 404),
    "tested/file.txt": (2, 200),                # RewriteCond -F: core's stat and mod_rewrite's
    "owners/link.txt": (1, 200),                # the target of one link
    "owners/through/file.txt": (1, 200),
    "~site/file.txt": (1, 200),                 # the first of two candidates
}
CONFIG = """LoadModule userdir_module {modules}/mod_userdir.so
LoadModule speling_module {modules}/mod_speling.so
AddOutputFilter INCLUDES .shtml
AddType text/html .shtml
UserDir {root}/none/*/www {root}/users/*/www
IndexOptions FancyIndexing
<Directory {root}>
AllowOverride All
Options +Indexes +Includes
</Directory>
<Directory {root}/multi>
Options +MultiViews
</Directory>
<Directory {root}/speling>
CheckSpelling On
</Directory>
<Directory {root}/owners>
{owners}
</Directory>
<Directory {root}/tested>
RewriteEngine On
RewriteCond %{{REQUEST_FILENAME}} -F
RewriteRule ^ - [E=there:1]
</Directory>
"""


def make(root):
    for name in ("multi/word.html", "multi/word.txt", "ssi/a.txt", "ssi/b.txt", "speling/file.txt", "tested/file.txt", "owners/file.txt",
                 "owners/real/file.txt", "users/site/www/file.txt"):
        tree.put(root / name, f"{name}\n")
    tree.put(root / "ssi/page.shtml", "<!--#include file=\"a.txt\" --><!--#include file=\"b.txt\" -->\n")
    for number in range(ENTRIES):
        tree.put(root / f"listing/entry{number}", "x")
    os.symlink("file.txt", root / "owners/link.txt")
    os.symlink("real", root / "owners/through")
    for name in ("link.txt", "through", "file.txt", "real", "real/file.txt"):
        os.lchown(root / "owners" / name, pwd.getpwnam(USER).pw_uid, -1)
    return root


@pytest.fixture(scope="module", params=("prefork", "event"))
def servers(lab, base, request):
    root = make(base / f"www-{request.param}")
    options = dict(mpm=request.param, limits=LIMITS[request.param], config=CONFIG.format(root=root, modules=MODULES_DIR, owners=OWNERS))
    stock = lab.stock(f"stock-{request.param}", root, **options).start()
    flash = lab.under_test(f"flash-{request.param}", root, **options)
    probe = root / "now"
    wait_for(lambda: tree.put(probe, "").stat().st_ctime > (root / "multi").stat().st_ctime + SETTLED_S, "the directories to be settled")
    probe.unlink()
    yield stock, flash, root
    lab.end()


def calls(server, root, path, status, log):
    """On paths, in each of some warm requests."""
    children = [pid for pid in server.pids() if pid != server.process.pid]
    with Client(server.port) as client:
        for _ in range(4):
            assert client.get(f"/{path}")[0] == status
        with PathTrace(children, log) as trace:
            for _ in range(REQUESTS):
                assert client.get(f"/{path}")[0] == status
        found = trace.calls(root)
    assert len(found) % REQUESTS == 0, found
    return len(found) // REQUESTS, found[:len(found) // REQUESTS]


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("path", CASES)
def test_what_still_asks(servers, base, path):
    stock, flash, root = servers
    ours, status = CASES[path]
    number = len(list(base.glob("calls*")))
    theirs, _ = calls(stock, root, path, status, base / f"calls{number}")
    found, lines = calls(flash, root, path, status, base / f"calls{number + 1}")
    print(f"{path}: {theirs} without Flashpache, {found} with it")
    assert found == ours, lines
    assert theirs > ours
