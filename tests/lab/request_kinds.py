#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kinds of requests, from HEAD to a front controller: does any of them cost more CPU than stock's?

  tests/lab/request_kinds.py [--quick] [--rounds N] [--seconds S] [--only PATTERN]... [--json FILE]

Each kind has 36 paths in memory, which are known by then, and is asked for over 16 connections. Stock httpd and Flashpache are
up together and take turns; a ratio is of one round. Both must have given the same responses before. CPU is that of all
processes of a server, the daemon and its workers included. "answered" is how Flashpache answered, warming up included.

--only 'event/None/*' chooses cells MPM/AllowOverride/KIND. A verdict is about the median. Needs root and a
build (FLASHPACHE_BUILD, default build/). All of it takes ten minutes.
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

from fetch import Client

CONFIGURATIONS = tuple(itertools.product(("event", "prefork"), ("None", "All")))
CONNECTIONS = 16
PATHS = 36
LOOKS = 10                          # at each path before it is measured: the daemon hears of it at the eighth
SETTLED_S = 3.5                     # from then on small files are kept by their content
DEEP = "a/b/c/d/e/f"
TO_FRONT = "RewriteEngine On\nRewriteCond {0} !-f\nRewriteCond {0} !-d\nRewriteRule ^ /index.html [L]\n"
BY_HOST = TO_FRONT.format("%{DOCUMENT_ROOT}%{REQUEST_URI}")
BY_DIRECTORY = TO_FRONT.format("%{REQUEST_FILENAME}")


@dataclass(frozen=True)
class Kind:
    """In path {} is a number. text is for the virtual host, within for its documents; ROOT is their directory."""
    path: str
    status: int = 200
    text: str = ""
    within: str = ""
    method: str = "GET"

    @property
    def paths(self):
        return [self.path.format(number) for number in range(PATHS)]


KINDS = {
    "file": Kind("/page/{}.html"),
    "HEAD": Kind("/page/{}.html", method="HEAD"),
    "304": Kind("/page/{}.html", 304, "RequestHeader set If-None-Match * early\n"),
    "range": Kind("/page/{}.html", 206, "RequestHeader set Range bytes=100-899 early\n"),
    "file of 20 KB": Kind("/large/{}.bin"),
    "file, six directories deep": Kind(f"/{DEEP}/{{}}.txt"),
    "the same, Options None": Kind(f"/{DEEP}/{{}}.txt", within="Options None\n"),
    "the same, SymLinksIfOwnerMatch": Kind(f"/{DEEP}/{{}}.txt", within="Options SymLinksIfOwnerMatch\n"),
    "file through a link": Kind("/link/{}.html"),
    "file by Alias": Kind("/alias/{}.html", text="Alias /alias ROOT/page\n"),
    "404": Kind("/page/none{}", 404),
    "404, ErrorDocument a file": Kind("/page/none{}", 404, "ErrorDocument 404 /page/1.html\n"),
    "404, path-info": Kind("/page/{}.html/info", 404),
    "403": Kind("/page/{}.html", 403, within="Require all denied\n"),
    "index file": Kind("/index{}/"),
    "redirect to the slash": Kind("/index{}", 301),
    "listing": Kind("/list{}/", within="Options Indexes FollowSymLinks\n"),
    "MultiViews": Kind("/views/{}", within="Options MultiViews FollowSymLinks\n"),
    "MultiViews, 404": Kind("/views/none{}", 404, within="Options MultiViews FollowSymLinks\n"),
    "page of two parts": Kind("/parts/{}.shtml",
                              within="Options Includes FollowSymLinks\nAddOutputFilter INCLUDES .shtml\n"),
    "gzip": Kind("/page/{}.html", text="RequestHeader set Accept-Encoding gzip early\n"
                                       "AddOutputFilterByType DEFLATE text/html\n"),
    "headers of modules": Kind("/page/{}.html", text="ExpiresActive On\nExpiresDefault A3600\nHeader set X-A b\n"),
    "<If> and <Files>": Kind("/page/{}.html", within='<If "%{REQUEST_URI} =~ /1/">\nHeader set X-I 1\n</If>\n'
                                                     '<Files "*.html">\nHeader set X-F 1\n</Files>\n'),
    "<DirectoryMatch>": Kind("/page/{}.html", text='<DirectoryMatch "/page$">\nHeader set X-M 1\n</DirectoryMatch>\n'),
    "front controller": Kind("/pretty/{}", text=BY_HOST),
    "front controller in <Directory>": Kind("/pretty/{}", within=BY_DIRECTORY),
    "the same, a file": Kind("/page/{}.html", within=BY_DIRECTORY),
    "FallbackResource": Kind("/pretty{}", within="FallbackResource /index.html\n"),
}


