#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of WordPress and other applications in .htaccess: stock httpd and Flashpache up together, loaded in turn.

  tests/lab/site_rules.py [--quick] [--rounds N] [--seconds S] [--connections N] [--only PATTERN]... [--json FILE]

The rules are those of tests/integration/sites.py, AllowOverride is All. The front controller is a static file, so PHP is left
out and httpd's part stays. Files have a few bytes. Each site is asked for one URL at a time: a static file, a pretty
URL, with a page cache a page of that. Both servers must give the same response before they are measured. Documents are on

memory     tmpfs
slowfs     tmpfs through slowfs: 2 ms for each lookup, getattr and open, and the kernel keeps nothing

Files on a local disk are in the page cache, and their names in the kernel's memory, as on tmpfs. So there is no row of it.

In each round the servers take turns, the other one first each time. A ratio is of one round; a verdict is about the worst.
Capacity is that of a closed loop. CPU is of all processes of a server, the daemon and its workers included. On slowfs an
open loop has the 99th percentiles from the intended start: of Flashpache at half of its own capacity, and of both at half of
stock's. "client" is the share of one processor that flashpache-bench took for Flashpache's capacity. "late" is the number of open loops
where it was late itself: other processes of the machine had its processor, and a percentile is theirs. "answered" is how
Flashpache answered, warming up included: entries expire while stock is measured, and the misses are of that.
WordPress has --rounds, other sites at most two.
--only 'slowfs/event/wordpress/*' chooses cells. Servers have half of the processors; client and slowfs have the others.
Needs root, /dev/fuse and a build (FLASHPACHE_BUILD, default build/). All of it takes half an hour.
"""

import contextlib
import fnmatch
import itertools
import sys
import time
from dataclasses import dataclass

import lab_kit
import shared
from lab import machine, servers as lab_servers
from lab_kit import say
from shared import OURS, STOCK

import sites
from fetch import Client
from slowfs import Slowfs, why_not

DELAY_US = 2000
PLACES, MPMS = ("memory", "slowfs"), ("event", "prefork")
MAIN = "wordpress"
# The URL of each page, and of those sites that have another one.
PATHS = {"static": "/files/photo.txt", "pretty": "/2024/05/a-post", "cached": "/deep/cached/",
         "wordpress/static": "/wp-content/uploads/a.txt", "nextcloud/static": "/core/img/logo.svg",
         "laravel/pretty": "/users/7/edit", "drupal/pretty": "/node/1", "nextcloud/pretty": "/apps/files/"}
CACHED = ("super-cache", "total-cache")
OTHERS = (*CACHED, "laravel", "joomla", "drupal", "nextcloud")
OTHER_ROUNDS = 2
SETTLED_S = 3.5                     # from then on small files are kept by their content, and access files parsed
WARM_UP, WARM_UP_S = 4000, 1        # requests before each measurement, and seconds at most
LEAST_REQUESTS, LONGEST_S = 200, 10     # of an open loop: a 99th percentile needs some
# Goals for WordPress: the least ratio of capacities on slowfs with event, the most ms there, the most CPU to stock's in memory.
CAPACITY_GOAL, P99_GOAL_MS, CPU_GOAL = 100, 2, 0.5


@dataclass(frozen=True)
class Cell:
    """One row of the measurement."""
    place: str
    mpm: str
    site: str
    page: str

    @property
    def label(self):
        return f"{self.place}/{self.mpm}/{self.site}/{self.page}"

    @property
    def path(self):
        return PATHS.get(f"{self.site}/{self.page}", PATHS[self.page])


def all_cells():
    """WordPress first in each place."""
    pages = {site: ("static", "pretty", *(["cached"] if site in CACHED else [])) for site in (MAIN, *OTHERS)}
    return [Cell(place, mpm, site, page) for place, mpm, site in itertools.product(PLACES, MPMS, pages) for page in pages[site]]


@contextlib.contextmanager
def documents(base, names):
    """{place: the directory of all sites}; slowfs shows the files of memory."""
    with lab_kit.memory_directory(base / "memory") as memory:
        slow = Slowfs(lab_kit.SLOWFS, memory, base / "slowfs", DELAY_US)
        for name in names:
            (memory / name).mkdir()
            sites.SITES[name].make(memory / name, is_htaccess=True)
        time.sleep(SETTLED_S)
        try:
            yield {"memory": memory, "slowfs": slow.mount()}
        finally:
            slow.unmount()


def make_servers(base, cell, root, connections):
    """{name: server}, not started. The rules of page caches look at the name of the host, and flashpache-bench gives none."""
    config = (f"UseCanonicalName On\nRequestHeader set Host {cell.site} early\n"
              f"<Directory {root}>\nAllowOverride All\nDirectoryIndex index.php\n</Directory>\n")
    options = {"mpm": cell.mpm, "limits": lab_servers.limits(cell.mpm, connections), "config": config, "vhosts": [([cell.site], "")],
               "around": machine.on_processors(machine.server_processors())}
    name = f"{cell.place}-{cell.mpm}-{cell.site}"
    ours = lab_kit.flashpache(base, f"{name}-flash", root, OURS, **options)
    ours.daemon.around = options["around"]
    return {STOCK: lab_kit.stock(base, f"{name}-stock", root, **options), OURS: ours}


def responses(server, path):
    """A first one, and a warm one."""
    with Client(server.port) as client:
        return [client.get(path) for _ in range(2)]


def must_agree(servers, cell):
    """The front controller answers a pretty URL, and nothing else."""
    theirs, ours = (responses(server, cell.path) for server in servers.values())
    status, body = theirs[0]
    if theirs != ours or status != 200 or (body.decode() == sites.FRONT) != (cell.page == "pretty"):
        sys.exit(f"site_rules.py: {cell.label}: stock answers {theirs}, Flashpache {ours}")


def warm(server, base, path, arguments):
    """Returns the options of any load of it."""
    asking = ("--allow-errors", "-c", arguments.connections, path)
    lab_kit.bench(server.port, base, "-n", WARM_UP, "-d", WARM_UP_S, *asking)
    return asking


def capacity(server, base, path, arguments):
    return lab_kit.measure(server, base, "-d", arguments.seconds, *warm(server, base, path, arguments))


def latency(server, base, path, rate, arguments):
    """At so many requests a second."""
    enough = arguments.seconds if arguments.quick else min(LONGEST_S, max(arguments.seconds, LEAST_REQUESTS / rate))
    found = lab_kit.bench(server.port, base, "-r", f"{rate:.2f}", "-d", f"{enough:.2f}", *warm(server, base, path, arguments))
    return {"p99": found["latency_ms"]["p99"], "errors": found["errors"], "late": found["client_limited"]}


def measure_round(servers, order, base, cell, arguments):
    """{server: result}, the latencies of slowfs in it by the server whose half of the capacity they are at."""
    with shared.client_apart():
        found = {name: capacity(servers[name], base, cell.path, arguments) for name in order}
        if cell.place == "slowfs":
            for name, share_of in ((OURS, OURS), *((name, STOCK) for name in order)):
                found[name].setdefault("at_half", {})[share_of] = latency(
                    servers[name], base, cell.path, found[share_of]["rate"] / 2, arguments)
    return found


def p99(rounds, share_of):
    return lab_kit.summary([one["at_half"][share_of] for one in rounds], "p99") if "at_half" in rounds[0] else None


def goals_missed(cell, row):
    if cell.site != MAIN:
        return ""
    checks = [shared.verdict(row["cpu_us"], CPU_GOAL, False)] if cell.place == "memory" else []
    if (cell.place, cell.mpm) == ("slowfs", "event"):
        checks = [shared.verdict(row["rate"], CAPACITY_GOAL, True), shared.verdict(row["p99"]["own"], P99_GOAL_MS, False)]
    return "; ".join(filter(None, checks))


def row_of(cell, results, notes):
    loads = list(itertools.chain.from_iterable(results.values()))
    open_loops = [each for one in loads for each in one.get("at_half", {}).values()]
    row = {"cell": cell.label, "notes": notes, "errors": sum(each["errors"] for each in loads + open_loops),
           "late": sum(each["late"] for each in open_loops), "client": lab_kit.summary(results[OURS], "client_share"),
           "rate": shared.ratios(results, "rate"), "cpu_us": shared.ratios(results, "cpu_us"),
           "rates": {name: lab_kit.summary(of, "rate") for name, of in results.items()},
           "cpu": {name: lab_kit.summary(of, "cpu_us") for name, of in results.items()},
           "p99": {"own": p99(results[OURS], OURS), "stocks": p99(results[OURS], STOCK), STOCK: p99(results[STOCK], STOCK)}}
    return {**row, "missed": goals_missed(cell, row)}


def measure_cell(servers, base, cell, arguments):
    say(cell.label)
    must_agree(servers, cell)
    mark = servers[OURS].front.mark()
    results = {name: [] for name in servers}
    for number in range(arguments.rounds if cell.site == MAIN else min(arguments.rounds, OTHER_ROUNDS)):
        order = list(servers)[::-1] if number % 2 else list(servers)
        for name, found in measure_round(servers, order, base, cell, arguments).items():
            results[name].append(found)
    return row_of(cell, results, lab_kit.note_counts(servers[OURS].front, mark))


def run(base, cells, arguments):
    """A row for each cell; the servers of one place, MPM and site at a time."""
    rows = []
    with documents(base, {cell.site for cell in cells}) as roots:
        for (place, _, site), group in itertools.groupby(cells, lambda cell: (cell.place, cell.mpm, cell.site)):
            group = list(group)
            servers = make_servers(base, group[0], roots[place] / site, arguments.connections)
            with servers[STOCK], servers[OURS]:
                rows += [measure_cell(servers, base, cell, arguments) for cell in group]
            lab_kit.write_json(arguments.json, rows)
    return rows


def print_rows(rows):
    def ms(found):
        return f"{found['median']:.2f} ({found['min']:.2f}-{found['max']:.2f})" if found else "-"
    lab_kit.print_table(
        ("place/MPM/site/page", "stock req/s", "Flashpache", "of stock", "CPU us", "CPU us", "CPU of stock",
         "p99 ms at half of its own", "of stock's", "stock's p99 there", "client", "late", "errors", "answered", "missed"),
        [(row["cell"], f"{row['rates'][STOCK]['median']:.0f}", f"{row['rates'][OURS]['median']:.0f}", shared.show(row["rate"]),
          f"{row['cpu'][STOCK]['median']:.1f}", f"{row['cpu'][OURS]['median']:.1f}", shared.show(row["cpu_us"]),
          *(ms(row["p99"][which]) for which in ("own", "stocks", STOCK)), f"{row['client']['median']:.2f}", row["late"],
          row["errors"], lab_kit.shares(row["notes"]), row["missed"]) for row in rows])


def parse_arguments():
    parser = lab_kit.parser(__doc__, rounds=5, seconds=2, quick="WordPress on event alone, one short round")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="of PLACE/MPM/SITE/PAGE; may be repeated")
    parser.add_argument("--connections", type=int, default=64, help="and about as many threads or children")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 0.5
    arguments.only = arguments.only or ([f"*/event/{MAIN}/*"] if arguments.quick else ["*"])
    return arguments


def main():
    arguments = parse_arguments()
    lab_kit.prepare()
    if why_not():
        sys.exit(f"site_rules.py: {why_not()}")
    cells = [cell for cell in all_cells() if any(fnmatch.fnmatchcase(cell.label, pattern) for pattern in arguments.only)]
    with lab_kit.work_directory() as base:
        print_rows(run(base, cells, arguments))


if __name__ == "__main__":
    main()
