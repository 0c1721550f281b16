# SPDX-License-Identifier: Apache-2.0
"""Programs read their own latest writes: through the server, and beside it. Each answer is that of a stock httpd on
the same tree at that moment.

The full form makes ten thousand tries of each, with prefork as well.
"""

import itertools
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import acl
import filesystems
import writes_kit
from forms import chosen, full_where, never_where
from freshness import WATCHED, settings
from writes_kit import OVERRIDES, Compared, Site, Tree

pytestmark = [pytest.mark.skipif(not WATCHED, reason="FLASHPACHE_WATCH=ttl: nothing is told"),
              full_where(lambda values: values["site"].startswith("prefork"))]
TRIES = chosen(60, 10_000)
LANES = 10
KINDS = [f"{mpm}-{where}" for mpm in ("event", "prefork") for where in filesystems.KINDS]
# A file made by two servers has two times.
WITHOUT_TIME = ("Content-Length",)
IMMUTABLE = "i"
# slowfs has neither access control lists nor flags.
not_on_fuse = never_where(lambda values: values["site"].endswith("fuse"))


@pytest.fixture(scope="module", params=KINDS)
def site(request, base, lab, slow_directory):
    mpm, where = request.param.split("-", 1)
    below = base / mpm
    below.mkdir(exist_ok=True)
    with filesystems.directory(where, below, slow_directory) as root:
        tree = Tree(root)
        config = tree.config(writes_kit.make_directory(below / f"{where}-beside")) + "KeepAliveTimeout 7200\n"
        options = {"mpm": mpm, "config": config, "vhosts": tree.vhosts(),
                   "extra_modules": ("dav", "dav_fs", writes_kit.CGI_MODULE[mpm])}
        stock = lab.stock(f"stock-{request.param}", root, **options).start()
        ours = lab.under_test(f"ours-{request.param}", root, daemon_settings=settings(reported=True), **options)
        made = Site(tree, stock.port, ours.port)
        yield made
        lab.end()
        made.close()


@pytest.fixture(params=OVERRIDES)
def override(request):
    return request.param


@pytest.fixture
def compared(request):
    return Compared(request.node.name)


def both(site):
    """(a server's connection, names of its own)"""
    return (site.ours, "ours"), (site.stock, "stock")


def check_stock(reply, text):
    """The test works: stock shows the text, or 404 for None."""
    assert (reply.status, reply.body if text else None) == ((200, text.encode()) if text else (404, None)), reply


