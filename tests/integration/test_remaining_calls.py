# SPDX-License-Identifier: Apache-2.0
"""Calls of httpd's own modules on the file system in a warm request: the table of docs/directives.md, "What
httpd still does itself". And FlashpacheIntercept, which answers most of them."""

import os
import pwd
import subprocess

import pytest

import sanitizer
import tree
from fetch import Client
from httpd import MODULES_DIR, USER
from test_walk_calls import LIMITS
from trace import PathTrace
from waiting import wait_for

REQUESTS, TRIES = 4, 5
SETTLED_S = 3.1
ENTRIES = 10
OWNERS = "Options -FollowSymLinks +SymLinksIfOwnerMatch"
INTERCEPT = "FlashpacheIntercept core mod_rewrite mod_userdir.c\n"
# path: (ours, with INTERCEPT, status)
CASES = {
    "multi/absent": (0, 0, 404),
    "multi/word": (3, 1, 200),                  # reads the directory, one stat a variant
    "listing/": (3 + ENTRIES, 3 + ENTRIES, 200),    # reads the directory, one stat an entry, . and .. included
    "ssi/page.shtml": (2, 0, 200),              # two included files: one stat each
    "speling/fil.txt": (1, 1, 301),             # reads the directory
    "speling/absent-thing": (1, 1, 404),        # reads it, too
    "tested/file.txt": (2, 0, 200),             # RewriteCond -F: core's stat and mod_rewrite's
    "asked/name.txt": (1, 0, 200),              # -F of an expression, a file elsewhere: core's stat of what was found
    "asked/url.txt": (0, 0, 200),               # -U
    "owners/link.txt": (1, 0, 200),             # the target of one link
    "owners/through/file.txt": (1, 0, 200),
    "~site/file.txt": (1, 0, 200),              # the first of two candidates
}
CONFIG = """LoadModule userdir_module {modules}/mod_userdir.so
LoadModule speling_module {modules}/mod_speling.so
AddOutputFilter INCLUDES .shtml
AddType text/html .shtml
UserDir {root}/none/*/www {root}/users/*/www
IndexOptions FancyIndexing
<Directory {root}>
AllowOverride All
Options +Indexes +Includes
</Directory>
<Directory {root}/multi>
Options +MultiViews
</Directory>
<Directory {root}/speling>
CheckSpelling On
</Directory>
<Directory {root}/owners>
{owners}
</Directory>
<Directory {root}/tested>
RewriteEngine On
RewriteCond %{{REQUEST_FILENAME}} -F
RewriteRule ^ - [E=there:1]
</Directory>
<Files name.txt>
<If "! -F '{root}/target/file.txt'">
Require all denied
</If>
</Files>
<Files url.txt>
<If "! -U '/target/file.txt'">
Require all denied
</If>
</Files>
"""


def make(root):
    for name in ("multi/word.html", "multi/word.txt", "ssi/a.txt", "ssi/b.txt", "speling/file.txt", "tested/file.txt", "owners/file.txt",
                 "asked/name.txt", "asked/url.txt", "target/file.txt", "owners/real/file.txt", "users/site/www/file.txt"):
        tree.put(root / name, f"{name}\n")
    tree.put(root / "ssi/page.shtml", "<!--#include file=\"a.txt\" --><!--#include file=\"b.txt\" -->\n")
    for number in range(ENTRIES):
        tree.put(root / f"listing/entry{number}", "x")
    os.symlink("file.txt", root / "owners/link.txt")
    os.symlink("real", root / "owners/through")
    for name in ("link.txt", "through", "file.txt", "real", "real/file.txt"):
        os.lchown(root / "owners" / name, pwd.getpwnam(USER).pw_uid, -1)
    return root


@pytest.fixture(scope="module", params=("prefork", "event"))
def servers(lab, base, request):
    root = make(base / f"www-{request.param}")
    options = dict(mpm=request.param, limits=LIMITS[request.param], config=CONFIG.format(root=root, modules=MODULES_DIR, owners=OWNERS))
    stock = lab.stock(f"stock-{request.param}", root, **options).start()
    flash = lab.under_test(f"flash-{request.param}", root, **options)
    options["config"] += INTERCEPT
    more = lab.under_test(f"more-{request.param}", root, **options)
    probe = root / "now"
    wait_for(lambda: tree.put(probe, "").stat().st_ctime > (root / "multi").stat().st_ctime + SETTLED_S, "the directories to be settled")
    probe.unlink()
    yield stock, flash, more, root
    lab.end()


def calls(server, root, path, status, log):
    """On paths, in each of some warm requests."""
    children = [pid for pid in server.pids() if pid != server.process.pid]
    with Client(server.port) as client:
        for _ in range(4):
            assert client.get(f"/{path}")[0] == status
        with PathTrace(children, log) as trace:
            for _ in range(REQUESTS):
                assert client.get(f"/{path}")[0] == status
        found = trace.calls(root)
    return len(found) / REQUESTS, found


