# SPDX-License-Identifier: Apache-2.0
"""httpd modules that tests compile."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def compiled(directory, source):
    """Compiles that C file to a module in the directory."""
    if not shutil.which("apxs"):
        pytest.skip("needs apxs to make a module")

    def told(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    made = directory / f"{Path(source).stem}.so"
    subprocess.run(["cc", "-shared", "-fPIC", *told("apr-1-config", "--includes", "--cppflags"), "-I",
                    *told("apxs", "-q", "INCLUDEDIR"), "-o", made, source], check=True)
    return made


def probe(directory):
    """LoadModule of probe_module.c, for a configuration."""
    directory.mkdir(parents=True, exist_ok=True)
    return f"LoadModule probe_module {compiled(directory, HERE / 'probe_module.c')}\n"
