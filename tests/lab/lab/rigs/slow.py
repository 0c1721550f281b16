# SPDX-License-Identifier: Apache-2.0
"""A file system that takes its time for names and metadata, as a network file system does."""

import os
import time

import slowfs

from lab import BUILD, machine
from lab.rigs.rig import Premise, Rig, unmount
from waiting import wait_for

PROGRAM = BUILD / "tests/lab/slowfs/slowfs"
PROBES = 20


class Slow(Rig):
    name = "slowfs"
    about = "slowfs: a delay for each lookup, getattr and open; data stays in the page cache"
    programs = {"fusermount3": "fuse3"}

    def __init__(self, directory, content, connections=1024, files=None, delay_us=2000, attributes_s=0.0, names_s=0.0):
        super().__init__(directory, content, connections, files)
        self.delay_us, self.attributes_s, self.names_s = delay_us, attributes_s, names_s
        self.target = self.directory / "mnt"
        self.about = (f"slowfs: {delay_us / 1000:g} ms for each lookup, getattr and open. The kernel keeps "
                      f"attributes for {attributes_s:g} s, names for {names_s:g} s, absent names never, data in the page cache")

    def missing(self):
        reason = slowfs.why_not()
        built = [] if PROGRAM.exists() else [f"{PROGRAM} is not built: run make"]
        return super().missing() + ([reason] if reason else []) + built

    def build(self):
        super().build()
        self.target.mkdir(exist_ok=True)
        self.spawn([*machine.on_processors(machine.other_processors()), PROGRAM, "--foreground",
                    "--keep-cache", "--delay-us", self.delay_us, "--attr-timeout", self.attributes_s,
                    "--entry-timeout", self.names_s, self.files, self.target])
        wait_for(lambda: os.path.ismount(self.target), f"slowfs at {self.target}")

    def remove(self):
        unmount(self.target)

    def docroot(self):
        return self.target

    def check(self):
        path = self.target / self.content.urls(1, 0)[0].lstrip("/")
        began = time.perf_counter()
        for _ in range(PROBES):
            os.stat(path)
        each = (time.perf_counter() - began) / PROBES * 1e6
        # A path of five names: each is looked up, unless the kernel may keep it.
        least = self.delay_us if self.attributes_s == self.names_s == 0 else 0
        return [Premise("a stat takes at least one delay", each >= least, f"{each:.0f} us, delay {self.delay_us} us")]
