# SPDX-License-Identifier: Apache-2.0
"""AllowOverride x Options x .htaccess x links x changes: stock's answers, log lines included.

Both servers are real and have the same configuration and files. Ours gets each request twice in a row, so that the
second is answered from the first one's answer.
"""

import os
import time
from urllib.parse import quote

import pytest

import walk_tree
from compare import LOG_FORMAT, Ask, differences, told, until_equal
from forms import FULL, chosen, full_where
from httpd import HITS, user_ids
from tree import _link as link, put

pytestmark = full_where(lambda values: values["mpm"] != "event")
TTL_MS = 200
SETTLE_S = 4            # seconds; a change must show within the TTL; this ends a hang
AUTH = (("Authorization", "Basic cmVhZGVyOnNlY3JldA=="),)      # reader:secret
WRONG = (("Authorization", "Basic cmVhZGVyOndyb25n"),)
# prefork and worker, in the full form, compare these hosts alone: the rest is the same code. In the normal form event
# asks all others for one in EVERY of the directories only, each host for different ones.
EVERY = 8
FEW = ("all-follow", "all-owner", "fileinfo-nofollow", "options-follow", "down", "names-two")
PLAIN_PATHS = ("file.txt", "a/b/c/file.txt", "missing.txt", "a/b/", "a/b/c/missing")
MORE_PATHS = ("", "a", "other.txt", "file.txt/info", "a/b/c/", "a/doc.html", ".htaccess", "moved", "forbidden",
              "gone", "file.txt?no", "a/b/c/file.txt/", "a/missing/deep/er", "a/b/other.txt")


@pytest.fixture(scope="module")
def roots(base):
    return walk_tree.make(base)


@pytest.fixture(scope="module")
def servers(lab, roots, mpm):
    root, outside = roots
    options = dict(mpm=mpm, config=LOG_FORMAT + walk_tree.config(root, outside), vhosts=walk_tree.vhosts(root))
    stock = lab.stock(f"stock-{mpm}", root, **options).start()
    flash = lab.under_test(f"flash-{mpm}", root, daemon_settings={"ttl_ms": TTL_MS}, **options)
    yield stock, flash
    lab.end()


def hosts(roots, mpm):
    every = [names[0] for names, _ in walk_tree.vhosts(roots[0])]
    return every if mpm == "event" else [h for h in every if h in FEW]


def hosts_for(roots, mpm, number):
    """The hosts for the directory of that number."""
    return [host for i, host in enumerate(hosts(roots, mpm)) if FULL or host in FEW or (i + number) % EVERY == 0]


def features(roots):
    return sorted(entry.name for entry in os.scandir(roots[0] / "h"))


def feature_asks(roots, mpm):
    """Hosts with a few paths; two hosts with more paths, HEAD and credentials."""
    for number, name in enumerate(features(roots)):
        at = "/h/" + quote(name) + "/"
        for host in hosts_for(roots, mpm, number):
            for path in PLAIN_PATHS:
                yield Ask(host, at + path)
        for host in ("all-follow", "fileinfo-nofollow", "nonfatal-owner")[:3 if mpm == "event" else 2]:
            for path in MORE_PATHS:
                yield Ask(host, at + path)
            yield Ask(host, at + "file.txt", "HEAD")
            yield Ask(host, at + "missing.txt", "HEAD")
            yield Ask(host, at + "file.txt", "POST")
            yield Ask(host, at + "file.txt", "OPTIONS")
            yield Ask(host, at + "a/b/c/file.txt", "GET", (("Accept-Encoding", "gzip"),))
    for host in hosts(roots, mpm):
        for name in ("auth", "satisfy"):
            for path in ("file.txt", "a/b/file.txt", "a/b/c/file.txt", "missing"):
                for headers in (AUTH, WRONG):
                    yield Ask(host, f"/h/{name}/{path}", "GET", headers)


def link_asks(roots, mpm):
    for i, directory in enumerate(walk_tree.LINK_DIRECTORIES):
        for j, path in enumerate(walk_tree.LINK_PATHS):
            for host in hosts_for(roots, mpm, i + j):
                yield Ask(host, f"/lk/{directory}/{path}")


