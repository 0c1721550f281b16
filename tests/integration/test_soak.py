# SPDX-License-Identifier: Apache-2.0
"""Random changes of every kind while clients read. Each response was true at some moment between its end and a little
(the bound of freshness) before its request.

FLASHPACHE_LONG=1: ten times the files, half an hour; another number: so many seconds. Stock goes through the same
and prints how often it has the races that no server is free of (see soak_model). Then the same with random faults
(soak_faults), of FLASHPACHE_SEED or of a seed that is printed. The checker has tests of its own.
"""

import contextlib
import marshal
import multiprocessing
import os
import random
import time
from collections import Counter, namedtuple

import pytest

import procs
import sanitizer
import soak_changes
import soak_readers
import soak_tree as tree
import standstill
from conftest import SELFCHECK
from forms import chosen
from freshness import WATCHED, bound_s, settings
from soak_faults import Faults
from soak_model import CUT, NOTHING, ODD, RECORD, VERDICTS, WHOLE, WRONG, Model, Record
from waiting import wait_for

LONG = int(os.environ.get("FLASHPACHE_LONG", "0"))
LONG_S = 1650
Size = namedtuple("Size", "tops slots files seconds")
SHORT_FORM, LONG_FORM = Size(20, 10, 50, chosen(8, 20)), Size(20, 50, 100, LONG if LONG > 1 else LONG_S)
STOCK_FORM = SHORT_FORM._replace(seconds=10)
FAULTS_LONG_S = 900
FAULTS_FORM = Size(20, 10, 50, LONG if LONG > 1 else FAULTS_LONG_S if LONG else 12)
CHANGES_PER_S = 200
READERS, CONNECTIONS = 2, 16        # processes, and each one's connections
RATE = chosen(1500, 3500)           # requests a second of each process; two cores bear this beside the servers
WARM_UP = 0.4                       # of the time; afterwards nothing may grow
MEMORY, MAX_DESCRIPTORS, LEASES = "256K", 1000, 300
OTHER_DESCRIPTORS = 250             # connections, the workers' and the children's own
GROWTH_KIB = 6000
LEAST = chosen(1000, 4000)          # responses of the short form; fewer would say little
LEAST_WITH_FAULTS = 1000
MIXED_SHARE = 1e-4

Result = namedtuple("Result", "counts examples history samples seconds")
Sample = namedtuple("Sample", "when who pid rss_kib descriptors")


def sample(server):
    """The present resources of the daemon and each child."""
    groups = {"child": server.pids()[1:]}
    if not SELFCHECK and server.socket:
        groups["daemon"] = [server.daemon.pid]
        groups["worker"] = server.daemon.worker_pids()
    made = []
    for who, pids in groups.items():
        for pid in pids:
            try:
                made.append(Sample(time.monotonic(), who, pid, procs.memory_kib(pid), procs.fd_count(pid)))
            except OSError:         # it has just ended
                continue
    return made


def soak(server, root, size, directory, bound, faults=None, seed=1):
    """Make the tree, change and read it, with faults or without; the verdicts on all responses."""
    layout = tree.Layout(size.tops, size.slots, size.files)
    tree.make(root, layout)
    choose = soak_readers.Zipf(layout.names)
    records = [directory / f"records-{i}" for i in range(READERS)]
    history = directory / "history"
    context = multiprocessing.get_context("fork")
    jobs = [context.Process(target=soak_readers.run, args=(layout, choose, server.port, CONNECTIONS, RATE, seed * i,
                                                           size.seconds, path, faults is not None))
            for i, path in enumerate(records)]
    jobs.append(context.Process(target=soak_changes.run, args=(root, layout, choose, bound, seed, CHANGES_PER_S,
                                                               size.seconds, history)))
    samples = run_all(jobs, server, size.seconds, faults)
    return judge(layout, history, records, bound, samples, size.seconds)


def run_all(jobs, server, seconds, faults):
    """Run the processes to their end, sampling every second, with a fault now and then."""
    samples, end = [], time.monotonic() + seconds + 60
    for job in jobs:
        job.start()
    try:
        while any(job.is_alive() for job in jobs):
            samples += sample(server)
            assert time.monotonic() < end, "a process of the soak does not end"
            next_sample = time.monotonic() + 1
            while faults and time.monotonic() < next_sample:
                faults.step()
                time.sleep(0.02)
            time.sleep(max(0, next_sample - time.monotonic()))
    finally:
        for job in jobs:
            job.kill()
            job.join()
    return samples


def judge(layout, history, records, bound, samples, seconds):
    """The verdicts; a missing file means a process that failed."""
    made = marshal.loads(history.read_bytes())
    model, counts, examples = Model(layout, made, bound), Counter(), []
    for path in records:
        with open(f"{path}.odd", "rb") as odd:
            found, some = model.judge_file(path, marshal.load(odd))
        counts += found
        examples += some
    return Result(counts, examples, made, samples, seconds)


