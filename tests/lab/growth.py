#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a hit as the work grows: with the number of known paths and of workers.

  tests/lab/growth.py [--quick] [--paths N]... [--workers N]... [--rounds N] [--seconds S]
                      [--part paths|workers] [--json FILE]

paths: so many names are made known to the daemon (flashpachectl warm). Then stock httpd and
Flashpache are asked for them in turn, evenly or by Zipf's law. They are files of 500 bytes, without blocks
on tmpfs, and absent names, in directories of a thousand. Event MPM, 16 connections, AllowOverride None.
"bytes/entry" is what the daemon's own memory grew by, beside what its stats say. "shared" is the
memory of the tables of answers and contents, for each path.

workers: prefork with so many children, a connection to each, 20 files, known in all children.

CPU is that of all processes of a server, the daemon included, and its ratio to stock's is of the
same round. Needs root and a build (FLASHPACHE_BUILD, default build/); a million files
need about 4 GB.
"""

import argparse
import itertools
import random
import subprocess
import time
from pathlib import Path

import lab_kit
from lab_kit import say

NAMES_IN_DIRECTORY = 1000
FILE_BYTES = 500
PATHS = (1000, 10_000, 100_000, 1_000_000)
QUICK_PATHS = (1000, 10_000, 100_000)
WORKERS = (1, 4, 16, 64, 256, 1024)
QUICK_WORKERS = (1, 16, 256)
FILES_FOR_WORKERS = 20
SAMPLE = 200_000                    # requests drawn; the load takes them in turn
WARMERS = 4                         # flashpachectl warm at a time
CONNECTIONS = 16
WARM_UP = 2000
SEED = 20240229
# Known paths stay known for the whole run.
DAEMON = {"memory": "17G", "watched_ttl_ms": 3_600_000}
PREFORK = ("StartServers {0}\nMinSpareServers 1\nMaxSpareServers {0}\nServerLimit {0}\n"
           "MaxRequestWorkers {0}\nListenBacklog 4096\n")


def name_of(kind, number):
    return f"/d{number // NAMES_IN_DIRECTORY:05}/{kind}{number % NAMES_IN_DIRECTORY:03}"


def make_documents(root, directories, files):
    for number in range(directories):
        (root / f"d{number:05}").mkdir()
    for number in range(files):
        with open(root / name_of("file", number)[1:], "wb") as file:
            file.truncate(FILE_BYTES)


def write_lines(file, lines):
    file.write_text("\n".join(lines) + "\n")
    return file


def sample(kind, count, law, file):
    """A list of requests, evenly or by Zipf's law over `count` names."""
    generator = random.Random(SEED)
    weights = None
    if law == "zipf":
        weights = list(itertools.accumulate(1 / rank for rank in range(1, count + 1)))
    numbers = generator.choices(range(count), cum_weights=weights, k=SAMPLE)
    return write_lines(file, (name_of(kind, number) for number in numbers))


