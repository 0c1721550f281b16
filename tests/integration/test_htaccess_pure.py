# SPDX-License-Identifier: Apache-2.0
"""Parsed .htaccess files whose parsing does more than fill a configuration, and requests that use theirs to their
end: all as in stock."""

import contextlib
import os
import re
import threading
import time

import pytest

import c_module
import tree
from fetch import Client
from waiting import wait_for

ONE_CHILD = "StartServers 1\nServerLimit 1\nThreadLimit 16\nThreadsPerChild 16\nMaxRequestWorkers 16\n" \
            "MinSpareThreads 1\nMaxSpareThreads 16\n"
ROUNDS = 3
KEPT_FROM_S = 4        # a file's age; SETTLED_S of access_file.c, and the rest of its last second


def overrides(root):
    return f"<Directory {root}>\nAllowOverride All\n</Directory>\n"


def replace(path, text):
    os.rename(tree.put(path.with_name("new"), text), path)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


# ---- a configuration in use ----

@pytest.mark.parametrize("path", ("d/page.txt", "d/none.txt"), ids=("file", "redirected"))
def test_a_configuration_is_there_until_the_requests_last_cleanup(lab, base, monkeypatch, path, request):
    monkeypatch.setenv("MALLOC_PERTURB_", "165")       # the C library overwrites freed memory
    root = base / f"held-{request.node.callspec.id}"
    rules = "AuthName \"%s\"\nErrorDocument 404 /d/page.txt\n"
    tree.put(root / "d/.htaccess", rules % "the old")
    tree.put(root / "d/page.txt", "page\n")
    seen, waits = root / "seen", root / "late" / "waits"
    tree.put(seen, "").chmod(0o666)
    waits.parent.mkdir()
    waits.parent.chmod(0o777)
    server = lab.under_test(f"held-{request.node.callspec.id}", root, limits=ONE_CHILD,
                            config=f"{c_module.probe(base / root.name / 'module')}ProbeSeen {seen}\n{overrides(root)}",
                            daemon_settings={"ttl_ms": 60000})
    with Client(server.port) as client:
        for _ in range(ROUNDS):
            assert client.get(f"/{path}")[1] == b"page\n"
        wait_for(lambda: len(lines(seen)) == ROUNDS, "the end of the first requests")

        def slow():
            with Client(server.port) as late:
                answers.append(late.get(f"/{path}?wait={waits}")[1])
        answers, thread = [], threading.Thread(target=slow)
        thread.start()
        try:
            wait_for(waits.exists, "the late request")
            replace(root / "d/.htaccess", rules % "the new")

            def renewed():
                client.get("/d/page.txt")
                return "the new" in lines(seen)
            wait_for(renewed, "the new file to be used")
        finally:
            waits.unlink(missing_ok=True)
            thread.join()
    assert answers == [b"page\n"]
    wait_for(lambda: lines(seen)[-1] == "the old", "the end of the late request")
    lab.end()


# ---- parsing that does more ----

def answers(client, path):
    client.conn.request("GET", path, headers={"Host": "localhost"})
    answer = client.conn.getresponse()
    body = answer.read()
    return answer.status, answer.headers["X-Rule"], body if answer.status == 200 else None


def test_macros_of_a_directory_above(lab, base):
    """A file with <Macro> has to be parsed before each one with Use.

    One connection to each server: mod_macro forgets all macros of its process when a request ends. With
    connections of their own the next request may be parsing then (in stock 6 of 40,000 answers were 500).
    """
    root = base / "macros"
    macro = "<Macro Rule $what>\nHeader set X-Rule $what\n</Macro>\n"
    tree.put(root / "up/.htaccess", macro)
    tree.put(root / "up/down/.htaccess", "Use Rule first\nUndefMacro Rule\n")
    tree.put(root / "up/down/page.txt", "page\n")
    options = dict(config=overrides(root), extra_modules=("macro",), limits=ONE_CHILD)
    servers = (lab.stock("macros-stock", root, **options).start(),
               lab.under_test("macros", root, daemon_settings={"ttl_ms": 60000}, **options))

    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port)) for server in servers]

        def compare(when):
            for number in range(ROUNDS):
                stock, ours = (answers(client, "/up/down/page.txt") for client in clients)
                assert ours == stock, f"{when}, request {number}"
            return stock
        assert compare("before") == (200, "first", b"page\n")
        tree.put(root / "up/down/.htaccess", "Use Rule second\nUndefMacro Rule\n")
        assert compare("after a touch of the lower")[1] == "second"
        tree.put(root / "up/.htaccess", macro.replace("set X-Rule $what", "set X-Rule \"$what $what\""))
        assert compare("after a touch of the upper")[1] == "second second"
    lab.end()


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("text", ("<If\\\nFile {closed}>\n", "  <I\\\nf\\\nFile {closed} >\n", "\"<IfFile\" {closed}>\n"),
                         ids=("continued", "twice", "quoted"))
