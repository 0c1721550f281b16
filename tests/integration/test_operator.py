# SPDX-License-Identifier: Apache-2.0
"""Reports to operators: statistics in all formats, slow lookups, status, check, explain."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import procs
import tree
import wire
from fetch import get
from httpd import USER
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

SLOW_US = 300_000             # of a call; a lookup has some
MAY_LOOK = "-sys_ptrace,-perfmon,-sys_admin"    # each lets root see what another user's process has loaded


@pytest.fixture(scope="module")
def root(base):
    root = base / "operated"
    for name in ("one.txt", "two.txt", "dir/three.txt"):
        tree.put(root / name, f"{name}\n")
    return root


@pytest.fixture(scope="module")
def server(lab, root):
    return lab.under_test("flash", root, config=f"<Directory {root}>\nAllowOverride All\n</Directory>")


def counters(ctl):
    return {name: int(value) for name, value in (line.split() for line in ctl("stats").splitlines())}


# statistics

def test_json(server, root, ctl):
    get(server.port, "/one.txt")
    told = json.loads(ctl("status", "--json"))
    assert set(told["stats"]) == set(counters(ctl))
    assert told["stats"]["files"] >= 1 and all(isinstance(v, int) for v in told["stats"].values())
    with open("/proc/self/mountinfo") as mounts:
        assert len(told["mounts"]) == len(list(mounts))
    assert all(isinstance(m["out_of_service"], bool) for m in told["mounts"])
    assert told["lookups"], "no walk was counted"
    for one in told["lookups"]:
        assert one["count"] == sum(bucket["count"] for bucket in one["buckets"]) > 0
        assert one["sum_us"] >= one["longest_us"] > 0
    # A walk that was counted as begun has been counted by its mount, unless it is under way.
    assert sum(one["count"] for one in told["lookups"]) <= counters(ctl)["walks"]


def test_latency(server, root, ctl):
    ctl("explain", root / "latency.txt")     # nobody has asked for it, so a worker walks
    lines = ctl("status").split("\n\n")[1].splitlines()
    assert lines[0].split()[0] == "walks" and len(lines) > 1


def test_invalidations_by_source(lab, base, flashpachectl):
    """Watched changes, purges, and changes found by a look."""
    place = base / "invalidated"
    tree.put(place / "f.txt", "x\n")
    for watch, source in (("inotify", "changes"), ("ttl", "found_changed")):
        with lab.daemon(f"by-{watch}", watch=watch, ttl_ms=1) as daemon:
            def ask(*args):
                finished = flashpachectl("-s", daemon.socket, *args)
                assert finished.returncode == 0, finished
                return finished.stdout

            def counted():
                return dict(line.split() for line in ask("stats").splitlines())
            ask("explain", place / "f.txt")
            assert counted()[source] == "0"
            tree.put(place / "beside", "y\n").rename(place / "f.txt")

            def told():
                ask("explain", place / "f.txt")
                return int(counted()[source]) > 0
            wait_for(told, f"a change told as {source}")
            ask("purge", place / "f.txt")
            assert counted()["invalidated_purge"] == "1"


# slow lookups

def test_slow_lookup_is_logged(lab, base, flashpachectl, slow_directory):
    source = base / "slow-source"
    tree.put(source / "with blank/f.txt", "x\n")
    place = slow_directory(source, SLOW_US)
    with lab.daemon("slow", mount_timeout_ms=20_000) as daemon:
        path = place / "with blank/f.txt"
        with wire.greet(daemon.socket) as one, wire.greet(daemon.socket) as other:
            one.sendall(wire.whole_lookup(path))
            other.sendall(wire.whole_lookup(path))
            wire.receive(one)
            wire.receive(other)
        line = next(line for line in daemon.log_text().splitlines() if "FP0046" in line and "f.txt" in line)
        found = re.search(r"slow lookup: (\d+) ms, (\d+) ms of them in one (open|stat|read), on the file system "
                          r"at (\S+); 2 waited for (\S+)", line)
        assert found, line
        total, longest, _, point, told = found.groups()
        assert 1000 <= int(total) and SLOW_US // 1000 <= int(longest) <= int(total)
        assert point == str(place) and told == str(path).replace(" ", "\\040")
        told = json.loads(flashpachectl("-s", daemon.socket, "status", "--json").stdout)
        slow = next(one for one in told["lookups"] if one["point"] == str(place))
        assert slow["longest_us"] >= SLOW_US


def test_lookup_that_was_given_up_is_logged(lab, base, flashpachectl, slow_directory):
    source = base / "hung-source"
    tree.put(source / "f.txt", "x\n")
    place = slow_directory(source, 10 * SLOW_US)
    with lab.daemon("hung", lookup_timeout_ms=1000, mount_timeout_ms=20_000) as daemon:
        flashpachectl("-s", daemon.socket, "explain", place / "f.txt")
        lines = wait_for(lambda: [line for line in daemon.log_text().splitlines() if "FP0046" in line],
                         "a slow lookup")
        line = lines[0]
        assert f"no answer from the file system at {place}; 1 waited for {place}" in line


def test_lookup_that_is_not_slow_is_not_logged(lab, base, flashpachectl, slow_directory):
    source = base / "quiet-source"
    tree.put(source / "f.txt", "x\n")
    place = slow_directory(source, 30_000)
    with lab.daemon("quiet") as daemon:
        assert flashpachectl("-s", daemon.socket, "explain", place / "f.txt").returncode == 0
        assert "FP0046" not in daemon.log_text()


def test_daemon_that_is_away_is_told(lab, root):
    server = lab.under_test("away", root)
    server.daemon.stop()
    assert get(server.port, "/one.txt")[0] == 200
    told = [line for line in server.error_log.read_text().splitlines() if "FP0101" in line]
    assert len(told) == 1 and str(server.daemon.socket) in told[0], told


# commands

def test_path_that_is_too_deep_behind_a_link(lab, base, flashpachectl):
    """It has no answer, and the worker that found out goes on."""
    below = "/".join("x" * 70)
    tree.put(base / "deep-target" / below / "f.txt", "x\n")
    (base / "deep-link").symlink_to("deep-target")
    with lab.daemon("deep", watch="inotify") as daemon:
        finished = flashpachectl("-s", daemon.socket, "explain", base / "deep-link" / below / "f.txt")
        assert finished.returncode == 1 and "no answer" in finished.stdout
        stats = flashpachectl("-s", daemon.socket, "stats").stdout
        assert "\ndeaths 0\n" in stats and "FP0020" not in daemon.log_text()


def test_explain(server, root, ctl):
    ctl("purge", "--all")
    out = ctl("explain", root / "dir/three.txt")
    assert "a worker had to look" in out and f"  {root}/dir/three.txt: file 0644 0:0 14 bytes" in out
    assert f"  {root}/dir/three.txt: unknown" in out
    again = ctl("explain", root / "dir/three.txt")
    assert "known to the daemon" in again and re.search(rf"  {root}/dir/three.txt: known, .*, may be leased", again)
    ctl("purge", root / "dir/three.txt")
    assert f"  {root}/dir/three.txt: unknown" in ctl("explain", root / "dir/three.txt")
    assert f"  {root}/none: no such file or directory" in ctl("explain", root / "none")


def test_status(server, ctl):
    out = ctl("status")
    assert f"process {server.daemon.pid} of user " in out
    for word in ("questions", "cache", "memory", "invalidated", "workers", "connections"):
        assert f"\n{word} " in out


def test_check(server, ctl, flashpachectl):
    get(server.port, "/one.txt")
    out = ctl("check")
    assert "mod_flashpache loaded" in out and "BAD" not in out and " 1 connections" not in out
    finished = flashpachectl("-c", server.daemon.config, "check")
    assert finished.returncode == 0 and "has no mistakes" in finished.stdout


def test_check_of_a_socket_and_a_configuration(server, base, flashpachectl):
    """As for httpd's own daemon, whose socket httpd names: that on the command line counts."""
    config = tree.put(base / "auto.conf", f'socket = "{base}/nobody.sock"\nttl_ms = 5000\n')
    assert flashpachectl("-c", config, "check").returncode == 3
    for options in (["-s", server.daemon.socket, "-c", config], ["-c", config, "-s", server.daemon.socket]):
        finished = flashpachectl(*options, "check")
        assert finished.returncode == 0 and f"configuration {config} has no mistakes" in finished.stdout, finished
        assert f"process {server.daemon.pid}" in finished.stdout


