#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An application in PHP on stock Apache and on Flashpache, in turn: run by scripts/compare --app.

On local disk and on slowfs (2 ms for each lookup, getattr and open), event with php-fpm and prefork with mod_php.
It measures requests per second, latency at one load, processor time of httpd, calls on paths, and what PHP's own
settings do.
"""

import contextlib
import fnmatch
import itertools
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import app_kit  # noqa: E402
import call_count  # noqa: E402
import lab_kit  # noqa: E402
from fetch import Client  # noqa: E402
from lab_kit import say  # noqa: E402
from slowfs import Slowfs, why_not as no_slowfs  # noqa: E402

KINDS = ("static", "pretty", "missing")
PHP_KINDS = ("event+php-fpm", "prefork+mod_php")
PLACES = ("disk", "slowfs")
DELAY_US = 2000
CONNECTIONS = 32
WARM_REQUESTS = {"static": 64, "pretty": 32, "missing": 32}
TRACED = {"static": 50, "pretty": 6, "missing": 6}
# A latency needs some requests, and the measurement must end.
LEAST_RATE, LEAST_REQUESTS, LONGEST_S = 0.5, 40, 20
SETTLED_S = 3.2         # seconds; the daemon keeps the content of a file older than this
PREFORK = f"StartServers {CONNECTIONS}\nMinSpareServers 1\nMaxSpareServers 96\nServerLimit 96\nMaxRequestWorkers 96\n"
# Rows of the table of PHP's settings. The first is the default; each other row has only its differences from it.
FRESH = {"opcache.revalidate_freq": 60}
NEVER = {"opcache.validate_timestamps": 0}
REALPATH = {"realpath_cache_ttl": 3600, "realpath_cache_size": "16M"}
VARIANTS = (("defaults", {}), ("realpath_cache_ttl=3600", REALPATH), ("opcache.revalidate_freq=60", FRESH),
            ("both", {**FRESH, **REALPATH}), ("opcache.validate_timestamps=0", NEVER),
            ("validate_timestamps=0 and realpath_cache_ttl=3600", {**NEVER, **REALPATH}),
            ("also opcache.enable_file_override=1", {**NEVER, **REALPATH, "opcache.enable_file_override": 1}),
            ("opcache.enable=0", {"opcache.enable": 0}), ("open_basedir set", {"open_basedir": "/"}))


def pair(base, app, docroot, php_kind, number):
    """[stock, Flashpache], not started, on one document root."""
    fpm = php_kind == PHP_KINDS[0]
    options = {"mpm": "event" if fpm else "prefork", "limits": None if fpm else PREFORK,
               "config": app.config(docroot) if fpm else app.config_mod_php(docroot),
               "extra_modules": app_kit.MODULES if fpm else (), "around": app_kit.around()}
    return [lab_kit.stock(base, f"stock{number}", docroot, **options),
            lab_kit.flashpache(base, f"flash{number}", docroot, **options)]


def load(server, base, page, *options):
    return lab_kit.measure(server, base, "-c", CONNECTIONS, "--allow-errors", "-t", app_kit.PATIENT_S, *options, page.path)


def latency(server, base, page, rate, seconds):
    """{"p50": ms, "p99": ms} at a rate, from the intended start of each request."""
    enough = min(LONGEST_S, max(seconds, LEAST_REQUESTS / rate))
    return load(server, base, page, "-r", f"{rate:.2f}", "-d", f"{enough:.1f}")["latency_ms"]


def compare_page(servers, base, page, arguments):
    """{server: {figure: [of each round]}}: as fast as possible, then both at half of stock's capacity."""
    found = {server.name: {"rate": [], "cpu_us": [], "p50": [], "p99": []} for server in servers}
    for server in servers:
        load(server, base, page, "-n", WARM_REQUESTS[page.kind])
    for _ in range(arguments.rounds):
        for server in servers:
            result = load(server, base, page, "-d", arguments.seconds)
            for key in ("rate", "cpu_us"):
                found[server.name][key].append(result[key])
        rate = max(LEAST_RATE, found[servers[0].name]["rate"][-1] / 2)
        for server in servers:
            result = latency(server, base, page, rate, arguments.seconds)
            for key in ("p50", "p99"):
                found[server.name][key].append(result[key])
    return found


