# SPDX-License-Identifier: Apache-2.0
"""Goes through a plan: sets up rigs, starts servers in turn, measures, keeps the results."""

import itertools
import shutil
import sys
import time
import zlib

from lab import Impossible, machine, measure, servers
from lab.metrics import spread
from lab.rigs import RIGS

# The share of the reference's capacity for the load that is the same for every server.
EQUAL_SHARE = 0.5


class Progress:
    """Reports the present step, and how long the rest will take at the pace so far."""

    def __init__(self, total):
        self.total, self.done, self.skipped = total, 0.0, 0.0
        self.began = time.monotonic()

    def say(self, text):
        spent = time.monotonic() - self.began
        worked = self.done - self.skipped
        rest = (self.total - self.done) * (spent / worked if worked > 0 else 1)
        print(f"[{spent:5.0f} s, about {rest:4.0f} s left] {text}", file=sys.stderr, flush=True)

    def add(self, seconds, skipped=False):
        self.done += seconds
        self.skipped += seconds if skipped else 0


class Runner:
    def __init__(self, store, work, rounds):
        self.store, self.work, self.rounds = store, work, rounds
        self.progress = None

    def run(self, plan):
        machine.raise_descriptor_limit()
        self.progress = Progress(sum(one.seconds(self.rounds) for one in plan))
        for experiment in plan:
            if all(self.complete(experiment, key, number) for key in experiment.servers
                   for number in range(self.rounds)):
                self.progress.add(experiment.seconds(self.rounds), skipped=True)
                continue
            try:
                self.experiment(experiment)
            except Impossible as problem:
                self.progress.add(experiment.seconds(self.rounds), skipped=True)
                self.progress.say(f"{experiment.name}: cannot be measured here: {problem}")
                self.premises(experiment, None, str(problem))

    def clean(self):
        """Removes the files of the working directory, without rigs, which remove themselves."""
        for path in (self.work / "servers", *self.work.glob("set-*")):
            shutil.rmtree(path, ignore_errors=True)

    def complete(self, experiment, key, number):
        return all(self.store.has(experiment.name, key, step.name, number) for step in experiment.steps_of(key, number))

    def premises(self, experiment, rig, problem=None):
        """Checks the rig and keeps the result; true if all premises hold."""
        found = [] if problem else rig.check()
        facts = self.store.facts("rigs")
        facts[experiment.name] = {"about": rig.about if rig else "", "impossible": problem,
                                  "connections": experiment.connections, "bytes": experiment.content.bytes(),
                                  "premises": [premise._asdict() for premise in found]}
        self.store.facts("rigs", facts)
        for premise in found:
            if not premise.holds:
                self.progress.say(f"{experiment.name}: does not hold: {premise.what} ({premise.detail})")

    def experiment(self, experiment):
        self.progress.say(f"{experiment.name}: setting up")
        with self.rig_for(experiment) as rig:
            self.premises(experiment, rig)
            for number, key in itertools.product(range(self.rounds), experiment.servers):
                self.session(experiment, rig, key, number)

    def rig_for(self, experiment):
        """Rigs share one copy of the set, except the disk's, whose copy is in its image."""
        options = dict(experiment.rig_options)
        if experiment.rig != "disk":
            options["files"] = self.work / f"set-{experiment.content.directories}"
        return RIGS[experiment.rig](self.work / "rig" / experiment.name, experiment.content,
                                    experiment.connections, **options)

    def session(self, experiment, rig, key, number):
        share = experiment.session_seconds(key, number)
        if self.complete(experiment, key, number):
            self.progress.add(share, skipped=True)
            return
        self.progress.say(f"{experiment.name}: {key}, round {number + 1} of {self.rounds}")
        directory = self.work / "servers"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        place = rig.place(directory)
        server = servers.make(key, place)
        try:
            server.start()
            self.steps(experiment, rig, key, number, place, server)
        except (Impossible, ChildProcessError, TimeoutError) as problem:
            self.store.put((experiment.name, key, "start", number), {"failure": str(problem)})
            self.progress.say(f"{experiment.name}: {key}: {problem}")
        finally:
            server.stop()
        self.progress.add(share)

    def steps(self, experiment, rig, key, number, place, server):
        rig.started()
        self.keep_configuration(key, server)
        seed = zlib.crc32(f"{experiment.name} {key} {number}".encode())
        session = measure.Session(rig, server, place, seed)
        rig.warm(session, experiment.warm_s)
        for step in experiment.steps_of(key, number):
            where = (experiment.name, key, step.name, number)
            if self.store.has(*where) and step.call != "capacity":
                continue
            try:
                found = measure.STEPS[step.call](session, **self.arguments(experiment, step))
            except (Impossible, RuntimeError) as problem:
                found = {"failure": str(problem)}
            self.store.put(where, found | {"at": time.time()})

    def arguments(self, experiment, step):
        if step.options.get("rate") != "reference":
            return step.options
        known = self.store.rounds(experiment.name, experiment.reference, "capacity")
        if not known:
            raise Impossible(f"the capacity of {experiment.reference} is not known")
        middle = spread([each["requests_per_s"] for each in known[:1]]).median
        return {**step.options, "rate": EQUAL_SHARE * middle}

    def keep_configuration(self, key, server):
        texts = self.store.facts("configurations")
        texts[key] = server.configuration()
        self.store.facts("configurations", texts)
