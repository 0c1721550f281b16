# SPDX-License-Identifier: Apache-2.0
"""A whole tree: every body is the file's and stock's, and the second pass is hits. Hits make no path call below the
document root."""

import os
import shutil

import pytest

import tree
from fetch import Client
from forms import full_where
from httpd import HITS
from trace import PathTrace

TRACED = 300
HIT_SHARE = 0.99
# Settings that decide stock's path calls: {virtual host: text for the document root}.
SETTINGS = {"none": "AllowOverride None",
            "owner": "AllowOverride None\nOptions -FollowSymLinks +SymLinksIfOwnerMatch",
            "all": "AllowOverride All"}


@pytest.fixture(scope="module")
def files(base):
    root = base / "big-tree"
    return root, tree.many_files(root)


@pytest.fixture(scope="module")
def servers(lab, files, mpm):
    """(stock, with Flashpache), each with a virtual host for every setting."""
    root, _ = files
    vhosts = [([name], f"<Directory {root}>\n{text}\n</Directory>") for name, text in SETTINGS.items()]
    options = dict(mpm=mpm, vhosts=vhosts)
    stock = lab.stock(f"stock-{mpm}", root, **options).start()
    flash = lab.under_test(f"flash-{mpm}", root, daemon_settings={"ttl_ms": 60000}, **options)
    yield stock, flash
    lab.end()


def fetch_all(server, paths, host="all"):
    """{path: (status, body)} over one connection."""
    with Client(server.port, host=host) as client:
        return {path: client.get("/" + path) for path in paths}


def shares(entries):
    counts = {}
    for entry in entries:
        counts[entry.note] = counts.get(entry.note, 0) + 1
    return counts


@full_where(lambda values: values["mpm"] != "event")
def test_every_file_is_the_same_and_the_second_pass_hits(servers, files):
    stock, flash = servers
    _, content = files
    assert len(content) >= 2000
    expected = {path: (200, body) for path, body in content.items()}
    assert fetch_all(stock, content) == expected
    assert fetch_all(flash, content) == expected, "first pass"
    flash.wait_entries(len(content))
    mark = flash.mark()
    assert fetch_all(flash, content) == expected, "second pass"
    notes = shares(flash.wait_entries(len(content), mark))
    print(f"notes of the second pass: {notes}")
    if flash.socket:                    # not so in the self-check
        assert sum(notes.get(n, 0) for n in HITS) >= HIT_SHARE * len(content), notes


@full_where(lambda values: values["mpm"] != "event" and values["setting"] != "all")
@pytest.mark.needs_flashpache
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace to see the workers' path calls")
def test_hits_make_no_path_calls(servers, files, setting):
    _, flash = servers
    root, content = files
    some = list(content)[:TRACED]
    fetch_all(flash, some, setting)
    mark = flash.mark()
    log = flash.dir / f"strace-{setting}.txt"
    with PathTrace(flash.pids(), log) as traced:
        fetch_all(flash, some, setting)
        entries = flash.wait_entries(len(some), mark)
    hits = {e.url for e in entries if e.note in HITS}
    assert len(hits) >= HIT_SHARE * len(some), shares(entries)
    misses = {os.path.join(root, e.url.lstrip("/")) for e in entries if e.note not in HITS}
    # Each child that sends a larger file opens it once, from the kernel's memory: that never waits.
    calls = [c for c in traced.calls(root) if "RESOLVE_CACHED" not in c and not any(path in c for path in misses)]
    assert not calls, f"{len(calls)} path calls on {len(hits)} hits, the first:\n" + "\n".join(calls[:20])


@full_where(lambda values: values["mpm"] != "event")
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace to see the workers' path calls")
def test_the_trace_sees_the_path_calls_of_stock(servers, files):
    """Without this the test above could pass by looking at nothing."""
    stock, _ = servers
    root, content = files
    with PathTrace(stock.pids(), stock.dir / "strace.txt") as traced:
        fetch_all(stock, list(content)[:3])
    assert len(traced.calls(root)) >= 6
