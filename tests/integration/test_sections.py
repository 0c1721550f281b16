# SPDX-License-Identifier: Apache-2.0
"""Sections that are merged once, before there are children: each file gets those that core's walk would find for it."""

import os

import pytest

import c_module
import tree
from compare import LOG_FORMAT, Ask, differences, told
from fetch import Client
from httpd import user_ids
from waiting import wait_for

SETTLE_S = 20
KNOWN = 4           # requests until an answer, and a parsed access file, are known
FILES = ("f.txt", "a/f.txt", "a/b/f.txt", "a/b/c/f.txt", "a/b/c/single.txt", "a/b/other.txt", "abc/f.txt", "wild/one/f.txt",
         "wild/one/two/f.txt", "wild/none/f.txt", "match/f.txt", "match/secret/f.txt", "owner/f.txt", "owner/deep/f.txt",
         "denied/f.txt", "denied/open/f.txt", "ht/f.txt", "ht/deep/f.txt", "ht/inner/f.txt",
         "ht/section/f.txt", "ht/nolinks/f.txt", "ht/off/f.txt", "ht/conditional/f.txt", "user/f.txt",
         "dash/f.txt", "dash/-/f.txt", "dash/-/-/f.txt", "dashes/f.txt", "dashes/-/-/f.txt", "dashes/ht/f.txt", "ht/asked/f.txt",
         "ht/asked/g.txt", "twice/f.txt", "pages/deep/f.txt", "pages/deep/hidden.txt", "listed/f.txt")
# Each section and access file leaves its name in a header, in the order of the merge.
MARK = 'Header append X-Sections "{}"\n'


def section(path, name, more=""):
    return f"<Directory {path}>\n{MARK.format(name)}{more}</Directory>\n"


def config(root):
    return "".join((
        section("/", "top"), section(root, "root", "AllowOverride None\nOptions FollowSymLinks\n"),
        section(f"{root}/a/b", "b"), section(f"{root}/a/b/c/single.txt", "a file"), section(f"{root}/a/b/c/", "c"),
        section(f"{root}/a", "a", "<Files other.txt>\nHeader append X-Sections \"Files\"\n</Files>\n"),
        section(f"{root}/wild/o*", "wild", "Options -Indexes\n"), section(f"{root}/wild/*/two", "wild below"),
        f'<DirectoryMatch "^{root}/match/(?<WHAT>s[a-z]*)">\n{MARK.format("match")}Header set X-What "%{{MATCH_WHAT}}e"\n'
        "</DirectoryMatch>\n",
        section(f"{root}/owner", "owner", "Options -FollowSymLinks +SymLinksIfOwnerMatch\n"),
        section(f"{root}/denied", "denied", "Require all denied\n"),
        section(f"{root}/denied/open", "open", "Require all granted\n"),
        section(f"{root}/pages", "pages", "Options +Includes\nAddOutputFilter INCLUDES .shtml\n"),
        section(f"{root}/pages/deep/hidden.txt", "hidden", "Require all denied\n"),
        section(f"{root}/ht", "ht", "AllowOverride All\nOptions +Includes\nAddOutputFilter INCLUDES .shtml\n"),
        section(f"{root}/ht/section", "below"), section(f"{root}/ht/off", "off", "AllowOverride None\n"),
        section(f"{root}/listed", "listed", "AllowOverride None\nAllowOverrideList AddType\n"),
        section(f"{root}/dash", "dash"), section(f"{root}/dash/-", "no name of a file", "Require all denied\n"),
        section(f"{root}/dashes", "dashes", "AllowOverride All\n"), section(f"{root}/dashes/-/-", "deep", "Require all denied\n"),
        section(f"{root}/dashes/ht/-", "beside an access file", "Require all denied\n"),
        section(f"{root}/twice", "first"), section(f"{root}/twice", "second"),
        section(f"{root}/user", "user", f"AuthType Basic\nAuthName probe\nAuthUserFile {root.parent}/none\nRequire user no\n"
                f"<If \"%{{QUERY_STRING}} == 'yes'\">\nRequire all granted\n</If>\n"),
        f'<Location /a/b>\n{MARK.format("Location")}</Location>\n'))


