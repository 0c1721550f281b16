# SPDX-License-Identifier: Apache-2.0
"""A mount that hangs under traffic is soon out of service, whichever call hangs there first."""

import re
import signal
import subprocess

import pytest

import hung_kit
import wire
from dead_mounts_kit import STALE_MS, world  # noqa: F401
from forms import chosen
from waiting import Threads, wait_for

pytestmark = pytest.mark.needs_flashpache

# As installed, except for the settings that stale answers need.
OK, UNAVAILABLE = 0, 23     # statuses
STALE = 3                   # an ANSWER's source
LONG_MS = 20_000            # far longer than any process waits for a mount
SETTINGS = {"ttl_ms": 3000, "workers": 8, "watch": "auto", "mount_timeout_ms": 2000, "stale_if_error_ms": STALE_MS}
BEFORE_S = chosen((1.0,), (1.0, 1.3, 1.6, 2.1, 2.6, 3.1))    # a refresh is due from 1.5 s on, and after 3 s


def messages(w, *ids):
    """The ids of the log's messages among the wanted ones, in order."""
    return [one for one in re.findall(r"FP\d{4}", w.daemon.log_text()) if one in ids]


def tripped(w):
    """The mount points that went out of service, and after how many ms of silence."""
    return [(point, int(ms)) for point, ms in re.findall(r"FP0044 .* at (\S+) does not answer, for (\d+) ms",
                                                         w.daemon.log_text())]


@pytest.mark.parametrize("before", BEFORE_S)
@pytest.mark.parametrize("below", ("slow", "link"))
@pytest.mark.parametrize("traffic", ("light", "heavy"))
def test_traffic(world, traffic, below, before):  # noqa: F811
    w = world(f"{traffic}-{below}-{before}", **SETTINGS)
    (w.root / "link").symlink_to("slow")
    w.settle()
    server = w.serve(10)
    one = hung_kit.Try(w, getattr(hung_kit, traffic)(server.port, below), before)
    [(point, silence)] = tripped(w)
    print(f"ROW {traffic}, {below}, hung {before} s later: silent for {silence} ms; {one}")
    assert point == str(w.mount.target)
    # Long before a worker is killed; a busy machine may be late.
    assert silence < LONG_MS and messages(w, "FP0021", "FP0044")[:1] == ["FP0044"]
    assert one.unanswered == 0 and one.after == {200}


class Beside(Threads):
    """Looks for other names in the local tree all the time."""

    def __init__(self, w):
        super().__init__(self._run, [()])
        self.w, self.statuses = w, []

    def _run(self):
        number = 0
        while not self.over.wait(0.01):
            number += 1
            self.statuses.append(self.w.ask(f"local/none{number}")[0])


@pytest.mark.parametrize("target", ("slow", "slow/file0.txt"), ids=("directory", "file"))
def test_behind_a_link_that_was_never_seen(world, target):  # noqa: F811
    """The mount where the walk hangs is out of service, not the one of the link. No worker is killed first."""
    w = world("unseen-" + target.replace("/", "-"), **{**SETTINGS, "stale_if_error_ms": 0})
    (w.root / "link").symlink_to(target)
    question = "link" if target != "slow" else "link/file1.txt"
    assert w.ask("local/file0.txt")[0] == OK
    w.mount.behave("hang")
    with Beside(w) as beside:
        assert w.ask(question, LONG_MS)[0] == UNAVAILABLE
        assert w.is_out()
        # No request waits any more, and no worker goes there.
        wait_for(lambda: w.stats()["queued"] == 0, "the queue to be empty")
        for _ in range(20):
            assert w.ask(question, LONG_MS)[0] == UNAVAILABLE
        done = len(beside.statuses)
        wait_for(lambda: len(beside.statuses) > done + 20, "the local tree to be served")
    assert set(beside.statuses) == {OK}
    assert messages(w, "FP0021", "FP0044")[:1] == ["FP0044"]
    [(point, silence)] = tripped(w)
    print(f"ROW a link never seen, to a {'file' if '/' in target else 'directory'}: silent for {silence} ms")
    assert point == str(w.mount.target)
    w.mount.behave("normal")
    w.until_back()
    assert w.ask(question)[0] == OK


