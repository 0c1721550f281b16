# SPDX-License-Identifier: Apache-2.0
"""A disk that is slower than memory by far, and less memory than documents.

ext4 in an image, with direct I/O so that the image is not cached twice. The server is in a cgroup, with the page
cache, dentries and inodes that it uses. Its reads are throttled at the disk under the image: a throttle on the
loop device would let metadata through.
"""

import os
import random
import subprocess
import sys
import time

from lab import servers
from lab.rigs.cgroup import Cgroup, disk_of, why_not
from lab.rigs.rig import Premise, Rig, run, unmount
from waiting import wait_for

PROBES = 40
FLAT = 0.15          # reads per request of two windows in a row may differ by so much
WINDOW_S = 2
IDLE = 64 << 20      # about what an idle server takes, the kernel's share included
# The calls stat and open of files that slept: the kernel counts sleeps for each thread.
PROBE = """
import os, resource, sys
def sleeps(): return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
asleep = [0, 0]
for path in sys.argv[1:]:
    before = sleeps(); os.stat(path); between = sleeps(); os.close(os.open(path, os.O_RDONLY))
    asleep[0] += between > before; asleep[1] += sleeps() > between
print(*asleep)
"""


def mounted(options, device, place):
    """Mounts it. A process that got mounts of its own just then has a copy of the one before, which keeps the device busy."""
    run("mount", "-o", options, device, place, check=False)
    return os.path.ismount(place)


class Disk(Rig):
    name = "disk"
    programs = {"mkfs.ext4": "e2fsprogs", "losetup": "mount"}
    FILL_MOST_S = 300

    def __init__(self, directory, content, connections=1024, files=None, iops=150, memory=None,
                 inode_readahead=32):
        super().__init__(directory, content, connections, files=directory / "mnt")
        self.iops = iops
        self.memory = memory or content.bytes() // 3
        self.inode_readahead = inode_readahead
        self.image = directory / "disk.img"
        self.group = Cgroup(f"flashpache-lab-{self.key}")
        self.about = (f"ext4 in a loop image, {self.iops} reads/s, inode_readahead_blks={inode_readahead}. Beyond what the idle server takes: "
                      f"{self.memory >> 20} MiB of memory for page cache, names and inodes. Set of {content.bytes() >> 20} MiB")

    def missing(self):
        reason = why_not()
        return super().missing() + ([reason] if reason else [])

    def build(self):
        self.files.mkdir(exist_ok=True)
        run("fallocate", "-l", self.image_bytes(), self.image)
        self.format()
        self.remember(loop=run("losetup", "--direct-io=on", "--show", "-f", self.image).strip())
        run("mount", self.state()["loop"], self.files)
        super().build()
        self.fresh()

    def image_bytes(self):
        return int(self.content.bytes() * 1.1) + (64 << 20)

    def format(self):
        run("mkfs.ext4", "-q", "-F", self.image)

    def fresh(self):
        """An empty group, and none of the file system in memory."""
        run("umount", self.files)
        options = f"ro,noatime,inode_readahead_blks={self.inode_readahead}"
        wait_for(lambda: mounted(options, self.state()["loop"], self.files), f"{self.state()['loop']} to be mounted again", 60)
        self.group.remove()
        self.group.create()
        self.group.limit_memory(self.memory + IDLE)   # a server that derives sizes from its limit finds one, as in a container

    def remove(self):
        unmount(self.files)
        if "loop" in self.state():
            run("losetup", "-d", self.state()["loop"], check=False)
        self.group.remove()

    def place(self, directory):
        self.fresh()
        return servers.Place(directory, self.docroot(), connections=self.connections,
                             server_prefix=self.group.enter())

    def started(self):
        self.group.limit_memory(self.group.memory_used() + self.memory)

    def reads(self):
        return self.group.reads(disk_of(self.directory))

    def throttle(self):
        self.group.limit_reads(disk_of(self.directory), self.iops)

    def warm(self, session, seconds):
        """Asks for all that the server is to know, at full speed. Then asks, throttled, until the reads per request of
        two windows agree, or the time is over."""
        self.fill(session)
        self.throttle()
        last = None
        end = time.monotonic() + seconds
        while last is None or time.monotonic() < end:
            before = self.reads()
            found = session.ask("warm", WINDOW_S)
            each = (self.reads() - before) / max(1, found["requests"])
            if last is not None and abs(each - last) <= FLAT * last:
                return
            last = each

    def fill(self, session):
        """Each file once, so that every server has seen as much, however fast it is."""
        session.load.ask_for(self.content.all_urls())
        session.load.run("fill", "-u", session.load.urls, "--once", "-d", self.FILL_MOST_S)

    def probe(self):
        """The premise that looking up a name reads the disk."""
        self.fresh()
        self.started()
        self.throttle()
        paths = {self.files / url[1:] for url in self.content.urls(20 * PROBES, 0)}
        chosen = random.Random(1).sample(sorted(map(str, paths)), min(PROBES, len(paths)))
        done = subprocess.run([*self.group.enter(), sys.executable, "-c", PROBE, *chosen],
                              capture_output=True, text=True, check=True)
        stats, opens = map(int, done.stdout.split())
        return [Premise("a first stat of a file, or the open after it, sleeps", stats + opens > 0,
                        f"{stats} and {opens} of {len(chosen)}")]

    def check(self):
        return [*self.probe(),
                Premise("the set is larger than its memory", self.content.bytes() > 2 * self.memory,
                        f"{self.content.bytes() >> 20} and {self.memory >> 20} MiB")]
