# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces, the servers' and the clients', joined by a pair of veth devices with a rate."""

from lab.rigs.rig import Premise, run

SERVER, CLIENT = "10.213.77.1", "10.213.77.2"
DEVICE = "flab"
# Stated, because the system's default may be BBR; a namespace may choose this one on every system.
CONGESTION = "reno"
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux"}


class Namespaces:
    def __init__(self, mbit, key):
        self.mbit = mbit
        self.names = {side: f"flab-{key}-{side}" for side in ("server", "client")}
        # Not by "ip netns exec": that hides the control groups, from which a server derives its sizes.
        self.enter = {side: ["nsenter", f"--net=/run/netns/{name}"] for side, name in self.names.items()}
        self.about = f"{mbit} Mbit/s (veth with TBF, segmentation offload off, TCP {CONGESTION})"

    def build(self):
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
        return run(*self.enter[side], *command)

    def remove(self):
        for name in self.names.values():
            run("ip", "netns", "del", name, check=False)

    def check(self):
        qdisc = self.inside("server", "tc", "qdisc", "show", "dev", DEVICE)
        rates = (f"rate {self.mbit}Mbit", f"rate {self.mbit // 1000}Gbit")
        return Premise("the link has its rate", any(rate in qdisc for rate in rates), qdisc.strip())
