# SPDX-License-Identifier: Apache-2.0
"""Apache 1.3: the same answers as stock, without a call on a path.

As test_parity: a stock Apache 1.3 and one with Flashpache get the same bytes, in six configurations. These tests
run where FLASHPACHE_APACHE is an Apache 1.3 (httpd13).
"""

import contextlib
import itertools
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

import httpd13
import keepalive
import linear_kinds
import linear_run
import procs
import rawhttp
from conftest import built
from content_kit import SETTLED_S, clock, settled  # noqa: F401 (fixtures)
from forms import chosen
from freshness import settings
from httpd import HITS
from httpd13 import PASSWORD, Httpd13
from test_linearizable import check, places
from trace import PathTrace
from waiting import Threads, wait_for

pytestmark = [] if httpd13.is_given() else [pytest.mark.never]

SETTLED = 1_600_000_000     # the files' times: strong entity tags, and no answer changes meanwhile
TRIES = chosen(4000, 100_000)       # changes, each with a request at once
PASSES = 3                  # cold, then warm twice
SECRET = "Basic cmVhZGVyOnNlY3JldA=="       # reader:secret
RECVMSG = {"47", "212"}     # the call's numbers on x86-64 and arm64
NUMBERS = itertools.count()
TIME = re.compile(r"^\[[^]]*\] ")


def write(path, text="", mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)


@pytest.fixture(scope="module")
def root(base):
    top = base / "tree"
    www = top / "www"
    for name, text in {
            "index.html": "top\n", "plain.txt": "line of the plain file\n" * 200, "empty.txt": "", "a/b/c/deep.txt": "deep\n",
            "large.bin": bytes(range(256)) * 4096, "dir/index.html": "index\n", "listing/one.txt": "1", "noext": "?",
            "multi/page.html.en": "<p>en", "multi/page.html.de": "<p>de", "ssi/page.shtml": '<!--#include virtual="/plain.txt" -->'
            '<!--#include file="part.txt" --><!--#flastmod file="part.txt" -->', "ssi/part.txt": "part",
            "ht/index.html": "ht\n", "ht/.htaccess": "AddType text/x-ht .ht\nErrorDocument 404 /plain.txt\n", "ht/file.ht": "x",
            "ht/below/file.ht": "below", "closed/.htaccess": "Deny from all\n", "closed/file.txt": "closed",
            "auth/.htaccess": f"AuthType Basic\nAuthName x\nAuthUserFile {top}/users\nRequire valid-user\n", "auth/file.txt": "auth",
            "broken/.htaccess": "NoSuchDirective\n", "broken/file.txt": "broken", "second/.access": "Deny from all\n",
            "second/file.txt": "second", "rewrite/.htaccess": "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\n"
            "RewriteRule (.*) /plain.txt?$1 [L]\n", "rewrite/there.txt": "there", "types/x.asis": "Status: 202\nX-A: b\n\nbody"}.items():
        write(www / name, text)
    write(www / "cgi-bin/env.cgi", "#!/bin/sh\necho Content-Type: text/plain\necho\necho $PATH_INFO, $SCRIPT_NAME, $PATH_TRANSLATED\n", 0o755)
    write(www / "unreadable.txt", "secret", 0o600)
    write(top / "outside/file.txt", "outside")
    write(top / "users", PASSWORD)
    (www / "emptydir").mkdir()
    (www / "closed-dir").mkdir(mode=0o700)
    write(www / "closed-dir/file.txt", "x")
    (www / "closed-dir").chmod(0o700)
    for name, target in {"same": "plain.txt", "dangling": "nowhere", "itself": "itself", "out": top / "outside", "foreign": "plain.txt"}.items():
        (www / name).symlink_to(target)
    os.chown(www / "foreign", 33, 33, follow_symlinks=False)
    os.mkfifo(www / "fifo", 0o644)
    for directory, _, names in os.walk(top):
        for name in names:
            os.utime(os.path.join(directory, name), (SETTLED, SETTLED), follow_symlinks=False)
    return top


def section(path, text):
    return f"<Directory {path}>\n{text}\n</Directory>\n"