def access_files(root):
    for name, more in (("ht", ""), ("ht/inner", "<Files f.txt>\nHeader set X-Inner yes\n</Files>\n"), ("ht/section", ""),
                       ("ht/nolinks", "Options -FollowSymLinks\n"), ("ht/off", "never parsed\n"),
                       ("dashes/ht", ""),
                       # Questions about other files, before and after the access file is parsed to be kept.
                       ("ht/asked", "<If \"-f '%{REQUEST_FILENAME}.gz'\">\nHeader set X-If yes\n</If>\nRewriteEngine On\n"
                        "RewriteCond %{REQUEST_FILENAME}.webp -f\nRewriteRule ^ - [E=FOUND:yes]\n"),
                       ("ht/conditional", "<If \"%{QUERY_STRING} == 'yes'\">\nHeader set X-If yes\n</If>\n")):
        tree.put(root / name / ".htaccess", MARK.format(f"{name}/.htaccess") + more)
    tree.put(root / "listed/.htaccess", "AddType text/probe .txt\n")
    for name in ("f.txt.gz", "g.txt.webp"):
        tree.put(root / "ht/asked" / name, name)


@pytest.fixture(scope="module")
def root(base):
    root = base / "sections"
    for name in FILES:
        tree.put(root / name, f"{name}\n")
    access_files(root)
    os.symlink("f.txt", root / "owner/link.txt")
    os.symlink(root / "a/f.txt", root / "owner/foreign.txt")
    os.lchown(root / "owner/foreign.txt", *user_ids())
    os.symlink("f.txt", root / "ht/nolinks/link.txt")
    os.symlink("../a/b", root / "ht/directory")
    # Core takes what lies in the page's own directory for known, and applies no section that has the file's name.
    parts = "".join(f'<!--#include virtual="{part}" -->|'
                    for part in ("hidden.txt", "f.txt", "/ht/f.txt", "/ht/deep/f.txt", "/denied/f.txt", "/user/f.txt"))
    for directory in ("ht", "pages/deep"):
        tree.put(root / directory / "page.shtml", parts)
    return root


URLS = (*FILES, *(f"{name}?yes" for name in ("ht/conditional/f.txt", "user/f.txt")), "owner/link.txt", "owner/foreign.txt",
        "ht/nolinks/link.txt", "ht/directory/f.txt", "ht/page.shtml", "pages/deep/page.shtml", "a/b", "a/b/",
        "a/f.txt/more", "a/none.txt", "a//b/./f.txt", "a/b/../f.txt", "ht/deep/../f.txt")


@pytest.fixture(scope="module", params=("prefork", "event"))
def servers(lab, base, root, request):
    options = dict(mpm=request.param, config=LOG_FORMAT + config(root))
    yield (lab.stock(f"stock-{request.param}", root, **options).start(),
           lab.under_test(f"flash-{request.param}", root, daemon_settings={"ttl_ms": 60000}, **options))
    lab.end()


def test_each_file_has_its_sections(servers):
    asks = [Ask("localhost", f"/{url}") for url in URLS]
    for _ in range(KNOWN):
        found = differences(*servers, asks)
        assert not found, told(found)


def test_an_access_file_comes_and_goes(servers, root):
    """Sections that were merged without it, or with it, serve no request after that."""
    asks = [Ask("localhost", f"/ht/{name}") for name in ("deep/f.txt", "f.txt", "inner/f.txt")]
    path = root / "ht/deep/.htaccess"
    for number in range(KNOWN):
        for text in (MARK.format(number), f"{MARK.format(number)}Require all denied\n", None):
            path.unlink(missing_ok=True)
            if text is not None:
                tree.put(path, text)
            for _ in range(KNOWN):
                found = differences(*servers, asks)
                assert not found, told(found)


