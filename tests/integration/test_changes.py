# SPDX-License-Identifier: Apache-2.0
"""Changes show in time, in every child: each kind, on each kind of file system.

Before each change every connection asks until its answer comes from memory. Requests that start later than the
bound (see freshness) after the change has returned must show it. They must have the status and body of the case,
and stock's headers.
"""

import itertools
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import change_cases
import tree
from change_cases import CASES, Place
from conftest import SELFCHECK
from forms import chosen, full, full_where, never_where
from freshness import bound_s, settings
from httpd import HITS
from keepalive import Children, Connection, children_config

SLOW_US = 200
WARM_REQUESTS = 500     # until an answer comes from memory; ends a hang
WARM_S = 0.002
SETTINGS = {"event": (None, 2, 2), "prefork": ("StartServers 3\nMinSpareServers 1\nMaxSpareServers 3\n"
                                               "ServerLimit 3\nMaxRequestWorkers 3\n", 3, 1)}
COMPARED = ("last-modified", "etag", "content-type", "content-length", "x-state", "location", "accept-ranges")
KINDS = ("event-disk", full("event-tmpfs"), "event-slow", "event-overlay", "event-behind",
         "prefork-disk")
# In the normal form prefork runs only these.
SOME = set(list(CASES)[::4])


class Site:
    """A document root (served), a way to change it (hand), a directory outside of it, a stock server, ours, and
    connections to all our children."""

    def __init__(self, kind, served, hand, elsewhere):
        self.kind, self.served, self.hand = kind, served, hand
        self.reported = served == hand
        self.pages_are_files = kind not in ("event-slow", "event-behind")
        self.elsewhere = elsewhere
        self.bound_s = bound_s(self.reported)
        self.stock = self.ours = self.children = None

    def place(self, name):
        return Place(self.served, self.hand, self.elsewhere, name)

    def start(self, lab):
        mpm = self.kind.split("-")[0]
        limits, count, each = SETTINGS[mpm]
        log = lab.base / f"children-{self.kind}.log"
        config = 'Header always set X-Note "expr=%{note:flashpache}"\n'
        for root in (self.served, self.elsewhere):
            config += (f"<Directory {root}>\nAllowOverride All\nOptions FollowSymLinks\n"
                       "Require all granted\n</Directory>\n")
        stock = lab.stock(f"stock-{self.kind}", self.served, config=config + "KeepAliveTimeout 600\n")
        self.stock = Connection(stock.start().port)
        self.ours = lab.under_test(f"ours-{self.kind}", self.served, mpm=mpm, limits=limits,
                                   config=config + children_config(log), admission=2,
                                   daemon_settings=settings(self.reported))
        self.children = Children(self.ours, log, count, each)
        return self


@pytest.fixture(scope="module")
def tmpfs(base):
    at = Path(tempfile.mkdtemp(prefix="tmpfs-", dir=base))
    change_cases.mount("-t", "tmpfs", "-o", "mode=755", "none", at)
    yield at
    subprocess.run(["umount", "-l", str(at)], check=True)


@pytest.fixture(scope="module")
def overlay(base, tmpfs):
    at = base / "overlay"
    for name in ("lower", "upper", "work"):
        (tmpfs / name).mkdir()
    at.mkdir()
    change_cases.mount("-t", "overlay", "-o", ",".join(f"{name}dir={tmpfs / name}" for name in
                                                       ("lower", "upper", "work")), "none", at)
    yield at
    subprocess.run(["umount", "-l", str(at)], check=True)


def roots(request, base, kind):
    """(served, hand)"""
    where = kind.split("-")[1]
    if where == "disk":
        root = base / f"changes-{kind}"
        root.mkdir()
        return root, root
    if where in ("tmpfs", "overlay"):
        root = request.getfixturevalue(where) / "www"
        root.mkdir()
        return root, root
    source = base / f"changes-{where}-source"
    source.mkdir()
    mounted = request.getfixturevalue("slow_directory")(source, SLOW_US)
    return mounted, source if where == "behind" else mounted


@pytest.fixture(scope="module", params=KINDS)
def site(request, base, lab):
    served, hand = roots(request, base, request.param)
    elsewhere = base / f"elsewhere-{request.param}"
    elsewhere.mkdir()
    made = Site(request.param, served, hand, elsewhere).start(lab)
    yield made
    # The servers first: connections that close just before SIGTERM make event's children crash, stock's as well.
    lab.end()
    made.children.close()


@pytest.fixture(autouse=True)
def connections(site):
    """A test that failed in the middle of an answer leaves no broken connections to the next."""
    for connection in site.children.all():
        if connection.spoilt():
            site.children.again(connection)


# Asking

def url(name, path):
    return f"/{name}/{path}"


