# SPDX-License-Identifier: Apache-2.0
"""Was this response true at some moment? From the history of changes and HTTP alone.

A change's value counts from before the change that made it until after the one that ended it.
"""

import struct
from bisect import bisect_right
from collections import Counter, defaultdict, namedtuple
from itertools import product

import soak_tree as tree

FOREVER = float("inf")
# A client's result. WHOLE: a body true to itself. CUT: the true beginning of a body whose end did not come. NOTHING:
# the connection ended before the header did. ODD: a body of no version.
WHOLE, CUT, NOTHING, ODD = range(4)
KINDS = ("whole", "cut", "nothing", "odd")
TOLD_S = 0.3            # seconds of history in a verdict's explanation
RECORD = struct.Struct("<ddIHBBIIB")
# start, end: time.monotonic(). number: of the path. length: of the body, for CUT as promised.
# fell_back: httpd served it as without Flashpache.
Record = namedtuple("Record", "start end number status kind which version length fell_back", defaults=(False,))
# true: the state of one moment. cut: it ended early because a shorter file was there then. halves: two versions of
# which one was written over the other. link: 403 because a symbolic link was removed between two looks at it. Stock
# has these races too.
# mixed: each part was true at some moment, though all of them at none. spliced: the length of one moment and the
# bytes of another (then zeros, if those are fewer). That is so when a file is looked at, replaced and opened.
# stock: a fallback, and none of these: stock looks and opens at two moments.
# stale, torn, lost: never allowed.
VERDICTS = ("true", "mixed", "spliced", "cut", "halves", "link", "stock", "stale", "torn", "lost")
WRONG = ("stale", "torn", "lost")


class Timeline:
    """The values of one key. The value i held from befores[i] until afters[i + 1]."""

    def __init__(self, value):
        self.befores, self.afters, self.values = [-FOREVER], [-FOREVER], [value]

    def add(self, before, after, value):
        self.befores.append(before)
        self.afters.append(after)
        self.values.append(value)

    def during(self, start, end):
        """[(from, to, value)] of the values between start and end, the latest first."""
        found = []
        until = FOREVER
        last = bisect_right(self.befores, end) - 1
        if last + 1 < len(self.values):
            until = self.afters[last + 1]
        for i in range(last, -1, -1):
            if until < start:
                break
            found.append((self.befores[i], until, self.values[i]))
            until = self.afters[i]
        return found