def table(name, result):
    counts, total = result.counts, sum(result.counts[v] for v in VERDICTS)
    kinds = Counter(change[2][0] for change in result.history)
    print(f"\n{name}: {total} responses in {result.seconds} s ({total / result.seconds:.0f}/s), "
          f"{len(result.history)} changes ({', '.join(f'{n} {k}' for k, n in kinds.most_common())})")
    print("  status   " + "  ".join(f"{s} {counts[s]}" for s in sorted(k for k in counts if isinstance(k, int))))
    print("  verdict  " + "  ".join(f"{v} {counts[v]}" for v in VERDICTS))
    for who in ("daemon", "worker", "child"):
        early, late = halves(result.samples, who)
        if late:
            print(f"  {who:8} RSS {early.rss_kib} KiB at most before, {late.rss_kib} after; descriptors "
                  f"{early.descriptors} before, {late.descriptors} after")
    for example in result.examples:
        print("  " + example)


def halves(samples, who):
    """The largest numbers of any one process, (before, after) the middle of what follows the warm-up."""
    mine = [s for s in samples if s.who == who]
    if not mine:
        return None, None
    begin, end = mine[0].when, mine[-1].when
    warm = begin + WARM_UP * (end - begin)
    middle = (warm + end) / 2

    def most(part):
        return Sample(0, who, 0, max(s.rss_kib for s in part), max(s.descriptors for s in part))
    return most([s for s in mine if warm <= s.when <= middle]), most([s for s in mine if s.when >= middle])


def check(result, least, wrong=WRONG, daemon=None):
    found = {v: result.counts[v] for v in wrong if result.counts[v]}
    unwatched = (" (the system refused watches, FP0042: what is not watched is valid for ttl_ms; does "
                 "something else use them up?)" if daemon and "FP0042" in daemon.log_text() else "")
    assert not found, f"{found}{unwatched}: " + "\n".join(result.examples)
    total = sum(result.counts[v] for v in VERDICTS)
    assert total >= least or sanitizer.KIND     # they take most of the time
    # Where nothing is watched, each part of a path has any age within the TTL.
    assert result.counts["mixed"] <= MIXED_SHARE * total or not WATCHED
    assert all(result.counts[status] for status in (200, 403, 404))


def check_growth(result):
    bounds = {"daemon": MAX_DESCRIPTORS + OTHER_DESCRIPTORS, "worker": OTHER_DESCRIPTORS,
              "child": LEASES + OTHER_DESCRIPTORS}
    for who, most in bounds.items():
        early, late = halves(result.samples, who)
        assert late.descriptors <= most, f"{who}: {late}"
        assert late.rss_kib - early.rss_kib <= GROWTH_KIB or sanitizer.KIND, f"{who}: {early} {late}"


def notes(server):
    """The number of each note, from a log that may be too long for memory."""
    with open(server.access_log, errors="replace") as log:
        return dict(Counter(line.split("\t")[1] for line in log))


SAYS_WHO_SERVED = 'Header always set X-Served "expr=%{note:flashpache}"\n'


def config(root, leases=True):
    return (f"<Directory {root}>\nAllowOverride All\nOptions FollowSymLinks\n</Directory>\n"
            + (f"FlashpacheLeases {LEASES}\n" if leases else ""))


def test_every_response_was_true(lab, base):
    root = base / "soak"
    root.mkdir()
    local = settings(True)
    server = lab.under_test("flash", root, config=config(root, not SELFCHECK) + SAYS_WHO_SERVED, admission=None,
                            daemon_settings={**local, "memory": MEMORY, "open_files": MAX_DESCRIPTORS})
    result = soak(server, root, LONG_FORM if LONG else SHORT_FORM, lab.base, 0 if SELFCHECK else bound_s(True))
    name = "stock in Flashpache's place" if SELFCHECK else "Flashpache"
    table(name, result)
    # A length and a file of different moments are stock's race, and not ours.
    check(result, LEAST, WRONG if SELFCHECK else (*WRONG, "spliced"), getattr(server, "daemon", None))
    if not SELFCHECK:
        print(f"  notes    {notes(server)}")
        check_growth(result)


def has_its_workers(daemon):
    return daemon.counters()["workers"] == daemon.settings["workers"]


