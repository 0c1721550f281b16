# SPDX-License-Identifier: Apache-2.0
"""Children copy no more than a share of the memory, however much they are asked for."""

import pytest

import status_kit
import tree
from content_kit import clock, settled  # noqa: F401 (fixtures)
from fetch import Client
from httpd import MPM_LIMITS

pytestmark = pytest.mark.needs_flashpache

KIB = 1024
SIZE = 3000         # less than content_file_max, so children copy it, and than a quarter of what any child may copy
FILES = [f"/{n}.bin" for n in range(400)]
LITTLE = 16 * KIB * KIB         # bytes of memory
SHARE, LEAST = 64, 16 * KIB     # of all children, and of each
CHILDREN = {"prefork": 96, "event": 2}


@pytest.fixture(scope="module")
def root(base):
    root = base / "short-memory"
    tree.hot_files(root, {path[1:]: SIZE for path in FILES})
    return root


def copied_by_one_child(lab, root, module_path, program, mpm, around=()):
    """The bytes that are copied after some rounds over one connection. A prefork child keeps what is asked for again soon."""
    assert f"ServerLimit {CHILDREN[mpm]}\n" in MPM_LIMITS[mpm]
    server = lab.stock(f"short{len(lab.started)}", root, module=module_path, mpm=mpm, around=around,
                       extra_modules=status_kit.MODULES, vhosts=[(["localhost"], ""), status_kit.VHOST],
                       config=f"FlashpacheDaemonProgram {program}\nMaxKeepAliveRequests 0\n")
    with server, Client(server.port) as client:
        for _ in range(4):
            for path in (path for path in FILES for _ in range(2)):
                assert client.get(path) == (200, tree.content(path[1:], SIZE))
        return status_kit.figures(server)["FlashpacheBytesMapped"]


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("mpm", ("prefork", "event"))
def test_copies_are_a_share_of_the_memory(lab, root, module_path, flashpached_program, base, mpm):
    """Another /proc/meminfo stands for the machine with little memory."""
    said = base / f"meminfo-{mpm}"
    said.write_text(f"MemTotal:       {LITTLE // KIB} kB\n")
    around = ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
              f'mount --bind {said} /proc/meminfo; exec "$@"', "sh"]
    most = max(LEAST, LITTLE // SHARE // CHILDREN[mpm])

    little = copied_by_one_child(lab, root, module_path, flashpached_program, mpm, around)
    assert most // 2 < little <= most + SIZE      # that of the last response counts, too
    assert copied_by_one_child(lab, root, module_path, flashpached_program, mpm) > 2 * most
