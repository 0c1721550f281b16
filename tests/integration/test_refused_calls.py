# SPDX-License-Identifier: Apache-2.0
"""A system that refuses system calls: every answer is stock's under the same filter, whichever call is missing.

The calls are those in the lists of the daemon's own filters, those that it starts with, and what newer kernels have.
Each fails with EPERM, as in a container with a list of its own, or with ENOSYS, as below an older kernel. Where stock
httpd cannot start, or serve, under the filter there is nothing to compare: these cases are listed as a warning.
"""

import itertools
import os
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException

import pytest

import procs
import refusing
import tree
from httpd import HITS
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

ERRORS = ("EPERM", "ENOSYS")
# Calls of their start, and of processes without a filter.
OTHERS = """access bind capget capset chdir clone clone3 close_range dup eventfd2 execve faccessat faccessat2
fanotify_init fanotify_mark fchmod fchmodat fchown fchownat flock fork getcwd getdents64 getpriority getresuid
getrlimit getsid getsockname getpeername inotify_init1 kill link linkat listen mkdir mkdirat name_to_handle_at
nanosleep clock_nanosleep openat2 pidfd_open pipe pipe2 prctl prlimit64 pwritev readv rename rseq rt_sigsuspend
sched_getaffinity sched_setattr seccomp sendfile sendmmsg set_robust_list set_tid_address setgid setgroups setpriority
setresgid setresuid setrlimit setsid setuid sigaltstack signalfd4 socketpair statfs timerfd_create timerfd_settime
umask uname unlink unlinkat utimensat vfork waitid""".split()
# The short form: calls by which an answer is found and kept true, and an old list.
MATTER = ("statx", "openat2", "readlinkat", "inotify_add_watch")
SERVERS = 4             # side by side
FILES = {"page.txt": b"page\n", "large.bin": tree.content("refused", 3_000_000), "ruled/page.txt": b"ruled\n",
         "closed/page.txt": b"closed\n", "denied.txt": b"denied\n", "deep/er/page.txt": b"deep\n"}
PATHS = ("/page.txt", "/large.bin", "/absent.txt", "/absent/er.txt", "/ruled/page.txt", "/closed/page.txt", "/denied.txt",
         "/deep/er/page.txt", "/link.txt", "/deep/er/", "/page.txt/more")
CHANGED = (("/page.txt", b"another page\n"), ("/new.txt", b"new\n"))
TTL_MS = 200            # of what is not watched
PATIENCE_S = 10
LIMITS = {"prefork": "StartServers 2\nMinSpareServers 1\nServerLimit 4\nMaxRequestWorkers 4\n",
          "event": "StartServers 1\nServerLimit 1\nThreadsPerChild 8\nMaxRequestWorkers 8\n"}
# A daemon has begun, or has told why not.
SETTLED = ("FP0001", "FP0111", "FP0112")


def make_tree(root):
    for name, body in FILES.items():
        tree.put(root / name, body)
    (root / "ruled/.htaccess").write_text("Header set X-Rule here\n")
    (root / "closed/.htaccess").write_text("Require all denied\n")
    (root / "denied.txt").chmod(0)
    (root / "link.txt").symlink_to("deep/er/page.txt")
    return root


def ask(port, path):
    """(status, header of the rule, body), or the error's name."""
    conn = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        conn.request("GET", path, headers={"Host": "localhost"})
        answer = conn.getresponse()
        return answer.status, answer.getheader("X-Rule"), answer.read()
    except (OSError, HTTPException) as problem:
        return type(problem).__name__
    finally:
        conn.close()


def short(answer):
    return answer if isinstance(answer, str) else f"{answer[0]} ({len(answer[2])} bytes)"


class Case:
    """One filter, over all (httpd starts its daemon), the daemon alone, or httpd and its children alone."""

    numbers = itertools.count()

    def __init__(self, lab, base, mpm, over, error, calls):
        self.lab, self.over, self.mpm = lab, over, mpm
        self.name = f"{over}: {','.join(calls)} {error}, {mpm}"
        self.number = next(self.numbers)
        self.around = refusing.command(error, *calls)
        self.root = make_tree(base / f"t{self.number}")
        self.config = f"<Directory {self.root}>\nAllowOverride All\nRequire all granted\n</Directory>\n"

    def server(self, kind, around, **options):
        name = f"{kind}{self.number}"
        limits = LIMITS[self.mpm]
        config = self.config + options.pop("more", "")
        return self.lab.stock(name, self.root, mpm=self.mpm, limits=limits, config=config, around=around, **options)

    def answers(self, server):
        """All answers twice, then what changes bring."""
        found = [ask(server.port, path) for _ in range(2) for path in PATHS]
        for path, body in CHANGED:
            tree.put(self.root / path[1:], body)
            found.append(self.until(server, path, body))
        for path, _ in CHANGED:
            (self.root / path[1:]).unlink()
            found.append(self.until(server, path, None))
        tree.put(self.root / "page.txt", FILES["page.txt"])
        return found

    def until(self, server, path, body):
        end = time.monotonic() + 2
        while True:
            answer = ask(server.port, path)
            if isinstance(answer, str) or time.monotonic() > end:
                return answer
            if answer[0] == 404 if body is None else answer[2] == body:
                return answer
            time.sleep(0.05)

    def begin(self, server):
        """True if it serves."""
        try:
            server.start()
        except (ChildProcessError, TimeoutError):
            return False
        return True

    def stock(self):
        """Stock's answers; None: it serves nothing under the filter."""
        server = self.server("s", [] if self.over == "daemon" else self.around)
        try:
            if not self.begin(server):
                return None
            found = self.answers(server)
            return found if all(not isinstance(answer, str) for answer in found) else None
        finally:
            end(server)

    def flash(self):
        module, program = self.built
        if self.over == "all":
            conf = self.root.parent / f"c{self.number}"
            conf.write_text(f"ttl_ms = {TTL_MS}\nnegative_ttl_ms = {TTL_MS}\nworkers = 2\n")
            more = f"FlashpacheDaemonProgram {program}\nFlashpacheDaemonConfig {conf}\n"
            server = self.server("f", self.around, module=module, more=more)
            daemon = None
        else:
            daemon = self.lab.daemon(f"d{self.number}", ttl_ms=TTL_MS, workers=2)
            daemon.around = self.around if self.over == "daemon" else []
            # Else the sights of the two would differ, and children ask nothing.
            server = self.server("f", self.around if self.over == "children" else [], module=module,
                                 socket=daemon.socket, more="FlashpacheDaemon elsewhere\n")
        try:
            if daemon is not None:
                try:
                    daemon.start()
                except (ChildProcessError, TimeoutError):
                    pass
            if not self.begin(server):
                return "httpd does not start: " + server.error_text()[-300:]
            if daemon is None:
                settle(server)
            return self.answers(server)
        finally:
            end(server)
            if daemon is not None:
                end(daemon)

    def run(self):
        """(comparable, differences)"""
        stock = self.stock()
        if stock is None:
            return False, []
        ours = self.flash()
        if isinstance(ours, str):
            return True, [ours]
        asked = [*PATHS, *PATHS, *(path for path, _ in CHANGED), *(path for path, _ in CHANGED)]
        return True, [f"{path}: stock {short(a)}, ours {short(b)}" for path, a, b in zip(asked, stock, ours) if a != b]


