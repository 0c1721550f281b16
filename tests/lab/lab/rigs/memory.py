# SPDX-License-Identifier: Apache-2.0
"""The set fits into memory and stays there."""

import re

from lab.rigs.rig import Premise, Rig, run
from waiting import wait_for


class Memory(Rig):
    name = "memory"
    about = "the set is pinned in the page cache (mlock by vmtouch)"
    programs = {"vmtouch": "vmtouch"}

    def build(self):
        super().build()
        # vmtouch has -w only with -d, which forks: so wait until the pages are locked.
        self.spawn(["vmtouch", "-l", "-q", self.files])
        wait_for(lambda: self.resident() == 1.0, "the set to be in memory", 120)

    def resident(self):
        """The share of the set's pages that are in memory."""
        found = re.search(r"Resident Pages: (\d+)/(\d+)", run("vmtouch", self.files))
        return int(found.group(1)) / int(found.group(2))

    def check(self):
        share = self.resident()
        locked = self.locked_bytes()
        return [Premise("the whole set is in memory", share == 1.0, f"{share:.1%}"),
                Premise("all of it is locked there", locked >= self.content.bytes(), f"{locked >> 20} MiB locked")]

    def locked_bytes(self):
        with open(f"/proc/{self.state()['pids'][0]}/status") as status:
            kib = next(line.split()[1] for line in status if line.startswith("VmLck"))
        return int(kib) << 10
