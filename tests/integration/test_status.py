# SPDX-License-Identifier: Apache-2.0
"""The status page and the counters: every request is in them, once, where the log has it."""

import collections
import itertools
import json
import os
import re
import signal

import pytest

import exposition
import procs
import status_kit
import tree
from conftest import REPO
from content_kit import clock, settled  # noqa: F401 (fixtures)
from fetch import Client, get
from keepalive import child_of, children_config
from sites import WORDPRESS_RULES
from status_kit import figures, grown, page
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

HOSTS = ("localhost", "other.test")
HELD = {"LeasesHeld", "DescriptorsHeld", "BytesMapped", "Children"}
ONE_CHILD = "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 1\nMaxRequestWorkers 1\n"
LARGE = 200_000             # bytes: held as a descriptor, not as content
HOSTILE = '<b>&amp"\\x.test'
FRONT_CONTROLLERS = {
    "access-file": (WORDPRESS_RULES, ""),
    "virtual-host": ("", "RewriteEngine On\nRewriteRule !^/index\\.php$ /index.php [L]\n"),
    "inherited": (f"{WORDPRESS_RULES}RewriteOptions Inherit\n", "RewriteEngine On\nRewriteOptions InheritDown\n"),
    "fallback": ("FallbackResource /index.php\n", ""),
}
NUMBERS = itertools.count()
TIMING = 'FlashpacheServerTiming On\nHeader always add Server-Timing "app;dur=1"'


@pytest.fixture(scope="module")
def root(base):
    root = base / "status-tree"
    for i in range(5):
        tree.put(root / f"file{i}.txt", f"file {i}\n")
    tree.put(root / "large.bin", tree.content("large", LARGE))
    tree.put(root / "excluded/file.txt", "not asked about\n")
    (root / "gone").symlink_to("nowhere")
    return root


def start(lab, name, root, mpm="event", **options):
    vhosts = options.pop("vhosts", [([host], "") for host in HOSTS])
    config = f"FlashpacheExclude {root}/excluded\nFlashpacheTimeout 1\n" + options.pop("config", "")
    return lab.under_test(name, root, mpm=mpm, config=config, vhosts=[*vhosts, status_kit.VHOST],
                          extra_modules=status_kit.MODULES, **options)


@pytest.fixture(scope="module", params=("prefork", "event"))
def server(request, lab, root):
    return start(lab, request.param, root, request.param)


@pytest.fixture(scope="module")
def event(lab, root):
    return start(lab, "alone", root, config=children_config(children_log(lab)))


def children_log(lab):
    return lab.base / "children.log"


def request_all(server, paths, host="localhost", method="GET"):
    with Client(server.port, host=host) as client:
        for path in paths:
            client.conn.request(method, path, headers={"Host": host})
            client.conn.getresponse().read()
    return len(paths)


def logged(server, mark, count):
    """The page's names for so many log entries. The page's own entries have no note, and that of the check whether
    the server answers (OPTIONS) may come late."""
    def enough():
        entries = [e for e in server.entries(mark) if e.note != "-" and e.method != "OPTIONS"]
        return entries if len(entries) >= count else None
    return collections.Counter(e.note.capitalize() + e.reason.capitalize().replace("-", "")
                               for e in wait_for(enough, f"{count} log entries"))


def whole(counts):
    """Without hosts and without usage."""
    return {name: n for name, n in counts.items()
            if "[" not in name and name not in HELD | {"Absent"}}


def traffic(server):
    """How many requests it was."""
    files = [f"/file{i}.txt" for i in range(5)]
    count = request_all(server, files * 3)
    count += request_all(server, files * 2, host="other.test")
    count += request_all(server, ["/none", "/none/more", "/gone", "/excluded/file.txt", "/file0.txt/more"])
    return count + request_all(server, ["/file0.txt"] * 3, method="DELETE")


# counters

def test_counts_are_those_of_the_log(server):
    before, mark = figures(server), server.mark()
    count = traffic(server)
    found = whole(grown(server, before))
    assert found == logged(server, mark, count)
    assert (found["BypassExcluded"], found["BypassMethod"]) == (1, 3)
    assert sum(found.get(name, 0) for name in ("Lease", "Hit", "Miss")) == 29