def calls_on_paths(server, pids, base, page):
    """{call: how often for each request} of these processes, on paths alone."""
    def ask(number):
        with Client(server.port, app_kit.PATIENT_S) as client:
            for _ in range(number):
                client.get(page.path)
    ask(3)
    found = call_count.per_request(pids, base / "out" / "trace", ask, TRACED[page.kind])
    return {name: rate for (kind, name), rate in found.items() if kind == "path"}


def trace_pages(servers, base, app, php_kind):
    """{page: {"stock": calls a request, "Flashpache": .., "PHP": ..}}. mod_php's own are among httpd's."""
    found = {}
    for kind in KINDS:
        page = app.page(kind)
        found[kind] = {s.name: sum(calls_on_paths(s, s.front.pids(), base, page).values()) for s in servers}
        if php_kind == PHP_KINDS[0]:
            found[kind]["PHP"] = sum(calls_on_paths(servers[1], app.php.pids(), base, page).values())
    return found


def bodies(server, app, pages):
    """{path: (status, type, body without the parts that differ each time)}"""
    found = {}
    for page in pages:
        with Client(server.port, app_kit.PATIENT_S) as client:
            client.conn.request("GET", page.path, headers={"Host": "localhost"})
            answer = client.conn.getresponse()
            found[page.path] = (answer.status, answer.headers["Content-Type"], app_kit.plain(app, answer.read()))
    return found


def differing(app, pages, *servers):
    """Paths that the servers answer differently, once each answered before."""
    for server in servers:
        bodies(server, app, pages)
    theirs, ours = (bodies(server, app, pages) for server in servers)
    return [path for path in theirs if theirs[path] != ours[path]]


class Run:
    """One application, set up once and measured everywhere."""

    def __init__(self, base, arguments):
        self.base, self.arguments = base, arguments
        self.rows, self.calls, self.settings, self.different = [], [], [], []
        self.compared = 0
        self.number = itertools.count()

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with self.stack:
            self.php = app_kit.Php(self.base / "php")
            say(f"setting {self.arguments.app} up")
            self.stack.enter_context(self.php)
            app = app_kit.APPS[self.arguments.app](self.base, self.php)
            self.app = app.make(self.database() if app.needs_database else None)
            self.docroots = self.mount()
            time.sleep(SETTLED_S)
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def database(self):
        """Runs as long as this."""
        made = app_kit.Database(self.base / "database")
        made.make()
        return self.stack.enter_context(made)

    def mount(self):
        """{place: document root}"""
        if no_slowfs():
            say(f"slowfs is left out: {no_slowfs()}")
            return {PLACES[0]: self.app.docroot}
        slow = Slowfs(lab_kit.SLOWFS, self.app.docroot, self.base / "slow", DELAY_US, "--keep-cache")
        slow.mount()
        self.stack.callback(slow.unmount)
        return {PLACES[0]: self.app.docroot, PLACES[1]: slow.target}

    def is_wanted(self, *label):
        """True unless --only leaves it out."""
        return any(fnmatch.fnmatchcase("/".join(label), pattern) for pattern in self.arguments.only or ["*"])

    def measure(self, place, php_kind):
        """Measures the wanted pages, and calls on paths."""
        kinds = [kind for kind in KINDS if self.is_wanted(place, php_kind, kind)]
        is_traced = place == PLACES[0] and self.is_wanted("calls", php_kind)
        if not kinds and not is_traced:
            return
        servers = pair(self.base, self.app, self.docroots[place], php_kind, next(self.number))
        with servers[0], servers[1]:
            # Where files are slow a page takes seconds: only the measured ones are requested.
            pages = self.app.pages if place == PLACES[0] else [self.app.page(kind) for kind in kinds]
            self.compared += len(pages)
            self.different += [f"{place}/{php_kind}{path}" for path in differing(self.app, pages, *servers)]
            for kind in kinds:
                say(f"{place}/{php_kind}/{kind}")
                self.rows.append((place, php_kind, kind, compare_page(servers, self.base, self.app.page(kind), self.arguments)))
            if is_traced:
                say(f"calls/{php_kind}")
                self.calls.append((php_kind, trace_pages(servers, self.base, self.app, php_kind)))

    def try_settings(self):
        """The pretty URL through Flashpache where the files are slow, with other settings of PHP. Calls are counted
        where the files are fast: the number is the same."""
        server, fast = (pair(self.base, self.app, docroot, PHP_KINDS[0], next(self.number))[1]
                        for docroot in (list(self.docroots.values())[-1], self.app.docroot))
        page = self.app.page("pretty")
        with server, fast:
            for name, settings in VARIANTS:
                say(f"settings: {name}")
                self.php.set(**settings)
                load(server, self.base, page, "-n", WARM_REQUESTS[page.kind])
                rounds = [load(server, self.base, page, "-d", self.arguments.seconds) for _ in range(self.arguments.rounds)]
                load(fast, self.base, page, "-n", WARM_REQUESTS[page.kind])
                calls = calls_on_paths(fast, self.php.pids(), self.base, page)
                self.settings.append((name, lab_kit.summary(rounds, "rate"),
                                      [one["latency_ms"]["p50"] for one in rounds], sum(calls.values()), calls))
        self.php.set()


