#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of scripts/demo: the document tree, the configuration, counting, the table.

  demo.py tree DIRECTORY PATHS_FILE      make the tree, write its URL paths
  demo.py ports N                        print N free ports of 127.0.0.1
  demo.py config KEY=VALUE...            print an httpd configuration
  demo.py children PID                   print the children of a process
  demo.py calls STRACE_FILE ROOT N       print path calls below ROOT per request, of N requests
  demo.py marks LOG OFFSET N             print how the N requests from the offset were answered
  demo.py fs-calls STATS_FILE N          print lookups, getattrs and opens per request, between
                                         the last two lines of slowfs's counters
  demo.py table DIRECTORY                print the results
"""

import collections
import json
import os
import random
import re
import socket
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "integration"))

from httpd import load_modules  # noqa: E402

# A mix of sizes like that of SPECweb99: (share, least, greatest) in bytes.
SIZE_CLASSES = ((0.35, 100, 1_000), (0.50, 1_000, 10_000), (0.14, 10_000, 100_000),
                (0.01, 100_000, 1_000_000))
BRANCHES = 4
LEVELS = 4
FILES_PER_DIRECTORY = 4
LOG_WAIT_S = 5.0

ROWS = (("local", "stock"), ("local", "flash"), ("slow", "stock"), ("slow", "flash"))
PLACES = {"local": "local disk", "slow": "slow file system"}
SERVERS = {"stock": "stock Apache", "flash": "Flashpache"}

PATH_CALL = re.compile(r'^\d+\s+(\w+)\([^"]*"([^"]*)"')


def file_size(rng):
    share = rng.random()
    for part, least, greatest in SIZE_CLASSES:
        if share < part:
            return rng.randint(least, greatest)
        share -= part
    return SIZE_CLASSES[0][1]


def directories(level=0, path=""):
    """The paths of all directories at the deepest level."""
    if level == LEVELS:
        yield path
        return
    for branch in range(BRANCHES):
        yield from directories(level + 1, f"{path}/{'abcd'[level]}{branch}")


def make_tree(directory, paths_file):
    rng = random.Random(1)
    paths, total = [], 0
    for path in directories():
        Path(directory + path).mkdir(parents=True)
        for number in range(FILES_PER_DIRECTORY):
            name = f"{path}/file{number}.html"
            body = rng.randbytes(file_size(rng))
            Path(directory + name).write_bytes(body)
            paths.append(name)
            total += len(body)
    Path(paths_file).write_text("".join(path + "\n" for path in paths))
    print(f"{len(paths)} files, {total / 1e6:.1f} MB, {LEVELS} directories deep")


def free_ports(count):
    """Ports that are free now, all different."""
    sockets = [socket.socket() for _ in range(int(count))]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    print(*(one.getsockname()[1] for one in sockets))
    for one in sockets:
        one.close()


def print_config(*pairs):
    """dir, port, docroot, modules; user when started as root; flashpache, socket, if used."""
    v = dict(pair.split("=", 1) for pair in pairs)
    lines = [
        f"ServerRoot \"{v['dir']}\"", f"DefaultRuntimeDir \"{v['dir']}\"",
        f"PidFile \"{v['dir']}/httpd.pid\"", f"ErrorLog \"{v['dir']}/error.log\"",
        f"Listen 127.0.0.1:{v['port']}", "ServerName localhost",
        *load_modules(("mpm_event", "unixd", "authz_core", "dir", "mime", "log_config"), v["modules"]),
        f"TypesConfig \"{v['dir']}/mime.types\"",
        # As many children as there will ever be, so that all of them are warm.
        "StartServers 2", "ServerLimit 2", "ThreadsPerChild 32", "ThreadLimit 32",
        "MaxRequestWorkers 64", "MinSpareThreads 1", "MaxSpareThreads 64",
        "MaxConnectionsPerChild 0",
        "KeepAlive On", "KeepAliveTimeout 15", "MaxKeepAliveRequests 0",
        'LogFormat "%>s %{flashpache}n %{flashpache-reason}n" demo',
        f"CustomLog \"{v['dir']}/access.log\" demo",
        f"DocumentRoot \"{v['docroot']}\"",
        "<Directory />", "  AllowOverride None", "  Options FollowSymLinks",
        "  Require all granted", "</Directory>",
    ]
    if "user" in v:
        lines += [f"User {v['user']}", f"Group {v['group']}"]
    if "flashpache" in v:
        lines += [f"LoadModule flashpache_module \"{v['flashpache']}\"", "FlashpacheEngine On",
                  f"FlashpacheSocket \"{v['socket']}\"",
                  "<Location \"/flashpache-status\">", "  SetHandler flashpache-status", "  FlashpacheStatus On",
                  "</Location>"]
    print("\n".join(lines))


def print_children(pid):
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            text = Path(f"/proc/{name}/stat").read_text(errors="replace")
        except OSError:
            continue
        if text[text.rindex(")") + 2:].split()[1] == pid:
            print(name)


def count_calls(strace_file, root, requests):
    """strace -e trace=%file writes one line for each call with a path. A call that another thread's line cuts in
    two has its path in the first half."""
    calls = collections.Counter()
    with open(strace_file, errors="replace") as lines:
        for line in lines:
            found = PATH_CALL.match(line)
            if found and (found[2] == root or found[2].startswith(root + "/")):
                calls[found[1]] += 1
    print(f"{sum(calls.values()) / int(requests):.2f}",
          " ".join(f"{name}={count}" for name, count in calls.most_common()))


def read_marks(log, offset, requests):
    """httpd logs after the answer: wait until the last lines are there."""
    end = time.monotonic() + LOG_WAIT_S
    while True:
        with open(log, "rb") as file:
            file.seek(int(offset))
            lines = file.read().decode(errors="replace").splitlines()
        if len(lines) >= int(requests) or time.monotonic() > end:
            return lines[:int(requests)]
        time.sleep(0.05)


def print_marks(log, offset, requests):
    lines = read_marks(log, offset, requests)
    marks, reasons = collections.Counter(), collections.Counter()
    for line in lines:
        _, mark, reason = (line.split(" ", 2) + ["-", "-"])[:3]
        marks[mark] += 1
        if mark in ("bypass", "fallback", "-"):
            reasons[reason] += 1
    print(json.dumps({"lines": len(lines), "marks": marks, "reasons": reasons}))


def fs_calls(stats_file, requests):
    def total(line):
        words = dict(word.split("=") for word in line.split())
        return sum(int(words[name]) for name in ("lookup", "getattr", "open"))
    before, after = Path(stats_file).read_text().splitlines()[-2:]
    print(f"{(total(after) - total(before)) / int(requests):.2f}")


def read_word(path):
    """The first word of a file, or "-" when it is not there."""
    return (path.read_text().split() or ["-"])[0] if path.exists() else "-"


def shares(marks):
    total = max(1, marks["lines"])
    return ", ".join(f"{'no note' if mark == '-' else mark} {100 * count / total:.2f} %"
                     for mark, count in sorted(marks["marks"].items(), key=lambda kv: -kv[1]))


def hit_lines(directory):
    for place in PLACES:
        file = directory / f"flash-{place}.marks"
        if not file.exists():
            continue
        marks = json.loads(file.read_text())
        yield f"Flashpache on the {PLACES[place]}: {shares(marks)} of {marks['lines']} requests."
        hits = marks["marks"].get("hit", 0) + marks["marks"].get("lease", 0)
        if hits < 0.9 * marks["lines"]:
            why = ", ".join(f"{name} ({count})" for name, count in marks["reasons"].items())
            yield ("  Its figures are therefore a mixture, NOT those of cache hits alone"
                   + (f"; reasons: {why}." if why else "."))


def print_table(directory):
    directory = Path(directory)
    layout = "{:<17} {:<13} {:>18} {:>9} {:>9} {:>9} {:>11} {:>7}"
    print(layout.format("documents on", "server", "path calls/request", "mean ms", "p50 ms",
                        "p99 ms", "requests/s", "errors"))
    for place, server in ROWS:
        file = directory / f"{server}-{place}.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text())
        latency = found["latency_ms"]
        print(layout.format(PLACES[place], SERVERS[server],
                            read_word(directory / f"{server}-{place}.calls"),
                            *(f"{latency[name]:.2f}" for name in ("mean", "p50", "p99")),
                            f"{found['requests_per_s']:.0f}", found["errors"]))
    print("\nPath calls: stat, open and the like on the documents by Apache's own processes, "
          "counted with strace.")
    stock, flash = (read_word(directory / f"{server}-slow.fs-calls") for server in SERVERS)
    if stock != "-":
        print(f"The slow file system itself was asked {stock} times per request by stock Apache, "
              f"{flash} times\nby Flashpache, the work of its daemon's workers included.")
    for line in hit_lines(directory):
        print(line)


COMMANDS = {"tree": make_tree, "ports": free_ports, "config": print_config,
            "children": print_children, "calls": count_calls, "marks": print_marks,
            "fs-calls": fs_calls, "table": print_table}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