def test_each_host_has_its_own(server):
    before = figures(server)
    traffic(server)
    found = grown(server, before)
    per_host = {host: sum(n for name, n in found.items() if f"[{host}:{server.port}]" in name
                          and not name.startswith("Absent")) for host in HOSTS}
    assert per_host == {"localhost": 23, "other.test": 10}
    for name, n in whole(found).items():
        assert n == sum(found.get(f"{name}[{host}:{server.port}]", 0) for host in HOSTS), name


def test_environment_has_what_the_notes_have(lab, base, root):
    every, without = base / "environment.log", base / "without.log"
    server = start(lab, "environment", root, config=f"""
CustomLog {every} "%U %{{FLASHPACHE}}e %{{FLASHPACHE_REASON}}e"
CustomLog {without} "%U" env=FLASHPACHE_REASON
""")
    mark = server.mark()
    request_all(server, ["/file0.txt", "/excluded/file.txt"])
    server.wait_entries(2, mark)
    # The logs are written one after the other.
    assert wait_for(without.read_text, "the last log").splitlines()[-1:] == ["/excluded/file.txt"]
    ours = [line for line in every.read_text().splitlines() if line.startswith("/")]     # httpd itself asks for "*"
    assert ours == ["/file0.txt miss -", "/excluded/file.txt bypass excluded"]
    assert "/file0.txt" not in without.read_text()


def test_absent(server):
    before = figures(server)
    request_all(server, ["/none", "/none/more", "/gone"] * 2)
    assert grown(server, before)["Absent"] == 6


def test_without_a_daemon_and_with_it_again(server):
    before, mark = figures(server), server.mark()
    server.daemon.kill()
    try:
        request_all(server, ["/none-such"] * 20)
        found = whole(grown(server, before))
        assert found == logged(server, mark, 20)
        assert found["FallbackAbsent"] >= 1 and sum(found.values()) == 20
        assert (figures(server)["FlashpachedUp"], figures(server)["FlashpachedProblem"]) \
            == (0, "nobody listens at its socket")
        assert f"The daemon at {server.socket} does not answer: nobody listens" in page(server)
        without = status_kit.metrics(server)
        assert without["flashpached_up", frozenset()] == 0
        assert {name for name, _ in without if name.endswith("_info") or "uptime" in name} == {"flashpache_build_info"}
    finally:
        server.daemon.start()
    assert figures(server)["FlashpachedUp"] == 1


def test_stopped_daemon(server):
    server.daemon.signal(signal.SIGSTOP)
    try:
        assert "does not answer: it hangs or is stopped" in page(server)
        assert figures(server)["FlashpachedUp"] == 0
    finally:
        server.daemon.signal(signal.SIGCONT)
    wait_for(lambda: figures(server)["FlashpachedUp"], "the daemon's answer")


@pytest.mark.usefixtures("settled")         # small files are contents
def test_what_a_child_holds(lab, root):
    server = start(lab, "held", root, "prefork", limits=ONE_CHILD)
    # It answers, so it has begun.
    before = figures(server)
    assert (before["FlashpacheChildren"], before["FlashpacheDescriptorsHeld"]) == (1, 0)

    def holds(paths):
        request_all(server, paths)
        found = grown(server, before)
        return found.get("LeasesHeld", 0), found.get("DescriptorsHeld", 0)
    assert holds(["/file0.txt", "/file1.txt", "/none"] * 3) == (0, 0)
    # An answer that is not leasable yet is not kept: the child asks again.
    wait_for(lambda: holds(["/large.bin"] * 2) == (1, 1), "an open file")
    assert holds(["/file0.txt", "/none", "/large.bin"] * 3) == (1, 1)
    # A new child holds nothing.
    victim = server.pids()[1]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: victim not in server.pids(), "its end")
    assert figures(server)["FlashpacheLeasesHeld"] == 0
    assert figures(server)["FlashpacheChildren"] == 1


def test_crashed_child_is_not_told(lab, event):
    def all_told():
        return figures(event)["FlashpacheChildren"] == len(event.pids()) - 1
    wait_for(all_told, "every child")
    with Client(event.port, host=status_kit.HOST) as client:
        client.get(status_kit.PAGE + "?auto", "mine")
        # The connection is this child's until it ends.
        serving = child_of(children_log(lab), "mine")
        victim = next(pid for pid in event.pids()[1:] if pid != serving)
        os.kill(victim, signal.SIGSTOP)
        try:
            assert client.get(status_kit.PAGE + "?auto")[0] == 200
        finally:
            os.kill(victim, signal.SIGKILL)
    wait_for(lambda: victim not in event.pids() and all_told(), "the other children alone")


