# SPDX-License-Identifier: Apache-2.0
"""Which of the daemon's long pieces of work (FP0090) are the machine's own.

A host may hold a virtual processor without telling it; then the time counts as the thread's own. The kernel's trace
shows that: for so long there is no event of the thread, not even a tick of its processor's timer."""

import contextlib
import platform
import re
import subprocess
import tempfile
import threading
from pathlib import Path

TICK_MS = 4.5           # longer than a tick of 250 Hz
BUDGET_MS = 5           # FP_TURN_BUDGET_US of backend/base/turn.h
BUFFER_KIB = 8192       # of a processor: some seconds of the busy daemon
LOOK_S = 0.2
EVENTS = ("irq_vectors/local_timer_entry", "irq_vectors/reschedule_entry", "irq/softirq_entry", "exceptions/page_fault_user",
          "raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "sched/sched_switch")
LONG = re.compile(r"flashpached\[(\d+)\] FP0090 .* for (\d+) us")
EVENT = re.compile(r"-(\d+) +\[\d+\] \S+ +([\d.]+): (\w+):")
WRITE = {"aarch64": 64}.get(platform.machine(), 1)
LOG_WRITE = re.compile(rf"sys_enter: NR {WRITE} \(2,")      # write to standard error
SWITCH = re.compile(r"prev_pid=(\d+) .*next_pid=(\d+)")


def run(*command):
    subprocess.run([str(word) for word in command], check=True)


def gaps_before_lines_ms(trace, pid):
    """For each line that the thread wrote to the log: the time before it in which it had its processor, and nothing was
    seen. Only gaps longer than a tick count."""
    since, gap, ended, gaps = None, 0.0, 0.0, []
    for line in trace:
        found = EVENT.search(line)
        if not found:
            continue
        who, at, event = int(found.group(1)), 1000 * float(found.group(2)), found.group(3)
        switch = SWITCH.search(line) if event == "sched_switch" else None
        if pid not in ((int(switch.group(1)), int(switch.group(2))) if switch else (who,)):
            continue
        if since is not None and at - since > TICK_MS:
            gap, ended = at - since, at
        if LOG_WRITE.search(line) and gap and at - ended < BUDGET_MS:
            gaps.append(gap)
        since = None if switch and int(switch.group(1)) == pid else at
    return gaps


class Watch:
    """with Watch(daemon) as watch: ...; then watch.pieces: (the log's line, gaps in ms)."""

    def __init__(self, daemon):
        self.daemon, self.pieces, self.seen = daemon, [], 0
        self.ends = threading.Event()
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        mount = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        run("mount", "-t", "tracefs", "none", mount)
        self.stack.callback(run, "umount", mount)
        self.trace = mount / "instances/flashpache"
        self.trace.mkdir()
        self.stack.callback(self.trace.rmdir)
        self.set("buffer_size_kb", BUFFER_KIB)
        self.set("trace_clock", "mono")
        for event in EVENTS:
            fields = ("prev_comm", "next_comm") if event.startswith("sched/") else ("comm",)
            self.set(f"events/{event}/filter", " || ".join(f'{field} == "flashpached"' for field in fields))
            self.set(f"events/{event}/enable", 1)
        self.stack.callback(self.set, "events/enable", 0)
        thread = threading.Thread(target=self._look_on)
        thread.start()
        self.stack.callback(thread.join)
        self.stack.callback(self.ends.set)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def set(self, name, value):
        (self.trace / name).write_text(f"{value}\n")

    def _look_on(self):
        while not self.ends.wait(LOOK_S):
            lines = [line for line in self.daemon.log_text().splitlines() if LONG.search(line)]
            if len(lines) == self.seen:
                continue
            self.set("tracing_on", 0)
            for line in lines[self.seen:]:
                with open(self.trace / "trace", errors="replace") as trace:
                    self.pieces.append((line, gaps_before_lines_ms(trace, int(LONG.search(line).group(1)))))
            self.seen = len(lines)
            self.set("trace", "")
            self.set("tracing_on", 1)

    def own(self):
        """The pieces that were long without the machine's gaps."""
        return [line for line, gaps in self.pieces
                if int(LONG.search(line).group(2)) / 1000 - max(gaps, default=0) > BUDGET_MS]
