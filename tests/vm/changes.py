#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of changes of each kind on a network file system: how many answers after them were not of that moment.

  tests/vm/run --also gcc,libc6-dev python3 tests/vm/changes.py [--tries N] [--mpm MPM] [--server NAME] [--change NAME]...
                                                                [KIND]...

KIND is one of tests/integration/network_mounts.py, by default nfs4, nfs3 and cifs. NAME of a server is flashpache or stock.

Some files are changed in turn, over and over, by two programs at a time, and requested before and after each
change. With a `ttl_ms` of a minute, the answer from before the change is in memory in most cases. A line for each kind of
change: tries, wrong answers, changes that failed at first, and how many of the requests before the change were answered from
memory.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

import kit
import acl
import network_mounts
from httpd import HITS, user_ids
from lease_kit import NOTE_CONFIG
from quick import Quick, note

TRIES = 10_000
LANES = 2
FILES, EACH = 25, 3     # of each lane at most; with few tries so many that each is changed so often
CONNECTIONS = 3
AGAIN, AGAIN_S = 50, 0.1
TTL_MS = 60_000
SIZES = (1000, 1000, 300_000, *(1000,) * 13)
DENIED, GRANTED = "Require all denied\n", "Require all granted\n"
ROOT_ONLY, ALL = 0o600, 0o644


