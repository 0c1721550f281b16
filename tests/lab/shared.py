#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every child knows what one child knows: stock httpd and Flashpache up together, loaded in turn.

  tests/lab/shared.py [--quick] [--part PART]... [--rounds N] [--seconds S] [--warm S] [--json FILE]

A machine's speed changes by half within minutes. So both servers of a pair are up side by side, on half of the
processors. Each round loads the two, in turn and within seconds, and a ratio is that of one round.
The other processors are the client's. Parts:

many       21,600 files (600 directories of workload.py, 3 GB on tmpfs), 1,024 connections of five
           requests; prefork and event, AllowOverride None and All
few        1,008 files, 256 connections of five requests
most       "many" and "few" with an httpd that does no work on files (no_files) in the place of Flashpache: nothing that
           answers for files can gain more
first      paths that nobody asked about (purged before), and eight times more: CPU of each pass. In the eighth the
           daemon hears of them (FlashpacheAdmission)
unknown    paths of which not even the directory is known, each once: absent ones of two and of 50 components, and files
           in directories of their own
events     1,008 files while names come and go in ten of their directories; 64 connections
hit        one file of 5,000 bytes, one connection, all of its children warm (hit_cost.py)
children   growth from 1 to 1,024 prefork children (growth.py)
paths      growth from 1,000 to 1,000,000 files, and as many absent names (growth.py)

"questions" is how many messages to the daemon there were for each request, "memory" the
proportional share (PSS) of all processes, the daemon's included. Page faults are those of a request. A verdict is
about the worst round.
Rows of the disk, of contention and of slow file systems are tests/lab/run's and slow_hot.py's.
Needs root, and a build (FLASHPACHE_BUILD, default build/); "many" needs 12 GB of memory.
"""

import contextlib
import itertools
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import growth
import hit_cost
import lab_kit
import workload
from lab import machine, servers
from lab.load import Content
from lab_kit import say

from fetch import Client

PER_CONNECTION = 5
REQUESTS = 200_000                  # drawn; the load takes them in turn
SEED = 1


@dataclass(frozen=True)
class Set:
    """A set of files, and the number of connections that ask for them."""
    directories: int
    connections: int


@dataclass(frozen=True)
class Pair:
    """Stock and Flashpache with one configuration; goal: the least ratio of the capacities."""
    mpm: str
    override: str
    goal: float

    @property
    def label(self):
        return f"{self.mpm}/{self.override}"


SETS = {"many": Set(600, 1024), "few": Set(28, 256)}
QUICK_SETS = {"many": Set(4, 32), "few": Set(2, 16)}
PAIRS = {
    "many": (Pair("prefork", "None", 1.25), Pair("prefork", "All", 1.6),
             Pair("event", "None", 1.3), Pair("event", "All", 1.7)),
    "few": (Pair("prefork", "None", 1.3), Pair("event", "All", 1.7)),
}
HITS = {"None": 0.50, "All": 0.40, "htaccess": 0.20}        # goals: CPU to stock's
PASSES = {"first": 1.3, **{f"number {number}": 1.0 for number in range(2, 10)}}    # the same
PASS_CONNECTIONS = 16
PAUSES_S = (None, 0.01, 0.0006)         # between two names of the writer; None: there are none
EVENTS_CONNECTIONS, WRITTEN_IN = 64, 10
MOST_QUESTIONS = 0.005                  # a request, whatever is reported
STOCK, OURS = "stock", "Flashpache"


# Servers side by side

@contextlib.contextmanager
def client_apart():
    """The load runs on other processors than the servers."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, machine.other_processors())
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def make_pair(base, root, pair, connections, maker=servers.Flashpache):
    """{name: server}, not started."""
    options = {"mpm": pair.mpm, "override": pair.override}
    place = servers.Place(base / f"{pair.mpm}-{pair.override}-{connections}", root, connections=connections)
    place.directory.mkdir()
    return {STOCK: servers.StockApache(place, STOCK, **options), OURS: maker(place, OURS, **options)}


