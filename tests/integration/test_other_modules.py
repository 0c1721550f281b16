# SPDX-License-Identifier: Apache-2.0
"""Modules that live in the same hooks behave as before; where a child takes on another
identity for each request, Flashpache stays away."""

import os

import pytest

import tree
from fetch import Client
from httpd import MODULES_DIR, USER

ITK = MODULES_DIR / "mpm_itk.so"


@pytest.fixture(scope="module")
def www(base):
    root = base / "other-www"
    tree.put(root / "index.html", b"the root\n")
    tree.put(root / "Spelled.html", b"spelled right\n")
    tree.put(root / "page.html.en", b"english\n")
    tree.put(root / "page.html.de", b"deutsch\n")
    for host in ("one.test", "two.test"):
        tree.put(root / "hosts" / host / "docs" / "index.html", host.encode() + b"\n")
        tree.put(root / "hosts" / host / "docs" / ".htaccess", f"Header set X-Host {host}\n".encode())
    tree.put(root / "homes" / USER / "index.html", b"at home\n")
    tree.put(root / "homes" / USER / "secret" / ".htaccess", b"Require all denied\n")
    tree.put(root / "homes" / USER / "secret" / "file.html", b"secret\n")
    return root


@pytest.fixture(scope="module")
def servers(lab, www):
    config = f"""<Directory {www}>
AllowOverride All
Options FollowSymLinks MultiViews Indexes
</Directory>
CheckSpelling On
AddLanguage en .en
AddLanguage de .de
UserDir {www}/homes
"""
    vhosts = [(["localhost"], ""),
              (["one.test", "two.test", "none.test"], f"UseCanonicalName Off\nVirtualDocumentRoot {www}/hosts/%0/docs")]
    options = dict(vhosts=vhosts, config=config, extra_modules=("userdir", "speling", "vhost_alias"))
    return (lab.stock("stock", www, **options).start(),
            lab.under_test("flash", www, daemon_settings={"ttl_ms": 60000}, **options))


@pytest.mark.parametrize("host,path,status", [
    ("localhost", "/Spelled.html", 200),
    ("localhost", "/spelled.html", 301),
    ("localhost", "/Speled.html", 301),
    ("localhost", "/nothing-like-it.html", 404),
    ("localhost", "/page", 200),
    ("localhost", "/page.html", 200),
    ("localhost", f"/~{USER}/", 200),
    ("localhost", f"/~{USER}", 301),
    ("localhost", f"/~{USER}/none", 404),
    ("localhost", f"/~{USER}/secret/file.html", 403),
    ("localhost", "/~nobody-of-that-name/", 404),
    ("one.test", "/", 200),
    ("one.test", "/index.html", 200),
    ("two.test", "/index.html", 200),
    ("two.test", "/missing", 404),
    ("none.test", "/index.html", 404),
])
def test_same_as_stock(servers, host, path, status):
    stock, flash = servers
    with Client(stock.port, host=host) as client:
        expected = client.get(path)
    assert expected[0] == status, "the test itself: this is what stock answers"
    with Client(flash.port, host=host) as client:
        for number in range(3):
            assert client.get(path) == expected, f"pass {number}"


@pytest.mark.needs_flashpache
@pytest.mark.skipif(not ITK.exists(), reason="needs libapache2-mpm-itk")
@pytest.mark.skipif(os.getuid() != 0, reason="needs root: mpm-itk changes identities")
def test_with_mpm_itk_flashpache_stays_off(lab, www):
    server = lab.under_test("itk", www, mpm="prefork", config=f"LoadModule mpm_itk_module {ITK}\n"
                            f"AssignUserID {USER} {USER}\n")
    with Client(server.port) as client:
        assert client.get("/index.html") == (200, b"the root\n")
    entry = server.wait_entries(1)[0]
    assert (entry.note, entry.reason) == ("bypass", "disabled")
    assert "FP0103" in server.error_text()


@pytest.mark.needs_flashpache
def test_with_chroot_dir_flashpache_stays_off(lab, www):
    server = lab.under_test("chroot", www, config="ChrootDir /\n")
    with Client(server.port) as client:
        assert client.get("/index.html") == (200, b"the root\n")
    entry = server.wait_entries(1)[0]
    assert (entry.note, entry.reason) == ("bypass", "disabled")
    assert "FP0103" in server.error_text()
