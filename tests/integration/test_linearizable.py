# SPDX-License-Identifier: Apache-2.0
"""As true as stock: a change whose system call returned before the request was sent is in the answer.

Printed: the wrong answers by kind of change, and the sources of answers: a lease asks nobody, a hit the daemon.
The full form makes a million tries on the base directory's file system and on overlay.
"""

import os
import re
from contextlib import nullcontext

import pytest

import filesystems
import linear_faults
import linear_kinds
import linear_run
import network_mounts
import network_site
import system_limits
from content_kit import SETTLED_S, clock  # noqa: F401 (fixture)
from conftest import SELFCHECK
from forms import chosen, full
from freshness import WATCHED, settings
from httpd import HITS
from lease_kit import NOTE_CONFIG

pytestmark = pytest.mark.skipif(not WATCHED, reason="FLASHPACHE_WATCH=ttl: nothing is told")
MILLION = 1_000_000
TRIES = {"disk": chosen(4000, MILLION), "overlay": chosen(2000, MILLION), "tmpfs": chosen(1500, 100_000),
         "fuse": chosen(1000, 50_000)}
ELSEWHERE = chosen(500, 10_000)
IN_FULL_WITH_PREFORK = 50_000
WITH_MOUNTS, WITH_FAULTS, COPIES = chosen(400, 20_000), chosen(1000, 50_000), chosen(1000, 20_000)
BY_ITSELF = chosen(40, 10_000)         # of each kind
ALONE, SHARED = 2, 2        # writers
SHOWN = 20
REMEMBERED = 0.5            # without a fault, nearly all are
# No file is held open there, and its content is kept two seconds after it was first seen.
REMEMBERED_ON_FUSE = 0.2
# A change by another name of the file is reported to watches of the file. Watches of the requested name's directory
# do not report it. FUSE may have a file for each name; and an unreadable file cannot be watched. Linux's SMB client opens
# no file by another name of it: EINVAL.
OTHER_NAMES = {"written_by_its_other_name", "access_file_by_other_ways", "linked_in", "written_by_a_name_made_since"}
# A remote file's content is kept, and the kernel's pages of a FUSE file may be older than a write that no event reports. These
# writes show within ttl_ms.
UNREPORTED = {"written_through_a_mapping_that_stays", "written_asynchronously_while_it_stays_open"}
# An SMB mount shows the modes and the owner of its options, whatever the server was told: stock serves the file, too.
MODES = {"mode_of_a_parent", "mode_of_the_file", "mode_of_a_parent_by_descriptor", "owner_of_the_file",
         "rights_of_an_access_file"}
# A Samba server as it comes has no symbolic links for it.
WITH_LINKS = {"written_through_a_link", "served_through_a_link", "link_in_the_middle_replaced",
              "chain_of_links", "target_made_and_removed"}
# The default of 2 s would make a stopped daemon's turn a long one.
TIMEOUT = "FlashpacheTimeout 50ms\n"


@pytest.fixture(params=filesystems.GIVEN or TRIES)
def where(request):
    return request.param


def places(root, shared, url=""):
    """Directories of the writers' own, and one that two of them share."""
    made = [linear_run.Place(root / f"alone{number}", f"{url}/alone{number}", "") for number in range(ALONE)]
    made += [linear_run.Place(root / "shared", f"{url}/shared", f"w{number}-") for number in range(shared)]
    for place in made:
        place.directory.mkdir(exist_ok=True)
    return made


def config(root):
    return f"{network_site.PATIENT}{NOTE_CONFIG}<Directory {root}>\nAllowOverride All\nOptions FollowSymLinks\n</Directory>\n"


def kinds_but(left_out):
    return {name: steps for name, steps in linear_kinds.KINDS.items() if name not in left_out}


def unseen(where):
    """Kinds of change that show within ttl_ms only, or cannot be made there."""
    if where == "fuse":
        return OTHER_NAMES | UNREPORTED
    if where not in network_mounts.KINDS:
        return set()
    return UNREPORTED | (OTHER_NAMES if where == "cifs" else set()) | (MODES if where in network_mounts.WITHOUT_MODES else set())


def check(name, result, remembered=REMEMBERED, where=None):
    """remembered: at least this share of the repeated questions was answered from memory; else the test would show
    nothing."""
    linear_run.table(name, result)
    again = result.warm
    assert SELFCHECK or sum(again[note] for note in HITS) >= remembered * again.total(), again
    missing = set(result.missing) - set(linear_run.MAY_BE_MISSING) - (WITH_LINKS if where == "cifs" else set())
    assert not missing, {kind: result.missing[kind] for kind in missing}
    wrong = result.wrong.total()
    assert wrong == 0, (f"{wrong} of {result.tries.total()} answers were not those of that moment, among them\n"
                        + "\n".join(result.examples[:SHOWN]))


