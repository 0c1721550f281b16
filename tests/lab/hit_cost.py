#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A warm hit in memory: what it costs, side by side in one run.

  tests/lab/hit_cost.py [--quick] [--rounds N] [--seconds S] [--only PATTERN]...
                        [--sendfile] [--most] [--no-calls] [--json FILE]

Three servers with the same configuration: stock httpd; Flashpache with FlashpacheLeases 0,
where every request asks the daemon ("message"); and Flashpache as it is ("lease"). --most adds a fourth: an httpd that
does no work on files (no_files), as shared.py has. Each is
asked for one file, six directories deep, for every combination of MPM, configuration, size and
number of connections; --only 'event/None/5000/*' chooses some. In each round the servers take
turns, and the tables have medians and ranges of the rounds. CPU is that of all processes of a
server, the daemon and its workers included. "turns" is how often one of their threads was given a
processor for each request. "client" is the share of one processor that
flashpache-bench took: near 1 it, and not the server, bounds the requests/s.

System calls are counted in runs of their own, httpd and the daemon apart, because tracing makes
everything slow. Needs root, strace and a build (FLASHPACHE_BUILD, default build/).
"""

import argparse
import contextlib
import fnmatch
import itertools
import time
from dataclasses import dataclass

import call_count
import lab_kit
from lab_kit import say

DEPTH = "a/b/c/d/e"
MPMS = ("prefork", "event")
SIZES = (500, 5000, 50_000, 1_000_000)
CONNECTIONS = (1, 64)
# All children exist from the beginning, so none is made during a measurement.
LIMITS = {
    "prefork": "StartServers 64\nMinSpareServers 1\nMaxSpareServers 64\n"
               "ServerLimit 64\nMaxRequestWorkers 64\n",
    "event": "StartServers 2\nServerLimit 2\nThreadLimit 48\nThreadsPerChild 48\n"
             "MinSpareThreads 1\nMaxSpareThreads 96\nMaxRequestWorkers 96\n",
}
# The goal: CPU of a leased hit as a share of stock's.
TARGETS = {"None": 0.80, "All": 0.62, "htaccess": 0.48}
SETTLED_S = 3.5                     # from then on small files are kept by their content, and access files parsed
WARM_UP = 2000                      # requests, on the connections of the later measurement
TRACED = {"httpd": 600, "daemon": 3000}   # requests while these are traced
RULES = r"""
<FilesMatch "\.(engine|inc|install|make|module|profile|po|sh|.*sql|theme|twig|tpl(\.php)?|yml)(~|\.bak|\.orig)?$|^(\.(?!well-known).*|Entries.*|Repository|Root|Tag|Template|composer\.(json|lock)|web\.config)$|^#.*#$">
    Require all denied
</FilesMatch>
Options -Indexes
ErrorDocument 404 "not here"
DirectoryIndex index.php index.html index.htm
AddType image/svg+xml svg svgz
AddEncoding gzip svgz
<IfModule mod_expires.c>
    ExpiresActive On
    ExpiresDefault A1209600
    <FilesMatch \.php$>
        ExpiresActive Off
    </FilesMatch>
</IfModule>
<IfModule mod_rewrite.c>
    RewriteEngine on
    RewriteRule ^ - [E=protossl]
    RewriteCond %{HTTPS} on
    RewriteRule ^ - [E=protossl:s]
    RewriteRule "/\.|^\.(?!well-known/)" - [F]
    RewriteCond %{REQUEST_URI} ^(.*)?/(install\.php) [OR]
    RewriteCond %{REQUEST_URI} ^(.*)?/(rebuild\.php)
    RewriteCond %{REQUEST_URI} !core
    RewriteRule ^ %1/core/%2 [L,QSA,R=301]
    RewriteRule ^core/install\.php$ core/install.php?rewrite=ok [QSA,L]
    RewriteCond %{REQUEST_URI} !=/favicon.ico
    RewriteCond %{REQUEST_URI} ^/front-controller/
    RewriteRule ^ index.php [L]
</IfModule>
<IfModule mod_headers.c>
    Header always set X-Content-Type-Options nosniff
    RequestHeader unset Proxy
    <FilesMatch "\.js\.gz$">
        Header set Content-Encoding gzip
        Header append Vary Accept-Encoding
    </FilesMatch>
