# SPDX-License-Identifier: Apache-2.0
"""A file that cannot be opened gives the same line in the error log as with stock."""

import os
import re
import socket

import pytest

import tree
from fetch import Client

ROUNDS = 5
LINE = re.compile(r"(\(\d+\)[^:]+): \[client [^]]*\] (AH\d+: .*)|(FP0106|FP0107)")


@pytest.fixture(scope="module")
def root(base):
    root = base / "denied"
    for name in ("unreadable", "written", "replaced"):
        tree.put(root / name, "x" * 100, mode=0o600)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(root / "socket"))
    (root / "socket").chmod(0o777)
    return root


@pytest.fixture(scope="module", params=("prefork", "event"))
def servers(lab, root, request):
    yield (lab.stock(f"{request.param}-stock", root, mpm=request.param).start(),
           lab.under_test(request.param, root, mpm=request.param))
    lab.end()


def leave(root, number):
    pass


def write(root, number):
    os.truncate(root / "written", 100 + number)


def replace(root, number):
    os.rename(tree.put(root / "new", "y" * (200 + number), mode=0o600), root / "replaced")


@pytest.mark.parametrize("name,change", (("unreadable", leave), ("written", write), ("replaced", replace),
                                         ("socket", leave)))
def test_same_line(servers, root, name, change):
    for number in range(ROUNDS):
        change(root, number)
        lines = []
        for server in reversed(servers):        # Flashpache at once after the change
            before = len(server.error_text())
            with Client(server.port) as client:
                assert client.get(f"/{name}")[0] == 403
            lines.append(LINE.findall(server.error_text()[before:]))
        assert lines[0] == lines[1] and len(lines[1]) == 1, number