def warm(site, name, wants):
    """Every connection asks for every path until the answer comes from memory, and is the wanted one. The daemon looks at an
    unreadable file with other names each time: nothing could report a change by those. An empty file has no content
    that could be kept, and on FUSE no file is held open."""
    for connection in site.children.all():
        for path, want in wants.items():
            looked_at = SELFCHECK or (want == 403 and CASES[name].hard_link)
            for _ in range(WARM_REQUESTS):
                answer = connection.get(url(name, path))
                if looked_at or (answer.body == b"" and site.kind != "event-disk") or answer.headers.get("x-note") in HITS:
                    break
                time.sleep(WARM_S)
            else:
                pytest.fail(f"{path}: never remembered: {answer}")
            assert not wrong(answer, want), f"{path}, warm: {wrong(answer, want)}"


def ask(site, name, before, wants):
    """Every connection asks once. The answer must be old or new, or the beginning of either, as a file shows while it
    is written."""
    for connection in site.children.all():
        for path in wants:
            answer = connection.get(url(name, path))
            if not answer.complete:         # the file has just shrunk
                site.children.again(connection)
                break
            assert answer.status != 200 or is_either(answer.body, before.get(path), wants[path]), \
                f"{path}, {answer.body[:60]!r} ({len(answer.body)}) is neither old nor new"


def is_either(body, *wants):
    texts = (want[0] if isinstance(want, tuple) else want for want in wants)
    return any(isinstance(text, str) and text.encode().startswith(body) for text in texts)


def wrong(answer, want):
    """The difference from the wanted answer, or None."""
    if isinstance(want, int):
        return None if answer.status == want else f"{answer.status} instead of {want}"
    body, value = want if isinstance(want, tuple) else (want, None)
    if answer.status != 200:
        return f"{answer.status} instead of 200"
    if answer.body != body.encode() or not answer.complete:
        return f"body {answer.body[:60]!r} ({len(answer.body)}) instead of {body[:60]!r} ({len(body)})"
    if isinstance(want, tuple) and answer.headers.get("x-state") != value:
        return f"X-State {answer.headers.get('x-state')} instead of {value}"
    return None


def differences(answer, stock, headers):
    """The parts of an answer that differ from stock's. A file's ETag is weak in its first second."""
    found = [] if answer.status == stock.status else [("status", answer.status, stock.status)]
    found += [] if answer.body == stock.body else [("body", answer.body[:60], stock.body[:60])]
    names = COMPARED if headers else ("content-length", "x-state")
    for name in names:
        ours, theirs = (one.headers.get(name, "").removeprefix("W/") for one in (answer, stock))
        if name == "location":
            ours, theirs = ours.partition("8080")[2], theirs.partition("8080")[2]
        if ours != theirs:
            found.append((name, ours, theirs))
    return found


def check(site, name, wants, headers, what):
    """Now each child must show it."""
    for path, want in wants.items():
        stock = site.stock.get(url(name, path))
        assert not wrong(stock, want), f"{what}: {path}, stock: {wrong(stock, want)}"
        for child, connections in site.children.by_child.items():
            for connection in connections:
                answer = connection.get(url(name, path))
                who = f"{what}: {path}, child {child}, note {answer.headers.get('x-note')}"
                assert not wrong(answer, want), f"{who}: {wrong(answer, want)}"
                found = differences(answer, stock, headers)
                assert not found, f"{who}: (name, ours, stock): {found}"


def wait(site, name, before, wants, busily):
    """Waits until the bound after a change that has just returned is over. busily: entries in use are refreshed all
    the time."""
    end = time.monotonic() + site.bound_s
    ask(site, name, before, wants)
    while busily and time.monotonic() < end:
        ask(site, name, before, wants)
    time.sleep(max(0, end - time.monotonic()))


# FUSE may have an inode for each name of a file, as slowfs has: such a file has its TTL (event-behind).
@never_where(lambda values: values["site"] == "event-slow" and CASES[values["name"]].hard_link)
# A mount cannot be made behind the file system.
@never_where(lambda values: values["site"] == "event-behind" and not CASES[values["name"]].behind)
@full_where(lambda values: values["site"] == "prefork-disk" and values["name"] not in SOME)
@pytest.mark.parametrize("name", CASES)
def test_change(site, name):
    made = CASES[name]
    place = site.place(name)
    steps = made(place)
    try:
        wants = next(steps)
        for number in itertools.count(1):
            warm(site, name, wants)
            before, wants = wants, next(steps, None)
            if wants is None:
                break
            # The quiet way finds leases that live on, the other one answers that are renewed.
            wait(site, name, before, wants, busily=number % 2 == (site.kind == "event-disk"))
            check(site, name, wants, made.headers, f"change {number}")
    finally:
        steps.close()


# A file that shrinks while it is sent

