# SPDX-License-Identifier: Apache-2.0
"""scripts/compare: an operator's own site, measured, and the page about it."""

import html
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

import tree
from conftest import BUILD, REPO
from httpd import MODULES_DIR

sys.path.insert(0, str(REPO / "tests/lab"))

from lab import charts, metrics, servers, summary  # noqa: E402
from lab import site as own_site  # noqa: E402
from lab.findings import Findings  # noqa: E402
from lab.store import Store  # noqa: E402
import workload  # noqa: E402

pytestmark = pytest.mark.needs_flashpache

PAGE_MS = 5
PAIR = ("stock-event-All", "flash-event-All")
FILES, PAGES = summary.Part("site", "static requests"), summary.Part("pages", "pages")


# The page

def put(store, part, key, a_second, ms, others=0, cpu_us=90.0):
    """Two rounds of both steps; others: answers with status 503, of 1000."""
    counts = {"requests": 1000, "errors": others, "unexpected": {"503": others} if others else {}}
    for number in range(2):
        latencies = [ms * (1 + i / 100) for i in range(200)]
        store.put((part.name, key, "capacity", number), {"requests_per_s": a_second + number, "cpu_us": cpu_us,
                                                         "memory_mib": 20.0, **counts})
        store.put((part.name, key, "latency=equal", number), {"ms": metrics.latency_summary(latencies),
                                                              "cdf": metrics.cdf(latencies), **counts})


def found_with(directory, *rows):
    store = Store(directory)
    store.facts("machine", {"processor": "a <processor>"})
    store.facts("rigs", {part.name: {"about": f"about {part.label}"} for part, *_ in rows})
    for row in rows:
        put(store, *row)
    return Findings(store)


@pytest.fixture
def site(tmp_path):
    return found_with(tmp_path, (FILES, PAIR[0], 1000, 12.0), (FILES, PAIR[1], 41000, 0.3),
                      (PAGES, PAIR[0], 100, 26.0), (PAGES, PAIR[1], 130, 20.0))


def test_the_page_begins_with_one_sentence(site):
    page = summary.write(site, [FILES, PAGES], PAIR, 20).read_text()
    head = html.unescape(re.search("<h1>(.*)</h1>", page).group(1))
    assert head == ("static requests: 41.0x, pages: 1.30x, because for a static request 23.9 ms become 0.599 ms at the same load; "
                    "for a page 51.9 ms become 39.9 ms at the same load, of which the page's own program takes 20.0 ms either way.")
    body = page.split("</h1>")[1]
    assert body.index("<svg") < body.index("<table") and "99 of 100 answers are there within" in body


def test_plots_are_valid_and_need_nothing_else(site):
    page = summary.write(site, [FILES, PAGES], PAIR, 20).read_text()
    svgs = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(svgs) == 4 and not re.search(r"(src|href)=|<script|@import|url\(", page)
    for svg in map(xml.fromstring, svgs):
        kinds = {element.get("class") for element in svg if element.tag in ("path", "rect")}
        assert kinds == {"stock", "flash"} and svg.get("aria-label")
        width, height = map(float, svg.get("viewBox").split()[2:])
        for element in svg.iter():
            assert all(0 <= float(element.get(name, 0)) <= limit
                       for name, limit in (("x", width), ("x2", width), ("y", height), ("y2", height)))
    assert "prefers-color-scheme: dark" in page


def test_the_reason_is_a_difference(tmp_path):
    """Where latencies do not differ, the processor time does, or no reason is given."""
    found = found_with(tmp_path / "cpu", (FILES, PAIR[0], 1000, 2.0, 0, 191.0), (FILES, PAIR[1], 1400, 2.0, 0, 155.0))
    assert summary.sentence(found, [FILES], PAIR, 20) == (
        "static requests: 1.40x, because for a static request 191 µs of processor time become 155.")
    found = found_with(tmp_path / "none", (FILES, PAIR[0], 1000, 2.0), (FILES, PAIR[1], 1400, 2.0))
    assert summary.sentence(found, [FILES], PAIR, 20) == "static requests: 1.40x."


