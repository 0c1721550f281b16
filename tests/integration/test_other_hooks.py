# SPDX-License-Identifier: Apache-2.0
"""A module of another author that runs httpd's hooks again."""

import pytest

import c_module
import tree
from fetch import Client

ROUNDS = 3
PATHS = {"/d/page.txt": 200, "/d/none.txt": 404, "/d/": 200, "/d/page.txt/more": 404, "/none/none/none": 404,
         "/d/denied.txt": 403}


@pytest.fixture(scope="module")
def servers(lab, base):
    root = base / "twice"
    tree.put(root / "d/.htaccess", "DirectoryIndex none.html page.txt\n<Files denied.txt>\nRequire all denied\n</Files>\n")
    tree.put(root / "d/page.txt", "page\n")
    tree.put(root / "d/denied.txt", "denied\n")
    config = f"{c_module.probe(base / 'module')}<Directory {root}>\nAllowOverride All\n</Directory>\n"
    return (lab.stock("stock", root, config=config).start(),
            lab.under_test("flash", root, config=config, daemon_settings={"ttl_ms": 60000}))


@pytest.mark.parametrize("path", PATHS)
def test_map_to_storage_run_twice(servers, path):
    stock, ours = servers
    for number in range(ROUNDS):
        with Client(stock.port) as client:
            expected = client.get(f"{path}?twice")
        assert expected[0] == PATHS[path], "the test itself: this is what stock answers"
        with Client(ours.port) as client:
            assert client.get(f"{path}?twice") == expected, number


def test_no_child_ended(lab):
    lab.end()
