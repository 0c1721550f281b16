# SPDX-License-Identifier: Apache-2.0
"""Threads and requests share parsed .htaccess files, which change under load, and end."""

import http.client
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import procs
import rawhttp
import tree
from fetch import Client
from forms import chosen, full_where
from waiting import Threads, wait_for

pytestmark = pytest.mark.needs_flashpache

CLIENTS = chosen(16, 32)
REWRITES = chosen(400, 2000)
WARM_REWRITES = chosen(150, 300)        # before the first look at memory
PAUSE_S = 0.001
GROWTH_MOST_KIB = chosen(26_000, 40_000)
DIRECTORIES = 50
FEW_PARSED = 5
COSTLY = 120                # access files
PARSED_MOST_KIB = 64 * 1024     # that a child keeps of them all
BASIC = {"Authorization": "Basic cmVhZGVyOnNlY3JldA=="}     # reader:secret


def version(letter):
    """An access file whose directives, of three modules, must take effect together."""
    return (f"Header set X-Version {letter}\nRewriteEngine On\nRewriteRule ^page - [E=RULE:{letter}]\n"
            f"RewriteRule ^moved$ body-{letter}.txt [L]\nHeader set X-Rule %{{RULE}}e\n"
            f'AddOutputFilterByType SUBSTITUTE text/plain\nSubstitute "s/VERSION/{letter}/"\n')


@pytest.fixture(scope="module")
def root(base):
    root = base / "shared"
    tree.put(root / "site/.htaccess", version("A"))
    tree.put(root / "site/page.txt", "this is VERSION\n")
    for letter in "AB":
        tree.put(root / f"site/body-{letter}.txt", f"body {letter}\n")
    for i in range(DIRECTORIES):
        tree.put(root / f"many/{i}/.htaccess", f"Header set X-Number {i}\nDirectoryIndex page.txt\n")
        tree.put(root / f"many/{i}/sub/.htaccess", f"Header set X-Sub {i}\n")
        for where in ("", "sub/"):
            tree.put(root / f"many/{i}/{where}page.txt", f"page {i} {where}\n")
    return root


def config(root, more=""):
    return f"<Directory {root}>\nAllowOverride All\n</Directory>\nLogLevel core:notice\n{more}\n"


def request(client, path, headers=None):
    """(status, headers, body)"""
    client.conn.request("GET", path, headers={"Host": client.host, **(headers or {})})
    answer = client.conn.getresponse()
    return answer.status, answer.headers, answer.read()


def consistent(status, headers, body):
    letter = headers["X-Version"]
    return status == 200 and letter in ("A", "B") and headers["X-Rule"] == letter \
        and body == f"this is {letter}\n".encode()


def ask_site(port, stop):
    """(answers by version, errors)"""
    seen, wrong = Counter(), []
    while not stop.is_set():
        with Client(port) as client:
            for _ in range(20):
                status, headers, body = request(client, "/site/page.txt")
                seen[headers["X-Version"]] += 1
                if not consistent(status, headers, body):
                    wrong.append((status, headers["X-Version"], headers["X-Rule"], body[:200]))
                # An internal redirect walks anew, by the files of that moment: as in stock.
                status, headers, body = request(client, "/site/moved")
                if status != 200 or body not in (b"body A\n", b"body B\n"):
                    wrong.append((status, "moved", body[:200]))
    return seen, wrong


class Asking:
    """CLIENTS threads ask until the block ends; then .seen and .wrong."""

    def __init__(self, server):
        self.server, self.stop = server, threading.Event()

    def __enter__(self):
        self.pool = ThreadPoolExecutor(CLIENTS)
        self.asked = [self.pool.submit(ask_site, self.server.port, self.stop) for _ in range(CLIENTS)]
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.pool.shutdown()
        results = [a.result() for a in self.asked]
        self.seen = sum((seen for seen, _ in results), Counter())
        self.wrong = [w for _, some in results for w in some]


def rewrite(root, count):
    for i in range(count):
        os.rename(tree.put(root / "site/new", version("AB"[i % 2])), root / "site/.htaccess")
        time.sleep(PAUSE_S)


def memory_kib(server):
    """VmRSS of each child."""
    found = {}
    for pid in procs.children(server.process.pid):
        with open(f"/proc/{pid}/status") as status:
            found[pid] = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
    return found


@pytest.mark.not_sanitized("its memory is the sanitizer's as well")
def test_every_answer_is_of_one_version_and_memory_levels_off(lab, root):
    server = lab.under_test("rewritten", root, mpm="event", config=config(root), daemon_settings={"ttl_ms": 10})
    with Asking(server) as asking:
        rewrite(root, WARM_REWRITES)
        before = memory_kib(server)
        rewrite(root, REWRITES)
        after = memory_kib(server)
    notes = Counter(e.note for e in server.entries())
    errors = server.error_text()
    lab.end()
    print(f"\nanswers {dict(asking.seen)}, notes {dict(notes)}, KiB of the children {before} -> {after}")
    assert not asking.wrong, f"{len(asking.wrong)}: {asking.wrong[:5]}"
    assert set(asking.seen) == {"A", "B"}
    assert set(before) == set(after), "a child ended"
    assert all(after[pid] - before[pid] < GROWTH_MOST_KIB for pid in before)
    assert ":error]" not in errors and ":alert]" not in errors, errors[-2000:]


