# SPDX-License-Identifier: Apache-2.0
"""Runs flashpache-bench against a server and reads its results."""

import json
import subprocess
from collections import namedtuple

import workload

from lab import Impossible, machine, program

PROGRAM = program("tests/lab/flashpache-bench", "FLASHPACHE_BENCH")
Records = namedtuple("Records", "starts latencies sizes failed")


class Load:
    """Load for one server. directory: for its files; prefix: before the client's command."""

    def __init__(self, directory, host, port, *, connections, prefix=()):
        self.directory, self.host, self.port = directory, host, port
        self.connections, self.prefix = connections, list(prefix)
        self.urls = directory / "urls.txt"
        if not PROGRAM.exists():
            raise Impossible(f"{PROGRAM} is not built: run make, or set FLASHPACHE_BUILD")

    def ask_for(self, urls):
        """The paths of the next runs, in this order."""
        self.urls.write_text("\n".join(urls) + "\n")

    def command(self, *options):
        pinned = machine.on_processors(machine.other_processors())
        return [*self.prefix, *pinned, str(PROGRAM), "--host", self.host, "--port", str(self.port),
                "--allow-errors", *map(str, options)]

    def start(self, name, *options, connections=None, per_connection=5, records=False):
        """Starts a run; finish() takes its result."""
        result = self.directory / f"{name}.json"
        kept = self.directory / f"{name}.tsv" if records else None
        command = self.command("-c", connections or self.connections, "-k", per_connection, "--json", result,
                               *(["--records", kept] if kept else []), *options)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        return process, result, kept

    def finish(self, started):
        """(the client's report, Records or None)"""
        process, result, records = started
        _, errors = process.communicate()
        if process.returncode not in (0, 1):
            raise RuntimeError(f"flashpache-bench: {errors}")
        found = json.loads(result.read_text())
        return found, read_records(records) if records else None

    def run(self, name, *options, **more):
        return self.finish(self.start(name, *options, **more))

    def of_list(self, seconds, rate=None):
        """Options: the list in its order for so long, closed loop or at a rate."""
        return ["-u", self.urls, "-d", seconds, *(["-r", f"{rate:.2f}"] if rate else [])]


def read_records(path):
    """The columns; latencies in ms of good answers, failures are counted."""
    starts, latencies, sizes, failed = [], [], [], 0
    with open(path, encoding="latin-1") as lines:
        column = {name: i for i, name in enumerate(next(lines).rstrip("\n").split("\t"))}
        start, latency, size, result = (column[n] for n in ("start_us", "latency_us", "bytes", "result"))
        for line in lines:
            fields = line.split("\t")
            if fields[result] != "ok":
                failed += 1
                continue
            starts.append(float(fields[start]) / 1e6)
            latencies.append(float(fields[latency]) / 1e3)
            sizes.append(int(fields[size]))
    return Records(starts, latencies, sizes, failed)


class Content:
    """The set of files below a document root, and the requests for it."""

    PREFIX = "/srv/static"

    def __init__(self, directories, hot=None):
        self.directories, self.hot = directories, hot

    def make(self, docroot):
        return workload.make(docroot / self.PREFIX.strip("/"), self.directories)

    def urls(self, count, seed):
        return workload.urls(self.directories, count, seed, self.hot, self.PREFIX)

    def all_urls(self):
        """Each requested file once, the most popular last."""
        files = self.hot or self.directories * workload.FILES_PER_DIRECTORY
        return workload.popular(self.directories, files, self.PREFIX)[::-1]

    def bytes(self):
        return self.directories * workload.DIRECTORY_BYTES

    def small_file(self):
        """The most popular file of 1 KB."""
        return f"{self.PREFIX}/{workload.directory_name(0)}/{workload.file_name(1, 0)}"
