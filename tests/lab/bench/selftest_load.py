# SPDX-License-Identifier: Apache-2.0
"""Tests of flashpache-bench: the times of requests, the files that it writes, TLS, and its finding that it was itself
the limit.

Intended starts are the program's own arithmetic and are checked closely. Times that a busy machine may delay have
exact lower bounds and generous upper ones, in the full form, beside no other test.
"""

import collections
import math
import os
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

import selftest
from selftest import Server, make_bench, make_server, read_table  # noqa: F401

ATTEMPTS = 10


@pytest.fixture(name="records")
def make_records(bench, tmp_path):
    """Runs the program with --records: (JSON, [record]), numbers as numbers."""
    def run(*options, expect=0):
        found = bench(*options, "--records", tmp_path / "records", expect=expect)
        table = read_table(tmp_path / "records")
        for record in table:
            for name in ("start_us", "sent_us", "latency_us"):
                record[name] = float(record[name])
            record["end_us"] = record["start_us"] + record["latency_us"]
            record["url"], record["connection"] = int(record["url"]), int(record["connection"])
        return found, table
    return run


def by_connection(table):
    """The records of each connection in the order in which they were sent."""
    groups = {}
    for record in sorted(table, key=lambda record: record["sent_us"]):
        groups.setdefault(record["connection"], []).append(record)
    return groups


def mean(values):
    return sum(values) / len(values)


# Latency

@pytest.mark.full
@pytest.mark.alone
def test_percentiles_of_known_delays(bench, tmp_path):
    urls = tmp_path / "urls"
    urls.write_text("".join(f"/delay/{5 * rank}\n" for rank in range(1, 101)))
    latency = bench("-u", urls, "--once", "-c", 20)["latency_ms"]
    for name in ("p5", "p50", "p90", "p95", "p99"):
        exact = 5 * int(name[1:])
        assert exact <= latency[name] < exact + 150
    assert 252.5 <= latency["mean"] < 400


def waited_for_the_stall(table):
    """True if each request that was due while the server stood still waited for the rest of the stall."""
    first = max(table, key=lambda record: record["latency_us"])
    waited = [record for record in table
              if first["start_us"] <= record["start_us"] < first["end_us"] - 20e3]
    return (abs(len(waited) - (first["latency_us"] - 20e3) / 10e3) <= 2
            and all(record["end_us"] >= first["end_us"] - 5e3 for record in waited))


@pytest.mark.full
@pytest.mark.alone
def test_stall_of_a_second_at_a_hundred_a_second(records, server):
    """Repeated where the machine kept client and server from running for a while."""
    for _ in range(ATTEMPTS):
        server.stall_at = None
        _, table = records("-r", 100, "--arrivals", "constant", "-n", 250, "-c", 200, "/stall/1000")
        assert len(table) == 250 and max(record["latency_us"] for record in table) >= 1e6
        if waited_for_the_stall(table):
            return
    pytest.fail("requests that were due in the stall were answered before its end, or not counted")


# Order

def test_list_is_replayed_in_order_over_all_connections(records, server, tmp_path):
    paths = [f"/size/{(number * 7) % 50}" for number in range(200)]
    (tmp_path / "urls").write_text("\n".join(paths))
    found, table = records("-u", tmp_path / "urls", "--once", "-c", 7)
    assert found["requests"] == 200 and len(by_connection(table)) == server.connections == 7
    assert sorted(path for _, path in server.log) == sorted(paths)
    table.sort(key=lambda record: record["sent_us"])
    assert [record["url"] for record in table] == list(range(200))
    assert [record["path"] for record in table] == paths


def test_one_connection_sees_the_list_again_and_again(bench, server, tmp_path):
    paths = [f"/size/{number}" for number in (5, 3, 5, 9)]
    (tmp_path / "urls").write_text("\n".join(paths))
    bench("-u", tmp_path / "urls", "-n", 10)
    assert [path for _, path in server.log] == (paths * 3)[:10]


