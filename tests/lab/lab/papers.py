# SPDX-License-Identifier: Apache-2.0
"""The papers' measurements, to stand beside ours.

Ruan and Pai, "The Origins of Network Server Latency & the Myth of Connection Scheduling". Pentium 4, 1 GB of
memory, 3 GB set, 1024 connections, FreeBSD 4.6, Apache 1.3.27.
"""

# Table 5: median, mean, 90th percentile in ms at 0.95 load, capacity in Mbit/s.
LATENCIES = {"Apache": (6.6, 180.2, 414.7, 241.1), "Flashpache": (1.1, 12.0, 5.7, 272.9),
             "Flash": (67.4, 181.0, 362.0, 336.0), "New-Flash": (1.6, 29.3, 6.6, 450.0)}
# Table 4, inversion by load; figure 19's text: "almost halved" for Flashpache.
INVERSION = {0.2: 0.14, 0.4: 0.23, 0.6: 0.28, 0.8: 0.51, 0.9: 0.54, 0.95: 0.58}
INVERSION_FLASH = {0.2: 0.25, 0.4: 0.35, 0.6: 0.45, 0.8: 0.52, 0.9: 0.56, 0.95: 0.58}
# Table 6, the Pentium 4's column, in Mbit/s: in memory (0.5 GB), on the disk (3 GB).
CAPACITIES = {"Apache": (437.6, 241.1), "Flash": (787.0, 336.0), "Flashpache": (None, 272.9), "New-Flash": (None, 450.0)}
# Table 2: MB of a set, and the MB that its top 50, 90, 95 and 99 % of the requests need. Table 3: % of each series.
TOP = (0.5, 0.9, 0.95, 0.99)
POPULARITY = {1024: (2.1, 39.5, 64.6, 138.3), 2048: (3.0, 72.9, 123.6, 262.8), 3072: (4.4, 101.8, 181.2, 385.7),
              4096: (4.9, 131.8, 235.0, 505.0)}
SERIES = (25.06, 28.05, 23.55, 23.34)
# Section 3.2 and 5.2, 1024 processes.
BURSTS = "Apache: no process runnable one third of the time, over 80 % of them 40 % of the time; " \
         "Flashpache: about 20 % runnable at any time"
# Which of our servers stands for which of the paper's.
OURS = {"Apache": "stock-prefork-None", "Flashpache": "flash-prefork-None", "Flash": "arch-amped", "New-Flash": "arch-new-flash"}

# Pariag and others, table 1: replies/s of each server at 12,000 requests/s, and its name there; the one process is figure 7's.
REPLIES = {"arch-mt-content": ("knot-c", 8394), "arch-mt": ("knot-b", 9238), "arch-shared-symped": ("userver-shared-nb", 10_712),
           "arch-symped": ("userver-nb", 10_122), "arch-symped-blocking": ("userver-b", 10_201),
           "arch-pipeline": ("WatPipe", 10_691)}


def factors():
    """{figure: stock Apache's over Flashpache's at 0.95 load on the disk}"""
    apache, ours = LATENCIES["Apache"], LATENCIES["Flashpache"]
    names = ("p50", "mean", "p90")
    return {name: apache[i] / ours[i] for i, name in enumerate(names)} | {"capacity": ours[3] / apache[3]}