def memory_of(pid):
    """Bytes that this process alone occupies."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024


def make_known(daemon, root, kind, count, base):
    """Lets the daemon look at all names; names/s."""
    start, lists = time.monotonic(), []
    for part in range(WARMERS):
        names = (f"{root}{name_of(kind, number)}" for number in range(part, count, WARMERS))
        lists.append(write_lines(base / "out" / f"known{part}", names))
    warmers = [subprocess.Popen([lab_kit.CONTROL, "-s", daemon.socket, "warm", each],
                                stdout=subprocess.DEVNULL) for each in lists]
    if any([one.wait() for one in warmers]):
        raise RuntimeError("flashpachectl warm failed")
    return count / (time.monotonic() - start)


def in_turn(servers, rounds, load):
    """{name: results}; load(server) is called for each in each round."""
    results = {server.name: [] for server in servers}
    for number in range(rounds):
        for server in servers[::-1] if number % 2 else servers:
            results[server.name].append(load(server))
    return results


def compared(results):
    """CPU of Flashpache, its ratio to stock and how its last requests were answered."""
    ours, theirs = results["Flashpache"], results["stock"]
    ratios = [{"cpu_us": a["cpu_us"] / b["cpu_us"]} for a, b in zip(ours, theirs)]
    return {"cpu_us": lab_kit.summary(ours, "cpu_us"), "rate": lab_kit.summary(ours, "rate"),
            "stock_cpu_us": lab_kit.summary(theirs, "cpu_us"),
            "of_stock": lab_kit.summary(ratios, "cpu_us"), "notes": ours[-1]["notes"]}


def load_with_notes(server, base, *options, warmup=0):
    mark = server.front.access_log.stat().st_size
    found = lab_kit.measure(server, base, "--allow-errors", *options, warmup=warmup)
    found["notes"] = lab_kit.note_counts(server.front, mark) if server.daemon else {}
    return found


# Known paths

def measure_paths(base, root, kind, count, arguments):
    """Rows for one number of known paths, one for each law."""
    say(f"{count} {kind}")
    name, rows = f"{kind}{count}", []
    stock = lab_kit.stock(base, f"{name}-stock", root)
    # With roots the daemon may have one mark of the file system, where the kernel does not allow a million watches.
    ours = lab_kit.flashpache(base, name, root, daemon_settings={**DAEMON, "roots": [root]})
    with stock, ours:
        empty = memory_of(ours.daemon.pid)
        pace = make_known(ours.daemon, root, kind, count, base)
        stats = ours.daemon.counters()
        entries = sum(stats[key] for key in ("files", "directories", "negative"))
        grown = (memory_of(ours.daemon.pid) - empty) / entries
        for law in ("even", "zipf"):
            urls = sample(kind, count, law, base / "out" / "urls")
            results = in_turn([stock, ours], arguments.rounds, lambda server: load_with_notes(
                server, base, "-d", arguments.seconds, "-c", CONNECTIONS, "-u", urls, warmup=WARM_UP))
            tables = ours.daemon.counters()
            rows.append({"kind": kind, "paths": count, "law": law, "entries": entries,
                         "bytes_each": grown, "said_each": stats["bytes"] / entries,
                         "shared_each": (tables["answer_memory"] + tables["content_memory"]) / count,
                         "made_known_per_s": pace, **compared(results)})
    return rows


def grow_paths(base, root, arguments):
    points = [(kind, count) for kind in ("file", "absent") for count in arguments.paths]
    make_documents(root, max(arguments.paths) // NAMES_IN_DIRECTORY + 1, max(arguments.paths))
    return [row for kind, count in points for row in measure_paths(base, root, kind, count, arguments)]


def cost_columns(row):
    ratio = row["of_stock"]
    return (f"{row['stock_cpu_us']['median']:.1f}", f"{row['cpu_us']['median']:.1f}",
            f"{ratio['median']:.2f} ({ratio['min']:.2f}-{ratio['max']:.2f})",
            lab_kit.shares(row["notes"]))


COST_HEAD = ("stock CPU us", "CPU us/request", "of stock", "notes")


def print_paths(rows):
    print("\nKnown paths\n")
    lab_kit.print_table(
        ("kind", "paths", "asked for", "bytes/entry", "as it says", "shared", "made known/s", *COST_HEAD),
        [(row["kind"], row["paths"], row["law"], f"{row['bytes_each']:.0f}",
          f"{row['said_each']:.0f}", f"{row['shared_each']:.0f}", f"{row['made_known_per_s']:.0f}", *cost_columns(row)) for row in rows])


# Workers

def measure_workers(base, root, workers, urls, arguments):
    say(f"{workers} workers")
    options = {"mpm": "prefork", "limits": PREFORK.format(workers)}
    stock = lab_kit.stock(base, f"workers{workers}-stock", root, **options)
    ours = lab_kit.flashpache(base, f"workers{workers}", root, daemon_settings=DAEMON, **options)
    load = ["-c", workers, "-u", urls, "--random", SEED]
    with stock, ours:
        for server in (stock, ours):
            lab_kit.bench(server.port, base, "-n", 6 * workers * FILES_FOR_WORKERS, *load)
        results = in_turn([stock, ours], arguments.rounds, lambda server: load_with_notes(
            server, base, "-d", arguments.seconds, *load, warmup=WARM_UP))
    return {"workers": workers, **compared(results)}


def grow_workers(base, root, arguments):
    names = [name_of("file", number) for number in range(FILES_FOR_WORKERS)]
    make_documents(root, 1, FILES_FOR_WORKERS)
    urls = write_lines(base / "out" / "few", names)
    return [measure_workers(base, root, workers, urls, arguments) for workers in arguments.workers]


def print_workers(rows):
    print("\nWorkers (prefork, a connection to each)\n")
    lab_kit.print_table(("workers", *COST_HEAD),
                        [(row["workers"], *cost_columns(row)) for row in rows])


PARTS = {"paths": (grow_paths, print_paths), "workers": (grow_workers, print_workers)}


def settings(**chosen):
    """The settings that the options choose, for another program, which gives quick, rounds and seconds."""
    return with_points(argparse.Namespace(**{"paths": None, "workers": None, **chosen}))


def with_points(arguments):
    arguments.paths = arguments.paths or (QUICK_PATHS if arguments.quick else PATHS)
    arguments.workers = arguments.workers or (QUICK_WORKERS if arguments.quick else WORKERS)
    return arguments


def parse_arguments():
    parser = lab_kit.parser(__doc__, rounds=3, seconds=2, quick="fewer points, one short round")
    parser.add_argument("--paths", type=int, action="append", metavar="N")
    parser.add_argument("--workers", type=int, action="append", metavar="N")
    parser.add_argument("--part", choices=PARTS, help="only this one")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 1
    return with_points(arguments)


def main():
    arguments = parse_arguments()
    lab_kit.prepare()
    found = {}
    for part in [arguments.part] if arguments.part else PARTS:
        grow, show = PARTS[part]
        with lab_kit.work_directory() as base, lab_kit.memory_directory(base / "www") as root:
            found[part] = grow(base, root, arguments)
        show(found[part])
        lab_kit.write_json(arguments.json, found)


if __name__ == "__main__":
    main()
