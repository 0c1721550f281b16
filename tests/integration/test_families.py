# SPDX-License-Identifier: Apache-2.0
"""A link is switched between the questions of one request. The result of core's walk for one member of a family (a
request, its subrequests, its redirects) is not used for another one's file."""

import os
import time

import pytest

import tree
from fetch import get
from httpd import user_ids
from relay import Relay
from waiting import wait_for

pytestmark = [pytest.mark.needs_flashpache,
              pytest.mark.skipif(os.getuid() != 0, reason="needs root: files of two owners")]

SETTLED_S = 0.2         # a change is known after 50 ms
# The requested path, and the question before which the link is switched.
CASES = {
    "an index": ("rules/current/", "rules/current/index.html"),
    "a redirect in a directory": ("owners/current/moved.txt", "owners/current/file.txt"),
    "a fallback": ("owners/current/absent.txt", "owners/current/file.txt"),
}


@pytest.fixture
def site(base):
    """current is switched from a, which is open, to b: closed, or another owner's."""
    root = base / "families"
    for name in ("rules", "owners"):
        for to in "ab":
            tree.put(root / name / to / "index.html", f"{name} {to}\n")
            tree.put(root / name / to / "file.txt", f"{name} {to}\n")
        link = root / name / "current"
        link.unlink(missing_ok=True)
        link.symlink_to("a")
        os.lchown(link, *user_ids())
    tree.put(root / "rules/b/.htaccess", "Require all denied\n")
    tree.put(root / "owners/a/moved.txt", "moved\n")
    for path in ("owners/a", "owners/a/file.txt", "owners/a/moved.txt"):
        os.chown(root / path, *user_ids())
    return root


def switch(link):
    new = link.with_name("new")
    new.symlink_to("b")
    os.lchown(new, *user_ids())
    os.replace(new, link)
    time.sleep(SETTLED_S)


def config(root):
    return f"""FlashpacheLeases 0
<Directory {root}>
AllowOverride All
Options SymLinksIfOwnerMatch
</Directory>
<Directory {root}/rules>
Options FollowSymLinks
</Directory>
<Directory {root}/owners/current>
RewriteEngine On
RewriteRule ^moved file.txt [L]
FallbackResource /owners/current/file.txt
</Directory>
"""


@pytest.mark.parametrize("case", CASES)
def test_link_switched_between_questions(lab, base, site, case):
    path, trigger = CASES[case]
    asked = []

    def before(question):
        asked.append(question)
        if armed and question == str(site / trigger) and asked.count(question) == 1:
            switch(site / path.split("/")[0] / "current")
    armed = []
    number = len(lab.started)
    daemon = lab.daemon(f"families{number}").start()
    relay = Relay(base / f"relay{number}.sock", daemon.socket, before)
    try:
        server = lab.flash(f"families-httpd{number}", site, base / f"relay{number}.sock", config=config(site)).start()
        armed.append(True)
        asked.clear()
        status, body = get(server.port, f"/{path}")
        assert str(site / trigger) in asked, asked
        assert (status, b" b" in body) == (403, False), body
        entry = wait_for(lambda: [e for e in server.entries() if e.status == "403"], "the log's line")[-1]
        # It began with the path that was asked for: the one that a fallback stands for is walked to once more.
        assert (entry.note, entry.reason) == ("miss" if case == "a fallback" else "hit", "-")
    finally:
        relay.end()
