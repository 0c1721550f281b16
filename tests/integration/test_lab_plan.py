# SPDX-License-Identifier: Apache-2.0
"""The lab's plan: it ends in time, it can be stopped and taken up, and it measures more only where that says more."""

import contextlib
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

import procs
from conftest import REPO
from waiting import wait_for

sys.path.insert(0, str(REPO / "tests" / "lab"))

from lab import catalog, measure, parts, plan, runner, search, servers  # noqa: E402
from lab.budget import Budget  # noqa: E402
from lab.load import Content  # noqa: E402
from lab.rigs import RIGS  # noqa: E402
from lab.rounds import Rounds, counterpart, fixed  # noqa: E402
from lab.store import Store  # noqa: E402

STOCK, FLASH = "stock-prefork-None", "flash-prefork-None"


# The search for a curve's knee

def searched(curve, most=plan.MOST_LOADS):
    measured = {}
    while (load := search.next_load(plan.FINE_LOADS, measured, most)) is not None:
        assert load not in measured and load in plan.FINE_LOADS
        measured[load] = curve(load)
    return measured


def test_a_flat_curve_needs_its_ends_alone():
    found = searched(lambda load: 10 + load)
    assert sorted(found) == [0.2, 0.95] and search.knee(found) is None


def test_loads_gather_where_the_curve_bends():
    found = searched(lambda load: 1 if load < 0.85 else 100 * load)
    assert {0.8, 0.85} <= set(found) and len(found) <= plan.MOST_LOADS
    assert search.knee(found) == 0.85


def test_a_load_without_answers_is_not_asked_for_again():
    assert len(searched(lambda load: None)) == 2
    found = searched(lambda load: None if load == 0.6 else 10 ** (3 * load))
    assert len(found) <= plan.MOST_LOADS


def test_a_curve_that_climbs_everywhere_ends_with_the_most():
    assert len(searched(lambda load: 10 ** (5 * load), most=4)) == 4


# Rounds

OTHER = {STOCK: STOCK, FLASH: STOCK, "nginx-1": STOCK}


def rates(*values):
    return dict(enumerate(values))


def test_rounds_end_when_ratios_agree():
    capacities = {STOCK: rates(100, 200, 50), FLASH: rates(200, 404, 99), "nginx-1": rates(300, 900, 150)}
    rounds = Rounds(3, 5)
    assert rounds.wanted(list(OTHER), OTHER, capacities, 2) == list(OTHER)
    # Flashpache's ratio is 2 in each round, however the machine went. nginx's is not, and needs its other side.
    assert rounds.wanted(list(OTHER), OTHER, capacities, 3) == [STOCK, "nginx-1"]
    assert rounds.wanted(list(OTHER), OTHER, capacities, 5) == []


def test_a_round_is_judged_by_those_before_it():
    capacities = {STOCK: rates(100, 100, 100, 100), FLASH: rates(100, 101, 102, 900)}
    assert Rounds(3, 5).wanted([STOCK, FLASH], OTHER, capacities, 3) == []


@pytest.mark.parametrize("capacities", ({}, {STOCK: rates(1)}, {FLASH: rates(1, 2, 3)}))
def test_a_server_that_cannot_be_measured_asks_for_no_further_round(capacities):
    assert Rounds(3, 5).wanted([STOCK, FLASH], OTHER, capacities, 3) == []


@pytest.mark.parametrize("key, names, reference, other", [
    (FLASH, [STOCK, FLASH], None, STOCK), ("nginx-1", ["nginx-1", STOCK], None, STOCK),
    ("arch-sped", ["arch-sped", "arch-mp"], "arch-mp", "arch-mp"), (STOCK, [STOCK, FLASH], None, STOCK),
    ("flash-event-All", ["flash-event-All", STOCK], STOCK, STOCK)])
def test_the_other_side_of_a_ratio(key, names, reference, other):
    assert counterpart(key, names, reference) == other


# The whole plan

def test_all_parts_end_within_seventy_five_minutes():
    whole = parts.full()
    assert sum(part.minutes for part in whole) <= 75
    for part in whole:
        least, _ = part.seconds(Rounds())
        assert least <= part.minutes * 60, f"{part.name} cannot be done in its time: {least / 60:.1f} minutes"
    assert parts.quick_part().seconds(fixed(3))[1] <= 600


