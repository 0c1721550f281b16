# SPDX-License-Identifier: Apache-2.0
"""Programs and module have the protections that compiler and linker were asked for."""

import os
import re
import subprocess

import pytest

from conftest import BUILD

MODULES = {"flashpache_module": "mod_flashpache/.libs/mod_flashpache.so",
           "flashpache_srpt_module": "mod_flashpache/.libs/mod_flashpache_srpt.so"}
FILES = {**MODULES, "daemon": "backend/flashpached",
         "flashpachectl": "backend/flashpachectl", "flashpache-bench": "tests/lab/flashpache-bench"}
ENDBR = {"x86_64": b"\xf3\x0f\x1e\xfa"}      # begins each possible target of a pointer call: -fcf-protection
COPIES = {"memcpy", "memmove", "memset", "snprintf", "sprintf", "strcat", "strcpy", "strncpy", "vsnprintf"}
SOME = 10                                   # more than the C library's own start code has


def readelf(option, path):
    # A locale would translate its words.
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


@pytest.fixture(scope="module", autouse=True)
def hardened():
    if "HARDEN_EXE=''" in (BUILD / "config.log").read_text(errors="replace"):
        pytest.skip("configured with --disable-hardening")


@pytest.fixture(params=FILES)
def path(request):
    path = BUILD / FILES[request.param]
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def segments(path):
    """(type, flags) of each."""
    return re.findall(r"^  ([A-Z_]+) +(?:0x\w+ +){5}([RWE ]{3})", readelf("-l", path), re.M)


def symbols(path):
    return set(re.findall(r" (\w+)(?:@\S+)?(?: \(\d+\))?$", readelf("--dyn-syms", path), re.M))


def test_it_lies_at_no_fixed_address(path):
    assert re.search(r"Type: +DYN ", readelf("-h", path))
    if path.suffix != ".so":
        assert re.search(r"FLAGS_1.* PIE", readelf("-d", path))


def test_its_tables_are_read_only(path):
    assert "GNU_RELRO" in dict(segments(path))
    assert re.search(r"BIND_NOW|FLAGS_1.* NOW", readelf("-d", path))


def test_nothing_is_writable_and_executable(path):
    flags = segments(path)
    assert dict(flags)["GNU_STACK"].strip() == "RW"
    assert not [s for s in flags if "W" in s[1] and "E" in s[1]]
    assert "TEXTREL" not in readelf("-d", path)


def test_stacks_are_guarded(path):
    assert "__stack_chk_fail" in symbols(path)


def test_copies_are_checked(path):
    """_FORTIFY_SOURCE: in all functions that copy, where the compiler knows the size."""
    assert {name for name in symbols(path) if name.endswith("_chk")} or not symbols(path) & COPIES


def test_libraries_come_from_the_system(path):
    assert not re.search(r"\((RPATH|RUNPATH)\)", readelf("-d", path))


def test_branches_have_marks(path):
    mark = ENDBR.get(os.uname().machine)
    if mark is None:
        pytest.skip("not on this processor")
    assert path.read_bytes().count(mark) > SOME


@pytest.mark.parametrize("record", MODULES)
def test_a_module_exports_its_record_alone(record):
    """Another module's function of the same name would run instead of ours."""
    defined = subprocess.run(["nm", "-D", "--defined-only", BUILD / MODULES[record]], check=True,
                             capture_output=True, text=True).stdout
    assert [line.split()[-1] for line in defined.splitlines()] == [record]