# restarts

def reconfigure(server, old, new):
    path = server.dir / "httpd.conf"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    restart(server, signal.SIGUSR1)


def restart(server, number):
    before = server.error_text().count("resuming normal operations")
    children = set(procs.children(server.process.pid))
    server.process.send_signal(number)
    wait_for(lambda: server.error_text().count("resuming normal operations") > before, "the restart")
    # A child that is about to end may still take a connection, and close it.
    wait_for(lambda: not children & set(procs.children(server.process.pid)), "the end of the children before")


@pytest.mark.parametrize("number", (signal.SIGUSR1, signal.SIGHUP), ids=("graceful", "restart"))
def test_counts_outlive_a_restart(server, number):
    traffic(server)
    before = figures(server)
    restart(server, number)
    assert whole(grown(server, before)) == {}
    request_all(server, ["/file0.txt"] * 7)
    assert sum(whole(grown(server, before)).values()) == 7


def test_counts_outlive_another_host(lab, root):
    server = start(lab, "hosts", root)
    before = figures(server)
    request_all(server, ["/file0.txt"] * 4)
    request_all(server, ["/file0.txt"] * 3, host="other.test")
    reconfigure(server, "ServerName other.test:8080", "ServerName third.test:8080")
    request_all(server, ["/file0.txt"] * 2, host="third.test")

    found = grown(server, before)

    def total(host):
        return sum(n for name, n in found.items() if name.endswith(f"[{host}:{server.port}]"))
    assert (total("localhost"), total("third.test")) == (4, 2)
    assert not any("other.test" in name for name in figures(server))


# forms

def test_metrics_are_the_same_numbers(server):
    traffic(server)
    lines, found = figures(server), status_kit.metrics(server)
    for host in HOSTS:
        name = f"{host}:{server.port}"
        outcomes = {(dict(labels)["outcome"], dict(labels)["reason"]): value
                    for (metric, labels), value in found.items()
                    if metric == "flashpache_requests_total" and ("vhost", name) in labels}
        assert len(outcomes) == 25
        for (word, reason), value in outcomes.items():
            assert lines[f"Flashpache{word.capitalize()}{reason.capitalize()}[{name}]"] == value
        assert found["flashpache_absent_total", frozenset({("vhost", name)})] == lines[f"FlashpacheAbsent[{name}]"]
    assert found["flashpache_leases", frozenset()] == lines["FlashpacheLeasesHeld"]
    assert found["flashpached_up", frozenset()] == 1
    # As Prometheus asks with params: {prometheus: [""]}.
    assert exposition.parse(page(server, "?prometheus=")).keys() == found.keys()


def test_daemon_s_numbers_are_all_there(server, flashpachectl):
    done = flashpachectl("-s", server.daemon.socket, "stats")
    names = [line.split()[0] for line in done.stdout.splitlines() if re.fullmatch(r"[a-z0-9_]+ \d+", line)]
    assert len(names) > 20
    lines, found = figures(server), status_kit.metrics(server)
    for name in names:
        assert f"Flashpached{name.title().replace('_', '')}" in lines
        assert (f"flashpached_{name}", frozenset()) in found or (f"flashpached_{name}_total", frozenset()) in found


def test_daemon_s_numbers_have_their_type(server):
    reader = exposition.read(page(server, "?prometheus"))
    assert reader.types["flashpached_hits_total"] == "counter" and reader.types["flashpached_files"] == "gauge"
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in reader.types.items())


def test_metrics_by_mount(server):
    get(server.port, "/file1.txt")
    reader = exposition.read(page(server, "?prometheus"))
    assert reader.samples["flashpache_mount_in_service", frozenset({("mount", "/proc"), ("watch", "ttl")})] == 1
    name = "flashpache_lookup_duration_seconds"
    assert reader.types[name] == "histogram"
    points = {dict(labels)["mount"] for metric, labels in reader.samples if metric == f"{name}_count"}
    assert points
    for point in points:
        labels = frozenset({("mount", point)})
        buckets = sorted((float(dict(of)["le"]), value) for (metric, of), value in reader.samples.items()
                         if metric == f"{name}_bucket" and labels <= of)
        assert len(buckets) == 22 and [n for _, n in buckets] == sorted(n for _, n in buckets)
        assert buckets[-1] == (float("inf"), reader.samples[f"{name}_count", labels])
        assert 0 < reader.samples[f"{name}_sum", labels] < buckets[-1][1] * 10
        assert reader.samples["flashpache_lookup_calls_total", labels] >= buckets[-1][1]