def test_slow_names_have_a_curve():
    """Its plot is one of those that are shown first."""
    slowfs = next(one for part in parts.full() for one in part.experiments if one.name == "slowfs")
    assert len({step.options["share"] for step in slowfs.steps if step.name.startswith("latency@")}) >= 4


def test_each_rig_has_a_row_of_each_architecture():
    experiments = [one for part in parts.full() for one in part.experiments]
    for rig in {one.rig for one in experiments}:
        assert any(set(parts.EACH_ARCH) <= set(one.servers) for one in experiments if one.rig == rig), rig
    wanted = {kind.options["arch"] for kind in servers.arch_kinds().values()}
    assert wanted == {servers.arch_kinds()[key].options["arch"] for key in parts.EACH_ARCH}


def test_parts_name_what_exists():
    names = [one.name for part in parts.full() for one in [*part.experiments, *part.programs]]
    assert len(names) == len(set(names))
    for one in (one for part in parts.full() for one in part.experiments):
        assert one.rig in RIGS and set(one.servers) <= set(servers.kinds())
        assert one.reference is None or one.reference in one.servers
        assert all(step.call in (*measure.STEPS, "profile") for step in one.steps)
        assert not any(step.options.get("rate") for step in one.steps) or one.reference


@pytest.mark.parametrize("name", sorted({program.script for part in parts.full() for program in part.programs}))
def test_programs_understand_their_options(name):
    programs = [one for part in parts.full() for one in part.programs if one.script == name]
    for program in programs:
        done = subprocess.run([*map(str, program.command("/nowhere")), "--help"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", catalog.measurable())
def test_each_figure_of_a_paper_can_be_measured_alone(name):
    entry = catalog.find(name)
    experiments = catalog.experiments_for(entry, [one for part in parts.full() for one in part.experiments])
    programs = catalog.programs_for(entry, parts.full())
    assert {one.name for one in experiments} == set(entry.needs)
    assert {one.name: one.servers for one in experiments} == {
        name: [key for key in one.servers if key in entry.needs[name]] for one in experiments for name in [one.name]}
    assert all(set(entry.needs[one.name]) == set(one.servers) for one in experiments)
    assert {one.name for one in programs} == set(entry.programs) and (experiments or programs)
    seconds = sum(one.seconds(1) for one in experiments) + sum(one.seconds for one in programs)
    assert seconds <= 600, f"{name} takes {seconds / 60:.1f} minutes"


def test_plan_is_printed_without_measuring():
    done = subprocess.run([REPO / "tests/lab/run", "--plan"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [*parts.PARTS, "all"]


def test_the_page_has_the_times_of_the_plan():
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", (REPO / "docs/lab.md").read_text(), re.M)
    assert dict(rows) == {part.name: f"{part.minutes:g}" for part in parts.full()}


# Runs, without servers

class Clock:
    """Moves on by what each session is planned to take."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class FakeRig:
    about = "nothing"
    connections = 1

    def check(self):
        return []

    def place(self, directory):
        return directory

    def started(self):
        pass

    def warm(self, session, seconds):
        pass


class FakeServer:
    def start(self):
        pass

    def stop(self):
        pass

    def configuration(self):
        return ""


class FakeRunner(runner.Runner):
    """Measures nothing: capacities and latencies are functions of server and round, and time goes as it was planned."""

    def __init__(self, store, work, rounds, clock, capacity, curve=lambda load: 1.0):
        super().__init__(store, work, rounds)
        self.clock, self.capacity, self.curve_of, self.sessions = clock, capacity, curve, []

    @contextlib.contextmanager
    def rig_for(self, experiment):
        self.clock.now += experiment.setup_s
        yield FakeRig()

    def session(self, experiment, rig, key, number):
        if not self.complete(experiment, key, number):
            self.sessions.append((experiment.name, key, number))
            self.clock.now += experiment.session_seconds(key, number)
        super().session(experiment, rig, key, number)

    def measure(self, experiment, session, key, step, number):
        if step.call == "capacity":
            found = {"requests_per_s": self.capacity(key, number)}
        else:
            found = {"ms": {"mean": self.curve_of(step.options["share"])}}
        self.store.put((experiment.name, key, step.name, number), found)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """make(capacity, ...) returns a runner over one store, with a clock of its own."""
    clock = Clock()
    monkeypatch.setattr(runner.servers, "make", lambda key, place: FakeServer())
    monkeypatch.setattr(runner, "Budget", lambda store, part, seconds: Budget(store, part, seconds, clock))
    monkeypatch.setattr(runner.measure, "Session", lambda *_: None)
    monkeypatch.setattr(runner.machine, "raise_descriptor_limit", lambda: None)

    def make(capacity=lambda key, number: 100.0, rounds=Rounds(), **more):
        return FakeRunner(Store(tmp_path / "results"), tmp_path, rounds, clock, capacity, **more)
    return make


def experiment(name="disk", keys=(STOCK, FLASH), steps=None, **more):
    return plan.Experiment(name, "memory", Content(1), list(keys), steps or [plan.step("capacity", 1)], 1, **more)


def test_a_run_goes_on_where_it_was(lab):
    part = parts.Part("one", 10, "", [experiment()])
    first = lab(rounds=fixed(2))
    first.session, taken = stop_after(first, 3)
    with pytest.raises(KeyboardInterrupt):
        first.run_parts([part])
    second = lab(rounds=fixed(2))
    second.run_parts([part])
    assert len(taken) == 3 and second.sessions == [("disk", FLASH, 1)]
    fact = second.store.facts("parts")["one"]
    assert fact["ended"] == "complete" and fact["spent_s"] > 4 * part.experiments[0].session_seconds(STOCK, 1)
    third = lab(rounds=fixed(2))
    third.run_parts([part])
    assert third.sessions == []


def stop_after(one, count):
    session, taken = one.session, []

    def limited(*arguments):
        if len(taken) == count:
            raise KeyboardInterrupt
        taken.append(arguments)
        session(*arguments)
    return limited, taken


def test_a_server_that_ended_is_no_result(tmp_path, monkeypatch):
    """httpd goes on without its daemon: that would be another server's capacity."""
    monkeypatch.setitem(runner.measure.STEPS, "capacity", lambda session, **_: {"requests_per_s": 1.0})
    one = runner.Runner(Store(tmp_path), tmp_path, fixed(1))
    with subprocess.Popen(["sleep", "60"]) as process:
        session = SimpleNamespace(server=SimpleNamespace(check=lambda: servers.check_runs(process, "flashpached")))
        one.measure(experiment(), session, FLASH, plan.step("capacity", 1), 0)
        assert one.store.rounds("disk", FLASH, "capacity")
        process.kill()
        process.wait()
        one.measure(experiment(), session, FLASH, plan.step("capacity", 1), 0)
    assert [text for *_, text in one.store.failures()] == [
        "flashpached ended while it was measured, by -9 (the kernel's log says whether memory was short)"]


def test_rounds_are_as_many_as_the_ratio_needs(lab):
    steady = lab(capacity=lambda key, number: 100.0 * (number + 1))
    steady.run([experiment("steady")])
    assert len(steady.sessions) == 2 * 3
    rough = lab(capacity=lambda key, number: 100.0 * (1 + (key == FLASH) * number))
    rough.run([experiment("rough")])
    assert len(rough.sessions) == 2 * 5


def test_a_profile_measures_where_the_curve_bends(lab):
    steps = [plan.step("capacity", 1), plan.profile(1)]
    bent = lab(rounds=fixed(2), curve=lambda load: 1.0 if load < 0.8 else 50.0)
    bent.run([experiment("bent", [STOCK], steps)])
    loads = sorted(bent.curve(experiment("bent"), STOCK, 0))
    assert {0.2, 0.7, 0.8, 0.95} <= set(loads) and bent.curve(experiment("bent"), STOCK, 1) == {}
    again = lab(rounds=fixed(2), curve=lambda load: 1.0 if load < 0.8 else 50.0)
    again.run([experiment("bent", [STOCK], steps)])
    assert again.sessions == []


def test_a_part_ends_with_its_time_and_says_what_it_left_out(lab):
    """The first round goes on by servers; a later one is measured whole, or not at all."""
    one = experiment(keys=[STOCK, FLASH, "nginx-1"])
    each = one.session_seconds(STOCK, 0)
    short = lab()
    short.run_parts([parts.Part("short", (2.2 + 2.5 * each + 5) / 60, "", [one])])
    fact = short.store.facts("parts")["short"]
    assert [key for _, key, _ in short.sessions] == [STOCK, FLASH]
    assert fact["ended"] == "time" and fact["left_out"] == ["disk: nginx-1", "disk: rounds from 2 on"]
    other = lab()
    other.run_parts([parts.Part("other", (2.2 + 5 * each + 5) / 60, "", [experiment("other", [STOCK, FLASH, "nginx-1"])])])
    assert [number for _, _, number in other.sessions] == [0, 0, 0]
    assert other.store.facts("parts")["other"]["left_out"] == ["other: rounds from 2 on"]


def test_a_rough_comparison_leaves_time_to_those_behind_it(lab):
    """Rounds beyond the least number are for time that nothing else of the part needs."""
    rough, later = experiment("rough"), experiment("later", ["nginx-1"])
    one = lab(capacity=lambda key, number: 100.0 * (1 + (key == FLASH) * number))
    one.run_parts([parts.Part("two", (rough.seconds(4) + later.seconds(3)) / 60 + 0.1, "", [rough, later])])
    assert [number for name, _, number in one.sessions if name == "rough"] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [number for name, _, number in one.sessions if name == "later"] == [0, 1, 2]
    assert one.store.facts("parts")["two"]["left_out"] == ["rough: rounds from 5 on"]


def test_a_rig_that_cannot_be_had_costs_nothing_else(lab, monkeypatch):
    one = lab()
    rig_for = one.rig_for

    def lacking(this):
        if this.name == "lacking":
            raise runner.Impossible("sshfs is not installed (package sshfs)")
        return rig_for(this)
    monkeypatch.setattr(one, "rig_for", lacking)
    one.run_parts([parts.Part("both", 10, "", [experiment("lacking"), experiment("had")])])
    assert {name for name, _, _ in one.sessions} == {"had"}
    assert "sshfs" in one.store.facts("rigs")["lacking"]["impossible"]


@pytest.mark.parametrize("problem", (subprocess.CalledProcessError(3, "flashpachectl"), TimeoutError("waited 30 s"),
                                     RuntimeError("flashpache-bench: no address")))
def test_a_measurement_that_fails_does_not_end_the_run(lab, monkeypatch, problem):
    """The daemon may be too slow to answer flashpachectl beside its load."""
    one = lab(rounds=fixed(1))

    def failing(*_, **__):
        raise problem
    monkeypatch.setitem(runner.measure.STEPS, "capacity", failing)
    monkeypatch.setattr(one, "measure", runner.Runner.measure.__get__(one))
    one.run_parts([parts.Part("one", 10, "", [experiment()])])
    assert [(key, step) for _, key, step, _ in one.store.failures()] == [(FLASH, "capacity"), (STOCK, "capacity")]
    assert one.store.facts("parts")["one"]["ended"] == "complete"


# Programs of a part

class Script(parts.Program):
    """A program whose text is given, with the place of its result as its argument."""

    def command(self, result):
        return [sys.executable, "-c", self.script, result]


WRITES = "import sys; open(sys.argv[1], 'x').write('{\"results\": []}')"


def test_a_program_is_run_once(lab):
    program = Script("writes", WRITES, (), 10)
    part = parts.Part("programs", 10, "", [], [program])
    lab().run_parts([part])
    one = lab()
    path = one.store.program("writes")
    before = path.stat().st_mtime_ns
    one.program(program)
    assert path.stat().st_mtime_ns == before and list(one.store.failures()) == []


STAYS = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open(sys.argv[1] + ".pid", "x").write(str(child.pid))
child.wait()
"""


def test_a_program_that_does_not_end_leaves_no_process(lab, monkeypatch):
    monkeypatch.setattr(runner, "CLEAN_UP_S", 0.1)
    one = lab()
    one.program(Script("stays", STAYS, (), 2))
    pid = int((one.store.program("stays").parent / "stays.new.pid").read_text())
    wait_for(lambda: procs.state(pid) in (None, "Z"), f"process {pid} to end")
    assert [name for _, name, _, _ in one.store.failures()] == ["stays"]


@pytest.mark.parametrize("text, seconds, why", [
    ("import sys; sys.exit('srpt.py: needs root')", 10, "needs root"),
    ("import time; time.sleep(600)", 0.1, "more than 2 times")])
def test_a_program_that_fails_is_named(lab, text, seconds, why):
    one = lab()
    one.program(Script("fails", text, (), seconds))
    (_, name, _, said), = one.store.failures()
    assert name == "fails" and why in said and not one.store.program("fails").exists()
    one.program(Script("fails", WRITES, (), 10))
    assert list(one.store.failures()) == []
