#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hot files on a slow file system: capacity once they are known, and the way there.

  tests/lab/slow_hot.py [--quick] [--rounds N] [--seconds S] [--part capacity|cold|restart]
                        [--server NAME] [--ttl-ms N] [--workers N] [--leases N]
                        [--timeout-ms N] [--processes N] [--json FILE]

1,008 files of 5 KB, four directories deep, on slowfs over tmpfs: each lookup, getattr and open takes 2 ms, the
kernel keeps nothing. AllowOverride All, event MPM, 1,024 connections.

capacity: closed loop, warm: Flashpache on slowfs against the same server on tmpfs, and stock
httpd on both. The servers take turns in each round. "notes" says how the requests were answered.

cold: servers and daemon have just been started, requests arrive at 2,000 a second whatever
happens. Calm is the begin of the first quarter of a second from which on the 99th percentile stays below 10 ms.
Latency is from the intended start; requests without an answer count as late.
Nearly is the same for 95 % of what follows: on a shared machine somebody else's moment may spoil
a window. "good" is how many of all windows have it below. nginx has open_file_cache at its
best, where an answer is valid for 60 s; --ttl-ms 60000 lets Flashpache do so, too.

restart: 64 connections ask in a closed loop, and the daemon is ended and started again (warm_file). Back is the end of the
first tenth of a second, counted from when the new daemon is ready, with 90 % of the requests that were usual before.

Needs root, /dev/fuse, nginx and a build (FLASHPACHE_BUILD, default build/).
"""

import contextlib
import csv
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

import lab_kit
from lab_kit import say

from httpd import USER, free_port, user_ids
from slowfs import Slowfs, why_not
from waiting import wait_for

DELAY_US = 2000
FILE_BYTES = 5000
CONNECTIONS = 1024
WORKERS = 1088                      # threads of httpd, a few more than connections
RATE = 2000
WINDOW_S = 0.25
CALM_MS = 10
NEARLY = 0.95
TIMEOUT_S = 10                      # of one request in the open loop
CAPACITY_TARGET = 0.9
COLD_TARGET = 0.2
COLD_SERVERS = ("flashpache", "nginx", "stock")
RESTART_CONNECTIONS, RESTART_SECONDS = 64, 8
RESTART_AT_S = 4                    # after the begin of the load
SLICE_S, USUAL, BACK_TARGET_S = 0.1, 0.9, 0.5
WARM_UP = 40_000                    # requests before a warm capacity is measured
WARM_UP_S = 20                      # at most
SEED = 20240229


def paths():
    """252 leaf directories, four files in each."""
    return [f"/a{i % 4}/b{i // 4 % 3}/c{i // 12 % 7}/d{i // 84 % 3}/file{i}.html" for i in range(1008)]


class Nginx:
    """nginx with two workers and open_file_cache; start() returns when it answers."""

    def __init__(self, base, name, root):
        self.dir, self.root = base / name, root
        self.dir.mkdir()
        self.port = free_port()
        self.process = None

    def config_text(self):
        return f"""user {USER};
