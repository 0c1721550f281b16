# SPDX-License-Identifier: Apache-2.0
"""One measurement of one server: each function here returns the content of one result file."""

import time

from lab import Impossible, metrics, samples
from lab.load import Load

# Responses from which inversion and deciles are computed; more add time and no digit.
SAMPLE = 40_000
START_S = 0.4
HOT_RATE = 50
# Requests per second, while the capacity is not known; and the shortest list.
FIRST_GUESS = 60_000
LEAST_LIST = 5_000


class Session:
    """A started server, and the load for it."""

    def __init__(self, rig, server, place, seed):
        self.rig, self.server, self.seed = rig, server, seed
        self.load = Load(place.directory, server.host, server.port,
                         connections=rig.connections, prefix=place.client_prefix)
        self.capacity = None

    def fresh_list(self, seconds):
        """A list for a run of so many seconds; a run that is faster than expected begins it again."""
        self.seed += 1
        expected = 1.3 * (self.capacity or FIRST_GUESS) * seconds
        self.load.ask_for(self.rig.content.urls(int(max(LEAST_LIST, expected)), self.seed))

    def ask(self, name, seconds):
        """Closed loop over a fresh list; returns the client's report."""
        self.fresh_list(seconds)
        found, _ = self.load.run(name, *self.load.of_list(seconds))
        return found

    def rate_of(self, share, rate):
        """Requests per second: so many, or a share of this session's capacity."""
        if rate is None and self.capacity is None:
            capacity(self, 1)
        return rate if rate is not None else share * self.capacity


class Clock:
    """Processor time since its creation: the server's, and that of everything else on this machine."""

    def __init__(self, session):
        self.session, self.began, self.before = session, time.monotonic(), self.read(session)

    @staticmethod
    def read(session):
        return (samples.cpu_seconds(session.server.pids()), samples.cpu_seconds(session.rig.pids()),
                samples.machine_cpu_seconds())

    def stop(self, found):
        """{"server": seconds, "others": processors that neither server, rig nor client kept busy}"""
        took = time.monotonic() - self.began
        server, rig, machine = (after - before for after, before in zip(self.read(self.session), self.before))
        client = (found.get("client_cpu") or 0) * found["duration_s"]
        return {"server": server, "others": max(0.0, machine - server - rig - client) / took}


def of_client(found):
    """The client's report about itself, so that its own limit is not taken for the server's."""
    return {name: found.get(name) for name in ("client_limited", "client_limited_by", "client_cpu", "errors", "requests", "by_status", "unexpected")}


def capacity(session, seconds):
    """Closed loop: as fast as the server answers."""
    session.fresh_list(seconds)
    clock, reads, turns = Clock(session), session.rig.reads(), session.server.turns()
    found, _ = session.load.run("capacity", *session.load.of_list(seconds))
    spent = clock.stop(found)
    reads_each = {} if reads is None else {"reads": (session.rig.reads() - reads) / max(1, found["requests"])}
    ready = metrics.ready_events(turns, session.server.turns())
    session.capacity = found["requests_per_s"]
    return {"requests_per_s": found["requests_per_s"], "mbit_per_s": found["bytes"] * 8e-6 / found["duration_s"],
            "cpu_us": spent["server"] / max(1, found["requests"]) * 1e6, "others_cpu": spent["others"],
            "memory_mib": samples.memory_bytes(session.server.pids()) / (1 << 20),
            **reads_each, **({"ready_events": ready} if ready else {}), **of_client(found)}


def system_calls(session, seconds):
    """System calls per request, under the closed loop's load."""
    session.fresh_list(seconds)
    pids = session.server.pids()
    started = session.load.start("calls", *session.load.of_list(seconds + 2 * START_S))
    time.sleep(START_S)
    calls, took = samples.system_calls(pids, seconds)
    found, _ = session.load.finish(started)
    return {"calls": calls / max(1.0, found["requests_per_s"] * seconds), "perf_s": took}


