#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Size-based scheduling of an uplink: the same load with FlashpacheSchedule Off (FAIR) and SRPT.

  tests/lab/srpt.py [--rate MBIT ...] [--load SHARE ...] [--seconds S] [--connections N]
                    [--per-connection N] [--served flashpache|stock] [--mpm event|prefork]
                    [--congestion NAME] [--lowat BYTES] [--buffer BYTES] [--loss PERCENT]
                    [--segments N] [--seed N] [--rounds N] [--partly-open K] [--json FILE]

Two network namespaces, joined by a veth without segmentation offload, are server and client.
FAIR is one queue at the uplink's rate; SRPT is what scripts/srpt-setup makes. Requests come in
an open loop with exponential gaps, and are the same ones in both. Sizes are heavy-tailed (bounded
Pareto). Half of them are under 1 KB, the mean 5 KB, the largest 2 MB. Over half of the bytes are
in the largest 3 %. A load of 1 is as much as the uplink carries, headers of all layers included. Slowdown is the
response time over what it is alone: bytes on the wire over the rate, and one round trip. FAIR
has the device as the kernel makes it, which takes up to 64 KB from TCP in one piece. --segments 1
gives it single packets, as srpt-setup does at such rates. With --partly-open users come in that open
loop, and each asks K times, as soon as it has its answer. With --loss the client's side drops
that share of what comes in, at random. Bodies are compared with the files. Needs root, tc, nft,
ethtool and a build (FLASHPACHE_BUILD, default build/).
"""

import argparse
import csv
import ctypes
import json
import math
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "integration"))

from daemon import Flashpached  # noqa: E402
from httpd import Httpd  # noqa: E402

BUILD = Path(os.environ.get("FLASHPACHE_BUILD", REPO / "build"))
CLONE_NEWNET = 0x40000000
SERVER, CLIENT = "10.77.0.1", "10.77.0.2"
DEVICE = "uplink"
FILES = 1000
SMALLEST, LARGEST, SHAPE = 495, 2_000_000, 1.03
POLICIES = ("FAIR", "SRPT")
# Requests by the size of their file: from which to which percentile.
GROUPS = {"smallest 50 %": (0, 50), "50 to 90 %": (50, 90), "90 to 99 %": (90, 99),
          "largest 1 %": (99, 100)}
# From which to which thousandth of the sizes, and the place in percent: each twentieth, the last one in finer steps.
PERCENTILES = [(n * 50, n * 50 + 50, n * 5 + 5) for n in range(19)] + [(950 + n * 10, 960 + n * 10, 96 + n) for n in range(5)]
LIMITS = {
    "event": "StartServers 4\nServerLimit 4\nThreadLimit 250\nThreadsPerChild 250\n"
             "MinSpareThreads 1\nMaxSpareThreads 1000\nMaxRequestWorkers 1000\n",
    "prefork": "StartServers 400\nMinSpareServers 1\nMaxSpareServers 1000\nServerLimit 1000\n"
               "MaxRequestWorkers 1000\n",
}
# Ethernet, IP and TCP with a timestamp; a segment; packets without data of a request, and of a
# connection; the response's header.
PACKET, SEGMENT, PACKETS_OF_REQUEST, PACKETS_OF_CONNECTION, HEADER = 66, 1448, 1, 3, 250


# The link

def run(*command):
    subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True)


class Link:
    """This process in a network namespace of its own, and a client's namespace beside it. Both end
    with their processes."""

    def __init__(self, congestion, segments):
        self.congestion, self.segments = congestion, segments
        self.client = None

    def make(self):
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare: no network namespace")
        self.client = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        mine = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.client.pid}/ns/net") == mine:
            time.sleep(0.01)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", self.client.pid)
        for prefix, address in (((), SERVER), (self.in_client(), CLIENT)):
            run(*prefix, "ip", "address", "add", f"{address}/24", "dev", DEVICE)
            run(*prefix, "ip", "link", "set", DEVICE, "up", "txqueuelen", "1000")
            run(*prefix, "ethtool", "-K", DEVICE, "gso", "off", "tso", "off", "gro", "off")
            # As this machine has chosen.
            run(*prefix, "sysctl", "-q", f"net.ipv4.tcp_congestion_control={self.congestion}")

    def in_client(self):
        return "nsenter", "-t", self.client.pid, "-n"

    def shape(self, policy, megabits, port):
        run(REPO / "scripts/srpt-setup", "remove", DEVICE)
        subprocess.run(["tc", "qdisc", "del", "dev", DEVICE, "root"], capture_output=True)
        if policy == "SRPT":
            run(REPO / "scripts/srpt-setup", "add", DEVICE, f"{megabits}mbit", "--ports", port)
            return
        run("ip", "link", "set", DEVICE, "gso_max_segs", self.segments)
        run("tc", "qdisc", "add", "dev", DEVICE, "root", "handle", "1:", "htb", "default", "1")
        run("tc", "class", "add", "dev", DEVICE, "parent", "1:", "classid", "1:1", "htb",
            "rate", f"{megabits}mbit", "ceil", f"{megabits}mbit", "quantum", "1514")
        run("tc", "qdisc", "add", "dev", DEVICE, "parent", "1:1", "pfifo", "limit", "1000")

    def lose(self, percent):
        """Drops this share of the packets to the client."""
        table = (f"table inet loss {{ chain in {{ type filter hook input priority 0; "
                 f"numgen random mod 100000 < {round(percent * 1000)} drop; }}; }}")
        run(*self.in_client(), "nft", table)

    def sent(self):
        """(bytes, packets that found no room) of the uplink since it was shaped."""
        found = json.loads(subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", DEVICE, "root"],
                                          check=True, capture_output=True, text=True).stdout)
        return found[0]["bytes"], found[0]["drops"]

    def round_trip(self):
        """Seconds until the client refuses a connection: the median of a few."""
        times = []
        for _ in range(21):
            begin = time.perf_counter()
            with socket.socket() as one:
                one.connect_ex((CLIENT, 9))
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    def end(self):
        if self.client:
            self.client.kill()
            self.client.wait()


# The requests

def sizes():
    """Ascending: the quantiles of the distribution."""
    ratio = (SMALLEST / LARGEST) ** SHAPE
    made = [SMALLEST / (1 - (i + 0.5) / FILES * (1 - ratio)) ** (1 / SHAPE) for i in range(FILES)]
    return [int(size) for size in made[:-1]] + [LARGEST]


def make_files(base):
    """{URL path: size}; the paths lie in urls.txt, too."""
    content = random.Random(1).randbytes(LARGEST + FILES)
    root = base / "root"
    root.mkdir()
    files = {}
    for number, size in enumerate(sizes()):
        (root / f"{number}.bin").write_bytes(content[number:number + size])
        files[f"/{number}.bin"] = size
    (base / "urls.txt").write_text("".join(f"{path}\n" for path in files))
    return files


def on_wire(size, per_connection):
    """Bytes that the uplink carries for a response."""
    packets = math.ceil((size + HEADER) / SEGMENT) + PACKETS_OF_REQUEST \
        + PACKETS_OF_CONNECTION / per_connection
    return size + HEADER + packets * PACKET


# Servers

class LinkHttpd(Httpd):
    """Listens on the link, too."""

    def config_text(self):
        return super().config_text().replace("127.0.0.1:", "*:")


def start_servers(base, daemon, arguments, started):
    served = {"flashpache": "FlashpacheEngine On\n",
              "stock": "FlashpacheEngine Off\nEnableSendfile On\n"}[arguments.served]
    buffer = f"SendBufferSize {arguments.buffer}\n" if arguments.buffer else ""
    servers = {}
    for policy in POLICIES:
        schedule = "FlashpacheSchedule SRPT\n" if policy == "SRPT" else ""
        servers[policy] = LinkHttpd(
            base, policy, base / "root", mpm=arguments.mpm, socket=daemon.socket,
            module=BUILD / "mod_flashpache/.libs/mod_flashpache.so", limits=LIMITS[arguments.mpm],
            config=served + buffer + schedule + "ListenBacklog 4096\nKeepAliveTimeout 60\nTimeout 120\n")
        started.append(servers[policy])
        servers[policy].start()
    return servers


# One measurement

def load(link, server, base, rate, arguments, seed):
    """(summary, [(latency s, size, start s)]) of a run."""
    result, records = base / "result.json", base / "records.tsv"
    partly = arguments.partly_open
    arrivals = ["--sessions", f"{rate / partly:.3f}", "--session-requests", partly] if partly else ["-r", f"{rate:.3f}"]
    command = [*link.in_client(), BUILD / "tests/lab/flashpache-bench", "--host", SERVER, "--port", server.port,
               "-c", arguments.connections, "-k", arguments.per_connection, *arrivals,
               "-d", arguments.seconds, "-t", 120, "--random", seed, "--urls", base / "urls.txt",
               "--verify", base / "root", "--json", result, "--records", records]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"flashpache-bench: {done.stdout}{done.stderr}")
    rows = []
    with open(records) as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            assert row["result"] == "ok", row
            rows.append((float(row["latency_us"]) / 1e6, int(row["bytes"]),
                         float(row["start_us"]) / 1e6))
    return json.loads(result.read_text()), rows


def grouped(rows, value):
    """Mean of value(row) by the percentile of the size."""
    ordered = sorted(rows, key=lambda row: row[1])
    found = {}
    for name, (low, high) in GROUPS.items():
        part = ordered[len(ordered) * low // 100:len(ordered) * high // 100]
        found[name] = statistics.fmean(value(row) for row in part)
    return found


def by_percentile(rows):
    """[(percentile of the size, mean ms)]"""
    ordered = sorted(rows, key=lambda row: row[1])
    parts = [(place, ordered[len(ordered) * low // 1000:len(ordered) * high // 1000]) for low, high, place in PERCENTILES]
    return [(place, statistics.fmean(row[0] for row in part) * 1e3) for place, part in parts if part]


def summary(rows, result, sent, megabits, round_trip, per_connection):
    def slowdown(row):
        return row[0] / (on_wire(row[1], per_connection) * 8 / megabits / 1e6 + round_trip)
    span = max(start + latency for latency, _, start in rows)
    return {
        "requests": len(rows),
        "mean_ms": statistics.fmean(row[0] for row in rows) * 1e3,
        "slowdown": statistics.fmean(slowdown(row) for row in rows),
        "group_ms": {name: mean * 1e3 for name, mean in grouped(rows, lambda row: row[0]).items()},
        "group_slowdown": grouped(rows, slowdown), "percentile_ms": by_percentile(rows),
        "bytes": result["bytes"], "seconds": span, "bytes_per_s": result["bytes"] / span,
        "open_mean": sum(row[0] for row in rows) / span,
        "uplink_used": sent[0] * 8 / (span * megabits * 1e6),
        "dropped": sent[1], "late": result["late_starts"], "round_trip_ms": round_trip * 1e3,
    }


def measure(link, servers, base, files, megabits, share, seed, arguments):
    mean = statistics.fmean(on_wire(size, arguments.per_connection) for size in files.values())
    rate = share * megabits * 1e6 / 8 / mean
    found = {"megabits": megabits, "load": share, "seed": seed, "requests_per_s": rate}
    for policy in POLICIES:
        link.shape(policy, megabits, servers[policy].port)
        round_trip = link.round_trip()
        before = link.sent()
        result, rows = load(link, servers[policy], base, rate, arguments, seed)
        after = link.sent()
        found[policy] = summary(rows, result, (after[0] - before[0], after[1] - before[1]), megabits,
                                round_trip, arguments.per_connection)
    return found


# The output

def ratio(found, key, group=None):
    fair, srpt = (found[policy][key] if group is None else found[policy][key][group] for policy in POLICIES)
    return fair, srpt, fair / srpt


def print_head(files):
    total, largest = sum(files.values()), sorted(files.values())
    print(f"{len(files)} files, mean {total / len(files):.0f} bytes, median {largest[FILES // 2]}, largest "
          f"{largest[-1]}; the largest 3 % have {sum(largest[-FILES * 3 // 100:]) / total:.0%} of the bytes\n")
    print("Mbit/s load  requests   mean ms FAIR/SRPT  ratio  slowdown FAIR/SRPT  ratio  largest 1 % ms     ratio"
          "  KB/s FAIR/SRPT  open FAIR/SRPT  used")


def print_row(found):
    mean, slow = ratio(found, "mean_ms"), ratio(found, "slowdown")
    large = ratio(found, "group_ms", "largest 1 %")
    speed, opened = ratio(found, "bytes_per_s"), ratio(found, "open_mean")
    print(f"{found['megabits']:6} {found['load']:4} {found['FAIR']['requests']:9}"
          f"  {mean[0]:9.2f} {mean[1]:8.2f} {mean[2]:6.2f}  {slow[0]:9.2f} {slow[1]:8.2f} {slow[2]:6.2f}"
          f"  {large[0]:8.0f} {large[1]:8.0f} {large[2]:5.2f}  {speed[0] / 1e3:7.0f} {speed[1] / 1e3:6.0f}"
          f"  {opened[0]:7.1f} {opened[1]:6.1f}  {found['SRPT']['uplink_used']:4.2f}", flush=True)


def print_groups(results):
    print("\nmean response time in ms by size of the file (slowdown), FAIR / SRPT")
    for found in results:
        print(f"{found['megabits']} Mbit/s, load {found['load']}:")
        for name in GROUPS:
            time_ms, slow = ratio(found, "group_ms", name), ratio(found, "group_slowdown", name)
            print(f"    {name:14} {time_ms[0]:9.2f} ({slow[0]:.1f}) / {time_ms[1]:.2f} ({slow[1]:.1f})")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, nargs="+", default=[10, 100], help="of the uplink, Mbit/s")
    parser.add_argument("--load", type=float, nargs="+", default=[0.5, 0.7, 0.8, 0.9, 0.95])
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--per-connection", type=int, default=1, help="requests")
    parser.add_argument("--served", choices=("flashpache", "stock"), default="flashpache")
    parser.add_argument("--mpm", choices=("event", "prefork"), default="event")
    parser.add_argument("--congestion", default="reno", help="control, as sysctl names it")
    parser.add_argument("--lowat", type=int, help="net.ipv4.tcp_notsent_lowat")
    parser.add_argument("--buffer", type=int, help="SendBufferSize")
    parser.add_argument("--segments", type=int, default=65535, help="gso_max_segs of FAIR")
    parser.add_argument("--loss", type=float, metavar="PERCENT", help="of packets to the client")
    parser.add_argument("--partly-open", type=int, metavar="K", help="requests of each user; the load is as without")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="each with a seed of its own")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def measure_all(link, base, arguments, started):
    daemon = Flashpached(base, "daemon", BUILD / "backend/flashpached")
    started.append(daemon)
    daemon.start()
    files = make_files(base)
    servers = start_servers(base, daemon, arguments, started)
    print_head(files)
    results = []
    for megabits in arguments.rate:
        for share in arguments.load:
            for seed in range(arguments.seed, arguments.seed + arguments.rounds):
                results.append(measure(link, servers, base, files, megabits, share, seed, arguments))
                print_row(results[-1])
    print_groups(results)
    return results


def main():
    arguments = parse_arguments()
    if os.getuid() != 0:
        sys.exit("srpt.py: needs root: namespaces, and httpd runs as www-data")
    lacking = [program for program in ("ip", "tc", "nft", "ethtool") if not shutil.which(program)]
    if lacking:
        sys.exit(f"srpt.py: not installed: {', '.join(lacking)}; apt-get install iproute2 nftables ethtool")
    link = Link(arguments.congestion, arguments.segments)
    base = Path(tempfile.mkdtemp(prefix="flashpache-lab-"))
    base.chmod(0o755)
    started = []
    try:
        link.make()
        if arguments.lowat:
            run("sysctl", "-q", f"net.ipv4.tcp_notsent_lowat={arguments.lowat}")
        if arguments.loss:
            link.lose(arguments.loss)
        results = measure_all(link, base, arguments, started)
        if arguments.json:
            arguments.json.write_text(json.dumps({"arguments": {**vars(arguments), "json": None},
                                                  "results": results}, indent=1) + "\n")
    finally:
        for one in reversed(started):
            one.stop()
        link.end()
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
