# SPDX-License-Identifier: Apache-2.0
"""A network link with a rate: two network namespaces joined by a pair of veth devices."""


from lab import servers
from lab.rigs.memory import Memory
from lab.rigs.rig import Premise, run

SERVER, CLIENT = "10.213.77.1", "10.213.77.2"
DEVICE = "flab"
# Stated, because the system's default may be BBR; a namespace may choose this one on every system.
CONGESTION = "reno"


class Link(Memory):
    name = "link"
    about = "as memory, with servers and clients in network namespaces joined by a link with a rate"
    programs = {**Memory.programs, "ip": "iproute2", "tc": "iproute2"}

    def __init__(self, directory, content, connections=1024, files=None, mbit=100):
        super().__init__(directory, content, connections, files)
        self.mbit = mbit
        self.names = {side: f"flab-{side}" for side in ("server", "client")}
        self.about = (f"as memory, with servers and clients in network namespaces joined by a link of {mbit} Mbit/s "
                      f"(veth with TBF, segmentation offload off, TCP {CONGESTION})")

    def build(self):
        super().build()
        for name in self.names.values():
            run("ip", "netns", "add", name)
        run("ip", "link", "add", DEVICE, "netns", self.names["server"], "type", "veth",
            "peer", "name", DEVICE, "netns", self.names["client"])
        for side, address in (("server", SERVER), ("client", CLIENT)):
            self.inside(side, "ip", "addr", "add", f"{address}/24", "dev", DEVICE)
            self.inside(side, "ip", "link", "set", DEVICE, "gso_max_segs", 1, "up")
            self.inside(side, "sysctl", "-q", "-w", f"net.ipv4.tcp_congestion_control={CONGESTION}")
        self.inside("server", "tc", "qdisc", "add", "dev", DEVICE, "root", "tbf", "rate", f"{self.mbit}mbit",
                    "burst", "16kb", "limit", "1mb")

    def inside(self, side, *command):
        return run("ip", "netns", "exec", self.names[side], *command)

    def remove(self):
        for name in self.names.values():
            run("ip", "netns", "del", name, check=False)

    def place(self, directory):
        enter = {side: ["ip", "netns", "exec", name] for side, name in self.names.items()}
        return servers.Place(directory, self.docroot(), host=SERVER, connections=self.connections,
                             server_prefix=enter["server"], client_prefix=enter["client"])

    def check(self):
        qdisc = self.inside("server", "tc", "qdisc", "show", "dev", DEVICE)
        return super().check() + [Premise("the link has its rate", f"rate {self.mbit}Mbit" in qdisc, qdisc.strip())]
