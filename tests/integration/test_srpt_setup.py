# SPDX-License-Identifier: Apache-2.0
"""scripts/srpt-setup on the loopback device of a network namespace of its own."""

import shutil
import subprocess

import pytest

from conftest import REPO

SCRIPT = REPO / "scripts/srpt-setup"
STATE = "tc qdisc show dev lo; tc class show dev lo; nft list ruleset"


def inside(script):
    """Output of a shell script in a new namespace; $S is srpt-setup, in whatever path."""
    done = subprocess.run(["unshare", "--net", "bash", "-c", f'setup() {{ "$SCRIPT" "$@"; }}; S=setup; {script}'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SCRIPT": str(SCRIPT)})
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def possible():
    missing = [tool for tool in ("tc", "nft", "unshare") if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    found = inside("$S add lo 10mbit")
    if "this kernel can make no" in found or "nft cannot" in found:
        pytest.skip(found)


def test_removes_exactly_what_it_added():
    found = inside(f"nft add table inet mine; {STATE}; echo --; $S add lo 10mbit --synacks 100 > /dev/null;"
                   f" {STATE}; echo --; $S remove lo > /dev/null; {STATE}")
    before, between, after = found.split("--\n")
    assert between.count("class htb f1a5:") == 8 and "limit rate over 100/second" in between
    assert before == after
    assert "table inet mine" in after


def test_twice_is_once():
    """The kernel chooses the handles of the inner queues."""
    once, twice = (inside("for i in $N; do $S add lo 20mbit > /dev/null; done; "
                          "tc class show dev lo | sed 's/leaf [0-9a-f]*://'; nft list ruleset"
                          .replace("$N", n)) for n in ("1", "1 2"))
    assert once == twice
    assert "ceil 20Mbit" in once


@pytest.mark.parametrize("rate,pieces", [("500kbit", 1), ("10mbit", 1), ("95mbit", 7), ("10gbit", 40000)])
def test_no_piece_takes_longer_than_a_millisecond(rate, pieces):
    found = inside("see() { ip -d link show lo | grep -o 'gso_max_segs [0-9]*'; }; ip link set lo gso_max_segs 40000; "
                   f"$S add lo 20mbit > /dev/null; $S add lo {rate} > /dev/null; see; $S remove lo > /dev/null; see")
    assert found.split() == ["gso_max_segs", str(pieces), "gso_max_segs", "40000"]


def test_dry_run_changes_nothing():
    found = inside(f"$S add lo 10mbit --dry-run > /dev/null; {STATE}")
    assert "f1a5" not in found and "table" not in found
    assert "tc qdisc add dev lo root handle f1a5:" in inside("$S add lo 10mbit --dry-run")


def test_a_discipline_that_somebody_chose_stays():
    found = inside("tc qdisc add dev lo root handle 5: pfifo; $S add lo 10mbit; $S remove lo; tc qdisc show dev lo")
    assert "somebody chose" in found
    assert found.rstrip().splitlines()[-1].startswith("qdisc pfifo 5: root")


@pytest.mark.parametrize("arguments,complaint", [
    ("add lo", "give it as 9500kbit or 95mbit"),
    ("add lo 10", "give it as 9500kbit or 95mbit"),
    ("add absent0 1mbit", "no such network device"),
    ("add lo 1mbit --ports http", "give numbers, by commas"),
    ("add lo 1mbit --synacks 0", "give a number of packets"),
    ("add lo 1mbit --fast", "unknown"),
])
def test_mistakes_are_told(arguments, complaint):
    assert complaint in inside(f"$S {arguments}")


# Fails at the call of that number which changes something of ours; passes the others on.
FAKE = """#!/bin/sh
case "$*" in *{pattern}*)
    echo >>"$COUNT"
    if [ "$(wc -l <"$COUNT")" -eq {number} ]; then echo "{tool}: no" >&2; exit 2; fi ;;
esac
PATH=/usr/sbin:/usr/bin:/sbin:/bin exec {tool} "$@"
"""
# The first nft -f tries it elsewhere.
STEPS = ([("tc", "f1a", number) for number in (1, 2, 3, 9, 16)] + [("nft", "-f", 2), ("ip", "link set", 1)])


@pytest.mark.parametrize("tool,pattern,number", STEPS, ids=(f"{tool}-{number}" for tool, _, number in STEPS))
def test_what_fails_is_undone(tmp_path, tool, pattern, number):
    fake = tmp_path / tool
    fake.write_text(FAKE.format(tool=tool, pattern=pattern.replace(" ", r"\ "), number=number))
    fake.chmod(0o755)
    before, found, after = inside(f"{STATE}; echo --; export COUNT={tmp_path}/count; PATH={tmp_path}:$PATH; ip link set lo gso_max_segs 40000;"
                                  f" : > $COUNT; $S add lo 10mbit; echo status $?; PATH=${{PATH#*:}}; echo --; {STATE}").split("--\n")
    assert f"{tool}: no" in found, "that many calls were not made"
    assert "not set up, and what was done is undone" in found and "status 1" in found
    assert before == after


def test_what_cannot_be_undone_is_told(tmp_path):
    fake = tmp_path / "tc"
    fake.write_text(FAKE.format(tool="tc", pattern="f1a", number='"$(wc -l <"$COUNT")" -a "$(wc -l <"$COUNT")" -gt 2'))
    fake.chmod(0o755)
    found = inside(f"export COUNT={tmp_path}/count; PATH={tmp_path}:$PATH; $S add lo 10mbit; echo status $?")
    assert "could not be undone: srpt-setup remove lo" in found and "status 1" in found
