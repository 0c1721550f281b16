# SPDX-License-Identifier: Apache-2.0
"""A file system mounted with nosymfollow: neither stock nor ours follows its links; both follow links of others into
it."""

import subprocess

import pytest

from keepalive import Connection

ASKED = 6                       # the later ones come from memory


@pytest.fixture(scope="module")
def root(base):
    at = base / "www"
    (at / "strict").mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,nosymfollow", "none", str(at / "strict")],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs nosymfollow (Linux 5.10): {done.stderr}")
    strict = at / "strict"
    (strict / "d").mkdir()
    (strict / "d" / "file.txt").write_text("file\n")
    (strict / "link").symlink_to("d")
    (strict / "link.txt").symlink_to("d/file.txt")
    (at / "into").symlink_to("strict/d")
    (at / "through").symlink_to("strict/link")
    yield at
    subprocess.run(["umount", "-l", str(strict)], check=True)


@pytest.mark.parametrize("path", ["/strict/d/file.txt", "/strict/link/file.txt", "/strict/link.txt", "/into/file.txt",
                                  "/through/file.txt", "/strict/link"])
def test_as_stock(lab, root, path, request):
    name = request.node.name.partition("[")[2].strip("]").replace("/", "-")
    config = f"<Directory {root}>\nAllowOverride None\nOptions FollowSymLinks\nRequire all granted\n</Directory>\n"
    stock = Connection(lab.stock(f"stock{name}", root, config=config).start().port)
    ours = Connection(lab.under_test(f"ours{name}", root, config=config).port)
    want = stock.get(path)
    assert want.status == (200 if path in ("/strict/d/file.txt", "/into/file.txt") else 403), want
    for _ in range(ASKED):
        answer = ours.get(path)
        assert (answer.status, answer.body) == (want.status, want.body)
    stock.close()
    ours.close()
