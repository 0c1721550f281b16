# SPDX-License-Identifier: Apache-2.0
"""A file is secret only while another file forbids it, one that httpd reads during the request: a lock that a condition tests, or a
list of passwords. No response has the secret, although it is taken away and then allowed between the answer and that reading.

Stock opens the file after all decisions, so it cannot send what was there before them. It could send what came after them: the writer
waits in between, until no request of before is under way.
"""

import base64
import hashlib
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import tree
from forms import chosen
from many_clients import ask_until

pytestmark = pytest.mark.needs_flashpache

SECONDS = chosen(4, 10)
THREADS = 12
WRITERS = 8
DIRECTORIES = 32
DRAIN_S, SECRET_S = 0.1, 0.002
PUBLIC, SECRET = b"public\n", b"secret!\n"
SIZES = {"small": 1, "large": 40_000}       # times the text: sent from the daemon's memory, and from a descriptor
LOCKED = "%{REQUEST_FILENAME} =~ m#^(.*)/f$# && -f '$1/lock'"
USER = "u:{SHA}" + base64.b64encode(hashlib.sha1(b"p").digest()).decode() + "\n"
AUTHORIZATION = {"Authorization": "Basic " + base64.b64encode(b"u:p").decode()}
# kind: (what decides, the file that it reads and its text while it forbids, that while it allows; None: no file)
KINDS = {"If": (f'<If "{LOCKED}">\nRequire all denied\n</If>\n', "lock", "", None),
         "Require": (f'<RequireAll>\nRequire all granted\nRequire not expr "{LOCKED}"\n</RequireAll>\n', "lock", "", None),
         "RewriteCond": ("RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} ^(.*)/f$\nRewriteCond %1/lock -f\nRewriteRule . - [F]\n",
                         "lock", "", None),
         "passwords": ("AuthType Basic\nAuthName x\nAuthBasicProvider file\nAuthUserFile %s/users\nRequire valid-user\n",
                       "users", "", USER)}


def put(path, text):
    """Replaces the file, or removes it."""
    if text is None:
        path.unlink(missing_ok=True)
        return
    new = path.with_name(path.name + ".new")
    new.write_bytes(text.encode() if isinstance(text, str) else text)
    os.rename(new, path)


def change(root, kind, size, first, over):
    """Forbids, puts the secret there, takes it away, and allows; one directory after another."""
    _, name, forbids, allows = KINDS[kind]
    number = first
    while not over.is_set():
        at = root / f"d{number % DIRECTORIES}"
        put(at / name, forbids)
        time.sleep(DRAIN_S)
        put(at / "f", SECRET * SIZES[size])
        time.sleep(SECRET_S)
        put(at / "f", PUBLIC * SIZES[size])
        put(at / name, allows)
        number += WRITERS


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_secret(lab, base, kind, size):
    root = base / f"{kind}-{size}"
    text, name, _, allows = KINDS[kind]
    config = f"<Directory {root}>\nOptions FollowSymLinks\n" + (text if "%s" not in text else "") + "</Directory>\n"
    for number in range(DIRECTORIES):
        at = root / f"d{number}"
        tree.put(at / "f", PUBLIC * SIZES[size])
        put(at / name, allows)
        config += f"<Directory {at}>\n{text % at}</Directory>\n" if "%s" in text else ""
    server = lab.under_test(f"{kind}-{size}", root, mpm="event", config=config)
    over = threading.Event()
    end = time.monotonic() + SECONDS
    found = Counter()
    with ThreadPoolExecutor(WRITERS) as writers:
        for first in range(WRITERS):
            writers.submit(change, root, kind, size, first, over)
        try:
            asked = ask_until(server.port, end, THREADS, lambda number: f"/d{number % DIRECTORIES}/f", headers=AUTHORIZATION)
        finally:
            over.set()
    for (status, body), count in asked.items():
        found[status, body and body[:len(SECRET) - 1]] += count
    print("\n", found, Counter((e.note, e.reason) for e in server.entries()))
    denied = {"passwords": 401}.get(kind, 403)
    assert found[200, PUBLIC] or found[200, (PUBLIC * 2)[:len(SECRET) - 1]], "nobody asked while it was allowed"
    assert found[denied, None], "nobody asked while it was denied"
    assert SECRET[:-1] not in {body for _, body in found}, found
    assert {status for status, _ in found} == {200, denied}, found
    lab.end()
