# SPDX-License-Identifier: Apache-2.0
"""The common part of all rigs."""

import json
import os
import shutil
import signal
import subprocess
import zlib
from collections import namedtuple
from pathlib import Path

import procs

from lab import Impossible, servers
from waiting import wait_for

Premise = namedtuple("Premise", "what holds detail")


class Rig:
    """A directory, the files in it, and the devices that a subclass puts below or around them.

    name, about: for the report. missing(): what this machine lacks. build(), remove(): the subclass's own part.
    check(): its premises, before any measurement.
    """

    name = about = ""
    programs = {}               # programs that must be installed: {program: Debian package}

    def __init__(self, directory, content, connections=1024, files=None):
        """files: the place of the set, if rigs share it; else the rig has its own."""
        self.directory = Path(directory)
        self.content, self.connections = content, connections
        self.files = Path(files or self.directory / "files")
        self.state_file = self.directory / "rig.json"
        # Names of what lies outside of the directory; two rigs may be up at once, and another process finds them.
        self.key = f"{zlib.crc32(str(self.directory).encode()):08x}"

    # A subclass's part

    def missing(self):
        """Reasons why this machine cannot have the rig."""
        found = [f"{program} is not installed (package {package})"
                 for program, package in self.programs.items() if not shutil.which(program)]
        return found + ([] if os.geteuid() == 0 else ["root is needed"])

    def build(self):
        self.content.make(self.files)

    def remove(self):
        """Unmounts, and removes everything but the files in the directory."""

    def check(self):
        return []

    def docroot(self):
        return self.files

    def place(self, directory):
        """Where servers run under this rig."""
        return servers.Place(directory, self.docroot(), connections=self.connections)

    def started(self):
        """Called when a server has started, before its first request."""

    def warm(self, session, seconds):
        """Asks until the rig's caches have their final state."""
        session.ask("warm", seconds)

    def reads(self):
        """The number of reads of the disk so far; None if it has none that counts."""

    def pids(self):
        """The rig's own processes."""
        started = self.state().get("pids", [])
        return started + [below for pid in started for below in procs.descendants(pid)]

    # Life

    def up(self):
        lacking = self.missing()
        if lacking:
            raise Impossible(f"rig {self.name}: " + "; ".join(lacking))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o755)
        self.remember()
        try:
            self.build()
        except BaseException:
            self.down()
            raise
        return self

    def down(self):
        for pid in self.state().get("pids", []):
            end(pid)
        self.remove()
        left = mounted_below(self.directory)
        if left:
            raise Impossible(f"rig {self.name}: not removed, still mounted: {', '.join(left)}")
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self.up()

    def __exit__(self, *_):
        self.down()

    # The state that another process needs in order to remove the rig

    def state(self):
        return json.loads(self.state_file.read_text()) if self.state_file.exists() else {}

    def remember(self, **facts):
        self.state_file.write_text(json.dumps({**self.state(), **facts}))

    def spawn(self, command):
        """A process that belongs to the rig and ends with it."""
        process = servers.spawn(command, self.directory / "rig.log")
        self.remember(pids=self.state().get("pids", []) + [process.pid])
        return process


def end(pid):
    """Ends a process of ours, which may be another's child by now."""
    try:
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: gone(pid), f"process {pid} to end", 10)
    except ProcessLookupError:
        return
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)


def gone(pid):
    try:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
    except ChildProcessError:
        pass
    return not Path(f"/proc/{pid}").exists()


def run(*command, check=True):
    """Runs a command of the rig's; returns its output."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if check and done.returncode:
        raise Impossible(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def unmount(target):
    """By the table of mounts: a mount without its program answers no stat()."""
    if str(target) in mounted_below(os.path.dirname(target)):
        run("umount", "-l", target, check=False)


def mounted_below(directory):
    with open("/proc/self/mounts") as mounts:
        return [line.split()[1] for line in mounts if line.split()[1].startswith(f"{directory}/")]
