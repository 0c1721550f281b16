# SPDX-License-Identifier: Apache-2.0
"""Every table and figure of the papers that this project comes from: ours beside it, or the reason why there is none.

draw names a function of lab/redraw.py, options are its arguments; needs: {experiment: servers}; programs: of lab/parts.py.
same: another entry that has it.
"""

from dataclasses import dataclass, field, replace

RUAN = "Ruan and Pai, The Origins of Network Server Latency & the Myth of Connection Scheduling"
RUAN_OTHER = "Ruan and Pai, another version of the same paper, whose numbers differ"
HARCHOL = "Harchol-Balter, Schroeder, Bansal and Agrawal, Size-based Scheduling to Improve Web Performance"
PARIAG = "Pariag, Brecht, Harji, Buhr and Shukla, Comparing the Performance of Web Server Architectures"

STOCK, FLASH, AMPED, NEW_FLASH = "stock-prefork-None", "flash-prefork-None", "arch-amped", "arch-new-flash"


def places(rig):
    """{server: its experiment in the rig}"""
    return {STOCK: rig, FLASH: rig, AMPED: f"{rig}-architectures", NEW_FLASH: f"{rig}-architectures"}


METADATA, DISK, LINK = map(places, ("metadata", "disk", "link"))
SIZES = ("size-150MB", "size-300MB")
PARIAGS = ["arch-mt-content", "arch-mt", "arch-symped", "arch-symped-blocking", "arch-shared-symped", "arch-pipeline",
           "arch-sped"]


@dataclass(frozen=True)
class Entry:
    name: str
    paper: str
    label: str
    title: str
    theirs: str
    draw: str = None
    needs: dict = field(default_factory=dict)
    programs: tuple = ()
    options: dict = field(default_factory=dict)
    reason: str = None
    same: str = None


def label(number):
    return f"Table {number.split('-')[1]}" if isinstance(number, str) else f"Figure {number}"


def ruan(number, title, theirs, draw=None, needs=None, reason=None, **options):
    return Entry(f"ruan-{number}", RUAN, label(number), title, theirs, draw, needs or {}, options=options, reason=reason)


def other(number, title, theirs, same=None, reason=None):
    """Of the other version; reason says what ours leaves out, where another entry has it."""
    return Entry(f"ruan-other-{number}", RUAN_OTHER, label(number), title, theirs, same=same and f"ruan-{same}", reason=reason)


def needed(where, servers):
    needs = {}
    for server in servers:
        needs.setdefault(where[server], []).append(server)
    return needs


def on_metadata(*servers):
    return needed(METADATA, servers)


def of_sizes(*servers):
    return {**{name: list(servers) for name in SIZES}, **needed(DISK, servers)}


def profile(number, server, name, title, theirs):
    return ruan(number, title, theirs, "profile", on_metadata(server), server=server, paper=name)


def deciles(number, server, title, theirs, experiment=None):
    where = experiment or METADATA[server]
    return ruan(number, title, theirs, "deciles", {where: [server]}, experiment=where, server=server)


def srpt(number, title, theirs, draw=None, programs=(), reason=None, **options):
    return Entry(f"harchol-{number}", HARCHOL, f"Figure {number}", title, theirs, draw, programs=programs, options=options,
                 reason=reason)


def pariag(number, title, theirs, draw=None, needs=None, reason=None, **options):
    return Entry(f"pariag-{number}", PARIAG, label(number), title, theirs, draw, needs or {}, options=options, reason=reason)


OVERVIEW = "design/overview.md"
PROCESSORS = "The paper compares three generations of processors. Ours is one machine, shown next to the paper's last generation."
DELAYS = "The kernel of these measurements has no netem, so no delay can be set."
TUNING = ("It tunes one server by its number of threads, processes and connections. Our servers have the numbers that their "
          "page names; `archserver --workers` and `--connections` set others.")
MEMORY_CURVES = [STOCK, AMPED]

STEPS = "We have no servers for the steps between Flash and New-Flash, descriptors passed and no mmap."
CHILDREN = "Ours has 256 connections, and 288 children."
AT_90 = "Ours is at 0.95."

