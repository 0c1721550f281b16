# SPDX-License-Identifier: Apache-2.0
"""The full run: parts that take seventy-five minutes together on two processors, each with a limit of its own.

Times of sessions were taken on such a machine. On a slower one a part ends with fewer rounds, and its facts name what it left
out. The papers' set is three times their memory: so is the disk's here, at a quarter of its size, which is sooner known.
"""

import sys
from dataclasses import dataclass, field

from lab import REPO
from lab.load import Content
from lab.plan import (ALL, ARCHITECTURES, EVENT, EVENT_ALL, FEW, LOADS, MIB, NONE, Experiment, at_loads, chosen, equal_load,
                      profile, quick, step)
from lab.rigs.metadata import Holes
from lab.rounds import Rounds, fixed
from lab.servers import arch_kinds

LARGE, HOT, THIRD, NAMES = Content(600), Content(28, hot=1008), Content(150), Holes(5600)
MANY, SOME = 1024, 256
LARGE_WARM_S = 10           # 1,024 children answer 21,600 files: in less time a measurement is one of the start
FLASHES = ["arch-amped", "arch-new-flash"]
# Each --arch with its own ways of sending and keeping; the memory rig has all variants.
EACH_ARCH = [key for key in arch_kinds() if key not in ("arch-mt-content", "arch-symped-blocking")]
# Where a start takes longer than a measurement: more rounds are for ratios that do not agree.
TWICE = Rounds(least=2)


@dataclass(frozen=True)
class Program:
    """A program of the lab with a result of its own; seconds: about how long it takes."""

    name: str
    script: str
    options: tuple
    seconds: float

    def first_seconds(self):
        return self.seconds

    def least_seconds(self, rounds):
        del rounds
        return self.seconds

    def command(self, result):
        return [sys.executable, REPO / "tests/lab" / self.script, *self.options, "--json", result]


@dataclass
class Part:
    name: str
    minutes: float
    about: str
    experiments: list = field(default_factory=list)
    programs: list = field(default_factory=list)

    def seconds(self, rounds):
        """(with as few rounds as there may be, with as many)"""
        least = sum(one.least_seconds(rounds) for one in [*self.experiments, *self.programs])
        more = sum(one.seconds((one.rounds or rounds).most) - one.least_seconds(rounds) for one in self.experiments)
        return least, least + more


def each_architecture(rig, content, connections, seconds, *more, **settings):
    """A row of each architecture in a rig: one round, its capacity and the latency near it."""
    return Experiment(f"{rig}-architectures", rig, content, EACH_ARCH,
                      [step("capacity", seconds), *at_loads(seconds, (0.95,)), *more], connections, rounds=fixed(1),
                      reference="arch-mp", **settings)


def memory():
    calls = step("system_calls", 1, once=True)
    return Part("memory", 19, "3 GB in memory, 1,024 connections; each architecture; names that appear and disappear; a warm hit", [
        Experiment("memory", "memory", LARGE, [*NONE, *ALL, *EVENT, *EVENT_ALL, "nginx-1-cache"],
                   [step("capacity", 4), calls, *at_loads(3, FEW, once=True), equal_load(3, once=True)], MANY,
                   warm_s=LARGE_WARM_S, start_s=6, setup_s=40, rounds=TWICE, reference="stock-prefork-All"),
        Experiment("memory-profile", "memory", Content(100), [*NONE, *FLASHES],
                   [step("capacity", 2), profile(2)], SOME, warm_s=3, setup_s=10, rounds=fixed(1)),
        Experiment("architectures", "memory", Content(100), ARCHITECTURES,
                   [step("capacity", 2), calls, *at_loads(2, (0.8,), once=True)], SOME, warm_s=2, setup_s=10, rounds=TWICE),
        Experiment("contention", "contention", Content(100), ALL, [step("capacity", 3), *at_loads(3, (0.95,), once=True)],
                   SOME, warm_s=3, start_s=3, setup_s=10, rounds=fixed(2)),
        each_architecture("contention", Content(100), SOME, 2, warm_s=2, setup_s=10),
    ], [Program("hit", "hit_cost.py", ("--rounds", "2", "--seconds", "1", "--no-calls", "--only", "*/None/5000/1",
                                       "--only", "*/All/5000/1", "--only", "*/htaccess/5000/1"), 100)])


def disk():
    options = {"memory": 256 * MIB}
    common = {"step_s": 1.5, "rig_options": options}
    hot = step("head_of_line", 5, once=True, share=0.8)
    main = Experiment("disk", "disk", THIRD, [*NONE, "nginx-1-cache"],
                      [step("capacity", 4), *at_loads(5, FEW[:1], once=True), *at_loads(5, FEW[1:]), hot,
                       step("slow_calls", 4, once=True, share=0.8, servers=NONE)],
                      SOME, warm_s=8, start_s=6, setup_s=15, **common)
    flashes = [*at_loads(4, FEW[:1], servers=FLASHES), hot._replace(servers=FLASHES)]
    each = each_architecture("disk", THIRD, SOME, 4, *flashes, warm_s=6, start_s=6, setup_s=15, **common)
    sizes = [Experiment(f"size-{count * 5}MB", "disk", Content(count), [*NONE, *FLASHES],
                        [step("capacity", 3), *at_loads(4, FEW[:1])], SOME, warm_s=5, start_s=4, setup_s=8,
                        rounds=fixed(1), **common)
             for count in (30, 60)]
    return Part("disk", 12, "data and names on a disk of 150 reads/s, three times the memory; smaller sets; each architecture",
                [main, each, *sizes])


