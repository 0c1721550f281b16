# SPDX-License-Identifier: Apache-2.0
"""The calls of these processes, on paths or otherwise, by strace."""

import re
import subprocess
import threading
from collections import Counter
from pathlib import Path

# fstat is newfstatat(fd, "", ..., AT_EMPTY_PATH) in today's libc: a descriptor, not a path.
FSTAT = re.compile(r'\b(newfstatat|statx)\(\d+<[^>]*>, "",')
# Opens an open file again by its descriptor: no path is walked.
REOPEN = re.compile(r'\bopenat\([^,]*, "/proc/self/fd/\d+"')
CALL = re.compile(r"\d+ +(\w+)\(")
# A call during which another thread made one has two lines.
UNFINISHED = re.compile(r"^(\d+) .* <unfinished \.\.\.>$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>")


def whole_calls(lines):
    """The lines of a trace, with the lines of one call joined, at its end."""
    begun = {}
    for line in lines:
        if found := UNFINISHED.match(line):
            begun[found.group(1)] = line.removesuffix(" <unfinished ...>")
        elif found := RESUMED.match(line):
            yield begun.pop(found.group(1), "") + line[found.end():]
        else:
            yield line
    yield from begun.values()


class Trace:
    """with Trace(pids, log, what) as t: ...; then t.lines(). what: as for strace -e trace=; detail: how much of a
    call is written."""

    def __init__(self, pids, log, what="all", detail=("-y", "-s", "4096")):
        self.pids, self.log, self.what, self.detail = list(pids), log, what, detail
        self.process = None
        self.stderr = []

    def __enter__(self):
        command = ["strace", "-f", *self.detail, "-e", f"trace={self.what}", "-e", "signal=none",
                   "-o", str(self.log)]
        for pid in self.pids:
            command += ["-p", str(pid)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        attached = threading.Event()
        threading.Thread(target=self._read, args=(attached,), daemon=True).start()
        if not attached.wait(60) or self.process.poll() is not None:
            self._end()
            raise RuntimeError("strace did not attach: " + "".join(self.stderr))
        return self

    def _read(self, attached):
        waiting = set(self.pids)
        for line in self.process.stderr:
            self.stderr.append(line)
            found = re.search(r"Process (\d+) attached", line)
            waiting.discard(int(found.group(1)) if found else 0)
            if not waiting:
                attached.set()
        attached.set()

    def _end(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()

    def __exit__(self, *_):
        self._end()

    def lines(self):
        """Calls, each with the thread's number in front."""
        return list(whole_calls(Path(self.log).read_text(errors="replace").splitlines()))

    def names(self):
        """{call: number}"""
        found = (CALL.match(line) for line in self.lines())
        return Counter(match.group(1) for match in found if match)


class PathTrace(Trace):
    """with PathTrace(pids, log) as t: ...; then t.calls(directory)."""

    def __init__(self, pids, log):
        super().__init__(pids, log, "%file")

    def calls(self, below):
        """Lines of the trace that name something below a directory, without calls on descriptors."""
        return [line for line in self.lines()
                if str(below) in line and not FSTAT.search(line) and not REOPEN.search(line)]