@contextlib.contextmanager
def side_by_side(base, root, pairs, connections, maker=servers.Flashpache):
    """{pair: {name: server}}, all of them up; maker: of ours."""
    made = {pair: make_pair(base, root, pair, connections, maker) for pair in pairs}
    with contextlib.ExitStack() as stack:
        for server in itertools.chain.from_iterable(one.values() for one in made.values()):
            stack.callback(server.stop)
            server.start()
        yield made


def memory_of(server):
    """The proportional share of all its processes, in bytes."""
    total = 0
    for pid in server.pids():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024


def questions(server):
    counters = server.daemon_counters()
    return sum(counters.get(key, 0) for key in ("hits", "misses", "joined"))


def ratios(results, key):
    """Ours to stock's of the same round: median and range."""
    pairs = zip(results[OURS], results[STOCK])
    return lab_kit.summary([{key: ours[key] / theirs[key]} for ours, theirs in pairs], key)


def verdict(ratio, goal, at_least):
    worst = ratio["min"] if at_least else ratio["max"]
    reached = worst >= goal if at_least else worst <= goal
    return "" if reached else f"{worst:.2f}, not {goal:.2f}"


def show(ratio):
    return f"{ratio['median']:.2f} ({ratio['min']:.2f}-{ratio['max']:.2f})"


# Capacity

def load(server, base, options):
    """One measurement, with the number of its questions."""
    before = questions(server)
    found = lab_kit.measure(server, base, "--allow-errors", *options)
    found["questions"] = (questions(server) - before) / max(1, found["requests"])
    return found


def load_in_turn(both, base, arguments, options):
    """{name: [result of each round]}; the first server changes with the round."""
    results = {name: [] for name in both}
    for number in range(arguments.rounds):
        for name in list(both)[::-1] if number % 2 else both:
            results[name].append(load(both[name], base, ["-d", arguments.seconds, *options]))
    return results


def warm_up(both, base, arguments, options):
    """{name: result of the first seconds}, in which all children are new."""
    found = {name: load(server, base, ["-d", arguments.seconds, *options]) for name, server in both.items()}
    for server in both.values():
        lab_kit.bench(server.port, base, "--allow-errors", "-d", max(0.1, arguments.warm - arguments.seconds), *options)
    return found


def capacity_row(part, pair, both, new, results):
    memory = {name: memory_of(server) for name, server in both.items()}
    errors = sum(one["errors"] for rounds in results.values() for one in rounds)
    counters = both[OURS].daemon_counters()
    return {"part": part, "pair": pair.label, "goal": pair.goal, "errors": errors,
            "rate": ratios(results, "rate"), "cpu_us": ratios(results, "cpu_us"),
            "rates": {name: lab_kit.summary(rounds, "rate") for name, rounds in results.items()},
            "cpu": {name: lab_kit.summary(rounds, "cpu_us") for name, rounds in results.items()},
            "questions": lab_kit.summary(results[OURS], "questions"),
            "new_children": {name: {key: one[key] for key in ("cpu_us", "faults")} for name, one in new.items()},
            "faults": {name: lab_kit.summary(rounds, "faults") for name, rounds in results.items()},
            "memory": memory, "counters": counters}


def measure_capacity(part, base, root, arguments, maker=servers.Flashpache):
    the_set = (QUICK_SETS if arguments.quick else SETS)[part]
    content = Content(the_set.directories)
    say(f"{part}: {the_set.directories * workload.FILES_PER_DIRECTORY} files, {the_set.connections} connections")
    content.make(root)
    urls = growth.write_lines(base / "out" / "urls", content.urls(REQUESTS, SEED))
    options = ["-c", the_set.connections, "-k", PER_CONNECTION, "-u", urls]
    rows = []
    for pair in PAIRS[part]:
        say(f"{part}: {pair.label}")
        with side_by_side(base, root, [pair], the_set.connections, maker) as made, client_apart():
            both = made[pair]
            new = warm_up(both, base, arguments, options)
            rows.append(capacity_row(part, pair, both, new, load_in_turn(both, base, arguments, options)))
    return rows


