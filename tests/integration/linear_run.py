# SPDX-License-Identifier: Apache-2.0
"""Writers that ask at once: after a change the next request must show it.

A writer is a process. It makes the changes of all kinds (linear_kinds) in an order of its own. After each, without
a pause, it asks on one of its connections and compares with the one correct answer. Before some changes it asks
until the answer is a lease's. During others requests are under way: their answers may be old or new, but must
leave nothing old behind.
"""

import marshal
import multiprocessing
import random
import time
from collections import Counter, namedtuple
from email.utils import formatdate

from linear_kinds import KINDS, Spot
from quick import Quick, field, note

CONNECTIONS = 3
EXAMPLES = 3                # of each kind and writer
QUIET, WARM, BUSY = range(3)
WARM_REQUESTS = 2
ENDS_S = 3600               # seconds; a longer run hangs: a million tries take less
# Abilities that a file system may lack; elsewhere a failure of these kinds is an error.
MAY_BE_MISSING = ("list_of_a_parent", "list_of_the_file", "linked_in_without_a_name_before", "copied_into",
                  "directories_exchanged", "written_through_a_mapping", "written_through_a_mapping_that_stays",
                  "written_asynchronously", "written_asynchronously_while_it_stays_open")

# A writer's place: a directory and its URL. prefix: of names, where it shares the directory; else each
# kind has a directory of its own.
Place = namedtuple("Place", "directory url prefix")
# tries, wrong: Counters by kind. notes: of the answers after changes; warm: of those before, each to a repeated
# question. missing: kinds that cannot run, and the reasons.
Result = namedtuple("Result", "tries wrong notes warm missing examples seconds")


def is_right(reply, want):
    if isinstance(want, int):
        return reply.status == want
    body, modified = want if isinstance(want, tuple) else (want, None)
    return (reply.status == 200 and reply.body == body
            and (modified is None or field(reply, "Last-Modified") == formatdate(modified, usegmt=True)))


def told(reply):
    return f"{reply.status} {reply.body[:24]!r} ({len(reply.body)}) {field(reply, 'Last-Modified')}"


class UnderWay:
    """One kind under way: its last change, and the expected answers."""

    def __init__(self, name, steps, place):
        self.name = name
        directory = place.directory if place.prefix else place.directory / name
        directory.mkdir(exist_ok=True)
        url = place.url if place.prefix else f"{place.url}/{name}"
        self.steps = steps(Spot(directory, url, f"{place.prefix}{name}-" if place.prefix else ""))
        self.before = {}
        self.what, self.wants = next(self.steps)

    def change(self):
        """Makes the next change before it returns."""
        self.before = self.wants
        self.what, self.wants = next(self.steps)


