# SPDX-License-Identifier: Apache-2.0
"""On a real network file system, changes show as with a stock httpd, and nothing is in their way.

Each change is made to files that both servers have served a dozen times within some seconds. Programs of this machine
make most of them, through the mount or through httpd: those show at once. The server's own show after the TTL.
Flashpache may not fail more often than stock does. Each test prints its line of a table: kind, change, and the failures of
stock and of Flashpache.

Runs in the virtual machine of scripts/test vm.
"""

import os
import shutil
import subprocess
import time

import pytest

import network_mounts
import tree
from network_site import AGAIN, KINDS, PATIENT, PAUSE_S, ROUNDS, TRIES, becomes_true, row, serve, served, warm
from quick import Quick
from waiting import wait_for

pytestmark = pytest.mark.skipif(not network_mounts.INSIDE, reason=network_mounts.NEEDS)
DENIED = "Require all denied\n"
# A change at the server shows when the client's attributes have expired, and then the daemon's answer. Stock waits for the former.
EXPIRES_S = 1
UNUSED_S = 10


@pytest.fixture(scope="module", params=KINDS)
def site(request, base, lab):
    """With the files of all tests that follow: they are served for some seconds once, not once for each test."""
    changes = [item.callspec.params["change"] for item in request.session.items if item.originalname == "test_own_changes"
               and item.callspec.params["site"] == request.param]
    with served(request.param, base, lab) as made:
        made.own = {change: [one for server in made.servers for one in made.tries(server, change.__name__)]
                    for change in changes}
        warm(sum(made.own.values(), []))
        yield made


# ---- the changes: each returns whether all answers after it were right ----

def unlink(one):
    one.file.unlink()
    return one.shows(404)


def rename_over(one):
    other = one.directory / "other"
    other.write_bytes(one.new)
    other.rename(one.file)
    return one.shows(200, one.new)


def write_in_place(one):
    """As many bytes as before."""
    with open(one.file, "r+b") as out:
        out.write(one.new)
    return one.shows(200, one.new)