def linearizable(lab, root, name, mpm, tries, *, kinds=None, fault=None, shared=SHARED):
    """fault(server): a context with a disturbance beside the writers."""
    records = lab.base / f"records-{name}"
    records.mkdir()
    made = places(root, shared)
    text = config(root) + network_mounts.manual_advice(root) + (TIMEOUT if fault else "")
    # One half of the new paths is asked about, the children look at the other half themselves.
    server = lab.under_test(name, root, mpm=mpm, config=text, admission=2,
                            daemon_settings=settings(reported=True))
    try:
        with fault(server) if fault else nullcontext():
            return linear_run.run(server.port, made, tries, records, kinds)
    finally:
        lab.end()


@pytest.mark.parametrize("mpm", ("event", full("prefork")))
def test_every_answer_is_of_its_moment(lab, base, slow_directory, where, mpm, clock):  # noqa: F811
    """The daemon's clock is ahead, so that small files are served by their content however new they are."""
    tries = TRIES.get(where, ELSEWHERE) if mpm == "event" else IN_FULL_WITH_PREFORK
    below = base / mpm
    (below / where).mkdir(parents=True)
    with (filesystems.directory(where, below / where, slow_directory) as root,
          clock.ahead(SETTLED_S)):
        result = linearizable(lab, root, f"{where}-{mpm}", mpm, tries,
                              kinds=kinds_but(unseen(where)))
    check(f"{'stock' if SELFCHECK else 'Flashpache'}, {where}, {mpm}", result,
          REMEMBERED_ON_FUSE if where == "fuse" else REMEMBERED, where)
    assert where != "disk" or not result.missing, result.missing


def test_each_kind_by_itself(lab, base, clock):  # noqa: F811
    """No change of another kind makes an event that could hide a missing one."""
    root, results = base / "by-itself", []
    root.mkdir()
    with clock.ahead(SETTLED_S):
        server = lab.under_test("by-itself", root, mpm="event", config=config(root),
                                daemon_settings=settings(reported=True))
        for name, steps in linear_kinds.KINDS.items():
            for made in (root / name, lab.base / f"records-{name}"):
                made.mkdir()
            results.append(linear_run.run(server.port, places(root / name, 0, f"/{name}"), BY_ITSELF,
                                          lab.base / f"records-{name}", {name: steps}))
    check("each kind by itself", linear_run.together(results))


def test_new_files_are_not_content(lab, base):
    """As above by the system's clock: files that changed less than two seconds ago are served from themselves."""
    root = base / "new-files"
    root.mkdir()
    check("new files", linearizable(lab, root, "new-files", "event", chosen(1000, 100_000)))


@pytest.mark.xfail(tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 15), strict=False,
                   reason="no queue of events tells of mounts before Linux 6.15: they show within the heartbeat")
def test_mounts(lab, base):
    """mount and umount are system calls like others."""
    root = base / "mounts"
    root.mkdir()
    check("mounts", linearizable(lab, root, "mounts", "event", WITH_MOUNTS, kinds=linear_kinds.MOUNT_KINDS), 0)


def test_copying_up(lab, base, clock):  # noqa: F811
    """The first change of a file in an overlay's lower layer makes another file of it."""
    kinds, below = linear_kinds.COPY_KINDS, base / "copies"
    below.mkdir()
    count = COPIES // ALONE // len(kinds)       # no step has fewer than one try

    def prepare(lower):
        for number in range(ALONE):
            for kind in kinds:
                linear_kinds.make_lower(lower / f"alone{number}" / kind, count)
    with filesystems.overlay(below, prepare) as root, clock.ahead(SETTLED_S):
        check("copying up", linearizable(lab, root, "copies", "event", COPIES, kinds=kinds, shared=0))


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("fault", linear_faults.FAULTS)
def test_faults(lab, base, fault):
    """After any fault of the daemon, the file system is asked before an old answer is given."""
    root = base / fault
    root.mkdir()
    check(fault, linearizable(lab, root, fault, "event", WITH_FAULTS, kinds=kinds_but(OTHER_NAMES),
                              fault=linear_faults.FAULTS[fault]), 0)


@pytest.mark.needs_flashpache
@pytest.mark.alone
@pytest.mark.parametrize("name, value", (("max_queued_events", 8), ("max_user_watches", 20)))
def test_limits(lab, base, name, value):
    """The queue overflows; no more can be watched."""
    root = base / name
    root.mkdir()
    with system_limits.inotify(name, value):
        check(name, linearizable(lab, root, name, "event", WITH_FAULTS, kinds=kinds_but(OTHER_NAMES)), 0)
