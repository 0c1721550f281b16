# SPDX-License-Identifier: Apache-2.0
"""The papers' measurements, to stand beside ours.

Ruan and Pai, "The Origins of Network Server Latency & the Myth of Connection Scheduling": Pentium 4, 1 GB of
memory, 3 GB set, 1024 connections, FreeBSD 4.6, Apache 1.3.27.
"""

# Table 5: median, mean, 90th percentile in ms at 0.95 load, capacity in Mbit/s.
LATENCIES = {"Apache": (6.6, 180.2, 414.7, 241.1), "Flashpache": (1.1, 12.0, 5.7, 272.9),
             "Flash": (67.4, 181.0, 362.0, 336.0), "New-Flash": (1.6, 29.3, 6.6, 450.0)}
# Table 4, inversion of Apache by load; figure 19's text: "almost halved" for Flashpache.
INVERSION = {0.2: 0.14, 0.4: 0.23, 0.6: 0.28, 0.8: 0.51, 0.9: 0.54, 0.95: 0.58}
# Section 3.2 and 5.2, 1024 processes.
BURSTS = "Apache: no process runnable one third of the time, over 80 % of them 40 % of the time; " \
         "Flashpache: about 20 % runnable at any time"


def factors():
    """{figure: stock Apache's over Flashpache's at 0.95 load on the disk}"""
    apache, ours = LATENCIES["Apache"], LATENCIES["Flashpache"]
    names = ("p50", "mean", "p90")
    return {name: apache[i] / ours[i] for i, name in enumerate(names)} | {"capacity": ours[3] / apache[3]}
