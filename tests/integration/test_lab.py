# SPDX-License-Identifier: Apache-2.0
"""The lab's own parts: its arithmetic, its plan, its results, its rigs. Hardly any load."""

import json
import os
import random
import re
import shutil
import subprocess
import sys

import pytest

import slowfs
import tree
from conftest import BUILD, REPO
from forms import full
from waiting import wait_for

sys.path.insert(0, str(REPO / "tests/lab"))

from lab import machine, measure, metrics, papers, plan, samples, servers, site, verdict  # noqa: E402
from lab.load import Content  # noqa: E402
from lab.rigs import RIGS  # noqa: E402
from lab.rigs.metadata import Holes  # noqa: E402
from lab.store import Store  # noqa: E402

pytestmark = pytest.mark.needs_flashpache


# Arithmetic

def test_inversion_is_the_papers_example():
    # Sizes A < B < C < D < E, observed in the order B, C, A, D, E.
    assert metrics.inversion([1, 2, 3, 4, 5], [3, 1, 2, 4, 5]) == pytest.approx(4 / 12)


def test_inversion_of_order_and_reverse():
    sizes = list(range(50))
    assert metrics.inversion(sizes, sizes) == 0
    assert metrics.inversion(sizes, sizes[::-1]) == 1


def test_inversion_of_equal_sizes_goes_by_the_nth_place():
    assert metrics.inversion([7] * 10, random.Random(1).sample(range(10), 10)) == 0
    # The small one comes last: both large ones are one place early, it is two places late.
    assert metrics.inversion([5, 1, 5], [1, 3, 2]) == pytest.approx(4 / 4)
    # Equal latencies are in no order that a size could spoil.
    assert metrics.inversion([3, 1, 2], [4, 4, 4]) == 0


def test_inversion_of_a_random_order():
    rng = random.Random(2)
    found = metrics.inversion(range(4000), [rng.random() for _ in range(4000)])
    assert found == pytest.approx(2 / 3, abs=0.02)


def test_percentiles_are_values_that_occurred():
    found = metrics.latency_summary(list(range(1, 1001)))
    assert (found["p50"], found["p90"], found["p99"], found["p99.9"], found["max"]) == (500, 900, 990, 999, 1000)
    assert found["mean"] == pytest.approx(500.5)
    assert metrics.percentile([4], 5) == metrics.percentile([4], 99.9) == 4


def test_cdf_ends_at_the_slowest():
    points = metrics.cdf([3, 1, 2, 4])
    assert points[-1] == (4, 1.0)
    assert [share for _, share in points] == sorted(share for _, share in points)


def test_deciles_without_inversion():
    sizes = [300] * 25 + [2_000] * 25 + [5_500] * 25 + [50_000] * 25
    rows = metrics.deciles(sizes, list(range(100)))
    assert rows[0] == [1, 0, 0, 0] and rows[9] == [0, 0, 0, 1]
    assert rows[2] == [0.5, 0.5, 0, 0]


def test_series_are_those_of_table_3():
    sizes = (102, 512, 614, 4096, 5120, 6144, 7168, 921_600)
    assert [metrics.series_of(size) for size in sizes] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_range_of_a_ratio_is_the_widest():
    assert metrics.ratio([8, 10, 12], [1, 2, 4]) == (5, 2, 12)


def test_factors_are_the_papers():
    found = papers.factors()
    assert found["mean"] == pytest.approx(15, abs=0.1)
    assert found["p90"] == pytest.approx(72.8, abs=0.1)
    assert found["capacity"] == pytest.approx(1.13, abs=0.01)


# Facts read from the system

def test_what_a_stack_waits_for():
    stack = "[<0>] d_alloc_parallel+0x3c4/0x4c0\n[<0>] path_openat+0x6b0/0x12c0\n"
    assert samples.wait_of(stack) == samples.WAITS["d_alloc_parallel"]
    assert samples.wait_of("[<0>] inet_csk_accept+0x1/0x2\n") is None


@pytest.mark.parametrize("line, call, took", [
    ('[pid 12] openat(AT_FDCWD, "x", O_RDONLY) = 3 <0.002>', "openat", "0.002"),
    ('[pid  9] <... read resumed>"abc", 5) = 5 <0.100>', "read", "0.100"),
    ('writev(3, [{"1(2"}]) = 3 <0.1>', "writev", "0.1")])
