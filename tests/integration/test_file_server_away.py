# SPDX-License-Identifier: Apache-2.0
"""A file server that is away, comes back, starts anew, loses a directory, or is unmounted, under a stock httpd and Flashpache.

Each test prints its line of a table: kind, event, and how many files of stock and of Flashpache were not served as they should.
Flashpache may not do worse than stock, and serves what it knows where that is configured.

Runs in the virtual machine of scripts/test vm.
"""

import os
import shutil
import subprocess
import time

import pytest

import network_mounts
import procs
from network_site import LATEST_S, NFS, becomes_true, row, serve, served, warm
from waiting import wait_for

pytestmark = pytest.mark.skipif(not network_mounts.INSIDE, reason=network_mounts.NEEDS)
KNOWING = {"stale_if_error_ms": 600_000}
REFUSING = "FlashpacheUnavailable 503\n"
NOTICED_S = 6           # ttl_ms and mount_timeout_ms are over
ANSWER_S = 3            # a hung request has none
BACK_S = 90             # a client asks a server that came back within a minute, the daemon's probe within 30 s
MOUNTS = {"hard": "hard", "soft": "soft,timeo=10,retrans=1"}


def statuses(urls):
    """Those of requests that are sent at once, each on a connection of its own; 0: none within ANSWER_S."""
    asked = [subprocess.Popen(["curl", "-s", "-o", "/dev/null", "-m", str(ANSWER_S), "-w", "%{http_code}", url], stdout=subprocess.PIPE,
                              text=True) for url in urls]
    return [int(process.communicate()[0]) for process in asked]


def all_served(tries):
    return statuses(one.server.httpd.url(one.url) for one in tries) == [200] * len(tries)


def small_and_large(site, name):
    """By server: files that are kept by their content, and larger ones."""
    made = {server.name: site.tries(server, name)[:6] for server in site.servers}
    warm(sum(made.values(), []))
    return {name: ([one for one in tries if one.size < 1 << 20], [one for one in tries if one.size >= 1 << 20])
            for name, tries in made.items()}


def has_waiting(server):
    """True if a process of the server or its daemon is in an uninterruptible wait."""
    family = server.httpd.pids() + (server.httpd.daemon.family() if server.name == "flashpache" else [])
    return any(procs.state(pid) == "D" for pid in family)


@pytest.mark.parametrize("options", MOUNTS)
@pytest.mark.parametrize("kind", NFS)
def test_files_in_use_are_served_while_the_server_is_away(kind, base, lab, options, capsys):
    """Stock serves none. Flashpache serves those it keeps by their content, and refuses others at once."""
    with served(kind, base, lab, MOUNTS[options], KNOWING, REFUSING) as site:
        tries = small_and_large(site, "away")
        flash = next(server for server in site.servers if server.name == "flashpache")
        with network_mounts.nfs_server_away():
            time.sleep(NOTICED_S)
            # The first ones find out.
            statuses(flash.httpd.url(one.url) for one in tries["flashpache"][0])
            time.sleep(ANSWER_S)
            counts = {}
            for name, (small, _) in tries.items():
                answers = statuses(one.server.httpd.url(one.url) for one in small)
                counts[name] = sum(status != 200 for status in answers)
            others = statuses(flash.httpd.url(url) for url in [one.url for one in tries["flashpache"][1]] + ["/never/asked"])
        row(capsys, kind, f"away, {options}", counts, len(tries["stock"][0]))
        assert counts["flashpache"] == 0, counts
        assert set(others) == {503}, others
        for small, large in tries.values():
            assert becomes_true(lambda small=small, large=large: all_served(small + large), BACK_S)
        wait_for(lambda: not any(map(has_waiting, site.servers)), "all processes to run again", LATEST_S)


@pytest.mark.parametrize("kind", NFS)
def test_a_server_that_starts_anew(kind, base, lab):
    """With its period of grace: all files are served after it, by both."""
    with served(kind, base, lab) as site:
        tries = small_and_large(site, "anew")
        with network_mounts.nfs_server_away():
            pass
        for small, large in tries.values():
            assert becomes_true(lambda small=small, large=large: all_served(small + large), BACK_S)


@pytest.mark.parametrize("kind", NFS)
def test_a_directory_that_is_made_again(kind, base, lab, capsys):
    """At the server, with other files of the same names: the client has handles of objects that are gone (ESTALE)."""
    with served(kind, base, lab, "actimeo=1") as site:
        tries = {name: sum(both, []) for name, both in small_and_large(site, "again").items()}
        counts = {}
        for name, own in tries.items():
            for one in own:
                behind = site.mount.behind / one.directory.relative_to(site.mount.at)
                shutil.rmtree(behind)
                behind.mkdir()
                (behind / "file.bin").write_bytes(one.new)
        for name, own in tries.items():
            counts[name] = sum(not becomes_true(lambda one=one: one.shows(200, one.new)) for one in own)
        row(capsys, kind, "made again", counts, len(tries["stock"]))


@pytest.mark.parametrize("how", ("-l", "-f"))
@pytest.mark.parametrize("kind", NFS)
def test_unmounted_while_it_serves(kind, base, lab, how, capsys):
    """umount -l, and with -f while the server is away; then it is mounted again. The directory below is empty."""
    with served(kind, base, lab, "hard") as site:
        tries = {name: sum(both, []) for name, both in small_and_large(site, "unmounted").items()}
        remount = network_mounts.mount_command(site.mount)
        if how == "-f":
            with network_mounts.nfs_server_away():
                asked = [one.server.httpd.url(one.url) for own in tries.values() for one in own]
                statuses(asked)
                subprocess.run(["umount", "-f", site.mount.at], capture_output=True)
        if os.path.ismount(site.mount.at):
            subprocess.run(["umount", "-l", site.mount.at], check=True)
        gone = {name: sum(not becomes_true(lambda one=one: one.shows(404)) for one in own) for name, own in tries.items()}
        row(capsys, kind, f"umount {how}", gone, len(tries["stock"]))
        subprocess.run(remount, check=True)
        back = {name: sum(not becomes_true(lambda one=one: one.shows(200, one.body)) for one in own) for name, own in tries.items()}
        row(capsys, kind, "mounted again", back, len(tries["stock"]))
        serve(sum(tries.values(), []))
        wait_for(lambda: not any(map(has_waiting, site.servers)), "all processes to run again", LATEST_S)


@pytest.mark.parametrize("kind", NFS)
def test_the_end_while_the_server_is_away(kind, base, lab):
    """SIGTERM ends the daemon and all its processes, though workers wait for the server."""
    below = base / f"{kind}-end"
    below.mkdir()
    with served(kind, below, lab) as site:
        [server] = [one for one in site.servers if one.name == "flashpache"]
        tries = site.tries(server, "end")
        warm(tries)
        daemon = server.httpd.daemon
        with network_mounts.nfs_server_away():
            asked = [subprocess.Popen(["curl", "-s", "-o", "/dev/null", "-m", "3", server.httpd.url(one.url + end)])
                     for one in tries[:8] for end in ("", ".absent")]
            for process in asked:
                process.wait()
            family = daemon.family()
            daemon.process.terminate()
            assert daemon.process.wait(LATEST_S) == 0
            wait_for(lambda: not [pid for pid in family if procs.state(pid) not in ("", "Z", None)], "all its processes to end", LATEST_S)
