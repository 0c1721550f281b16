# SPDX-License-Identifier: Apache-2.0
"""httpd 2.2, 2.0, and 2.4 before 2.4.7, with the module built for it: every answer is stock's.

conftest leaves this file out where FLASHPACHE_APACHE is no such server (httpd22).
"""

import collections
import dataclasses
import itertools
import threading
import time

import httpd22
import linear_kinds
import linear_run
import parity_cases
import procs
import pytest
import rawhttp
import tree
from conftest import SELFCHECK, built
from content_kit import SETTLED_S, clock  # noqa: F401 (fixture)
from forms import chosen
from freshness import settings
from httpd import HITS
from test_linearizable import check, places
from test_parity import compare
from test_served_again import sent_at_their_length
from trace import PathTrace
from waiting import wait_for

PLAIN = parity_cases.PLAIN
# Of the whole comparison: what needs another module, another protocol, or a server that answers the very
# request in another way each time.
OTHERS = ("tls", "mod-tls", "big", "pipeline-120", "bad-two-lengths")


def is_wanted(case):
    # These servers linger two seconds after a malformed body, so it comes with one path alone.
    bad = case.name.startswith("bad-") and PLAIN not in case.name
    return not (case.tls or bad or case.name.startswith(OTHERS))


CASES = [dataclasses.replace(case, expect=None) for case in filter(is_wanted, parity_cases.every_case())]
TRIES = chosen(4000, 100_000)       # changes, each with a request at once
PATHS = [PLAIN, "/plain.txt/", "/plain.txt/more", "/plain.txt/more/x", "/large.bin", "/empty.txt", "/missing.txt",
         "/missing.txt/more", "/missing/", "/a/b/c/d/e/f/deep.txt", "/a/b/c/missing/d", "/a", "/a/", "/", "/both", "/both/",
         "/second/", "/listing/", "/noindex/", "/denied/file.txt", "/denied/missing", "/files/a.key", "/alias/file.txt",
         "/alias/missing", "/match/file.txt", "/location", "/links/follow/same", "/links/follow/dir/file.txt",
         "/links/follow/other", "/links/follow/dangling", "/links/follow/missing", "/links/follow/loop/x",
         "/links/never/same", "/links/never/dir/file.txt", "/links/never/real/file.txt", "/links/never/missing",
         "/links/owner/same", "/links/owner/other", "/links/owner/otherdir/file.txt", "/links/owner/missing",
         "/perm/none.txt", "/perm/dir000/file.txt", "/perm/search-only/file.txt", "/ht/header/file.txt",
         "/ht/deny/file.txt", "/ht/deny/missing", "/ht/broken/file.txt", "/ht/nofollow/link", "/ht/merge/inner/file.txt",
         "/ht/rewrite/any/thing", "/ht/index/", "/ht/auth/file.txt", "/ht/error/missing", "/ht/types/file.txt",
         "/ht/unreadable/file.txt", "/ht/dirht/file.txt", "/ht/linkht/file.txt", "/noht/file.txt", "/ssi/page.shtml",
         "/multi/doc", "/multi/missing", "/perdir/from", "/rw/abs", "/rw/cond", "/etag-all/file.txt", "/md5/file.txt",
         "/pathinfo-on/file.txt/more"]


@pytest.fixture(scope="module")
def roots(base):
    www, outside = tree.parity_tree(base / "parity-tree")
    httpd22.make_old(www)
    return www, outside


@pytest.fixture(scope="module")
def make(lab, roots):
    """make(name, ...) starts a server with Flashpache and a daemon of its own; stock=True: one without."""
    www, outside = roots
    names = itertools.count()

    def start(name, stock=False, settings=None, **options):
        options = {"config": httpd22.main(www, outside), "vhosts": httpd22.vhosts(www), **options}
        name, daemon = f"{name}{next(names)}", None
        if not stock and not SELFCHECK:
            daemon = lab.daemon(f"{name}-daemon", **(settings or {})).start()
            options.update(socket=daemon.socket, module=built("mod_flashpache/.libs/mod_flashpache.so"))
        server = httpd22.OldHttpd(lab.base, name, www, **options)
        lab.started.append(server)
        server.start()
        server.daemon = daemon
        return server
    return start


@pytest.fixture(scope="module")
def servers(make):
    """(stock, with Flashpache)"""
    return make("stock", stock=True), make("flash")


@pytest.mark.parametrize("case", CASES, ids=lambda c: ascii(c.name)[1:70])
def test_same_as_stock(servers, case):
    compare(servers, case)