def ask_many(server):
    def one(i):
        with Client(server.port) as client:
            status, headers, body = request(client, f"/many/{i}/")
            assert (status, headers["X-Number"], body) == (200, str(i), f"page {i} \n".encode()), i
            status, headers, body = request(client, f"/many/{i}/sub/page.txt")
            assert (status, headers["X-Number"], headers["X-Sub"]) == (200, str(i), str(i)), i
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(one, list(range(DIRECTORIES)) * 8))


@full_where(lambda values: values["mpm"] == "prefork" and values["most"] != FEW_PARSED)
@pytest.mark.parametrize("mpm", ("event", "prefork"))
@pytest.mark.parametrize("most", (0, 1, FEW_PARSED, 100))
def test_any_number_of_kept_files_answers_right(lab, root, most, mpm):
    server = lab.under_test(f"kept-{most}-{mpm}", root, mpm=mpm,
                            config=config(root, f"FlashpacheHtaccess {most}"), daemon_settings={"ttl_ms": 60000})
    ask_many(server)
    for i in range(0, DIRECTORIES, 7):
        with Client(server.port) as client:
            assert request(client, f"/many/{i}/page.txt")[1]["X-Number"] == str(i)
    lab.end()


def test_graceful_restarts_under_load(lab, root):
    server = lab.under_test("graceful", root, mpm="event", config=config(root), daemon_settings={"ttl_ms": 10})
    complaints = []

    def ask(over):
        while not over.is_set():
            try:
                with Client(server.port) as client:
                    for _ in range(5):
                        answer = request(client, "/site/page.txt")
                        if not consistent(*answer):
                            complaints.append((answer[0], answer[2][:100]))
                        if answer[1]["Connection"] == "close":
                            break
            except (http.client.HTTPException, OSError) as problem:
                dropped.append(repr(problem))   # an idle connection that the restart closed
    dropped = []
    with Threads(ask, [()] * 8, until_over=True):
        for _ in range(4):
            rewrite(root, 40)
            server.graceful()
    # All children of the old generations end by themselves: none hangs in its pools' end.
    wait_for(lambda: len(procs.children(server.process.pid)) <= 4, "the old children to end")
    lab.end()
    errors = server.error_text()
    print(f"\nconnections that the restarts closed: {len(dropped)} {Counter(dropped).most_common(3)}")
    assert not complaints, complaints[:5]
    assert "did not exit" not in errors, errors[-2000:]


def directives(root, users):
    """Directives of modules that keep a state of their own for a directory: the same for both kinds."""
    return ("RewriteEngine On\nRewriteRule ^here$ page.html [L]\nRewriteRule ^(.*)\\.old$ $1.html [R=302,L]\n"
            "RewriteRule ^env - [E=seen:1]\nRewriteCond %{HTTP_COOKIE} no\nRewriteRule . - [F]\n"
            "Header set X-Set \"%{REQUEST_METHOD}e\"\nHeader append Vary X-Other\nHeader edit X-Set ^(.*)$ <$1>\n"
            "Header set X-Expr \"expr=%{REQUEST_URI}\" \"expr=%{QUERY_STRING} =~ /e/\"\n"
            "RequestHeader set X-In yes\n"
            "ExpiresActive On\nExpiresDefault \"access plus 60 seconds\"\nExpiresByType text/html M300\n"
            "AddOutputFilterByType DEFLATE text/html text/plain\n"
            "SetEnvIf User-Agent robot robot\n"
            f'AuthType Basic\nAuthName state\nAuthUserFile {users}\n'
            "<RequireAny>\n<RequireAll>\nRequire valid-user\nRequire not env robot\n</RequireAll>\n"
            "Require expr %{QUERY_STRING} == 'open'\n</RequireAny>\n"
            "<If \"%{QUERY_STRING} == 'if'\">\nHeader set X-If yes\n</If>\n"
            "<FilesMatch \"\\.txt$\">\nForceType text/plain\nHeader set X-Match text\n</FilesMatch>\n"
            "ErrorDocument 404 \"nothing\n")


VARIANTS = [(path + query, headers) for path in ("page.html", "page.txt", "here", "page.old", "env.txt", "missing", "")
            for query in ("", "?open", "?e", "?if")
            for headers in ({}, BASIC, {**BASIC, "User-Agent": "robot"}, {**BASIC, "Accept-Encoding": "gzip"},
                            {**BASIC, "Cookie": "no"})]


