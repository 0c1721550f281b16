# SPDX-License-Identifier: Apache-2.0
"""Path calls below the document root by a warm child for one request, traced.

Stock's are counted beside ours: an empty trace would prove nothing.
"""

import os
import shutil
import time

import pytest

import tree
from fetch import Client
from httpd import HITS
from trace import PathTrace
from waiting import wait_for

SETTLED_S = 3               # and a parsed access file is kept
REQUESTS = 20
DEEP = "a/b/c/d/e/f/g"          # the file is the eighth component
OWNER = "Options -FollowSymLinks +SymLinksIfOwnerMatch"
# One child: every request meets the warm one.
LIMITS = {"event": "StartServers 1\nServerLimit 1\nThreadsPerChild 8\nThreadLimit 8\nMaxRequestWorkers 8\n"
                   "MinSpareThreads 1\nMaxSpareThreads 8\n",
          "prefork": "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 1\nMaxRequestWorkers 1\n"}
# name: (virtual host, path, status)
CASES = {
    "All, depth 8, no .htaccess": ("all", f"/none/{DEEP}/file.txt", 200),
    "All, depth 8, .htaccess in each": ("all", f"/each/{DEEP}/file.txt", 200),
    "All, depth 8, HEAD": ("all", f"/each/{DEEP}/file.txt", 200),
    "All, depth 8, .htaccess denies": ("all", f"/each/{DEEP}/denied.txt", 403),
    "None, 404 at depth 8": ("none", f"/none/{DEEP}/missing", 404),
    "All, 404 at depth 8": ("all", f"/none/{DEEP}/missing", 404),
    "All, 404 at depth 8, .htaccess": ("all", f"/each/{DEEP}/missing", 404),
    "All, 404 from the second component": ("all", "/nothing/b/c/d/e/f/g/h", 404),
    "None, index, two missing before": ("none", "/index/", 200),
    "All, index, two missing before": ("all", "/index/", 200),
    "None, owners, no links": ("none-owner", f"/none/{DEEP}/file.txt", 200),
    "All, owners, no links": ("all-owner", f"/none/{DEEP}/file.txt", 200),
    "All, owners, 404": ("all-owner", f"/none/{DEEP}/missing", 404),
    "All, no links allowed": ("all-nolinks", f"/none/{DEEP}/file.txt", 200),
    "All, path-info refused": ("all", f"/none/{DEEP}/file.txt/more/info", 404),
    "None, path-info refused": ("none", f"/none/{DEEP}/file.txt/more/info", 404),
    "All, through links": ("all", "/links/a/b/file.txt", 200),
}


def vhosts(root):
    def host(name, text):
        return [name], f"<Directory {root}>\n{text}\n</Directory>"
    return [host("none", "AllowOverride None"), host("all", "AllowOverride All"),
            host("none-owner", f"AllowOverride None\n{OWNER}"), host("all-owner", f"AllowOverride All\n{OWNER}"),
            host("all-nolinks", "AllowOverride All\nOptions -FollowSymLinks")]


@pytest.fixture(scope="module")
def root(base):
    root = base / "calls"
    for name in ("none", "each"):
        tree.put(root / name / DEEP / "file.txt", f"file of {name}\n")
    where = root / "each"
    for part in DEEP.split("/"):
        where = where / part
        tree.put(where / ".htaccess", f"Header set X-In {part}\n<Files denied.txt>\nRequire all denied\n</Files>\n")
    tree.put(root / "index/third.html", "third\n")
    tree.put(root / "real/b/file.txt", "through links\n")
    (root / "links").mkdir()
    os.symlink("../real", root / "links/a")
    return root


@pytest.fixture(scope="module", params=("event", "prefork"))
def servers(lab, root, request):
    options = dict(mpm=request.param, vhosts=vhosts(root), limits=LIMITS[request.param],
                   config="DirectoryIndex first.html second.html third.html\nAcceptPathInfo Off\nKeepAliveTimeout 1\n")
    stock = lab.stock(f"stock-{request.param}", root, **options).start()
    flash = lab.under_test(f"flash-{request.param}", root, daemon_settings={"ttl_ms": 60000}, **options)
    yield stock, flash
    lab.end()


def ask(server, name, times):
    host, path, status = CASES[name]
    with Client(server.port, host=host) as client:
        for _ in range(times):
            client.conn.request("HEAD" if "HEAD" in name else "GET", path, headers={"Host": host})
            answer = client.conn.getresponse()
            answer.read()
            assert answer.status == status, (name, answer.status)


def traced(server, root):
    """{case: (path calls of one request, all of them)}, every case in one trace."""
    youngest = max(path.stat().st_ctime for path in root.rglob(".htaccess"))
    wait_for(lambda: time.time() > youngest + SETTLED_S, "the access files to be old enough to be kept")
    for name in CASES:
        ask(server, name, 3)
    mark = server.mark()
    with PathTrace(server.pids(), server.dir / "strace.txt") as trace:
        counts = {}
        seen = 0
        for name in CASES:
            ask(server, name, REQUESTS)
            server.wait_entries(REQUESTS, mark)
            calls = trace.calls(root)
            counts[name] = (calls[seen:], REQUESTS)
            seen, mark = len(calls), server.mark()
    return {name: (len(calls) / n, calls) for name, (calls, n) in counts.items()}


@pytest.mark.needs_flashpache
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace to see the workers' path calls")
def test_a_warm_worker_makes_no_path_calls(servers, root):
    stock, flash = servers
    theirs, ours = traced(stock, root), traced(flash, root)
    print(f"\n{'path calls a request':38}  stock   ours")
    for name in CASES:
        print(f"{name:38} {theirs[name][0]:6.1f} {ours[name][0]:6.1f}")
    notes = {e.note for e in flash.entries()[-REQUESTS:]}
    assert notes <= HITS, notes
    assert all(count >= 1 for count, _ in theirs.values()), "the trace sees nothing of stock"
    made = {name: calls[:6] for name, (count, calls) in ours.items() if count}
    assert not made, "\n".join(f"{name}: {calls}" for name, calls in made.items())
