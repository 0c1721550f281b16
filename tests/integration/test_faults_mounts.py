# SPDX-License-Identifier: Apache-2.0
"""File systems that fill up, vanish or die under a load on files beside them: the result is stock's."""

import signal
import subprocess

import pytest

import fault_kit
import slowfs
import tree
from conftest import built
from fault_kit import ROUNDS, SETTINGS
from fetch import get
from system_limits import SmallDisk
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

TTL_MS = 300            # FUSE reports no changes
NAMES = ("one.txt", "sub/two.txt", "absent", "sub/absent", "sub", "sub/")
FILES = NAMES[:2]


@pytest.fixture
def pair(lab, base):
    """pair(root): (stock, Flashpache) for it."""
    def start(root):
        number, config = len(lab.started), fault_kit.config(root)    # the socket's path must be short
        daemon = lab.daemon(f"d{number}", **{**SETTINGS, "ttl_ms": TTL_MS}).start()
        return (lab.stock(f"stock{number}", root, config=config).start(),
                lab.flash(f"flash{number}", root, daemon.socket, config=config).start())
    return start


@pytest.fixture
def beside(base, request):
    """A tree for the load, and an empty directory in it as a mount point."""
    root = fault_kit.make_tree(base / f"beside-{request.node.name.removeprefix('test_')}")
    (root / "mount").mkdir()
    return root


def put_files(directory, text):
    """The daemon keeps the first by its content, the other one as a descriptor."""
    for name, lines in zip(FILES, (1, 2000)):
        tree.put(directory / name, f"{text} {name}\n" * lines)


def answers(server):
    return [get(server.port, f"/mount/{name}") for name in NAMES]


def until_as_stock(pair, good):
    """Both give the same answers; good: the files are there."""
    stock, flash = pair
    told = answers(stock)
    assert [status == 200 for status, _ in told[:2]] == [good, good], told
    wait_for(lambda: answers(flash) == told, "the same answers as stock's")


def test_mount_gone(under_load, pair, beside):
    both = pair(beside)
    with under_load(both[1], "file system unmounted (umount -l), and another mounted", root=beside) as fault:
        for number in range(2 * ROUNDS):
            disk = SmallDisk(beside / "mount", "256k", 64)
            put_files(disk.path, f"mount {number}")
            until_as_stock(both, True)
            disk.unmount()
            until_as_stock(both, False)
            fault.ends()


def let_go(mount):
    """Unmounts one whose server is dead."""
    subprocess.run(["umount", "-l", mount.target], check=True)
    mount.process = None


def test_file_system_killed(under_load, pair, beside, base):
    slowfs.needed()
    source = base / "killed-source"
    put_files(source, "behind FUSE")
    mount = slowfs.Slowfs(built("tests/lab/slowfs/slowfs"), source, beside / "mount", 0)
    both = pair(beside)
    try:
        with under_load(both[1], "FUSE server killed, and started again", root=beside) as fault:
            mount.mount()
            for _ in range(ROUNDS):
                until_as_stock(both, True)
                mount.process.send_signal(signal.SIGKILL)
                mount.process.wait()
                # An answer that is still valid, about a file that can no longer be read.
                assert get(both[1].port, f"/mount/{FILES[1]}")[0] in (200, 403)
                until_as_stock(both, False)
                fault.goes_on()
                let_go(mount)
                mount.mount()
                until_as_stock(both, True)
                fault.ends()
    finally:
        mount.unmount()


def test_disk_of_the_documents_full(under_load, pair, base):
    disk = SmallDisk(base / "full", "32m", 2000)
    try:
        root = fault_kit.make_tree(disk.path)
        put_files(root / "mount", "before")
        both = pair(root)
        with under_load(both[1], "disk of the documents full while some are written", root=root) as fault:
            until_as_stock(both, True)
            disk.fill()
            with pytest.raises(OSError), open(root / "mount" / FILES[0], "wb") as out:
                out.write(bytes(1 << 16))
            until_as_stock(both, True)
            fault.goes_on()
            disk.clear()
            put_files(root / "mount", "after")
            until_as_stock(both, True)
            fault.ends()
        for server in both:
            server.stop()
    finally:
        disk.unmount()