def test_check_finds_what_is_wrong(lab, flashpachectl, base):
    with lab.daemon("checked") as daemon:
        daemon.socket_dir.chmod(0o777)
        finished = flashpachectl("-s", daemon.socket, "check")
        assert finished.returncode in (1, 3) and "BAD   the socket's directory" in finished.stdout
        daemon.socket_dir.chmod(0o710)
    finished = flashpachectl("-s", base / "nobody.sock", "check")
    assert finished.returncode == 3 and "BAD   the socket " in finished.stdout


@pytest.mark.parametrize("around,why", (
    (["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"], "no process here of user"),
    (["setpriv", "--bounding-set", MAY_LOOK, "--inh-caps", MAY_LOOK], "cannot see whether httpd has loaded")),
    ids=("pid namespace", "no CAP_SYS_PTRACE"))
def test_check_in_a_container(server, flashpachectl, around, why):
    """The children of a connected httpd do not show, or not what they have loaded: nothing is wrong."""
    if subprocess.run([*around, "true"], capture_output=True).returncode:
        pytest.skip(f"needs {around[0]} with the rights of root")
    get(server.port, "/one.txt")
    finished = subprocess.run([*around, flashpachectl("--version").args[0], "-s", server.daemon.socket, "check"],
                              capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0 and "BAD" not in finished.stdout, finished.stdout
    assert f"note  {why}" in finished.stdout and re.search(r"^ok    \d+ connections?", finished.stdout, re.M)


def test_check_beside_other_httpds(lab, root, flashpachectl, module_path, flashpached_program):
    """Those of another user, with daemons of their own, have no part in this one until this one refuses them."""
    def said():
        return flashpachectl("-s", server.daemon.socket, "check")

    def other(name, around=()):
        config = f"FlashpacheDaemonProgram {flashpached_program}\nUser nobody\n"
        return lab.stock(name, root, module=module_path, config=config, around=around)
    around = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    server = lab.under_test("one-of-three", root)
    get(server.port, "/one.txt")
    with other("in-container", around):
        # A run beside this one may have an httpd of another user for a while.
        wait_for(lambda: "of other users" not in said().stdout, "the container's processes to be left out")
        assert "mod_flashpache loaded" in said().stdout
    with other("two-of-three"):
        assert said().returncode == 0, said().stdout
        assert re.search(r"^note  \d+ processes of other users have it loaded", said().stdout, re.M)
        flashpachectl("-s", server.daemon.socket, "stats", user="nobody", group=USER, extra_groups=[])
        assert said().returncode == 1, said().stdout
        assert re.search(r"^BAD   \d+ processes of other users have it loaded", said().stdout, re.M)


def test_check_tells_of_a_daemon_that_has_to_wait(lab, flashpachectl):
    """Without the right to a nice value of -10: the cost and the way out."""
    with lab.daemon("prompt") as daemon:
        assert "ok    the daemon runs as soon" in flashpachectl("-s", daemon.socket, "check").stdout
        assert "FP0072" not in daemon.log_text()
        autogroup = Path(f"/proc/{daemon.pid}/autogroup")
        if autogroup.exists() and autogroup.read_text():        # the kernel shares the processors among sessions
            assert autogroup.read_text().endswith(" nice -10\n")
            workers = [pid for pid, name in procs.descendants(daemon.pid).items() if name == "fp-worker"]
            assert workers and all(os.getsid(pid) != os.getsid(daemon.pid) for pid in workers)
    daemon = lab.daemon("waits")
    daemon.around = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"]
    with daemon:
        out = flashpachectl("-s", daemon.socket, "check").stdout
        assert "note  the daemon waits for its turn (FP0072)" in out and "Nice=-10" in out
        assert "prompt off" in flashpachectl("-s", daemon.socket, "status").stdout
        assert "FP0072" in daemon.log_text()


def test_help_on_one_command(flashpachectl, base):
    whole = flashpachectl("--help").stdout
    for name in re.findall(r"^  ([a-z][a-z-]*)(?= |$)", whole, re.M):
        one = flashpachectl("-s", base / "nobody.sock", name, "--help")
        assert one.returncode == 0 and one.stderr == ""
        assert one.stdout.startswith("Usage: flashpachectl ") and one.stdout.split("\n\n")[1] in whole
        assert {line.split()[0] for line in one.stdout.splitlines() if re.match("  [a-z]", line)} == {name}
        assert flashpachectl(name, "-h").stdout == one.stdout


@pytest.mark.parametrize("command", (
    ["stats", "--xml"], ["stats", "--latency"], ["status", "more"], ["check", "more"], ["explain"],
    ["explain", "/a", "/b"], ["explain", "--links", "/a"]), ids=" ".join)
def test_wrong_usage(flashpachectl, base, command):
    finished = flashpachectl("-s", base / "nobody.sock", *command)
    assert finished.returncode == 2 and finished.stdout == "" and finished.stderr


@pytest.mark.parametrize("command", (["stats", "--json"], ["status"], ["explain", "/a"]), ids=" ".join)
def test_without_a_daemon(flashpachectl, base, command):
    finished = flashpachectl("-s", base / "nobody.sock", *command)
    assert finished.returncode == 3 and str(base / "nobody.sock") in finished.stderr
