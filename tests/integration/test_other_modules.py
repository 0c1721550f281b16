# SPDX-License-Identifier: Apache-2.0
"""Modules in the same hooks behave as before. Where a child takes on another identity for each request, Flashpache
stays off."""

import os
import shutil
import subprocess

import pytest

import c_module
import tree
from fetch import Client
from httpd import MODULES_DIR, USER, user_ids

GROUP = "deputy"
ITK = "mpm_itk.so"


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


def overrides(www):
    return f"<Directory {www}>\nAllowOverride All\n</Directory>\n"


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


def assert_off(server):
    """Everything is served, by httpd alone, and the log says why."""
    for path, expected in (("/index.html", 200), (f"/homes/{USER}/secret/file.html", 403)):
        with Client(server.port) as client:
            status, body = client.get(path)
        assert status == expected and (status == 403 or body == b"the root\n")
        entry = server.wait_entries(1)[-1]
        assert (entry.note, entry.reason) == ("bypass", "disabled")
    assert "FP0103" in server.error_text()


@pytest.fixture
def itk(tmp_path):
    """The module. The package is only unpacked: if it were installed, the machine's own httpd would use it."""
    if os.getuid() != 0:
        pytest.skip("needs root: mpm-itk changes identities")
    if (MODULES_DIR / ITK).exists():
        return MODULES_DIR / ITK
    done = subprocess.run("apt-get -q download libapache2-mpm-itk && dpkg -x *.deb .", shell=True, cwd=tmp_path,
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs libapache2-mpm-itk: {done.stderr[-300:]}")
    return next(tmp_path.rglob(ITK))


@pytest.mark.needs_flashpache
def test_with_mpm_itk_flashpache_stays_off(lab, www, outcome, itk):
    server = lab.under_test("itk", www, mpm="prefork", config=f"LoadModule mpm_itk_module {itk}\n"
                            f"AssignUserID {USER} {USER}\n{overrides(www)}")
    assert_off(server)
    outcome(GROUP, "httpd with mpm-itk", 2, note="Flashpache stays off")


# httpd knows a module by the name of its source.
CHANGERS = ("mpm_itk", "mod_ruid2", "peruser", "itk", "mod_apparmor", "mod_selinux", "mod_chroot")
SOURCE = """#include <httpd.h>
#include <http_config.h>
AP_DECLARE_MODULE(changer) = { STANDARD20_MODULE_STUFF };
"""


def make_module(directory, name):
    """A module that does nothing, with the name of one that changes identities."""
    source = directory / f"{name}.c"
    source.write_text(SOURCE)
    return c_module.compiled(directory, source)


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("name", CHANGERS)
def test_with_a_module_that_changes_identities_flashpache_stays_off(lab, www, tmp_path, outcome, name):
    module = make_module(tmp_path, name)
    server = lab.under_test(f"with-{name}", www, mpm="prefork",
                            config=f"LoadModule changer_module {module}\n{overrides(www)}")
    assert_off(server)
    outcome(GROUP, f"httpd with a module of the name {name}", 2, note="Flashpache stays off")


@pytest.fixture
def server_with(lab, www):
    """Starts an httpd whose user has one capability, as a service manager may give it."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root, who has the capability to give, and setpriv (util-linux)")

    def start(capability):
        daemon = lab.daemon(f"{capability}-daemon").start()
        server = lab.flash(capability, www, daemon.socket, config=overrides(www))
        shutil.chown(server.dir, *user_ids())
        server.around = ["setpriv", f"--reuid={user_ids()[0]}", f"--regid={user_ids()[1]}", "--clear-groups",
                         f"--inh-caps=-all,+{capability}", f"--ambient-caps=-all,+{capability}", "--"]
        return server.start()
    return start


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("capability", ["dac_read_search", "dac_override"])
def test_with_a_capability_to_read_everything_flashpache_stays_off(server_with, www, outcome, capability):
    """The daemon gives up all capabilities: it would call unreadable what httpd may read."""
    tree.put(www / "closed" / "file.html", b"closed\n").parent.chmod(0o700)
    server = server_with(capability)
    assert_off(server)
    with Client(server.port) as client:
        assert client.get("/closed/file.html") == (200, b"closed\n")
    outcome(GROUP, f"httpd with the capability {capability}", 3, note="Flashpache stays off")


@pytest.mark.needs_flashpache
def test_with_another_capability_flashpache_works(server_with):
    server = server_with("net_bind_service")
    with Client(server.port) as client:
        assert client.get("/index.html") == (200, b"the root\n")
    assert server.wait_entries(1)[-1].note != "bypass" and "FP0103" not in server.error_text()


@pytest.mark.needs_flashpache
def test_with_chroot_dir_flashpache_stays_off(lab, base, www, outcome):
    """httpd's paths mean something else for the daemon."""
    jail = base / "jail"
    shutil.copytree(www, f"{jail}{www}")
    tree.put(www / "index.html", b"outside!\n")
    server = lab.under_test("chroot", www, mpm="prefork", config=f"ChrootDir {jail}\n{overrides(www)}")
    assert_off(server)
    outcome(GROUP, "httpd with ChrootDir", 2, note="Flashpache stays off")