def test_no_difference_is_called_that(tmp_path):
    found = found_with(tmp_path, (FILES, PAIR[0], 1000, 2.0), (FILES, PAIR[1], 1000, 2.0))
    said = summary.sentence(found, [FILES], PAIR, 20)
    assert said.startswith("static requests: no difference beyond the noise. Longer") and "because" not in said


@pytest.mark.parametrize("others, refused", ((10, False), (11, True)))
def test_no_verdict_above_one_percent_of_other_statuses(tmp_path, others, refused):
    found = found_with(tmp_path, (FILES, PAIR[0], 1000, 2.0), (FILES, PAIR[1], 1000, 2.0), (PAGES, PAIR[0], 90, 25.0),
                       (PAGES, PAIR[1], 90, 25.0, others))
    page = summary.write(found, [FILES, PAGES], PAIR, 20).read_text()
    head = re.search("<h1>(.*)</h1>", page).group(1)
    assert head.startswith("No verdict: 1.1% of the responses had another status than expected") is refused
    assert ("44 times 503" in head, "<svg" in page, "<table" in page) == (refused, not refused, not refused)


def log_line(text):
    """An access log's line for "[METHOD] PATH STATUS"."""
    *method, path, status = text.split()
    return f'192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "{"".join(method) or "GET"} {path} HTTP/1.1" {status} 5\n'


def requests(*lines):
    return [workload.from_line(log_line(line).strip())[0] for line in lines]


def test_each_request_has_the_status_of_the_log():
    """A page has the stub's, whatever the site's program said."""
    asked = requests("GET /a 304", "HEAD /a 200", "GET /gone 404", "GET /moved 301", "GET /dir/ 403", "GET /x.php 404")
    answers = dict(zip(asked, (200, 200, 404, 301, 403, 203)))
    split = own_site.SiteContent(asked, True, "a log").split(answers)
    assert sorted(split.files.urls(5, 1)) == ["/a 200", "/dir/ 403", "/gone 404", "/moved 301", "HEAD /a 200"]
    assert split.pages.urls(1, 1) == ["/x.php 203"] and split.unexpected == 0
    assert "2 with status 200, 1 with status 404, 1 with status 301, 1 with status 403" in split.files.text


@pytest.mark.parametrize("others, refused", ((1, False), (2, True)))
def test_no_verdict_where_the_site_answered_otherwise(tmp_path, others, refused):
    """Redirects are left out as well, but they do not count: a site without TLS does not redirect to it."""
    asked = requests(*(f"GET /{number} 200" for number in range(others)), *["GET /to-tls 301"] * 50, *["GET /a 404"] * 100)
    statuses = {each: 404 if each.status == 200 else 200 if each.status == 301 else 404 for each in asked}
    split = own_site.SiteContent(asked, True, "a log").split(statuses)
    assert split.left_out == f"50 with status 200 in place of 301, {others} with status 404 in place of 200"
    found = found_with(tmp_path, (FILES, PAIR[0], 1000, 2.0), (FILES, PAIR[1], 1000, 2.0))
    found.store.facts("left_out", {"unexpected": split.unexpected, "what": split.left_out})
    said = summary.refusal(found, [FILES], PAIR)
    assert bool(said) is refused and (not refused or "in place of 301" in said)


@pytest.mark.parametrize("least, most", ((0.03, 0.031), (0.4, 9000), (1, 1)))
def test_marks_of_the_axis_enclose_the_values(least, most):
    marks = charts.ticks(least, most)
    assert marks[0] <= least and marks[-1] >= most and marks == sorted(marks)


# An operator's own site, measured

def test_names_of_files_are_bytes(tmp_path):
    """As a site that was once in Latin-1 still has them."""
    for name in (b"caf\xe9 1.txt", "café.txt".encode()):
        (tmp_path / os.fsdecode(name)).write_text("")
    assert sorted(each.path for each in own_site.from_tree(tmp_path).requests) == ["/caf%C3%A9.txt", "/caf%E9%201.txt"]


def compare(*arguments):
    return subprocess.run(["/usr/bin/python3", REPO / "scripts/lib/compare.py", *arguments], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "FLASHPACHE_BUILD": str(BUILD)})


class Target:
    """The target of a site's configuration: it counts its requests."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]

    def visitors(self):
        try:
            self.listener.accept()
        except BlockingIOError:
            return 0
        return 1


SITE = """ServerRoot {place}
{load}
DocumentRoot {place}/docs
<Directory {place}/docs>
    Require all granted
    RewriteEngine On
    RewriteRule ^pretty/ page.php
