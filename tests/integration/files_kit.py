# SPDX-License-Identifier: Apache-2.0
"""Programs that run with libflashpache_files.so before the C library."""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import built
from httpd import USER

HERE = Path(__file__).resolve().parent
KERNEL_CALLS = "newfstatat,faccessat,faccessat2,access,stat,lstat,statx"


def compiled(directory, source, *options):
    """The program, or with -shared the library, that this C file makes."""
    made = directory / (Path(source).stem + (".so" if "-shared" in options else ""))
    done = subprocess.run(["cc", "-O1", *options, "-o", made, HERE / source, "-ldl"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("needs a C compiler: " + done.stderr[-300:])
    return made


def environment(roots, socket, **more):
    """The program's environment. Sanitizers have a preload of their own."""
    library = built(".libs/libflashpache_files.so")
    return {**os.environ, "LD_PRELOAD": str(library), "FLASHPACHE_FILES": str(roots), "FLASHPACHE_SOCKET": str(socket), **more}


def as_user(user=USER):
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]


def run(command, roots, socket, around=None, **options):
    return subprocess.run([*(as_user() if around is None else around), *map(str, command)], env=environment(roots, socket),
                          capture_output=True, text=True, timeout=600, **options)