def print_capacity(rows):
    print(f"\nCapacity, {rows[0]['part']} files\n")
    lab_kit.print_table(
        ("MPM/AllowOverride", "stock req/s", "Flashpache", "of stock", "CPU us", "CPU us", "CPU of stock",
         "questions", "memory of stock", "errors", ""),
        [(row["pair"], f"{row['rates'][STOCK]['median']:.0f}", f"{row['rates'][OURS]['median']:.0f}",
          show(row["rate"]), f"{row['cpu'][STOCK]['median']:.1f}", f"{row['cpu'][OURS]['median']:.1f}",
          show(row["cpu_us"]), f"{row['questions']['median']:.3f}",
          f"{row['memory'][OURS] / row['memory'][STOCK]:.2f}", row["errors"],
          verdict(row["rate"], row["goal"], True)) for row in rows])
    print(f"\nNew children, {rows[0]['part']} files: their first seconds, and later\n")
    lab_kit.print_table(
        ("MPM/AllowOverride", "stock CPU us", "Flashpache", "stock page faults", "Flashpache", "stock, later",
         "Flashpache"),
        [(row["pair"], *(f"{row['new_children'][name]['cpu_us']:.0f}" for name in (STOCK, OURS)),
          *(f"{row['new_children'][name]['faults']:.2f}" for name in (STOCK, OURS)),
          *(f"{row['faults'][name]['median']:.2f}" for name in (STOCK, OURS))) for row in rows])


# Without files

def measure_most(part, base, root, arguments):
    """The same, of an httpd that has the files' sizes alone."""
    def without_files(place, key, **options):
        return servers.StockApache(place, key, extra=lab_kit.no_files(base, root), **options)
    return [row for name in ("many", "few") for row in measure_capacity(name, base, root, arguments, without_files)]


def print_most(rows):
    print("\nWithout files\n")
    lab_kit.print_table(("files", "MPM/AllowOverride", "stock req/s", "without", "of stock", "CPU of stock", "errors"),
                        [(row["part"], row["pair"], f"{row['rates'][STOCK]['median']:.0f}",
                          f"{row['rates'][OURS]['median']:.0f}", show(row["rate"]), show(row["cpu_us"]), row["errors"])
                         for row in rows])


# First requests

def forget(server, root):
    """Makes everything below the root unknown again."""
    if not isinstance(server, servers.Flashpache):
        return
    subprocess.run([lab_kit.CONTROL, "-s", server.daemon.socket, "purge", "--tree", root],
                   check=True, stdout=subprocess.DEVNULL)


def all_passes(server, base, root, urls):
    """{pass: result}"""
    forget(server, root)
    return {name: load(server, base, ["-c", PASS_CONNECTIONS, "-u", urls, "--once"]) for name in PASSES}


def measure_first(part, base, root, arguments):
    """One child of each server has the whole list; stock's first pass is as its second."""
    directories = (QUICK_SETS if arguments.quick else SETS)["few"].directories
    content, rows = Content(directories), []
    content.make(root)
    urls = growth.write_lines(base / "out" / "urls", content.all_urls())
    pairs = [Pair(mpm, "None", 0) for mpm in ("prefork", "event")]
    with side_by_side(base, root, pairs, PASS_CONNECTIONS) as made, client_apart():
        for pair, both in made.items():
            say(f"{part}: {pair.label}")
            for server in both.values():
                all_passes(server, base, root, urls)
            rounds = {name: [] for name in both}
            for number in range(arguments.rounds):
                for name in list(both)[::-1] if number % 2 else both:
                    rounds[name].append(all_passes(both[name], base, root, urls))
            for which, goal in PASSES.items():
                found = {name: [one[which] for one in all_of] for name, all_of in rounds.items()}
                rows.append({"pair": pair.label, "pass": which, "goal": goal,
                             "cpu": {name: lab_kit.summary(all_of, "cpu_us") for name, all_of in found.items()},
                             "cpu_us": ratios(found, "cpu_us"),
                             "questions": lab_kit.summary(found[OURS], "questions")})
    return rows