def redirected(site, compared, override, lane):
    """A lane's share of the tries, with files and connections of its own."""
    cycle = itertools.cycle(("write", "write", "replace", "remove"))
    with site.lane() as connections:
        for number in range(TRIES // LANES):
            action, replies = next(cycle), []
            for connection, name in zip(connections, (f"ours{lane}", f"stock{lane}")):
                file, url = site.tree.at(override, "cgi") / name, f"/{override}/cgi/{name}"
                connection.ask(url)
                replies.append(connection.ask(f"/answering?{action}&{file}&{number}&{url}"))
            compared.add(f"{action} {number}", *replies, headers=WITHOUT_TIME)
            check_stock(replies[1], None if action == "remove" else f"{number}\n")


def test_a_handler_redirects_to_what_it_wrote(site, override, compared):
    """One request: a CGI writes, and answers with the file's URL. httpd waits some milliseconds for each
    CGI's end, so several go on at once."""
    with ThreadPoolExecutor(LANES) as pool:
        for done in [pool.submit(redirected, site, compared, override, lane) for lane in range(LANES)]:
            done.result()
    compared.check()


def asked_after(site, compared, override, methods, get_before):
    """Each method in turn, then at once a GET on the same connection."""
    cycle = itertools.cycle(methods)
    for number in range(TRIES):
        method, replies, done, text = next(cycle), [], [], f"text {number:08d}\n"
        for connection, name in both(site):
            url = f"/{override}/dav/{name}.txt"
            for _ in range(get_before):
                connection.ask(url)
            done.append(connection.ask(url, method, text.encode() if method == "PUT" else b"").status)
            replies.append(connection.ask(url))
        assert done[0] == done[1] and done[0] in (201, 204), (method, number, done)
        compared.add(f"{method} {number}", *replies, headers=WITHOUT_TIME)
        check_stock(replies[1], text if method == "PUT" else None)
    compared.check()


def test_put_then_get(site, override, compared):
    asked_after(site, compared, override, ("PUT",), 1)


def test_delete_then_get(site, override, compared):
    asked_after(site, compared, override, ("PUT", "DELETE"), 2)


def ask_both(site, compared, what, url):
    """Nothing changes meanwhile. Returns stock's reply."""
    ours, stock = site.ours.ask(url), site.stock.ask(url)
    compared.add(what, ours, stock)
    return stock


def test_a_rewriting_that_asks_for_a_file(site, override, compared):
    """Another process removes the cached page and makes it again."""
    page = site.tree.at(override, "pages") / "page.html"
    cached = site.tree.root / "cache" / override / "pages/page.html"
    page.write_text("the page itself\n")
    url = f"/{override}/pages/page.html"
    for number in range(TRIES // 4):
        for what, *arguments in ((writes_kit.write, f"cached {number:08d}\n"),
                                 (writes_kit.replace, f"again {number:08d}\n"), (os.unlink,),
                                 (writes_kit.replace, f"another {number:08d}\n")):
            site.hand.do(what, str(cached), *arguments)
            stock = ask_both(site, compared, f"{what.__name__} {number}", url)
            check_stock(stock, arguments[0] if arguments else "the page itself\n")
            ask_both(site, compared, f"{what.__name__} {number}, once more", url)
    cached.unlink()
    compared.check()


def needs_lists(path):
    try:
        acl.deny(path)
        acl.allow(path)
    except OSError as problem:
        pytest.skip(f"needs access control lists at {path}: {problem}")


def rights(site, override, kind):
    """(directory, its file, the file's URL) of a test's own."""
    directory = site.tree.at(override, "rights") / kind
    (directory / "in").mkdir(parents=True, exist_ok=True)
    (directory / "in/file.txt").write_text("file\n")
    return directory, directory / "in/file.txt", f"/{override}/rights/{kind}/in/file.txt"


@not_on_fuse
@pytest.mark.parametrize("of", ("directory", "file"))
def test_an_access_control_list(site, override, compared, of):
    """It changes neither mode nor owner, and takes effect at once, as does its removal."""
    directory, file, url = rights(site, override, of)
    needs_lists(directory)
    at = str(directory if of == "directory" else file)
    for number in range(TRIES // 2):
        for what, status in ((writes_kit.deny, 403), (writes_kit.allow, 200)):
            site.ours.ask(url)
            site.hand.do(what, at)
            assert ask_both(site, compared, f"{what.__name__} {number}", url).status == status
    compared.check()


def change_flag(sign, path):
    return subprocess.run(["chattr", sign + IMMUTABLE, path], capture_output=True, text=True).stderr


@not_on_fuse
@pytest.mark.skipif(not shutil.which("chattr"), reason="needs chattr (package e2fsprogs)")
def test_a_flag_changes_nothing_but_the_change_time(site, override, compared):
    """Between them the file changes: the answer kept from before the flag must not come."""
    _, file, url = rights(site, override, "flag")
    problem = change_flag("+", file)
    if problem:
        pytest.skip(f"needs flags at {file}: {problem}")
    change_flag("-", file)
    for number in range(TRIES // 6):
        for what, *arguments in ((change_flag, "+", str(file)), (change_flag, "-", str(file)),
                                 (writes_kit.write, str(file), f"text {number:08d}\n")):
            site.hand.do(what, *arguments)
            ask_both(site, compared, f"{what.__name__} {arguments[0][:1]} {number}", url)
    compared.check()


@not_on_fuse
@pytest.mark.skipif(not shutil.which("setfacl"), reason="needs setfacl (package acl)")
def test_lists_are_those_of_setfacl(site):
    """The list that these tests set by a system call is the one that setfacl makes."""
    directory, _, _ = rights(site, "none", "program")
    needs_lists(directory)
    acl.deny(directory)
    ours = os.getxattr(directory, acl.NAME)
    acl.allow(directory)
    subprocess.run(["setfacl", "-m", "u:www-data:---", directory], check=True)
    assert os.getxattr(directory, acl.NAME) == ours
    subprocess.run(["setfacl", "-b", directory], check=True)
