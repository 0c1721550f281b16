# SPDX-License-Identifier: Apache-2.0
"""Which path calls do these processes make below a directory? By strace."""

import re
import subprocess
import threading

# fstat is newfstatat(fd, "", ..., AT_EMPTY_PATH) in today's libc: a descriptor, not a path.
FSTAT = re.compile(r'\b(newfstatat|statx)\(\d+<[^>]*>, "",')


class PathTrace:
    """with PathTrace(pids, log) as t: ...; then t.calls(directory)."""

    def __init__(self, pids, log):
        self.pids, self.log = list(pids), log
        self.process = None
        self.stderr = []

    def __enter__(self):
        command = ["strace", "-f", "-y", "-s", "4096", "-e", "trace=%file", "-e", "signal=none",
                   "-o", str(self.log)]
        for pid in self.pids:
            command += ["-p", str(pid)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        attached = threading.Event()
        threading.Thread(target=self._read, args=(attached,), daemon=True).start()
        if not attached.wait(20) or self.process.poll() is not None:
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

    def calls(self, below):
        """Lines of the trace that name something below a directory, fstat aside."""
        with open(self.log, errors="replace") as log:
            return [line.rstrip() for line in log
                    if str(below) in line and not FSTAT.search(line)]
