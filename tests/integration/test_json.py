# SPDX-License-Identifier: Apache-2.0
"""Every report of flashpachectl as JSON: one document with the same facts as the text."""

import json
import os
import re
import subprocess

import pytest

import tree
import wire
from confinement import has_filters
from conftest import REPO
from fetch import get
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

SLOW_US = 60_000
ODD = 'a "b"\\c\té'         # JSON, the shell and reports each escape these in their own way


@pytest.fixture(scope="module")
def root(base):
    root = base / "json"
    tree.put(root / ODD / "f.txt", "x\n")
    tree.put(root / "dir/index.html", "index\n")
    tree.put(root / "dir/.htaccess", "Require all granted\n")
    (root / "link").symlink_to("dir/index.html")
    return root


@pytest.fixture(scope="module")
def server(lab, root):
    return lab.under_test("flash", root, config=f"<Directory {root}>\nAllowOverride All\n</Directory>",
                          daemon_settings={"negative_ttl_ms": 700})


@pytest.fixture
def document(ctl):
    """document(*args): the report's JSON, the same whether the option stands in front or behind."""
    def read(*args, code=0):
        text = ctl(*args, "--json", code=code)
        assert text.count("\n") == 1 and text.endswith("\n") and text.isascii()
        made = json.loads(text)
        assert json.loads(ctl("-j", *args, code=code)).keys() == made.keys()
        return made
    return read


def escaped(path):
    """The text as reports escape it."""
    return "".join(chr(c) if 0x20 < c < 0x7f and c != 0x5c else f"\\{c:03o}" for c in os.fsencode(path))


def words(text):
    return [line.split() for line in text.splitlines()]


def test_status(server, document, ctl):
    get(server.port, "/dir/")
    found, text = document("status"), ctl("status")
    about = found["daemon"]
    assert f"flashpached  {about['version']}, process {server.daemon.pid} of user {about['uid']}," in text
    assert about["pid"] == server.daemon.pid and about["config"] == str(server.daemon.config)
    assert about["prompt"] is True and about["seccomp"] is has_filters() and about["supervised"] is False
    assert f"log_level {about['log_level']}, seccomp {'on' if has_filters() else 'off'}, prompt on" in text
    assert set(found["stats"]) == {name for name, _ in words(ctl("stats"))}
    assert f" of {about['workers_wanted']}, " in text and f" of {about['max_connections']}; " in text
    assert set(found) == {"daemon", "stats", "mounts", "lookups"}


def test_stats(document, ctl):
    found, text = document("stats"), dict(words(ctl("stats")))
    assert set(found) == {"stats"}
    still = ("workers", "content_files", "long_pieces", "fleet_member", "watches_refused", "noisy")
    assert {name: found["stats"][name] for name in still} == {name: int(text[name]) for name in still}


def test_mounts(document, ctl):
    found = document("mounts")["mounts"]
    assert [[m["point"], m["type"], m["watch"], f"ttl_ms={m['ttl_ms']}", f"negative_ttl_ms={m['negative_ttl_ms']}",
             f"stale_if_error_ms={m['stale_if_error_ms']}", f"calls_per_minute={m['calls_per_minute']}",
             *["out-of-service"] * m["out_of_service"]]
            for m in found] == words(ctl("mounts"))
    assert {m["negative_ttl_ms"] for m in found} == {0, 700}  # 0: of the kernel's own file systems


def test_check(server, document, ctl, flashpachectl, base):
    get(server.port, "/dir/")
    found, text = document("check"), ctl("check")
    # The numbers of processes and connections change.
    said = [re.sub(r"\d+ (process(es)?|connections?)", r"N", f"{one['verdict']:5} {one['text']}")
            for one in found["checks"]]
    assert said == re.sub(r"\d+ (process(es)?|connections?)", r"N", text).splitlines()
    assert found["bad"] == 0 and found["answered"] is True
    gone = flashpachectl("-s", base / "nobody.sock", "check", "--json")
    made = json.loads(gone.stdout)
    assert gone.returncode == 3 and gone.stderr and made["answered"] is False
    assert made["bad"] == len([one for one in made["checks"] if one["verdict"] == "BAD"]) == 1