def test_a_condition_on_a_continued_line(lab, base, text, request):
    name = request.node.callspec.id
    root, closed = base / f"continued-{name}", base / f"closed-{name}"
    tree.put(root / ".htaccess", text.format(closed=closed) + "Require all denied\n</IfFile>\n")
    tree.put(root / "page.txt", "page\n")
    server = lab.under_test(f"continued-{name}", root, config=overrides(root), limits=ONE_CHILD)
    with Client(server.port) as client:
        for _ in range(ROUNDS):
            assert client.get("/page.txt") == (200, b"page\n")
            tree.put(closed, "")
            assert client.get("/page.txt")[0] == 403
            closed.unlink()


@pytest.mark.parametrize("text,word", (("ProbeParsed {told}\n", "directive"),
                                       ("Probe\\\nParsed {told}\n", "directive"),
                                       ("<IfModule mod_dir.c>\n<Files *.txt>\n probeparsed {told}\n</Files>\n</IfModule>\n",
                                        "directive"),
                                       ("Require probe {told}\n", "provider"),
                                       ("<RequireAny>\nRequire probe {told}\n</RequireAny>\n", "provider")),
                         ids=("plain", "continued", "inside", "provider", "provider-inside"))
def test_what_others_parse_is_parsed_once_a_request(lab, base, text, word, request):
    name = f"told-{request.node.callspec.id}"
    root = base / name
    tree.put(root / "told", "").chmod(0o666)
    tree.put(root / "d/.htaccess", text.format(told=root / "told"))
    tree.put(root / "d/page.txt", "page\n")
    server = lab.under_test(name, root, config=f"{c_module.probe(root / 'module')}{overrides(root)}",
                            limits=ONE_CHILD, daemon_settings={"ttl_ms": 60000})
    with Client(server.port) as client:
        for number in range(1, 2 * ROUNDS):
            assert client.get("/d/page.txt") == (200, b"page\n")
            assert lines(root / "told") == [word] * number


# ---- parsing that logs ----

WARNED = {"override": "Options +Indexes\n", "unknown": "NoSuchDirective x\n",
          "errordocument": "ErrorDocument 401 http://x.test/\n", "option": "RewriteOptions MaxRedirects=5\n",
          "flag": "RewriteCond %{REQUEST_FILENAME} -f [NC]\n"}


def test_each_request_logs_the_warnings_of_the_parser(lab, base):
    root = base / "warned"
    for name, text in WARNED.items():
        tree.put(root / name / ".htaccess", f"{text}Header set X-Rule warned\n")
        tree.put(root / name / "page.txt", "page\n")
    options = dict(config=f"<Directory {root}>\nAllowOverride FileInfo Nonfatal=All\n</Directory>\n",
                   limits=ONE_CHILD)
    servers = (lab.stock("warned-stock", root, **options).start(),
               lab.under_test("warned", root, daemon_settings={"ttl_ms": 60000}, **options))
    youngest = (root / name / ".htaccess").stat().st_ctime
    wait_for(lambda: time.time() > youngest + KEPT_FROM_S, "the files to be settled")

    def logged(server, name):
        """The numbers that each of some requests logs."""
        found = []
        with Client(server.port) as client:
            for _ in range(ROUNDS):
                before = len(server.error_text())
                assert answers(client, f"/{name}/page.txt") == (200, "warned", b"page\n")
                found.append(re.findall(r"AH\d{5}", server.error_text()[before:]))
        return found
    for name in WARNED:
        stock, ours = (logged(server, name) for server in servers)
        assert len(stock[0]) == 1 and ours == stock, name
    lab.end()


def questions(server):
    found = server.daemon.counters()
    return found["hits"] + found["misses"] + found["joined"]


@pytest.mark.needs_flashpache
def test_a_pure_file_is_parsed_no_more(lab, base):
    """The same with directives of httpd's own: the file is opened at the first request alone."""
    root = base / "pure"
    tree.put(root / "d/.htaccess", "# a comment, exec: and <IfFile\nHeader set X-Rule pure\n<If \"true\">\n"
             "<IfModule no_such_module>\nNoSuchDirective on\n</IfModule>\nRequire all granted\n</If>\n"
             "RewriteEngine \\\n on\nOptions -Indexes\n")
    tree.put(root / "d/page.txt", "page\n")
    server = lab.under_test("pure", root, config=overrides(root), limits=ONE_CHILD, daemon_settings={"ttl_ms": 60000})
    asked = []
    for _ in range(4):
        before = questions(server)
        with Client(server.port) as client:
            assert answers(client, "/d/page.txt") == (200, "pure", b"page\n")
        asked.append(questions(server) - before)
    assert asked[0] > 1 and asked[-1] <= 1, asked
