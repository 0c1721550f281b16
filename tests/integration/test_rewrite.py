# SPDX-License-Identifier: Apache-2.0
"""Flashpache answers RewriteCond's tests of files, with the results of a stock httpd."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

import rewrite_kit
import tree
from fetch import Client
from forms import chosen
from waiting import wait_for

GROUPS = chosen(24, 240)
ROUNDS = 6
LEAST = 10_000          # evaluations of conditions, each compared with stock's
SEED = 20
FEW = {"prefork": "StartServers 4\nMinSpareServers 4\nMaxSpareServers 4\nServerLimit 4\nMaxRequestWorkers 4\n", "event": None}


def ask(client, path, **headers):
    """(status, the rules' result, Vary, body)"""
    client.conn.request("GET", path, headers={"Host": client.host, **headers})
    answer = client.conn.getresponse()
    body = answer.read()
    return answer.status, answer.headers["X-Conditions"], answer.headers["Vary"], body


def warnings(server):
    """Its lines about conditions, without time and process: (each of httpd.conf, those of .htaccess files once)."""
    lines = [re.sub(r"^.*?AH", "AH", line).replace(str(server.dir), "") for line in server.error_text().splitlines()
             if "RewriteCond" in line]
    return sorted(line for line in lines if ".htaccess" not in line), {line for line in lines if ".htaccess" in line}


# ---- as stock ----

@pytest.fixture(scope="module", params=("prefork", "event"))
def servers(lab, base, request):
    root = rewrite_kit.make(base / f"www-{request.param}")
    # With a program each test asks afresh where no change is reported.
    conditions = rewrite_kit.Conditions(root, GROUPS, SEED, program=request.param == "prefork")
    config, vhosts = conditions.config(base)
    options = dict(mpm=request.param, config=config, vhosts=vhosts, limits=FEW[request.param])
    stock = lab.stock(f"stock-{request.param}", root, **options).start()
    flash = lab.under_test(f"flash-{request.param}", root, **options)
    yield stock, flash, conditions, root
    lab.end()


def differences(stock, flash, conditions, root):
    """(evaluated conditions, [differences])"""
    paths = conditions.paths()
    given = [{"X-Path": f"{root}/{conditions.random.choice(rewrite_kit.NAMES)}".strip()[:3000].encode(),
              "X-Name": conditions.random.choice(("file.txt", "changing", "dir/")),
              "X-Or": conditions.random.choice(("yes", "no"))} for _ in paths]

    def all_of(server):
        with Client(server.port) as client:
            return [ask(client, path, **headers) for path, headers in zip(paths, given)]
    with ThreadPoolExecutor(2) as pool:
        expected, ours = pool.map(all_of, (stock, flash))
    few = [(path, answer) for path, answer in zip(paths, expected) if (answer[1] or "").count("y") < 4]
    assert not few, f"the rules find nothing: {few[:3]}"
    found = []
    for path, headers, theirs, own in zip(paths, given, expected, ours):
        if theirs != own:
            rules = conditions.rules[path.split("/")[1]][1].split("]\n")
            pairs = zip((theirs[1] or "").split(","), (own[1] or "").split(","))
            which = [f"{rules[n]!r}: {a} -> {b}" for n, (a, b) in enumerate(pairs) if a != b]
            found.append(f"{path} {headers}: {which or (theirs, own)}")
    return len(paths) * rewrite_kit.A_GROUP, found


def test_as_stock_while_files_appear_and_vanish(servers):
    stock, flash, conditions, root = servers
    evaluated = 0
    for number in range(ROUNDS):
        kind = rewrite_kit.change(root, number)
        count, found = differences(stock, flash, conditions, root)
        evaluated += count
        assert not found, f"changing is {kind}: {len(found)} of {count}\n" + "\n".join(found[:10])
        if number % 2:
            stock.graceful()
            flash.graceful()
    print(f"{len(conditions.groups) * rewrite_kit.A_GROUP} conditions, evaluated {evaluated} times")
    assert evaluated >= LEAST
    assert warnings(flash) == warnings(stock)
    assert any("AH00665" in line for line in warnings(stock)[1])


@pytest.mark.needs_flashpache
def test_as_stock_without_the_daemon(servers):
    stock, flash, conditions, root = servers
    flash.daemon.stop()
    count, found = differences(stock, flash, conditions, root)
    assert not found, "\n".join(found[:10])


@pytest.mark.parametrize("config", ("FlashpacheEngine Off", "FlashpacheEngine Shadow", "FlashpacheRewrite Off", "FlashpacheExclude {root}"))
@pytest.mark.needs_flashpache
def test_as_stock_where_nothing_is_asked(lab, base, config, request):
    name = re.sub(r"\W+", "-", request.node.callspec.id)
    root = rewrite_kit.make(base / f"www-{name}")
    conditions = rewrite_kit.Conditions(root, 8, SEED + 1)
    main, vhosts = conditions.config(base)
    stock = lab.stock(f"stock-{name}", root, config=main, vhosts=vhosts).start()
    flash = lab.under_test(f"flash-{name}", root, config=f"{config.format(root=root)}\n{main}", vhosts=vhosts)
    for number in range(2):
        rewrite_kit.change(root, number)
        _, found = differences(stock, flash, conditions, root)
        assert not found, "\n".join(found[:10])
    lab.end()


def test_expressions_elsewhere(lab, base):
    """In <If>, Require and headers, also in .htaccess, and in an environment variable before there is a path."""
    root = base / "expressions"
    for name in ("a.txt", "b.txt"):
        tree.put(root / name, f"{name}\n")
        tree.put(root / "d" / name, f"{name}\n")
    rules = f"<If \"-f '{root}/flag'\">\nHeader always set X-Conditions flag\n</If>\n<Else>\n" \
            "Header always set X-Conditions \"%{MARK}e\" \n</Else>\n" \
            f"<Files b.txt>\nRequire expr -s '{root}/flag'\n</Files>\n"
    tree.put(root / "d/.htaccess", rules)
    config = f"<Directory {root}>\nAllowOverride All\n{rules}\n</Directory>\n"
    hosts = [(["localhost"], f"SetEnvIfExpr \"-d '{root}/flag'\" MARK=dir\n<Location />\nHeader always set Vary "
              f"\"expr=%{{filesize:{root}/flag}}\"\n</Location>\n")]
    servers = lab.stock("expressions-stock", root, config=config, vhosts=hosts).start(), \
        lab.under_test("expressions", root, config=config, vhosts=hosts)
    clients = [Client(server.port) for server in servers]
    seen = set()
    for change in (lambda p: None, lambda p: tree.put(p, "12345"), lambda p: tree.put(p, ""), lambda p: p.unlink(),
                   lambda p: p.mkdir(), lambda p: p.rmdir(), lambda p: tree.put(p, "1")):
        change(root / "flag")
        for path in ("/a.txt", "/b.txt", "/d/a.txt", "/d/b.txt", "/none"):
            for _ in range(3):
                theirs, ours = [ask(client, path) for client in clients]
                assert ours == theirs, path
                seen.add(theirs[:3])
    assert len(seen) > 6, seen
    lab.end()


@pytest.mark.needs_flashpache
def test_conditions_and_the_file_that_is_served_are_one_view(lab, base):
    """Where no change is reported: a page or its replacement is served, and nothing is absent."""
    root = base / "view"
    rules = "RewriteEngine On\nRewriteCond %{DOCUMENT_ROOT}%{REQUEST_URI} !-f\nRewriteRule ^ /fallback.txt\n"
    tree.put(root / "fallback.txt", "fallback\n")
    for directory in ("server", "perdir"):
        (root / directory).mkdir()
    tree.put(root / "perdir/.htaccess", "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ /fallback.txt\n")
    server = lab.under_test("view", root, config=f"<Directory {root}>\nAllowOverride All\n</Directory>\n",
                            vhosts=[(["localhost"], rules.replace("RewriteRule ^", "RewriteRule ^/server/"))],
                            daemon_settings={"watch": "ttl", "ttl_ms": 600_000})
    with Client(server.port) as client:
        for number in range(20):
            for directory in ("server", "perdir"):
                page = root / directory / f"{number % 4}.txt"
                url = f"/{directory}/{page.name}"
                before = client.get(url)
                tree.put(page, f"page {number}\n")
                there = client.get(url)
                page.unlink()
                gone = client.get(url)
                assert {before[0], there[0], gone[0]} == {200}
                if directory == "server":       # looked at by the condition, as stock does
                    assert (there[1], gone[1]) == (f"page {number}\n".encode(), b"fallback\n"), number
    lab.end()


MAKER = """#!/usr/bin/python3 -u
import os, sys
for line in sys.stdin:
    what, path = line.split()
    if what == "make":
        open(path, "w").close()
    elif what == "remove":
        os.unlink(path)
    print("done")
"""
AROUND = """RewriteCond %{{DOCUMENT_ROOT}}/made/%{{QUERY_STRING}} {first}
RewriteCond "${{program:{what} %{{DOCUMENT_ROOT}}/made/%{{QUERY_STRING}}}}" =done
RewriteCond %{{DOCUMENT_ROOT}}/made/%{{QUERY_STRING}} {then}
RewriteRule ^ - [E={name}:y]
"""
# name, the first test, what the program does, the second test
BOTH = (("made", "!-f", "make", "-f"), ("gone", "-f", "remove", "!-f"), ("again", "!-f", "make", "!-d"), ("there", "-f", "keep", "-s"))


@pytest.mark.parametrize("reported", (True, False), ids=("reported", "not-reported"))
@pytest.mark.parametrize("where", ("server", "directory"))
@pytest.mark.needs_flashpache
def test_a_file_made_by_a_map_shows_in_the_next_test(lab, base, where, reported):
    """A program runs between two tests of one request: the second one sees what it did, and so does the walk."""
    name = f"program-{where}-{reported}"
    root = base / name
    program = tree.put(base / f"{name}-maker", MAKER)
    program.chmod(0o755)
    tree.put(root / "page.txt", "page\n")
    tree.put(root / "made/other.txt", "other\n")
    rules = "RewriteEngine On\n" + "".join(AROUND.format(name=name, first=first, what=what, then=then) for name, first, what, then in BOTH)
    # No rule matches, and the walk comes after the program.
    walked = "RewriteCond %{DOCUMENT_ROOT}%{REQUEST_URI} !-f\nRewriteCond \"${program:make %{DOCUMENT_ROOT}%{REQUEST_URI}}\" =never\n" \
             "RewriteRule ^/made/ - [F]\n"
    shown = "Header always set X-Conditions \"%{made}e,%{gone}e,%{again}e,%{there}e\"\n"
    inside = f"<Directory {root}>\n{rules if where == 'directory' else ''}{shown}</Directory>\n"
    hosts = [(["localhost"], f"RewriteEngine On\nRewriteMap program prg:{program}\n"
              f"{rules if where == 'server' else ''}{walked}{inside}")]
    settings = {} if reported else {"daemon_settings": {"watch": "ttl", "ttl_ms": 600_000}}
    stock = lab.stock(f"{name}-stock", root, vhosts=hosts).start()
    flash = lab.under_test(name, root, vhosts=hosts, **settings)
    seen = []
    for server in (stock, flash):
        with Client(server.port) as client:
            seen.append([ask(client, f"/page.txt?{number}") for number in range(3) for _ in range(2)])
            seen[-1] += [ask(client, f"/made/new{number % 2}?x")[0] for number in range(4)]
        for path in (root / "made").iterdir():
            if path.name != "other.txt":
                path.unlink()
    assert seen[1] == seen[0]
    assert seen[0][0][1].startswith("y,y,y,") and seen[0][-4:] == [200] * 4, seen[0]
    lab.end()


# ---- mistakes, and what is allowed ----

BAD = ("RewriteCond expr \"filesize('/a') -gt 0\"", "RewriteCond expr \"-q /a\"", "RewriteCond expr \"-f\"",
       "RewriteCond expr \"-f %{nothing}\"", "RewriteCond", "RewriteCond /a", "RewriteCond '/a -f", "RewriteCond /a -f [XX]", "RewriteCond /a -f NC",
       "RewriteCond /a -f [NC", "RewriteCond /a '!-f' [OR=1,ZZ]", "RewriteCond expr -f", "RewriteCond /a (", "RewriteCond \"/a\" \"-d\" [foo]")
ALLOWED = ("AllowOverride None", "AllowOverride AuthConfig", "AllowOverride FileInfo", "AllowOverride AuthConfig Nonfatal=Override",
           "AllowOverride None\nAllowOverrideList RewriteEngine RewriteCond RewriteRule",
           "AllowOverride None\nAllowOverrideList RewriteEngine RewriteRule",
           "AllowOverride AuthConfig Nonfatal=All", "AllowOverride None\nAllowOverrideList RewriteEngine RewriteRule\n"
           "AllowOverride Nonfatal=Override")


@pytest.mark.parametrize("line", BAD)
def test_mistakes_are_reported_as_by_stock(lab, base, line, request):
    name = f"bad{BAD.index(line)}"
    root = base / name
    tree.put(root / "d/.htaccess", f"RewriteEngine On\n{line}\nRewriteRule ^ - [F]\n")
    tree.put(root / "d/page.txt", "page\n")
    overrides = f"<Directory {root}>\nAllowOverride All\n</Directory>\n"
    servers = lab.stock(f"{name}-stock", root, config=overrides).start(), lab.under_test(name, root, config=overrides)
    answers = []
    for server in servers:
        with Client(server.port) as client:
            answers.append([client.get("/d/page.txt")[0] for _ in range(3)])
    refused = "filesize" not in line        # by each httpd, everywhere
    assert answers[0] == answers[1] and (answers[0] == [500] * 3 or not refused), answers
    lines = [[re.sub(r"^.*?(\S+/\.htaccess)", r"\1", one) for one in server.error_text().splitlines() if ".htaccess" in one]
             for server in servers]
    assert lines[0] == lines[1] and (len(lines[0]) == 3 or not refused), lines
    checked = []
    for server in servers:
        server.config += f"RewriteEngine On\n{line}\nRewriteRule ^ - [F]\n"
        done = server.check()
        assert done.returncode or not refused
        checked.append(re.sub(r"^.*httpd\.conf:\n", "", done.stderr))
    assert checked[0] == checked[1]
    lab.end()


@pytest.mark.parametrize("allowed", ALLOWED, ids=range(len(ALLOWED)))
def test_what_is_allowed_is_as_in_stock(lab, base, allowed, request):
    name = f"allowed{ALLOWED.index(allowed)}"
    root = base / name
    tree.put(root / "d/.htaccess", "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} -f\nRewriteRule ^page - [F]\n")
    tree.put(root / "d/page.txt", "page\n")
    config = f"<Directory {root}>\n{allowed}\n</Directory>\n"
    servers = lab.stock(f"{name}-stock", root, config=config).start(), lab.under_test(name, root, config=config)
    seen = []
    for server in servers:
        with Client(server.port) as client:
            status = [client.get("/d/page.txt")[0] for _ in range(3)]
        lines = [re.sub(r"^.*?(AH\d+|\S+/\.htaccess)", r"\1", one) for one in server.error_text().splitlines()
                 if "Rewrite" in one]
        if "List" in allowed:                           # parsed for each request
            seen.append((status, lines))
            continue
        seen.append((status, set(lines)))
        forbidden = [sum(f"{name} in .htaccess forbidden" in one for one in lines) for name in ("RewriteCond", "RewriteRule")]
        assert forbidden[0] == forbidden[1], "each once in a parse"
    assert seen[0] == seen[1]
    lab.end()


# ---- what an operator sees ----

@pytest.mark.needs_flashpache
def test_traces_and_the_configuration_show_what_was_written(lab, base):
    root = base / "traces"
    tree.put(root / "file.txt", "x")
    rules = f"LogLevel rewrite:trace5\nRewriteEngine On\nRewriteCond {root}/file.txt !-f [OR]\nRewriteCond {root}/absent -d\n" \
            "RewriteRule ^ - [F]\n<Location /info>\nSetHandler server-info\n</Location>\n"
    server = lab.under_test("traces", root, vhosts=[(["localhost"], rules)], extra_modules=("info",))
    with Client(server.port) as client:
        assert client.get("/file.txt")[0] == 200
        page = client.get("/info?config")[1].decode()
    text = server.error_text()
    assert f"input='0, true: {root}/file.txt' pattern='!-eq-f' => not-matched" in text
    assert f"input='1, false: {root}/absent' pattern='-eq-d' => not-matched" in text
    assert f"{root}/file.txt !-f [OR]" in page and "flashpache-file" not in page
    lab.end()


@pytest.mark.needs_flashpache
def test_it_is_turned_off_and_on_by_a_graceful_restart(lab, base):
    root = base / "turned"
    tree.put(root / "file.txt", "x")
    rules = f"LogLevel rewrite:trace5\nRewriteEngine On\nRewriteCond {root}/file.txt !-f\nRewriteRule ^ - [F]\n"
    server = lab.under_test("turned", root, vhosts=[(["localhost"], rules)])
    conf = server.dir / "httpd.conf"
    text = conf.read_text()
    for switch, pattern in (("", "!-eq-f"), ("FlashpacheRewrite Off\n", "!-f"), ("FlashpacheRewrite \"on\"\n", "!-eq-f")):
        conf.write_text(text + switch)
        server.graceful()

        def is_seen():
            """A child of the old generation may not show it."""
            before = len(server.error_text())
            with Client(server.port) as client:
                assert client.get("/file.txt")[0] == 200
            return f"pattern='{pattern}'" in server.error_text()[before:]
        wait_for(is_seen, f"{pattern} with {switch!r}")
    server.config = "<VirtualHost *:1>\nFlashpacheRewrite Off\n</VirtualHost>\n"
    assert "FlashpacheRewrite cannot occur within <VirtualHost> section" in server.check().stderr
    lab.end()


# ---- the start ----

@pytest.mark.needs_flashpache
def test_a_map_that_cannot_be_added_is_an_error_at_the_start(lab, base, tmp_path):
    """Another module's record by the name of mod_rewrite, which has no maps of functions."""
    import c_module
    source = tree.put(base / "fake/fake_rewrite.c", """#include <httpd.h>
#include <http_config.h>
module AP_MODULE_DECLARE_DATA rewrite_module = { MODULE_MAGIC_NUMBER_MAJOR, MODULE_MAGIC_NUMBER_MINOR, -1, "mod_rewrite.c",
    NULL, NULL, MODULE_MAGIC_COOKIE, NULL, NULL, NULL, NULL, NULL, NULL, NULL };
""")
    made = c_module.compiled(source.parent, source)
    root = base / "fake-www"
    tree.put(root / "file.txt", "x")
    server = lab.flash("fake", root, base / "no.sock")
    text = server.config_text

    def with_fake():
        return re.sub(r"LoadModule rewrite_module \S+", f"LoadModule rewrite_module {made}", text())
    server.config_text = with_fake
    done = server.check()
    assert done.returncode and "FP0122" in done.stderr and "FlashpacheRewrite Off" in done.stderr, done.stderr
    server.config = "FlashpacheRewrite Off\n"
    assert server.check().returncode == 0