def test_explain(root, document, ctl):
    for path in (root / ODD / "f.txt", root / "link", root / "dir/none", root / "dir/.htaccess"):
        ctl("explain", path)
        found, text = document("explain", path), ctl("explain", path)
        assert found["path"] == escaped(path) and f": {found['source']}; " in text
        answer, before = text.split("\nwhat flashpached knew of it before:\n")
        lines = answer.splitlines()[1:]
        assert len(lines) == len(found["steps"]) > 3
        for step, line in zip(found["steps"], lines):
            if step["status"] != "success":
                assert line.endswith(f": {step['status']}")
                continue
            assert f": {step['type']} {step['mode']} {step['uid']}:{step['gid']}" in line
            assert step["leased"] is line.endswith("; leased")
            for access in step.get("access_files", ()):
                told = f"{access['size']} bytes" if "size" in access else access["status"]
                assert f"; {access['name']}: {told}" in line
        told = re.findall(r"^  /.*?: (known|unknown|expired|changed|detached)\b", before, re.M)
        assert [one["state"] for one in found["components"]] == told
        assert all(isinstance(one["left_ms"], int) and one["watch"] and one["point"] for one in found["components"])
    linked = document("explain", root / "link")["steps"][-1]
    assert linked["type"] == "link" and (linked["target"]["type"], linked["target"]["size"]) == ("file", 6)
    failed = document("explain", "/" + "/".join("x" * 70), code=1)
    assert failed["status"] == "path has too many components" and "steps" not in failed


def test_without_a_daemon_there_is_no_half_of_a_document(flashpachectl, base):
    for command in (["status"], ["stats"], ["mounts"], ["explain", "/a"]):
        finished = flashpachectl("-s", base / "nobody.sock", "--json", *command)
        assert (finished.returncode, finished.stdout) == (3, "") and "nobody.sock" in finished.stderr


def test_what_is_no_report(flashpachectl, base):
    for command in (["purge", "--all"], ["warm", "-"]):
        finished = flashpachectl("-s", base / "nobody.sock", *command, "--json")
        assert finished.returncode == 2 and f"{command[0]} does not take --json" in finished.stderr


def test_fields_are_documented(server, root, document):
    """Each name stands in the guide; counters have a table of their own."""
    guide = (REPO / "docs/flashpachectl.md").read_text()
    counters = set(document("stats")["stats"])
    found = set()

    def collect(value):
        if isinstance(value, dict):
            found.update(value)
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(one)
    for args in (["status"], ["check"], ["stats"], ["mounts"], ["explain", root / "link"]):
        collect(document(*args))
    assert {name for name in found - counters if f"`{name}`" not in guide} == set()
    patterns = [re.sub(r"\.\.\.", "[a-z_]+", name) for name in re.findall(r"`([a-z_.]+)`", guide)]
    assert {name for name in counters if not any(re.fullmatch(one, name) for one in patterns)} == set()


def test_mount_that_is_out_of_service(lab, base, flashpachectl, slow_directory):
    source = base / "dead-source"
    tree.put(source / "f.txt", "x\n")
    place = slow_directory(source, 100 * SLOW_US)
    with lab.daemon("dead", lookup_timeout_ms=100, mount_timeout_ms=100) as daemon:
        command = [flashpachectl("--version").args[0], "-s", str(daemon.socket)]

        def out():
            subprocess.run([*command, "explain", str(place / "f.txt")], capture_output=True, check=False, timeout=30)
            return daemon.counters()["out_of_service"]
        wait_for(out, "the mount to be out of service")
        assert re.search(rf"^OUT OF SERVICE: the .* at {place} ", flashpachectl("-s", daemon.socket, "status").stdout, re.M)
        assert re.search(rf"^{place} .* out-of-service$", flashpachectl("-s", daemon.socket, "mounts").stdout, re.M)
        checks = json.loads(flashpachectl("-s", daemon.socket, "check", "--json").stdout)["checks"]
        assert [one["verdict"] for one in checks if "1 file systems do not answer" in one["text"]] == ["BAD"]
        mounts = json.loads(flashpachectl("-s", daemon.socket, "mounts", "--json").stdout)["mounts"]
        assert [m["out_of_service"] for m in mounts if m["point"] == str(place)] == [True]
