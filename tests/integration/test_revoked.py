# SPDX-License-Identifier: Apache-2.0
"""Rights that are taken away, and given back, without a change of mode or owner. They come from an access list of a
directory above the document, with AllowOverride None, so nothing else is looked at there."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import change_cases
from freshness import bound_s, settings
from httpd import HITS
from keepalive import Connection
from waiting import wait_for

CONFIG = 'Header always set X-Note "expr=%{note:flashpache}"\n'
KINDS = ("disk", "tmpfs", "disk-ttl")


def set_list(entry, directory):
    done = subprocess.run(["setfacl", *entry, str(directory)], capture_output=True, text=True)
    if "not supported" in done.stderr:
        pytest.skip(f"no access lists at {directory}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def tmpfs(base):
    at = Path(tempfile.mkdtemp(prefix="tmpfs-", dir=base))
    change_cases.mount("-t", "tmpfs", "-o", "mode=755", "none", at)
    yield at
    subprocess.run(["umount", "-l", str(at)], check=True)


@pytest.fixture(scope="module", params=KINDS)
def site(request, base, lab):
    """(root, server, seconds until a change shows)"""
    if not shutil.which("setfacl"):
        pytest.skip("needs setfacl (package acl)")
    reported = not request.param.endswith("ttl")
    root = (request.getfixturevalue("tmpfs") if request.param == "tmpfs" else base) / f"www-{request.param}"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file.txt").write_text("file\n")
    (root / "l").symlink_to("a")
    daemon = settings(True) if reported else {**settings(False), "watch": "ttl"}
    server = lab.under_test(f"revoked-{request.param}", root, config=CONFIG + f"<Directory {root}>\n"
                            "AllowOverride None\nRequire all granted\n</Directory>\n", daemon_settings=daemon)
    return root, server, bound_s(reported)


def remembered(client, path):
    def asked():
        answer = client.get(path)
        assert answer.status == 200
        return answer.headers.get("x-note") in HITS
    wait_for(asked, f"{path} to be remembered")


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("which", ["a", "a/b"])
def test_access_list(site, which):
    root, server, seconds = site
    client = Connection(server.port)
    for path in ("/a/b/file.txt", "/l/b/file.txt"):
        for _ in range(2):
            remembered(client, path)
            set_list(["-m", "u:www-data:---"], root / which)
            time.sleep(seconds)
            assert client.get(path).status == 403
            set_list(["-b"], root / which)
            time.sleep(seconds)
            assert client.get(path).status == 200
    client.close()
