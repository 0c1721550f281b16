# SPDX-License-Identifier: Apache-2.0
"""Hosts with different AccessFileNames, which share directories: each obeys its own files, and none makes the
daemon look for another's again."""

import os

import pytest

import tree
from fetch import Client
from httpd import HITS
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

HOSTS = {"one.test": ".htaccess", "two.test": ".second", "both.test": ".second .htaccess",
         "turned.test": ".htaccess .second", "default.test": ".htaccess"}
MORE = {"third.test": ".third .fourth", "fifth.test": ".fifth"}       # with these too many for one list
FILES = [f"/dir/f{i}.txt" for i in range(5)]
ROUNDS = 4


def obeyed(host, present):
    """The access file that core takes there; None: no such file."""
    names = {**HOSTS, **MORE}[host].split()
    return next((name for name in names if name in present), None)


@pytest.fixture(scope="module")
def root(base):
    root = base / "access-names"
    for path in FILES:
        tree.put(root / path[1:], path)
        os.utime(root / path[1:], (10**9, 10**9))
    return root


@pytest.fixture(scope="module", params=("few", "many"))
def server(lab, root, request, mpm):
    hosts = {**HOSTS, **(MORE if request.param == "many" else {})}
    section = f"<Directory {root}>\nAllowOverride All\n</Directory>\n"
    server = lab.under_test(f"names-{request.param}-{mpm}", root, mpm=mpm,
                            vhosts=[([host], f"{section}AccessFileName {names}\n")
                                    for host, names in hosts.items()])
    server.hosts = hosts
    return server


def ask_all(server):
    """Each file of each host, the hosts in turn: (host, status)."""
    found = []
    with Client(server.port) as client:
        for path in FILES:
            for client.host in server.hosts:
                found.append((client.host, client.get(path)[0]))
    return found


def statuses(server):
    answers = set(ask_all(server))
    assert len(answers) == len(server.hosts), answers
    return dict(answers)


@pytest.mark.parametrize("present", ((), (".htaccess",), (".second",), (".htaccess", ".second"), (".third",),
                                     (".second", ".fifth", ".fourth")), ids=" ".join)
def test_each_host_obeys_its_own(server, root, present):
    """Each file that is there forbids, but one that comes last: .htaccess."""
    for name in present:
        verdict = "granted" if name == ".htaccess" else "denied"
        tree.put(root / "dir" / name, f"Require all {verdict}\n")
    wanted = {host: 403 if obeyed(host, present) not in (None, ".htaccess") else 200 for host in server.hosts}
    try:
        for _ in range(ROUNDS):
            assert statuses(server) == wanted
    finally:
        for name in present:
            (root / "dir" / name).unlink()
    assert set(statuses(server).values()) == {200}


@pytest.mark.parametrize("server", ("few",), indirect=True)
def test_hosts_in_turn_are_hits(server):
    def all_hits():
        mark = server.mark()
        before = server.daemon.counters()["misses"]
        for _ in range(ROUNDS):
            ask_all(server)
        notes = {entry.note for entry in server.wait_entries(ROUNDS * len(FILES) * len(server.hosts), mark)}
        return notes <= HITS and server.daemon.counters()["misses"] == before
    wait_for(all_hits, "hits alone")
