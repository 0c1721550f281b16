# SPDX-License-Identifier: Apache-2.0
"""A change that this httpd itself has just made is in its next answer, also where no change is reported (`watch =
"ttl"`). So it is after a handler in the same request, after mod_rewrite looked, and after a method that writes on
the same connection."""

import os

import pytest

import tree
from fetch import Client
from freshness import WATCHED, settings
from lease_kit import NOTE_CONFIG
from quick import Quick, note
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

TRIES = 40
WARM = 1000
CGI = """#!/bin/sh
# Makes the file that the query names, then leads there.
n=$QUERY_STRING
case $n in
-*) n=${n#-}; rm -f "made/$n.txt" ;;
*) echo "written $n" >"made/$n.txt" ;;
esac
printf 'Location: /made/%s.txt\\n\\n' "$n"
"""


@pytest.fixture(scope="module")
def root(base):
    root = base / "www"
    tree.put(root / "write.cgi", CGI).chmod(0o755)
    for name in ("made", "dav", "lock", "cached"):
        (root / name).mkdir()
        os.chmod(root / name, 0o777)
    tree.put(root / "fallback.txt", "made anew\n")
    tree.put(root / "perdir/.htaccess", "RewriteEngine On\nRewriteCond %{DOCUMENT_ROOT}/cached/$1.txt -f\n"
             "RewriteRule ^(.*)$ /cached/$1.txt [L]\nRewriteRule ^ /fallback.txt [L]\n")
    tree.put(root / "ssi/page.shtml", '<!--#include file="none.txt" --><!--#include virtual="/write.cgi?${QUERY_STRING}" -->'
             '<!--#include virtual="/made/${QUERY_STRING}.txt" -->')
    return root


@pytest.fixture(scope="module", params=("prefork", "event"))
def server(lab, root, request):
    config = f"""<Directory {root}>
AllowOverride All
Options +ExecCGI +Includes
AddHandler cgi-script .cgi
AddOutputFilter INCLUDES .shtml
</Directory>
<Directory {root}/dav>
Dav On
</Directory>
DavLockDB {root}/lock/db
"""
    rules = "RewriteEngine On\nRewriteCond %{DOCUMENT_ROOT}/cached/$1.txt -f\nRewriteRule ^/server/(.*)$ " \
            "%{DOCUMENT_ROOT}/cached/$1.txt [L]\nRewriteRule ^/server/ %{DOCUMENT_ROOT}/fallback.txt [L]\n"
    cgi = "cgi" if request.param == "prefork" else "cgid"
    made = lab.under_test(f"written-{request.param}", root, mpm=request.param, config=config,
                          vhosts=[(["localhost"], rules)], extra_modules=(cgi, "dav", "dav_fs", "include"),
                          daemon_settings={"watch": "ttl", "ttl_ms": 600_000})
    yield made
    lab.end()


def call(client, method, path, body=None, **headers):
    client.conn.request(method, path, body=body, headers={"Host": client.host, **headers})
    answer = client.conn.getresponse()
    return answer.status, answer.read()


@pytest.mark.parametrize("known", (False, True), ids=("unknown", "known-absent"))
def test_a_file_that_a_cgi_has_written(server, root, known):
    for n in (f"{server.mpm}{known}{i}" for i in range(TRIES)):
        for step in (n, f"-{n}", n):
            with Client(server.port) as client:
                if known:
                    client.get(f"/made/{n}.txt")
                expected = (200, f"written {n}\n".encode()) if step == n else None
                got = client.get(f"/write.cgi?{step}")
                assert got == expected if expected else got[0] == 404, (n, step)
        assert (root / "made" / f"{n}.txt").exists()


def test_methods_that_write(server):
    for i in range(TRIES):
        path = f"/dav/{server.mpm}{i}.txt"
        with Client(server.port) as other:
            assert other.get(path)[0] == 404          # known from now on
        with Client(server.port) as client:
            for text in ("one", "three"):
                assert call(client, "PUT", path, text)[0] in (201, 204)
                assert call(client, "GET", path) == (200, text.encode())
            assert call(client, "COPY", path, Destination=f"http://localhost{path}.copy")[0] in (201, 204)
            assert call(client, "GET", f"{path}.copy") == (200, b"three")
            assert call(client, "MOVE", path, Destination=f"http://localhost{path}.moved")[0] in (201, 204)
            assert call(client, "GET", path)[0] == 404
            assert call(client, "GET", f"{path}.moved") == (200, b"three")
            assert call(client, "DELETE", f"{path}.moved")[0] == 204
            assert call(client, "GET", f"{path}.moved")[0] == 404
            assert call(client, "MKCOL", f"{path}.d")[0] == 201
            assert call(client, "PUT", f"{path}.d/x", "x")[0] == 201
            assert call(client, "GET", f"{path}.d/x") == (200, b"x")
            assert call(client, "DELETE", f"{path}.d/")[0] == 204
            assert call(client, "GET", f"{path}.d/x")[0] == 404