def configurations(top):
    www = top / "www"
    common = (f"Alias /alias/ {top}/outside/\nAlias /nowhere/ /no-such-place/x/\nScriptAlias /cgi/ {www}/cgi-bin/\n"
              "AddHandler server-parsed .shtml\nAddHandler send-as-is asis\n")
    return {
        "none": common + section("/", "AllowOverride None\nOptions FollowSymLinks Includes"),
        "all": common + section("/", "AllowOverride None\nOptions FollowSymLinks")
        + section(www, "AllowOverride All\nOptions FollowSymLinks Indexes Includes MultiViews"),
        "owner": common + section("/", "AllowOverride None\nOptions SymLinksIfOwnerMatch Indexes"),
        "nolinks": common + section("/", "AllowOverride None\nOptions None"),
        "defaults": common + "AccessFileName .htaccess .access\nFileETag MTime Size\nContentDigest On\n",
        "mixed": common + "RewriteEngine On\nRewriteRule ^/rewritten/(.*) /a/$1\nRewriteCond %{DOCUMENT_ROOT}%{REQUEST_URI} !-f\n"
        "RewriteRule ^/front/ /index.html\n<Files *.bin>\nDeny from all\n</Files>\n<Location /dir>\nDeny from all\n</Location>\n"
        + section("/", "AllowOverride Limit FileInfo\nOptions FollowSymLinks") + section(f"{www}/a", "AllowOverride AuthConfig")
        + section(f"{www}/a/b", "Options -FollowSymLinks") + section(f"{www}/h*", "AllowOverride None")
        + section(f'~ "{www}/closed"', "AllowOverride None\nOptions Indexes"),
    }


PATHS = """/ /index.html /plain.txt /empty.txt /noext /a/b/c/deep.txt /large.bin /missing /missing/ /missing/deep/er.txt /a/missing
/a /a/ /dir /dir/ /dir?x=y /dir/index.html /listing/ /emptydir/ /plain.txt/ /plain.txt/more/info /plain.txt// //plain.txt /a//b///c/deep.txt
/a//missing//x /a/./b/../b/c/deep.txt /plain%2Etxt /a%2Fb /plain.txt%00 /same /dangling /dangling/x /itself /out/file.txt /foreign
/unreadable.txt /closed-dir/file.txt /closed-dir/ /fifo /alias/file.txt /alias/missing/x /alias/ /nowhere/file.txt /nowhere/
/ssi/page.shtml /multi/page /multi/page.html /multi/none /ht/ /ht/file.ht /ht/missing /ht/below/file.ht /closed/file.txt /closed/missing
/auth/file.txt /broken/file.txt /second/file.txt /rewrite/there.txt /rewrite/else.txt /cgi/env.cgi /cgi/env.cgi/path/info /cgi/none.cgi
/types/x.asis /rewritten/b/c/deep.txt /front/anything /.htaccess /~root/ /%""".split() + ["/" + "n" * 300, "/a/" + "n/" * 100]
PLAIN = "/plain.txt"
MORE = [(PLAIN, "HEAD", {}), ("/missing", "HEAD", {}), ("/dir/", "HEAD", {}), (PLAIN, "POST", {"body": b"a=b"}), (PLAIN, "OPTIONS", {}),
        (PLAIN, "PUT", {"body": b"x"}), (PLAIN, "TRACE", {}), (PLAIN, "DELETE", {}), ("*", "OPTIONS", {}), (PLAIN, "GET", {"body": b"surplus"}),
        (PLAIN, "GET", {"Range": "bytes=100-199"}), (PLAIN, "GET", {"Range": "bytes=-20"}), (PLAIN, "GET", {"Range": "bytes=0-9,100-109"}),
        (PLAIN, "GET", {"Range": "bytes=99999-"}), ("/large.bin", "GET", {"Range": "bytes=100000-300000"}),
        ("/large.bin", "GET", {"Range": "bytes=0-9,500000-500009"}), ("/large.bin", "HEAD", {}),
        (PLAIN, "GET", {"If_Modified_Since": "Sun, 13 Sep 2020 12:26:40 GMT"}), (PLAIN, "GET", {"If_None_Match": "*"}),
        (PLAIN, "GET", {"If_Match": '"no"'}), (PLAIN, "GET", {"version": "HTTP/1.0"}), ("/auth/file.txt", "GET", {"Authorization": SECRET}),
        ("/auth/missing", "GET", {"Authorization": SECRET}), ("/auth/file.txt", "GET", {"Authorization": "Basic eDp5"}),
        ("/multi/page", "GET", {"Accept_Language": "de"}), ("/ssi/page.shtml", "HEAD", {})]
REQUESTS = [(path, "GET", {}) for path in PATHS] + MORE


def asked(server, path, method, options):
    """(normalised response, lines of the error log)."""
    since = server.error_log.stat().st_size
    data = rawhttp.exchange(server.port, rawhttp.request(method, path, host="localhost", **options), timeout=60)
    with open(server.error_log, errors="replace") as log:
        log.seek(since)
        # A daemon that a busy machine kept waiting is no difference: the request was served as stock serves it.
        lines = [TIME.sub("", line) for line in log if "FP0101" not in line]
    data = data.replace(f":{server.port}".encode(), b":PORT")
    return [rawhttp.normalised(r) for r in rawhttp.parse(data, [method])], lines


