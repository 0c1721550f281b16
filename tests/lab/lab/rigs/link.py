# SPDX-License-Identifier: Apache-2.0
"""A network link with a rate."""

from lab import servers
from lab.rigs.memory import Memory
from lab.rigs.namespaces import PROGRAMS, SERVER, Namespaces


class Link(Memory):
    name = "link"
    about = "as the rig memory. Network namespaces of servers and clients are joined by a link with a rate"
    programs = {**Memory.programs, **PROGRAMS}

    def __init__(self, directory, content, connections=1024, files=None, mbit=100):
        super().__init__(directory, content, connections, files)
        self.link = Namespaces(mbit, self.key)
        self.about = f"as the rig memory. Network namespaces of servers and clients are joined by a link of {self.link.about}"

    def build(self):
        super().build()
        self.link.build()

    def remove(self):
        self.link.remove()

    def place(self, directory):
        return servers.Place(directory, self.docroot(), host=SERVER, connections=self.connections,
                             server_prefix=self.link.enter["server"], client_prefix=self.link.enter["client"])

    def check(self):
        return [*super().check(), self.link.check()]