def other_asks(roots, mpm):
    """Subrequests: SSI, listings, negotiation."""
    for host in hosts(roots, mpm):
        for path in ("/ssi/page.shtml", "/ssi/plain.txt", "/ssi/on/", "/ssi/on/page.txt", "/listing/",
                     "/listing/?C=M;O=D", "/listing/sub-deny/", "/listing/sub-plain/", "/listing/link.txt",
                     "/listing/sub-link/", "/", "/h/", "/lk/", "/users", "/nothing/at/all",
                     "/h/header//a///b/c/file.txt", "/h/header/./a/../file.txt"):
            yield Ask(host, path)
        yield Ask(host, "/ssi/page.shtml", "GET", AUTH)
        yield Ask(host, "/listing/", "GET", AUTH)


@pytest.mark.parametrize("kind", (feature_asks, link_asks, other_asks), ids=("htaccess", "links", "subrequests"))
def test_cold_and_warm_as_stock(servers, roots, mpm, kind):
    asks = list(kind(roots, mpm))
    began = time.monotonic()
    found = differences(*servers, asks)
    print(f"{len(asks)} requests, {time.monotonic() - began:.1f} s")
    assert not found, told(found)


# Changes

def state_texts(root):
    return {
        "header": "Header set X-State header\n", "denied": "Require all denied\n", "granted": "Require all granted\n",
        "headed": "Header set X-State HEADER\n",     # as long as the first, and written with the same time
        "broken": "NoSuchDirective on\n", "index": "DirectoryIndex other.txt\n", "options": "Options -Indexes\n",
        "rewrite": "RewriteEngine On\nRewriteRule ^missing other.txt\n", "error": "ErrorDocument 404 gone-away\n",
        "auth": f"AuthType Basic\nAuthName x\nAuthUserFile {root}/users\nRequire valid-user\n",
        "long": "# long\n" * 160_000 + "Header set X-State long\n",
        "absent": None, "locked": None, "directory": None, "linked": None, "dangling": None,
    }


STATES = ("header", "headed", "broken", "header", "absent", "denied", "rewrite", "locked", "granted", "linked", "error",
          "directory", "auth", "dangling", "index", "long", "options", "absent")
WAYS = ("overwrite", "rename", "anew")
PLACES = 18
# Each step moves the places from every state to its next one; further steps begin elsewhere.
STEPS = {"event": chosen(2, 9), "prefork": 5, "worker": 5}


def remove(path):
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    elif path.is_symlink() or path.exists():
        path.unlink()


def bring(path, state, text, way):
    """Put .htaccess into a state in one of several ways."""
    if text is None or path.is_dir() or path.is_symlink() or way == "anew":
        remove(path)
    if state == "locked":
        put(path, "Require all granted\n", mode=0)
    elif state == "directory":
        path.mkdir()
    elif state in ("linked", "dangling"):
        link(path, "../../../h/header/.htaccess" if state == "linked" else "nowhere")
    elif text is not None and way == "rename":
        os.rename(put(path.with_name("new"), text), path)
    elif text is not None:
        put(path, text)


def change_asks(hosts_, place):
    for host in hosts_:
        for path in ("file.txt", "missing.txt", "", "deep/file.txt"):
            yield Ask(host, f"/change/{place}/in/{path}")


CHANGE_HOSTS = ("all-follow", "fileinfo-nofollow", "auth-owner", "down")


MOVING_HOSTS = CHANGE_HOSTS + ("none-owner", "all-owner", "names-two", "names-swapped", "names-other", "names-sub")


def agree(servers, asks, what):
    took, found = until_equal(*servers, asks, SETTLE_S)
    assert not found, f"{what}: after {SETTLE_S} s {told(found)}"
    # One child may know it already and the next have an old answer until the TTL is over.
    time.sleep(max(0, TTL_MS / 1000 - took))
    found = differences(*servers, asks)
    assert not found, f"{what}: agreed after {took:.2f} s, then not: {told(found)}"
    return took


def test_every_change_of_an_htaccess_is_followed(servers, roots, mpm):
    root, _ = roots
    texts = state_texts(root)
    for i in range(PLACES):
        for where in ("", "deep/"):
            put(root / f"change/{i}/in/{where}file.txt", "file\n")
            put(root / f"change/{i}/in/{where}other.txt", "other\n")
    asks = [a for i in range(PLACES) for a in change_asks(CHANGE_HOSTS, i)]
    times = []
    for step in range(STEPS[mpm] + 1):
        for i in range(PLACES):
            state = STATES[(i + step) % len(STATES)]
            bring(root / f"change/{i}/in/.htaccess", state, texts[state], WAYS[(i + step) % len(WAYS)])
        times.append(agree(servers, asks, f"step {step}"))
    print("seconds until equal:", " ".join(f"{t:.2f}" for t in times))


