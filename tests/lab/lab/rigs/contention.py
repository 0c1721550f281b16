# SPDX-License-Identifier: Apache-2.0
"""Directories that are read while names in them come and go."""

import sys
from pathlib import Path

from lab import machine
from lab.rigs.memory import Memory
from lab.rigs.rig import Premise
from waiting import wait_for


class Contention(Memory):
    name = "contention"
    about = "as the rig memory, while a writer creates and removes names in the busiest directories"

    def build(self):
        super().build()
        self.count_file().unlink(missing_ok=True)
        self.spawn([*machine.on_processors(machine.other_processors()), sys.executable,
                    Path(__file__).parent.parent / "writer.py", self.files / self.content.PREFIX[1:],
                    "10", self.count_file()])
        wait_for(lambda: self.written() > 0, "the writer to write")

    def count_file(self):
        return self.directory / "written"

    def written(self):
        text = self.count_file().read_text() if self.count_file().exists() else ""
        return int(text or 0)

    def check(self):
        before = self.written()
        wait_for(lambda: self.written() > before, "the writer to go on")
        return super().check() + [Premise("names appear and disappear", True, f"{self.written()} so far")]