</Directory>
Listen 80
<VirtualHost *:443>
    SSLEngine on
    DocumentRoot {place}/docs
    ProxyPass /app/static/ !
    ProxyPass /app http://127.0.0.1:{port}/
    <IfModule mod_proxy_http.c>
        ProxyPassMatch ^/(api|feed)/ http://127.0.0.1:{port}
    </IfModule>
    <Location /located>
        ProxyPass http://127.0.0.1:{port}/
    </Location>
    <Directory {place}/docs/handled>
        SetHandler "proxy:fcgi://127.0.0.1:{port}"
    </Directory>
    RewriteEngine On
    RewriteRule ^/old/ http://127.0.0.1:{port}/ [P]
</VirtualHost>
"""


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
def test_own_site_is_measured_without_its_servers(base):
    """The log of a site with pages, a proxy and TLS: a stub makes pages, and answers for proxies. The rest is left out. No server gets any."""
    place, target = base / "own-site", Target()
    for name in ("a.txt", "b.txt"):
        tree.put(place / "docs" / name, f"{name}\n")
    tree.put(place / "docs/handled/a.txt", "")
    tree.put(place / "docs/page.php", "<?php system('true');\n")
    names = ("mpm_event", "authz_core", "rewrite", "dir", "proxy", "proxy_http", "ssl")
    load = "\n".join(f"LoadModule {name}_module {MODULES_DIR}/mod_{name}.so" for name in names)
    config = tree.put(place / "httpd.conf", SITE.format(place=place, port=target.port, load=load))
    lines = ["/a.txt 304", "/b.txt 206", "/page.php 404", "/pretty/post 301", "/app/x 200", "/old/y 200", "/api/z 200",
             "/located/x 200", "/handled/a.txt 200", "/app/static/x 404", "/apps 404", "/gone.txt 404", "HEAD /a.txt 200"]
    log = tree.put(place / "access.log", "".join(map(log_line, lines)))
    options = ("--seconds", "0.3", "--rounds", "2", "--connections", "4", "--page-ms", str(PAGE_MS), "--results", place / "results")
    done = compare("--config", config, "--log", log, *options)
    assert done.returncode == 0, done
    text, page = ((place / "results" / name).read_text() for name in ("report.txt", "report.html"))
    assert "46.2% of them are measured here, those that httpd answers itself (3 with status 200, 3 with status 404)" in text
    assert "53.8% of them are measured here, those for pages" in text
    assert "left out of all" not in text
    assert "1 virtual host(s) with TLS are served" in done.stdout
    head = re.search("<h1>(.*)</h1>", page).group(1)
    assert text.startswith(html.unescape(head)) and re.match(r"static requests: .*pages: ", head)
    assert page.count("<svg") == 4 and "Processor time for a request" in page
    for key in ("stock-site", "flash-site"):
        found = json.loads((place / "results/pages" / key / "latency=equal.0.json").read_text())
        assert set(found["by_status"]) == {"203"} and found["ms"]["p50"] >= PAGE_MS
        found = json.loads((place / "results/site" / key / "capacity.0.json").read_text())
        assert set(found["by_status"]) == {"200", "404"} and not found["unexpected"]
    assert target.visitors() == 0
    nothing = tree.put(place / "nothing.log", log_line("/gone.txt 200"))
    done = compare("--config", config, "--log", nothing, *options[:-1], place / "nothing")
    assert done.returncode == 1 and "serves none of what is asked for: 1 with status 404 in place of 200" in done.stderr


HOSTS = """ServerRoot {place}
{load}
<Directory {place}>
    Require all granted
</Directory>
<VirtualHost *:80>
    ServerName one.test
    RewriteEngine On
    RewriteRule ^ https://one.test%{{REQUEST_URI}} [R=301,L]
</VirtualHost>
<VirtualHost *:80>
    ServerName two.test
    ServerAlias www.two.test
    DocumentRoot {place}/two
</VirtualHost>
<VirtualHost *:443>
    ServerName one.test:443
    SSLEngine on
    DocumentRoot {place}/one
    <Directory {place}/one>
        AllowOverride All
    </Directory>