@pytest.mark.parametrize("host", [names[0] for names, _ in httpd22.vhosts("")])
@pytest.mark.parametrize("path", PATHS)
def test_same_as_stock_in_each_configuration(servers, host, path):
    for method in ("GET", "HEAD"):
        compare(servers, parity_cases.one(f"{host}{path}-{method}", path, method, host=host))


@pytest.mark.needs_flashpache
def test_the_comparison_met_hits(servers):
    _, flash = servers
    for host in httpd22.CONFIGURATIONS:
        def is_hit():
            mark = flash.mark()
            rawhttp.exchange(flash.port, rawhttp.request("GET", PLAIN, host=f"{host}.test"))
            return flash.wait_entries(1, mark)[-1].note in HITS

        wait_for(is_hit, f"a hit of {host}")
    notes = collections.Counter((e.note, e.reason) for e in flash.entries())
    print(f"{httpd22.version()} {httpd22.mpm()}: {dict(notes)}")
    assert sum(count for (note, _), count in notes.items() if note in (*HITS, "look")) > sum(notes.values()) / 2


# Calls that name something below the tree, of a warm request: (configuration, path) -> does Flashpache spare all?
CALLS = {("none", "/a/b/c/d/e/f/deep.txt"): True, ("all", "/a/b/c/d/e/f/deep.txt"): True,
         ("owner", "/a/b/c/d/e/f/deep.txt"): False, ("none", "/a/b/c/missing"): True,
         ("all", "/a/b/c/missing/more"): True, ("all", "/ht/header/file.txt"): True,
         ("none", "/links/follow/dir/file.txt"): True, ("none", "/plain.txt/more"): True}


def calls_of(server, root, host, path, log):
    """The path calls of one request, after warm ones; `root` limits them to the tree's own."""
    data = rawhttp.request("GET", path, host=f"{host}.test")
    for _ in range(6):
        rawhttp.exchange(server.port, data)
    with PathTrace(server.pids(), log) as trace:
        rawhttp.exchange(server.port, data)
        rawhttp.exchange(server.port, data)
    return [line for line in trace.calls(root) if "/access.log" not in line]


@pytest.mark.needs_flashpache
def test_path_calls(make, roots, base):
    # An access file is kept once it is older than two clock ticks of any file system.
    stock, flash = make("calls-stock", stock=True, children=1, most=1), make("calls", children=1, most=1)
    wait_for(lambda: time.time() > (roots[0] / "ht/header/.htaccess").stat().st_ctime + 4, "access files to settle")
    for (host, path), all_spared in CALLS.items():
        before = len(calls_of(stock, roots[0], host, path, base / "stock.trace")) / 2
        after = calls_of(flash, roots[0], host, path, base / "flash.trace")
        print(f"{httpd22.version()} {httpd22.mpm()} {host:5} {path}: {before:g} -> {len(after) / 2:g}")
        assert before > len(after) / 2, after
        assert not (all_spared and after), f"{host}{path}: {after}"


def statuses(server, path, host="none.test"):
    return [r.status for r in rawhttp.parse(rawhttp.exchange(server.port, rawhttp.request("GET", path, host=host)),
                                            ["GET"])]


def body(server, path, host="none.test"):
    return rawhttp.parse(rawhttp.exchange(server.port, rawhttp.request("GET", path, host=host)), ["GET"])[0].body


@pytest.mark.needs_flashpache
def test_change_is_seen_at_the_next_request(servers, roots):
    _, flash = servers
    www = roots[0]
    directory = www / "changes"
    tree.put(directory / "file.txt", "first\n")
    for number in range(20):
        tree.put(directory / "next.txt", f"release {number}\n")
        (directory / "next.txt").rename(directory / "file.txt")
        assert body(flash, "/changes/file.txt") == f"release {number}\n".encode()
        assert statuses(flash, "/changes/new.txt") == [404]
        tree.put(directory / "new.txt", "new\n")
        assert statuses(flash, "/changes/new.txt") == [200]
        tree.put(directory / ".htaccess", httpd22.CLOSED)
        assert statuses(flash, "/changes/file.txt", "all.test") == [403]
        (directory / ".htaccess").unlink()
        assert statuses(flash, "/changes/file.txt", "all.test") == [200]
        (directory / "new.txt").unlink()


@pytest.mark.needs_flashpache
def test_another_length_by_another_machine(make, roots, base, slow_directory):
    """No event tells of it, and the answer is used until its TTL is over."""
    source = base / "others"
    source.mkdir()
    flash = make("others", settings={"ttl_ms": 600_000},
                 config=f"{httpd22.main(*roots)}Alias /others/ {slow_directory(source, 0)}/\n")
    sent_at_their_length(lambda name: (statuses(flash, f"/others/{name}")[0], body(flash, f"/others/{name}")), source)