@pytest.mark.full
@pytest.mark.needs_flashpache
def test_random_faults(lab, base, flashpachectl, outcome):
    seed = int(os.environ.get("FLASHPACHE_SEED", "0")) or random.randrange(1, 1 << 30)
    root = base / "soak-faults"
    root.mkdir()
    directory = lab.base / "fault-records"
    directory.mkdir()
    server = lab.under_test("faults", root, config=config(root) + SAYS_WHO_SERVED, admission=None,
                            daemon_settings={**settings(True), "workers": 8, "lookup_timeout_ms": 1000,
                                             "memory": MEMORY, "open_files": MAX_DESCRIPTORS})
    faults = Faults(server, flashpachectl, root, seed)
    print(f"\nFLASHPACHE_SEED={seed}")
    watch = standstill.Watch(server.daemon) if LONG else contextlib.nullcontext()
    with watch:
        result = soak(server, root, FAULTS_FORM, directory, bound_s(True), faults, seed)
    table("Flashpache with random faults", result)
    made = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in sorted(faults.made.items()))
    print(f"  faults   {made}\n  notes    {notes(server)}")
    if LONG:
        print(f"  pieces of work over 5 ms: {len(watch.pieces)}, of them the daemon's own: {len(watch.own())}")
        for line, gaps_ms in watch.pieces:
            print(f"    {line}; the processor stood still for {', '.join(f'{gap:.1f}' for gap in gaps_ms)} ms")
        assert not watch.own()
    check(result, LEAST_WITH_FAULTS, daemon=server.daemon)
    check_growth(result)
    wait_for(lambda: has_its_workers(server.daemon), "all workers to be there again")
    counts = result.counts
    outcome("fault", f"random faults and random changes for {result.seconds} s",
            requests=sum(counts[v] for v in VERDICTS), failed=counts["lost"],
            wrong=counts["stale"] + counts["torn"], note=f"{made}; {counts['stock']} that httpd served itself had "
            f"a race that stock has; FLASHPACHE_SEED={seed}")


@pytest.mark.full
@pytest.mark.needs_flashpache
def test_stock_beside_it(lab, base):
    root = base / "soak-stock"
    root.mkdir()
    directory = lab.base / "stock-records"
    directory.mkdir()
    result = soak(lab.stock("stock", root, config=config(root, False)).start(), root, STOCK_FORM, directory, 0)
    table("stock, nothing older than its request allowed", result)
    # httpd looks and opens at two moments, so it may answer 403 for a just removed file, and the like.
    check(result, LEAST / 4, ("lost",))


# The checker

SMALL = tree.Layout(2, 2, 3)
NUMBER = 0
NAME = SMALL.name(NUMBER)
FILE, TOP, SLOT = tree.file_key(NAME, 0), tree.top_key(NAME), tree.slot_key(NAME)
THING = tree.object_key(NAME, 0)
BOUND = 0.05


def whole(start, end, version=0, length=None, status=200, which=0, kind=WHOLE):
    if length is None:
        length = tree.first(NAME, 0).length if status == 200 else 0
    return Record(start, end, NUMBER, status, kind, which, version, length)


def verdict(history, record, data=None):
    return Model(SMALL, history, BOUND).judge(record, data)


def new_version(before, version, length=500):
    return before, before + 0.001, FILE, (version, length, False)


def test_checker_true_and_stale():
    history = [new_version(10, 5), new_version(20, 6)]
    assert verdict(history, whole(9, 9.9)) == "true"
    assert verdict(history, whole(10.04, 10.05)) == "true"
    assert verdict(history, whole(10.06, 10.07)) == "stale"
    assert verdict(history, whole(9.9, 9.99, 5, 500)) == "stale", "from the future"
    assert verdict(history, whole(9.9, 10, 5, 500)) == "true"
    assert verdict(history, whole(20.04, 20.05, 5, 500)) == "true"
    assert verdict(history, whole(20.06, 30, 5, 500)) == "stale"
    assert verdict(history, whole(19, 21, 6, 499)) == "stale", "a length that never was"
    assert verdict(history, whole(15, 16, 5, 500, which=1)) == "stale", "of the other object"
    assert verdict(history, whole(15, 16, status=404)) == "stale"
    assert verdict(history, whole(15, 16, status=500)) == "stale"


def test_checker_parents():
    for key, value, status in ((TOP, tree.CLOSED, 403), (TOP, tree.DENIED, 403), (THING, tree.DENIED, 403),
                               (SLOT, tree.NOWHERE, 404)):
        history = [(10, 10.001, key, value), (20, 20.001, key, 0)]
        assert verdict(history, whole(15, 15.1)) == "stale"
        assert verdict(history, whole(15, 15.1, status=status)) == "true"
        assert verdict(history, whole(15, 15.1, status=807 - status)) == "stale"
        assert verdict(history, whole(20.04, 20.05, status=status)) == "true"
        assert verdict(history, whole(20.06, 20.07, status=status)) == "stale"
        assert verdict(history, whole(20.06, 20.07)) == "true"
    history = [(10, 10.001, SLOT, 1)]
    other = tree.first(NAME, 1)
    assert verdict(history, whole(15, 15.1, which=1, length=other.length)) == "true"
    assert verdict(history, whole(15, 15.1)) == "stale"