class Model:
    """Judges records against a history: [(before, after, key, value)] in order."""

    def __init__(self, layout, history, bound_s):
        self.layout, self.bound_s = layout, bound_s
        self.lines = defaultdict(lambda: None)
        for before, after, key, value in history:
            if key not in self.lines:
                self.lines[key] = Timeline(tree.initial(key))
            self.lines[key].add(before, after, tree.File(*value) if key[0] == "file" else value)

    def _during(self, key, start, end):
        line = self.lines.get(key)
        return line.during(start, end) if line else [(-FOREVER, FOREVER, tree.initial(key))]

    def states(self, number, start, end):
        """[(from, to, which, (status, version, length))] of a path's possible states. Where from > to the parts were
        true at different moments only."""
        name = self.layout.name(number)
        found = []
        for top, slot in product(self._during(tree.top_key(name), start, end),
                                 self._during(tree.slot_key(name), start, end)):
            if top[2] or slot[2] == tree.NOWHERE:
                found.append(_joined(start, end, (top, slot), 0, tree.seen(top[2], slot[2], 0, None)))
                continue
            for thing, file in product(self._during(tree.object_key(name, slot[2]), start, end),
                                       self._during(tree.file_key(name, slot[2]), start, end)):
                found.append(_joined(start, end, (top, slot, thing, file), slot[2],
                                     tree.seen(0, slot[2], thing[2], file[2])))
        return found

    def judge(self, record, data=None):
        """One of VERDICTS. data: the body of an ODD one."""
        start, end = record.start - self.bound_s, record.end
        states = self.states(record.number, start, end)
        if record.kind == WHOLE:
            verdict = _judge_whole(record, states)
            return "link" if verdict == "stale" and self._is_link_gone(record, start, end) else verdict
        if record.kind == ODD:
            return self._judge_odd(record, data, states)
        return "cut" if _is_cut(record, states) else "lost"

    def _is_link_gone(self, record, start, end):
        name = self.layout.name(record.number)
        values = {value for _, _, value in self._during(tree.slot_key(name), start, end)}
        return (record.status == 403 and tree.is_link(name.slot) and tree.NOWHERE in values
                and len(values) > 1)

    def _judge_odd(self, record, data, states):
        """Judges a body of no version. It may be made of two versions, or of one and the zeros that a mapping has
        beyond a file's end; else it is torn. httpd itself may have looked at a file that it could not have opened."""
        name = self.layout.name(record.number)
        bodies = {tree.body(tree.identity(name, which), version, length)
                  for _, _, which, (status, version, length) in states if status == 200}
        whole = [body for body in bodies if len(body) == len(data)]
        if any(_is_seam(data, one, other) for one in whole for other in whole):
            return "halves"
        looked_at = whole or record.fell_back and len(data) in self._lengths(name, record)
        return "spliced" if looked_at and data.rstrip(b"\0") in bodies else "torn"

    def _lengths(self, name, record):
        return {file.length for which in range(2)
                for _, _, file in self._during(tree.file_key(name, which), record.start - self.bound_s, record.end)}

    def judge_file(self, path, odd):
        """Counter of the verdicts on a file of packed records, and a few that are wrong.
        odd: {(start, number): body}"""
        counts, examples = Counter(), []
        with open(path, "rb") as file:
            while chunk := file.read(RECORD.size * 4096):
                for fields in RECORD.iter_unpack(chunk):
                    record = Record(*fields)
                    verdict = self.judge(record, odd.get((record.start, record.number)))
                    if record.fell_back and verdict in ("spliced", "stale"):
                        verdict = "stock"
                    counts[verdict] += 1
                    counts[record.status] += 1
                    if verdict in WRONG + ("mixed", "spliced") and len(examples) < 10:
                        examples.append(self.told(record, verdict))
        return counts, examples

    def told(self, record, verdict):
        """A verdict with the response and the true states, in milliseconds from the request's start."""
        at, name = record.start, self.layout.name(record.number)
        since = at - self.bound_s - TOLD_S
        lines = [f"{verdict}: {self.layout.path(record.number)} at {at:.4f} took {(record.end - at) * 1000:.1f} ms: "
                 f"{record.status} {KINDS[record.kind]} {tree.OBJECTS[record.which]} version {record.version} "
                 f"length {record.length}{', by stock' if record.fell_back else ''}; before it"]
        keys = [tree.top_key(name), tree.slot_key(name)]
        keys += [make(name, which) for which in range(2) for make in (tree.object_key, tree.file_key)]
        for key in keys:
            held = [f"{value if key[0] != 'file' else tuple(value)} until {(until - at) * 1000:.1f}"
                    for _, until, value in reversed(self._during(key, since, record.end))]
            lines.append(f"{key}: {', '.join(held)}")
        return "\n    ".join(lines)


def _joined(start, end, parts, which, state):
    return (max(start, *(p[0] for p in parts)), min(end, *(p[1] for p in parts)), which, state)


def _judge_whole(record, states):
    observed = record.status, record.version, record.length
    same = [s for s in states if s[3] == observed and (record.status != 200 or s[2] == record.which)]
    if any(a <= b for a, b, _, _ in same):
        return "true"
    if same:
        return "mixed"
    return "spliced" if record.status == 200 and _is_spliced(record, states) else "stale"


def _is_spliced(record, states):
    """True if the version was there, longer, and if something had that length."""
    lengths = {state[2] for _, _, _, state in states if state[0] == 200}
    return record.length in lengths and any(
        which == record.which and state[:2] == (200, record.version) and state[2] > record.length
        for _, _, which, state in states)


def _is_cut(record, states):
    """True if something had the promised length (or any, if none was promised), and if something shorter was there at
    the same time or later."""
    there = [(a, state[2]) for a, _, _, state in states if state[0] == 200]
    return any(later >= at and shorter < length for at, length in there for later, shorter in there
               if record.kind == NOTHING or length == record.length)


def _is_seam(data, one, other):
    begins = next((i for i, (x, y) in enumerate(zip(data, one)) if x != y), len(data))
    return data[begins:] == other[begins:]