class Servers:
    def __init__(self, lab, root):
        self.lab, self.root, self.module = lab, root, built("mod_flashpache/.libs/mod_flashpache.so")
        self.www = root / "www"

    def make(self, name, config, socket_path=None, **options):
        server = Httpd13(self.lab.base, name, self.www, config=config, socket=socket_path,
                         module=self.module if socket_path else None, **options)
        self.lab.started.append(server)
        return server

    def pair(self, name, **options):
        """(stock, ours with a daemon of its own), both with that configuration."""
        config = configurations(self.root)[name]
        name = f"{name}{next(NUMBERS)}"
        daemon = self.lab.daemon(f"{name}-daemon").start()
        stock = self.make(f"{name}-stock", config, **options).start()
        extra = f"FlashpacheExclude {self.www}/listing\n" if name.startswith("mixed") else ""
        ours = self.make(f"{name}-ours", config + extra, daemon.socket, **options).start()
        ours.daemon = daemon
        return stock, ours


@pytest.fixture
def servers(lab, root):
    yield Servers(lab, root)
    lab.end()


@pytest.mark.parametrize("name", ("none", "all", "owner", "nolinks", "defaults", "mixed"))
def test_same_as_stock(servers, name):
    stock, ours = servers.pair(name, children=1)
    differences = []
    for path, method, options in REQUESTS:
        expected = asked(stock, path, method, options)
        for number in range(PASSES):
            found = asked(ours, path, method, options)
            if found != expected:
                differences.append(f"{method} {path} {options} ({number}):\nstock {str(expected)[:1200]}\nours  {str(found)[:1200]}")
    notes = [e.note for e in ours.entries()]
    print(f"{name}: {len(REQUESTS)} requests x {PASSES}; notes {({n: notes.count(n) for n in set(notes)})}")
    assert not differences, f"{len(differences)} of {len(REQUESTS) * PASSES}:\n" + "\n".join(differences[:10])
    assert notes.count("lease") > len(REQUESTS), notes


# Path calls of a warm request below the tree, for each configuration.
WARM = [("none", PLAIN), ("none", "/large.bin"), ("none", "/"), ("none", "/dir/"), ("none", "/missing"), ("none", "/missing/deep/er.txt"),
        ("all", "/a/b/c/deep.txt"), ("all", "/missing"), ("all", "/dir/"), ("all", "/ht/file.ht"),
        ("owner", "/a/b/c/deep.txt"), ("owner", "/missing")]


def path_calls(server, path, log):
    get = rawhttp.request("GET", path, host="localhost")
    for _ in range(3):
        rawhttp.exchange(server.port, get)
    with PathTrace(server.pids(), log) as trace:
        rawhttp.exchange(server.port, get)
    return [re.sub(r"^\d+ +", "", line) for line in trace.calls(server.docroot.parent)]


def test_warm_requests_make_no_call_on_a_path(settled, servers, base):  # noqa: F811 (settled)
    pairs, table = {}, []
    for number, (name, path) in enumerate(WARM):
        stock, ours = pairs.setdefault(name, None) or servers.pair(name, children=1)
        pairs[name] = (stock, ours)
        before = path_calls(stock, path, base / f"stock{number}")
        after = path_calls(ours, path, base / f"ours{number}")
        table.append((name, path, len(before), len(after)))
        links = [line for line in after if not line.startswith(("lstat", "newfstatat")) or "AT_SYMLINK_NOFOLLOW" not in line]
        if name == "owner":
            assert not links, after             # core's look at each component
        else:
            # mod_negotiation reads the directory for an absent name where MultiViews is on.
            assert not [line for line in after if "O_DIRECTORY" not in line], after
        assert before, path
    print("\n".join(f"{name:8} {path:24} {before:3} -> {after}" for name, path, before, after in table))


def body_of(port, path=PLAIN):
    """(status, body); None where the server closes without an answer."""
    try:
        found = rawhttp.parse(rawhttp.exchange(port, rawhttp.request("GET", path, host="localhost")), ["GET"])
    except OSError:
        return None
    return (found[0].status, found[0].body) if found else None


def ask_until(port, paths, results, over):
    while not over.is_set():
        for path in paths:
            results.append((path, body_of(port, path)))