worker_processes 2;
worker_rlimit_nofile 20000;
daemon off;
pid {self.dir}/nginx.pid;
error_log {self.dir}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log {self.dir}/access.log;
    client_body_temp_path {self.dir}/body;
    keepalive_requests 100000000;
    open_file_cache max=20000 inactive=60s;
    open_file_cache_valid 60s;
    open_file_cache_min_uses 1;
    open_file_cache_errors on;
    server {{ listen 127.0.0.1:{self.port} backlog=4096; root {self.root}; }}
}}
"""

    def start(self):
        config = self.dir / "nginx.conf"
        config.write_text(self.config_text())
        self.process = subprocess.Popen(["nginx", "-p", self.dir, "-c", config],
                                        stdin=subprocess.DEVNULL, start_new_session=True)
        wait_for(lambda: lab_kit.answers(self.port), "nginx to answer")
        return self

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


@contextlib.contextmanager
def documents(base):
    """(on tmpfs, the same on slowfs)"""
    with lab_kit.memory_directory(base / "local") as local:
        slow = Slowfs(lab_kit.SLOWFS, local, base / "slow", DELAY_US)
        try:
            for path in paths():
                file = local / path[1:]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"x" * FILE_BYTES)
            yield local, slow.mount()
        finally:
            slow.unmount()


def limits(processes):
    threads = WORKERS // processes
    return (f"StartServers {processes}\nServerLimit {processes}\nThreadLimit {threads}\n"
            f"ThreadsPerChild {threads}\nMinSpareThreads 1\nMaxSpareThreads {WORKERS}\n"
            f"MaxRequestWorkers {processes * threads}\nListenBacklog 4096\n")


class Servers:
    """Makes the servers that are compared, each new and not started."""

    def __init__(self, base, arguments):
        self.base, self.arguments, self.count = base, arguments, 0

    def _options(self, root):
        text = f"<Directory {root}>\nAllowOverride All\n</Directory>\nKeepAliveTimeout 60\n"
        return {"mpm": "event", "limits": limits(self.arguments.processes), "config": text}

    def _name(self):
        self.count += 1
        return f"s{self.count}"

    def stock(self, root):
        return lab_kit.stock(self.base, self._name(), root, **self._options(root))

    def flashpache(self, root, **more):
        options = self._options(root)
        options["config"] += (f"FlashpacheLeases {self.arguments.leases}\n"
                              f"FlashpacheTimeout {self.arguments.timeout_ms}ms\n")
        settings = {"ttl_ms": self.arguments.ttl_ms, "workers": self.arguments.workers, **more}
        return lab_kit.flashpache(self.base, self._name(), root, daemon_settings=settings, **options)

    def nginx(self, root):
        return lab_kit.Server("nginx", Nginx(self.base, self._name(), root))


# Capacity

def load_options(url_file):
    return ["-c", CONNECTIONS, "-u", url_file, "--random", SEED, "--allow-errors"]


def warm(server, base, url_file):
    lab_kit.bench(server.port, base, "-n", WARM_UP, "-d", WARM_UP_S, "-t", TIMEOUT_S,
                  *load_options(url_file))


def measure_capacity(server, base, seconds, url_file):
    """A load, with the daemon's questions and the kinds of answers meanwhile."""
    if not server.daemon:
        return lab_kit.measure(server, base, "-d", seconds, "-t", seconds, *load_options(url_file))
    before, mark = server.daemon.counters(), server.front.access_log.stat().st_size
    found = lab_kit.measure(server, base, "-d", seconds, *load_options(url_file))
    after = server.daemon.counters()
    found["stats"] = {name: after[name] - before[name]
                      for name in ("hits", "misses", "joined", "refreshed", "walks", "unanswered")}
    found["notes"] = lab_kit.note_counts(server.front, mark)
    return found


def capacity(servers, local, slow, base, url_file, arguments):
    """{(server, documents on): [result of each round]}"""
    places = {"tmpfs": local, "slowfs": slow}
    made = {("Flashpache", where): servers.flashpache(root) for where, root in places.items()}
    made |= {("stock", where): servers.stock(root) for where, root in places.items()}
    results = {key: [] for key in made}
    with contextlib.ExitStack() as stack:
        for key, server in made.items():
            stack.enter_context(server)
            if key != ("stock", "slowfs"):
                warm(server, base, url_file)
        for number in range(arguments.rounds):
            for key, server in made.items():
                say(f"capacity, round {number + 1} of {arguments.rounds}: {' on '.join(key)}")
                if server.daemon:
                    warm(server, base, url_file)
                results[key].append(measure_capacity(server, base, arguments.seconds, url_file))
    return results


def print_capacity(results):
    print(f"\nCapacity, warm, {CONNECTIONS} connections, AllowOverride All\n")
    reference = results[("Flashpache", "tmpfs")]
    rows = []
    for (server, where), rounds in results.items():
        rate, cpu = lab_kit.summary(rounds, "rate"), lab_kit.summary(rounds, "cpu_us")
        ratio = lab_kit.summary([{"rate": a["rate"] / b["rate"]} for a, b in zip(rounds, reference)],
                                "rate")
        rows.append((server, where, f"{rate['median']:.0f} ({rate['min']:.0f}-{rate['max']:.0f})",
                     f"{cpu['median']:.1f}",
                     f"{ratio['median']:.3f} ({ratio['min']:.3f}-{ratio['max']:.3f})",
                     f"{rounds[-1]['latency_ms']['p99']:.1f}",
                     lab_kit.shares(rounds[-1].get("notes", {}))))
    lab_kit.print_table(("server", "documents on", "requests/s", "CPU us/request",
                         "of Flashpache on tmpfs", "p99 ms", "notes"), rows)
    print(f"target: Flashpache on slowfs at least {CAPACITY_TARGET} of itself on tmpfs")