class Writer:
    """Changes and asks."""

    def __init__(self, port, place, seed, kinds):
        self.random = random.Random(seed)
        self.connections = [Quick(port) for _ in range(CONNECTIONS)]
        self.kinds, self.missing = [], {}
        for name, steps in kinds.items():
            try:
                self.kinds.append(UnderWay(name, steps, place))
            except OSError as problem:
                self.missing[name] = str(problem)
        self.tries, self.wrong, self.notes, self.warm = Counter(), Counter(), Counter(), Counter()
        self.examples = []

    def run(self, count):
        """So many tries, of each kind the same number."""
        while self.tries.total() < count:
            self.random.shuffle(self.kinds)
            for kind in self.kinds:
                self.step(kind)

    def step(self, kind):
        """One change, with or without leases, with or without requests under way."""
        asks, *others = self.random.sample(self.connections, CONNECTIONS)
        how = self.random.randrange(3)
        paths = list(kind.wants)
        if how != QUIET:
            self._warm(asks, paths)
        sent = self._send(others, paths[0]) if how == BUSY else []
        kind.change()
        changed = time.perf_counter()
        self._check(asks, kind, changed)
        if how == BUSY:
            self._drain(sent)
            self._check(self.random.choice(others), kind, changed)

    def _warm(self, connection, paths):
        for path in paths * (WARM_REQUESTS - 1):
            connection.ask(path)
        for path in paths:
            self.warm[note(connection.ask(path))] += 1

    def _send(self, connections, path):
        for connection in connections:
            connection.send(path)
        return connections

    def _drain(self, connections):
        for connection in connections:
            try:
                connection.read()
            except ConnectionError:     # the file shrank while it was sent
                connection.again()

    def _check(self, connection, kind, changed):
        for path, want in kind.wants.items():
            asked = time.perf_counter()
            reply = connection.ask(path)
            ended = time.perf_counter()
            self.tries[kind.name] += 1
            self.notes[note(reply)] += 1
            if not is_right(reply, want):
                self._is_wrong(kind, path, reply, asked - changed, ended - changed)

    def _is_wrong(self, kind, path, reply, asked_s, ended_s):
        self.wrong[kind.name] += 1
        if self.wrong[kind.name] > EXAMPLES:
            return
        before = kind.before.get(path)
        which = "the answer of before" if before is not None and is_right(reply, before) else "neither old nor new"
        self.examples.append(f"{kind.name}: after {kind.what}, asked {asked_s * 1e6:.0f} us later, ended at "
                             f"{ended_s * 1e6:.0f} us: {path} gave {told(reply)}, note {note(reply)}: {which}; "
                             f"to come was {str(kind.wants[path])[:60]}")

    def close(self):
        for kind in self.kinds:
            kind.steps.close()      # some have mounted something

    def result(self, seconds):
        return Result(dict(self.tries), dict(self.wrong), dict(self.notes), dict(self.warm), self.missing,
                      self.examples, seconds)


def _work(port, place, seed, count, kinds, file):
    begin = time.monotonic()
    writer = Writer(port, place, seed, kinds)
    try:
        writer.run(count)
    finally:
        writer.close()
    file.write_bytes(marshal.dumps(tuple(writer.result(time.monotonic() - begin))))


def run(port, places, count, directory, kinds=None):
    """All writers at once, `count` tries in all: their joined result."""
    kinds = kinds or KINDS
    context = multiprocessing.get_context("fork")
    files = [directory / f"writer-{number}" for number in range(len(places))]
    jobs = [context.Process(target=_work, args=(port, place, number, count // len(places), kinds, file))
            for number, (place, file) in enumerate(zip(places, files))]
    for job in jobs:
        job.start()
    try:
        end = time.monotonic() + ENDS_S
        for job in jobs:
            job.join(max(0, end - time.monotonic()))
            assert not job.is_alive(), "a writer does not end"
    finally:
        for job in jobs:
            job.kill()
            job.join()
    return together([Result(*marshal.loads(file.read_bytes())) for file in files])


def together(results):
    sums = [sum((Counter(each[i]) for each in results), Counter()) for i in range(4)]
    missing = {name: why for each in results for name, why in each.missing.items()}
    examples = [line for each in results for line in each.examples]
    return Result(*sums, missing, examples, max(each.seconds for each in results))


def shares(notes):
    return ", ".join(f"{name or 'none'} {100 * n / notes.total():.1f} %" for name, n in notes.most_common())


def table(name, result):
    """For printing: kinds with their tries and stale answers, and the sources of answers."""
    tries, wrong = result.tries.total(), result.wrong.total()
    print(f"\n{name}: {tries} tries in {result.seconds:.1f} s ({tries / result.seconds:.0f}/s), {wrong} wrong\n"
          f"  after changes: {shares(result.notes)}; asked again without one: {shares(result.warm)}")
    for kind in result.tries:
        if result.wrong[kind]:
            print(f"  {kind:42} {result.wrong[kind]:7} of {result.tries[kind]:7} "
                  f"({100 * result.wrong[kind] / result.tries[kind]:.1f} %)")
    for kind, why in result.missing.items():
        print(f"  {kind:42} not there: {why}")
