# SPDX-License-Identifier: Apache-2.0
"""As true as stock: a change whose system call returned before the request was sent is in the answer.

Printed: how many answers were wrong, by kind of change, and who answered: hits and leases ask no file system.
The full form makes a million tries on the base directory's file system and on overlay.
"""

import pytest

import filesystems
import linear_run
from content_kit import SETTLED_S, clock  # noqa: F401 (fixture)
from conftest import SELFCHECK
from forms import chosen, full, until_the_core_lands
from freshness import WATCHED, settings
from lease_kit import NOTE_CONFIG

pytestmark = pytest.mark.skipif(not WATCHED, reason="FLASHPACHE_WATCH=ttl: nothing is told")
MILLION = 1_000_000
TRIES = {"disk": chosen(8000, MILLION), "overlay": chosen(4000, MILLION), "tmpfs": chosen(4000, 100_000),
         "fuse": chosen(1500, 50_000)}
IN_FULL_WITH_PREFORK = 50_000
ALONE, SHARED = 2, 2        # writers


@pytest.fixture(params=filesystems.KINDS)
def where(request):
    return request.param


def places(root):
    """Directories of the writers' own, and one that two of them share."""
    made = [linear_run.Place(root / f"alone{number}", f"/alone{number}", "") for number in range(ALONE)]
    made += [linear_run.Place(root / "shared", "/shared", f"w{number}-") for number in range(SHARED)]
    for place in made:
        place.directory.mkdir(exist_ok=True)
    return made


def config(root):
    return f"{NOTE_CONFIG}<Directory {root}>\nAllowOverride All\nOptions FollowSymLinks\n</Directory>\n"


def check(name, result):
    linear_run.table(name, result)
    missing = set(result.missing) - set(linear_run.MAY_BE_MISSING)
    assert not missing, {kind: result.missing[kind] for kind in missing}
    assert not result.wrong, (f"{result.wrong.total()} of {result.tries.total()} answers were not those of that "
                              "moment:\n" + "\n".join(result.examples))


def linearizable(lab, root, name, mpm, tries):
    records = lab.base / f"records-{name}"
    records.mkdir()
    made = places(root)
    server = lab.under_test(name, root, mpm=mpm, config=config(root), daemon_settings=settings(local=True))
    try:
        return linear_run.run(server.port, made, tries, records)
    finally:
        lab.end()


@until_the_core_lands
@pytest.mark.parametrize("mpm", ("event", full("prefork")))
def test_every_answer_is_of_its_moment(lab, base, slow_directory, where, mpm, clock):  # noqa: F811
    """The daemon's clock is ahead, so that small files are served by their content however new they are."""
    tries = TRIES[where] if mpm == "event" else IN_FULL_WITH_PREFORK
    below = base / mpm
    below.mkdir(exist_ok=True)
    with filesystems.directory(where, below, slow_directory) as root, clock.ahead(SETTLED_S):
        result = linearizable(lab, root, f"{where}-{mpm}", mpm, tries)
    check(f"{'stock' if SELFCHECK else 'Flashpache'}, {where}, {mpm}", result)
    assert where != "disk" or not result.missing, result.missing


@until_the_core_lands
def test_new_files_are_not_content(lab, base):
    """As above by the system's clock: files that changed less than two seconds ago are served from themselves."""
    root = base / "new-files"
    root.mkdir()
    check("new files", linearizable(lab, root, "new-files", "event", chosen(2000, 100_000)))