class File:
    """One file in a directory of its own, and what a request for it has to show."""

    def __init__(self, root, name, size):
        self.directory, self.url, self.size, self.version = root / name, f"/{name}/file.bin", size, 0
        self.path, self.rules = self.directory / "file.bin", self.directory / ".htaccess"
        self.directory.mkdir()
        self.path.write_bytes(self.body())
        self.shown = {self.url: (200, self.body())}     # by URL; None: any body

    def body(self):
        word = b"%08d\n" % self.version
        return (word * (self.size // len(word) + 1))[:self.size]

    def shows(self, status, body=None):
        self.shown[self.url] = status, body

    def next(self):
        self.version += 1
        return self.body()

    def write(self, name, body):
        path = self.directory / name
        path.write_bytes(body)
        return path


# ---- the changes. Each is made again and again: `turn` counts those of the file. ----

def write_in_place(one, turn):
    with open(one.path, "r+b") as out:
        out.write(one.next())
    one.shows(200, one.body())


def shrink_and_grow(one, turn):
    half = one.size // 2
    if turn % 2:
        with open(one.path, "ab") as out:
            out.write(one.body()[half:])
        one.shows(200, one.body())
    else:
        os.truncate(one.path, half)
        one.shows(200, one.body()[:half])


def rename_over(one, turn):
    one.write("other", one.next()).rename(one.path)
    one.shows(200, one.body())


def unlink_and_create(one, turn):
    if turn % 2:
        one.path.write_bytes(one.next())
        one.shows(200, one.body())
    else:
        one.path.unlink()
        one.shows(404)


def rename_directory(one, turn):
    """And back."""
    body, old = one.body(), one.url
    moved = one.directory.with_name(one.directory.name.removesuffix("-moved") + ("" if turn % 2 else "-moved"))
    one.directory.rename(moved)
    one.directory, one.path, one.url = moved, moved / "file.bin", f"/{moved.name}/file.bin"
    one.shown = {one.url: (200, body), old: (404, None)}


def remove_and_make_directory(one, turn):
    if turn % 2:
        one.directory.mkdir(exist_ok=True)
        one.path.write_bytes(one.next())
        one.shows(200, one.body())
    else:
        one.path.unlink(missing_ok=True)
        one.directory.rmdir()
        one.shows(404)


def change_mode(one, turn):
    one.path.chmod(ALL if turn % 2 else 0)
    one.shows(*((200, one.body()) if turn % 2 else (403, None)))


def change_owner(one, turn):
    if not turn:
        one.path.chmod(ROOT_ONLY)
    os.chown(one.path, *((0, 0) if turn % 2 else user_ids()))
    one.shows(*((403, None) if turn % 2 else (200, one.body())))


def access_control_list(one, turn):
    (acl.allow if turn % 2 else acl.deny)(one.path)
    one.shows(*((200, one.body()) if turn % 2 else (403, None)))


def switch_link(one, turn):
    target = one.write(f"target{turn % 2}", one.next())
    new = one.directory / "new"
    new.symlink_to(target.name)
    new.rename(one.path)
    one.shows(200, one.body())


def access_file(one, turn):
    """Made, changed, made to deny again, removed."""
    step = turn % 4
    if step == 3:
        one.rules.unlink()
    else:
        one.rules.write_text(GRANTED if step == 1 else DENIED)
    one.shows(*((200, one.body()) if step % 2 else (403, None)))


def write_renamed(one, turn):
    """While it has another name."""
    with open(one.path, "r+b") as out:
        other = one.directory / "other"
        one.path.rename(other)
        out.write(one.next())
        out.flush()
        other.rename(one.path)
    one.shows(200, one.body())


CHANGES = {each.__name__: each for each in (
    write_in_place, shrink_and_grow, rename_over, unlink_and_create, rename_directory, remove_and_make_directory, change_mode,
    change_owner, access_control_list, switch_link, access_file, write_renamed)}
# cifs: the client shows one mode and one owner, and makes no links. The others have no lists of this kind.
LACKING = {"cifs": ("change_mode", "change_owner", "access_control_list", "switch_link"),
           "nfs4": ("access_control_list",), "nfs4-delegations": ("access_control_list",), "9p": ("access_control_list",)}


def made(change, one, turn):
    """False: it failed at first, as while somebody has the file open."""
    for again in range(AGAIN):
        try:
            change(one, turn)
            return again == 0
        except OSError:
            if again == AGAIN - 1:
                raise
            time.sleep(AGAIN_S)


def lane(number, port, root, change, tries, results):
    connections = [Quick(port) for _ in range(CONNECTIONS)]
    files = [File(root, f"{change.__name__}-{number}-{each}", SIZES[each % len(SIZES)])
             for each in range(max(1, min(FILES, tries // EACH)))]
    wrong, known, failed = [], 0, 0

    def ask(count, one):
        replies = {url: connections[count % CONNECTIONS].ask(url) for url in one.shown}
        return replies, [(url, reply.status, note(reply), reply.body[:20]) for url, reply in replies.items()
                         if reply.status != one.shown[url][0] or one.shown[url][1] not in (None, reply.body)]
    for count in range(tries):
        one = files[count % len(files)]
        for again in range(2):      # the first answer after a change is not kept: the time could be the same after another
            replies, bad = ask(count + again, one)
            wrong += [(f"before {count}", *each) for each in bad]
        known += all(note(reply) in HITS for reply in replies.values())
        failed += not made(change, one, count // len(files))
        wrong += [(f"after {count}", *each) for each in ask(count, one)[1]]
    results.put((len({each[0] for each in wrong}), known, failed, wrong[:3]))


def measure(kind, given, change):
    with tempfile.TemporaryDirectory(prefix="changes-") as directory:
        base = Path(directory)
        base.chmod(0o755)
        with (network_mounts.mounted(kind, base / "www") as mount,
              kit.server(given.server, base, mount.at, given.mpm, "All", NOTE_CONFIG, TTL_MS) as server):
            mount.at.chmod(0o755)
            results = multiprocessing.Queue()
            lanes = [multiprocessing.Process(target=lane, args=(number, server.port, mount.at, change, given.tries // LANES, results))
                     for number in range(LANES)]
            for each in lanes:
                each.start()
            for each in lanes:
                each.join()
            if any(each.exitcode for each in lanes):
                sys.exit(f"{kind} {change.__name__}: a program ended with an error")
            wrong, known, failed, shown = zip(*(results.get() for _ in lanes))
    print(f"{kind:17} {given.mpm:8} {given.server:10} {change.__name__:26} {sum(wrong):5} of {given.tries} wrong, "
          f"{sum(failed):3} failed, {100 * sum(known) / given.tries:3.0f} % known", *filter(None, shown), flush=True)
    return sum(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=TRIES)
    parser.add_argument("--mpm", default="event")
    parser.add_argument("--server", choices=kit.SERVERS, default="flashpache")
    parser.add_argument("--change", choices=CHANGES, action="append")
    parser.add_argument("kinds", nargs="*")
    given = parser.parse_args()
    kit.begin()
    wrong = [measure(kind, given, CHANGES[name]) for kind in given.kinds or ("nfs4", "nfs3", "cifs")
             for name in given.change or CHANGES if name not in LACKING.get(kind, ())]
    sys.exit(1 if any(wrong) else 0)


main()
