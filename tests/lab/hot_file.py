#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One hot file, in memory: what a request costs, side by side in one run.

  tests/lab/hot_file.py [--rounds N] [--seconds S] [--mpm prefork|worker|event]
                        [--connections N] [--size BYTES]

Stock httpd and Flashpache serve one file (5 KB) six directories deep under three
configurations: AllowOverride None; AllowOverride All with a .htaccess of the size and kind
that Drupal and WordPress ship; and the same rules in <Directory> with AllowOverride None.
Each round measures every server once, in turn, for a few seconds; the table has medians
and the range. CPU time is user + system of all processes, the daemon and its helpers
included. Needs root and a build (FLASHPACHE_BUILD, default build/).
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import json
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "integration"))

import procs  # noqa: E402
from daemon import Flashpached  # noqa: E402
from httpd import Httpd  # noqa: E402

BUILD = Path(os.environ.get("FLASHPACHE_BUILD", REPO / "build"))
DEPTH = "a/b/c/d/e"
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
TICK = os.sysconf("SC_CLK_TCK")


def make_tree(base, size):
    """Two trees of one file each: without .htaccess, and with one in its root."""
    for name in ("plain", "rules"):
        directory = base / name / DEPTH
        directory.mkdir(parents=True)
        (directory / "file.bin").write_bytes(os.urandom(size))
    (base / "rules" / ".htaccess").write_text(RULES)


def configurations(base):
    """{name: (document root, text for it)}"""
    plain, rules = base / "plain", base / "rules"
    return {
        "None": (plain, f"<Directory {plain}>\nAllowOverride None\n</Directory>"),
        "All, no .htaccess": (plain, f"<Directory {plain}>\nAllowOverride All\n</Directory>"),
        "rules in <Directory>, None":
            (plain, f"<Directory {plain}>\nAllowOverride None\n{RULES}\n</Directory>"),
        "All, rules in .htaccess":
            (rules, f"<Directory {rules}>\nAllowOverride All\n</Directory>"),
    }


def cpu_seconds(pid):
    total = 0
    for each in [pid, *procs.descendants(pid)]:
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
        except FileNotFoundError:
            continue
        total += sum(int(f) for f in fields[11:15])
    return total / TICK


def load(server, connections, seconds, result):
    command = [BUILD / "tests/lab/flashpache-bench", "--port", server.port, "-c", connections,
               "-d", seconds, "--warmup", 2000, "--json", result, f"/{DEPTH}/file.bin"]
    subprocess.run([str(c) for c in command], check=True, capture_output=True)
    return json.loads(Path(result).read_text())


def measure(server, daemon, arguments, result):
    pids = [server.process.pid] + ([daemon.pid] if daemon else [])
    load(server, arguments.connections, 1, result)
    before = sum(cpu_seconds(pid) for pid in pids)
    found = load(server, arguments.connections, arguments.seconds, result)
    spent = sum(cpu_seconds(pid) for pid in pids) - before
    done = found["requests"] + 2000          # the warm-up's count, too
    return found["requests_per_s"], spent / done * 1e6


def start_all(base, mpm):
    """[(name, configuration, httpd, daemon or None)], all started."""
    started = []
    for number, (name, (root, text)) in enumerate(configurations(base).items()):
        stock = Httpd(base, f"stock{number}", root, mpm=mpm, config=text)
        daemon = Flashpached(base, f"daemon{number}", BUILD / "backend/flashpached").start()
        flash = Httpd(base, f"flash{number}", root, mpm=mpm, config=text, socket=daemon.socket,
                      module=BUILD / "mod_flashpache/.libs/mod_flashpache.so")
        started.append(("stock", name, stock.start(), None))
        started.append(("Flashpache", name, flash.start(), daemon))
    return started


def show(values):
    return f"{statistics.median(values):9.1f} ({min(values):.0f} to {max(values):.0f})"


def print_table(started, results):
    base = {}
    print(f"\n{'server':12}{'configuration':30}{'requests/s':>26}{'CPU us/request':>24}"
          f"{'req/s':>9}{'CPU':>7}   of stock, same configuration")
    for key in [(server, name) for server, name, _, _ in started]:
        rate, cpu = zip(*results[key])
        if key[0] == "stock":
            base[key[1]] = (statistics.median(rate), statistics.median(cpu))
        stock_rate, stock_cpu = base[key[1]]
        print(f"{key[0]:12}{key[1]:30}{show(rate):>26}{show(cpu):>24}"
              f"{statistics.median(rate) / stock_rate:9.2f}{statistics.median(cpu) / stock_cpu:7.2f}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--mpm", choices=("prefork", "worker", "event"), default="prefork")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--size", type=int, default=5000, help="of the file, in bytes")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if os.getuid() != 0:
        sys.exit("hot_file.py: needs root: httpd and flashpached run as www-data")
    base = Path(tempfile.mkdtemp(prefix="flashpache-lab-"))
    base.chmod(0o755)
    make_tree(base, arguments.size)
    started, results = [], {}
    try:
        started = start_all(base, arguments.mpm)
        for number in range(arguments.rounds):
            for server, name, httpd, daemon in started:
                print(f"round {number + 1} of {arguments.rounds}: {server}, {name}", file=sys.stderr)
                results.setdefault((server, name), []).append(
                    measure(httpd, daemon, arguments, base / "result.json"))
        print_table(started, results)
    finally:
        for _, _, httpd, daemon in started:
            httpd.stop()
            if daemon:
                daemon.stop()
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