def settle(server):
    end_at = time.monotonic() + 5
    while time.monotonic() < end_at and not any(word in server.error_text() for word in SETTLED):
        time.sleep(0.02)


def end(one):
    """Kills its session at once: a filter may keep it from ending, and nothing is learnt of its end."""
    if one.process is None:
        return
    pids = [one.process.pid, *procs.descendants(one.process.pid)]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    one.process.wait()
    one.process = None


def compare(lab, base, cases):
    """All cases, some side by side."""
    Case.built = [lab.request.getfixturevalue(name) for name in ("module_path", "flashpached_program")]
    made = [Case(lab, base, *case) for case in cases]
    with ThreadPoolExecutor(SERVERS) as pool:
        results = list(pool.map(Case.run, made))
    not_comparable = [case.name for case, (comparable, _) in zip(made, results) if not comparable]
    differing = {case.name: found for case, (_, found) in zip(made, results) if found}
    print(f"{len(made)} cases, {len(not_comparable)} not comparable, {len(differing)} differ")
    if not_comparable:
        warnings.warn("stock httpd does not serve either: " + "; ".join(not_comparable))
    text = "\n".join(f"{name}\n    " + "\n    ".join(found[:6]) for name, found in differing.items())
    assert not differing, f"{len(differing)} of {len(made)} cases\n{text}"


def test_calls_that_matter(lab, base):
    cases = [("prefork", "all", error, (call,)) for call in MATTER for error in ERRORS]
    # With EPERM no thread begins (clone3).
    cases += [("event", "all", "ENOSYS", (refusing.NEWER,)), ("prefork", "all", "EPERM", (refusing.NEWER,)),
              ("event", "children", "EPERM", ("statx",)), ("prefork", "daemon", "ENOSYS", ("ioctl",))]
    compare(lab, base, cases)


@pytest.mark.parametrize("error, text", (("EPERM", "Operation not permitted"), ("ENOSYS", "Function not implemented")))
def test_the_daemon_names_the_call_and_does_not_serve(lab, error, text):
    daemon = lab.daemon(f"named-{error}")
    daemon.around = refusing.command(error, "statx")
    with pytest.raises(ChildProcessError):
        daemon.start()
    said = [line for line in daemon.log_text().splitlines() if "FP00" in line]
    assert len(said) == 1 and f"FP0074 error: this system refuses the call statx ({text})" in said[0], said


@pytest.mark.parametrize("calls", (("openat2", "close_range", "name_to_handle_at", "readlinkat"), ("inotify_add_watch",)))
def test_it_serves_without_what_it_can_do_without(lab, base, calls):
    daemon = lab.daemon(f"without-{calls[0]}")
    daemon.around = refusing.command("EPERM", *calls)
    with daemon:
        assert ("FP0043" in daemon.log_text()) == ("inotify_add_watch" in calls)
        root = make_tree(base / f"without-{calls[0]}")
        server = lab.flash(f"httpd-without-{calls[0]}", root, daemon.socket, around=daemon.around).start()

        def hit():
            mark = server.mark()
            assert ask(server.port, "/page.txt")[2] == FILES["page.txt"]
            return server.wait_entries(1, mark)[-1].note in HITS
        wait_for(hit, "an answer that is kept")


@pytest.mark.full
@pytest.mark.parametrize("mpm", ("prefork", "event"))
@pytest.mark.parametrize("over", ("all", "daemon", "children"))
def test_every_call(lab, base, mpm, over):
    calls = dict.fromkeys((*refusing.calls_of_the_filters(), *(c for c in OTHERS if refusing.number_of(c) >= 0)))
    compare(lab, base, [(mpm, over, error, (call,)) for call in (*calls, refusing.NEWER) for error in ERRORS])
