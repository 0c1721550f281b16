# SPDX-License-Identifier: Apache-2.0
"""Tests of flashpache-bench against a small server with known behaviour.

Delays have exact lower bounds and generous upper ones: a busy machine may be slow, but never fast. A test with an
upper bound belongs to the full form and runs alone on the machine. tests/integration/test_bench.py collects the
tests, and sets PROGRAM.
"""

import asyncio
import json
import re
import subprocess
import threading
import time
import urllib.parse

import pytest

PROGRAM = None


class Server:
    """An HTTP server in a thread. The path decides its behaviour."""

    def __init__(self, tls=None):
        self.tls = tls
        self.connections = 0
        self.requests = 0
        self.log = []           # (connection, path)
        self.hosts = []
        self.stall_at = None
        self.loop = asyncio.new_event_loop()
        self.started = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.started.wait(10)

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1000,
                                 ssl=self.tls))
        self.port = self.server.sockets[0].getsockname()[1]
        self.started.set()
        self.loop.run_forever()

    def stop(self):
        """Closes the listening socket and all connections. May be called twice."""
        if self.thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self.loop).result(10)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)

    async def _end(self):
        self.server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        number = self.connections
        self.connections += 1
        served = 0
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                served += 1
                path = head.split(b" ")[1].decode()
                self.hosts.append(head.split(b"\r\nHost: ")[1].split(b"\r\n")[0].decode())
                self.log.append((number, path))
                if not await self._answer(path, writer, served):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, path, writer, served):
        """Answers; true if the connection stays open."""
        what, *numbers = urllib.parse.unquote(path.split("?")[0]).strip("/").split("/")
        number = int(numbers[0]) if numbers else 0
        answer = getattr(self, "do_" + what)
        return await answer(writer, number, served)

    @staticmethod
    def _send(writer, body, extra="", status="200 OK"):
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode()
                     + body)

    async def do_delay(self, writer, milliseconds, _):
        await asyncio.sleep(milliseconds / 1000)
        self._send(writer, b"hello")
        return True

    async def do_stall(self, writer, milliseconds, _):
        """Stalls the whole server, once, half a second after the first request."""
        now = time.monotonic()
        if self.stall_at is None:
            self.stall_at = now + 0.5
        if now >= self.stall_at:
            self.stall_at = now + 1e9
            time.sleep(milliseconds / 1000)
        self._send(writer, b"hello")
        return True

    async def do_status(self, writer, status, _):
        self._send(writer, b"" if status in (204, 304) else b"so", status=f"{status} Some")
        return True

    async def do_head(self, writer, size, _):
        """As to HEAD: the length of a body that does not follow."""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % int(size))
        return True

    async def do_size(self, writer, size, _):
        self._send(writer, b"x" * size)
        await writer.drain()
        return True

    async def do_chunked(self, writer, size, _):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for start in range(0, size, 1000):
            part = b"x" * min(1000, size - start)
            for piece in (f"{len(part):X};ext=1\r\n".encode(), part, b"\r\n"):
                writer.write(piece)
                await asyncio.sleep(0)
        writer.write(b"0\r\nTrailer: yes\r\n\r\n")
        return True

    async def do_crumbs(self, writer, count, _):
        """A body in chunks of one byte: little work to send, much to take apart."""
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                     + b"1\r\nx\r\n" * count + b"0\r\n\r\n")
        await writer.drain()
        return True

    async def do_bytewise(self, writer, _, __):
        for byte in (b"HTTP/1.1 103 Early\r\n\r\n"
                     b"HTTP/1.1 200 OK\r\nContent-Length:  5 \r\n\r\nhello"):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.0005)
        return True

    async def do_close(self, writer, _, __):
        self._send(writer, b"hello", "Connection: close\r\n")
        return False

    async def do_rude(self, writer, most, served):
        """Closes without an answer after so many requests."""
        if served > most:
            return False
        self._send(writer, b"hello")
        return True

    async def do_halfclose(self, writer, _, __):
        """Ends its side without an answer and goes on reading, as a lingering close does."""
        self._send(writer, b"hello")
        writer.write_eof()
        await asyncio.sleep(5)
        return False

    async def do_until(self, writer, _, __):
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nhello")
        return False

    async def do_short(self, writer, _, __):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        return False

    async def do_garbage(self, writer, _, __):
        writer.write(b"SMTP ready\r\n\r\n")
        return True

    async def do_surplus(self, writer, _, __):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello")
        return True

    async def do_badchunk(self, writer, _, __):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"5\r\nhello!!\r\n0\r\n\r\n")
        return True

    async def do_twolengths(self, writer, _, __):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
                     b"Content-Length: 4\r\n\r\nhell")
        return True