@pytest.mark.needs_flashpache
def test_every_answer_is_of_its_moment(make, lab, roots, clock, monkeypatch):  # noqa: F811
    """Changes of all kinds by writers that ask at once, as test_linearizable makes them for 2.4.7."""
    root, records = roots[0] / "linear", lab.base / "records"
    for directory in (root, records):
        directory.mkdir()
    for name in ("DENIED", "GRANTED"):
        monkeypatch.setattr(linear_kinds, name, httpd22.old_text(getattr(linear_kinds, name)) + "\n")
    with clock.ahead(SETTLED_S):
        flash = make("linear", settings=settings(reported=True), vhosts=[],
                     config=f"MaxKeepAliveRequests 0\n<Directory {root}>\nAllowOverride All\n</Directory>")
        result = linear_run.run(flash.port, places(root, 2, "/linear"), TRIES, records)
    check(f"httpd {httpd22.version()} {httpd22.mpm()}", result, remembered=0)
    notes = collections.Counter(entry.note for entry in flash.entries())
    assert sum(notes[note] for note in (*HITS, "look")) > notes.total() / 3, notes


class Load:
    """Clients that ask for files of known content, until the end; wrong holds what differs."""

    def __init__(self, server, roots, clients=4):
        self.server, self.wrong, self.count, self.ended = server, [], 0, False
        self.files = {path: (roots[0] / path[1:]).read_bytes()
                      for path in (PLAIN, "/large.bin", "/a/b/c/d/e/f/deep.txt", "/four-kib.bin")}
        self.threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def _ask(self):
        for path in itertools.cycle([*self.files, "/missing.txt"]):
            if self.ended:
                return
            for host in ("none.test", "all.test", "owner.test"):
                try:
                    data = rawhttp.exchange(self.server.port, rawhttp.request("GET", path, host=host))
                    found = rawhttp.parse(data, ["GET"])[0]
                    right = found.body == self.files[path] if path in self.files else found.status == 404
                except (OSError, IndexError) as problem:
                    found, right = problem, False
                if not right:
                    self.wrong.append((path, host, str(found)[:300]))
                self.count += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        for thread in self.threads:
            thread.join()

    def more(self, count=100):
        target = self.count + count
        wait_for(lambda: self.count >= target, "more requests", 60)


@pytest.mark.needs_flashpache
def test_daemon_is_killed_under_load(make, roots):
    flash = make("killed", settings={"ttl_ms": 60_000})
    with Load(flash, roots) as load:
        load.more()
        for _ in range(3):
            flash.daemon.kill()
            load.more()
            flash.daemon.start()
            load.more()
    assert load.wrong == []
    assert {"fallback"} < {entry.note for entry in flash.entries()}

    def hit():
        mark = flash.mark()
        assert statuses(flash, PLAIN) == [200]
        return flash.wait_entries(1, mark)[0].note in HITS
    wait_for(hit, "answers of the new daemon", 30)


@pytest.mark.needs_flashpache
def test_graceful_restart_under_load(make, roots):
    flash = make("graceful")
    with Load(flash, roots, clients=2) as load:
        for _ in range(3):
            load.more(60)
            flash.graceful()
        load.more(60)
    assert load.wrong == []
    assert flash.crashes() == []


@pytest.mark.needs_flashpache
def test_own_daemon(base, lab, roots, flashpached_program):
    """FlashpacheDaemon auto: httpd starts a daemon, which lives over restarts and ends with httpd."""
    server = httpd22.OldHttpd(base, "own", roots[0], module=built("mod_flashpache/.libs/mod_flashpache.so"),
                              config=f"FlashpacheDaemonProgram {flashpached_program}", vhosts=httpd22.vhosts(roots[0]))
    (server.dir / "logs").mkdir()
    lab.started.append(server)
    server.start()

    def hit():
        mark = server.mark()
        assert statuses(server, PLAIN) == [200]
        return server.wait_entries(1, mark)[0].note in HITS

    def daemons():
        return [pid for pid, name in procs.descendants(server.process.pid).items() if name == "flashpached"]
    wait_for(hit, "answers of httpd's own daemon", 30)
    before = daemons()
    server.graceful()
    wait_for(hit, "answers after the restart", 30)
    assert set(before) <= set(daemons())
    server.stop()
    wait_for(lambda: not any(procs.state(pid) for pid in before), "the daemon's end", 30)


@pytest.mark.needs_flashpache
def test_shadow_is_refused(base, roots):
    server = httpd22.OldHttpd(base, "shadow", roots[0], module=built("mod_flashpache/.libs/mod_flashpache.so"),
                              config="FlashpacheSocket /nowhere.sock\nFlashpacheEngine Shadow")
    with pytest.raises(ChildProcessError, match="FP0117"):
        server.start()