def test_once_counts_the_warmup(bench, server, tmp_path):
    (tmp_path / "urls").write_text("/size/1\n" * 30)
    assert bench("-u", tmp_path / "urls", "--once", "--warmup", 10)["requests"] == 20
    assert server.requests == 30


# Sessions

@pytest.mark.full
@pytest.mark.alone
def test_sessions_have_their_requests_and_think(records, server):
    found, table = records("--sessions", 50, "--session-requests", 4, "--think", 0.05, "-d", 3,
                           "/delay/10")
    sessions = by_connection(table)
    assert found["loop"] == "partly-open" and found["errors"] == 0
    assert found["sessions"]["started"] == server.connections == len(sessions)
    assert sum(len(each) == 4 for each in sessions.values()) == found["sessions"]["completed"]
    assert max(len(each) for each in sessions.values()) == 4
    thoughts = [later["start_us"] - earlier["end_us"] for each in sessions.values()
                for earlier, later in zip(each, each[1:])]
    assert min(thoughts) >= -1 and 40e3 < mean(thoughts) < 60e3
    spread = mean([(thought - mean(thoughts)) ** 2 for thought in thoughts]) ** 0.5
    assert 0.8 < spread / mean(thoughts) < 1.2


@pytest.mark.full
@pytest.mark.alone
def test_sessions_arrive_as_a_poisson_process(records):
    found, table = records("--sessions", 100, "--session-requests", 1, "-d", 3, "/size/1")
    starts = sorted(record["start_us"] for record in table)
    gaps = [later - earlier for earlier, later in zip(starts, starts[1:])]
    assert 240 < found["sessions"]["started"] < 360
    spread = mean([(gap - mean(gaps)) ** 2 for gap in gaps]) ** 0.5
    assert 8.5e3 < mean(gaps) < 12e3 and 0.8 < spread / mean(gaps) < 1.2


@pytest.mark.full
@pytest.mark.alone
def test_session_lengths_around_a_mean(records):
    """In a run whose end cuts next to none short; repeated on a machine that is too busy."""
    for _ in range(ATTEMPTS):
        found, table = records("--sessions", 200, "--session-requests", 4, "--session-length",
                               "geometric", "-d", 2, "/size/1")
        if found["sessions"]["completed"] > 0.97 * found["sessions"]["started"]:
            break
    lengths = [len(each) for each in by_connection(table).values()]
    assert 3.3 < mean(lengths) < 4.7
    assert 0.15 < lengths.count(1) / len(lengths) < 0.35 and max(lengths) > 8


@pytest.mark.full
@pytest.mark.alone
def test_sessions_do_not_wait_for_the_server_but_for_a_connection(records):
    """50 sessions a second, of which two at a time are served in 100 ms."""
    options = ("--sessions", 50, "--session-requests", 1, "--arrivals", "constant", "-d", 1,
               "/delay/100")
    found, table = records(*options, "-c", 2)
    assert found["requests"] == 50 and found["late_starts"] >= 40
    assert found["latency_ms"]["max"] >= 1500
    assert [round(record["start_us"] / 20e3) for record in
            sorted(table, key=lambda record: record["start_us"])] == list(range(50))
    found, _ = records(*options)
    assert found["requests"] == 50 and found["latency_ms"]["max"] < 1500


def test_a_session_may_need_several_connections(bench, server):
    found = bench("--sessions", 50, "--session-requests", 6, "-k", 2, "-n", 60, "/size/1")
    used = collections.Counter(connection for connection, _ in server.log)
    assert server.requests == 60 and max(used.values()) == 2
    # Of each session, however many there were at once, only the last connection can have had one request.
    assert 30 <= len(used) <= (60 + found["sessions"]["started"]) / 2


# Series

def percentile(values, percent):
    return sorted(values)[max(0, math.ceil(percent / 100 * len(values)) - 1)]