def print_first(rows):
    print("\nPaths that nobody asked about, and the same again\n")
    lab_kit.print_table(("MPM/AllowOverride", "pass", "stock CPU us", "Flashpache", "CPU of stock", "questions", ""),
                        [(row["pair"], row["pass"], f"{row['cpu'][STOCK]['median']:.1f}",
                          f"{row['cpu'][OURS]['median']:.1f}", show(row["cpu_us"]),
                          f"{row['questions']['median']:.3f}", verdict(row["cpu_us"], row["goal"], False))
                         for row in rows])


# Paths below directories that nobody asked about

def _absent(depth):
    def urls(number, count):
        below = "/x" * (depth - 1)
        return [f"GET http://localhost/r{number}-{one}{below} 404\n" for one in range(count)]
    return urls


def _files(number, count):
    del number
    return [f"GET http://localhost/d{one}/page.html 200\n" for one in range(count)]


UNKNOWN = {"absent, 2 components": (_absent(2), 1.), "absent, 50 components": (_absent(50), 1.), "files": (_files, 1.25)}
UNKNOWN_PATHS = 20_000


def measure_unknown(part, base, root, arguments):
    count = UNKNOWN_PATHS // 10 if arguments.quick else UNKNOWN_PATHS
    (root / "page.html").write_text("known\n")
    for one in range(count):
        (root / f"d{one}").mkdir()
        (root / f"d{one}/page.html").write_text("page\n" * 100)
    numbers, rows = itertools.count(), []
    pairs = [Pair("event", override, 0) for override in ("None", "All")]
    with side_by_side(base, root, pairs, PASS_CONNECTIONS) as made, client_apart():
        for (pair, both), (kind, (urls, goal)) in itertools.product(made.items(), UNKNOWN.items()):
            say(f"{part}: {pair.label}, {kind}")
            rounds = {name: [] for name in both}
            for number in range(-1, arguments.rounds):          # the first one warms up
                for name in list(both)[::-1] if number % 2 else both:
                    server = both[name]
                    forget(server, root)
                    with Client(server.port) as client:
                        assert client.get("/page.html") == (200, b"known\n")
                    listed = base / "out" / "urls"
                    listed.write_text("".join(urls(next(numbers), count)))
                    rounds[name].append(load(server, base, ["-c", PASS_CONNECTIONS, "-u", listed, "--once"]))
            rounds = {name: all_of[1:] for name, all_of in rounds.items()}
            rows.append({"pair": f"{pair.label}, {kind}", "pass": "once", "goal": goal,
                         "cpu": {name: lab_kit.summary(all_of, "cpu_us") for name, all_of in rounds.items()},
                         "cpu_us": ratios(rounds, "cpu_us"), "questions": lab_kit.summary(rounds[OURS], "questions")})
    return rows


# Events

@contextlib.contextmanager
def names_come_and_go(base, root, pause):
    """pause: between two of them, in seconds; None: there are none."""
    if pause is None:
        yield
        return
    command = [sys.executable, Path(__file__).parent / "lab/writer.py", root / Content.PREFIX[1:], WRITTEN_IN,
               base / "written", pause]
    with subprocess.Popen([str(word) for word in command]) as writer:
        try:
            yield
        finally:
            writer.kill()


def events_row(pair, both, base, pause, options, rounds):
    """Of so many rounds: stock's and our results, and the events that our daemon took in."""
    results, events, seconds = {STOCK: [], OURS: []}, 0, 0
    for _ in range(rounds):
        for name, server in both.items():
            before, began = server.daemon_counters().get("events", 0), time.monotonic()
            results[name].append(load(server, base, options))
            events += server.daemon_counters().get("events", 0) - before
            seconds += (time.monotonic() - began) * (name == OURS)
    return {"pair": pair.label, "pause_s": pause, "events": events / seconds, "rate": ratios(results, "rate"),
            "cpu_us": ratios(results, "cpu_us"), "questions": lab_kit.summary(results[OURS], "questions")}