</VirtualHost>
"""
# As applications write it.
TO_TLS = """SSLRequireSSL
php_value memory_limit 64M
RewriteEngine On
RewriteCond %{HTTPS} !=on
RewriteRule ^ https://%{HTTP_HOST}%{REQUEST_URI} [R=301,L]
RewriteCond %{REQUEST_SCHEME} !=https
RewriteRule ^ - [F]
"""


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
def test_each_request_goes_to_its_host(base):
    """The one of its line, or of --host; a host with TLS is there without it, and its rules do not notice."""
    place = base / "hosts"
    for name in ("one", "two"):
        tree.put(place / name / f"{name}.txt", f"{name}\n")
    tree.put(place / "one/.htaccess", TO_TLS)
    names = ("mpm_event", "authz_core", "rewrite", "ssl")
    load = "\n".join(f"LoadModule {name}_module {MODULES_DIR}/mod_{name}.so" for name in names)
    config = tree.put(place / "httpd.conf", HOSTS.format(place=place, load=load))
    lines = ["one.test:443 " + log_line("/one.txt 200"), "one.test:443 " + log_line("/two.txt 404"),
             "two.test:80 " + log_line("/two.txt 200"), "www.two.test:80 " + log_line("/one.txt 404"),
             log_line("/two.txt 200"), log_line("GET http://one.test/one.txt 200"), "one.test:80 " + log_line("/x 301")]
    log = tree.put(place / "access.log", "".join(lines))
    done = compare("--config", config, "--log", log, "--host", "Two.test", "--seconds", "0.2", "--rounds", "2",
                   "--connections", "2", "--results", place / "results")
    assert done.returncode == 0, done
    text = (place / "results/report.txt").read_text()
    assert f"7 requests of {log} in their order, to 3 hosts" in text
    assert "those that httpd answers itself (4 with status 200, 2 with status 404)" in text
    assert "left out of all: 1 with status 404 in place of 301" in text
    assert compare("--host", "a b").returncode == 2


# Nothing of the site's is reached

class SocketTarget:
    """The site's application at a socket: it counts its connections."""

    def __init__(self, path):
        self.path, self.listener = path, socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        path.chmod(0o777)
        self.listener.listen(64)
        self.listener.setblocking(False)

    visitors = Target.visitors


WAYS_OUT = """ServerRoot {place}
{load}
DocumentRoot {place}/docs
Define APP proxy:unix:{socket}|http://localhost
Define APP2 unix:{socket}|http://localhost
LogFormat "%h" short
CustomLog "|{program}" short
ErrorLog "|{program}"
<Directory {place}/docs>
    AllowOverride All
    Options All
    Require all granted
</Directory>
<Directory {place}/docs/variable>
    SetHandler ${{APP}}
</Directory>
<Directory {place}/docs/filter>
    SetOutputFilter own
</Directory>
<Macro Log $directive>
    $directive "|{program}" short
</Macro>
Use Log CustomLog
ExtFilterDefine own mode=output cmd={program}
ScriptAlias /cgi-bin/ {place}/cgi-bin/
<Directory {place}/cgi-bin>
    Require all granted
</Directory>
RewriteEngine On
RewriteMap ask prg:{program}
RewriteRule ^/map/(.*) /a.txt?${{ask:$1}}
RewriteRule ^/rule/(.*) unix:{socket}|http://localhost/$1 [P]
ProxyPass /pass ${{APP2}}/
ProxyPassMatch ^/match unix:{socket}|fcgi://localhost/
IdentityCheck On
"""
# The documents' own files, which are only read.
ACCESS_FILES = {"handler": 'SetHandler "proxy:unix:{socket}|http://localhost/"',
                "fcgi": 'SetHandler "proxy:unix:{socket}|fcgi://localhost/"',
                "rule": "RewriteEngine On\nRewriteRule ^ unix:{socket}|http://localhost/ [P]",
                "script": "Options +ExecCGI\nSetHandler cgi-script",
                "include": "Options +Includes\nSetOutputFilter INCLUDES"}
WAYS = ("variable", "filter", *ACCESS_FILES)