def test_series_says_what_the_records_say(records, tmp_path):
    found, table = records("-r", 100, "-n", 200, "-c", 100, "--allow-errors", "--series",
                           tmp_path / "series", "--interval", "0.25", "/stall/300",
                           "/status/404")
    series = read_table(tmp_path / "series")
    assert sum(int(line["requests"]) for line in series) == 200
    assert sum(int(line["errors"]) for line in series) == found["errors"] == 100
    for number, line in enumerate(series):
        inside = [record for record in table if record["start_us"] // 250e3 == number]
        latencies = [record["latency_us"] / 1e3 for record in inside]
        assert float(line["start_s"]) == number * 0.25
        assert int(line["requests"]) == int(line["answered"]) == len(inside)
        assert float(line["mean_ms"]) == pytest.approx(mean(latencies), rel=0.001)
        assert float(line["p50_ms"]) == pytest.approx(percentile(latencies, 50), rel=0.01)
        assert float(line["p99_ms"]) == pytest.approx(percentile(latencies, 99), rel=0.01)
        assert float(line["max_ms"]) == pytest.approx(max(latencies), rel=0.001)


def test_series_has_empty_intervals(bench, tmp_path):
    bench("-r", 4, "--arrivals", "constant", "-n", 5, "--series", tmp_path / "series",
          "--interval", "0.1", "/size/1")
    counts = [int(line["requests"]) for line in read_table(tmp_path / "series")]
    assert counts == [1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1]
    assert read_table(tmp_path / "series")[1]["p50_ms"] == "nan"


def test_series_has_what_was_never_answered(bench, tmp_path):
    found = bench("-r", 50, "-d", 1, "-c", 1, "-t", 1, "--series", tmp_path / "series",
                  "/delay/100", expect=1)
    series = read_table(tmp_path / "series")
    assert found["by_error"]["unfinished"] > 10
    assert sum(int(line["errors"]) for line in series) == found["errors"]
    assert sum(int(line["answered"]) for line in series) == found["requests"]
    assert sum(int(line["requests"]) for line in series) == found["errors"] + found["requests"]


# True if the client was the limit

def check_limits(found, out):
    """Findings about limits must follow from the numbers, whatever this machine is doing."""
    cpu, wait = found["client_cpu"], found["client_cpu_wait"]
    late, latency = found["late_sends_ms"]["p99"], found["latency_ms"]["p99"]
    limits = []
    if cpu + wait > 0.9:
        limits.append("cpu" if cpu > 0.9 else "cpu wait")
    if late > max(1, latency / 10):
        limits.append("late sends")
    assert found["client_limited_by"] == limits
    assert found["client_limited"] == ("LIMITED" in out) == bool(limits)


def test_idle_client_is_not_the_limit(bench):
    found = bench("-n", 40, "-c", 2, "/delay/50")
    assert found["client_cpu"] < 0.5 and "cpu" not in found["client_limited_by"]
    check_limits(found, bench.done.stdout)


@pytest.mark.full
@pytest.mark.alone
def test_busy_client_is_the_limit(bench):
    """Repeated if the machine takes the processor away from client and server."""
    for _ in range(ATTEMPTS):
        found = bench("-n", 10, "/crumbs/1000000")
        assert found["bytes"] == 10_000_000
        check_limits(found, bench.done.stdout)
        if found["client_cpu"] + found["client_cpu_wait"] > 0.5:
            return
    pytest.fail(f"never busy: {found}")


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.parametrize("connections", [1, 200])
def test_stalled_server_is_not_the_clients_fault(bench, connections):
    found = bench("-r", 100, "-n", 200, "-c", connections, "/stall/600")
    assert found["latency_ms"]["max"] >= 600
    assert found["late_sends_ms"]["p90"] < 100
    assert connections > 1 or found["late_starts"] >= 30
    check_limits(found, bench.done.stdout)


def test_stopped_client_is_the_limit(server, tmp_path):
    """Stopped for 300 ms it sends late, though connections are free: so many that a slow server leaves some."""
    result = tmp_path / "result.json"
    # Constant: at random nothing might be due in the first moments of the stop.
    command = [selftest.PROGRAM, "--port", server.port, "-r", 100, "--arrivals", "constant", "-n", 300,
               "-c", 200, "--json", result, "/size/1"]
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE) as process:
        while server.requests < 50:
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGCONT)
        out = process.communicate(timeout=30)[0].decode()
    found = selftest.json.loads(result.read_text())
    assert found["late_sends_ms"]["max"] >= 250
    assert "late sends" in found["client_limited_by"]
    assert "LIMITED        by this client: it sent late" in out
    check_limits(found, out)