def test_modules_with_a_state_of_their_own(lab, base):
    """The directives of an .htaccess behave as the same ones in <Directory>, again and again."""
    # Names of equal length: they appear in redirects, which mod_rewrite makes of the file name here.
    roots = {kind: base / f"state-{kind}" / "d" for kind in ("file", "conf")}
    for root in roots.values():
        tree.put(root / "page.html", "<p>page</p>\n" * 100)
        tree.put(root / "page.txt", "text\n" * 100)
        tree.put(root / "env.txt", "env\n")
    users = tree.put(base / "state-users", "reader:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n")
    text = directives(base, users)
    tree.put(roots["file"] / ".htaccess", text)
    hosts = [([kind], f"DocumentRoot {root.parent}\n<Directory {root.parent}>\nRequire all granted\n"
                      f"Options FollowSymLinks\nAllowOverride All\n</Directory>\n<Directory {root}>\n"
                      f"{text if kind == 'conf' else ''}\n</Directory>") for kind, root in roots.items()]
    server = lab.under_test("state", base, mpm="event", vhosts=hosts, daemon_settings={"ttl_ms": 60000})

    def answer(kind, variant):
        path, headers = variant
        data = rawhttp.request("GET", f"/d/{path}", host=kind, **headers)
        found = rawhttp.parse(rawhttp.exchange(server.port, data), ["GET"])
        status, fields, body = rawhttp.normalised(found[0])
        return (status, [(k, v.replace(kind, "kind")) for k, v in fields],
                body.replace(kind.encode(), b"kind"))

    def compare(variant):
        expected, got = answer("conf", variant), answer("file", variant)
        return [] if expected == got else [(variant, expected, got)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = [d for some in pool.map(compare, VARIANTS * 4) for d in some]
    lab.end()
    assert not found, f"{len(found)} differ, the first: {found[0]}"


# Each pattern takes some 70 KB in the memory of PCRE2, and 50 bytes in the file.
COUNTED = "".join(f"RedirectMatch 410 ^/n{number}((a{{1,9}}b{{1,9}}){{1,20}}c{{1,9}}){{1,80}}$\n" for number in range(80))


@pytest.mark.not_sanitized("its memory is the sanitizer's as well")
def test_patterns_that_take_more_than_their_text(lab, base):
    """One tenant writes such files in many directories. The memory that kept files take is bounded."""
    root = base / "patterns"
    paths = [f"/{number}/page.txt" for number in range(COSTLY)]
    for path in paths:
        tree.put(root / path[1:], "page\n")
        os.utime(tree.put(root / path[1:].replace("page.txt", ".htaccess"), COUNTED))
    time.sleep(2.5)     # a file that has just changed is not kept
    one_child = "StartServers 1\nServerLimit 1\nMaxRequestWorkers 25\n"
    taken = {}
    for server in (lab.stock("patterns-stock", root, mpm="event", config=config(root, one_child)).start(),
                   lab.under_test("patterns", root, mpm="event", config=config(root, one_child))):
        with Client(server.port) as client:
            for _ in range(3):
                assert {client.get(path) for path in paths} == {(200, b"page\n")}
        taken[server.name] = max(memory_kib(server).values())
    lab.end()
    print(f"\nKiB: {taken}")
    assert taken["patterns"] < taken["patterns-stock"] + PARSED_MOST_KIB


def test_rules_and_file_are_of_one_release(lab, base, flashpachectl):
    """The daemon knows release a, which lets nobody in; by now the link leads to b. The rules that core finds by name
    are b's: a's file must not come with them."""
    releases = base / "releases"
    tree.put(releases / "a/.htaccess", "Require all denied\n")
    tree.put(releases / "a/page.txt", "secret\n")
    tree.put(releases / "b/page.txt", "public\n")
    (releases / "current").symlink_to("a")
    server = lab.under_test("releases", releases, config=config(releases, "FlashpacheHtaccess 0"),
                            daemon_settings={"watch": "ttl", "ttl_ms": 600_000})
    known = flashpachectl("-s", server.daemon.socket, "explain", "--access-file", ".htaccess",
                          releases / "current/page.txt")
    assert known.returncode == 0, known
    (releases / "new").symlink_to("b")
    os.replace(releases / "new", releases / "current")
    tree.put(releases / "a/.htaccess2", "Require all denied\n")
    os.replace(releases / "a/.htaccess2", releases / "a/.htaccess")
    with Client(server.port) as client:
        assert client.get("/current/page.txt") == (200, b"public\n")
    assert [(e.note, e.reason) for e in server.wait_entries(1)] == [("miss", "-")]


def test_conditions_are_looked_at_each_time(lab, base):
    """A condition that core evaluates while it parses an .htaccess may differ at the next request."""
    root, closed = base / "conditional", base / "closed"
    tree.put(root / ".htaccess", f"<ifFile {closed}>\nRequire all denied\n</ifFile>\nHeader set X-Here yes\n")
    tree.put(root / "page.txt", "page\n")
    server = lab.under_test("conditional", root, config=config(root))
    with Client(server.port) as client:
        for _ in range(5):
            assert client.get("/page.txt") == (200, b"page\n")
            tree.put(closed, "")
            assert client.get("/page.txt")[0] == 403
            closed.unlink()
