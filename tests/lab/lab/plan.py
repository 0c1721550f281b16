# SPDX-License-Identifier: Apache-2.0
"""Experiments, their steps, and those of the quick run; lab/parts.py has the full run's."""

from collections import namedtuple
from dataclasses import dataclass, field, replace

from lab.load import Content
from lab.rigs.metadata import Holes
from lab.rounds import Rounds, counterpart, fixed
from lab.servers import apache_kinds, arch_kinds, other_kinds

# name: of its result file; call: in measure.STEPS; options: its arguments; once: in the first round only;
# servers: only for these, if it says so.
Step = namedtuple("Step", "name call options once servers")
# The papers' loads; and those in which a curve's knee is searched.
LOADS = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
FINE_LOADS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
MOST_LOADS = 6
FEW = (0.6, 0.95)
MIB = 1 << 20
# The time of a session beside its steps and its warm-up, and of a step beside its load.
SESSION_S, STEP_S = 2.5, 0.6


@dataclass
class Experiment:
    """A rig, the servers in it, and the steps for each of them."""

    name: str
    rig: str
    content: Content
    servers: list
    steps: list
    connections: int
    warm_s: float = 0.5
    rig_options: dict = field(default_factory=dict)
    start_s: float = SESSION_S  # of a server, its end included
    setup_s: float = 2          # of the rig
    step_s: float = STEP_S      # of a step beside its load: answers that come late
    rounds: Rounds = None       # where they are not the run's
    reference: str = None       # the equal absolute load is a share of its capacity
    on_request: bool = False    # only where it, or one of its servers, is named

    def steps_of(self, server, number):
        """A server's measurements in a round."""
        return [step for step in self.steps
                if (number == 0 or not step.once) and server in (step.servers or self.servers)]

    def session_seconds(self, server, number):
        """About how long these take."""
        steps = self.steps_of(server, number)
        loads = sum((step.options["seconds"] + self.step_s) * step.options.get("most", 1) for step in steps)
        return self.start_s + self.warm_s + loads

    def round_seconds(self, servers, number):
        return sum(self.session_seconds(server, number) for server in servers)

    def seconds(self, count):
        """Of so many rounds of all servers, with the rig."""
        return self.setup_s + sum(self.round_seconds(self.servers, number) for number in range(count))

    def first_seconds(self):
        return self.seconds(1)

    def least_seconds(self, rounds):
        """rounds: those of the run, which may not be its own."""
        return self.seconds((self.rounds or rounds).least)

    def others(self):
        """{server: the one that it is compared with}"""
        return {key: counterpart(key, self.servers, self.reference) for key in self.servers}


def step(call, seconds, label="", once=False, servers=None, **options):
    return Step(f"{call}{label}", call, {"seconds": seconds, **options}, once, servers)


def at_loads(seconds, loads, **more):
    return [step("latency", seconds, f"@{share:g}", share=share, **more) for share in loads]


def profile(seconds, most=MOST_LOADS, **more):
    """The latency at as many loads as the curve needs: search.next_load chooses them."""
    return step("profile", seconds, most=most, loads=FINE_LOADS, once=True, **more)


def equal_load(seconds, **more):
    """The same rate for every server: half of the reference's capacity."""
    return step("latency", seconds, "=equal", share=None, rate="reference", **more)


NONE = ["stock-prefork-None", "flash-prefork-None"]
ALL = ["stock-prefork-All", "flash-prefork-All"]
EVENT = ["stock-event-None", "flash-event-None"]
EVENT_ALL = ["stock-event-All", "flash-event-All"]
# Beside the papers' architectures, today's servers that have them.
ARCHITECTURES = [*arch_kinds(), "stock-event-None", "nginx-1-cache"]


def quick():
    """The whole report on small settings, in less than ten minutes. The paths that a prefork child has to learn are
    few: a measurement of seconds would show nothing else."""
    small, hot = Content(8), Content(28, hot=250)
    disk = {"memory": 128 * MIB}
    calls = step("system_calls", 0.5, once=True)
    capacity = step("capacity", 1)
    return [
        Experiment("memory", "memory", small, [*ALL, *EVENT_ALL, "nginx-1-cache"],
                   [capacity, calls, *at_loads(1, FEW, servers=ALL), equal_load(1, servers=ALL)], 64,
                   warm_s=2, reference="stock-prefork-All"),
        Experiment("slowfs", "slowfs", hot, [*EVENT_ALL, "nginx-1-cache"],
                   [step("capacity", 1.5), *at_loads(1.5, FEW), equal_load(1.5, once=True),
                    step("sleepers", 1.5, once=True)], 256, warm_s=3, reference="stock-event-All"),
        Experiment("disk", "disk", Content(125), [*NONE, "nginx-1-cache"],
                   [step("capacity", 2), *at_loads(2, FEW), step("head_of_line", 2, once=True, share=0.8),
                    step("bursts", 1.5, once=True, share=0.95), step("slow_calls", 1.5, once=True, share=0.8)],
                   64, warm_s=6, rig_options=disk),
        Experiment("metadata", "metadata", Holes(1000), NONE, [capacity, *at_loads(1.5, (0.95,))], 64, warm_s=2,
                   rounds=fixed(2), rig_options={"memory": 32 * MIB, "learn": 20_000}),
        Experiment("size-small", "disk", Content(20), NONE, [capacity, *at_loads(1.5, (0.6,))], 64, warm_s=2,
                   rig_options=disk, rounds=fixed(2)),
        Experiment("link", "link", small, NONE, [capacity, *at_loads(2, (0.95,))], 64, rounds=fixed(2)),
        Experiment("network", "network", small, ALL, [capacity, *at_loads(1, (0.95,))], 64, warm_s=2, rounds=fixed(2)),
        Experiment("contention", "contention", small, ALL, [capacity, *at_loads(1, (0.95,))], 64, warm_s=2, rounds=fixed(2)),
        Experiment("architectures", "memory", small, ARCHITECTURES, [capacity, calls, *at_loads(1, (0.8,))], 64,
                   warm_s=1, on_request=True),
        # 2.9 GB, and as many children as connections: three minutes.
        Experiment("disk-large", "disk", Content(600), NONE, [step("capacity", 8), *at_loads(6, (0.95,))], 1024, warm_s=20,
                   start_s=6, setup_s=60, rig_options={"memory": 1024 * MIB}, rounds=fixed(2), on_request=True),
    ]


def chosen(experiments, names=None, servers=None):
    """The experiments of these names, and of these those that have one of these servers, with these alone. Where both
    are named, these servers in these experiments, even if the plan has others."""
    if names and servers:
        return [replace(one, servers=list(servers)) for one in experiments if one.name in names]
    if names:
        return [one for one in experiments if one.name in names]
    if servers:
        kept = [replace(one, servers=[key for key in one.servers if key in servers]) for one in experiments]
        return [one for one in kept if one.servers]
    return [one for one in experiments if not one.on_request]
