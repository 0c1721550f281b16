#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds that a page of an application in PHP takes on a file server, and its operations there, with PHP's own calls
answered and without.

  tests/vm/run --apps --memory 3072 --also php8.2-cli,libapparmor1,libsystemd0,php8.2-mysql,php8.2-xml,php8.2-mbstring,php8.2-intl,php8.2-sqlite3,mariadb-server-core
               python3 tests/vm/php.py [--app APP] [--delays MS,...] [--rounds N] [--ttl-ms MS] [KIND]...

KIND is nfs4 or nfs3, by default each. The delay is that of each request to the file server, by netem. One process of php-fpm
behind Flashpache in each row, one page after another, on mounts of their own without delegations. Seconds are this machine's: in
emulation PHP itself is ten to twenty times slower, so the operations and what they cost at a delay count.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import kit
import app_compare
import app_kit
import lab_kit
import network_mounts
import php_files

WARM = 3
COUNTED = 4             # pages whose operations are counted


def measure(run, place, at, settings, answered, given):
    server, _ = php_files.pair(run, place, php_files.FPM, answered, given.ttl_ms)
    page = run.app.page("pretty")
    run.php.set(**php_files.SETTINGS[settings])
    operations = (lambda: kit.nfs_operations(at)) if at else (lambda: kit.Counter())
    with server:
        first = [php_files.seconds(server, page) for _ in range(WARM)]
        warm = [php_files.seconds(server, page) for _ in range(given.rounds)]
        before = operations()
        for _ in range(COUNTED):
            php_files.seconds(server, page)
        made = operations() - before
        time.sleep(php_files.IDLE_S)
        before = operations()
        idle = php_files.seconds(server, page)
        made_idle = operations() - before
    return (place, settings, "answered" if answered else "without", php_files.told(first),
            f"{statistics.median(warm):.2f} ({min(warm):.2f}-{max(warm):.2f})", f"{idle:.2f}", f"{sum(made.values()) / COUNTED:.0f}, {sum(made_idle.values())}",
            " ".join(f"{name}:{count / COUNTED:.0f}" for name, count in made.most_common(5) if count >= COUNTED))


class Run(app_compare.Run):
    """The documents on disk alone: mounts come and go."""

    def mount(self):
        return {"disk": self.app.docroot}


def rows(run, kind, delay, base, given):
    with ExitStack() as stack:
        place, at = "disk", None
        if kind:
            place = f"{kind} {delay} ms"
            mount = stack.enter_context(network_mounts.mounted(kind, base / f"{kind}-{delay}", "nosharecache"))
            shutil.copytree(run.app.docroot, mount.behind, dirs_exist_ok=True)
            app_kit.give_away(mount.behind)
            mount.behind.chmod(0o755)
            run.docroots[place] = at = mount.at
            if float(delay):
                stack.enter_context(kit.delayed(delay))
        for settings in given.settings:
            for answered in (False, True):
                made = measure(run, place, at, settings, answered, given)
                print("  ".join(made), flush=True)
                yield made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--app", default="wordpress", choices=[name for name in app_kit.APPS if name != "mediawiki"])
    parser.add_argument("--delays", type=lambda text: text.split(","), default="1,3")
    parser.add_argument("--settings", type=lambda text: text.split(","), default=",".join(php_files.SETTINGS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ttl-ms", type=int, default=3000)
    parser.add_argument("kinds", nargs="*")
    given = parser.parse_args()
    given.only = None
    kit.begin()
    app_kit.FPM_PROCESSES = 1
    with tempfile.TemporaryDirectory(prefix="php-") as directory, Run(Path(directory), given) as run:
        base = Path(directory)
        base.chmod(0o755)
        (base / "out").mkdir(exist_ok=True)
        table = [*rows(run, None, 0, base, given)]
        for kind in given.kinds or ("nfs4", "nfs3"):
            for delay in given.delays:
                table += rows(run, kind, delay, base, given)
    print()
    lab_kit.print_table(("place", "settings", "PHP's calls", "first pages, s", "warm, s a page", f"after {php_files.IDLE_S} s idle, s",
                         "operations a page, after the pause", "by name"), table)


main()