</IfModule>
"""


@dataclass(frozen=True)
class Cell:
    """One row of the measurement."""
    mpm: str
    configuration: str
    size: int
    connections: int

    @property
    def label(self):
        return f"{self.mpm}/{self.configuration}/{self.size}/{self.connections}"

    @property
    def path(self):
        return f"/{DEPTH}/{self.size}.bin"


def make_trees(base, sizes):
    """Two trees with a file of each size: without .htaccess, and with one in its root."""
    for name in ("plain", "rules"):
        directory = base / name / DEPTH
        directory.mkdir(parents=True)
        for size in sizes:
            (directory / f"{size}.bin").write_bytes(b"x" * size)
    (base / "rules" / ".htaccess").write_text(RULES)
    time.sleep(SETTLED_S)


def configurations(base):
    """{name: (document root, text for it)}"""
    plain, rules = base / "plain", base / "rules"
    return {
        "None": (plain, f"<Directory {plain}>\nAllowOverride None\n</Directory>\n"),
        "All": (plain, f"<Directory {plain}>\nAllowOverride All\n</Directory>\n"),
        "directory": (plain, f"<Directory {plain}>\nAllowOverride None\n{RULES}\n</Directory>\n"),
        "htaccess": (rules, f"<Directory {rules}>\nAllowOverride All\n</Directory>\n"),
    }


def make_servers(base, mpm, configuration, sendfile, most):
    """stock, message, lease, and with most the httpd without files; not started."""
    root, text = configurations(base)[configuration]
    text += f"EnableSendfile {'On' if sendfile else 'Off'}\n"
    options = {"mpm": mpm, "limits": LIMITS[mpm]}
    name = f"{mpm}-{configuration}"
    servers = [lab_kit.stock(base, f"{name}-stock", root, config=text, **options),
               lab_kit.flashpache(base, f"{name}-message", root, "message",
                                  config=text + "FlashpacheLeases 0\n", **options),
               lab_kit.flashpache(base, f"{name}-lease", root, "lease", config=text, **options)]
    if most:
        without = text + lab_kit.no_files(base, root)
        servers.append(lab_kit.stock(base, f"{name}-without", root, "without files", config=without, **options))
    return servers


def load_options(cell):
    return ["-c", cell.connections, cell.path]


def measure_rounds(servers, cell, base, arguments):
    """{server: [result of each round]}"""
    results = {server.name: [] for server in servers}
    for number in range(arguments.rounds):
        turn = number % len(servers)
        for server in servers[turn:] + servers[:turn]:
            results[server.name].append(lab_kit.measure(
                server, base, "-d", arguments.seconds, *load_options(cell), warmup=WARM_UP))
    return results


def count_calls(server, cell, base):
    """{"httpd": calls, "daemon": calls}; the daemon has none in a stock server."""
    def load(number):
        lab_kit.bench(server.port, base, "-n", number, *load_options(cell))

    load(WARM_UP)
    counted = {"httpd": call_count.per_request(server.front.pids(), base / "out" / "trace", load,
                                               TRACED["httpd"])}
    if server.daemon:
        counted["daemon"] = call_count.per_request(server.daemon.family(), base / "out" / "trace", load,
                                                   TRACED["daemon"])
    return counted


def row_of(cell, rounds, stock_rounds, calls):
    """The results of one server in one cell, for the tables and for --json."""
    pairs = list(zip(rounds, stock_rounds))
    ratios = [{key: ours[key] / theirs[key] for key in ("rate", "cpu_us")} for ours, theirs in pairs]
    row = {key: lab_kit.summary(rounds, key) for key in ("rate", "cpu_us", "turns", "client_share")}
    row["of_stock"] = {key: lab_kit.summary(ratios, key) for key in ("rate", "cpu_us")}
    row["errors"] = sum(one["errors"] for one in rounds)
    if calls:
        row["kinds"] = call_count.by_kind(calls["httpd"])
        row["daemon_calls"] = sum(calls.get("daemon", {}).values())
        row["calls"] = {who: {f"{kind} {name}": rate for (kind, name), rate in found.items()}
                        for who, found in calls.items()}
        row["names"] = call_count.names(calls["httpd"])
    return {"cell": cell.label, "target": TARGETS.get(cell.configuration), **row}


def measure_cell(servers, cell, base, arguments):
    """{server: row}"""
    say(cell.label)
    rounds = measure_rounds(servers, cell, base, arguments)
    calls = {} if arguments.no_calls else {s.name: count_calls(s, cell, base) for s in servers}
    return {name: row_of(cell, found, rounds["stock"], calls.get(name))
            for name, found in rounds.items()}


def show(value, form):
    return f"{value['median']:{form}} ({value['min']:{form}}-{value['max']:{form}})"


def verdict(name, row):
    if name != "lease" or row["target"] is None:
        return ""
    return "" if row["of_stock"]["cpu_us"]["median"] <= row["target"] else f"above {row['target']:.2f}"


def print_costs(results):
    print("\nCost of a request, medians and ranges\n")
    lab_kit.print_table(
        ("MPM/configuration/bytes/connections", "server", "requests/s", "CPU us/request",
         "turns", "requests/s of stock", "CPU of stock", "client", ""),
        [(row["cell"], name, show(row["rate"], ".0f"), show(row["cpu_us"], ".1f"),
          f"{row['turns']['median']:.2f}", show(row["of_stock"]["rate"], ".2f"), show(row["of_stock"]["cpu_us"], ".2f"),
          f"{row['client_share']['median']:.2f}", verdict(name, row))
         for cell in results for name, row in cell.items()])


def print_calls(results):
    rows = [(row["cell"], name, *(f"{row['kinds'][kind]:.2f}" for kind in call_count.KINDS),
             f"{sum(row['kinds'].values()):.2f}", f"{row['daemon_calls']:.2f}", row["names"])
            for cell in results for name, row in cell.items() if "kinds" in row]
    if rows:
        print("\nSystem calls for each request\n")
        lab_kit.print_table(("MPM/configuration/bytes/connections", "server", *call_count.KINDS, "all",
                             "in the daemon", "httpd's by name"), rows)


def run(base, cells, arguments):
    """[{server: row} of each cell]; the servers of one MPM and configuration at a time."""
    make_trees(base, {cell.size for cell in cells})
    results = []
    for (mpm, configuration), group in itertools.groupby(cells, lambda c: (c.mpm, c.configuration)):
        with contextlib.ExitStack() as stack:
            servers = make_servers(base, mpm, configuration, arguments.sendfile, arguments.most)
            for server in servers:
                stack.enter_context(server)
            results += [measure_cell(servers, cell, base, arguments) for cell in group]
            lab_kit.write_json(arguments.json, results)
    return results


def settings(**chosen):
    """The settings that the options choose, for another program, which gives rounds and seconds."""
    return argparse.Namespace(**{"sendfile": False, "most": False, "no_calls": True, "json": None, **chosen})


def parse_arguments():
    parser = lab_kit.parser(__doc__, rounds=5, seconds=1.5, quick="two short rounds, 5 KB and 1 MB only")
    parser.add_argument("--only", action="append", metavar="PATTERN",
                        help="of MPM/configuration/bytes/connections; may be repeated")
    parser.add_argument("--sendfile", action="store_true", help="EnableSendfile On everywhere")
    parser.add_argument("--most", action="store_true", help="an httpd without files as well")
    parser.add_argument("--no-calls", action="store_true", help="trace nothing")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 2, 0.5
    return arguments


def chosen_cells(arguments):
    sizes = (5000, 1_000_000) if arguments.quick and not arguments.only else SIZES
    cells = [Cell(*each) for each in itertools.product(MPMS, ("None", "All", "directory", "htaccess"),
                                                       sizes, CONNECTIONS)]
    patterns = arguments.only or ["*"]
    return [c for c in cells if any(fnmatch.fnmatchcase(c.label, p) for p in patterns)]


def main():
    arguments = parse_arguments()
    lab_kit.prepare()
    cells = chosen_cells(arguments)
    with lab_kit.work_directory() as base:
        results = run(base, cells, arguments)
    print_costs(results)
    print_calls(results)


if __name__ == "__main__":
    main()
