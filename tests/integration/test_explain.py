# SPDX-License-Identifier: Apache-2.0
"""flashpachectl explain reports stock httpd's real calls: the traced calls, compared with the report."""

import os
import re
import shlex
import shutil

import pytest

import tree
import wire
from fetch import Client
from httpd import APACHE
from trace import PathTrace

pytestmark = [pytest.mark.needs_flashpache,
              pytest.mark.skipif(not shutil.which("strace"), reason="needs strace to see stock's path calls")]

DEEP = "a/b/c/d/e/f/g"
KNOWN = "deep/a/b/known.txt"        # no request asks for it before its test
LIMITS = ("StartServers 1\nServerLimit 1\nThreadsPerChild 4\nThreadLimit 4\nMaxRequestWorkers 4\n"
          "MinSpareThreads 1\nMaxSpareThreads 4\n")
# virtual host: (its directory section, options of explain)
HOSTS = {
    "all": ("AllowOverride All", []),
    "none": ("AllowOverride None", ["--no-htaccess"]),
    "owner": ("AllowOverride All\nOptions -FollowSymLinks +SymLinksIfOwnerMatch", ["--links", "owner"]),
    "nolinks": ("AllowOverride All\nOptions -FollowSymLinks", ["--links", "none"]),
    "none-owner": ("AllowOverride None\nOptions -FollowSymLinks +SymLinksIfOwnerMatch",
                   ["--no-htaccess", "--links", "owner"]),
}
# name: (virtual host, URL's path, status)
CASES = {
    "a plain file": ("all", "/plain.txt", 200),
    "no .htaccess files": ("none", f"/deep/{DEEP}/file.txt", 200),
    "no .htaccess files, a missing file": ("none", f"/deep/{DEEP}/missing", 404),
    "no .htaccess files, a third index": ("none", "/third/", 200),
    "no .htaccess files, path-info": ("none", f"/deep/{DEEP}/file.txt/more/info", 404),
    "no .htaccess files, owners compared": ("none-owner", f"/deep/{DEEP}/file.txt", 200),
    "a file in a deep directory": ("all", f"/deep/{DEEP}/file.txt", 200),
    "behind a linked directory": ("all", "/dirlink/file.txt", 200),
    "a linked file": ("all", "/filelink.txt", 200),
    "a linked file, owners compared": ("owner", "/filelink.txt", 200),
    "behind a linked directory, owners compared": ("owner", "/dirlink/file.txt", 200),
    "a deep file, owners compared": ("owner", f"/deep/{DEEP}/file.txt", 200),
    "a deep file where no link is allowed": ("nolinks", f"/deep/{DEEP}/file.txt", 200),
    "a linked file where none is allowed": ("nolinks", "/filelink.txt", 403),
    "a missing file": ("all", f"/deep/{DEEP}/missing", 404),
    "a missing file, owners compared": ("owner", f"/deep/{DEEP}/missing", 404),
    "a missing directory": ("all", "/nothing/b/c/file.txt", 404),
    "a missing file behind a link": ("all", "/dirlink/missing", 404),
    "path-info": ("all", f"/deep/{DEEP}/file.txt/more/info", 404),
    "a file with a slash behind it": ("all", "/plain.txt/", 404),
    "a directory without its slash": ("all", "/index", 301),
    "a directory with an index": ("all", "/index/", 200),
    "a directory with its third index": ("all", "/third/", 200),
    "a directory with its third index, owners compared": ("owner", "/third/", 200),
    "an .htaccess file": ("all", "/access/file.txt", 200),
    "an .htaccess file in each directory": ("all", f"/each/{DEEP}/file.txt", 200),
    "what an .htaccess file denies": ("all", "/denied/file.txt", 403),
    "a missing file, .htaccess in each directory": ("all", f"/each/{DEEP}/missing", 404),
    "a directory that may not be passed": ("all", "/closed/file.txt", 403),
    "what is encoded": ("all", "/with%20blank.txt", 200),
    "a dangling link": ("all", "/dangling", 403),
}
CALL = re.compile(r'\b(open|openat|stat|lstat|newfstatat)\((?:AT_FDCWD(?:<[^>]*>)?, )?"([^"]*)"(.*)')
SAID = re.compile(r"  (stat|lstat|open) +(\S.*) -> ")


@pytest.fixture(scope="module")
def root(base):
    root = base / "explained"
    tree.put(root / "plain.txt", "plain\n")
    tree.put(root / "with blank.txt", "blank\n")
    tree.put(root / "deep" / DEEP / "file.txt", "deep\n")
    tree.put(root / "index/first.html", "first\n")
    tree.put(root / "third/third.html", "third\n")
    tree.put(root / "access/.htaccess", "Options +FollowSymLinks\n")
    tree.put(root / "access/file.txt", "with\n")
    tree.put(root / "denied/.htaccess", "Require all denied\n")
    tree.put(root / "denied/file.txt", "denied\n")
    tree.put(root / "each" / DEEP / "file.txt", "each\n")
    for depth in range(DEEP.count("/") + 1):
        tree.put(root / "each" / DEEP[:2 * depth + 1] / ".htaccess", "AddType text/x-test tst\n")
    tree.put(root / "closed/file.txt", "closed\n")
    (root / "closed").chmod(0o700)
    os.symlink("deep/a", root / "dirlink")
    tree.put(root / "deep/a/file.txt", "linked\n")
    # Before anything is watched: the event of its own creation would make it unknown again.
    tree.put(root / KNOWN, "known\n")
    os.symlink("plain.txt", root / "filelink.txt")
    os.symlink("nowhere", root / "dangling")
    return root


