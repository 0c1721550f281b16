# SPDX-License-Identifier: Apache-2.0
"""A disk that is asked for names alone: many files, and less memory than their inodes and directories need.

ext4 in an image, as the rig disk has it. Files are holes: their bytes are read without the disk, so each read of it is
of a directory or of an inode. The papers' server was in this place: kernel memory for names, too, was short.
"""

import workload

from lab import servers
from lab.load import Content
from lab.rigs.disk import Disk
from lab.rigs.namespaces import PROGRAMS, SERVER, Namespaces
from lab.rigs.rig import Premise, run

# The kernel's own, per file: ext4_inode_cache and dentry of Linux 6.
FILE_IN_MEMORY = 1100 + 192
LINK_MBIT = 1000
INODES_SPARE = 1.02
BLOCK = 4096
MIB = 1 << 20


class Holes(Content):
    """Files of the usual sizes without any block."""

    def make(self, docroot):
        return workload.make_holes(docroot / self.PREFIX.strip("/"), self.directories)

    def files(self):
        return self.directories * workload.FILES_PER_DIRECTORY


class Metadata(Disk):
    name = "metadata"
    programs = {**Disk.programs, **PROGRAMS}
    FILL_MOST_S = 60

    def __init__(self, directory, content, connections=256, files=None, iops=150, memory=192 * MIB, inode_readahead=32,
                 learn=60_000):
        """learn: the requests before the disk is throttled."""
        super().__init__(directory, content, connections, files, iops, memory, inode_readahead)
        self.learn = learn
        self.link = Namespaces(LINK_MBIT, self.key)
        self.about = (f"ext4 in a loop image, {iops} reads/s, inode_readahead_blks={inode_readahead}. "
                      f"{content.files():,} files without blocks in {content.directories:,} directories. Beyond what the idle "
                      f"server takes: {memory >> 20} MiB of memory for names, inodes and page cache. A link of {self.link.about}")

    def build(self):
        super().build()
        self.link.build()

    def remove(self):
        super().remove()
        self.link.remove()

    def place(self, directory):
        self.fresh()
        return servers.Place(directory, self.docroot(), host=SERVER, connections=self.connections,
                             server_prefix=[*self.group.enter(), *self.link.enter["server"]],
                             client_prefix=self.link.enter["client"])

    def image_bytes(self):
        """Two blocks a directory, 256 bytes an inode, and room for the journal."""
        return self.content.directories * 2 * BLOCK + self.content.files() * 512 + 128 * MIB

    def format(self):
        inodes = int((self.content.files() + self.content.directories) * INODES_SPARE) + 1000
        run("mkfs.ext4", "-q", "-F", "-I", 256, "-N", inodes, self.image)

    def fill(self, session):
        """As many requests for every server, by their popularity: all files would take minutes."""
        session.load.ask_for(self.content.urls(self.learn, session.seed))
        session.load.run("fill", "-u", session.load.urls, "--once", "-d", self.FILL_MOST_S)

    def check(self):
        needed = self.content.files() * FILE_IN_MEMORY
        return [*self.probe(), self.link.check(), Premise("inodes and names do not fit into its memory", needed > self.memory,
                                       f"{needed >> 20} and {self.memory >> 20} MiB")]
