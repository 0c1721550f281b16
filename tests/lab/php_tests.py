#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PHP's own tests of files, with its calls answered by libflashpache_files.so and without: the same ones pass and fail.

Run it after scripts/compare --app APP has brought PHP. It fetches PHP's tests as Debian's source package, whose checksum apt
knows, and keeps them below the build directory. On local disk, and on slowfs with 1 ms for each lookup, getattr and open, where
PHP waits for the daemon:

  FLASHPACHE_BUILD=$PWD/build tests/lab/php_tests.py
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import app_kit
import lab_kit
from daemon import Flashpached
from httpd import USER
from lab_kit import say
from slowfs import Slowfs

LIBRARY = lab_kit.BUILD / ".libs/libflashpache_files.so"
KEPT = lab_kit.BUILD / "apps/php-tests"
PARTS = ("ext/standard/tests/file/", "ext/standard/tests/dir/", "ext/phar/tests/", "Zend/tests/include", "Zend/tests/require")
DIRECTORIES = ("ext/standard/tests", "ext/phar/tests", "Zend/tests")
PLACES = ("disk", "slowfs")
DELAY_US = 1000
AGAIN = 3       # runs of a test that differs: one that differs by chance does not count


def sources_of_packages(to):
    """This machine's own lists of where packages come from, for their sources."""
    to.mkdir()
    for path in (Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")):
        if path.suffix in (".list", ".sources") and path.exists():
            (to / path.name).write_text(re.sub(r"(?m)^(Types: )?deb\b(?!-)", r"\1deb-src", path.read_text()))


def fetch():
    """Brings PHP's tests, once for a build directory. apt checks what it downloads."""
    if KEPT.exists():
        return
    work = KEPT.with_name("php-tests.new")
    shutil.rmtree(work, ignore_errors=True)
    (work / "lists/partial").mkdir(parents=True)
    sources_of_packages(work / "sources")
    apt = ["apt-get", "-q", "-o", "Dir::Etc::sourcelist=/nowhere", "-o", f"Dir::Etc::sourceparts={work}/sources", "-o",
           f"Dir::State::lists={work}/lists"]
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    for command in (["update"], ["source", "--download-only", "--tar-only", f"php8.2/{release}"]):
        subprocess.run([*apt, *command], cwd=work, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(next(work.glob("php8.2_*.orig.tar.xz"))) as archive:
        for member in archive:
            member.name = member.name.partition("/")[2]
            if member.name == "run-tests.php" or member.name.startswith(PARTS):
                archive.extract(member, work / "tests")
    (work / "tests").rename(KEPT)
    shutil.rmtree(work)


def wrapper(path, environment):
    """A program in PHP's place: what a process of PHP starts runs without the library, and run-tests.php is one."""
    words = " ".join(f"{name}={value}" for name, value in environment.items())
    extensions = next(app_kit.ROOT.glob("usr/lib/php/2*"))
    path.write_text(f"#!/bin/sh\nexec env {words} {app_kit.ROOT}/usr/bin/php8.2 -d extension_dir={extensions} \"$@\"\n")
    path.chmod(0o755)
    return path


def run(place, base, environment, names, jobs):
    """{test: result}, in a new copy at the same path: messages tell paths."""
    tree = place / "tests"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(KEPT, tree)
    app_kit.give_away(tree)
    php, plain, results = wrapper(base / "php", environment), wrapper(base / "php-plain", {}), tree / "results"
    around = [*app_kit.around(), "setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups"]
    subprocess.run([*around, "env", f"TMPDIR={tree}", "NO_INTERACTION=1", plain, "-n", tree / "run-tests.php", "-q", "-n", "-p", php,
                    f"-j{jobs}", "-W", results, "--set-timeout", "120", *names],
                   cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return {name.removeprefix(f"{tree}/"): result for result, name in (line.split("\t")[:2] for line in results.read_text().splitlines())}


def differing(first, second):
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def compare(label, place, base, environment, arguments):
    parts = arguments.part or DIRECTORIES
    without = run(place, base, {}, parts, arguments.jobs)
    answered = run(place, base, environment, parts, arguments.jobs)
    names = differing(without, answered)
    say(f"{label}: {len(without)} tests, {sum(r == 'PASSED' for r in without.values())} passed without the library, {len(names)} differ at first")
    for _ in range(AGAIN):
        if names:
            one, other = run(place, base, {}, names, 1), run(place, base, environment, names, 1)
            names = differing({n: one.get(n) for n in names}, {n: other.get(n) for n in names})
    for name in names:
        say(f"{label}: {name}: {without.get(name)}, with the library {answered.get(name)}")
    return len(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", action="append", choices=PLACES, help="may be repeated")
    parser.add_argument("--part", action="append", help="a directory of tests; may be repeated (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if app_kit.why_not():
        sys.exit(f"php_tests: {app_kit.why_not()}")
    fetch()
    lab_kit.prepare()
    wrong = 0
    with lab_kit.work_directory() as base:
        for label in arguments.place or PLACES:
            source = base / label
            source.mkdir()
            mount = Slowfs(lab_kit.SLOWFS, source, base / "mount", DELAY_US) if label == "slowfs" else None
            place = mount.mount() if mount else source
            daemon = Flashpached(base, label + "-d", lab_kit.DAEMON, ttl_ms=3000, workers=32).start()
            try:
                wrong += compare(label, place, base, {"LD_PRELOAD": LIBRARY, "FLASHPACHE_FILES": place, "FLASHPACHE_SOCKET": daemon.socket},
                                 arguments)
                counters = daemon.counters()
                say(f"{label}: the daemon had {counters['hinted']} hints and {counters['hits'] + counters['misses']} questions")
            finally:
                daemon.stop()
                if mount:
                    mount.unmount()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