def test_daemon_killed_under_load(servers):
    _, ours = servers.pair("none")
    www = servers.www
    paths = [PLAIN, "/large.bin", "/missing", "/dir/"]
    expected = {PLAIN: (200, (www / "plain.txt").read_bytes()), "/large.bin": (200, (www / "large.bin").read_bytes()), "/dir/": (200, b"index\n")}
    results = []
    with Threads(ask_until, [(ours.port, paths, results)] * 4, until_over=True):
        for _ in range(3):
            before = len(results)
            wait_for(lambda: len(results) > before + 40, "requests")
            ours.daemon.kill()
            killed = len(results)
            wait_for(lambda: len(results) > killed + 40, "requests without a daemon")
            ours.daemon.start()
            wait_for(lambda: body_of(ours.port) and ours.entries()[-1].note in HITS, "the daemon's answers again", 30)
    wrong = [(path, got and (got[0], got[1][:80])) for path, got in results if got is None or got[0] != expected.get(path, (404,))[0]
             or path in expected and got != expected[path]]
    notes = {e.note for e in ours.entries()}
    print(f"{len(results)} requests, notes {notes}")
    assert not wrong, wrong[:5]
    assert {"lease", "fallback"} <= notes
    assert not ours.crashes()


def test_change_shows_at_the_next_request(servers):
    _, ours = servers.pair("all", children=2)
    place = servers.www / "changing"
    place.mkdir()
    for number in range(60):
        text = f"{number}\n".encode() * (number + 1)
        write(place / "new", text)
        os.rename(place / "new", place / "file.txt")
        assert body_of(ours.port, "/changing/file.txt") == (200, text)
        write(place / "file.txt", text + b"more")
        assert body_of(ours.port, "/changing/file.txt") == (200, text + b"more")
        write(place / ".htaccess", "Deny from all\n")
        assert body_of(ours.port, "/changing/file.txt")[0] == 403
        (place / ".htaccess").unlink()
        assert body_of(ours.port, "/changing/file.txt")[0] == 200
        (place / "file.txt").unlink()
        assert body_of(ours.port, "/changing/file.txt")[0] == 404
    before = len(ours.entries())
    for _ in range(3):
        body_of(ours.port, "/changing/file.txt")
    assert ours.wait_entries(before + 3)[-1].note in HITS


def test_every_answer_is_of_its_moment(servers, base, clock, monkeypatch):  # noqa: F811
    """Changes of all kinds by writers that ask at once, as test_linearizable makes them for 2.4."""
    root, records = servers.www / "linear", base / "records"
    for directory in (root, records):
        directory.mkdir()
    monkeypatch.setattr(linear_kinds, "DENIED", "Order allow,deny\nDeny from all\n")
    monkeypatch.setattr(linear_kinds, "GRANTED", "Order allow,deny\nAllow from all\n")
    monkeypatch.setattr(linear_kinds, "DANGLING", 404)
    # Pages of Apache 1.3's own have no length: another one for errors, and no redirect.
    write(servers.www / "error.txt", "error\n")
    kinds = {name: steps for name, steps in linear_kinds.KINDS.items() if name != "file_and_directory_in_turn"}
    config = "".join(f"ErrorDocument {status} /error.txt\n" for status in (403, 404))
    with clock.ahead(SETTLED_S):
        daemon = servers.lab.daemon("linear-daemon", **settings(reported=True)).start()
        ours = servers.make("linear", config + section(root, "AllowOverride All\nOptions FollowSymLinks"), daemon.socket,
                            children=16).start()
        result = linear_run.run(ours.port, places(root, 2, "/linear"), TRIES, records, kinds)
    check("Apache 1.3", result, remembered=0)
    assert sum(entry.note in HITS for entry in ours.entries()) > TRIES / 3


def test_graceful_restarts_under_load(servers):
    _, ours = servers.pair("all")
    large = (servers.www / "large.bin").read_bytes()
    results = []
    with Threads(ask_until, [(ours.port, ["/large.bin"], results)] * 4, until_over=True):
        for _ in range(5):
            before = len(results)
            ours.graceful()
            wait_for(lambda: len(results) > before + 20, "requests")
    good = [got for _, got in results if got == (200, large)]
    # A connection that waits in a child that ends is lost in stock as well; a response is never cut.
    assert [got for _, got in results if got not in (None, (200, large))] == []
    assert len(good) > 90 and not ours.crashes()
    assert [body_of(ours.port) for _ in range(3)][-1] and ours.entries()[-1].note in HITS


def is_asking(pid):
    """True if the process waits in recvmsg(), as for the daemon; an idle child waits in accept()."""
    return Path(f"/proc/{pid}/syscall").read_text().split()[0] in RECVMSG