LARGE = 48 << 20
KEPT = (LARGE // 3 + 1000, 100_000, 0)


PAGE = 4096


def is_prefix(body, content, kept, pages_are_files):
    """Zeros may follow, as from stock: of the last pages, where they were mapped. FUSE also hands out pages that a
    truncation then clears."""
    if content.startswith(body):
        return True
    if pages_are_files:
        real = body.rstrip(b"\0")
        return len(real) <= kept and content.startswith(real)
    pages = ((body[at:at + PAGE], content[at:at + PAGE]) for at in range(0, len(body), PAGE))
    return all(there.startswith(page.rstrip(b"\0")) for page, there in pages)


@pytest.mark.parametrize("kept", KEPT)
def test_truncated_during_a_transfer(site, kept):
    """The body is a prefix of the old content, the connection ends, the server goes on."""
    name = f"large-{kept}"
    place = site.place(name)
    content = tree.content(name, 1 << 20) * (LARGE >> 20)
    place.at("large.bin").write_bytes(content)
    path = url(name, "large.bin")
    clients = [Connection(site.ours.port, receive_buffer=1 << 16) for _ in range(2 if "event" in site.kind else 0)]
    clients += site.children.all()[:1]
    for client in clients:
        client.begin(path)
    heads = [client.read_head() for client in clients]
    os.truncate(place.at("large.bin"), kept)
    for client, (status, headers, body) in zip(clients, heads):
        assert (status, int(headers["content-length"])) == (200, LARGE)
        while part := client.receive():
            body += part
        assert len(body) < LARGE
        assert is_prefix(bytes(body), content, kept, site.pages_are_files)
        client.close()
    site.children.again(clients[-1])
    wants = {"large.bin": content[:kept].decode("latin-1")} if kept == 0 else {}
    time.sleep(site.bound_s)
    check(site, name, wants, True, "truncated")
    for connection in site.children.all():
        assert connection.get(path).body == content[:kept]
    assert not site.ours.crashes()


# Delays

SAMPLES = chosen(30, 100)


def changes_of(place):
    """(path, want) after each of endless changes of several kinds."""
    for name in ("d/file.txt", "e/file.txt"):
        place.write(name, "first\n")
    place.link("link", "d")
    number = 0
    yield "d/file.txt", "first\n"
    while True:
        number += 1
        place.replace("d/file.txt", f"renamed {number}\n")
        yield "d/file.txt", f"renamed {number}\n"
        place.pwrite("d/file.txt", f"RENAMED {number}\n")
        yield "d/file.txt", f"RENAMED {number}\n"
        place.write("d/.htaccess", change_cases.DENIED)
        yield "d/file.txt", 403
        place.at("d/.htaccess").unlink()
        yield "d/file.txt", f"RENAMED {number}\n"
        place.link("link", "e" if number % 2 else "d")
        yield "link/file.txt", "first\n" if number % 2 else f"RENAMED {number}\n"


def until_shown(site, path, want, changed):
    """Seconds from the change to the first answer that shows it, for each connection."""
    waiting = site.children.all()
    delays = []
    while waiting:
        for connection in list(waiting):
            answer = connection.get(path)
            if not wrong(answer, want):
                delays.append(answer.end - changed)
                waiting.remove(connection)
            else:
                late = answer.start - changed
                assert late < site.bound_s, f"{path}, asked {late * 1000:.1f} ms later: {wrong(answer, want)}"
    return delays


def test_delay(site):
    """Prints a change's delay; asserts nothing but the bound."""
    place = site.place("delay")
    changes = changes_of(place)
    path, want = next(changes)
    both = {"d/file.txt": "first\n", "link/file.txt": "first\n"}
    delays = []
    for number in range(SAMPLES):
        if number == 0:
            warm(site, "delay", both)
        for connection in site.children.all():
            for warmed in both:
                connection.get(url("delay", warmed))
        path, want = next(changes)
        changed = time.monotonic()
        delays += until_shown(site, url("delay", path), want, changed)
    ordered = sorted(1000 * d for d in delays)
    print(f"\n{site.kind}: ms from {SAMPLES} changes to the first answer of each connection: "
          f"min {ordered[0]:.2f} median {statistics.median(ordered):.2f} "
          f"90 % {ordered[int(0.9 * len(ordered))]:.2f} max {ordered[-1]:.2f}")


@pytest.mark.needs_flashpache
def test_nobody_fell_back(site):
    """Except for a daemon that gets no processor for long: children take it for a hung one, and leave it alone for a
    while."""
    entries = site.ours.entries()
    fallbacks = [entry for entry in entries if entry.note == "fallback"]
    hung = sum(entry.reason == "timeout" for entry in fallbacks)
    paused = sum(entry.reason == "paused" for entry in fallbacks)
    assert hung + paused == len(fallbacks) and hung <= len(entries) / 1000, fallbacks
