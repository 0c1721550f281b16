# SPDX-License-Identifier: Apache-2.0
"""A file system that keeps attributes for long, as NFS does, and is changed behind its back. The bound is the
daemon's TTL, whatever the kernel still answers from its own cache."""

import os
import time

import pytest

from freshness import bound_s, settings
from httpd import HITS
from keepalive import Connection
from waiting import wait_for

CONFIG = 'Header always set X-Note "expr=%{note:flashpache}"\n'
KEPT = ("--attr-timeout", "600", "--entry-timeout", "600")
TIMES = 3

pytestmark = pytest.mark.needs_flashpache


@pytest.fixture(scope="module", params=["watched", "ttl"])
def site(request, base, lab, slow_directory):
    """(directory behind the file system, served directory, connection)"""
    source = base / f"kept-{request.param}"
    (source / "d").mkdir(parents=True)
    (source / "d" / "file.txt").write_text("0\n")
    served = slow_directory(source, 0, *KEPT)
    config = CONFIG + f"<Directory {served}>\nAllowOverride All\nRequire all granted\n</Directory>\n"
    watch = {} if request.param == "watched" else {"watch": "ttl"}
    server = lab.under_test(f"kept-{request.param}", served, config=config,
                            daemon_settings={**settings(False), **watch})
    client = Connection(server.port)
    yield source, served, client
    client.close()


def remembered(client, want):
    """Asks often enough to make the entry one in use, which the daemon refreshes."""
    def asked():
        answer = client.get("/d/file.txt")
        assert (answer.status, answer.body) == want
        return answer.headers.get("x-note") in HITS
    wait_for(asked, "the answer to be remembered")


def test_the_kernel_keeps_attributes(site):
    """Without this the other tests would show nothing."""
    source, served, _ = site
    (source / "kept").write_text("1")
    assert (served / "kept").stat().st_size == 1
    (source / "kept").write_text("22")
    assert (served / "kept").stat().st_size == 1


def change_file(source, number):
    """Mode and length of the file itself."""
    file = source / "d" / "file.txt"
    if number % 2:
        file.chmod(0)
        return 403, None
    file.chmod(0o644)
    file.write_text("x" * number + "\n")
    return 200, "x" * number + "\n"


def change_directory(source, number):
    """The right to pass the directory above."""
    (source / "d").chmod(0 if number % 2 else 0o755)
    return (403, None) if number % 2 else (200, (source / "d" / "file.txt").read_text())


def change_access_file(source, number):
    """The content of an existing file."""
    (source / "d" / ".htaccess").write_text("Require all denied\n" if number % 2 else "# nothing\n")
    return (403, None) if number % 2 else (200, (source / "d" / "file.txt").read_text())


@pytest.mark.parametrize("change", [change_file, change_directory, change_access_file])
def test_changed_behind_the_file_system(site, change):
    source, _, client = site
    want = change(source, 0)
    time.sleep(bound_s(False))
    for number in range(1, 2 * TIMES):
        if want[0] == 200:
            remembered(client, (200, want[1].encode()))
        want = change(source, number)
        time.sleep(bound_s(False))
        answer = client.get("/d/file.txt")
        assert answer.status == want[0], (number, answer)
        assert want[1] is None or answer.body == want[1].encode(), (number, answer)
    os.chmod(source / "d", 0o755)
    os.chmod(source / "d" / "file.txt", 0o644)