def test_a_quiet_site_stays_in_service(world):  # noqa: F811
    """Only the hung walk is asked for, so no other answer comes."""
    w = world("quiet", **{**SETTINGS, "stale_if_error_ms": 0})
    (w.root / "link").symlink_to("slow")
    assert w.ask("local/file0.txt")[0] == OK
    w.mount.behave("hang")
    assert w.ask("link/file1.txt", LONG_MS)[0] == UNAVAILABLE
    assert w.ask("local/file1.txt", LONG_MS)[0] == OK
    assert [point for point, _ in tripped(w)] == [str(w.mount.target)]


@pytest.mark.parametrize("stale", (True, False), ids=("stale", "none"))
def test_known_files_at_once(world, stale):  # noqa: F811
    """Once out of service: a question that asks afresh, one through a known link, one of old entries."""
    w = world(f"known-{stale}", **{**SETTINGS, "ttl_ms": 400, "stale_if_error_ms": STALE_MS if stale else 0})
    (w.root / "link").symlink_to("slow")
    for tail in ("slow/file0.txt", "link/file1.txt"):
        assert w.ask(tail)[0] == OK
    w.mount.behave("hang")
    wait_for(lambda: w.ask("slow/file0.txt", LONG_MS)[:2] != (OK, wire.KNOWN) and w.is_out(), "the mount to be out")
    walks = w.stats()["walks"]
    for _ in range(5):
        for tail in ("slow/file0.txt", "link/file1.txt"):
            status, source, again, _ = w.ask(tail, LONG_MS)
            assert (status, source) == (OK, STALE) if stale else status == UNAVAILABLE
            assert not again
            with wire.greet(w.daemon.socket) as conn:
                packet = wire.ask(conn, wire.whole_lookup(w.path(tail), fresh=True))
            assert wire.parse_answer(packet)[0] == status
    # Walks to the directories above the mount, and probes: no walk for each question.
    assert w.stats()["walks"] - walks < 20


def test_workers_of_a_hung_mount_are_given_back(world):  # noqa: F811
    """The mount had all workers. Out of service, it gives them back to others, long before any worker's kill is due."""
    w = world("back", workers=2, mount_workers=2, lookup_timeout_ms=600000)
    w.ask("slow/file0.txt")
    with w.hanging(4):
        wait_for(lambda: w.stats()["running"] == 2, "all workers to hang")
        for i in range(5):
            assert w.ask(f"local/file{i}.txt", LONG_MS)[0] == OK
    assert [point for point, _ in tripped(w)] == [str(w.mount.target)]
    w.mount.behave("normal")
    w.until_back()
    assert w.ask("slow/file1.txt")[0] == OK


def test_a_killed_worker_takes_no_mount_out_of_service(world):  # noqa: F811
    """Workers are killed early: the mount still has its own time before it is out of service, as have its probes."""
    w = world("early", lookup_timeout_ms=100, mount_timeout_ms=3000)
    assert w.ask("slow/file0.txt")[0] == OK
    w.mount.behave("hang")
    assert w.ask("slow/none0", LONG_MS)[0] != OK
    assert w.stats()["timeouts"] >= 1 and not w.is_out()
    w.mount.behave("normal")
    assert w.ask("slow/file1.txt")[0] == OK
    w.mount.behave("hang")
    w.until_out()
    assert all(silence >= 3000 for _, silence in tripped(w))
    # Slower than a worker may be, and the probe waits for it.
    w.mount.control.write_text("normal getattr-us=300000\n")
    w.mount.process.send_signal(signal.SIGHUP)
    w.until_back()


def test_timeouts_that_do_not_go_together_are_told(world):  # noqa: F811
    w = world("told", lookup_timeout_ms=100, mount_timeout_ms=3000)
    told = "lookup_timeout_ms (100) is below mount_timeout_ms (3000)"
    checked = subprocess.run(w.daemon.command("-t"), capture_output=True, text=True)
    assert told in checked.stderr and checked.returncode == 0
    w.daemon.settings["lookup_timeout_ms"] = 3000
    w.daemon.write_config()
    checked = subprocess.run(w.daemon.command("-t"), capture_output=True, text=True)
    assert told not in checked.stderr and checked.returncode == 0
