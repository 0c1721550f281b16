# SPDX-License-Identifier: Apache-2.0
"""The time of a part: it is counted over stops and takes-up, and nothing begins that would not fit."""

import time

FACTS = "parts"
# A part's last minute: a session that is under way ends a little late.
RESERVE_S = 5


class Budget:
    """seconds: all that the part may take. Its facts stay with the results."""

    def __init__(self, store, part, seconds, clock=time.monotonic):
        self.store, self.part, self.seconds, self.clock = store, part, seconds, clock
        self.before = self.fact().get("spent_s", 0.0)
        self.began = clock()

    def fact(self):
        return self.store.facts(FACTS).get(self.part, {})

    def spent(self):
        return self.before + self.clock() - self.began

    def fits(self, seconds):
        return self.spent() + seconds + RESERVE_S <= self.seconds

    def left_out(self, what):
        """Keeps that this was not measured for want of time."""
        self.keep(left_out=[*self.fact().get("left_out", []), what])

    def keep(self, **more):
        """Writes down the time that is spent, and further facts of the part."""
        parts = self.store.facts(FACTS)
        parts[self.part] = {**self.fact(), "spent_s": round(self.spent(), 1), "minutes": self.seconds / 60, **more}
        self.store.facts(FACTS, parts)

    def ended(self):
        return "ended" in self.fact()


class Unlimited:
    """For what has no part."""

    def fits(self, seconds):
        return True

    def left_out(self, what):
        raise AssertionError("nothing is left out")

    def keep(self, **more):
        pass