def metadata():
    """A server answers 60,000 requests before it is measured, which is in the time of its start."""
    common = {"start_s": 11, "setup_s": 15, "step_s": 3}
    main = Experiment("metadata", "metadata", NAMES, [*NONE, *EVENT_ALL],
                      [step("capacity", 4), *at_loads(5, (0.95,)), profile(5, servers=NONE),
                       step("bursts", 4, once=True, share=0.95, servers=NONE)], SOME, warm_s=10, rounds=TWICE, **common)
    each = each_architecture("metadata", NAMES, SOME, 4, profile(4, servers=FLASHES), warm_s=8, **common)
    each.servers = [*each.servers, "nginx-1-cache"]
    return Part("metadata", 14, "201,600 files, with names and inodes on a disk of 150 reads/s; each architecture", [main, each])


def slowfs():
    stalls = step("sleepers", 3, once=True)
    return Part("slowfs", 8.5, "2 ms for each lookup of a name; what threads wait for; each architecture", [
        Experiment("slowfs", "slowfs", HOT, [*EVENT_ALL, "nginx-1-cache"],
                   [step("capacity", 4), *at_loads(4, (0.2, 0.6, 0.8), once=True), *at_loads(4, (0.95,)), stalls,
                    equal_load(4, once=True)], MANY, warm_s=8, start_s=4, setup_s=8, reference="stock-event-All"),
        Experiment("slowfs-kept", "slowfs", HOT, EVENT_ALL, [step("capacity", 4), *at_loads(4, (0.95,)), stalls], MANY,
                   warm_s=8, start_s=4, rounds=fixed(1), rig_options={"attributes_s": 1.0, "names_s": 1.0},
                   reference="stock-event-All"),
        each_architecture("slowfs", HOT, MANY, 3, warm_s=8, start_s=4, setup_s=8),
    ])


def network():
    few = Content(28, hot=250)
    return Part("network", 3.5, "sshfs with its defaults; each architecture", [
        Experiment("network", "network", few, [*ALL, "nginx-1-cache"],
                   [step("capacity", 3), *at_loads(4, (0.95,), once=True)], 64, warm_s=4, start_s=3,
                   reference="stock-prefork-All"),
        each_architecture("network", few, 64, 2, warm_s=3),
    ])


def link():
    return Part("link", 5.5, "service inversion at the papers' loads, over a link of 100 Mbit/s; each architecture", [
        Experiment("link", "link", LARGE, NONE, [step("capacity", 3), *at_loads(5, LOADS[:-1], once=True),
                                                 *at_loads(5, LOADS[-1:])], SOME, warm_s=2, start_s=3, setup_s=15),
        each_architecture("link", LARGE, SOME, 4, *at_loads(4, LOADS[:-1], servers=FLASHES), warm_s=2, setup_s=15),
    ])


def srpt():
    def of(name, seconds, *options):
        return Program(name, "srpt.py", options, seconds)
    return Part("srpt", 7.5, "the shortest remaining response first, on uplinks of 10 and 100 Mbit/s", [], [
        of("srpt-10", 175, "--rate", "10", "--load", "0.5", "0.7", "0.8", "0.9", "0.95", "--seconds", "13"),
        of("srpt-100", 55, "--rate", "100", "--load", "0.5", "0.8", "--per-connection", "5", "--seconds", "8"),
        of("srpt-partly-open", 90, "--rate", "10", "--load", "0.5", "0.8", "0.9", "--seconds", "11", "--partly-open", "5"),
        *(of(f"srpt-loss-{loss}", 55, "--rate", "10", "--load", "0.7", "0.9", "--seconds", "9", "--loss", loss)
          for loss in ("1", "3")),
    ])


def growth():
    return Part("growth", 4.5, "more and more children and paths", [], [
        *(Program(f"growth-workers-{counts[-1]}", "growth.py", ("--part", "workers", "--seconds", "1.5", *(
            word for count in counts for word in ("--workers", count))), seconds)
          for counts, seconds in ((("1", "16", "64"), 70), (("1024",), 55))),
        Program("growth-paths", "growth.py", ("--part", "paths", "--paths", "1000", "--paths", "100000", "--rounds", "2",
                                              "--seconds", "1"), 100),
    ])


PARTS = {make.__name__: make for make in (memory, disk, metadata, slowfs, network, link, srpt, growth)}


def full():
    return [make() for make in PARTS.values()]


def quick_part():
    """The quick run as one part; it has no limit, since its rounds are few and fixed."""
    return Part("quick", 10, "all rigs on small settings", chosen(quick()))


def table(parts, rounds):
    """The plan as text: how long each part takes, at least and at most."""
    lines = [f"{'part':10} {'minutes':>8} {'at least':>9} {'at most':>8}  measures"]
    for part in parts:
        least, most = (seconds / 60 for seconds in part.seconds(rounds))
        lines.append(f"{part.name:10} {part.minutes:8.1f} {least:9.1f} {most:8.1f}  {part.about}")
    least, most = (sum(part.seconds(rounds)[i] for part in parts) / 60 for i in (0, 1))
    lines.append(f"{'all':10} {sum(part.minutes for part in parts):8.1f} {least:9.1f} {most:8.1f}  "
                 "(a part ends with its limit, whatever is left of it)")
    return "\n".join(lines)