def test_metrics_of_release_and_uptime(server, flashpachectl):
    told = json.loads(flashpachectl("-s", server.daemon.socket, "status", "--json").stdout)["daemon"]
    found = status_kit.metrics(server)
    release = frozenset({("version", told["version"])})
    assert found["flashpache_build_info", release] == found["flashpached_build_info", release] == 1
    assert told["uptime_s"] <= found["flashpached_uptime_seconds", frozenset()] <= told["uptime_s"] + 10
    assert found["flashpached_watches_refused_total", frozenset()] == 0


def test_prometheus_s_own_parser(server):
    parser = pytest.importorskip("prometheus_client.parser", reason="needs python3-prometheus-client")
    text = page(server, "?prometheus")
    names = {family.name for family in parser.text_string_to_metric_families(text)}
    assert {"flashpache_requests", "flashpached_hits", "flashpached_files",
            "flashpache_lookup_duration_seconds"} <= names


def test_section_of_mod_status(server):
    traffic(server)
    text = status_kit.fetch(server, status_kit.MOD_STATUS + "?auto")[2]
    found = dict(line.split(": ", 1) for line in text.splitlines() if line.startswith("Flashpache"))
    own = figures(server)
    assert len(found) == 25 + 3 + 4 + 4
    assert {name: int(value) for name, value in found.items()} == {name: own[name] for name in found}
    assert "<html" not in text
    text = status_kit.fetch(server, status_kit.MOD_STATUS)[2]
    assert f"<h2>Flashpache</h2>\n<dl>\n<dt>Requests by lease: {own['FlashpacheLease']}, look:" in text


def test_hostile_names(lab, root):
    server = start(lab, "d<b>&", root, vhosts=[([HOSTILE], "")])
    before = figures(server)
    get(server.port, "/file0.txt")
    text = page(server)
    name = f"{HOSTILE}:{server.port}"
    assert "&lt;b&gt;&amp;amp&quot;\\x.test:" in text
    assert "<b>" not in text
    assert any(("vhost", name) in labels for _, labels in status_kit.metrics(server))
    assert grown(server, before)[f"Miss[{name}]"] == 1
    server.daemon.kill()
    text = page(server)
    assert "d&lt;b&gt;&amp;-daemon" in text and "<b>" not in text
    server.stop()


def test_headers_and_methods(server):
    status, headers, text = status_kit.fetch(server, status_kit.PAGE + "?refresh=7")
    assert (status, headers["refresh"], headers["cache-control"]) == (200, "7", "no-store")
    assert headers["content-type"] == "text/html; charset=utf-8" and text.rstrip().endswith("</html>")
    for query, seconds in (("?refresh", "10"), ("?auto&refresh=x", "10"), ("?refresh=-1", "10"), ("", None)):
        assert status_kit.fetch(server, status_kit.PAGE + query)[1].get("refresh") == seconds
    assert status_kit.fetch(server, status_kit.PAGE + "?prometheus")[1]["content-type"] \
        == "text/plain; version=0.0.4; charset=utf-8"
    assert status_kit.fetch(server, status_kit.PAGE, "HEAD")[::2] == (200, "")
    assert status_kit.fetch(server, status_kit.PAGE, "POST")[0] == 405
    # Such words inside of other words do not count.
    assert "<html" in page(server, "?automatic&x=prometheus")


def test_engine_that_is_off(lab, root):
    server = start(lab, "off", root, vhosts=[(["localhost"], "FlashpacheEngine Off")], config="FlashpacheEngine Off\n")
    assert get(server.port, "/file0.txt")[0] == 200
    assert "FlashpacheEngine is off everywhere" in page(server)
    assert sum(v for k, v in figures(server).items() if k.startswith("Flashpache") and "ed" not in k) == 0
    server.stop()