def test_lines_of_strace(line, call, took):
    assert samples.SLOW_CALL.search(line).groups() == (call, took)


def test_own_processor_time_is_seen():
    before = samples.cpu_seconds([os.getpid()])
    sum(range(3_000_000))
    assert samples.cpu_seconds([os.getpid()]) > before
    assert samples.memory_bytes([os.getpid()]) > 0


# Plan and results

def test_plan_names_what_exists():
    names = [one.name for one in plan.quick()]
    assert len(names) == len(set(names))
    for one in plan.quick():
        assert one.rig in RIGS
        assert set(one.servers) <= set(servers.kinds())
        assert all(step.call in measure.STEPS for step in one.steps)
        assert not any(step.options.get("rate") for step in one.steps) or one.reference in one.servers


def test_plan_measures_what_is_named():
    def of(*arguments):
        return {one.name: one.servers for one in plan.chosen(plan.quick(), *arguments)}
    assert "architectures" not in of() and "disk" in of()
    assert of(["architectures"])["architectures"] == plan.ARCHITECTURES
    assert of(None, ["arch-new-flash"]) == {"architectures": ["arch-new-flash"]}
    assert of(["disk"], ["arch-amped", "nginx-1"]) == {"disk": ["arch-amped", "nginx-1"]}


def test_store_keeps_rounds_and_failures(tmp_path):
    store = Store(tmp_path / "results")
    for number in range(12):
        store.put(("memory", "nginx-1", "latency@0.95", number), {"value": number})
    store.put(("memory", "nginx-1", "latency@0.95", 12), {"failure": "why"})
    assert [each["value"] for each in store.rounds("memory", "nginx-1", "latency@0.95")] == list(range(12))
    assert store.has("memory", "nginx-1", "latency@0.95", 11) and not store.has("memory", "nginx-1", "latency@0.95", 13)
    assert list(store.failures()) == [("memory", "nginx-1", "latency@0.95", "why")]


def latency_result(middle):
    latencies = [middle * (1 + i / 100) for i in range(200)]
    sizes = [100 * (i + 1) for i in range(200)]
    return {"rate": 10.0, "share": 0.95, "failed": 0, "ms": metrics.latency_summary(latencies),
            "cdf": metrics.cdf(latencies), "inversion": 0.5, "deciles": metrics.deciles(sizes, latencies)}


@pytest.mark.full
def test_report_needs_nothing_else(tmp_path):
    pytest.importorskip("matplotlib", reason="needs python3-matplotlib")
    from lab import report
    store = Store(tmp_path)
    store.facts("machine", machine.describe())
    store.facts("rigs", {"disk": {"about": "a <disk>", "impossible": None, "bytes": 1 << 20, "premises": [
        {"what": "a premise", "holds": False, "detail": "why"}]}})
    for key, middle in (("stock-prefork-None", 30), ("flash-prefork-None", 2)):
        for number in range(3):
            store.put(("disk", key, "capacity", number), {"requests_per_s": 100 + number, "errors": 0})
            for load in (0.6, 0.95):
                store.put(("disk", key, f"latency@{load}", number), latency_result(middle + number))
    text = report.write(store).read_text()
    assert "does not hold" in text and "a &lt;disk&gt;" in text
    assert not re.search(r'(src|href)="(?!#)', text.replace('xlink:href="#', ""))
    ids = re.findall(r'\bid="?([^" >]+)', text)
    assert len(ids) == len(set(ids))
    assert "10.3" in text                      # 31 / 3: the factor of the medians' p50
    assert (tmp_path / "results.csv").read_text().count("\n") > 50


# An operator's own site

@pytest.mark.parametrize("theirs, ours, word", [
    ([10, 11, 9], [10, 10.5, 9.5], "no difference beyond the noise"), ([103, 104], [100, 101], "little"),
    ([50, 52], [10, 11], "better"), ([10, 11], [50, 52], "WORSE")])
def test_verdict_says_no_more_than_the_numbers(theirs, ours, word):
    assert verdict.judge(metrics.ratio(theirs, ours)) == word


