# SPDX-License-Identifier: Apache-2.0
"""One file, a child's lease on it, and a change of it."""

import os

import tree
from waiting import wait_for

NOTE_CONFIG = 'Header always set X-Note "expr=%{note:flashpache}"\n'
OLD, NEW = b"old\n", b"new\n"


class File:
    """<root>/<name>, served as /<name>; its content is OLD."""

    def __init__(self, root, name="a/b/file.txt"):
        self.root, self.name = root, name
        tree.put(root / name, OLD.decode())

    def ask(self, connection):
        """(status, body, note)"""
        answer = connection.get(f"/{self.name}")
        return answer.status, answer.body, answer.headers["x-note"]

    def get_lease(self, connection):
        wait_for(lambda: self.ask(connection) == (200, OLD, "lease"), "a lease")

    def replace(self):
        """Replaces the file; on return its content is NEW."""
        tree.put(self.root / "new", NEW.decode())
        os.rename(self.root / "new", self.root / self.name)


def new_root(base, kind):
    """A test's own directory, with a short name: a socket's path may not be long."""
    root = base / f"{kind}{len(list(base.glob(kind + '*')))}"
    root.mkdir()
    return root
