# SPDX-License-Identifier: Apache-2.0
"""One directory on each kind of file system, in this run's own mount namespace (mount_namespace).

FLASHPACHE_FILESYSTEMS  the kinds, with commas between them, of the tests that run on each of KINDS; others than the usual
                        ones need the virtual machine of scripts/test vm (network_mounts)
"""

import os
import subprocess
from contextlib import contextmanager

import pytest

import network_mounts

# disk: the base directory's, in most cases ext4.
USUAL = ("disk", "tmpfs", "overlay", "fuse")
GIVEN = tuple(filter(None, os.environ.get("FLASHPACHE_FILESYSTEMS", "").split(",")))
KINDS = GIVEN or USUAL


def _mount(*arguments):
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs to mount: {done.stderr}")


@contextmanager
def _mounted(at, *arguments):
    at.mkdir(parents=True)
    _mount(*arguments, at)
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


@contextmanager
def overlay(base, prepare=None):
    """prepare(lower) makes the files of the lower layer; their first change makes a copy."""
    layers = [base / f"overlay-{name}" for name in ("lower", "upper", "work")]
    for layer in layers:
        layer.mkdir()
    lower, upper, work = layers
    if prepare:
        prepare(lower)
    with _mounted(base / "overlay", "-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}",
                  "none") as at:
        yield at


@contextmanager
def directory(kind, base, slow_directory):
    """A directory of that kind below base. slow_directory: the fixture, which unmounts at the module's end."""
    if kind == "disk":
        at = base / "disk"
        at.mkdir()
        yield at
    elif kind == "tmpfs":
        with _mounted(base / "tmpfs", "-t", "tmpfs", "-o", "mode=755", "none") as at:
            yield at
    elif kind == "overlay":
        with overlay(base) as at:
            yield at
    elif kind in network_mounts.KINDS:
        with network_mounts.mounted(kind, base / kind) as mount:
            yield mount.at
    else:
        assert kind == "fuse", kind
        source = base / "fuse-source"
        source.mkdir()
        yield slow_directory(source, 0)
