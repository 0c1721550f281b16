# SPDX-License-Identifier: Apache-2.0
"""A control group with a bound on memory and on a disk's reads, in version 1 or 2."""

import os
import re
import time
from pathlib import Path

from lab import Impossible

ROOT = Path("/sys/fs/cgroup")
NEEDED = ("memory", "blkio")
REMOVE_TRIES = 100


def unified():
    """True if version 2 has the controllers."""
    path = ROOT / "cgroup.controllers"
    return path.exists() and "memory" in path.read_text().split()


def why_not():
    """The reason why there can be no such group here, or None."""
    if unified():
        return None if "io" in (ROOT / "cgroup.controllers").read_text().split() else "cgroup2 has no io controller"
    lacking = [name for name in NEEDED if not (ROOT / name / "cgroup.procs").exists()]
    return f"no cgroup controller {', '.join(lacking)} is mounted" if lacking else None


def disk_of(path):
    """MAJOR:MINOR of the whole disk under a directory."""
    number = os.stat(path).st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if not device.exists():
        raise Impossible(f"{path} lies on no disk: choose another place with --work")
    if (device / "partition").exists():
        device = device.parent
    return (device / "dev").read_text().strip()


class Cgroup:
    def __init__(self, name):
        self.version2 = unified()
        if self.version2:
            self.memory = self.io = ROOT / name
        else:
            self.memory, self.io = ROOT / "memory" / name, ROOT / "blkio" / name

    def directories(self):
        return {self.memory, self.io}

    def create(self):
        if self.version2:
            (ROOT / "cgroup.subtree_control").write_text("+memory +io")
        for path in self.directories():
            path.mkdir(exist_ok=True)

    def remove(self):
        """The kernel may need a moment after the last process has ended."""
        for path in self.directories():
            for _ in range(REMOVE_TRIES):
                try:
                    path.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.05)

    def enter(self):
        """Prefix for a command that is to run in the group."""
        joins = "; ".join(f"echo $$ > {path}/cgroup.procs" for path in self.directories())
        return ["sh", "-c", f'{joins}; exec "$@"', "sh"]

    def memory_used(self):
        name = "memory.current" if self.version2 else "memory.usage_in_bytes"
        return int((self.memory / name).read_text())

    def limit_memory(self, size):
        name = "memory.max" if self.version2 else "memory.limit_in_bytes"
        (self.memory / name).write_text(str(size))

    def limit_reads(self, disk, iops):
        if self.version2:
            (self.io / "io.max").write_text(f"{disk} riops={iops}")
        else:
            (self.io / "blkio.throttle.read_iops_device").write_text(f"{disk} {iops}")

    def reads(self, disk):
        """The number of reads of the disk."""
        if self.version2:
            found = re.search(rf"^{disk} .*\brios=(\d+)", (self.io / "io.stat").read_text(), re.MULTILINE)
        else:
            text = (self.io / "blkio.throttle.io_serviced").read_text()
            found = re.search(rf"^{disk} Read (\d+)", text, re.MULTILINE)
        return int(found.group(1)) if found else 0
