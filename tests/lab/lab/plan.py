# SPDX-License-Identifier: Apache-2.0
"""The measurements of the quick and of the full run, and their places."""

from collections import namedtuple
from dataclasses import dataclass, field, replace

from lab.load import Content
from lab.servers import apache_kinds, arch_kinds, other_kinds

# name: of its result file; call: in measure.STEPS; options: its arguments; once: in the first round only;
# servers: only for these, if it says so.
Step = namedtuple("Step", "name call options once servers")
LOADS = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
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
    reference: str = None       # the equal absolute load is a share of its capacity
    on_request: bool = False    # only where it, or one of its servers, is named

    def steps_of(self, server, number):
        """A server's measurements in a round."""
        return [step for step in self.steps
                if (number == 0 or not step.once) and server in (step.servers or self.servers)]

    def session_seconds(self, server, number):
        """About how long these take."""
        steps = self.steps_of(server, number)
        return SESSION_S + self.warm_s + sum(step.options["seconds"] + STEP_S for step in steps)

    def seconds(self, rounds):
        return sum(self.session_seconds(server, number) for server in self.servers for number in range(rounds))


def step(call, seconds, label="", once=False, servers=None, **options):
    return Step(f"{call}{label}", call, {"seconds": seconds, **options}, once, servers)


def at_loads(seconds, loads, **more):
    return [step("latency", seconds, f"@{share:g}", share=share, **more) for share in loads]


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
        Experiment("size-small", "disk", Content(20), NONE, [capacity, *at_loads(1.5, (0.6,))], 64, warm_s=2,
                   rig_options=disk),
        Experiment("link", "link", small, NONE, [capacity, *at_loads(2, (0.95,))], 64),
        Experiment("network", "network", small, ALL, [capacity, *at_loads(1, (0.95,))], 64, warm_s=2),
        Experiment("contention", "contention", small, ALL, [capacity, *at_loads(1, (0.95,))], 64, warm_s=2),
        Experiment("architectures", "memory", small, ARCHITECTURES, [capacity, calls, *at_loads(1, (0.8,))], 64,
                   warm_s=1, on_request=True),
    ]


def full():
    """The papers' settings: 3 GB, 1024 connections, six loads. Takes hours."""
    large, hot = Content(600), Content(28, hot=1008)
    everything = [step("capacity", 15), *at_loads(20, LOADS), equal_load(20), step("bursts", 10, share=0.95)]
    calls = step("system_calls", 5, once=True)
    disk = {"memory": 1024 * MIB}
    deeper = [*everything, step("head_of_line", 20, share=0.8), step("slow_calls", 10, once=True, share=0.8)]
    sizes = [Experiment(f"size-{count * 5}MB", "disk", Content(count), [*NONE, "nginx-1-cache"],
                        [step("capacity", 15), *at_loads(20, (0.6,))], 1024, warm_s=60, rig_options=disk)
             for count in (100, 200, 400)]
    return [
        Experiment("memory", "memory", large, [*apache_kinds(), *other_kinds()], [calls, *everything], 1024, warm_s=10,
                   reference="stock-prefork-All"),
        Experiment("slowfs", "slowfs", hot, [*ALL, *NONE, *EVENT_ALL, "nginx-1", "nginx-1-cache",
                                             "lighttpd-inotify"],
                   [*everything, step("sleepers", 5)], 1024, warm_s=20, reference="stock-prefork-All"),
        Experiment("disk", "disk", large, [*NONE, *ALL, *EVENT, "nginx-1", "nginx-1-cache", "nginx-n-cache",
                                           "nginx-aio-cache", "lighttpd-inotify"],
                   deeper, 1024, warm_s=120, rig_options=disk, reference="stock-prefork-None"),
        *sizes,
        Experiment("link", "link", large, [*NONE, "nginx-1-cache"], everything, 1024, warm_s=5,
                   reference="stock-prefork-None"),
        Experiment("slowfs-kept", "slowfs", hot, [*ALL, *NONE], everything, 1024, warm_s=20,
                   rig_options={"attributes_s": 1.0, "names_s": 1.0}, reference="stock-prefork-All"),
        Experiment("slowfs-attributes", "slowfs", hot, ALL, everything, 1024, warm_s=20,
                   rig_options={"attributes_s": 1.0}, reference="stock-prefork-All"),
        Experiment("architectures", "memory", large, ARCHITECTURES, [calls, step("capacity", 10), *at_loads(10, FEW)],
                   1024, warm_s=5, on_request=True),
        Experiment("network", "network", hot, [*ALL, *NONE, "nginx-1-cache"], everything, 256, warm_s=20,
                   reference="stock-prefork-All"),
        Experiment("contention", "contention", large, [*ALL, *NONE], everything, 1024, warm_s=5,
                   reference="stock-prefork-All"),
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
