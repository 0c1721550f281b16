# SPDX-License-Identifier: Apache-2.0
"""A file changes between the phases of one request: RewriteCond, core's walk and the response share one view. No
response mixes two versions, and no file is served by another one's rules."""

import http.client
import os
import re
import shutil
import threading

import pytest

import c_module
import tree
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

PHASES = ("begun", "translated", "walked", "wait", "fixed")
SIZES = {"small": 700, "large": 200_000}        # sent from the daemon's memory, and from a descriptor
DAY_S = 86400
FALLBACK = b"fallback\n"
RULES = "RewriteEngine On\nRewriteCond %{{DOCUMENT_ROOT}}%{{REQUEST_URI}} !-f\nRewriteRule ^{slash}(.*)$ /fallback.txt\n"


def version(letter, size):
    return letter.encode() * (size + ord(letter))


class Site:
    """One place with a page, which has version A; B takes its place."""

    def __init__(self, root, where, size):
        self.dir, self.size = root / where, size
        self.page = self.dir / "page.txt"
        shutil.rmtree(self.dir, ignore_errors=True)
        if self.dir.is_symlink():
            self.dir.unlink()

    def put(self, path, letter):
        return tree.put(path, version(letter, self.size), mtime=tree.MTIME + DAY_S * (ord(letter) - ord("A")))

    def make(self):
        self.put(self.page, "A")

    def replace(self):
        os.rename(self.put(self.dir / "new", "B"), self.page)

    def rewrite(self):
        self.put(self.page, "B")

    def remove(self):
        self.page.unlink()

    def appear(self):
        self.put(self.page, "B")


class Closed(Site):
    """The page cannot be read, so the daemon has no descriptor of it."""

    def make(self):
        super().make()
        self.page.chmod(0)

    def open(self):
        self.page.chmod(0o644)


class Links(Site):
    """The directory is a link, from an open release to one that is closed."""

    def make(self):
        for letter in "AB":
            self.put(self.dir.parent / f"{self.dir.name}-{letter}/page.txt", letter)
        tree.put(self.dir.parent / f"{self.dir.name}-B/.htaccess", "Require all denied\n")
        os.symlink(f"{self.dir.name}-A", self.dir)

    def switch(self):
        new = self.dir.with_name("new")
        new.symlink_to(f"{self.dir.name}-B")
        os.rename(new, self.dir)


# kind: (site, the change, is the page there before?)
KINDS = {"replaced": (Site, "replace", True), "rewritten": (Site, "rewrite", True), "removed": (Site, "remove", True),
         "closed then replaced": (Closed, "replace", True), "closed then opened": (Closed, "open", True),
         "made": (Site, "appear", False), "link switched": (Links, "switch", True)}


def possible(kind, size):
    """The allowed responses: {(status, body)}; None for the body of an error."""
    a, b, fallback = (200, version("A", size)), (200, version("B", size)), (200, FALLBACK)
    return {"replaced": {a, b}, "rewritten": {a, b}, "removed": {a, fallback, (404, None)},
            "closed then replaced": {b, (403, None)}, "closed then opened": {a, (403, None)},
            "made": {b, fallback, (404, None)}, "link switched": {a, (403, None)}}[kind]


@pytest.fixture(scope="module")
def probe(base):
    return c_module.probe(base / "probe")


@pytest.fixture(scope="module", params=[(mpm, watch) for mpm in ("prefork", "event") for watch in ("auto", "ttl")],
                ids=lambda p: "-".join(p))
def server(lab, base, probe, request):
    mpm, watch = request.param
    root = base / f"www-{mpm}-{watch}"
    tree.put(root / "fallback.txt", FALLBACK)
    for where in ("server", "perdir", "plain"):
        (root / where).mkdir()
    tree.put(root / "perdir/.htaccess", RULES.format(slash=""))
    # A child that fits each connection, so that they share their knowledge.
    rules = RULES.format(slash="/server/")
    yield lab.under_test(f"view-{mpm}-{watch}", root, mpm=mpm, vhosts=[(["localhost"], rules)],
                         config=f"{probe}<Directory {root}>\nAllowOverride All\n</Directory>\n",
                         daemon_settings={} if watch == "auto" else {"watch": "ttl", "ttl_ms": 600_000})
    lab.end()


def ask(server, path):
    """(status, headers, body); fails if the body's length differs from the header's."""
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        conn.request("GET", path, headers={"Host": "localhost"})
        answer = conn.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        conn.close()


def ask_while(server, path, phase, change, flag):
    """The response to a request during one of whose phases the change is made."""
    got = []
    asking = threading.Thread(target=lambda: got.append(ask(server, f"{path}?{phase}={flag}")))
    asking.start()
    try:
        wait_for(flag.exists, f"the phase {phase}")
        change()
    finally:
        flag.unlink(missing_ok=True)
        asking.join()
    assert got, "the body was cut"
    return got[0]


def problem(answer, kind, size):
    """The torn part; None: there is none."""
    status, headers, body = answer
    if (status, body if status == 200 else None) not in possible(kind, size):
        return f"{status} {body[:20]!r}.. of {len(body)} bytes"
    if status != 200 or body == FALLBACK:
        return None
    day = {"A": "14 Jul", "B": "15 Jul"}[chr(body[0])]
    etag = re.fullmatch(r'"([0-9a-f]+)-[0-9a-f]+"', headers["ETag"] or "")
    if int(headers["Content-Length"]) != len(body) or day not in headers["Last-Modified"] or not etag \
            or int(etag.group(1), 16) != len(body):
        return f"headers of another version: {dict(headers)} for {len(body)} bytes of {body[:1]}"
    return None


@pytest.mark.parametrize("where", ("server", "perdir", "plain"))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_torn(server, base, where, kind):
    shared = base / "flags"
    shared.mkdir(exist_ok=True)
    shared.chmod(0o777)
    make, change, there = KINDS[kind]
    found, statuses = [], []
    for name, size in SIZES.items():
        for phase in PHASES:
            for warm in (True, False):
                label = f"{name}-{phase}-{int(warm)}"
                site = make(server.docroot / where, f"{label}-{kind.replace(' ', '-')}", size)
                site.dir.parent.mkdir(exist_ok=True)
                if there:
                    site.make()
                else:
                    site.dir.mkdir()
                path = f"/{where}/{site.dir.name}/page.txt"
                for _ in range(2 if warm else 0):
                    ask(server, path)
                answer = ask_while(server, path, phase, getattr(site, change), shared / f"{where}-{label}")
                statuses.append(answer[0])
                wrong = problem(answer, kind, size)
                if wrong:
                    found.append(f"{label}: {wrong}")
    assert not found, f"{len(found)} of {len(statuses)}:\n" + "\n".join(found)
    assert len(statuses) == len(SIZES) * len(PHASES) * 2


def test_below_a_link_that_led_nowhere(server):
    """Core finds that the link leads to a directory by now, where the answer has nothing. No change in "passed" is reported, since
    Apache may pass it but not read it."""
    root = server.docroot / "nowhere"
    tree.put(root / "there/page.txt", "there\n")
    (root / "passed").mkdir(mode=0o711)
    (root / "link").symlink_to("passed/to")
    for _ in range(3):
        assert ask(server, "/nowhere/link/page.txt")[0] == 403
    (root / "passed/to").symlink_to("../there")
    assert ask(server, "/nowhere/link/page.txt")[::2] == (200, b"there\n")