def test_checker_mixed():
    """Open again only after the old version was gone: the old one could not be read at any moment."""
    history = [(10, 10.001, TOP, tree.CLOSED), (10.5, 10.501, *new_version(0, 5)[2:]), (11, 11.001, TOP, 0)]
    assert verdict(history, whole(10.2, 12)) == "mixed"
    assert verdict(history, whole(10.2, 12, 5, 500)) == "true"
    assert verdict(history, whole(9.9, 12)) == "true"


def test_checker_spliced():
    history = [new_version(10, 5), new_version(20, 6, 700)]
    assert verdict(history, whole(20, 20.1, 6, 500)) == "spliced"
    assert verdict(history, whole(20, 20.1, 6, 400)) == "stale"
    assert verdict(history, whole(20.1, 20.2, 6, 500)) == "stale"
    history = [new_version(10, 5), new_version(20, 6, 300)]
    padded = tree.body(tree.identity(NAME, 0), 6, 300) + b"\0" * 200
    assert verdict(history, whole(20, 20.1, kind=ODD), padded) == "spliced"
    assert verdict(history, whole(20, 20.1, kind=ODD), padded[:-1]) == "torn"
    assert verdict(history, whole(20.1, 20.2, kind=ODD), padded) == "torn"


def test_checker_spliced_with_a_closed_file():
    history = [(10, 10.001, FILE, (5, 500, True)), new_version(20, 6, 300)]
    padded = tree.body(tree.identity(NAME, 0), 6, 300) + b"\0" * 200
    odd = whole(20, 20.1, kind=ODD)
    assert verdict(history, odd, padded) == "torn"
    assert verdict(history, odd._replace(fell_back=True), padded) == "spliced"
    assert verdict(history, odd._replace(fell_back=True), padded[:-1]) == "torn"


def test_checker_link():
    number = SMALL.files            # of a slot that is a link
    key = tree.slot_key(SMALL.name(number))
    model = Model(SMALL, [(10, 10.001, key, tree.NOWHERE)], BOUND)
    assert model.judge(whole(10.01, 10.02, status=403)._replace(number=number)) == "link"
    assert model.judge(whole(10.06, 10.07, status=403)._replace(number=number)) == "stale"
    assert model.judge(whole(10.06, 10.07, status=404)._replace(number=number)) == "true"


def test_checker_lost_and_cut():
    history = [new_version(10, 5), (20, 20.001, FILE, (5, 300, False))]
    for kind in (CUT, NOTHING):
        assert verdict(history, whole(15, 16, 5, 500, kind=kind)) == "lost"
        assert verdict(history, whole(20.04, 20.1, 5, 500, kind=kind)) == "cut"
        assert verdict(history, whole(20.06, 20.1, 5, 500, kind=kind)) == "lost"
    assert verdict(history, whole(20, 20.1, 5, 400, kind=CUT)) == "lost", "another length was promised"


def test_checker_torn_and_halves():
    ident = tree.identity(NAME, 0)
    history = [new_version(10, 5), new_version(20, 6)]
    old, new = tree.body(ident, 5, 500), tree.body(ident, 6, 500)
    seam = new[:200] + old[200:]
    odd = whole(20, 20.1, kind=ODD)
    assert tree.read_body(NAME, seam) is None
    assert verdict(history, odd, seam) == "halves"
    assert verdict(history, whole(25, 25.1, kind=ODD), seam) == "torn"
    assert verdict(history, odd, new[:100] + old[100:300] + new[300:]) == "torn"
    assert verdict(history, odd, b"\0" * 500) == "torn"


def test_checker_reads_bodies():
    for which in range(2):
        ident = tree.identity(NAME, which)
        for version in (0, 7, 12345678):
            for length in (tree.HEADER_MOST, 700, tree.LARGE):
                assert tree.read_body(NAME, tree.body(ident, version, length)) == (which, version)
    assert tree.read_body(NAME, tree.body(tree.identity(SMALL.name(1), 0), 0, 500)) is None
    assert tree.read_body(NAME, tree.body(tree.identity(NAME, 0), 0, 500)[:-1] + b"!") is None
    assert tree.read_body(NAME, b"") is None


def test_checker_counts_a_file_of_records(tmp_path):
    path = tmp_path / "records"
    path.write_bytes(b"".join(RECORD.pack(*r) for r in (whole(9, 9.1), whole(9, 9.1, 3), whole(9, 9.1, kind=CUT))))
    counts, examples = Model(SMALL, [new_version(10, 5)], BOUND).judge_file(path, {})
    assert {v: counts[v] for v in VERDICTS if counts[v]} == {"true": 1, "stale": 1, "lost": 1}
    assert len(examples) == 2