@pytest.fixture
def ways_out(base):
    """(place, its target, the file that its program makes)"""
    place = base / f"ways-out{len(list(base.glob('ways-out*')))}"
    ran = place / "ran"
    target = SocketTarget(tree.put(place / "empty", "").with_name("app.sock"))
    own = program(place / "program", f"echo >>{ran}")
    program(place / "cgi-bin/run", f"echo >>{ran}")
    for name in WAYS:
        program(place / "docs" / name / "x", f"echo >>{ran}\n#<!--#exec cmd='{own}' -->")
        if name in ACCESS_FILES:
            tree.put(place / "docs" / name / ".htaccess", ACCESS_FILES[name].format(socket=target.path) + "\n")
    tree.put(place / "docs/a.txt", "a\n")
    tree.put(ran, "", 0o666)
    names = "mpm_event authz_core alias rewrite dir proxy proxy_http proxy_fcgi include filter ext_filter cgid ident macro".split()
    load = "\n".join(f"LoadModule {name}_module {MODULES_DIR}/mod_{name}.so" for name in names)
    tree.put(place / "httpd.conf", WAYS_OUT.format(place=place, socket=target.path, program=own, load=load))
    return place, target, ran


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
def test_sockets_and_programs_of_a_site_are_not_reached(ways_out):
    """By no line of its configuration, and by no .htaccess of its documents."""
    place, target, ran = ways_out
    paths = ["/map/x", "/rule/x", "/pass/x", "/match/x", "/cgi-bin/run", *(f"/{name}/x" for name in WAYS)]
    log = tree.put(place / "urls", "\n".join(["/a.txt", *paths]) + "\n")
    done = compare("--config", place / "httpd.conf", "--log", log, "--seconds", "0.3", "--rounds", "2", "--connections", "4",
                   "--page-ms", "1", "--results", place / "results")
    assert done.returncode == 0, done
    assert (target.visitors(), ran.read_text()) == (0, "")
    assert f"{9 / 13:.1%} of them are measured here, those for pages" in (place / "results/report.txt").read_text()
    for text in json.loads((place / "results/configurations.json").read_text()).values():
        loaded = dict(re.findall(r"LoadModule (\w+)_module (\S+)", text))
        assert loaded.pop("proxy") == str(own_site.STUB) and set(loaded) - {"flashpache"} <= own_site.HARMLESS
        assert str(place / "program") not in text


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
def test_without_hidden_sockets_httpd_reaches_none(ways_out):
    """As one that the site makes during the run."""
    place, target, ran = ways_out
    config = own_site.SiteConfig(place / "httpd.conf")
    assert config.drop_unknown(place, 1) == ["IdentityCheck"]
    server = servers.make("stock-site", servers.Place(place / "private", place / "docs", connections=4, site_config=config,
                                                      pages=own_site.pages(1)))
    server.start()
    try:
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        found = {path: status_of(client, path) for path in ("/rule/x", "/pass/x", "/match/x", "/cgi-bin/run",
                                                            *(f"/{name}/x" for name in WAYS))}
    finally:
        server.stop()
    assert (target.visitors(), ran.read_text()) == (0, "")
    assert {path for path, status in found.items() if status != 203} == {"/filter/x", "/include/x"}


def status_of(client, path):
    client.request("GET", path)
    answer = client.getresponse()
    answer.read()
    return answer.status


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
def test_an_access_file_reaches_no_socket(ways_out):
    """Without a configuration httpd has what the lab gives it."""
    place, target, ran = ways_out
    done = compare(place / "docs", "--seconds", "0.3", "--rounds", "2", "--connections", "4", "--page-ms", "1",
                   "--results", place / "results-docs")
    assert done.returncode == 0, done
    assert (target.visitors(), ran.read_text()) == (0, "")


LEAVES = """import socket, sys
sys.path[:0] = [{lab!r}]
from lab import apart
apart.leave([{kept!r}])
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as client:
        print(client.connect_ex(path) == 0)
print([each.name for each in apart.SOCKETS.iterdir()])
"""


