# SPDX-License-Identifier: Apache-2.0
"""The integration tests in a sanitized build: the preloaded libraries, and the reports that fail a test.

FLASHPACHE_SANITIZE  address or thread: FLASHPACHE_BUILD is such a build (scripts/sanitize integration)
"""

import os
import re
import signal
import subprocess
from pathlib import Path

import procs
from waiting import wait_for

KIND = os.environ.get("FLASHPACHE_SANITIZE", "")
RUNTIMES = {"": (), "address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}[KIND]
HELPER = {"": None, "address": "leakcheck.c", "thread": "pool_order.c"}[KIND]       # preloaded by servers
# Each process writes its reports to a file of its own; a leak does not change an exit status. httpd's own accesses say nothing
# about races: its threads' hand-overs of memory were not instrumented.
COMMON = "log_path={reports}/report:log_exe_name=1:exitcode=0"
# A clock that a test shifts is preloaded too, before the runtime that a program of ours is linked to.
OPTIONS = {"ASAN_OPTIONS": ":detect_leaks=1:quarantine_size_mb=16:verify_asan_link_order=0",
           "TSAN_OPTIONS": ":report_signal_unsafe=0:ignore_noninstrumented_modules=1"}

reports = None          # the directory
seen = set()


def begin(directory):
    """Every process that starts from here on reports to this directory."""
    global reports
    if not KIND:
        return
    reports = directory
    reports.mkdir()
    reports.chmod(0o1777)
    for name, options in OPTIONS.items():
        os.environ[name] = COMMON.format(reports=reports) + options
    os.environ["FLASHPACHE_REPORTS"] = str(reports)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", reports / "helper.so", Path(__file__).with_name(HELPER)],
                   check=True)


def preload(*libraries):
    """LD_PRELOAD of a server: these, and first the runtimes that our module needs, which httpd itself does not load."""
    found = [subprocess.run(["cc", f"-print-file-name={name}"], check=True, capture_output=True,
                            text=True).stdout.strip() for name in RUNTIMES]
    if KIND:
        found.append(reports / "helper.so")
    return ":".join(map(str, [*found, *os.environ.get("LD_PRELOAD", "").split(), *libraries]))


def environment():
    """For a server."""
    return {**os.environ, "LD_PRELOAD": preload()} if KIND else None


def look_for_leaks(pid):
    """The workers below a process, and the process that makes them, look for leaks now: they never come to exit(). A
    process that is stopped, or hangs in the kernel, cannot look."""
    if KIND != "address":
        return
    asked = {p: reports / f"looked.{p}" for p, comm in procs.descendants(pid).items()
             if comm in ("fp-worker", "fp-spawner") and procs.state(p) == "S"}
    for one, sign in asked.items():
        sign.unlink(missing_ok=True)
        os.kill(one, signal.SIGRTMAX)
    wait_for(lambda: all(sign.exists() or not procs.state(p) for p, sign in asked.items()),
             "workers to look for leaks", 60)


def for_us(path):
    """The part of a report that concerns us. httpd and its libraries hold memory until they end, and the kernel holds
    slowfs's nodes. So of leaks only those of our programs and our module count."""
    text = path.read_text(errors="replace")
    if "LeakSanitizer does not work under ptrace" in text:      # a test traces the process
        return ""
    if path.name.startswith("report.flashpache") or "detected memory leaks" not in text:
        return text
    leaks = re.split(r"\n(?=(?:Direct|Indirect) leak of )", text)[1:]
    return "\n".join(leak for leak in leaks if "mod_flashpache" in leak)


def new_reports():
    """[text] of the reports since the last call."""
    if not KIND:
        return []
    new = set(reports.glob("report.*")) - seen
    seen.update(new)
    return [text for text in map(for_us, sorted(new)) if text]