@pytest.mark.parametrize("directive,advice", [
    ("FlashpacheEngine Sometimes", "give On, Off or Shadow"),
    ("FlashpacheServerTiming Perhaps", "give On or Off"),
    ("FlashpacheRewrite maybe", "give On or Off"),
    ("FlashpacheUnavailable 404", "give httpd (it looks itself, and waits) or 503"),
    ("FlashpacheLeases many", "give how many each child may keep, 0 to 1000000"),
    ("FlashpacheHtaccess -1", "give how many each child may keep, 0 to 1000000"),
    ("FlashpacheDaemon maybe", "give auto (httpd starts flashpached), external"),
])
def test_wrong_values(lab, root, module_path, directive, advice):
    server = lab.stock(f"wrong-{directive.split()[0]}", root, socket=root / "sock", module=module_path,
                       config=directive)
    done = server.check()
    assert done.returncode != 0
    assert f"{directive}: {advice}" in done.stderr


# Server-Timing

def timings(server, path, method="GET"):
    with Client(server.port) as client:
        client.conn.request(method, path)
        answer = client.conn.getresponse()
        answer.read()
        return sorted(", ".join(answer.headers.get_all("Server-Timing") or []).split(", "))


def test_server_timing(lab, root):
    server = start(lab, "timing", root, limits=ONE_CHILD, mpm="prefork", vhosts=[(["localhost"], TIMING)])
    for path in ("/file1.txt", "/none"):
        other, ours = timings(server, path)
        assert other == "app;dur=1" and re.fullmatch(r'flashpache;desc="miss";dur=\d+\.\d{3}', ours)
        wait_for(lambda: timings(server, path) == ["app;dur=1", 'flashpache;desc="lease"'], "an answer from memory")
    assert timings(server, "/excluded/file.txt") == ["app;dur=1", 'flashpache;desc="bypass excluded"']
    server.stop()


def test_server_timing_is_off(server):
    assert timings(server, "/file1.txt") == [""]


# The configuration that packages have

@pytest.mark.parametrize("kind", FRONT_CONTROLLERS)
def test_page_of_a_site_with_a_front_controller(lab, base, module_path, flashpached_program, kind):
    """The page has its address; all other addresses are the site's."""
    root = base / f"front-{kind}"
    access_file, of_host = FRONT_CONTROLLERS[kind]
    tree.put(root / "index.php", "the site\n")
    tree.put(root / ".htaccess", access_file)
    config = (f"FlashpacheDaemonProgram {flashpached_program}\n{(REPO / 'conf/flashpache.conf').read_text()}"
              f"<Directory {root}>\nAllowOverride All\n</Directory>\n")
    vhosts = [(["localhost"], of_host)]
    with lab.stock(f"front-{kind}", root, module=module_path, config=config, vhosts=vhosts) as server:
        assert get(server.port, "/2024/a-pretty-url/") == (200, b"the site\n")
        for query, begin in (("", "<!DOCTYPE html>"), ("?auto", "Flashpache"), ("?prometheus", "# ")):
            status, _, text = status_kit.fetch(server, f"/flashpache-status{query}", host="localhost")
            assert status == 200 and text.startswith(begin), text[:200]


@pytest.mark.parametrize("how", ("SetHandler flashpache-status", "AddHandler flashpache-status .txt",
                                 "RewriteEngine On\nRewriteRule . - [H=flashpache-status]", "<If true>\nSetHandler flashpache-status\n</If>"))
def test_no_access_file_makes_a_page(lab, base, how):
    """The page names the paths of all sites, and only the server's configuration says where it is."""
    root = base / f"tenants-{next(NUMBERS)}"
    tree.put(root / "a/.htaccess", f"{how}\n")
    tree.put(root / "a/page.txt", "page\n")
    server = lab.under_test(root.name, root, config=f"<Directory {root}>\nAllowOverride All\n</Directory>\n",
                            vhosts=[(["localhost"], ""), status_kit.VHOST])
    for query in ("", "?auto", "?prometheus"):
        status, text = get(server.port, f"/a/page.txt{query}")
        assert status == 403 and str(base).encode() not in text and b"lease" not in text, text
    assert "FP0126" in server.error_text()
    assert page(server)
    tree.put(root / "a/.htaccess", f"FlashpacheStatus On\n{how}\n")
    assert get(server.port, "/a/page.txt")[0] == 500
    lab.end()