def read_table(file):
    """The lines of a tab-separated file, each a dict by the names in the first line."""
    names, *lines = (line.split("\t") for line in file.read_text().splitlines())
    return [dict(zip(names, line)) for line in lines]


@pytest.fixture(name="server")
def make_server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture(name="bench")
def make_bench(server, tmp_path):
    """Runs the program; returns its JSON, with the process as attribute of the function."""
    def run(*options, expect=0):
        result = tmp_path / "result.json"
        result.unlink(missing_ok=True)
        command = [PROGRAM, "--port", server.port, "--json", result, *options]
        run.done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                                  timeout=60)
        assert run.done.returncode == expect, run.done
        return json.loads(result.read_text()) if result.exists() else None
    return run


def test_counts_and_bytes(bench, server):
    found = bench("-n", 100, "-c", 5, "--warmup", 20, "/size/1000", "/chunked/2500", "/size/0")
    assert found["requests"] == 100 and found["errors"] == 0
    assert server.requests == 120 and server.connections == 5
    assert found["by_status"] == {"200": 100}
    # requests 20 to 119 of the sequence size, chunked, empty
    assert found["bytes"] == sum((1000, 2500, 0)[i % 3] for i in range(20, 120))


def test_summary_is_printed(bench):
    bench("-n", 10, "/size/10")
    for word in ("10 in", "requests/s", "p50", "p99.9", "200: 10", "closed loop"):
        assert word in bench.done.stdout


@pytest.mark.full
@pytest.mark.alone
def test_latency_and_rate_of_a_delay(bench):
    found = bench("-n", 40, "-c", 4, "/delay/50")
    latency = found["latency_ms"]
    assert 50 <= latency["min"] <= latency["p50"] <= latency["p90"] <= latency["p99"]
    assert latency["p99"] <= latency["p99.9"] <= latency["max"]
    assert latency["p50"] < 150
    assert found["requests_per_s"] <= 4 / 0.050
    assert found["duration_s"] >= 0.5


@pytest.mark.full
@pytest.mark.alone
def test_percentiles_tell_slow_from_fast(bench, tmp_path):
    urls = tmp_path / "urls"
    urls.write_text("/delay/0\n" * 19 + "/delay/300\n")
    found = bench("-n", 100, "-u", urls)["latency_ms"]
    assert found["p50"] < 250 and found["p90"] < 250
    assert found["p99"] >= 300
    assert 5 / 100 * 300 <= found["mean"] < 250


def test_no_coordinated_omission(bench):
    """A stall of 600 ms meets 200 requests a second: those that were due during it waited."""
    found = bench("-r", 200, "--arrivals", "constant", "-n", 400, "-c", 1, "/stall/600")
    assert found["requests"] == 400
    assert found["latency_ms"]["max"] >= 600
    # 120 of 400 were due in the stall: evenly from 600 ms down to 0
    assert found["latency_ms"]["p90"] >= 300
    assert found["late_starts"] >= 60