@pytest.mark.parametrize("where", ("server", "perdir"))
def test_a_page_whose_presence_mod_rewrite_looks_at(server, root, where):
    """It is served as it is, or made anew: never absent."""
    page = root / "cached" / f"{where}.txt"
    with Client(server.port) as client:
        for i in range(TRIES):
            tree.put(page, f"page {i}\n")
            assert client.get(f"/{where}/{where}") == (200, f"page {i}\n".encode())
            assert client.get(f"/cached/{where}.txt")[0] == 200
            page.unlink()
            assert client.get(f"/{where}/{where}") == (200, b"made anew\n")


def test_a_later_part_of_a_page(server, root):
    """The second file of a page with server-side includes, written by the first part."""
    for n in (f"ssi{server.mpm}{i}" for i in range(TRIES)):
        with Client(server.port) as client:
            client.get(f"/made/{n}.txt")
            status, body = client.get(f"/ssi/page.shtml?{n}")
        assert status == 200 and body.count(f"written {n}\n".encode()) == 2, body


def test_other_connections_are_answered_as_before(server, root):
    """Requests that neither wrote nor run after a handler are answered without a walk."""
    tree.put(root / "plain.txt", "plain\n")
    for _ in range(3):
        with Client(server.port) as client:
            assert client.get("/plain.txt") == (200, b"plain\n")
            assert client.get("/none.txt")[0] == 404
    assert {e.note for e in server.wait_entries(6)[-2:]} <= {"hit", "lease"}


@pytest.mark.parametrize("mpm", ("prefork", "event"))
def test_later_requests_of_a_connection_that_has_written(lab, root, mpm):
    """As from a proxy that sends a form among many requests: once all answers of before have expired, requests use
    what is known."""
    server = lab.under_test(f"later-{mpm}", root, mpm=mpm,
                            config=f"{NOTE_CONFIG}<Directory {root}>\nAllowOverride None\n</Directory>\n",
                            daemon_settings={"watch": "ttl", "ttl_ms": 1000, "mount_timeout_ms": 500, "lookup_timeout_ms": 500})
    tree.put(root / "plain.txt", "plain\n")
    connection = Quick(server.port)
    wait_for(lambda: note(connection.ask("/plain.txt")) == "lease", "a lease")
    connection.send("/plain.txt", "POST")
    connection.read()
    assert note(connection.ask("/plain.txt")) == "miss"
    wait_for(lambda: note(connection.ask("/plain.txt")) == "lease", "a lease again")
    lab.end()


@pytest.fixture(scope="module", params=("prefork", "event"))
def watched_server(lab, root, request):
    rules = "RewriteEngine On\nRewriteRule ^/rewritten/(.*)$ %{DOCUMENT_ROOT}/cached/$1 [L]\n"
    made = lab.under_test(f"watched-{request.param}", root, mpm=request.param, vhosts=[(["localhost"], rules)],
                          config=f"<Directory {root}>\nAllowOverride None\n</Directory>\n{NOTE_CONFIG}",
                          daemon_settings=settings(True))
    yield made
    lab.end()


@pytest.mark.skipif(not WATCHED, reason="FLASHPACHE_WATCH=ttl: nothing is told")
def test_rewritten_requests_use_leases_where_all_is_reported(watched_server, root):
    """As WordPress' front controller: a known page needs no question, and every change shows."""
    server, path = watched_server, f"/rewritten/w{watched_server.mpm}.txt"
    page = root / "cached" / f"w{server.mpm}.txt"
    tree.put(page, "first\n")
    connection = Quick(server.port)
    wait_for(lambda: note(connection.ask(path)) == "lease", "a lease")
    notes = [note(connection.ask(path)) for _ in range(WARM)]
    # Other processes on this machine may mount something or make events meanwhile.
    assert notes.count("lease") >= 0.9 * WARM, notes
    for i in range(TRIES):
        page.write_text(f"page {i}\n")
        assert connection.ask(path).body == f"page {i}\n".encode()
        page.unlink()
        assert connection.ask(path).status == 404
        tree.put(root / "new", f"other {i}\n")
        os.rename(root / "new", page)
        assert connection.ask(path).body == f"other {i}\n".encode()


def questions(server):
    counters = server.daemon.counters()
    return sum(counters[name] for name in ("hits", "misses", "joined"))


def test_rewritten_requests_use_no_lease_where_changes_go_unseen(server, root):
    tree.put(root / "cached" / "always.txt", "always\n")
    before = questions(server)
    with Client(server.port) as client:
        for _ in range(TRIES):
            assert client.get("/server/always") == (200, b"always\n")
    assert questions(server) >= before + TRIES
