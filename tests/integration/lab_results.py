# SPDX-License-Identifier: Apache-2.0
"""Results of the lab as a run would leave them, made up: for tests of its report."""

import json

from lab import metrics

LOADS = (0.2, 0.6, 0.8, 0.95)
SIZES = [100 * (i + 1) for i in range(200)]
WAIT = "another's lookup (d_alloc_parallel)"
SRPT = {"FAIR": (80.0, 40.0), "SRPT": (10.0, 4.0)}


def latency(mean, share):
    latencies = [mean * (1 + i / 100) for i in range(200)]
    return {"rate": 10.0, "share": share, "failed": 0, "ms": metrics.latency_summary(latencies), "cdf": metrics.cdf(latencies),
            "inversion": 0.5, "deciles": metrics.deciles(SIZES, latencies), "at": 1.0}


def put_server(store, experiment, key, rate, mean, rounds=3):
    """Capacities, latencies at four loads, and the steps that are taken once."""
    for number in range(rounds):
        store.put((experiment, key, "capacity", number), {
            "requests_per_s": rate * (1 + number / 100), "mbit_per_s": rate / 10, "cpu_us": 100.0, "memory_mib": 20.0,
            "errors": 0, "requests": 1000, "at": float(number),
            **({"ready_events": metrics.ready_events({}, {1: 30, 2: 60, 600: 10})} if key.startswith("arch-") else {})})
        for load in LOADS:
            store.put((experiment, key, f"latency@{load:g}", number), latency(mean * (1 + load), load))
    store.put((experiment, key, "bursts", 0), {"threads": 100, "samples": 4, "runnable": [0, 5, 20, 90]})
    store.put((experiment, key, "sleepers", 0), {"threads": 100, "samples": 4, "mean": {WAIT: mean / 2}, "most": {WAIT: mean}})
    store.put((experiment, key, "system_calls", 0), {"calls": 8.0})


def put_experiment(store, experiment, servers):
    """servers: {key: (requests/s, mean ms)}"""
    facts = store.facts("rigs")
    facts[experiment] = {"about": f"the rig of {experiment}", "impossible": None, "connections": 64,
                         "bytes": (1 << 20) * (len(facts) + 1), "premises": [{"what": "a premise", "holds": True, "detail": "seen"}]}
    store.facts("rigs", facts)
    for key, (rate, mean) in servers.items():
        put_server(store, experiment, key, rate, mean)


def summary(median):
    return {"median": median, "min": median * 0.9, "max": median * 1.1}


def put_program(store, name, result):
    path = store.program(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result))


def put_hit(store, name="hit"):
    """tests/lab/hit_cost.py's."""
    def row(cpu):
        return {"cell": "event/All/5000/1", "rate": summary(1e6 / cpu), "cpu_us": summary(cpu),
                "of_stock": {"rate": summary(80 / cpu), "cpu_us": summary(cpu / 80)}}
    put_program(store, name, [{"stock": row(80.0), "message": row(70.0), "lease": row(40.0)}])


def put_growth(store, name):
    """tests/lab/growth.py's, of the part that the name of the program has."""
    costs = {"stock_cpu_us": summary(80.0), "cpu_us": summary(40.0), "of_stock": summary(0.5)}
    put_program(store, name, {
        "workers": {"workers": [{"workers": 1024, **costs}]},
        "paths": {"paths": [{"kind": "absent", "paths": 100_000, "law": "zipf", "bytes_each": 312.4, "shared_each": 96.0, **costs}]}
    }[name.split("-")[1]])


def put_srpt(store, name, loads=(0.7, 0.8, 0.9)):
    runs = [{"load": load, "megabits": 10, **{policy: {
        "mean_ms": mean * load, "slowdown": slowdown, "group_ms": {"largest 1 %": mean},
        "percentile_ms": [(5, mean), (100, 2 * mean)]}
        for policy, (mean, slowdown) in SRPT.items()}} for load in loads]
    put_program(store, name, {"results": runs})