@pytest.mark.full
@pytest.mark.alone
def test_closed_loop_sees_the_stall_once(bench):
    found = bench("-d", 2, "-c", 1, "/stall/600")
    assert found["latency_ms"]["max"] >= 600
    assert found["latency_ms"]["p99"] < 300


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.parametrize("arrivals", ["constant", "exponential"])
def test_open_loop_keeps_the_rate(bench, tmp_path, arrivals):
    records = tmp_path / "records"
    found = bench("-r", 200, "--arrivals", arrivals, "-d", 2, "-c", 50, "--records", records,
                  "/delay/20")
    assert 300 <= found["requests"] <= 500
    assert found["latency_ms"]["min"] >= 20
    starts = [float(record["start_us"]) for record in read_table(records)]
    assert len(starts) == found["requests"]
    starts.sort()
    gaps = [later - earlier for earlier, later in zip(starts, starts[1:])]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert 4000 < mean < 6500
    assert spread < 1 if arrivals == "constant" else 3000 < spread < 8000


def test_overload_is_not_hidden(bench):
    found = bench("-r", 100, "-d", 1, "-c", 1, "-t", 1, "/delay/50", expect=1)
    assert found["by_error"]["unfinished"] > 30
    assert found["latency_ms"]["max"] > 500


def test_same_seed_same_order(bench, tmp_path):
    def order(seed):
        bench("-n", 50, "--random", seed, "--records", tmp_path / "records",
              *(f"/size/{i}" for i in range(20)))
        return [record["path"] for record in read_table(tmp_path / "records")]
    first = order(7)
    assert first == order(7)
    assert first != order(8)
    assert len(set(first)) > 10


def test_records_name_everything(bench, tmp_path):
    bench("-n", 2, "--records", tmp_path / "records", "--allow-errors", "/size/7", "/status/404")
    head, ok, wrong = (tmp_path / "records").read_text().splitlines()
    assert head.split("\t") == ["start_us", "sent_us", "latency_us", "bytes", "status", "result",
                                "url", "connection", "path"]
    assert ok.split("\t")[3:] == ["7", "200", "ok", "0", "0", "/size/7"]
    assert wrong.split("\t")[3:] == ["2", "404", "status", "1", "0", "/status/404"]


def test_requests_per_connection(bench, server):
    found = bench("-n", 20, "-k", 5, "/size/1")
    assert found["connections_opened"] == server.connections == 4


def test_connection_close_is_obeyed(bench, server):
    found = bench("-n", 6, "/close", "/until")
    assert found["requests"] == 6 and found["retries"] == 0
    assert found["bytes"] == 30 and server.connections == 6


def test_lost_keep_alive_is_retried_once(bench, server):
    found = bench("-n", 6, "/rude/2")
    assert found["requests"] == 6 and found["errors"] == 0
    assert found["retries"] == 2 and server.connections == 3


def test_half_closed_connection_is_not_used(bench, server):
    found = bench("-n", 20, "-t", 3, "/halfclose")
    assert found["requests"] == 20 and found["errors"] == 0
    assert server.connections == 20


def test_lost_first_request_is_an_error(bench):
    found = bench("-n", 3, "--allow-errors", "/rude/0")
    assert found["by_error"]["closed"] == 3


def test_slow_bytes_and_interim_response(bench):
    found = bench("-n", 2, "/bytewise")
    assert found["requests"] == 2 and found["bytes"] == 10


def test_no_body_statuses(bench):
    found = bench("-n", 4, "/status/204", "/status/304")
    assert found["by_status"] == {"204": 2, "304": 2} and found["bytes"] == 0


def test_head_has_no_body(bench, tmp_path):
    urls = tmp_path / "urls"
    urls.write_text("HEAD /head/5000\nGET /size/10\n")
    found = bench("-n", 6, "-u", urls)
    assert (found["requests"], found["bytes"], found["connections_opened"]) == (6, 30, 1)