def swap(a, b):
    c = a.with_name("swapping")
    os.rename(a, c)
    os.rename(b, a)
    os.rename(c, b)


def other_changes(at):
    """(description, function): changes of files, directories and links."""
    yield "nothing", lambda: None
    yield "file absent", (at / "d/file.txt").unlink
    yield "file created", lambda: put(at / "d/file.txt", "new one\n")
    yield "file mode 000", lambda: (at / "d/file.txt").chmod(0)
    yield "file readable again", lambda: (at / "d/file.txt").chmod(0o644)
    yield "directory mode 000", lambda: (at / "d").chmod(0)
    yield "directory search only", lambda: (at / "d").chmod(0o711)
    yield "directory back", lambda: (at / "d").chmod(0o755)
    yield "directories exchanged", lambda: swap(at / "d", at / "e")
    yield "index appears", lambda: put(at / "d/one.html", "one\n")
    yield "index is a directory", lambda: ((at / "d/one.html").unlink(), (at / "d/one.html").mkdir())
    yield "index gone", (at / "d/one.html").rmdir
    yield "access file mode 000", lambda: (at / "d/.htaccess").chmod(0)
    yield "access file readable again", lambda: (at / "d/.htaccess").chmod(0o644)
    yield "link retargeted", lambda: ((at / "link").unlink(), link(at / "link", "e/file.txt"))
    yield "link of another owner", lambda: os.lchown(at / "link", *user_ids())
    yield "target of that owner", lambda: os.chown(at / "e/file.txt", *user_ids())
    yield "link becomes a file", lambda: ((at / "link").unlink(), put(at / "link", "a file\n"))
    yield "file becomes a directory", lambda: ((at / "link").unlink(), put(at / "link/file.txt", "in it\n"))
    yield "directory link retargeted", lambda: ((at / "dl").unlink(), link(at / "dl", "e"))
    yield "access file below it denied", lambda: put(at / "e/.htaccess", "Require all denied\n")
    yield "directory link dangling", lambda: ((at / "dl").unlink(), link(at / "dl", "no"))
    yield "directory removed", lambda: os.rename(at / "d", at / "away")
    yield "directory back again", lambda: os.rename(at / "away", at / "d")
    yield "access file above", lambda: put(at / ".htaccess", "Options -FollowSymLinks\nHeader set X-Above yes\n")
    yield "users changed", lambda: put(at / "users", "")
    yield "another access file appears", lambda: put(at / "e/.second", "Require all denied\n")
    yield "the usual one gone", (at / "e/.htaccess").unlink
    yield "the usual one back", lambda: put(at / "e/.htaccess", "Header set X-Of e\n")
    yield "the other gone", (at / "e/.second").unlink
    yield "the other broken", lambda: put(at / "e/.second", "NoSuchDirective\n")


def test_other_changes_are_followed(servers, roots, mpm):
    root, _ = roots
    at = root / f"moving-{mpm}"
    for name in "de":
        put(at / name / "file.txt", f"file of {name}\n")
        put(at / name / ".htaccess", f"Header set X-Of {name}\n")
        put(at / name / "deep/file.txt", f"deep of {name}\n")
    put(at / "users", walk_tree.USERS)
    put(at / "auth/.htaccess", f"AuthType Basic\nAuthName x\nAuthUserFile {at}/users\nRequire valid-user\n")
    put(at / "auth/file.txt", "for readers\n")
    link(at / "link", "d/file.txt")
    link(at / "dl", "d")
    asks = [Ask(host, f"/moving-{mpm}/{path}", "GET", AUTH) for host in MOVING_HOSTS
            for path in ("d/file.txt", "d/", "d", "d/deep/file.txt", "d/none/x", "e/file.txt", "link", "link/file.txt",
                         "dl/file.txt", "dl/deep/file.txt", "dl/", "auth/file.txt")]
    for what, change in other_changes(at):
        change()
        agree(servers, asks, what)


@pytest.mark.needs_flashpache
def test_the_comparison_met_hits(servers):
    """None of this would prove anything if stock's code had served it all."""
    notes = {}
    for entry in servers[1].entries():
        notes[entry.note] = notes.get(entry.note, 0) + 1
    print(f"notes: {notes}")
    assert sum(notes.get(n, 0) for n in HITS) > 0.3 * sum(notes.values())
    assert notes.get("fallback", 0) == 0
    assert not servers[1].crashes()