@pytest.fixture(scope="module")
def stock(lab, root):
    vhosts = [([name], f"<Directory {root}>\n{text}\n</Directory>") for name, (text, _) in HOSTS.items()]
    return lab.stock("stock", root, mpm="event", vhosts=vhosts, limits=LIMITS,
                     config="DirectoryIndex first.html second.html third.html\nKeepAliveTimeout 1\n").start()


@pytest.fixture(scope="module")
def daemon(lab):
    """One to which an httpd has brought its AccessFileName."""
    daemon = lab.daemon("explainer").start()
    with wire.connect(daemon.socket) as conn:
        wire.ask(conn, wire.hello(names=(b".htaccess",)))
    return daemon


def traced_calls(lines):
    """(call, path) of each line, named as flashpachectl names them."""
    for line in lines:
        found = CALL.search(line)
        assert found, line
        call, path, rest = found.groups()
        if call in ("open", "openat"):
            call = "open"
        elif call == "lstat" or "AT_SYMLINK_NOFOLLOW" in rest:
            call = "lstat"
        else:
            call = "stat"
        yield call, path.rstrip("/")


@pytest.fixture(scope="module")
def asked(stock, root):
    """{case: the calls of stock's worker below the document root}"""
    found, seen = {}, 0
    with PathTrace(stock.pids(), stock.dir / "strace.txt") as trace:
        for name, (host, path, status) in CASES.items():
            mark = stock.mark()
            with Client(stock.port, host=host) as client:
                client.conn.request("GET", path, headers={"Host": host})
                answer = client.conn.getresponse()
                answer.read()
                assert answer.status == status, (name, answer.status)
            stock.wait_entries(1, mark)
            lines = trace.calls(root)
            found[name] = list(traced_calls(lines[seen:]))
            seen = len(lines)
    return found


def explain(flashpachectl, daemon, *args):
    finished = flashpachectl("-s", daemon.socket, "explain", *args)
    assert finished.returncode == 0, finished
    return finished.stdout


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_is_what_stock_asks(asked, daemon, flashpachectl, root, name):
    host, path, _ = CASES[name]
    out = explain(flashpachectl, daemon, "--root", root, "--index", "first.html", "--index", "second.html",
                  "--index", "third.html", *HOSTS[host][1], f"http://{host}{path}")
    said = [match.groups() for match in map(SAID.match, out.splitlines()) if match]
    assert asked[name], "the trace sees nothing"
    if "denies" in name:        # explain does not read the content of .htaccess files
        assert said.pop() == ("open", f"{root}{path}")
    assert [call for call in said if call[1].startswith(str(root))] == asked[name], out


def known(out):
    """{path: state} of the last part."""
    part = out.split("what flashpached knew of it:\n")[1].split("\n\n")[0]
    return dict(line.strip().split(": ", 1) for line in part.splitlines())


def test_what_is_known_is_told(daemon, flashpachectl, root):
    path = root / KNOWN
    before = known(explain(flashpachectl, daemon, "--root", root, path))
    assert before[str(path)] == "unknown"
    after = known(explain(flashpachectl, daemon, "--root", root, path))
    assert after[str(path)].startswith("known, ") and "may be leased" in after[str(path)]
    assert flashpachectl("-s", daemon.socket, "purge", path).returncode == 0
    assert known(explain(flashpachectl, daemon, "--root", root, path))[str(path)] == "unknown"


def test_why_a_request_is_bypassed(lab, flashpachectl, root):
    daemon = lab.daemon("narrow", roots=[root / "deep"]).start()
    finished = flashpachectl("-s", daemon.socket, "explain", root / "plain.txt")
    assert finished.returncode == 1 and "bypass: " in finished.stdout and "roots" in finished.stdout
    where = tree.put(root / "deep" / "/".join("x" * 65) / "file.txt", "deep\n")
    finished = flashpachectl("-s", daemon.socket, "explain", where)
    assert finished.returncode == 1 and "more than 64 components" in finished.stdout


# Fedora's takes one argument, and no option of httpd.
FEDORAS = '[ $# -le 1 ] || { echo "Passing arguments to httpd using apachectl is no longer supported." >&2; exit 2; }'


@pytest.mark.parametrize("apachectl,httpd", (("serve", "exit 1"), (FEDORAS, "serve"), ("exit 127", "serve"),
                                             (FEDORAS, "echo no such module >&2; exit 1")),
                         ids=("Debian", "Fedora", "no apachectl", "neither"))
def test_document_root_by_httpd(stock, daemon, flashpachectl, root, tmp_path, apachectl, httpd):
    """As httpd itself reports it; apachectl and httpd are scripts, which call it with its configuration."""
    serve = f'exec {APACHE} -f {shlex.quote(str(stock.dir / "httpd.conf"))} "$@"'
    for name, line in (("apachectl", apachectl), ("httpd", httpd)):
        tree.put(tmp_path / name, f"#!/bin/sh\n{serve if line == 'serve' else line}\n", 0o755)
    finished = flashpachectl("-s", daemon.socket, "explain", "http://x/plain.txt",
                             env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    if "serve" not in (apachectl, httpd):
        assert (finished.returncode, finished.stdout) == (1, "")
        assert finished.stderr == "flashpachectl: cannot find DocumentRoot by apachectl: give it with --root\n"
        return
    assert finished.returncode == 0 and finished.stderr == "", finished
    assert finished.stdout.startswith(f"DocumentRoot {root}, ")
    assert f"stat  {root}/plain.txt -> there" in finished.stdout


def test_urls_that_httpd_refuses(daemon, flashpachectl, root):
    for url in ("http://x/a%2fb", "http://x/%00", "http://x/%4"):
        finished = flashpachectl("-s", daemon.socket, "explain", "--root", root, url)
        assert finished.returncode == 1 and "refuses" in finished.stderr