ENTRIES = (
    ruan("table-1", "The servers' processors", "300 to 3,000 MHz, three generations",
         reason="Ours is one machine, which [the index](README.md) describes. lmbench was not run on it."),
    ruan("table-2", "Popularity of files, by size of the set", "99 % of the requests take at most 14 % of the set", "popularity_table"),
    ruan("table-3", "Requests by series of sizes", "four series, requested about equally often", "series_table"),
    ruan("table-4", "Service inversion by load", "Apache 0.14 to 0.58, Flash 0.25 to 0.58", "inversion_table",
         needed(LINK, LINK)),
    ruan("table-5", "Latency at 0.95 of the capacity, and capacity",
         "Apache's mean 180 ms, Flashpache's 12 ms; Flash's 181 ms, New-Flash's 29 ms", "latency_table",
         on_metadata(STOCK, FLASH, AMPED, NEW_FLASH)),
    ruan("table-6", "Capacities in memory and on the disk",
         "on the disk Flashpache has 1.05, 1.14 and 1.13 of Apache's, by processor", "capacity_table",
         {"memory-profile": [STOCK, FLASH, AMPED, NEW_FLASH], **needed(DISK, DISK)}),
    ruan(1, "Ready events of Flash", "median 12, mean 61, over 600 at most", "ready_events", on_metadata(AMPED), servers=[AMPED]),
    ruan(2, "Runnable processes of Apache", "of 1,024 processes, none is runnable a third of the time, over 80 % are 40 % of the time",
         "bursts", {"metadata": [STOCK]}, servers=[STOCK]),
    ruan(3, "Steps of a request", "a diagram", reason="It shows no measurement."),
    profile(4, STOCK, "Apache", "Latency of Apache by load", "mean 180 ms and median 6.6 ms at 0.95"),
    profile(5, AMPED, "Flash", "Latency of Flash by load", "mean 181 ms and median 67 ms at 0.95"),
    ruan(6, "Latencies of Apache, their distribution by load", "over 60 % within 10 ms up to 0.95, 18 % above it",
         "cdfs", on_metadata(STOCK), server=STOCK),
    ruan(7, "Latencies of Flash, their distribution by load", "few within 10 ms above 0.95", "cdfs", on_metadata(AMPED),
         server=AMPED),
    ruan(8, "Latency by size of the set", "mean and median grow as soon as the set exceeds the memory", "sizes",
         of_sizes(STOCK, AMPED), servers=[STOCK, AMPED]),
    ruan(9, "Service inversion, an example", "a diagram", reason="It shows no measurement; a unit test computes its example."),
    deciles(10, STOCK, "Sizes by tenth of the latencies, Apache", "the smallest files are in all tenths"),
    deciles(11, AMPED, "Sizes by tenth of the latencies, Flash", "the smallest files are in all tenths"),
    ruan(12, "Flashpache's architecture", "a diagram",
         reason=f"It shows no measurement. [The design](../{OVERVIEW}) has today's."),
    ruan(13, "Ready events of Flash's variants", "mean 61 to 1.6, median 12 to 2", "ready_events", on_metadata(AMPED, NEW_FLASH),
         servers=[AMPED, NEW_FLASH]),
    ruan(14, "Runnable processes of Flashpache", "about 20 % at any time", "bursts", {"metadata": [STOCK, FLASH]},
         servers=[STOCK, FLASH]),
    ruan(15, "Latency by size of the set, the new servers", "the median no longer grows", "sizes",
         of_sizes(FLASH, NEW_FLASH), servers=[FLASH, NEW_FLASH]),
    profile(16, NEW_FLASH, "New-Flash", "Latency of New-Flash by load", "mean 29 ms and median 1.6 ms at 0.95"),
    profile(17, FLASH, "Flashpache", "Latency of Flashpache by load", "mean 12 ms and median 1.1 ms at 0.95"),
    deciles(18, NEW_FLASH, "Sizes by tenth of the latencies, New-Flash", "near the order of sizes; inversion 0.35"),
    ruan(19, "Service inversion by load, old and new servers",
         "lower by over 40 % for New-Flash, almost half for Flashpache", "inversions",
         needed(LINK, LINK)),
    deciles(20, NEW_FLASH, "Sizes by tenth of the latencies, New-Flash in memory", "inversion 0.33", "memory-profile"),
    deciles(21, FLASH, "Sizes by tenth of the latencies, Flashpache", "similar to New-Flash"),
    ruan(22, "Latency in memory by load and processor", "low, and alike at the same load", "means",
         {"memory-profile": MEMORY_CURVES}, note=PROCESSORS, servers=MEMORY_CURVES,
         where={key: "memory-profile" for key in MEMORY_CURVES}),
    ruan(23, "Latency on the disk by load and processor, Apache and Flash",
         "the same on all three processors: the disk is the limit", "means",
         on_metadata(STOCK, AMPED), note=PROCESSORS, servers=[STOCK, AMPED], where=METADATA),
    ruan(24, "Latency on the disk by load and processor, New-Flash and Flashpache",
         "lower with each faster processor", "means",
         on_metadata(FLASH, NEW_FLASH), note=PROCESSORS, servers=[FLASH, NEW_FLASH], where=METADATA),
    other(1, "Latency of Apache by load", "305 Mbit/s; the mean at 0.95 is twice Flash's", 4),
    other(2, "Latency of Flash by load", "352 Mbit/s; at 0.95 the median is like Apache's", 5),
    other(3, "Latencies of Apache, their distribution", "over 60 % within 10 ms above load 0.9", 6),
    other(4, "Latencies of Flash, their distribution", "very few within 10 ms above load 0.9", 7),
    other("table-1", "Requests by series of sizes", "25, 28, 24 and 23 %", "table-3"),
    other(5, "Sizes by tenth of the latencies, Apache at 0.9", "the smallest files are in all tenths", 10, AT_90),
    other(6, "Sizes by tenth of the latencies, Flash at 0.9", "the smallest files are in all tenths", 11, AT_90),
    other(7, "Service inversion of Apache and Flash by load", "above half at high loads", 19),
    other(8, "Latencies of Flash's variants, their distribution", "the median becomes about 1 ms", 16, STEPS),
    other("table-2", "Latency at 0.9 and capacity of Flash's variants",
          "180, 50, 94 and 23 ms; 352, 395, 438 and 450 Mbit/s", "table-5", f"{AT_90} {STEPS}"),
    other(9, "Latency of New-Flash by load", "the 95th percentile is below the mean, and grows less than threefold", 16),
    other(10, "Sizes by tenth of the latencies, New-Flash at 0.9", "near the order of sizes; inversion 0.35", 18, AT_90),
    other(11, "Service inversion of new and old Flash", "lower by over 40 %", 19),
    other(12, "Sizes by tenth of the latencies, New-Flash in memory", "inversion 0.33", 20, AT_90),
    other(13, "Ready events of Flash's variants", "mean 61 to 1.6; 99.9 % below 10", 13),
    other(14, "Ready events of Flash's variants, weighted by the number of events", "", 13, "Ours gives each turn the same weight."),
    other(15, "Runnable processes of 256", "far below their number, and dispersed", 2, CHILDREN),
    other(16, "Runnable processes of 1,024", "close to their number", 2, CHILDREN),
    other(17, "Runnable processes, their distribution", "none is runnable 40 % of the time with 1,024 processes, 20 % with 256", 2, CHILDREN),
    other(18, "Latency by largest congestion window", "33 ms to 10 ms",
          reason="The lab does not limit congestion windows. It schedules by size: see Harchol-Balter's figure 5."),
    srpt(1, "The bottleneck", "a diagram", reason="It shows no measurement."),
    srpt(2, "Queues of Linux", "a diagram", reason="It shows no measurement."),
    srpt(3, "Open, closed and partly open systems", "a diagram", reason="It shows no measurement."),
    srpt(4, "Sizes of the files that are asked for", "mean 5 KB; the largest 3 % make up half of the bytes",
         reason="`tests/lab/srpt.py` prints the sizes of its own files when it starts."),
    srpt(5, "Mean response time by load, open and partly open", "3 to 8 times lower above load 0.5", "srpt_means",
         ("srpt-10", "srpt-partly-open")),
    srpt(6, "Mean slowdown by load", "4 times lower at 0.5, 16 times at 0.9", "srpt_slowdowns", ("srpt-10",)),
    srpt(7, "FAIR in a partly open system with 1, 5 and 50 requests", "nearly the same for all",
         reason="Figure 5 has the open system and five requests. `srpt.py --partly-open 50` has the rest."),
    srpt(8, "Mean response time by load at 100 Mbit/s", "5 times lower at 0.8", "srpt_means", ("srpt-100",)),
    srpt(9, "Mean response time by size of the file", "ten times lower at 0.8 for the smallest 80 %, five times for all but the largest 1 %",
         "srpt_sizes", ("srpt-10",)),
    srpt(10, "By round trip", "at 0.9, from 4 times lower without delay to 2 times at 100 ms", reason=DELAYS),
    srpt(11, "By loss", "at 0.9, from 4 times lower to a quarter at 10 %; at 0.7, nothing above 2 %", "srpt_losses",
         ("srpt-10", "srpt-loss-1", "srpt-loss-3")),
    srpt(12, "By loss and delay", "as by loss alone",
         reason=DELAYS + " Figure 11 has loss alone, which the paper found to dominate."),
    srpt(13, "Clients far away, mean", "the farther away, the smaller the gain", reason="The lab has no distant clients. " + DELAYS),
    srpt(14, "Clients far away, by size", "no unfairness to large files", reason="The lab has no distant clients. " + DELAYS),
    *(pariag(number, title, "", reason=TUNING) for number, title in (
        (1, "Knot with a cache of its own, tuned"), (2, "Knot with non-blocking sendfile, tuned"),
        (3, "Knot with blocking sendfile, tuned"), (4, "userver with non-blocking sendfile, tuned"),
        (5, "userver with blocking sendfile, tuned"), (6, "WatPipe, tuned"))),
    pariag(7, "Throughput of the architectures",
           "shared-SYMPED, SYMPED and the pipeline alike, Knot less by 15 to 25 %, one process by 37 %", "architectures",
           {"architectures": PARIAGS}),
    pariag(8, "Response times of the architectures", "alike up to the capacity", "architecture_latencies",
           {"architectures": PARIAGS}),
    pariag("table-1", "Where the time goes", "copying 18 % in Knot with a cache; user threads 7 to 11 %", "architecture_table",
           {"architectures": PARIAGS}),
)


def find(name):
    return next(entry for entry in ENTRIES if entry.name == name)


def measurable():
    return [entry.name for entry in ENTRIES if entry.needs or entry.programs]


def experiments_for(entry, experiments):
    """The measurements that it needs: these experiments, with these servers alone."""
    def kept(one, names):
        servers = [key for key in one.servers if key in names]
        return replace(one, servers=servers, reference=one.reference if one.reference in servers else None)
    return [kept(one, entry.needs[one.name]) for one in experiments if one.name in entry.needs]


def programs_for(entry, parts):
    return [one for part in parts for one in part.programs if one.name in entry.programs]
