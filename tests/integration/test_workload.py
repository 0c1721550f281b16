# SPDX-License-Identifier: Apache-2.0
"""tests/lab/workload.py: the set of files, the order of requests, access logs."""

import collections
import gzip
import hashlib
import subprocess
import sys

import pytest

from conftest import REPO

sys.path.insert(0, str(REPO / "tests/lab"))

import workload  # noqa: E402
from lab import papers  # noqa: E402

LOG = r"""1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326
1.2.3.4 - bob "x [10/Oct/2000:13:55:36 -0700] "GET /b\"c\\d\xe4?q=1 HTTP/1.1" 304 - "-" "M \"x\""
www:80 1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET http://h.example/abs HTTP/1.1" 206 5 "-" "-"
1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "POST /p HTTP/1.1" 200 5
1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET /absent HTTP/1.1" 404 5
www.test 1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "HEAD /moved HTTP/1.1" 301 5
WWW.test:443 2001:db8::1 - - [10/Oct/2000:13:55:36 -0700] "GET /late HTTP/1.1" 404 5
1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET /slow HTTP/1.1" 503 5
www.test:80 1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET /late HTTP/1.1" 200 5
1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "\x16\x03\x01" 400 5
no log at all

/list/url#part
https://h.example
http://h?x=1
"""
LOG_LINES = ["/a.gif 200", "/b%22c%5Cd%E4?q=1 200", "http://h.example/abs 200", "/absent 404", "HEAD http://www.test/moved 301",
             "http://www.test/late 200", "http://www.test/late 200", "/list/url", "http://h.example/", "http://h/?x=1"]
LEFT_OUT = {"empty": 1, "not understood": 2, "other methods than GET and HEAD": 1,
            "statuses that a request alone does not bring": 1}


def run(*arguments, expect=0):
    done = subprocess.run([sys.executable, str(REPO / "tests/lab/workload.py"),
                           *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == expect, done
    return done


def sums(directory):
    return {str(file.relative_to(directory)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in directory.rglob("*") if file.is_file()}


def test_sizes_of_the_classes():
    assert [workload.size_of(0, file) for file in (0, 1, 8)] == [102, 205, 922]
    assert [workload.size_of(class_, 0) for class_ in (1, 2, 3)] == [1024, 10240, 102400]
    assert workload.size_of(3, 8) == 921600


def test_made_files_and_asked_ones_are_the_same(tmp_path):
    assert run("make", tmp_path / "set", "--directories", 3).stdout == \
        f"3 directories, 108 files, {3 * workload.DIRECTORY_BYTES} bytes\n"
    paths = run("urls", "--directories", 3, "--requests", 20000).stdout.split()
    files = {path: tmp_path / "set" / path[1:] for path in set(paths)}
    assert len(paths) == 20000 and all(file.is_file() for file in files.values())
    assert (tmp_path / "set/dir00002/class2_4").stat().st_size == workload.size_of(2, 4)


def test_content_is_the_seeds_and_no_two_files_are_alike(tmp_path):
    for name, seed in (("one", 5), ("again", 5), ("other", 6)):
        run("make", tmp_path / name, "--bytes", "10M", "--seed", seed)
    one = sums(tmp_path / "one")
    assert one == sums(tmp_path / "again")
    assert not set(one.values()) & set(sums(tmp_path / "other").values())
    assert len(set(one.values())) == len(one) == 72


def test_order_is_the_seeds():
    assert workload.urls(50, 1000, seed=1) == workload.urls(50, 1000, seed=1)
    assert workload.urls(50, 1000, seed=1) != workload.urls(50, 1000, seed=2)


def test_shares_of_classes_and_directories():
    count = 200000
    asked = collections.Counter(tuple(path[1:].replace("class", "").split("/"))
                                for path in workload.urls(100, count))
    classes, directories = collections.Counter(), collections.Counter()
    for (directory, file), times in asked.items():
        classes[int(file[0])] += times / count
        directories[directory] += times / count
    for class_, share in enumerate(workload.CLASS_SHARE):
        assert classes[class_] == pytest.approx(share, abs=0.005)
    harmonic = sum(1 / rank for rank in range(1, 101))
    for rank in (1, 2, 10, 100):
        assert directories[f"dir{rank - 1:05d}"] == pytest.approx(1 / rank / harmonic, rel=0.15)


@pytest.mark.parametrize("megabytes", papers.POPULARITY)
def test_popularity_is_near_the_papers(megabytes):
    found = [size / 2 ** 20 for size in workload.bytes_for(workload.directories_for(megabytes << 20), papers.TOP)]
    table = papers.POPULARITY[megabytes]
    assert found[0] == pytest.approx(table[0], rel=0.25)
    assert found[1:] == [pytest.approx(value, rel=0.15) for value in table[1:]]


def test_hot_files():
    listed = run("urls", "--directories", 40, "--hot", 12, "--prefix", "/p").stdout.split()
    assert listed[0] == "/p/dir00000/class1_0" and len(set(listed)) == 12
    asked = workload.urls(40, 20000, hot=12, prefix="/p")
    assert set(asked) == set(listed)
    counts = collections.Counter(asked)
    assert counts[listed[0]] > 1.2 * counts[listed[-1]]


@pytest.mark.parametrize("packed", [False, True])
def test_log(tmp_path, packed):
    file = tmp_path / "access.log"
    file.write_bytes(gzip.compress(LOG.encode()) if packed else LOG.encode())
    requests, left_out = workload.from_log(str(file))
    assert [request.line() for request in requests] == LOG_LINES and left_out == LEFT_OUT
    done = run("from-log", file)
    assert done.stdout.split("\n") == LOG_LINES + [""]
    for why, count in LEFT_OUT.items():
        assert f"left out {count}: {why}" in done.stderr
    assert run("from-log", file, "--limit", 2).stdout.splitlines() == LOG_LINES[:2]


def test_log_from_standard_input():
    done = subprocess.run([sys.executable, str(REPO / "tests/lab/workload.py"), "from-log", "-"],
                          input=gzip.compress(LOG.encode()), capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == LOG_LINES


def test_errors_are_said(tmp_path):
    (tmp_path / "empty").touch()
    assert "no request to replay" in run("from-log", tmp_path / "empty", expect=1).stderr
    assert "No such file" in run("from-log", tmp_path / "absent", expect=1).stderr
    assert "--requests N, or --hot" in run("urls", "--directories", 2, expect=1).stderr
    assert "whole number above 0" in run("urls", "--directories", 0, expect=2).stderr
    assert "with K, M, G" in run("make", tmp_path, "--bytes", "many", expect=2).stderr
