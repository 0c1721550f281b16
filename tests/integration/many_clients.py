# SPDX-License-Identifier: Apache-2.0
"""Many clients at once, each on a connection of its own, for tests of races."""

import itertools
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from fetch import Client


def ask_until(port, end, clients, url, step=1, headers=None):
    """Counter of (status, body), of which the body is None unless the status is 200. Each client begins with its own number and adds
    step; url(number) is what it asks for, until time.monotonic() is end."""
    def ask(first):
        found = Counter()
        with Client(port) as client:
            for number in itertools.count(first, step):
                if time.monotonic() >= end:
                    return found
                status, body = client.get(url(number), headers=headers)
                found[status, body if status == 200 else None] += 1
    with ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(ask, range(clients)), Counter())