def measure_events(part, base, root, arguments):
    """Events of directories that are served, but not of the files themselves. In fewer directories they are noise."""
    content, rows = Content(SETS["few"].directories), []
    content.make(root)
    urls = growth.write_lines(base / "out" / "urls", content.urls(REQUESTS, SEED))
    options = ["-c", EVENTS_CONNECTIONS, "-u", urls]
    pairs = [Pair(mpm, "All", 0) for mpm in ("prefork", "event")]
    with side_by_side(base, root, pairs, EVENTS_CONNECTIONS) as made, client_apart():
        for pair, both in made.items():
            say(f"{part}: {pair.label}")
            for server in both.values():
                lab_kit.bench(server.port, base, "--allow-errors", "-d", arguments.warm / 4, *options)
            for pause in PAUSES_S:
                with names_come_and_go(base, root, pause):
                    rows.append(events_row(pair, both, base, pause, ["-d", arguments.seconds, *options],
                                           arguments.rounds))
    return rows


def print_events(rows):
    print("\nWhile names come and go\n")
    lab_kit.print_table(("MPM/AllowOverride", "events/s", "requests/s of stock", "CPU of stock", "questions", ""),
                        [(row["pair"], f"{row['events']:.0f}", show(row["rate"]), show(row["cpu_us"]),
                          f"{row['questions']['median']:.4f}",
                          f"above {MOST_QUESTIONS}" if row["questions"]["max"] > MOST_QUESTIONS else "")
                         for row in rows])


# A warm hit

def measure_hits(part, base, root, arguments):
    """The cells of hit_cost.py that have a goal here."""
    del part, root
    options = hit_cost.settings(rounds=arguments.rounds, seconds=arguments.seconds)
    cells = [hit_cost.Cell(mpm, configuration, 5000, 1)
             for mpm, configuration in itertools.product(hit_cost.MPMS, HITS)]
    return hit_cost.run(base, cells, options)


def print_hits(results):
    hit_cost.print_costs(results)
    print()
    lab_kit.print_table(("goal", "CPU of stock", ""),
                        [(row["lease"]["cell"], show(row["lease"]["of_stock"]["cpu_us"]),
                          verdict(row["lease"]["of_stock"]["cpu_us"], HITS[row["lease"]["cell"].split("/")[1]], False))
                         for row in results])


# Growth

def grown(grow):
    def measure(part, base, root, arguments):
        del part
        return grow(base, root, growth.settings(quick=arguments.quick, rounds=arguments.rounds,
                                                seconds=min(2, arguments.seconds)))
    return measure


PARTS = {"many": (measure_capacity, print_capacity), "few": (measure_capacity, print_capacity),
         "most": (measure_most, print_most),
         "first": (measure_first, print_first), "unknown": (measure_unknown, print_first), "events": (measure_events, print_events),
         "hit": (measure_hits, print_hits),
         "children": (grown(growth.grow_workers), growth.print_workers),
         "paths": (grown(growth.grow_paths), growth.print_paths)}
QUICK_PARTS = ("many", "few", "most", "first", "unknown", "events")      # growth.py and hit_cost.py have a --quick of their own


def parse_arguments():
    parser = lab_kit.parser(__doc__, rounds=4, seconds=3, quick="few files and connections, two short rounds")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be repeated")
    parser.add_argument("--warm", type=float, default=20, help="seconds of load before the rounds")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds, arguments.warm = 2, 0.4, 1
    return arguments


def main():
    arguments = parse_arguments()
    lab_kit.prepare()
    found = {}
    for part in arguments.part or (QUICK_PARTS if arguments.quick else PARTS):
        measure, show_part = PARTS[part]
        with lab_kit.work_directory() as base, lab_kit.memory_directory(base / "www") as root:
            found[part] = measure(part, base, root, arguments)
        show_part(found[part])
        lab_kit.write_json(arguments.json, found)


if __name__ == "__main__":
    main()
