# SPDX-License-Identifier: Apache-2.0
"""SymLinksIfOwnerMatch holds while another process swaps the links: foreign content never gets out.

Stock has a race between its look and its open. Flashpache compares the owners of the very links that led to the
descriptor, so ours must not lose it, not even once.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import tree
from fetch import Client
from forms import chosen
from httpd import user_ids
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

SECONDS = chosen(1.5, 4)
THREADS = 12
LEAST = 2000            # requests; fewer would say little
OWN, FOREIGN = b"the owner's own content\n", b"another user's secret!!\n"
# Swaps a link atomically in a tight loop: argv is the link and its targets.
SWAPPER = """
import os, sys
link, *targets = sys.argv[1:]
uid = int(os.environ["LINK_UID"])
if os.path.lexists(link + ".new"):      # the one before was ended between two calls
    os.unlink(link + ".new")
while True:
    for target in targets:
        os.symlink(target, link + ".new")
        os.lchown(link + ".new", uid, uid)
        os.rename(link + ".new", link)
"""


class Swapping:
    """A process for each link, until the block ends."""

    def __init__(self, links, uid):
        self.links, self.uid = links, uid

    def __enter__(self):
        before = {link: os.lstat(link).st_ctime_ns for link in self.links}
        self.processes = [subprocess.Popen([sys.executable, "-c", SWAPPER, str(link), *targets],
                                           env={**os.environ, "LINK_UID": str(self.uid)})
                          for link, targets in self.links.items()]
        # The one before may have left a link that leads nowhere.
        try:
            wait_for(lambda: all(os.lstat(link).st_ctime_ns != ctime for link, ctime in before.items()), "links to be swapped")
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        ended = [p.poll() for p in self.processes]
        for process in self.processes:
            process.kill()
            process.wait()
        assert ended == [None] * len(ended), "a swapper ended by itself"


@pytest.fixture(scope="module")
def root(base):
    """own/ belongs to www-data, as do the links; foreign/ to root. Same lengths and times."""
    root = base / "race"
    uid, gid = user_ids()
    for name, text in (("own", OWN), ("foreign", FOREIGN)):
        for path in ("file.txt", "sub/file.txt", "variant.txt", "rights/variant.txt"):
            tree.put(root / name / path, text)
        tree.put(root / name / "page.shtml", "<!--#include file=\"variant.txt\" -->")
        tree.put(root / name / "rights/.htaccess", "Options SymLinksIfOwnerMatch MultiViews\n")
    tree.put(root / "foreign/alone.txt", FOREIGN)
    tree.put(root / "virtual.shtml", "<!--#include virtual=\"/both/dir/variant\" -->")
    for path in (root / "own", *(root / "own").rglob("*")):
        os.chown(path, uid, gid)
    for name in ("byfile", "bydir", "both"):
        (root / name).mkdir()
    os.symlink("../own/file.txt", root / "byfile/link")
    os.symlink("../own", root / "bydir/link")
    os.symlink("../own", root / "both/dir")
    for link in ("byfile/link", "bydir/link", "both/dir"):
        os.lchown(root / link, uid, gid)
    return root


@pytest.fixture(scope="module", params=(1, 50, None), ids=("ttl1", "ttl50", "auto"))
def server(lab, root, module_path, flashpached_program, request):
    """None: httpd's own daemon, with the usual settings."""
    override = f"<Directory {root}>\nOptions SymLinksIfOwnerMatch MultiViews Includes\nAllowOverride All\n</Directory>\n" \
               "AddOutputFilter INCLUDES .shtml\n"
    vhosts = [(["owner"], override)]
    if request.param is None:
        yield lab.stock("auto", root, mpm="event", vhosts=vhosts, module=module_path, admission=None,
                        config=f"FlashpacheDaemonProgram {flashpached_program}\n").start()
    else:
        yield lab.under_test(f"flash-{request.param}", root, mpm="event", vhosts=vhosts, daemon_settings={"ttl_ms": request.param})
    lab.end()


PATHS = ("/byfile/link", "/bydir/link/file.txt", "/bydir/link/sub/file.txt", "/both/dir/file.txt", "/both/dir/variant",
         "/bydir/link/variant", "/bydir/link/page.shtml", "/virtual.shtml", "/bydir/link/rights/variant", "/bydir/link/alone")


def ask_until(port, end):
    found = Counter()
    with Client(port, host="owner") as client:
        while time.monotonic() < end or sum(found.values()) < LEAST / THREADS:
            for path in PATHS:
                status, body = client.get(path)
                kind = "FOREIGN" if FOREIGN in body else "own" if body == OWN else "other"
                found[path, status, kind] += 1
    return found


def test_foreign_content_never_gets_out(server, root):
    uid, _ = user_ids()
    links = {root / "byfile/link": ("../own/file.txt", "../foreign/file.txt"),
             root / "bydir/link": ("../own", "../foreign"), root / "both/dir": ("../foreign", "../own")}
    end = time.monotonic() + SECONDS
    with Swapping(links, uid), ThreadPoolExecutor(THREADS) as pool:
        found = sum(pool.map(lambda _: ask_until(server.port, end), range(THREADS)), Counter())
    print("\n" + "\n".join(f"{count:7} {what}" for what, count in sorted(found.items())))
    wrong = {w: n for w, n in found.items()
             if (w[1], w[2]) not in ((200, "own"), (403, "other"), (404, "other"))
             # A page says that its part could not be included.
             and not (w[0].endswith(".shtml") and w[1:] == (200, "other"))}
    assert not wrong
    kinds = {kind for _, _, kind in found}
    assert kinds == {"own", "other"}, "the race was never met: it was always the same target"
