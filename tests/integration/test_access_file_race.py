# SPDX-License-Identifier: Apache-2.0
"""A file is secret only while an access file denies it: no response has the secret, although the access file is removed between the
answer, which shows it, and httpd's own opening of it.

Stock looks at the access file first and opens the file afterwards, so it cannot send what was there before the removal.
"""

import os
import threading
import time
from collections import Counter

import pytest

import tree
from forms import chosen
from many_clients import ask_until

pytestmark = pytest.mark.needs_flashpache

SECONDS = chosen(3, 10)
THREADS = 12
DIRECTORIES = 24
PUBLIC, SECRET = b"public\n", b"secret\n"
DENY = b"Require all denied\n"
# The second is larger than what the module fetches, so httpd opens it by name.
TEXTS = {"small": DENY, "large": DENY + b"#\n" * (600 * 1024)}


@pytest.fixture(scope="module")
def root(base):
    root = base / "denied"
    for number in range(DIRECTORIES):
        tree.put(root / f"d{number}/f", PUBLIC)
    for name, text in TEXTS.items():
        tree.put(root / f"deny-{name}", text)
    return root


def replace(file, text):
    new = file.with_name("new")
    new.write_bytes(text)
    os.rename(new, file)


def rewrite(file, text):
    """In place. Length and time stay the same."""
    with open(file, "r+b", buffering=0) as f:
        f.write(text)
        os.utime(f.fileno(), (tree.MTIME, tree.MTIME))


# How the file changes, how many write, and how long each waits for earlier requests to end: an open file may be read after a rewrite, as by
# stock.
WRITES = {"replaced": (replace, 1, 0), "rewritten": (rewrite, 8, 0.05)}


def change(root, text, write, first, over):
    """Denies, puts the secret there, takes it away, and allows; one directory after another."""
    put, writers, drain_s = WRITES[write]
    number = first
    while not over.is_set():
        at = root / f"d{number % DIRECTORIES}"
        os.link(root / f"deny-{text}", at / ".htaccess")
        time.sleep(drain_s)
        put(at / "f", SECRET)
        time.sleep(0.002)
        put(at / "f", PUBLIC)
        os.unlink(at / ".htaccess")
        number += writers


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("write", WRITES)
def test_no_secret(lab, root, text, write):
    config = f"<Directory {root}>\nAllowOverride All\n</Directory>\n"
    server = lab.under_test(f"denied-{text}-{write}", root, mpm="event", config=config)
    over = threading.Event()
    changing = [threading.Thread(target=change, args=(root, text, write, first, over)) for first in range(WRITES[write][1])]
    for thread in changing:
        thread.start()
    end = time.monotonic() + SECONDS
    try:
        found = ask_until(server.port, end, THREADS, lambda number: f"/d{number % DIRECTORIES}/f")
    finally:
        over.set()
        for thread in changing:
            thread.join()
    print("\n", found, Counter((e.note, e.reason) for e in server.entries()))
    assert found[200, PUBLIC] and found[403, None], "nobody asked while it was denied, or while it was allowed"
    assert set(found) <= {(200, PUBLIC), (403, None)}, found
    lab.end()
