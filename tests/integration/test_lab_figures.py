# SPDX-License-Identifier: Apache-2.0
"""The lab computes its figures rightly from observations: calls by kind, windows, calm."""

import json
import math
import sys

import pytest

from conftest import REPO

sys.path.insert(0, str(REPO / "tests" / "lab"))

import benchmarks_page  # noqa: E402
import call_count  # noqa: E402
import slow_hot  # noqa: E402
from lab import metrics  # noqa: E402

TRACE = {
    'newfstatat(AT_FDCWD, "/www/a", {st_mode=S_IFREG}, 0) = 0': "path",
    'openat(AT_FDCWD</>, "/www/a", O_RDONLY) = 9</www/a>': "path",
    'newfstatat(9</www/a>, "", {st_mode=S_IFREG}, AT_EMPTY_PATH) = 0': "file",
    'pread64(9</www/a>, "x", 500, 0) = 500': "file",
    'mmap(NULL, 5000, PROT_READ, MAP_SHARED, 9</www/a>, 0) = 0x7f': "file",
    'mmap(NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f': "other",
    'sendfile(8<TCP:[127.0.0.1:80->127.0.0.1:90]>, 9</www/a>, [0], 500) = 500': "file",
    'recvmsg(7<UNIX-STREAM:[1->2]>, {msg_name=NULL}, 0) = 30': "daemon",
    'writev(8<TCP:[127.0.0.1:80->127.0.0.1:90]>, [{}], 2 <unfinished ...>': "network",
    'accept4(3<TCPv6:[*:80]>, {}, [28], SOCK_CLOEXEC) = 8': "network",
    'write(5</log/access.log>, "line", 4) = 4': "other",
    'epoll_wait(4<anon_inode:[eventpoll]>, [], 10, 0) = 0': "other",
}


@pytest.mark.parametrize("line", TRACE)
def test_the_kind_of_a_call(line, tmp_path):
    (tmp_path / "trace").write_text(f"17 {line}\n")
    (found, number), = call_count.count(tmp_path / "trace").items()
    assert (found, number) == ((TRACE[line], line.split("(")[0]), 1)


def test_a_call_in_two_pieces_is_one(tmp_path):
    (tmp_path / "trace").write_text('17  read(8<TCP:[1]>,  <unfinished ...>\n'
                                    '18  --- SIGUSR1 {si_signo=SIGUSR1} ---\n'
                                    '17  <... read resumed>"x", 8) = 1\n')
    assert call_count.count(tmp_path / "trace") == {("network", "read"): 1}


def test_ready_events_of_the_time_between_two_looks():
    found = metrics.ready_events({1: 100, 7: 5}, {1: 130, 2: 60, 7: 5, 600: 10})
    assert (found["turns"], found["mean"], found["p50"], found["max"]) == (100, 61.5, 2, 600)
    assert found["cdf"] == [(1, 0.3), (2, pytest.approx(0.9)), (600, pytest.approx(1))]
    assert metrics.ready_events({1: 5}, {1: 5}) == metrics.ready_events({}, {}) == {}


def write_records(file, latencies_ms):
    """A record for each, at the lab's constant rate; None: no answer."""
    lines = ["start_us\tlatency_us\tbytes\tstatus\tresult\tpath"]
    lines += [f"{number * 1e6 / slow_hot.RATE}\t{ms * 1000}\t1\t200\tok\t/"
              for number, ms in enumerate(latencies_ms) if ms is not None]
    file.write_text("\n".join(lines) + "\n")


def test_a_window_counts_what_was_not_answered(tmp_path):
    each = round(slow_hot.RATE * slow_hot.WINDOW_S)
    few, many = each // 100, each // 100 + 1
    latencies = [None] * few + [1] * (each - few) + [None] * many + [2] * (each - many)
    write_records(tmp_path / "records", latencies)
    assert slow_hot.read_windows(tmp_path / "records", 2 * slow_hot.WINDOW_S) == [1, math.inf]


@pytest.mark.parametrize("windows, all_good, nearly", [
    ([1, 2, 3], 0, 0),
    ([50, math.inf, 2, 3], 2, 2),
    ([50, 1, 50], None, None),
    ([50] + [1] * 10 + [50] + [1] * 20, 12, 1),
])
def test_calm(windows, all_good, nearly):
    def index(share):
        seconds = slow_hot.calm_from(windows, share)
        return None if seconds is None else seconds / slow_hot.WINDOW_S
    assert (index(1), index(0.95)) == (all_good, nearly)


def ratio(median):
    return {"median": median, "min": median - 0.01, "max": median + 0.01}


def test_tables_of_the_page(tmp_path, monkeypatch):
    """Measured parts get new rows; those of others, and the text, stay."""
    page = tmp_path / "benchmarks.md"
    page.write_text(benchmarks_page.SHARED_PAGE.read_text() + benchmarks_page.HIT_PAGE.read_text())
    before = page.read_text()
    hits = [{"lease": {"cell": f"event/All/{size}/64", "of_stock": {"cpu_us": ratio(0.5)}}} for size in (500, 5000)]
    few = [{"pair": "prefork/None", "goal": 1.3, "rate": ratio(1.4)}, {"pair": "event/All", "goal": 1.7, "rate": ratio(1.8)}]
    first = [{"pair": pair, "pass": which, "goal": 1.0, "cpu_us": ratio(0.9)}
             for pair in ("prefork/None", "event/None") for which in ("number 7", "number 8")]
    most = [{"part": "few", "pair": pair, "rate": ratio(2.5)} for pair in ("prefork/None", "event/All")]
    (tmp_path / "hit.json").write_text(json.dumps(hits))
    (tmp_path / "shared.json").write_text(json.dumps({"few": few, "first": first, "most": most}))
    monkeypatch.setattr(sys, "argv", ["", "--page", str(page), str(tmp_path / "hit.json"), str(tmp_path / "shared.json")])
    benchmarks_page.main()
    after = page.read_text()
    assert "\n| event | `All`, no `.htaccess` | 64 | 0.50 (0.49-0.51) | 0.50 (0.49-0.51) |\n\n" in after
    assert ("| 1,008 files, 256 connections | prefork, `None` | capacity | 1.40 (1.39-1.41) | 1.30 or more | 2.50 (2.49-2.51) |\n"
            "| | event, `All` | capacity | 1.80 (1.79-1.81) | 1.70 or more | 2.50 (2.49-2.51) |\n") in after
    was, now = (benchmarks_page.rows_of(text, benchmarks_page.SHARED_HEAD) for text in (before, after))
    assert [row[3] for row in now[10:12]] == ["0.90 (0.89-0.91)"] * 2
    assert len(was) == len(now) == 14 and was[:4] + was[6:10] + was[12:] == now[:4] + now[6:10] + now[12:]
    assert [line for line in before.splitlines() if not line.startswith("|")] == \
        [line for line in after.splitlines() if not line.startswith("|")]
