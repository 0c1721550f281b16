# SPDX-License-Identifier: Apache-2.0
"""A file server whose clock lags, and whose times have whole seconds: a second change within a second has the times of the first
one. Nothing that was read between the two is taken for the file as it is."""

import time

import pytest

import tree
from fetch import Client
from forms import chosen

pytestmark = pytest.mark.needs_flashpache

LAGS = (0, 1.5, 2.6, 600)
TURNS = chosen(6, 60)
TTL_MS = 50
SHOWN_S = 4                 # the latest


@pytest.fixture(params=LAGS, ids=lambda lag: f"{lag}s")
def pair(base, slow_directory, lab, request):
    source = base / f"lagging{request.param}"
    (source / "d").mkdir(parents=True)
    root = slow_directory(source, 0, "--clock-lag", str(request.param))
    config = f"<Directory {root}>\nOptions MultiViews FollowSymLinks\nAllowOverride All\n</Directory>\n"
    server = lab.under_test(f"lagging-{request.param}", root, config=config, daemon_settings={"ttl_ms": TTL_MS})
    yield source, server
    lab.end()


def until(get, expected):
    end = time.monotonic() + SHOWN_S
    while (found := get()) != expected and time.monotonic() < end:
        time.sleep(TTL_MS / 1000)
    return found


def at_the_seconds_begin(lag):
    """So that two changes are in one second of the server's."""
    time.sleep(1 - (time.time() - lag) % 1)


def test_a_second_change_within_the_second(pair, request):
    """Of a small file's content, and of an access file's rules."""
    source, server = pair
    lag = request.node.callspec.params["pair"]
    with Client(server.port) as client:
        def header(path):
            client.conn.request("GET", path, headers={"Host": "localhost"})
            answer = client.conn.getresponse()
            answer.read()
            return answer.headers.get("X-Turn")
        tree.put(source / "d/page.txt", "page")
        for turn in range(TURNS):
            at_the_seconds_begin(lag)
            for text in ("first ", "second"):
                (source / "d/file.txt").write_text(f"{text} {turn:5}")
                (source / "d/.htaccess").write_text(f"Header set X-Turn {text.strip()[0]}{turn:05}\n")
                # Long enough for it to be known, and to be read anew.
                for _ in range(8):
                    client.get("/d/file.txt")
                    header("/d/page.txt")
                    time.sleep(TTL_MS / 1000)
            assert until(lambda turn=turn: client.get("/d/file.txt"), (200, f"second {turn:5}".encode())) \
                == (200, f"second {turn:5}".encode())
            assert until(lambda: header("/d/page.txt"), f"s{turn:05}") == f"s{turn:05}"
