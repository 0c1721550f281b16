# SPDX-License-Identifier: Apache-2.0
"""A real network file system: sshfs from a private sshd on loopback."""

import os
import re
import shutil
from pathlib import Path

import httpd as httpd_tests
import procs

from lab import machine
from lab.rigs.rig import Premise, Rig, run, unmount
from waiting import wait_for

SSHD = "/usr/sbin/sshd"
PRIVILEGE_DIR = Path("/run/sshd")


class Remote(Rig):
    """Client and server of a network file system on this machine. Its first process is the server."""

    kind = ""                   # as the table of mounts names it

    def __init__(self, directory, content, connections=1024, files=None):
        super().__init__(directory, content, connections, files)
        self.target = self.directory / "mnt"

    def build(self):
        super().build()
        self.target.mkdir(exist_ok=True)

    def remove(self):
        unmount(self.target)

    def docroot(self):
        return self.target

    def server_pids(self):
        first = self.state()["pids"][0]
        return [first, *procs.descendants(first)]

    @staticmethod
    def elsewhere():
        """Before a command that shall not take the servers' processors."""
        return machine.on_processors(machine.other_processors())

    def wait_for_mount(self):
        wait_for(lambda: os.path.ismount(self.target), f"{self.name} at {self.target}")

    @staticmethod
    def listens(port):
        found = Path("/proc/net/tcp").read_text()
        return re.search(rf": 0100007F:{port:04X} 00000000:0000 0A", found) is not None

    def check(self):
        with open("/proc/self/mounts") as mounts:
            kind = next((line.split()[2] for line in mounts if line.split()[1] == str(self.target)), "nothing")
        path = self.target / self.content.urls(1, 0)[0].lstrip("/")
        return [Premise(f"{self.kind} is mounted", kind == self.kind, kind),
                Premise("its files can be read", os.stat(path).st_size > 0, str(path))]


class Network(Remote):
    name = "network"
    about = "sshfs with its defaults, from a private sshd on loopback"
    kind = "fuse.sshfs"
    programs = {"sshfs": "sshfs", "ssh-keygen": "openssh-client", SSHD: "openssh-server"}

    def __init__(self, directory, content, connections=1024, files=None):
        super().__init__(directory, content, connections, files)
        self.keys = self.directory / "keys"

    def build(self):
        super().build()
        self.make_keys()
        port = httpd_tests.free_port()
        self.spawn([*self.elsewhere(), SSHD, "-D", "-e", "-f", self.sshd_config(port)])
        wait_for(lambda: self.listens(port), "sshd to listen")
        self.spawn([*self.elsewhere(), "sshfs", "-f", "-p", port, f"root@127.0.0.1:{self.files}", self.target,
                    "-o", f"IdentityFile={self.keys}/client,StrictHostKeyChecking=no",
                    "-o", f"UserKnownHostsFile={self.keys}/known", "-o", "BatchMode=yes,allow_other"])
        self.wait_for_mount()

    def make_keys(self):
        shutil.rmtree(self.keys, ignore_errors=True)
        self.keys.mkdir(mode=0o700)
        for name in ("host", "client"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.keys / name)
        PRIVILEGE_DIR.mkdir(exist_ok=True)

    def sshd_config(self, port):
        path = self.keys / "sshd_config"
        path.write_text(f"""ListenAddress 127.0.0.1
Port {port}
HostKey {self.keys}/host
AuthorizedKeysFile {self.keys}/client.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
StrictModes no
PidFile none
Subsystem sftp internal-sftp
""")
        return path

    def remove(self):
        super().remove()
        shutil.rmtree(self.keys, ignore_errors=True)
