# SPDX-License-Identifier: Apache-2.0
"""An answer's file and its access files are of one directory, while a tenant switches the link that leads there. A child looks itself,
or has the text of a `.htaccess` from nobody and opens the file. The tenant's many inotify instances delay the report of each switch."""

import ctypes
import os
import threading
import time
from collections import Counter
from contextlib import ExitStack

import pytest

import procs
import tree
from forms import chosen
from many_clients import ask_until

pytestmark = pytest.mark.needs_flashpache

FILES = 4000            # of which each is asked for less often than makes a hint
INSTANCES = 100         # of inotify: a user may have 128
SECONDS = chosen(4, 20)
THREADS = 12
# Between two switches, and how many other processes are busy. The slow pace keeps the directory from being noisy, so a child looks itself.
# With the fast one the daemon walks, and the link leads there and back within a request.
PACES = {"slow": (0.004, 0), "fast": (0.001, 4)}
PUBLIC, SECRET = b"public\n", b"secret\n"
IN_MOVED_TO, IN_NONBLOCK = 0x80, 0o4000


@pytest.fixture(scope="module")
def root(base):
    root = base / "looks"
    for name, text in (("pub", PUBLIC), ("closed", SECRET)):
        for number in range(FILES):
            tree.put(root / f"t/{name}/f{number}", text)
    tree.put(root / "t/closed/.htaccess", "Require all denied\n")
    os.symlink("pub", root / "t/d")
    return root


class Listeners:
    """Instances that the kernel tells of each switch before the daemon's."""

    def __init__(self, directory):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fds = [libc.inotify_init1(IN_NONBLOCK) for _ in range(INSTANCES)]
        self.made = sum(fd != -1 and libc.inotify_add_watch(fd, os.fsencode(directory), IN_MOVED_TO) != -1 for fd in self.fds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for fd in self.fds:
            if fd != -1:
                os.close(fd)


def _spin():
    while True:
        pass


def switch(root, over, pause):
    while not over.is_set():
        for target in ("closed", "pub"):
            os.symlink(target, root / "t/new")
            os.rename(root / "t/new", root / "t/d")
            time.sleep(pause)


@pytest.mark.parametrize("pace", PACES)
def test_no_file_of_the_closed_directory(lab, root, pace):
    """The daemon is root's, so mounts are reported to it as well."""
    config = f"<Directory {root}>\nOptions FollowSymLinks\nAllowOverride All\n</Directory>\n"
    pause, busy = PACES[pace]
    with Listeners(root / "t"), ExitStack() as others:
        for _ in range(busy):
            others.enter_context(procs.beside(_spin))
        server = lab.under_test(f"looks-{pace}", root, mpm="event", config=config, admission=1000)
        over = threading.Event()
        switching = threading.Thread(target=switch, args=(root, over, pause))
        switching.start()
        end = time.monotonic() + SECONDS
        found = ask_until(server.port, end, THREADS, lambda number: f"/t/d/f{number % FILES}", step=THREADS)
        over.set()
        switching.join()
    print("\n", found, Counter((e.note, e.reason) for e in server.entries()))
    assert found[200, PUBLIC] and found[403, None], "the link always led to the same directory"
    assert set(found) <= {(200, PUBLIC), (403, None), (404, None)}, found
    lab.end()