def show(values, form=".0f"):
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def print_pages(rows):
    print("\nRequests per second at most; processor time of httpd (with mod_php of PHP, too) a request; latency at half of stock's rate\n")
    table = []
    for place, php_kind, kind, found in rows:
        stock, ours = found["stock"], found["Flashpache"]
        for name, figures in found.items():
            table.append((f"{place}/{php_kind}/{kind}", name, show(figures["rate"]), show(figures["cpu_us"]),
                          show(figures["p50"], ".2f"), show(figures["p99"], ".1f"),
                          "" if name == "stock" else f"{statistics.median([a / b for a, b in zip(ours['rate'], stock['rate'])]):.2f}",
                          "" if name == "stock" else f"{statistics.median([a / b for a, b in zip(ours['cpu_us'], stock['cpu_us'])]):.2f}"))
    lab_kit.print_table(("page", "server", "requests/s", "CPU us", "p50 ms", "p99 ms", "rate to stock", "CPU to stock"), table)


def print_calls(calls):
    print("\nCalls on paths for a warm request, by strace. mod_php's are among httpd's\n")
    lab_kit.print_table(("page", "httpd, stock", "httpd, Flashpache", "php-fpm"), [
        (f"{php_kind}/{kind}", f"{count['stock']:.2f}", f"{count['Flashpache']:.2f}",
         f"{count['PHP']:.2f}" if "PHP" in count else "-") for php_kind, pages in calls for kind, count in pages.items()])


def print_settings(settings):
    print("\nPHP's settings: the pretty URL through Flashpache, php-fpm, where files are slow\n")
    first = settings[0][1]["median"]
    lab_kit.print_table(("settings", "requests/s", "to the defaults", "p50 ms", "PHP's calls on paths", "by name"), [
        (name, f"{rate['median']:.1f} ({rate['min']:.1f}-{rate['max']:.1f})", f"{rate['median'] / first:.2f}",
         show(p50, ".0f"), f"{calls:.0f}", " ".join(f"{n}:{c:.0f}" for n, c in sorted(by_name.items(), key=lambda i: -i[1])))
        for name, rate, p50, calls, by_name in settings])


def parse_arguments():
    parser = lab_kit.parser(__doc__, rounds=3, seconds=3, quick="one short round")
    parser.add_argument("--app", required=True, choices=sorted(app_kit.APPS))
    parser.add_argument("--only", action="append", metavar="PATTERN",
                        help="of PLACE/PHP/PAGE as progress shows them, calls/PHP, and settings; may be repeated")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 1
    return arguments


def tell(run, file):
    """Prints the measurements, also where the rest was stopped."""
    for printed, rows in ((print_pages, run.rows), (print_calls, run.calls), (print_settings, run.settings)):
        if rows:
            printed(rows)
    if run.different:
        print("\npages differ from stock's: " + "; ".join(run.different))
    elif run.compared:
        print(f"\n{run.compared} pages compared, all as stock's")
    lab_kit.write_json(file, {"pages": run.rows, "calls": run.calls, "settings": run.settings, "different": run.different})


def main():
    arguments = parse_arguments()
    if app_kit.why_not():
        sys.exit(f"compare: {app_kit.why_not()}")
    lab_kit.prepare()
    with lab_kit.work_directory() as base, Run(base, arguments) as run:
        try:
            for place, php_kind in itertools.product(run.docroots, PHP_KINDS):
                run.measure(place, php_kind)
            if run.is_wanted("settings"):
                run.try_settings()
        finally:
            tell(run, arguments.json)
    return 1 if run.different else 0


if __name__ == "__main__":
    sys.exit(main())
