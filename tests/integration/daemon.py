# SPDX-License-Identifier: Apache-2.0
"""A real flashpached with a configuration, a socket directory and a log of its own."""

import os
import signal
import subprocess
from pathlib import Path

import procs
import sanitizer
from httpd import USER, user_ids
from waiting import wait_for

READY = "FP0001"
WORKER, SPAWNER = "fp-worker", "fp-spawner"
WORKERS = 8             # fewer than usual, as tests start hundreds of daemons
OWN_DESCRIPTORS = 64    # of the daemon, as in backend/derive.c


def setting(key, value):
    """One line of the configuration file."""
    if isinstance(value, (list, tuple)):
        return f"{key} = {{{', '.join(quoted(v) for v in value)}}}\n"
    return f"{key} = {value if isinstance(value, int) else quoted(value)}\n"


def quoted(value):
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


class Flashpached:
    """One daemon. start() returns when it accepts connections.

    Its files are in <base>/<name>; settings override the configuration's defaults.
    """

    def __init__(self, base, name, program, **settings):
        self.program = str(program)
        self.dir = Path(base) / name
        self.dir.mkdir(parents=True)
        self.socket_dir = self.dir / "run"
        self.socket_dir.mkdir()
        os.chown(self.socket_dir, 0, user_ids()[1])
        self.socket_dir.chmod(0o710)
        self.socket = self.socket_dir / "flashpached.sock"
        self.config = self.dir / "flashpached.conf"
        self.log = self.dir / "flashpached.log"
        open_files = settings.pop("open_files", None)
        self.settings = {"socket": self.socket, "user": USER, "log": "stderr",
                         "log_level": "info", "workers": WORKERS, **settings}
        if "ttl_ms" in settings:        # tests that set it mean absent names, too
            self.settings.setdefault("negative_ttl_ms", settings["ttl_ms"])
        self.process = None
        self.around = []        # a command that starts the program, as some user and groups
        if open_files is not None:
            self.hold(open_files)
        self.write_config()

    def hold(self, files):
        """Limits the descriptors, so that the daemon has room for about so many files and directories that are open."""
        limit = (files + 2 * self.settings["workers"] + OWN_DESCRIPTORS) * 4 // 3
        self.around = ["prlimit", f"--nofile={limit}:{limit}"]

    def write_config(self, extra=""):
        text = "".join(setting(k, v) for k, v in self.settings.items())
        self.config.write_text(text + extra)

    def command(self, *args):
        return [self.program, "-c", str(self.config), *args]

    def counters(self):
        """The counters of flashpachectl stats, as {name: number}."""
        tool = Path(self.program).with_name("flashpachectl")
        done = subprocess.run([tool, "-s", self.socket, "stats"], check=True, capture_output=True, text=True)
        return {name: int(number) for name, number in (line.split() for line in done.stdout.splitlines())}

    def run(self, *args, timeout=20):
        """Run the program until it ends by itself (wrong settings, -t, -V)."""
        return subprocess.run(self.command(*args), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout)

    def start(self):
        ready = self.log_text().count(READY)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.around, *self.command()], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True,
                                            env=sanitizer.environment())

        def up():
            if self.process.poll() is not None:
                raise ChildProcessError(f"flashpached ended at start: {self.log_text()}")
            return self.log_text().count(READY) > ready
        wait_for(up, f"{READY} from flashpached")
        return self

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """SIGKILL, as the kernel's OOM killer would."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self, timeout=20):
        """SIGTERM; returns the exit status. Kills everything that its session left behind."""
        if self.process is None:
            return None
        pid = self.process.pid
        self.process.send_signal(signal.SIGCONT)
        sanitizer.look_for_leaks(pid)
        self.process.terminate()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(pid, signal.SIGKILL)
            self.process.wait()
            raise
        finally:
            self.process = None

    def restart(self):
        self.stop()
        return self.start()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def log_text(self):
        """The text of the log file in the settings, or of standard error."""
        target = Path(self.settings["log"]) if str(self.settings["log"]).startswith("/") else self.log
        return target.read_text(errors="replace") if target.exists() else ""

    def worker_pids(self):
        return sorted(p for p, comm in procs.descendants(self.pid).items() if comm == WORKER)

    def spawner_pid(self):
        spawner, = (p for p, comm in procs.descendants(self.pid).items() if comm == SPAWNER)
        return spawner

    def family(self):
        """The daemon and every process below it."""
        return [self.pid, *procs.descendants(self.pid)]

    def fd_count(self):
        return procs.fd_count(self.pid)
