# SPDX-License-Identifier: Apache-2.0
"""The kernel follows 40 symbolic links on a whole path. So does Flashpache, whether the daemon learnt the path in
pieces or at once."""

import os

import pytest

import tree
from fetch import Client
from waiting import wait_for

MOST = 40
DIRECTORY, FILE = "d", "page.txt"


def make_chain(where, name, n, end):
    """name1 leads to name2 and so on; the last one to the end."""
    for i in range(1, n + 1):
        (where / f"{name}{i}").symlink_to(f"{name}{i + 1}" if i < n else end)


@pytest.fixture(scope="module")
def roots(base):
    """(DocumentRoot by a path of four links, the real one)"""
    real = base / "real/www"
    tree.put(real / DIRECTORY / "e" / FILE, "page\n")
    tree.put(real / DIRECTORY / "index.html", "index\n")
    make_chain(real, "x", MOST + 1, DIRECTORY)
    make_chain(real, "w", 30, DIRECTORY)
    make_chain(real, "ax", 1, real / "x10")
    make_chain(real / DIRECTORY, "y", MOST + 1, "e")
    make_chain(real / DIRECTORY, "ay", 1, real / DIRECTORY / "y10")
    make_chain(real / DIRECTORY / "e", "z", MOST + 1, FILE)
    make_chain(base, "up", 4, base / "real")
    return base / "up1/www", real


@pytest.fixture(scope="module", params=("real", "linked"))
def servers(lab, roots, request):
    root = roots[request.param == "real"]
    config = f"<Directory {root}>\nAllowOverride All\n</Directory>\n"
    stock = lab.stock(f"stock-{request.param}", root, config=config).start()
    flash = lab.under_test(f"flash-{request.param}", root, config=config, daemon_settings={"ttl_ms": 500})
    yield stock, flash


def at(name, n):
    """The name at which n links begin."""
    return f"{name}{MOST + 2 - n}"


CHAINS = [(20, 20, 0), (20, 21, 0), (25, 25, 0), (25, 15, 0), (25, 16, 0), (40, 0, 0), (41, 0, 0), (36, 0, 0), (37, 0, 0),
          (0, 40, 0), (0, 41, 0), (0, 36, 0), (10, 10, 20), (10, 10, 21), (10, 10, 16), (10, 10, 17), (0, 0, 40), (0, 0, 41),
          (1, 39, 1), (1, 1, 1), (36, 1, 0), (35, 1, 1), (12, 12, 12), (13, 13, 14), (13, 13, 15)]


def path_of(chain):
    x, y, z = chain
    return f"/{at('x', x) if x else DIRECTORY}/{at('y', y) if y else 'e'}/{at('z', z) if z else FILE}"


PATHS = [path_of(chain) for chain in CHAINS] + [
    "/ax1/y9/z40", "/ax1/ay1/page.txt", "/ax1/e/z36", "/d/ay1/z35", "/x1/", "/x2/", "/x3/", "/x6/", "/x7/", "/x3/index.html",
    "/x3/none", "/x2/none", "/x3/e/z1/more", "/x20/../x20/e/page.txt", "/x25/y25/", "/x15/y15/none", "/x15/y25/none"]


def answer(server, path):
    with Client(server.port) as client:
        return client.get(path)


@pytest.mark.parametrize("path", PATHS)
def test_as_many_as_the_kernel(servers, path):
    stock, flash = servers
    expected = answer(stock, path)
    for number in range(3):
        assert answer(flash, path) == expected, f"request {number}"


def test_the_chains_are_of_both_kinds(servers):
    """The test itself: stock serves some and denies some."""
    assert {answer(servers[0], path)[0] for path in PATHS[:len(CHAINS)]} == {200, 403}


def test_known_in_pieces(servers):
    """Each directory comes first, so that the walk to the next name begins there."""
    stock, flash = servers
    for x in range(1, MOST + 1, 6):
        for y in (MOST - x - 5, MOST - x - 4, MOST - x - 3, MOST - x, MOST - x + 1):
            if not 1 <= y <= MOST:
                continue
            whole = path_of((x, y, 0))
            for part in (f"/{at('x', x)}/", f"/{at('x', x)}/{at('y', y)}/", whole, f"{whole[:-len(FILE)]}{at('z', 1)}"):
                assert answer(flash, part) == answer(stock, part), part


def test_after_a_change(servers, roots):
    """A link on the way gets a longer way to the same directory, and files behind it are denied."""
    stock, flash = servers
    real = roots[1]
    short, path = real / at("x", 10), f"/{at('x', 11)}/{at('y', 20)}/{FILE}"
    assert answer(stock, path) == answer(flash, path) == (200, b"page\n")
    was = os.readlink(short)
    try:
        seen = []
        for target in ("w1", was, "w12", "w13", was):
            (real / "new").symlink_to(target)
            os.rename(real / "new", short)
            expected = answer(stock, path)
            seen.append(expected[0])
            wait_for(lambda: answer(flash, path) == expected, f"{path} by {target} to be {expected}", 3)
        assert (seen[0], seen[1], seen[2], seen[4]) == (403, 200, 403, 200), "the test itself"
    finally:
        short.unlink()
        short.symlink_to(was)
