# SPDX-License-Identifier: Apache-2.0
"""A request whose answer turned out to be old while httpd served it is served once more, as by stock from its beginning. So is a
part of a page, and an address that a rule of the server has ended on. And headers that httpd makes of the content are of the body sent."""

import base64
import hashlib
import itertools
import mmap
import os

import pytest

import tree
from fetch import Client

KNOWN = 4                   # requests, after which children have a lease
LENGTH = 5                  # of each version of the file
NUMBERS = itertools.count()
CONFIG = """<Directory {root}>
Options +Includes
AddOutputFilter INCLUDES .shtml
</Directory>
<Directory {root}/within>
ContentDigest On
AddOutputFilter SUBSTITUTE .txt
Substitute "s/e/ee/"
</Directory>
<Directory {root}/tagged>
FileETag MTime Size +Digest
</Directory>
"""
RULES = """RewriteEngine On
RewriteRule ^/pretty$ /within/part.txt [END]
RewriteCond %{ENV:REDIRECT_STATUS} ^$
RewriteRule ^/app/(.*)$ /within/$1 [L]
RewriteRule ^/within/part.txt$ - [CO=seen:1:localhost]
RewriteRule ^/shown$ /within/part.txt
<Location /shown>
SetOutputFilter SUBSTITUTE
Substitute "s/e/oo/"
</Location>
Header always add X-Early one early
"""


@pytest.fixture
def root(base):
    root = base / str(next(NUMBERS))
    tree.put(root / "index.html", "the front page\n")
    tree.put(root / "within/part.txt", "one \n")
    tree.put(root / "page.shtml", '[<!--#include file="within/part.txt" -->]')
    tree.put(root / "within/page.shtml", '[<!--#include file="part.txt" -->]')
    tree.put(root / "tagged/file.txt", "one \n")
    tree.put(root / "shown.shtml", '[<!--#include virtual="/shown" -->]')
    return root


@pytest.fixture
def settings():
    """Of the daemon."""
    return {}


@pytest.fixture
def server(lab, root, settings):
    yield lab.under_test("again-" + root.name, root, config=CONFIG.format(root=root), vhosts=[(["localhost"], RULES)],
                         daemon_settings=settings)
    lab.end()


@pytest.fixture
def get(server):
    """get(path): (status, headers, body)"""
    def get(path):
        with Client(server.port) as client:
            client.conn.request("GET", path, headers={"Host": "localhost"})
            answer = client.conn.getresponse()
            return answer.status, answer.headers, answer.read().decode()
    return get


@pytest.mark.parametrize("path", ("/page.shtml", "/within/page.shtml", "/pretty", "/within/part.txt", "/app/part.txt", "/shown.shtml"))
def test_from_the_beginning(get, root, path):
    """A mapping of the file that stays tells nobody of a write; its time shows it. A rule that looks for a redirect sees none,
    headers and cookies are not doubled, and a part keeps the URI that a <Location> is about."""
    frame = "[{}]" if path.endswith(".shtml") else "{}"
    e = "oo" if path.startswith("/shown") else "ee"
    for _ in range(KNOWN):
        status, before, body = get(path)
        assert (status, body) == (200, frame.format(f"on{e} \n"))
    with open(root / "within/part.txt", "r+b") as file, mmap.mmap(file.fileno(), LENGTH) as mapping:
        mapping[:] = b"twoe\n"
        status, headers, body = get(path)
        assert (status, body) == (200, frame.format(f"two{e}\n"))
    assert headers.get_all("X-Early") == ["one"]
    assert headers.get_all("Set-Cookie") == before.get_all("Set-Cookie")
    assert bool(before.get_all("Set-Cookie")) == (path == "/within/part.txt")


@pytest.mark.parametrize("settings", ({"ttl_ms": 600_000, "watch": "ttl"},), ids=("ttl",))
def test_tagged_by_the_content_that_is_sent(server, get, root):
    """The words of FileETag that come last ask for it. New children ask a daemon that has not heard of the change."""
    for text in ("one \n", "two \n"):
        os.replace(tree.put(root / "tagged/new", text), root / "tagged/file.txt")
        server.graceful()
        status, headers, body = get("/tagged/file.txt")
        digest = base64.b64encode(hashlib.sha1(body.encode()).digest()).decode()
        assert status == 200 and digest.rstrip("=") in headers["ETag"]


# ---- written in place by another machine ----

SIZES = (17_000, 60_000, 100_000)       # none is served by its content
FIRST_READ = 65_536                     # so much is read before the header


def sent_at_their_length(ask, source):
    """Another machine changes lengths of files in place. ask(name): (status, body). No response breaks off, none is cut."""
    first, second = tree.content("first", SIZES[-1]), tree.content("second", SIZES[-1])
    for size in SIZES:
        name = f"{size}.bin"
        for now in (3, size // 2, 0):
            tree.put(source / name, first[:size])
            assert {ask(name)[0] for _ in range(KNOWN)} == {200}
            os.truncate(source / name, now)
            assert [ask(name) for _ in range(KNOWN)] == [(200, first[:now])] * KNOWN
        tree.put(source / name, first[:size])
        assert ask(name)[0] == 200
        if size < FIRST_READ:
            tree.put(source / name, second[:size + 5000])
            assert ask(name) == (200, second[:size + 5000])


@pytest.mark.parametrize("mpm", ("event", "prefork"))
@pytest.mark.needs_flashpache
def test_another_length_by_another_machine(lab, base, slow_directory, mpm):
    """No event tells of it, and the answer is used until its TTL is over."""
    source = base / f"others-{mpm}"
    source.mkdir()
    server = lab.under_test(f"others-{mpm}", slow_directory(source, 0), mpm=mpm, daemon_settings={"ttl_ms": 600_000})
    with Client(server.port) as client:
        sent_at_their_length(lambda name: client.get(f"/{name}"), source)
