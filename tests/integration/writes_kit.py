# SPDX-License-Identifier: Apache-2.0
"""A stock httpd and one with Flashpache on the same tree, where requests and other processes write the files of the
next requests."""

import multiprocessing
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

import acl
from httpd import user_ids
from lease_kit import NOTE_CONFIG
from quick import Quick, field, note

OVERRIDES = {"none": "None", "all": "All"}
AREAS = ("cgi", "dav", "pages", "rights")
COMPARED = ("ETag", "Last-Modified", "Content-Length")
CGI_MODULE = {"event": "cgid", "prefork": "cgi"}
# The page in the cache, if it is there; else the page itself.
REWRITING = """RewriteEngine On
RewriteCond %{DOCUMENT_ROOT}/cache%{REQUEST_URI} -f
RewriteRule ^ /cache%{REQUEST_URI} [L]
"""
SHOWN = 5


class Tree:
    """root/OVERRIDE/AREA, of which Apache's user may change `cgi` and `dav`, and root/cache/OVERRIDE/pages."""

    def __init__(self, root):
        self.root = Path(root)
        for override in OVERRIDES:
            for area in AREAS:
                self.at(override, area).mkdir(parents=True)
                os.chown(self.at(override, area), *user_ids())
            (self.root / "cache" / override / "pages").mkdir(parents=True)
        (self.at("all", "pages") / ".htaccess").write_text(REWRITING)

    def at(self, override, area):
        return self.root / override / area

    def config(self, directory):
        """directory: the place of the CGI and the lock database."""
        allowed = "".join(f"<Directory {self.root}/{name}>\nAllowOverride {value}\n</Directory>\n"
                          f"<Directory {self.root}/{name}/dav>\nDav On\n</Directory>\n"
                          for name, value in OVERRIDES.items())
        return (f"{NOTE_CONFIG}{allowed}DavLockDB {directory}/locks/lock\n"
                f"ScriptAlias /answering {directory}/answering\n"
                f"<Directory {directory}>\nRequire all granted\nOptions ExecCGI\n</Directory>\n")

    @staticmethod
    def vhosts():
        """The rewriting: here in the one half, by an access file in the other."""
        there = "RewriteCond %{REQUEST_URI} ^/none/pages/\n"
        return [(["localhost"], REWRITING.replace("RewriteCond", f"{there}RewriteCond", 1))]


def make_directory(path):
    """The CGI, and a place for the lock database."""
    (path / "locks").mkdir(parents=True)
    os.chown(path / "locks", *user_ids())
    done = subprocess.run(["cc", "-O2", "-o", path / "answering", Path(__file__).with_name("answering.c")],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs a C compiler: {done.stderr[-300:]}")
    return path


class Hand:
    """Another process, which does its orders and reports their end."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=self._run, args=(other,))
        self.process.start()
        other.close()

    def _run(self, pipe):
        self.pipe.close()
        try:
            while True:
                function, arguments = pipe.recv()
                pipe.send(function(*arguments))
        except EOFError:
            pass

    def do(self, function, *arguments):
        """Returns after its system calls have returned."""
        self.pipe.send((function, arguments))
        return self.pipe.recv()

    def close(self):
        self.pipe.close()
        self.process.join(10)
        self.process.kill()
        self.process.join()


class Site:
    """Connections to both servers, and another process."""

    def __init__(self, tree, stock_port, our_port):
        self.tree = tree
        self.ports = our_port, stock_port
        self.ours, self.stock = map(Quick, self.ports)
        self.hand = Hand()
        # httpd closes a connection without a request sooner than one that is kept.
        for one in (self.ours, self.stock):
            one.ask("/absent")

    @contextmanager
    def lane(self):
        """Connections of one's own: to ours and to stock."""
        made = [Quick(port) for port in self.ports]
        try:
            yield made
        finally:
            for one in made:
                one.close()

    def close(self):
        for one in (self.stock, self.ours, self.hand):
            one.close()


def seen(reply, headers=COMPARED):
    """The parts of a reply that must be stock's. A file's ETag is weak in its first second."""
    return reply.status, reply.body[:100], *(field(reply, name).removeprefix("W/") for name in headers)


class Compared:
    """Replies of both servers, side by side."""

    def __init__(self, name):
        self.name = name
        self.differences = []       # for each try: a text, or none; threads may append

    def add(self, what, ours, stock, headers=COMPARED):
        differs = seen(ours, headers) != seen(stock, headers)
        self.differences.append(differs and f"{what}: {seen(ours, headers)}, note {note(ours)}; "
                                f"stock: {seen(stock, headers)}")

    def check(self):
        differing = [text for text in self.differences if text]
        said = f"{len(differing)} of {len(self.differences)} differ from stock"
        print(f"\n{self.name}: {said}")
        assert not differing, "\n".join([said, *differing[:SHOWN]])


# Actions of the other process

def write(path, text):
    Path(path).write_text(text)


def replace(path, text):
    write(f"{path}.new", text)
    os.rename(f"{path}.new", path)


def deny(path):
    acl.deny(path)


def allow(path):
    acl.allow(path)