def merges(server, url):
    with Client(server.port) as client:
        client.conn.request("GET", f"{url}?merges")
        answer = client.conn.getresponse()
        answer.read()
        return int(answer.headers["X-Merges"])


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("mpm", ("prefork", "event"))
def test_a_known_file_needs_no_merge(lab, base, mpm):
    """Neither of sections nor of an access file; core merges for each request."""
    root = base / f"merges-{mpm}"
    for name in ("plain/a/f.txt", "ht/a/f.txt"):
        tree.put(root / name, "text\n")
    tree.put(root / "ht/.htaccess", "AddType text/probe .probe\n")
    text = (c_module.probe(base / f"probe-{mpm}") + section("/", "top", "ProbeMerges\n")
            + section(root, "root", "AllowOverride All\nProbeMerges\n"))
    options = dict(mpm=mpm, config=text)
    stock = lab.stock(f"merges-stock-{mpm}", root, **options).start()
    ours = lab.under_test(f"merges-{mpm}-flash", root, **options)
    for url in ("/plain/a/f.txt", "/ht/a/f.txt"):
        assert merges(stock, url) > 1
        wait_for(lambda url=url: merges(ours, url) == 0, f"{url} to need none", SETTLE_S)
    lab.end()


def assert_as_stock(lab, name, root, url, text, **options):
    text = LOG_FORMAT + section("/", "top") + section(root, "root", "AllowOverride None\nOptions FollowSymLinks\n") + text
    stock = lab.stock(f"{name}-stock", root, config=text, **options).start()
    ours = lab.under_test(f"{name}-flash", root, config=text, daemon_settings={"ttl_ms": 60000}, **options)
    for _ in range(KNOWN):
        found = differences(stock, ours, [Ask("localhost", url)])
        assert not found, told(found)
    lab.end()


@pytest.mark.parametrize("old_hook", (False, True))
def test_an_error_document_is_authorised_as_in_stock(lab, base, old_hook):
    """Where a module has a hook for access of httpd 2.2's kind, core keeps less of an earlier walk."""
    root, module = base / f"error-{old_hook}", base / f"module-{old_hook}"
    for name in ("deep/f.txt", "deep/error.txt"):
        tree.put(root / "denied" / name, f"{name}\n")
    module.mkdir()
    load = f"LoadModule access_hook_module {c_module.compiled(module, c_module.HERE / 'access_hook.c')}\n" if old_hook else ""
    assert_as_stock(lab, f"error-{old_hook}", root, "/denied/deep/f.txt",
                    load + section(f"{root}/denied", "denied", f"AuthType Basic\nAuthName probe\nAuthUserFile {base}/none\n"
                                   "Require user no\nErrorDocument 401 /denied/deep/error.txt\n"))


def put_long(root, length):
    """Makes a file whose path has so many bytes, and returns what stands behind the root."""
    rest = length - len(str(root))
    names = ["d" * 200] * ((rest - 220) // 201)
    rest -= 201 * len(names)
    names += ["e" * (rest // 2 - 1), "f" * (rest - rest // 2 - 1)]
    place = os.open(root, os.O_RDONLY)
    for name in names[:-1]:
        os.mkdir(name, dir_fd=place)
        below = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(os.open(names[-1], os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=place))
    os.close(place)
    return "/" + "/".join(names)


@pytest.mark.parametrize("denied", (False, True))
@pytest.mark.parametrize("length", (4091, 4092, 4093, 4094, 4095))
def test_a_path_that_core_refuses(lab, base, length, denied):
    """It is as long as a path can be; a rule makes it of a shorter URL."""
    root = base / f"long-{length}-{denied}"
    tree.put(root / "error.txt", "error\n")
    url = put_long(root, length)
    no = "<Files \"f*\">\nRequire all denied\n</Files>\n" if denied else ""
    rules = f"RewriteEngine On\nRewriteRule ^/long(.*)$ {root}$1\n"
    assert_as_stock(lab, f"long-{length}-{denied}", root, f"/long{url}", f"{no}ErrorDocument 403 /error.txt\n",
                    vhosts=[(["localhost"], rules)])
