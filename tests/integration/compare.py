# SPDX-License-Identifier: Apache-2.0
"""Many requests to two servers at once: responses and error-log lines side by side.

Requests are pipelined in batches, because a comparison of thousands must take seconds. The
error log carries each request's X-Test header, so a line belongs to a known request.
"""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import rawhttp

BATCH = 60
NO_ANSWER = "closed without an answer"
THREADS = 4
TIMES = 2           # each request of a batch, one after the other: cold or stale, then warm
# This request closes the connection, so that no compared request has to.
END = rawhttp.request("OPTIONS", "*", tag="end")
# For the configuration of both servers: lines by request, without time, process and port. core's notices stay, as
# they report a crashed child.
LOG_FORMAT = 'ErrorLogFormat "%-{X-Test}i %-m:%-l %-E %M"\nLogLevel core:notice\n'
# The order of names in a listing or a walk is the file system's; addresses are a process's.
NOISE = re.compile(r"\[client [^]]*\] ?|0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Ask:
    """One request; the same object is sent to both servers."""
    host: str
    path: str
    method: str = "GET"
    headers: tuple = ()

    def data(self, tag):
        return rawhttp.request(self.method, self.path, host=self.host, tag=tag, close=False,
                               **dict(self.headers))

    def __str__(self):
        return f"{self.method} {self.path} Host: {self.host} {dict(self.headers) or ''}"


@dataclass
class Answer:
    response: tuple
    log: list = field(default_factory=list)

    def __eq__(self, other):
        return self.response == other.response and self.log == other.log

    def __str__(self):
        status, headers, body = self.response
        return f"{status} {headers} {body[:300]!r}\n      log: {self.log}"


def _pipeline(port, asks, tags):
    """The responses to these requests; a server that closes after an error gets the rest on a new connection."""
    done = []
    while len(done) < len(asks):
        left = list(zip(asks, tags))[len(done):]
        data = b"".join(a.data(t) for a, t in left) + END
        got = rawhttp.parse(rawhttp.exchange(port, data), [a.method for a, _ in left])
        done += got[:len(left)] or [rawhttp.Response(NO_ANSWER)]
    assert len(done) == len(asks), (len(done), len(asks), [str(a) for a in asks[:3]])
    return [rawhttp.normalised(r) for r in done]


def _log_by_tag(server, since):
    lines = {}
    with open(server.error_log, errors="replace") as log:
        log.seek(since)
        for line in log:
            tag, _, rest = line.rstrip("\n").partition(" ")
            lines.setdefault(tag, []).append(NOISE.sub("", rest))
    return lines


def collect(server, asks, times=TIMES):
    """A list for each of `times` rounds: [Answer, ...]."""
    since = server.error_log.stat().st_size
    tagged = [(a, f"{i}.{n}") for start in range(0, len(asks), BATCH // times)
              for n in range(times)
              for i, a in list(enumerate(asks))[start:start + BATCH // times]]
    batches = [tagged[i:i + BATCH] for i in range(0, len(tagged), BATCH)]

    def fetch(batch):
        return _pipeline(server.port, [a for a, _ in batch], [t for _, t in batch])
    with ThreadPoolExecutor(THREADS) as pool:
        fetched = [r for part in pool.map(fetch, batches) for r in part]
    lines = _log_by_tag(server, since)
    by_tag = {t: Answer(r, sorted(lines.get(t, ()))) for (_, t), r in zip(tagged, fetched)}
    return [[by_tag[f"{i}.{n}"] for i in range(len(asks))] for n in range(times)]


def differences(stock, flash, asks):
    """[(ask, which time, stock's answer, ours)] where they differ."""
    expected, = collect(stock, asks, 1)
    return [(a, n, x, y) for n, ours in enumerate(collect(flash, asks))
            for a, x, y in zip(asks, expected, ours) if x != y]


def _from_there(x, y):
    """Both from shortly before the place where they begin to differ."""
    at = max(next((i for i, (c, d) in enumerate(zip(x, y)) if c != d), min(len(x), len(y))) - 40, 0)
    return f"{x[at:at + 240]!r} -> {y[at:at + 240]!r} (from {at} of {len(x)} and {len(y)})"


def _what(a, b):
    """The parts that differ in two answers, in words."""
    parts = [f"{name} {_from_there(x, y)}"
             for name, x, y in zip(("status", "headers", "body"), a.response, b.response)
             if x != y and name != "headers"]
    for sign, one, other in (("-", a, b), ("+", b, a)):
        parts += [f"{sign}{h[0]}: {h[1]}" for h in one.response[1] if h not in other.response[1]]
        parts += [f"{sign}log {line!r}" for line in one.log if one.log.count(line) > other.log.count(line)]
    return "; ".join(p[:600] for p in parts)


def told(found, most=40):
    """One line each: the request, its round, stock -> ours."""
    lines = [f"{a} ({('cold', 'warm')[n]}): {_what(x, y)}" for a, n, x, y in found[:most]]
    return f"{len(found)} differences, the first:\n" + "\n".join(lines)


def until_equal(stock, flash, asks, seconds):
    """Ask until both agree; returns (seconds until then, remaining differences)."""
    began = time.monotonic()
    left = asks
    while True:
        found = differences(stock, flash, left)
        unanswered = [f for f in found if NO_ANSWER in f[3].response]
        assert not unanswered, told(unanswered)     # an old answer is allowed, a missing one is not
        if not found or time.monotonic() - began > seconds:
            return time.monotonic() - began, found
        left = list(dict.fromkeys(a for a, _, _, _ in found))