def truncate(one):
    os.truncate(one.file, one.size // 2)
    return one.shows(200, one.body[:one.size // 2])


def append(one):
    with open(one.file, "ab") as out:
        out.write(b"more\n")
    return one.shows(200, one.body + b"more\n")


def change_mode(one):
    """Only where modes are the server's."""
    one.file.chmod(0)
    hidden = one.shows(403)
    one.file.chmod(0o644)
    return hidden and one.shows(200, one.body)


def dav_delete(one):
    return one.ask(method="DELETE").status == 204 and one.shows(404)


def dav_put(one):
    return one.ask(method="PUT", body=one.new).status == 204 and one.shows(200, one.new)


def dav_move(one):
    moved = one.url.replace("file.bin", "moved.bin")
    status = one.ask(method="MOVE", fields=f"Destination: {one.server.httpd.url(moved)}\r\n").status
    return status == 201 and one.shows(404) and one.shows(200, one.body, moved)


def access_file(one):
    """Written, in force; removed, no longer."""
    rules = one.directory / ".htaccess"
    rules.write_text(DENIED)
    denied = one.shows(403)
    rules.unlink()
    return denied and one.shows(200, one.body)


def create_after_404(one):
    absent = one.directory / "absent.bin"
    url = one.url.replace("file.bin", absent.name)
    known = all(one.shows(404, url=url) for _ in range(ROUNDS))
    absent.write_bytes(one.new)
    return known and one.shows(200, one.new, url)


def rename_directory(one):
    moved = one.directory.with_name(f"{one.directory.name}-moved")
    one.directory.rename(moved)
    old, new = one.shows(404), one.shows(200, one.body, one.url.replace("/file.bin", "-moved/file.bin"))
    return old and new


def remove_directory(one):
    """At once, with its only file."""
    one.file.unlink()
    try:
        one.directory.rmdir()
    except OSError:
        return False
    return one.shows(404) and one.shows(404, url=one.url.replace("file.bin", ""))


def remove_tree(one):
    done = subprocess.run(["rm", "-rf", one.directory], capture_output=True)
    return done.returncode == 0 and not one.directory.exists() and one.shows(404)


def leave_nothing(one):
    """A file in use that is removed leaves no other name behind, such as .nfs0000."""
    one.file.unlink()
    return os.listdir(one.directory) == [] and one.shows(404)


def hidden_name(one):
    """The name that an NFS client gives to a removed file which a program has open, as long as it does."""
    with open(one.file, "rb"):
        one.file.unlink()
        names = [name for name in os.listdir(one.directory) if name.startswith(".nfs")]
        urls = [one.url.replace("file.bin", name) for name in names]
        there = [one.shows(200, one.body, url) for url in urls for _ in range(3)]
    return one.shows(404) and all(there) and all(one.shows(404, url=url) for url in urls)


CHANGES = (unlink, rename_over, write_in_place, truncate, append, change_mode, dav_delete, dav_put, dav_move, access_file,
           create_after_404, rename_directory, remove_directory, remove_tree, leave_nothing, hidden_name)


def failures(tries, change):
    count = 0
    for one in tries:
        try:
            count += not change(one)
        except OSError as problem:
            print(f"{one.server.name} {one.url}: {problem}")
            count += 1
    return count


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_own_changes(site, change, capsys):
    """At once."""
    if change is change_mode and site.kind in network_mounts.WITHOUT_MODES:
        pytest.skip(f"needs modes at the server: {site.kind} has none")
    if change is hidden_name and not site.kind.startswith("nfs"):
        pytest.skip(f"needs a client that renames removed files: {site.kind}'s does not")
    tries = site.own.pop(change)
    serve(tries, AGAIN)
    row(capsys, site.kind, change.__name__, {server.name: failures([one for one in tries if one.server is server], change)
                                             for server in site.servers})
    for one in tries:
        shutil.rmtree(one.directory, ignore_errors=True)


def replaced_behind(behind, one):
    tree.put(behind / "other", one.new)
    (behind / "other").rename(behind / "file.bin")
    return lambda: one.shows(200, one.new)


def removed_behind(behind, one):
    (behind / "file.bin").unlink()
    return lambda: one.shows(404)


@pytest.mark.parametrize("change", (replaced_behind, removed_behind), ids=lambda change: change.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_the_server(kind, base, lab, change, capsys):
    options = f"actimeo={EXPIRES_S}" if kind in network_mounts.WITH_ACTIMEO else ""
    with served(kind, base, lab, options) as site:
        tries = {server.name: site.tries(server, "behind") for server in site.servers}
        warm(sum(tries.values(), []))
        counts = {}
        for name, each in tries.items():
            shown = [change(site.mount.behind / one.directory.relative_to(site.mount.at), one) for one in each]
            counts[name] = sum(not becomes_true(condition) for condition in shown)
        row(capsys, kind, change.__name__, counts)


def unmounted(mount):
    return subprocess.run(["umount", mount.at], capture_output=True).returncode == 0


@pytest.mark.parametrize("kind", KINDS)
def test_unmount(kind, base, lab, capsys):
    """Some seconds after the last request, with the servers running: a server has its directory to itself."""
    counts = {}
    for name in ("stock", "flashpache"):
        with served(kind, base, lab) as site:
            tries = site.tries(next(server for server in site.servers if server.name == name), "unmount")
            warm(tries)
            time.sleep(UNUSED_S)
            counts[name] = 0 if unmounted(site.mount) else 1
    row(capsys, kind, "umount", counts, 1)


@pytest.mark.parametrize("name", ("stock", "flashpache"))
def test_an_automounted_directory_expires(base, lab, name, capsys):
    """Without requests automount unmounts it, as under a stock httpd. The next request mounts it again and shows what changed meanwhile."""
    with network_mounts.automounted(base / f"auto-{name}/www", EXPIRES_S) as mount:
        tree.put(mount.behind / "file.txt", "old\n")
        server = (lab.stock("automount-stock", mount.at, config=PATIENT).start() if name == "stock"
                  else lab.under_test("automount-flashpache", mount.at, config=PATIENT))
        connection = Quick(server.port)
        for _ in range(ROUNDS):
            assert connection.ask("/file.txt").body == b"old\n"
            time.sleep(PAUSE_S)
        began = time.monotonic()
        wait_for(lambda: not network_mounts.is_mounted(mount.at), "the mount to expire", 60)
        with capsys.disabled():
            print(f"\n{name:10} expired after {time.monotonic() - began:.0f} s")
        tree.put(mount.behind / "file.txt", "new\n")
        assert becomes_true(lambda: connection.ask("/file.txt").body == b"new\n")
        assert network_mounts.is_mounted(mount.at)
        lab.end()