def latency(session, seconds, share=None, rate=None):
    """Open loop at a share of the server's capacity or at a rate: percentiles, CDF, inversion."""
    asked = session.rate_of(share, rate)
    session.fresh_list(seconds)
    found, records = session.load.run("latency", *session.load.of_list(seconds, asked), records=True)
    result = {"rate": asked, "share": share, "answered": len(records.latencies), "failed": records.failed,
              "requests_per_s": found["requests_per_s"], **of_client(found)}
    if records.latencies:
        sizes, latencies = records.sizes[:SAMPLE], records.latencies[:SAMPLE]
        result |= {"ms": metrics.latency_summary(records.latencies), "cdf": metrics.cdf(records.latencies),
                   "inversion": metrics.inversion(sizes, latencies), "deciles": metrics.deciles(sizes, latencies)}
    return result


def bursts(session, seconds, share):
    """The number of the server's runnable threads, sampled under load; and the number of events that its daemon finds
    ready when it wakes up."""
    rate = session.rate_of(share, None)
    session.fresh_list(seconds)
    pids = session.server.pids()
    sampler = samples.Sampler(lambda: samples.runnable(pids))
    before = session.server.daemon_counters()
    sampler.start()
    session.load.run("bursts", *session.load.of_list(seconds, rate))
    seen = sampler.stop()
    after = session.server.daemon_counters()
    counts = sorted(count for count, _ in seen)
    found = {"threads": max(total for _, total in seen), "samples": len(seen), "runnable": counts}
    if after:
        found["ready_per_wakeup"] = ((after["ready"] - before["ready"])
                                     / max(1, after["wakeups"] - before["wakeups"]))
    return found


def sleepers(session, seconds):
    """The waits of the server's threads, by their kernel stacks, under the closed loop's load."""
    session.fresh_list(seconds)
    pids = session.server.pids()
    sampler = samples.Sampler(lambda: samples.waits(pids), interval=0.2)
    started = session.load.start("sleepers", *session.load.of_list(seconds))
    sampler.start()
    time.sleep(seconds * 0.7)
    meaning = samples.WAITS["d_alloc_parallel"]
    many, stack = samples.fullest_stack(pids, meaning)
    seen = sampler.stop()
    session.load.finish(started)
    names = {name for counts in seen for name in counts}
    mean = {name: sum(c[name] for c in seen) / len(seen) for name in names}
    most = {name: max(c[name] for c in seen) for name in names}
    return {"threads": sum(1 for _ in samples.tasks(pids)), "samples": len(seen), "mean": mean, "most": most,
            "convoy": {"threads": many, "stack": list(stack)}}


def head_of_line(session, seconds, share):
    """One 1 KB file that each server has in memory, requested while the others' requests miss."""
    rate = session.rate_of(share, None)
    session.fresh_list(seconds)
    small = session.rig.content.small_file()
    others = session.load.start("others", *session.load.of_list(seconds, rate))
    found, records = session.load.run("hot", "-r", HOT_RATE, "-d", seconds * 0.9, small,
                                      connections=8, per_connection=0, records=True)
    session.load.finish(others)
    if not records.latencies:
        raise Impossible(f"no request for {small} was answered")
    return {"ms": metrics.latency_summary(records.latencies), "failed": records.failed, "path": small,
            **of_client(found)}


def slow_calls(session, seconds, share):
    """The system calls of some workers that took over a millisecond, by strace."""
    rate = session.rate_of(share, None)
    session.fresh_list(seconds)
    started = session.load.start("traced", *session.load.of_list(seconds + 2, rate))
    time.sleep(0.5)
    found = samples.slow_calls(session.server.pids(), seconds)
    session.load.finish(started)
    return {"calls": found}


STEPS = {step.__name__: step for step in
         (capacity, system_calls, latency, bursts, sleepers, head_of_line, slow_calls)}