def test_each_line_may_say_its_status(bench, tmp_path):
    urls = tmp_path / "urls"
    urls.write_text("/status/404 404\n/status/301 301\nHEAD /status/204 204\n/size/1 404\n/status/403\n/size/1\n")
    found = bench("-u", urls, "--once", expect=1)
    assert found["by_status"] == {"200": 2, "204": 1, "301": 1, "403": 1, "404": 1}
    assert found["unexpected"] == {"200": 1, "403": 1} and found["by_error"]["status"] == 2


def test_each_line_may_name_its_host(bench, server, tmp_path):
    urls = tmp_path / "urls"
    urls.write_text("http://one.test/size/1 200\nHEAD http://two.test/head/5\n/size/1\n")
    bench("-u", urls, "--once")
    assert server.hosts == ["one.test", "two.test", f"127.0.0.1:{server.port}"]
    assert [path for _, path in server.log] == ["/size/1", "/head/5", "/size/1"]


@pytest.mark.parametrize("line", ("http://one.test", "POST /x", "/x 99", "/x 404 1", "/x 40x", "HEAD", "/x\t404", " /x"))
def test_a_line_that_is_no_request(bench, line, tmp_path):
    urls = tmp_path / "urls"
    urls.write_text(line + "\n")
    bench("-u", urls, expect=2)
    assert "is no URL path" in bench.done.stderr


@pytest.mark.parametrize("path, kind, message", [
    ("/short", "closed", "closed before the end"),
    ("/garbage", "malformed", "status line"),
    ("/surplus", "malformed", "more bytes"),
    ("/badchunk", "malformed", "chunk"),
    ("/twolengths", "malformed", "Content-Length"),
    ("/status/404", "status", "404"),
    ("/status/503", "status", "503"),
])
def test_wrong_answers(bench, path, kind, message):
    found = bench("-n", 3, path, expect=1)
    assert found["by_error"][kind] == 3
    assert path in bench.done.stderr and message in bench.done.stderr
    bench("-n", 3, "--allow-errors", path)


def test_timeout(bench):
    # The answer would come long after the end of this test's time limit.
    found = bench("-n", 2, "-c", 2, "-t", "0.3", "/delay/600000", expect=1)
    assert found["by_error"]["timeout"] == 2


def test_verify(bench, tmp_path):
    directory = tmp_path / "files" / "size"
    directory.mkdir(parents=True)
    for size in (0, 5, 100_000):
        (directory / str(size)).write_bytes(b"x" * size)
    (directory / "6").write_bytes(b"xxxxxy")
    (directory / "7").write_bytes(b"x" * 8)
    (directory / "8").write_bytes(b"x" * 7)
    bench("-n", 30, "-c", 3, "--verify", tmp_path / "files", "/size/0", "/size/5?query",
          "/size/100000", "/%73ize/5")
    for path in ("/size/6", "/size/7", "/size/8", "/size/9"):
        found = bench("-n", 3, "--verify", tmp_path / "files", path, expect=1)
        assert found["by_error"]["body"] == 3, path


def test_no_server(bench, server):
    server.stop()
    assert bench("-n", 1000, "/", expect=2) is None
    assert re.search(r"cannot connect to 127.0.0.1 port \d+: Connection refused",
                     bench.done.stderr)


@pytest.mark.parametrize("options, message", [
    (["-c", "0"], "at least 1"),
    (["-c", "x"], "whole number"),
    (["-r", "-1"], "positive"),
    (["--arrivals", "odd"], "exponential or constant"),
    (["no-slash"], "must begin with /"),
    (["-u", "/nonexistent"], "cannot open /nonexistent"),
    (["--records", "/nonexistent/x"], "cannot write /nonexistent/x"),
    (["--bogus"], "--help"),
])
def test_usage_errors(bench, options, message):
    assert bench("-n", 1, *options, expect=2) is None
    assert message in bench.done.stderr


def test_help(bench):
    bench("--help")
    assert bench.done.stdout.startswith("Usage: flashpache-bench")
