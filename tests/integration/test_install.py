# SPDX-License-Identifier: Apache-2.0
"""make install and make uninstall: the installed files serve, and none is left afterwards; the files of a release."""

import os
import shutil
import subprocess

import pytest

import tree
from conftest import BUILD, REPO
from fetch import get
from httpd import HITS

pytestmark = [pytest.mark.needs_flashpache,
              pytest.mark.skipif(not shutil.which("make"), reason="needs make")]
PROGRAMS = {"flashpached", "flashpachectl"}
MODULES = {"mod_flashpache.so", "mod_flashpache_srpt.so"}
LIBRARY = {"libflashpache_files.so", "php-fpm.conf"}       # of PHP's own calls
COMPLETIONS = ("completions", "site-functions", "vendor_completions.d")     # of bash, zsh, fish
OF_THE_REPOSITORY = {".clang-format", ".gitignore"}        # of no use to those who only build
MANUALS = {"flashpached.8", "flashpachectl.8", "flashpached.conf.5"}


@pytest.fixture
def stage(base):
    """stage(target): make that target for a root of its own; returns the files there afterwards.

    In the tests' directory, where httpd's children may read the module and run the daemon.
    """
    root = base / "stage"

    def make(target):
        subprocess.run(["make", "-s", "-C", BUILD, target, f"DESTDIR={root}"], check=True, capture_output=True)
        return [path for path in root.rglob("*") if not path.is_dir()]
    yield make
    shutil.rmtree(root, ignore_errors=True)


def test_installed_used_and_removed(lab, base, stage):
    completion, found = {}, {}
    for path in stage("install"):
        (completion if path.parent.name in COMPLETIONS else found)[path.name] = path
    assert set(completion) == {"flashpachectl", "_flashpachectl", "flashpachectl.fish"}
    assert set(found) == PROGRAMS | MODULES | LIBRARY | MANUALS
    assert found["flashpached"].stat().st_mode & 0o777 == 0o711
    for name in PROGRAMS:
        assert os.access(found[name], os.X_OK)
        version = subprocess.run([found[name], "--version"], capture_output=True, text=True, check=True).stdout
        assert version.startswith(f"{name} ")
    docroot = base / "install-tree"
    tree.put(docroot / "file.txt", "served by what was installed\n")
    server = lab.stock("inst", docroot, module=found["mod_flashpache.so"],
                       config=f"FlashpacheDaemonProgram {found['flashpached']}\nFlashpacheSchedule SRPT\n").start()
    notes = []
    while not notes or notes[-1] not in HITS:
        assert get(server.port, "/file.txt") == (200, b"served by what was installed\n")
        notes = [entry.note for entry in server.wait_entries(len(notes) + 1)]
        assert len(notes) < 1000, notes
    server.stop()
    assert stage("uninstall") == []


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_a_release_has_every_file_of_the_repository(base):
    """Packages are built of it, so a page that is missing here is missing there."""
    listed = subprocess.run(["git", "-c", f"safe.directory={REPO}", "-C", REPO, "ls-files", "-z"],
                            capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("needs a checkout: " + listed.stderr.strip())
    release = base / "release"
    subprocess.run(["make", "-s", "-C", BUILD, "distdir", f"distdir={release}", f"top_distdir={release}"],
                   check=True, capture_output=True, timeout=300)
    assert not [name for name in listed.stdout.split("\0")[:-1]
                if name not in OF_THE_REPOSITORY and not (release / name).exists()]