def test_copy_of_a_configuration_keeps_away_from_its_server(tmp_path):
    (tmp_path / "envvars").write_text("export LOGS=/var/log/httpd$SUFFIX\n")
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites/one.conf").write_text(
        "<VirtualHost *:80>\nDocumentRoot /srv/one\nCustomLog ${LOGS}/one.log \\\n combined\n</VirtualHost>\n"
        "<VirtualHost *:443>\nSSLEngine on\nSSLCertificateFile /etc/key.pem\nDocumentRoot /srv/tls\n"
        "ProxyPass /app http://app.internal:3000/\n<FilesMatch php$>\nSetHandler \"proxy:unix:/run/php.sock\"\n"
        "</FilesMatch>\nRewriteRule ^/old http://app.internal/ [P,L]\n</VirtualHost>\n"
        "<Proxy balancer://x>\nBalancerMember http://app.internal\n</Proxy>\n")
    main = tmp_path / "httpd.conf"
    main.write_text(f"ServerRoot {tmp_path}\nListen 80\nPidFile /run/httpd.pid\nErrorLog ${{LOGS}}/error.log\n"
                    "LoadModule proxy_http_module x.so\nLoadModule ssl_module x.so\n"
                    "Alias /logs ${LOGS}\nIncludeOptional sites/*.conf\n")
    config = site.SiteConfig(main)
    text = config.text(tmp_path / "private", "127.0.0.1", 8123)
    assert (str(config.docroot()), config.tls_hosts) == ("/srv/tls", 1)
    assert text.index("/srv/tls") < text.index("/srv/one")
    assert "Alias /logs /var/log/httpd\n" in text and text.count("<VirtualHost 127.0.0.1:8123>") == 2
    assert not any(word in text for word in ("/run/httpd.pid", "one.log", "error.log combined", "Listen 80\n", "SSL",
                                             "LoadModule", "balancer"))
    assert text.count("Listen") == 1
    # The stub answers in their place.
    assert all(line in text for line in ("ProxyPass /app http", "SetHandler \"proxy:unix:", "RewriteRule ^/old http"))


