# SPDX-License-Identifier: Apache-2.0
"""FlashpacheEngine Shadow: httpd serves, and each difference from Flashpache's answer is logged."""

import os
import re
import signal
import time

import pytest

import parity_cases
import parity_config
import status_kit
import test_parity
import tree
from content_kit import SETTLED_S
from fetch import Client, get
from forms import FULL
from status_kit import figures
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

SHADOW = "FlashpacheEngine Shadow\n"
TTL = {"ttl_ms": 60_000, "watch": "ttl"}
MOST_A_SECOND = 5           # lines of one child
ONE_CHILD = "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 1\nMaxRequestWorkers 1\n"
LINE = re.compile(r"FP0120: shadow: (\S+): (\S+): httpd found: (.*?); Flashpache would have said: (.*)")


def is_fifo(case):
    """Stock httpd waits for ever there."""
    return "fifo" in case.name


# In the normal form the other MPMs get one in EVERY of event's cases.
EVERY = 8
CASES = [case for case in parity_cases.every_case() if not case.tls and not is_fifo(case)]


def start(lab, name, root, mpm="event", config="", daemon=None, **options):
    config = f"{SHADOW}<Directory {root}>\nAllowOverride All\n</Directory>\n" + config
    return lab.under_test(name, root, mpm=mpm, config=config, vhosts=[(["localhost"], ""), status_kit.VHOST],
                          extra_modules=status_kit.MODULES, daemon_settings=daemon or {}, **options)


def compared(server):
    """(requests compared, requests that differ)"""
    found = figures(server)
    return found["FlashpacheShadowCompared"], found["FlashpacheShadowDifferent"]


def told(server):
    """[(uri, path, httpd's, ours)] of the error log."""
    return [found.groups() for found in map(LINE.search, server.error_text().splitlines()) if found]


# agreement

@pytest.fixture(scope="module")
def servers(lab, base, mpm):
    www, outside = tree.parity_tree(base / f"shadow-tree-{mpm}")
    main, vhosts = parity_config.main(www, outside), parity_config.vhosts(www, outside)
    stock = lab.stock(f"stock-{mpm}", www, mpm=mpm, config=main, vhosts=vhosts,
                      extra_modules=parity_config.MODULES + status_kit.MODULES).start()
    shadow = lab.under_test(f"shadow-{mpm}", www, mpm=mpm, config=SHADOW + main, vhosts=[*vhosts, status_kit.VHOST],
                            extra_modules=parity_config.MODULES + status_kit.MODULES)
    yield stock, shadow
    lab.end()


def test_same_tree_same_answers(servers, mpm):
    """The cases of parity: stock's bytes, and no difference."""
    cases = CASES if FULL or mpm == "event" else CASES[::EVERY]
    for case in cases:
        test_parity.compare(servers, case)
    count, different = compared(servers[1])
    assert (different, told(servers[1])) == (0, [])
    # Each case is asked thrice, and answers without a look at a file are not compared.
    assert count > 2 * len(cases)


# differences

@pytest.fixture
def root(base):
    root = base / f"shadow{len(list(base.glob('shadow[0-9]*')))}"
    tree.put(root / "file.txt", "old\n")
    tree.put(root / "dir/file.txt", "in a directory\n")
    return root


@pytest.fixture
def server(lab, root):
    """Its daemon gets no reports of changes."""
    server = start(lab, root.name, root, daemon=TTL)
    yield server
    server.stop()


def replace(path, text):
    tree.put(path.with_name("beside"), text).rename(path)


def difference(server, path, status, body):
    """The one line that a request for the path makes."""
    lines, before = len(told(server)), compared(server)
    assert get(server.port, path) == (status, body)
    assert compared(server) == (before[0] + 1, before[1] + 1)
    new = wait_for(lambda: told(server)[lines:], "the line")
    assert [line[0] for line in new] == [path] * len(new)
    return new[0]


def test_replaced_file(server, root):
    assert get(server.port, "/file.txt") == (200, b"old\n")
    old = (root / "file.txt").stat()
    replace(root / "file.txt", "newer\n")
    _, path, stock, ours = difference(server, "/file.txt", 200, b"newer\n")
    assert path == str(root / "file.txt")
    assert stock.startswith("file of 6 bytes") and f"inode {(root / 'file.txt').stat().st_ino}," in stock
    assert ours.startswith("file of 4 bytes") and f"inode {old.st_ino}," in ours
    # The difference is logged as long as it exists, whatever was served.
    assert difference(server, "/file.txt", 200, b"newer\n")[3] == ours


def test_new_and_removed_file(server, root):
    assert get(server.port, "/new.txt")[0] == 404
    tree.put(root / "new.txt", "new\n")
    assert difference(server, "/new.txt", 200, b"new\n")[3].startswith("No such file")
    get(server.port, "/dir/file.txt")
    (root / "dir/file.txt").unlink()
    with Client(server.port) as client:
        status, body = client.get("/dir/other-missing")
    assert status == 404
    assert difference(server, "/dir/file.txt", 404, body)[2].startswith("No such file")


