# SPDX-License-Identifier: Apache-2.0
"""Results over all rounds: the experiments, servers and loads, medians and ranges."""

from lab.metrics import spread
from lab.servers import kinds

STAMPED = ("processor", "memory", "system", "Apache", "nginx", "lighttpd", "command")


class Findings:
    def __init__(self, store):
        self.store = store
        self.rigs = store.facts("rigs")

    def stamp(self):
        """Machine, kernel, versions and command, in a line for each figure."""
        facts = self.store.facts("machine")
        return "; ".join(str(facts[name]) for name in STAMPED if facts.get(name))

    def experiments(self):
        """Names in the order in which they were measured."""
        return list(self.rigs)

    def servers(self, experiment):
        """Those that have results, in the order of the table of servers."""
        folder = self.store.directory / experiment
        return [key for key in kinds() if (folder / key).is_dir()]

    def rounds(self, experiment, server, step):
        return self.store.rounds(experiment, server, step)

    def values(self, experiment, server, step, *path):
        """One number of each round: values("disk", key, "latency@0.95", "ms", "p90")."""
        found = []
        for each in self.rounds(experiment, server, step):
            for name in path:
                each = each.get(name) if each is not None else None
            if each is not None:
                found.append(each)
        return found

    def spread(self, *where):
        """Median and range over the rounds, or None if nothing was measured."""
        values = self.values(*where)
        return spread(values) if values else None

    def middle(self, experiment, server, step, *path):
        """The round whose value at the path is the median's (or just above it): all of it."""
        rounds = [r for r in self.rounds(experiment, server, step) if follow(r, path) is not None]
        ordered = sorted(rounds, key=lambda r: follow(r, path))
        return ordered[len(ordered) // 2] if ordered else None

    def loads(self, experiment):
        """The shares of capacity at which latencies were measured."""
        folder = self.store.directory / experiment
        names = {path.name.rsplit(".", 2)[0] for path in folder.glob("*/latency@*.json")}
        return sorted(float(name.split("@")[1]) for name in names)

    def has(self, experiment, step):
        return any((self.store.directory / experiment).glob(f"*/{step}.*.json"))

    def rows(self):
        """Every single number: (experiment, server, step, round, what, value), for CSV."""
        for experiment in self.experiments():
            for path in sorted((self.store.directory / experiment).glob("*/*.json")):
                step, number, _ = path.name.rsplit(".", 2)
                value = self.store.get(experiment, path.parent.name, step, number)
                for what, each in flat(value):
                    yield experiment, path.parent.name, step, number, what, each


def follow(value, path):
    for name in path:
        value = value.get(name) if value is not None else None
    return value


def flat(value, before=""):
    """(dotted name, number or text) of all values outside of lists."""
    for name, each in value.items():
        if isinstance(each, dict):
            yield from flat(each, f"{before}{name}.")
        elif not isinstance(each, list) and each is not None:
            yield before + name, each