@pytest.mark.parametrize("program", ("scripts/compare", "tests/lab/run"))
def test_help_needs_no_matplotlib(program, tmp_path):
    tree.put(tmp_path / "matplotlib.py", "raise ImportError('hidden')\n")
    done = subprocess.run([REPO / program, "--help"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0 and "usage:" in done.stdout and done.stderr == "", done


def test_urls_of_a_tree_are_quoted_and_leave_out_what_is_hidden(tmp_path):
    for name in ("a b.txt", ".hidden", "d/c%.html", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert sorted(each.path for each in site.from_tree(tmp_path).requests) == ["/a%20b.txt", "/d/c%25.html"]


# Servers and rigs

@pytest.mark.parametrize("key", sorted(servers.kinds()))
def test_configurations_are_valid(key, tmp_path, base):
    place = servers.Place(base / f"lab-{key}", tmp_path, connections=8)
    place.directory.mkdir()
    if key.startswith("flash") and not servers.MODULE.exists():
        pytest.skip(f"Flashpache is not built in {BUILD}")
    server = servers.make(key, place)
    if key.startswith(("stock", "flash")):
        done = server.httpd.check()
        assert done.returncode == 0, done.stderr
        return
    server.port = 1
    path = server.dir / "server.conf"
    path.write_text(server.configuration())
    command = [str(part) for part in server.command(path) if part != "-D"]
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}")
    done = subprocess.run([*command, "-t"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_rigs_are_listed():
    done = subprocess.run([REPO / "tests/lab/rig", "list"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    assert [line.split()[0] for line in done.stdout.splitlines() if not line.startswith(" ")] == list(RIGS)


@pytest.mark.parametrize("name", RIGS)
def test_each_rig_can_be_asked_for_by_name(name, tmp_path):
    """The program makes it with a set of its kind."""
    done = subprocess.run([REPO / "tests/lab/rig", name, "check", "--directory", tmp_path], capture_output=True, text=True,
                          timeout=60)
    assert (done.returncode, done.stderr) == (2, f"rig: rig {name} is not up: tests/lab/rig {name} up\n")


@pytest.mark.parametrize("name", ("memory", "slowfs", full("network"), full("rclone"), full("davfs"), full("gluster")))
def test_rig_is_set_up_and_removed(name, base):
    rig = RIGS[name](base / f"rig-{name}", Content(1), 8)
    if rig.missing():
        pytest.skip("; ".join(rig.missing()))
    with rig:
        wait_for(lambda: all(premise.holds for premise in rig.check()), rig.check())
        pids = rig.state()["pids"]
        assert (rig.docroot() / rig.content.small_file()[1:]).stat().st_size == 1024
    assert not rig.directory.exists()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_files_of_the_metadata_rig_have_sizes_and_no_blocks(tmp_path):
    content = Holes(2)
    content.make(tmp_path)
    found = {f"/{path.relative_to(tmp_path)}": path.stat() for path in tmp_path.rglob("class*")}
    assert len(found) == content.files() == 72 and sum(each.st_size for each in found.values()) == content.bytes()
    assert not any(each.st_blocks for each in found.values())
    assert set(content.urls(1000, 1)) <= set(found)


@pytest.mark.full
def test_metadata_rig_reads_its_disk_for_names(base):
    """Its memory is less than the inodes need, so a stat sleeps; the link and the mount go with it."""
    rig = RIGS["metadata"](base / "rig-metadata", Holes(400), 8, memory=8 << 20)
    if rig.missing():
        pytest.skip("; ".join(rig.missing()))
    with rig:
        assert all(premise.holds for premise in rig.check()), rig.check()
        place = rig.place(base / "rig-metadata-servers")
        assert not place.answers(1)
    assert not os.path.ismount(rig.files) and not rig.directory.exists()


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
@pytest.mark.parametrize("key", ("flash-event-All", *(full(key) for key in servers.arch_kinds())))
def test_one_server_is_measured(base, key):
    if not (BUILD / "tests/lab/flashpache-bench").exists() or not servers.MODULE.exists():
        pytest.fail(f"not built in {BUILD}: run make")
    directory = base / f"lab-measured-{key}"
    rig = RIGS["memory"](directory / "rig", Content(1), 8)
    if rig.missing():
        pytest.skip("; ".join(rig.missing()))
    directory.mkdir()
    with rig:
        place = rig.place(directory / "servers")
        place.directory.mkdir()
        server = servers.make(key, place)
        try:
            server.start()
            session = measure.Session(rig, server, place, 1)
            found = measure.capacity(session, 0.5)
            assert found["requests_per_s"] > 0 and found["cpu_us"] > 0 and found["errors"] == 0
            found = measure.latency(session, 0.5, rate=200.0)
            assert found["answered"] > 0 and found["failed"] == 0
            assert 0 <= found["inversion"] <= 1 and len(found["deciles"]) == 10
        finally:
            server.stop()


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
@pytest.mark.skipif(os.getuid() != 0, reason="needs root: the lab mounts, and its servers run as www-data")
@pytest.mark.parametrize("cells", ("event/None/*front controller*", full("event/None/*"), full("prefork/All/*")))
def test_kinds_of_requests_are_measured(cells, tmp_path):
    """Each row has stock's responses, and a known path asks nobody."""
    rows = tmp_path / "rows.json"
    done = subprocess.run(["/usr/bin/python3", REPO / "tests/lab/request_kinds.py", "--quick", "--only", cells, "--json", rows],
                          capture_output=True, text=True, timeout=500, env={**os.environ, "FLASHPACHE_BUILD": str(BUILD)})
    assert done.returncode == 0, done
    found = json.loads(rows.read_text())
    assert len(found) >= 2 and len(done.stdout.splitlines()) == 1 + len(found), done.stdout
    for row in found:
        assert row["cpu_us"]["min"] > 0 and row["notes"]["lease"] > 0.9 * sum(row["notes"].values()), row


@pytest.mark.not_sanitized("the lab starts httpd without the sanitizer's runtime")
@pytest.mark.parametrize("cells", ("slowfs/event/wordpress/pretty", full("memory/event/*/*"), full("*/prefork/*/pretty")))
def test_rules_of_sites_are_measured(cells, tmp_path):
    """Each row has stock's responses, and neither server fails a request."""
    slowfs.needed()
    rows = tmp_path / "rows.json"
    done = subprocess.run(["/usr/bin/python3", REPO / "tests/lab/site_rules.py", "--quick", "--only", cells, "--json", rows],
                          capture_output=True, text=True, timeout=500, env={**os.environ, "FLASHPACHE_BUILD": str(BUILD)})
    assert done.returncode == 0, done
    found = json.loads(rows.read_text())
    assert found and [line.split()[0] for line in done.stdout.splitlines()[1:]] == [row["cell"] for row in found], done.stdout
    for row in found:
        assert row["errors"] == 0 and row["rate"]["min"] > 0 and row["cpu_us"]["min"] > 0, row
        assert all(figure["min"] > 0 for figure in row["p99"].values() if figure), row
