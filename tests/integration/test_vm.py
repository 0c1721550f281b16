# SPDX-License-Identifier: Apache-2.0
"""A short form of scripts/test vm: a virtual machine with NFSv4.2 and SMB mounts. Own changes show at once, a served
directory can be removed, and a few requests get stock's answers.

The machine and its first disk take a minute or two, mostly in emulation: nothing here depends on time.
"""

import os
import shutil
import subprocess

import pytest

from conftest import BUILD, REPO

PROGRAMS = ("qemu-system-x86_64", "mmdebstrap", "cpio", "mke2fs")
MISSING = [program for program in PROGRAMS if not shutil.which(program)]
LIMIT_S = 1500
TESTS = "tests/integration"
# Of both kinds of file system: what a user notices first.
CHANGES = "unlink or rename_over or dav_put or access_file or create_after_404 or remove_tree"
# Plain answers, a range, a condition, links and access files.
SAME = "if-none-match or range-multi or path/both or links/follow or htaccess"

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}: packages qemu-system-x86, mmdebstrap, cpio, "
                                 "e2fsprogs"),
              pytest.mark.skipif(os.environ.get("FLASHPACHE_VM") == "1", reason="inside the machine itself"),
              pytest.mark.not_sanitized("the machine has no such libraries"), pytest.mark.needs_flashpache]


@pytest.fixture(scope="module")
def image():
    done = subprocess.run([REPO / "tests/vm/image"], env={**os.environ, "FLASHPACHE_BUILD": str(BUILD)}, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs a virtual machine's disk: {done.stderr[-500:]}")


def in_machine(*tests, **variables):
    """pytest inside, ended."""
    done = subprocess.run([REPO / "tests/vm/run", "--seconds", str(LIMIT_S), "python3", "-m", "pytest", "-p", "no:cacheprovider", "-rf",
                           "--tb=short", *tests],
                          env={**os.environ, "FLASHPACHE_BUILD": str(BUILD), "FLASHPACHE_FILESYSTEMS": "nfs4,cifs", **variables},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    return done


def test_nfs_and_smb(image):
    done = in_machine(f"{TESTS}/test_network_file_systems.py", f"{TESTS}/test_parity.py", "-k",
                      f"test_own_changes and ({CHANGES}) or test_same_as_stock and event and ({SAME})", FLASHPACHE_TRIES="2")
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout, done.stdout[-2000:]
