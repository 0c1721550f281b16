# SPDX-License-Identifier: Apache-2.0
"""Rigs: what the servers' files lie on, or what lies between servers and clients.

Each is set up, checked and removed by one command (tests/lab/rig), or used as a context manager.
What it made is known from its directory alone, so that another process can remove it.
"""

from lab.rigs.contention import Contention
from lab.rigs.disk import Disk
from lab.rigs.link import Link
from lab.rigs.memory import Memory
from lab.rigs.network import Network
from lab.rigs.slow import Slow

RIGS = {rig.name: rig for rig in (Memory, Disk, Slow, Network, Contention, Link)}
