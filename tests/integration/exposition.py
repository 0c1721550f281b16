# SPDX-License-Identifier: Apache-2.0
"""A strict reader of Prometheus' text exposition format 0.0.4: anything outside the format is an error."""

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}
HELP = re.compile(rf"# HELP ({NAME}) ((?:[^\\\n]|\\\\|\\n)*)")
TYPE = re.compile(rf"# TYPE ({NAME}) (\w+)")
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^\\"\n]|\\\\|\\"|\\n)*)"(,|$)')
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def unescaped(text):
    return re.sub(r'\\[\\"n]', lambda found: ESCAPES[found.group()], text)


def labels(text, line):
    made, at = {}, 0
    while text and at < len(text):
        found = LABEL.match(text, at)
        assert found, f"labels of {line!r}"
        assert found[1] not in made, f"a label twice: {line!r}"
        made[found[1]] = unescaped(found[2])
        at = found.end()
    return made


class _Reader:
    def __init__(self):
        self.types, self.helps, self.samples, self.family = {}, {}, {}, None

    def comment(self, line):
        for pattern, known in ((HELP, self.helps), (TYPE, self.types)):
            found = pattern.fullmatch(line)
            if not found:
                continue
            name = found[1]
            assert name not in known, f"twice: {line!r}"
            assert self.family == name or not (name in self.types or name in self.helps), line
            known[name] = found[2]
            self.family = name
            return
        raise AssertionError(f"neither HELP nor TYPE: {line!r}")

    def sample(self, line):
        found = SAMPLE.fullmatch(line)
        assert found, f"no sample: {line!r}"
        name, kind = found[1], self.types.get(self.family)
        assert kind in TYPES, f"outside of its group: {line!r}"
        of_family = [self.family + part for part in ("_bucket", "_sum", "_count")] if kind == "histogram" else [self.family]
        assert name in of_family, f"outside of its group: {line!r}"
        assert kind != "counter" or name.endswith("_total"), line
        key = (name, frozenset(labels(found[2], line).items()))
        assert key not in self.samples, f"twice: {line!r}"
        self.samples[key] = float(found[3])


def read(text):
    assert text.endswith("\n"), "the last line has no end"
    reader = _Reader()
    for line in text[:-1].split("\n"):
        if line.startswith("#"):
            reader.comment(line)
        else:
            reader.sample(line)
    return reader


def parse(text):
    """{(name, frozenset of (label, value)): number}"""
    return read(text).samples
