# SPDX-License-Identifier: Apache-2.0
"""CheckSpelling: an absent name is corrected as by a stock httpd, also just after a name was made or has gone."""

import os
import random
import shutil
from urllib.parse import quote

import pytest

import tree
from fetch import Client
from httpd import MODULES_DIR
from test_walk_calls import LIMITS

KINDS = {"all": "CheckSpelling On", "case": "CheckSpelling On\nCheckCaseOnly On", "stem": "CheckSpelling On\nCheckBasenameMatch Off",
         "off": "CheckSpelling Off", "none": "", "accepts": "CheckSpelling On\nAcceptPathInfo On"}
NAMES = ("file.txt", "File.html", "letter", "ab", "a", ".hidden", "two.dots.txt", "long-name-of-a-file.tar.gz", "ä.txt", "sub")
LETTERS = "aftx.-Ä"
CHANGES = 8
TIMES = 4


def wrong(name, source):
    """The name with a mistake or two."""
    for _ in range(source.choice((1, 1, 1, 2))):
        at = source.randrange(len(name) + 1)
        kind = source.choice(("case", "swap", "drop", "add", "typo", "stem", "end"))
        if kind == "case":
            name = name.swapcase()
        elif kind == "swap":
            name = name[:at] + name[at:at + 2][::-1] + name[at + 2:]
        elif kind == "drop":
            name = name[:at] + name[at + 1:]
        elif kind == "stem":
            name = name.split(".")[0] + source.choice(("", ".doc", ".tar.gz"))
        elif kind == "end":
            name += source.choice(("x", "xx", ".", "/more"))
        else:
            name = name[:at] + source.choice(LETTERS) + name[at + (kind == "typo"):]
    return name


def make(root):
    for kind in KINDS:
        for name in NAMES:
            tree.put(root / kind / (f"{name}/in.txt" if name == "sub" else name), f"{name}\n")
        os.symlink("nowhere", root / kind / "dangling")
    shutil.copytree(root / "all", root / "access", symlinks=True)
    tree.put(root / "access/.htaccess", "CheckSpelling On\n")
    return root


@pytest.fixture(scope="module", params=("prefork", "event"))
def servers(lab, base, request):
    root = make(base / f"www-{request.param}")
    config = f"LoadModule speling_module {MODULES_DIR}/mod_speling.so\n<Directory {root}>\nAllowOverride All\n</Directory>\n" + "".join(
        f"<Directory {root}/{kind}>\n{text}\n</Directory>\n" for kind, text in KINDS.items())
    options = dict(mpm=request.param, limits=LIMITS[request.param], config=config)
    stock = lab.stock(f"stock-{request.param}", root, **options).start()
    flash = lab.under_test(f"flash-{request.param}", root, **options)
    yield stock, flash, root
    lab.end()


def ask(client, path):
    client.conn.request("GET", path, headers={"Host": client.host})
    answer = client.conn.getresponse()
    where = answer.headers["Location"]
    return answer.status, where and where.replace(f":{client.conn.port}", ""), answer.read().replace(str(client.conn.port).encode(), b"")


def compare(stock, flash, paths):
    """Statuses that were seen."""
    with Client(stock.port) as theirs, Client(flash.port) as ours:
        seen = set()
        for path in paths:
            expected = ask(theirs, path)
            assert ask(ours, path) == expected, path
            seen.add(expected[0])
    return seen


def test_names_are_corrected_as_by_stock(servers):
    stock, flash, _ = servers
    source = random.Random(20)
    kinds = (*KINDS, "access")
    paths = [quote(f"/{kind}/{wrong(name, source)}") for kind in kinds for name in (*NAMES, "dangling") for _ in range(TIMES)]
    seen = compare(stock, flash, paths + [f"/{kind}/nothing-like-it" for kind in kinds] * 2)
    assert {200, 300, 301, 404} <= seen, seen


@pytest.mark.needs_flashpache
def test_a_name_that_was_made_or_has_gone_counts_at_once(servers):
    stock, flash, root = servers
    asked = ["/all/mistaken.txt"] * 3
    assert compare(stock, flash, asked) == {404}
    for number in range(CHANGES):
        made = tree.put(root / "all" / ("Mistaken.txt", "mistkaen.txt", "mistaken.html", "mistaen.txt")[number % 4], "x")
        assert compare(stock, flash, asked) <= {300, 301}, number
        made.unlink()
        assert compare(stock, flash, asked) == {404}, number