def test_rights(server, root):
    get(server.port, "/file.txt")
    (root / "file.txt").chmod(0o604)
    _, _, stock, ours = difference(server, "/file.txt", 200, b"old\n")
    assert "protection 604" in stock and "protection 644" in ours


def test_access_file(server, root):
    """The file is the same, but may no longer be seen: Flashpache would have missed that."""
    assert get(server.port, "/dir/file.txt")[0] == 200
    tree.put(root / "dir/.htaccess", "Require all denied\n")
    lines = len(told(server))
    assert get(server.port, "/dir/file.txt")[0] == 403
    assert compared(server)[1] == 1
    new = wait_for(lambda: told(server)[lines:], "the line")
    assert new[0][1] == str(root / "dir/.htaccess") and new[0][2].startswith("file of 19 bytes")
    assert new[0][3].startswith("No such file")


def test_changed_access_file(server, root):
    tree.put(root / "dir/.htaccess", "Header set X-A 1\n")
    assert get(server.port, "/dir/file.txt")[0] == 200
    replace(root / "dir/.htaccess", "Require all denied\n")
    lines = len(told(server))
    assert get(server.port, "/dir/file.txt")[0] == 403
    new = wait_for(lambda: told(server)[lines:], "the line")
    assert (new[0][1], new[0][2][:16], new[0][3][:16]) == (str(root / "dir/.htaccess"), "file of 19 bytes",
                                                           "file of 17 bytes")


def test_file_system_that_nobody_watches(lab, base, slow_directory):
    source = base / "shadow-source"
    tree.put(source / "file.txt", "old\n")
    tree.put(source / "same.txt", "same\n")
    server = start(lab, "slow", slow_directory(source, 1000), daemon={"ttl_ms": TTL["ttl_ms"]})
    for pause_s in (SETTLED_S, 0, 0):      # then both are kept by their contents
        for path, body in (("/file.txt", b"old\n"), ("/same.txt", b"same\n")):
            assert get(server.port, path) == (200, body)
        time.sleep(pause_s)
    replace(source / "file.txt", "newer\n")
    assert difference(server, "/file.txt", 200, b"newer\n")[3].startswith("file of 4 bytes")
    assert get(server.port, "/same.txt") == (200, b"same\n")
    assert compared(server) == (8, 1)
    server.stop()


def test_changes_that_the_daemon_hears_of_are_none(lab, root):
    server = start(lab, root.name, root)
    with Client(server.port) as client:
        for i in range(200):
            text = f"number {i}\n"
            replace(root / "file.txt", text)
            assert client.get("/file.txt") == (200, text.encode())
    count, different = compared(server)
    assert (count, different, told(server)) == (200, 0, [])
    server.stop()


def test_few_lines_and_how_many_are_missing(server, root):
    names = [f"/f{i}.txt" for i in range(60)]
    for name in names:
        tree.put(root / name[1:], "old\n")
    with Client(server.port) as client:
        for name in names:
            client.get(name)
        for name in names:
            replace(root / name[1:], "newer\n")
        began = time.time()
        for name in names:
            assert client.get(name) == (200, b"newer\n")
        seconds = int(time.time()) - int(began) + 1
        assert compared(server)[1] == len(names)
        lines = len(told(server))
        # One connection, so one child.
        assert 0 < lines <= MOST_A_SECOND * seconds

        def one_more():
            client.get(names[0])
            return [line for line in told(server) if "more since the last line" in line[3]]
        if lines < len(names):
            found = wait_for(one_more, "a line that says how many were left out")
            assert re.search(r"\((\d+) more since the last line\)$", found[0][3])


# the cost, and what is not compared

def test_notes(lab, root):
    noted = 'Header always set X-Notes "expr=%{note:flashpache} %{note:flashpache-shadow}"\n'
    server = start(lab, root.name, root, "prefork", noted, TTL, limits=ONE_CHILD)

    def notes():
        return status_kit.fetch(server, "/file.txt", host="localhost")[1]["x-notes"]
    assert [notes() for _ in range(3)] == ["miss same", "lease same", "lease same"]
    replace(root / "file.txt", "newer\n")
    assert notes() == "lease different"
    assert compared(server) == (4, 1)
    server.stop()


def test_without_an_answer_nothing_is_compared(server, root):
    server.daemon.kill()
    assert get(server.port, "/file.txt") == (200, b"old\n")
    assert compared(server) == (0, 0)
    assert figures(server)["FlashpacheFallbackAbsent"] == 1


def test_daemon_that_stops_meanwhile(server, root):
    """There is no second answer, so no comparison; the request is served."""
    get(server.port, "/file.txt")
    replace(root / "file.txt", "newer\n")
    os.kill(server.daemon.pid, signal.SIGSTOP)
    try:
        assert get(server.port, "/file.txt") == (200, b"newer\n")
    finally:
        os.kill(server.daemon.pid, signal.SIGCONT)
    assert told(server) == []