def fewest(server, root, path, status, log, expected):
    """Of a few tries the first with no more calls than expected: on a busy machine an answer may come too late."""
    found = calls(server, root, path, status, log)
    for _ in range(TRIES - 1):
        if found[0] > expected:
            found = calls(server, root, path, status, log)
    return found


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("path", CASES)
def test_what_still_asks(servers, base, path):
    *servers, root = servers
    *expected, status = CASES[path]
    number = len(list(base.glob("calls*")))
    theirs, _ = calls(servers[0], root, path, status, base / f"calls{number}")
    ours = [fewest(server, root, path, status, base / f"calls{number + 1 + i}", expected[i]) for i, server in enumerate(servers[1:])]
    print(f"{path}: {theirs:g} without Flashpache, {ours[0][0]:g} with it, {ours[1][0]:g} with FlashpacheIntercept")
    assert [count for count, _ in ours] == expected, [lines for _, lines in ours]
    assert theirs > expected[0]


def swap(root, name, text):
    tree.put(root / "new", text)
    os.rename(root / "new", root / name)


def own(root, name, user):
    os.lchown(root / name, pwd.getpwnam(user).pw_uid, -1)


# path: changes, after each of which the answer is compared
CHANGES = {
    "multi/word": (lambda root: (root / "multi/word.html").unlink(), lambda root: swap(root, "multi/word.txt", "other\n"),
                   lambda root: tree.put(root / "multi/word.html", "again\n")),
    "ssi/page.shtml": (lambda root: swap(root, "ssi/a.txt", "other\n"), lambda root: (root / "ssi/b.txt").unlink(),
                       lambda root: tree.put(root / "ssi/b.txt", "again\n")),
    "tested/file.txt": (lambda root: (root / "tested/file.txt").unlink(), lambda root: tree.put(root / "tested/file.txt", "again\n")),
    "asked/name.txt": (lambda root: (root / "target/file.txt").unlink(), lambda root: tree.put(root / "target/file.txt", "again\n")),
    # -U asks whether access is allowed, not whether the file is there.
    "asked/url.txt": (lambda root: tree.put(root / "target/.htaccess", "Require all denied\n"), lambda root: (root / "target/.htaccess").unlink()),
    "owners/link.txt": (lambda root: own(root, "owners/file.txt", "root"), lambda root: own(root, "owners/link.txt", "root"),
                        lambda root: (root / "owners/file.txt").unlink(), lambda root: tree.put(root / "owners/file.txt", "again\n")),
    "owners/through/file.txt": (lambda root: own(root, "owners/real", "root"), lambda root: own(root, "owners/through", "root"),
                                lambda root: (root / "owners/through").unlink(), lambda root: os.symlink("..", root / "owners/through")),
    "~site/file.txt": (lambda root: tree.put(root / "none/site/www/file.txt", "first\n"), lambda root: (root / "none/site/www/file.txt").unlink(),
                       lambda root: (root / "none/site/www").rmdir()),
}


@pytest.mark.needs_flashpache
def test_changes_show_as_in_stock(servers):
    """At once, also where core's and modules' calls are answered."""
    *servers, root = servers
    clients = [Client(server.port) for server in servers]
    for path, changes in CHANGES.items():
        seen = set()
        for number, change in enumerate((lambda root: None, *changes)):
            change(root)
            for _ in range(3):
                theirs, *ours = [client.get(f"/{path}") for client in clients]
                assert ours == [theirs, theirs], (path, number)
            seen.add(theirs)
        assert len(seen) > 1, path


@pytest.mark.needs_flashpache
def test_a_module_that_cannot_be_changed_goes_on_as_before(lab, base):
    """Where memory cannot be made writable (SELinux, seccomp), and where the module has no such call."""
    root = base / "refused"
    tree.put(root / "file.txt", "file\n")
    source = tree.put(base / "refusing/refuse.c", """#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
int mprotect(void *at, size_t size, int how)
{
    int (*real)(void *, size_t, int) = (int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "mprotect");

    return how == (PROT_READ | PROT_WRITE) && size == 4096 ? (errno = EACCES, -1) : real(at, size, how);
}
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", source.with_suffix(".so"), source], check=True)
    server = lab.under_test("refused", root, config="FlashpacheIntercept core mod_env\n",
                            around=["env", f"LD_PRELOAD={sanitizer.preload(source.with_suffix('.so'))}"])
    with Client(server.port) as client:
        assert client.get("/file.txt") == (200, b"file\n")
    text = server.error_text()
    assert "FP0124: FlashpacheIntercept core.c: its import table cannot be made writable: Permission denied" in text
    assert "FP0124: FlashpacheIntercept mod_env.c: it has no call that can be led elsewhere" in text
    server.config = "FlashpacheIntercept mod_nothing\n"
    assert "FlashpacheIntercept mod_nothing: no such module is loaded" in server.check().stderr
    for own in ("mod_flashpache", "mod_flashpache.c", "mod_flashpache_rewrite.c"):
        server.config = f"FlashpacheIntercept {own}\n"
        assert f"FlashpacheIntercept {own}: that is Flashpache itself" in server.check().stderr
    lab.end()
