# SPDX-License-Identifier: Apache-2.0
"""Rigs: the file systems of the servers' files, or the links between servers and clients.

One command sets up, checks and removes each (tests/lab/rig), or a context manager. A rig's directory alone shows
what it made, so that another process can remove it.
"""

from lab.rigs.contention import Contention
from lab.rigs.disk import Disk
from lab.rigs.link import Link
from lab.rigs.memory import Memory
from lab.rigs.metadata import Metadata
from lab.rigs.network import Network
from lab.rigs.remote import Davfs, Gluster, Rclone
from lab.rigs.slow import Slow

RIGS = {rig.name: rig for rig in (Memory, Disk, Metadata, Slow, Network, Rclone, Davfs, Gluster, Contention, Link)}
