# SPDX-License-Identifier: Apache-2.0
"""Goes through a plan: sets up rigs, starts servers in turn, measures, keeps the results."""

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib

import procs

from lab import BUILD, Impossible, machine, measure, search, servers
from lab.budget import Budget, Unlimited
from lab.metrics import spread
from lab.plan import at_loads
from lab.rigs import RIGS
from lab.rounds import Rounds, fixed

# The share of the reference's capacity for the load that is the same for every server.
EQUAL_SHARE = 0.5
# None of these ends the whole run: rigs, servers, and measurements that fail are kept as such.
FAILURES = (Impossible, OSError, RuntimeError, subprocess.SubprocessError)
# A program of the lab is ended when it takes so many times what was planned; it is given so long to clean up.
PROGRAM_MOST = 2
CLEAN_UP_S = 120


def stop(process):
    """Ends a program that still runs, so that it removes what it made."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.communicate(timeout=CLEAN_UP_S)
    except subprocess.TimeoutExpired:       # its servers have sessions of their own, and would go on without it
        for pid in (process.pid, *procs.descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


class Progress:
    """Reports the present step, and how long the rest will take at the pace so far."""

    def __init__(self, total, most=lambda: math.inf):
        """most: returns the seconds after which it ends in any case."""
        self.total, self.done, self.skipped, self.most = total, 0.0, 0.0, most
        self.began = time.monotonic()

    def say(self, text):
        spent = time.monotonic() - self.began
        worked = self.done - self.skipped
        rest = max(0.0, min(self.most(), (self.total - self.done) * (spent / worked if worked > 0 else 1)))
        print(f"[{spent:5.0f} s, about {rest:4.0f} s left] {text}", file=sys.stderr, flush=True)

    def add(self, seconds, skipped=False):
        self.done += seconds
        self.skipped += seconds if skipped else 0


class Runner:
    """rounds: a number for all, or a Rounds."""

    def __init__(self, store, work, rounds):
        self.store, self.work = store, work
        self.rounds = rounds if isinstance(rounds, Rounds) else fixed(rounds)
        self.progress, self.budget = Progress(0), Unlimited()
        self.later = []             # what the part has behind the present experiment

    def run(self, plan):
        """All experiments, without a limit of time."""
        self.run_some(plan, [])

    def run_some(self, plan, programs):
        machine.raise_descriptor_limit()
        self.progress = Progress(sum(self.planned(one) for one in [*plan, *programs]))
        for experiment in plan:
            self.try_experiment(experiment)
        for program in programs:
            self.program(program)

    def run_parts(self, parts):
        """Each part until it is complete or its time is spent. One that ended before is not begun again."""
        machine.raise_descriptor_limit()
        rest = sum(part.minutes * 60 for part in parts)
        self.progress = Progress(rest, lambda: rest + self.budget.seconds - self.budget.spent())
        for part in parts:
            rest -= part.minutes * 60
            self.budget = Budget(self.store, part.name, part.minutes * 60)
            before = self.progress.done
            if not self.budget.ended():
                self.run_part(part)
            self.progress.done = before + part.minutes * 60
        self.budget = Unlimited()

    def run_part(self, part):
        try:
            every = [*part.experiments, *part.programs]
            for place, one in enumerate(every):
                self.later = every[place + 1:]
                if one in part.experiments:
                    self.try_experiment(one)
                else:
                    self.program(one)
            self.later = []
            self.budget.keep(ended="time" if self.budget.fact().get("left_out") else "complete")
        finally:
            self.budget.keep()
        self.progress.say(f"part {part.name} took {self.budget.spent() / 60:.1f} of {part.minutes:g} minutes")

    def planned(self, one):
        """The seconds that an experiment or a program takes at least."""
        return one.least_seconds(self.rounds)

    def try_experiment(self, experiment):
        if self.is_complete(experiment):
            self.progress.add(self.planned(experiment), skipped=True)
            return
        if not self.budget.fits(experiment.setup_s):
            self.budget.left_out(experiment.name)
            return
        try:
            self.experiment(experiment)
        except FAILURES as problem:
            self.progress.add(self.planned(experiment), skipped=True)
            self.progress.say(f"{experiment.name}: cannot be measured here: {problem}")
            self.premises(experiment, None, str(problem))

    def program(self, program):
        """Its result is its own file; it is complete when there is one."""
        result = self.store.program(program.name)
        if result.exists():
            return
        if not self.budget.fits(program.seconds):
            self.budget.left_out(program.name)
            return
        self.progress.say(program.name)
        result.parent.mkdir(exist_ok=True)
        temporary = result.with_suffix(".new")
        process = subprocess.Popen([str(part) for part in program.command(temporary.resolve())], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env={**os.environ, "FLASHPACHE_BUILD": str(BUILD)})
        try:
            output, _ = process.communicate(timeout=PROGRAM_MOST * program.seconds)
        except subprocess.TimeoutExpired:
            output = f"it took more than {PROGRAM_MOST} times the {program.seconds:g} s that were planned"
        finally:
            stop(process)
        if process.returncode == 0 and temporary.exists():
            os.replace(temporary, result)
            self.store.forget("programs", program.name, "run", 0)
            return
        self.progress.say(f"{program.name}: {output.strip()[-500:]}")
        self.store.put(("programs", program.name, "run", 0), {"failure": output.strip()[-500:]})

    def clean(self):
        """Removes the files of the working directory, without rigs, which remove themselves."""
        for path in (self.work / "servers", *self.work.glob("set-*")):
            shutil.rmtree(path, ignore_errors=True)

    def capacities(self, experiment):
        """{server: {round: requests/s}}"""
        return {key: {number: found["requests_per_s"] for number, found
                      in self.store.by_round(experiment.name, key, "capacity").items()} for key in experiment.servers}

    def wanted(self, experiment, number):
        """The servers of a round. A comparison whose first rounds agree needs no more."""
        rounds = experiment.rounds or self.rounds
        return rounds.wanted(experiment.servers, experiment.others(), self.capacities(experiment), number)

    def is_complete(self, experiment):
        most = (experiment.rounds or self.rounds).most
        return all(self.complete(experiment, key, number) for number in range(most) for key in self.wanted(experiment, number))

    def complete(self, experiment, key, number):
        return not any(True for step in experiment.steps_of(key, number)
                       for _ in self.open_steps(experiment, key, step, number))

    def open_steps(self, experiment, key, step, number):
        """The step, if it has no result; of a profile each load that it lacks, as its curve asks for it."""
        if step.call != "profile":
            if not self.store.has(experiment.name, key, step.name, number):
                yield step
            return
        while True:
            share = search.next_load(step.options["loads"], self.curve(experiment, key, number), step.options["most"])
            if share is None:
                return
            yield at_loads(step.options["seconds"], (share,))[0]

    def curve(self, experiment, key, number):
        """{load: mean latency in ms, or None if none was answered} of a round."""
        found = {}
        for path in (self.store.directory / experiment.name / key).glob(f"latency@*.{number}.json"):
            share = float(path.name.split("@")[1].rsplit(".", 2)[0])
            found[share] = (self.store.get(experiment.name, key, f"latency@{share:g}", number).get("ms") or {}).get("mean")
        return found

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
            for number in range((experiment.rounds or self.rounds).most):
                if not self.round(experiment, rig, number):
                    return

    def reserved(self, experiment, number):
        """The time that a round leaves to what comes later. A first round leaves none, a further one the first rounds of
        that, and one beyond the least number all that it needs at least."""
        if number == 0:
            return 0
        at_least = number >= (experiment.rounds or self.rounds).least
        return sum(self.planned(one) if at_least else one.first_seconds() for one in self.later)

    def round(self, experiment, rig, number):
        """All servers that need it; False if its time is spent. A round that is not the first needs all of its time: a
        half of it has no ratio."""
        wanted = self.wanted(experiment, number)
        needed = experiment.round_seconds(wanted, number) + self.reserved(experiment, number)
        if number and wanted and not self.budget.fits(needed):
            self.budget.left_out(f"{experiment.name}: rounds from {number + 1} on")
            return False
        for key in wanted:
            if number or self.budget.fits(experiment.session_seconds(key, number)):
                self.session(experiment, rig, key, number)
                self.budget.keep()
            else:
                self.budget.left_out(f"{experiment.name}: {key}")
        return True

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
        self.progress.say(f"{experiment.name}: {key}, round {number + 1}")
        directory = self.work / "servers"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        place = rig.place(directory)
        server = servers.make(key, place)
        try:
            server.start()
            self.store.forget(experiment.name, key, "start", number)
            self.steps(experiment, rig, key, number, place, server)
        except FAILURES as problem:
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
            if step.call == "capacity":         # the shares of a session are of its own capacity
                self.measure(experiment, session, key, step, number)
                continue
            for each in self.open_steps(experiment, key, step, number):
                self.measure(experiment, session, key, each, number)

    def measure(self, experiment, session, key, step, number):
        try:
            found = measure.STEPS[step.call](session, **self.arguments(experiment, step))
            session.server.check()
        except FAILURES as problem:
            found = {"failure": str(problem)}
        self.store.put((experiment.name, key, step.name, number), found | {"at": time.time()})

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