def make_documents(root):
    def put(name, text):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    put("index.html", "front\n" * 500)
    for n in range(PATHS):
        put(f"page/{n}.html", f"page {n}\n" * 600)
        put(f"large/{n}.bin", "x" * 20_000)
        put(f"{DEEP}/{n}.txt", "deep\n" * 600)
        put(f"index{n}/index.html", "index\n" * 500)
        put(f"views/{n}.html.en", "English\n" * 300)
        put(f"parts/{n}.shtml", '<!--#include virtual="/page/1.html" --><!--#include file="part.html" -->\n')
        for entry in range(4):
            put(f"list{n}/entry{entry}.txt", "entry\n")
    put("parts/part.html", "part\n" * 100)
    (root / "link").symlink_to("page")
    time.sleep(SETTLED_S)


def host_of(name):
    return f"kind{list(KINDS).index(name)}.test"


def make_servers(base, root, mpm, override):
    """{name: server}, not started; each kind has a virtual host."""
    def host(kind):
        return f"{kind.text}<Directory {root}>\n{kind.within}</Directory>\n".replace("ROOT", str(root))
    options = {"mpm": mpm, "limits": lab_servers.limits(mpm, CONNECTIONS),
               "config": f"<Directory {root}>\nOptions FollowSymLinks\nAllowOverride {override}\nAddLanguage en .en\n</Directory>\n",
               "vhosts": [(["localhost"], ""), *(([host_of(name)], host(kind)) for name, kind in KINDS.items())],
               "around": machine.on_processors(machine.server_processors())}
    ours = lab_kit.flashpache(base, f"{mpm}-{override}-flash", root, OURS, **options)
    ours.daemon.around = options["around"]
    return {STOCK: lab_kit.stock(base, f"{mpm}-{override}-stock", root, **options), OURS: ours}


def responses(server, name, path):
    with Client(server.port, host=host_of(name)) as client:
        status, body = client.get(path)
    return status, body.replace(str(server.port).encode(), b"PORT")


def must_agree(servers, cell, name):
    """Looks at each path so often that it is known, too."""
    kind = KINDS[name]
    for path in kind.paths * LOOKS:
        theirs, ours = (responses(server, name, path) for server in servers.values())
        if theirs != ours or theirs[0] != kind.status:
            sys.exit(f"request_kinds.py: {cell}, {path}: stock answers {theirs[0]}, {theirs[1][:200]}, "
                     f"Flashpache {ours[0]}, {ours[1][:200]}")


def measure(servers, base, cell, name, arguments):
    kind, results = KINDS[name], {server: [] for server in servers}
    say(cell)
    must_agree(servers, cell, name)
    urls = base / "out" / "urls"
    urls.write_text("".join(f"{kind.method} http://{host_of(name)}{path} {kind.status}\n" for path in kind.paths))
    load, mark = ("-d", arguments.seconds, "-c", CONNECTIONS, "-u", urls), servers[OURS].front.mark()
    with shared.client_apart():
        for number in range(-1, arguments.rounds):          # the first one warms up
            for server in list(servers)[::-1] if number % 2 else servers:
                results[server].append(lab_kit.measure(servers[server], base, *load))
    results = {server: rounds[1:] for server, rounds in results.items()}
    return {"cell": cell, "cpu_us": shared.ratios(results, "cpu_us"),
            "cpu": {server: lab_kit.summary(rounds, "cpu_us") for server, rounds in results.items()},
            "notes": lab_kit.note_counts(servers[OURS].front, mark)}


def run(base, root, arguments):
    """A row for each cell."""
    rows = []
    for mpm, override in CONFIGURATIONS:
        names = {f"{mpm}/{override}/{name}": name for name in KINDS}
        cells = [cell for cell in names if any(fnmatch.fnmatch(cell, only) for only in arguments.only)]
        with contextlib.ExitStack() as stack:
            servers = make_servers(base, root, mpm, override) if cells else {}
            for server in servers.values():
                stack.enter_context(server)
            rows += [measure(servers, base, cell, names[cell], arguments) for cell in cells]
        lab_kit.write_json(arguments.json, rows)
    return rows


def print_rows(rows):
    lab_kit.print_table(
        ("MPM/AllowOverride/kind", "stock CPU us", "Flashpache", "CPU of stock", "answered", ""),
        [(row["cell"], *(f"{row['cpu'][server]['median']:.1f}" for server in (STOCK, OURS)), shared.show(row["cpu_us"]),
          lab_kit.shares(row["notes"]), "more than stock" if row["cpu_us"]["median"] > 1 else "") for row in rows])


def parse_arguments():
    parser = lab_kit.parser(__doc__, rounds=4, seconds=0.5, quick="event and None alone, one short round")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="of MPM/AllowOverride/KIND; may be repeated")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 0.3
    arguments.only = arguments.only or (["event/None/*"] if arguments.quick else ["*"])
    return arguments


def main():
    arguments = parse_arguments()
    lab_kit.prepare()
    with lab_kit.work_directory() as base, lab_kit.memory_directory(base / "www") as root:
        make_documents(root)
        rows = run(base, root, arguments)
    if not rows:
        sys.exit("request_kinds.py: no cell is chosen: " + ", ".join(arguments.only))
    print_rows(rows)


if __name__ == "__main__":
    main()
