#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds that a page of an application in PHP takes, with PHP's own calls answered from memory and without.

One process of php-fpm (libflashpache_files.so) or of httpd with mod_php (FlashpacheIntercept mod_php), one request after
another through Flashpache, on local disk, on slowfs (2 ms for each lookup, getattr and open), and on "kept": slowfs with 3 ms,
where the kernel keeps names and attributes for 3 s, as that of an NFS client does. Run it after scripts/compare --app APP has brought the application:

  FLASHPACHE_BUILD=$PWD/build tests/lab/php_files.py --app wordpress
"""

import itertools
import statistics
import sys
import time

import app_compare
import app_kit
import call_count
import lab_kit
from fetch import Client
from lab_kit import say
from slowfs import Slowfs

LIBRARY = lab_kit.BUILD / ".libs/libflashpache_files.so"
SETTINGS = {"defaults": {}, "recommended": {**app_compare.NEVER, **app_compare.REALPATH, "opcache.enable_file_override": 1}}
FPM, MOD_PHP = WAYS = ("php-fpm", "mod_php")
ONE_CHILD = "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 1\nMaxRequestWorkers 1\n"
IDLE_S = 10
KEPT, KEPT_S, KEPT_DELAY_US = "kept", 3, 3000
WARM, TRACED = 3, 4


def seconds(server, page):
    began = time.monotonic()
    with Client(server.port, app_kit.PATIENT_S) as client:
        status = client.get(page.path)[0]
    if status != page.status:
        raise ValueError(f"{page.path}: {status}")
    return time.monotonic() - began


def calls(server, pids, base, page):
    """PHP's calls on paths for a page that reach the kernel."""
    def ask(number):
        for _ in range(number):
            seconds(server, page)
    found = call_count.per_request(pids(), base / "out" / "trace", ask, TRACED)
    return {name: rate for (kind, name), rate in found.items() if kind == "path"}


def pair(run, place, way, answered, ttl_ms):
    """A server, not started, and what tells the processes that run PHP."""
    docroot, name, base = run.docroots[place], f"php{next(run.number)}", run.base
    kept = base / f"{name}-kept"
    kept.mkdir()
    app_kit.give_away(kept)
    options = {"around": app_kit.around(), "daemon_settings": {"workers": 64, "ttl_ms": ttl_ms, "warm_file": kept / "paths"}}
    if way == MOD_PHP:
        intercept = "FlashpacheIntercept mod_php\n" if answered else ""
        server = lab_kit.flashpache(base, name, docroot, mpm="prefork", limits=ONE_CHILD, config=run.app.config_mod_php(docroot) + intercept,
                                    **options)
        return server, server.front.pids
    server = lab_kit.flashpache(base, name, docroot, mpm="event", config=run.app.config(docroot), extra_modules=app_kit.MODULES, **options)
    run.php.environment = {"LD_PRELOAD": LIBRARY, "FLASHPACHE_FILES": docroot, "FLASHPACHE_SOCKET": server.daemon.socket} if answered else {}
    return server, run.php.pids


def after_restarts(run, server, page):
    """Pages after a restart of the daemon, some time ago, and just after one of php-fpm: in both cases the other one goes on."""
    server.daemon.stop()
    server.daemon.start()
    time.sleep(IDLE_S)
    after_daemon = [seconds(server, page) for _ in range(2)]
    run.php.restart()
    return after_daemon, [seconds(server, page) for _ in range(2)]


def told(pages):
    return " ".join(f"{s:.2f}" for s in pages) or "-"


def measure(run, place, arguments, ttl_ms):
    for way, (label, settings), answered in itertools.product(WAYS, SETTINGS.items(), (False, True)):
        name = "answered" if answered else "without"
        if not run.is_wanted(place, way, label, name):
            continue
        server, pids = pair(run, place, way, answered, ttl_ms)
        page = run.app.page(arguments.page)
        run.php.set(**settings)
        with server:
            cold = [seconds(server, page) for _ in range(WARM)]
            before = run.operations(place)
            warm = [seconds(server, page) for _ in range(arguments.rounds)]
            busy = run.operations(place)
            time.sleep(IDLE_S)
            idle = [seconds(server, page) for _ in range(2)]
            after = run.operations(place)
            # Without answers their number is the same where files are slow.
            made = calls(server, pids, run.base, page) if answered or place == app_compare.PLACES[0] else {}
            restarts = after_restarts(run, server, page) if answered and way == FPM else ([], [])
        say(f"{place} ttl_ms {ttl_ms} {way} {label} {name}: {statistics.median(warm):.3f} s")
        yield (place, ttl_ms, way, label, name, told(cold), f"{statistics.median(warm):.3f} ({min(warm):.3f}-{max(warm):.3f})",
               told(idle), "-" if after is None else f"{(busy - before) / len(warm):.0f}, {(after - busy) / len(idle):.0f}",
               *map(told, restarts),
               f"{sum(made.values()):.0f}" if made else "-", " ".join(f"{n}:{c:.0f}" for n, c in sorted(made.items(), key=lambda i: -i[1])))


class Run(app_compare.Run):
    """A third place: a file system whose names and attributes the kernel keeps."""

    def mount(self):
        found = super().mount()
        if len(found) == len(app_compare.PLACES):
            keeps = [f"--{what}-timeout={KEPT_S}" for what in ("attr", "entry", "absent")]
            kept = Slowfs(lab_kit.SLOWFS, self.app.docroot, self.base / KEPT, KEPT_DELAY_US, "--keep-cache", *keeps)
            found[KEPT] = kept.mount()
            self.stack.callback(kept.unmount)
            self.count = lambda: sum(kept.counters()[name] for name in ("lookup", "getattr", "open"))
        return found

    def operations(self, place):
        """Of the file server until now; None where it is another place's."""
        return self.count() if place == KEPT else None


def parse_arguments():
    parser = lab_kit.parser(__doc__, rounds=9, seconds=0, quick="three requests")
    parser.add_argument("--app", required=True, choices=sorted(app_kit.APPS))
    parser.add_argument("--page", default="pretty", choices=app_compare.KINDS)
    parser.add_argument("--ttl-ms", type=int, action="append", help="of the daemon; may be repeated (default: 3000)")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="of PLACE/WAY/SETTINGS/answered or without; may be repeated")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 3
    return arguments


def main():
    arguments = parse_arguments()
    if app_kit.why_not():
        sys.exit(f"php_files: {app_kit.why_not()}")
    lab_kit.prepare()
    app_kit.FPM_PROCESSES = 1
    rows = []
    with lab_kit.work_directory() as base, Run(base, arguments) as run:
        try:
            for place, ttl_ms in itertools.product(run.docroots, arguments.ttl_ms or [3000]):
                rows += measure(run, place, arguments, ttl_ms)
        finally:
            print()
            lab_kit.print_table(("place", "ttl_ms", "way", "settings", "PHP's calls", "first pages, s", "warm, s a page",
                                 f"after {IDLE_S} s idle, s", "operations a page, then", "after the daemon's restart, s", "after PHP's, s", "calls on paths", "by name"), rows)
            lab_kit.write_json(arguments.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
