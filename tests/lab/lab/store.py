# SPDX-License-Identifier: Apache-2.0
"""The results: a directory with one JSON file for each measurement, so that a run can go on."""

import json
import os
from pathlib import Path


class Store:
    """<directory>/<experiment>/<server>/<step>.<round>.json"""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)

    def path(self, experiment, server, step, number):
        return self.directory / experiment / server / f"{step}.{number}.json"

    def has(self, *key):
        return self.path(*key).exists()

    def put(self, key, value):
        path = self.path(*key)
        path.parent.mkdir(parents=True, exist_ok=True)
        # A run that stops here leaves the whole file or none.
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(value))
        os.replace(temporary, path)

    def forget(self, *key):
        """A failure that is none any more."""
        self.path(*key).unlink(missing_ok=True)

    def get(self, *key):
        return json.loads(self.path(*key).read_text()) if self.has(*key) else None

    def rounds(self, experiment, server, step):
        """The results of all rounds, in order, without failed ones."""
        return list(self.by_round(experiment, server, step).values())

    def by_round(self, experiment, server, step):
        """{round: result}, without failed ones."""
        folder = self.directory / experiment / server
        found = {int(path.suffixes[-2][1:]): json.loads(path.read_text()) for path in folder.glob(f"{step}.*.json")}
        return {number: found[number] for number in sorted(found) if "failure" not in found[number]}

    def program(self, name):
        """The place of a program's result."""
        return self.directory / "programs" / f"{name}.json"

    @staticmethod
    def read(path):
        return json.loads(path.read_text())

    def measurements(self):
        """The file of each measurement, failed ones included."""
        return sorted(self.directory.glob("*/*/*.json"))

    def failures(self):
        """(experiment, server, step, text) of every failed measurement."""
        for path in self.measurements():
            text = json.loads(path.read_text()).get("failure")
            if text:
                yield path.parts[-3], path.parts[-2], path.name.rsplit(".", 2)[0], text

    def facts(self, name, value=None):
        """Facts of the run as a whole: machine, plan, premises."""
        path = self.directory / f"{name}.json"
        if value is not None:
            path.write_text(json.dumps(value, indent=1))
        return json.loads(path.read_text()) if path.exists() else {}