@contextlib.contextmanager
def asking_child(ours, path, results):
    """A child of a stopped daemon, while it asks; the daemon goes on behind the block."""
    body_of(ours.port)
    child, = procs.children(ours.process.pid)
    os.kill(ours.daemon.pid, signal.SIGSTOP)
    with Threads(lambda: results.append(body_of(ours.port, path)), [()]):
        try:
            wait_for(lambda: is_asking(child), "the question")
            yield child
        finally:
            os.kill(ours.daemon.pid, signal.SIGCONT)


def test_graceful_restart_waits_for_the_answer(servers):
    _, ours = servers.pair("none", children=1)
    results = []
    with asking_child(ours, "/a/b/c/deep.txt", results):
        ours.process.send_signal(signal.SIGUSR1)
    assert results == [(200, b"deep\n")]
    assert not ours.crashes()


def test_signal_ends_a_child_behind_its_question(servers):
    """A handler of Apache 1.3 ends the child at once, in the midst of any call, unless alarms are blocked."""
    _, ours = servers.pair("none", children=1)
    results = []
    with asking_child(ours, "/a/b/c/deep.txt", results) as child:
        os.kill(child, signal.SIGTERM)
        time.sleep(0.1)             # for as long nothing may happen
        assert is_asking(child)
    wait_for(lambda: procs.state(child) in (None, "Z"), "the child's end")
    assert results == [None] and not ours.crashes()
    assert body_of(ours.port)[0] == 200


def test_stopped_daemon_delays_one_request_of_a_child(servers):
    """A child that waited in vain asks nobody for a while. Apache may have started another child."""
    _, ours = servers.pair("none", children=1)
    mark = ours.mark()
    os.kill(ours.daemon.pid, signal.SIGSTOP)
    try:
        for _ in range(6):
            assert body_of(ours.port, "/a/b/c/deep.txt") == (200, b"deep\n")
    finally:
        os.kill(ours.daemon.pid, signal.SIGCONT)
    reasons = [entry.reason for entry in ours.wait_entries(6, mark)]
    assert reasons[0] == "timeout" and set(reasons) == {"timeout", "paused"}
    assert "FP0101" in ours.error_text()


def test_file_written_in_place_while_it_is_sent(servers):
    """A shorter file ends the connection; no child dies, and no other byte is sent for the missing ones."""
    _, ours = servers.pair("none", children=1)
    write(servers.www / "shrinking.bin", b"x" * (64 << 20))
    with socket.create_connection(("127.0.0.1", ours.port), 20) as conn:
        conn.sendall(keepalive.request("/shrinking.bin"))
        answer = conn.recv(100)
        os.truncate(servers.www / "shrinking.bin", 1 << 20)
        while chunk := conn.recv(1 << 20):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and b"\r\nContent-Length: 67108864" in head
    assert len(body) < 64 << 20 and body.count(b"x") == len(body)
    assert body_of(ours.port) is not None and not ours.crashes()
    (servers.www / "shrinking.bin").unlink()


def test_removed_file_is_closed(servers):
    """Nobody asks for it again; other requests let the child see that it is gone."""
    _, ours = servers.pair("none", children=1)
    removed = servers.www / "removed.bin"
    write(removed, b"x" * (1 << 20))
    for _ in range(3):
        assert body_of(ours.port, "/removed.bin")[0] == 200
    child, = procs.children(ours.process.pid)
    assert any(name.startswith(str(removed)) for name in procs.open_files(child))
    removed.unlink()
    wait_for(lambda: body_of(ours.port) and not any(name.startswith(str(removed)) for name in procs.open_files(child)),
             "the removed file to be closed")


def test_status_page(servers):
    _, ours = servers.pair("none", children=1)
    for _ in range(3):
        body_of(ours.port)
    status, text = body_of(ours.port, "/flashpache-status")
    rows = dict(line.rsplit(" ", 1) for line in text.decode().splitlines() if " " in line)
    assert status == 200 and int(rows["lease"]) >= 2, text
    assert "fallback_timeout" in rows and any(name.startswith("lookups") or "hits" in name for name in rows), text


def test_later_modules_are_named(servers):
    daemon = servers.lab.daemon("order-daemon").start()
    ours = servers.make("order", configurations(servers.root)["none"], daemon.socket)
    load = ours._load_modules().splitlines()
    ours._load_modules = lambda: "\n".join([load[-1], *load[:-1]])
    ours.start()
    assert "FP0123" in ours.error_text() and "mod_alias.c" in ours.error_text()
    assert body_of(ours.port)[0] == 200