# From a cold start

def read_windows(records, seconds):
    """The 99th percentile in ms of each window of intended starts. Arrivals are at a constant rate, so a window's
    missing ones were not answered in time."""
    windows = [[] for _ in range(math.ceil(seconds / WINDOW_S))]
    with open(records, newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            index = int(float(row["start_us"]) / 1e6 / WINDOW_S)
            if row["result"] == "ok" and index < len(windows):
                windows[index].append(float(row["latency_us"]) / 1e3)
    expected = round(RATE * WINDOW_S)
    rank = math.ceil(expected * 0.99) - 1
    return [sorted(window)[rank] if len(window) > rank else math.inf for window in windows]


def calm_from(windows, share):
    """Seconds until the 99th percentile is below the limit in this share of what follows, the
    first of these windows included; None: it never is."""
    good, start = 0, None
    for index in range(len(windows) - 1, -1, -1):
        good += windows[index] < CALM_MS
        if windows[index] < CALM_MS and good >= share * (len(windows) - index):
            start = index
    return None if start is None else start * WINDOW_S


def cold_start(server, base, url_file, seconds):
    records = base / "out" / "records"
    with server:
        found = lab_kit.bench(server.port, base, "-d", seconds, "-r", RATE, "--arrivals", "constant",
                              "-t", TIMEOUT_S, "--records", records, *load_options(url_file))
        stats = server.daemon.counters() if server.daemon else {}
    windows = read_windows(records, seconds)
    return {"calm_s": calm_from(windows, 1), "nearly_s": calm_from(windows, NEARLY),
            "good": sum(p99 < CALM_MS for p99 in windows) / len(windows),
            "windows_p99_ms": [p99 if math.isfinite(p99) else None for p99 in windows],
            "latency_ms": found["latency_ms"], "errors": found["errors"], "stats": stats}


def cold(servers, slow, base, url_file, arguments):
    """{server: [result of each round]}"""
    results = {}
    for number in range(arguments.rounds):
        for name in arguments.server or COLD_SERVERS:
            server = getattr(servers, name)(slow)
            say(f"cold, round {number + 1} of {arguments.rounds}: {server.name}")
            results.setdefault(server.name, []).append(
                cold_start(server, base, url_file, arguments.cold_seconds))
    return results


# A restart of the daemon

def warm_file(base):
    """A file in a new directory of the daemon's user."""
    directory = base / "kept"
    directory.mkdir(exist_ok=True)
    os.chown(directory, *user_ids())
    return directory / "paths"


def restart_later(daemon, began, times):
    """Ends and starts the daemon; times gets when that was, in seconds after the begin."""
    time.sleep(RESTART_AT_S)
    times["ended"] = time.monotonic() - began
    daemon.stop()
    daemon.start()
    times["ready"] = time.monotonic() - began


def done_in_slices(records):
    """How many requests ended well in each slice of the load."""
    slices = [0] * math.ceil(RESTART_SECONDS / SLICE_S)
    with open(records, newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            index = int((float(row["start_us"]) + float(row["latency_us"])) / 1e6 / SLICE_S)
            if row["result"] == "ok" and index < len(slices):
                slices[index] += 1
    return slices


def back_after(slices, times):
    """(usual requests in a slice, seconds from the new daemon's readiness to the end of the first usual slice; None: never)"""
    before = slices[round(1 / SLICE_S):int(times["ended"] / SLICE_S)]
    usual = statistics.median(before)
    first = int(times["ready"] / SLICE_S)
    back = next((i for i in range(first, len(slices)) if slices[i] >= USUAL * usual), None)
    return usual, None if back is None else max(0., (back + 1) * SLICE_S - times["ready"])


def restarted(server, base, url_file):
    records, times = base / "out" / "records", {}
    with server:
        warm(server, base, url_file)
        restarter = threading.Thread(target=restart_later, args=(server.daemon, time.monotonic(), times))
        restarter.start()
        found = lab_kit.bench(server.port, base, "-c", RESTART_CONNECTIONS, "-d", RESTART_SECONDS, "-t", TIMEOUT_S,
                              "-u", url_file, "--random", SEED, "--allow-errors", "--records", records)
        restarter.join()
    slices = done_in_slices(records)
    usual, back = back_after(slices, times)
    return {"usual_rate": usual / SLICE_S, "back_s": back, "away_s": times["ready"] - times["ended"],
            "slices": slices, "errors": found["errors"]}


def restart(servers, slow, base, url_file, arguments):
    """[result of each round]"""
    file, results = warm_file(base), []
    for number in range(arguments.rounds):
        say(f"restart, round {number + 1} of {arguments.rounds}")
        results.append(restarted(servers.flashpache(slow, warm_file=file), base, url_file))
    return results


def print_restart(results):
    print(f"\nA restart of the daemon, {RESTART_CONNECTIONS} connections on slowfs, {len(paths())} files\n")
    rows = [(number + 1, f"{one['usual_rate']:.0f}", f"{one['away_s']:.2f}", seconds_text(one["back_s"]), one["errors"])
            for number, one in enumerate(results)]
    lab_kit.print_table(("round", "requests/s before", "no daemon for s", "back after s", "errors"), rows)
    print(f"target: back after at most {BACK_TARGET_S} s")


def seconds_text(value):
    return "never" if value is None else f"{value:.2f}"


def print_cold(results, seconds):
    print(f"\nFrom a cold start, {RATE} requests/s for {seconds:g} s on slowfs\n")
    rows = [(server, number + 1, seconds_text(one["calm_s"]), seconds_text(one["nearly_s"]),
             f"{100 * one['good']:.0f} %", one["errors"], f"{one['latency_ms']['p50']:.2f}",
             f"{one['latency_ms']['p99']:.1f}")
            for server, rounds in results.items() for number, one in enumerate(rounds)]
    lab_kit.print_table(("server", "round", "calm after s", "nearly after s", "good", "errors",
                         "p50 ms", "p99 ms of all"), rows)
    print(f"target: Flashpache calm after at most {COLD_TARGET} of nginx's time")


def parse_arguments():
    parser = lab_kit.parser(__doc__, rounds=3, seconds=4, quick="one short round")
    parser.add_argument("--cold-seconds", type=float, default=60, help="of a cold start")
    parser.add_argument("--part", choices=("capacity", "cold", "restart"), help="only this one")
    parser.add_argument("--server", action="append", choices=COLD_SERVERS,
                        help="start only this one cold; may be repeated")
    parser.add_argument("--ttl-ms", type=int, default=3000, help="the daemon's")
    parser.add_argument("--leases", type=int, default=2000, help="FlashpacheLeases")
    parser.add_argument("--timeout-ms", type=int, default=10000, help="FlashpacheTimeout")
    parser.add_argument("--processes", type=int, default=8, help="of httpd")
    parser.add_argument("--workers", type=int, default=64, help="of the daemon")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds, arguments.cold_seconds = 1, 2, 20
    return arguments


def run(base, arguments):
    url_file = base / "out" / "urls"
    url_file.write_text("\n".join(paths()) + "\n")
    servers, found = Servers(base, arguments), {}
    with documents(base) as (local, slow):
        if arguments.part in (None, "capacity"):
            results = capacity(servers, local, slow, base, url_file, arguments)
            found["capacity"] = {" on ".join(key): rounds for key, rounds in results.items()}
            print_capacity(results)
        if arguments.part in (None, "cold"):
            found["cold"] = cold(servers, slow, base, url_file, arguments)
            print_cold(found["cold"], arguments.cold_seconds)
        if arguments.part in (None, "restart"):
            found["restart"] = restart(servers, slow, base, url_file, arguments)
            print_restart(found["restart"])
    return found


def main():
    arguments = parse_arguments()
    lab_kit.prepare()
    reason = why_not() or (None if shutil.which("nginx") else "needs nginx")
    if reason:
        sys.exit(f"slow_hot.py: {reason}")
    with lab_kit.work_directory() as base:
        lab_kit.write_json(arguments.json, run(base, arguments))


if __name__ == "__main__":
    main()
