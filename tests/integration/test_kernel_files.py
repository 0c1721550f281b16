# SPDX-License-Identifier: Apache-2.0
"""The kernel's own file systems report no changes in them: each request looks."""

import os
import subprocess

import pytest

import wire
from forms import chosen
from quick import Quick, field

pytestmark = pytest.mark.needs_flashpache
TRIES = chosen(50, 5000)
LEFT_TO_HTTPD = 18      # an ANSWER's status
RULES = """
RewriteEngine On
RewriteCond %{REQUEST_URI} ^/process/(\\d+)$
RewriteCond /proc/%1 -d
RewriteRule . /runs.txt [L]
RewriteRule ^/process/ /none.txt [L]
Alias /proc /proc
<Directory /proc>
Require all granted
</Directory>
<Directory @ROOT@>
Header set X-Direct "expr=%{filesize:/proc/self/exe}"
Header set X-By-Link "expr=%{filesize:@ROOT@/program}"
</Directory>
"""


@pytest.fixture(scope="module")
def server(lab, base):
    root = base / "processes"
    root.mkdir()
    (root / "program").symlink_to("/proc/self/exe")
    for name in ("runs", "none"):
        (root / f"{name}.txt").write_text(name)
    rules = RULES.replace("@ROOT@", str(root))
    return lab.under_test("processes", root, mpm="event", vhosts=[(["localhost"], rules)])


@pytest.mark.parametrize("path,running,gone", (("/process/{}", (200, b"runs"), (200, b"none")), ("/proc/{}/comm", (200, b""), (404, None))))
def test_processes_come_and_go(server, path, running, gone):
    connection = Quick(server.port)

    def asked():
        replies = [connection.ask(path.format(process.pid)) for _ in range(3)]
        return {(reply.status, reply.body if reply.status == 200 else None) for reply in replies}
    for _ in range(TRIES):
        process = subprocess.Popen(["sleep", "60"])
        try:
            assert asked() == {running}
        finally:
            process.kill()
            process.wait()
        assert asked() == {gone}


def test_the_daemon_tells_nothing_of_its_own_processes(server):
    """A worker may open its own maps, as no other process of its user may. The daemon's addresses are the same."""
    pids = server.daemon.worker_pids()
    with wire.greet(server.daemon.socket) as conn:
        # Each worker gets some of the questions about itself.
        replies = [wire.ask(conn, wire.whole_lookup(f"/proc/{pid}/{name}"))
                   for pid in pids for name in ("maps", "task", "fdinfo/0") for _ in pids]
    assert {wire.parse_answer(reply)[0] for reply in replies} == {LEFT_TO_HTTPD}


def test_each_process_finds_its_own_files(server):
    """httpd's, as in stock, and not those of the process that looks for it."""
    size = str(os.path.getsize(f"/proc/{server.process.pid}/exe"))
    reply = Quick(server.port).ask("/runs.txt")
    assert {field(reply, name) for name in ("X-Direct", "X-By-Link")} == {size}