def test_sockets_of_the_machine_are_hidden(tmp_path, base):
    """Those anywhere, and all of /run but what is needed of it. Others still see them."""
    below_run = tempfile.mkdtemp(prefix="flashpache-test-", dir="/run")
    try:
        targets = [SocketTarget(Path(place) / "app.sock") for place in (base, below_run)]
        script = LEAVES.format(lab=str(REPO / "tests/lab"), kept=str(tmp_path))
        done = subprocess.run(["/usr/bin/python3", "-c", script, *(target.path for target in targets)], capture_output=True,
                              text=True, check=True, timeout=60)
        assert done.stdout.split() == ["False", "False", "[]"]
        assert [target.visitors() for target in targets] == [0, 0]
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(targets[1].path))
        assert targets[1].visitors() == 1
    finally:
        shutil.rmtree(below_run)


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
def test_results_of_an_earlier_run_are_no_answer(base):
    """After a change of the site the same command would repeat the old verdict."""
    docroot, results = base / "measured-site", base / "measured"
    tree.put(docroot / "a.txt", "a\n")
    command = (docroot, "--seconds", "0.2", "--rounds", "2", "--connections", "2", "--results", results)
    assert compare(*command).returncode in (0, 1)
    before = {path: path.read_bytes() for path in results.rglob("*.*")}
    assert results / "report.txt" in before
    again = compare(*command)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == (f"compare: {results} has the results of an earlier run: give another directory to "
                            "--results, or remove this one\n")
    assert {path: path.read_bytes() for path in results.rglob("*.*")} == before


# Another distribution's Apache

def program(path, text):
    return tree.put(path, f"#!/bin/sh\n{text}\n", 0o755)


FOUND_BY_APXS = """case $2 in
SBINDIR) echo {place}/sbin ;;
PROGNAME) echo httpd ;;
LIBEXECDIR) echo {place}/modules ;;
esac"""
# It does not start, and says in several lines what it was given.
SHOWS = """grep -E '^(LoadModule|User|Group) ' "$3" >&2
exit 1"""
# There is no www-data, and root asks.
IDENTITIES = """case $* in
-u) echo 0 ;;
"-u apache") echo 48 ;;
*) exit 1 ;;
esac"""


@pytest.fixture
def fedora(base):
    """A directory with Apache in Fedora's layout: mod_unixd is a file. Its make and dpkg-query find nothing to do."""
    place = base / f"fedora{len(list(base.glob('fedora*')))}"
    for name in ("unixd", "mpm_event", "authz_core", "mime"):
        tree.put(place / f"modules/mod_{name}.so", "")
    program(place / "sbin/httpd", SHOWS)
    program(place / "bin/apxs", FOUND_BY_APXS.format(place=place))
    program(place / "bin/make", "exit 0")
    program(place / "bin/dpkg-query", "echo installed")
    return place


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
def test_the_apache_of_apxs_is_measured(fedora, base):
    """With the modules that are files there, and no others; an httpd that does not start is one line."""
    tree.put(base / "page/a.txt", "a\n")
    without = {name: value for name, value in os.environ.items() if not name.startswith("FLASHPACHE_APACHE")}
    done = subprocess.run([REPO / "scripts/compare", base / "page", "--seconds", "0.2", "--rounds", "2"],
                          capture_output=True, text=True, timeout=300, cwd=base,
                          env={**without, "FLASHPACHE_BUILD": str(BUILD), "PATH": f"{fedora}/bin:{os.environ['PATH']}"})
    said, = done.stderr.splitlines()
    assert done.returncode == 1 and said.startswith("compare: stock-event-All ended at start: ")
    loaded = {name: path for name, path in re.findall(r"LoadModule (\w+)_module (\S+)", said)}
    assert loaded.pop("proxy").startswith(str(BUILD))       # the stub
    assert loaded == {name: f"{fedora}/modules/mod_{name}.so" for name in ("mpm_event", "unixd", "authz_core", "mime")}


def test_the_user_of_apache_is_there(fedora):
    """Not everywhere it is www-data."""
    program(fedora / "bin/id", IDENTITIES)
    setup = REPO / "scripts/lib/setup.sh"
    command = f"fp_repo='{REPO}'; . '{setup}'; fp_find_user; fp_find_httpd; " + 'echo "$fp_user $fp_httpd $fp_modules"'
    done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, check=True, timeout=60,
                          env={**os.environ, "PATH": f"{fedora}/bin:{os.environ['PATH']}"})
    assert done.stdout == f"apache {fedora}/sbin/httpd {fedora}/modules\n"