# TLS

@pytest.fixture(name="tls_server")
def make_tls_server(tmp_path):
    """Used with --tls --port; the usual server runs beside it."""
    probe = subprocess.run([str(selftest.PROGRAM), "--tls", "--port", "1", "-n", "1"],
                           capture_output=True, text=True, timeout=60)
    if "built without TLS" in probe.stderr:
        pytest.skip("flashpache-bench was built without TLS: needs libssl-dev")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=nobody.invalid", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    tls_server = Server(tls=context)
    yield tls_server
    tls_server.stop()


def test_tls_bodies_and_connections(bench, tls_server):
    found = bench("--tls", "--port", tls_server.port, "-n", 40, "-c", 3, "-k", 5,
                  "/size/300000", "/chunked/2500", "/size/0", "/bytewise")
    assert found["errors"] == 0 and found["bytes"] == 10 * (300000 + 2500 + 5)
    # Three take turns as they are answered: 15, 15 and 10 requests, or 16, 12 and 12.
    assert found["connections_opened"] == tls_server.connections and 8 <= tls_server.connections <= 10
    assert found["tls"]["protocol"].startswith("TLSv1.") and found["tls"]["cipher"]
    assert "certificate not verified" in bench.done.stdout


def test_tls_ends_of_connections(bench, tls_server):
    use = ("--tls", "--port", tls_server.port)
    found = bench(*use, "-n", 6, "/close", "/until")
    assert found["bytes"] == 30 and found["connections_opened"] == 6
    found = bench(*use, "-n", 6, "/rude/2")
    assert found["requests"] == 6 and found["retries"] == 2
    found = bench(*use, "-n", 3, "/short", expect=1)
    assert found["by_error"]["closed"] == 3


def test_tls_sessions(bench, tls_server):
    found = bench("--tls", "--port", tls_server.port, "--sessions", 30, "--session-requests", 3,
                  "--think", "0.01", "-n", 60, "/delay/5")
    assert found["requests"] == 60 and found["errors"] == 0
    assert found["latency_ms"]["min"] >= 5


@pytest.mark.usefixtures("tls_server")
def test_tls_with_a_server_that_has_none(bench):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def refuse():
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        thread = threading.Thread(target=refuse)
        thread.start()
        port = listener.getsockname()[1]
        assert bench("--tls", "--port", port, "-n", 3, "/", expect=2) is None
        thread.join()
    assert f"cannot connect to 127.0.0.1 port {port}: wrong version" in bench.done.stderr


def test_plain_with_a_tls_server(bench, tls_server):
    found = bench("--port", tls_server.port, "-n", 3, "/size/1", expect=1)
    assert found["errors"] == 3 and found["tls"] is None


@pytest.mark.parametrize("options, message", [
    (["--sessions", "5", "-r", "5"], "exclude each other"),
    (["--think", "1"], "are for --sessions"),
    (["--session-requests", "0"], "at least 1"),
    (["--sessions", "5", "--session-length", "odd"], "fixed or geometric"),
    (["--once", "--random", "1"], "--once excludes"),
    (["--interval", "0"], "positive"),
    (["--series", "/nonexistent/x"], "cannot write /nonexistent/x"),
])
def test_usage_errors_of_load(bench, options, message):
    assert bench("-d", 1, *options, expect=2) is None
    assert message in bench.done.stderr
