# SPDX-License-Identifier: Apache-2.0
"""How many rounds a comparison takes: until the range of its ratio is narrow, or enough were done. Pure functions."""

from dataclasses import dataclass
import statistics


@dataclass(frozen=True)
class Rounds:
    """At least and at most so many; narrow: the range of a ratio, as a share of its median, that ends it."""

    least: int = 3
    most: int = 5
    narrow: float = 0.10

    def wanted(self, servers, other, capacities, number):
        """The servers that are measured in a round, by what the rounds before it brought.

        other: {server: the one it is compared with}. capacities: {server: {round: requests/s}}. The other side of an
        open comparison is measured as well: a ratio is that of one round.
        """
        if number >= self.most:
            return []
        if number < self.least:
            return list(servers)
        before = {key: {n: rate for n, rate in capacities.get(key, {}).items() if n < number} for key in servers}
        ours = [key for key in servers if other[key] != key and self.is_open(before[key], before[other[key]])]
        return [key for key in servers if key in ours or key in {other[each] for each in ours}]

    def is_open(self, ours, theirs):
        """True if the ratio of the same rounds still has a wide range; a server that cannot be measured has none."""
        ratios = [ours[n] / theirs[n] for n in ours if theirs.get(n)]
        return len(ratios) >= 2 and (max(ratios) - min(ratios)) > self.narrow * statistics.median(ratios)


def fixed(number):
    """The same number for all."""
    return Rounds(number, number)


def counterpart(key, servers, reference=None):
    """The other server of a ratio: for Flashpache stock Apache with the same settings, for others the reference, or
    else the first stock server."""
    twin = key.replace("flash-", "stock-")
    if twin != key and twin in servers:
        return twin
    if reference in servers:
        return reference
    return next((each for each in servers if each.startswith("stock")), servers[0])
