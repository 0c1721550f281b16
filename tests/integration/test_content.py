# SPDX-License-Identifier: Apache-2.0
"""Small files are served by their content, as stock serves them, without a question to the file system."""

import shutil
import subprocess
from contextlib import closing

import pytest

import tree
from content_kit import SETTLED_S, clock, content_files, get_lease, settled, stats  # noqa: F401 (fixtures)
from forms import never_where
from freshness import settings
from keepalive import Connection
from lease_kit import NOTE_CONFIG
from rawhttp import exchange, normalised, parse, request
from test_answer_table import ONE_OF_MANY
from test_walk_calls import LIMITS
from trace import Trace
from waiting import until_good, wait_for

SIZES = (1, 499, 4096, 5000, 16384, 16385)
CONTENTS = 5        # of these files
REQUESTS = 40
# Every way to a file, to memory for it, to the daemon. read gets the request, writev sends the answer.
CALLS = """open openat openat2 stat lstat fstat newfstatat statx access faccessat faccessat2 readlink
readlinkat pread64 preadv lseek mmap munmap sendfile splice close fcntl sendto sendmsg recvfrom recvmsg
connect socket""".split()
RANGES = ("bytes=0-0", "bytes=100-199", "bytes=-50", "bytes=400-", "bytes=0-9,20-29,-5", "bytes=99999-")


@pytest.fixture(scope="module")
def root(base):
    root = base / "contents"
    for size in SIZES:
        tree.put(root / f"file{size}.bin", tree.content(f"file{size}", size))
        tree.put(root / f"page{size}.html", b"<p>" * (size // 3 + 1))
    return root


def paths():
    return [f"/{name}" for size in SIZES for name in (f"file{size}.bin", f"page{size}.html")]


CONFIG = NOTE_CONFIG + """FileETag MTime Size
<FilesMatch "html$">
SetOutputFilter DEFLATE
</FilesMatch>
"""


@pytest.fixture(scope="module", params=("disk", "slow"))
def served(request, root):
    """The same files by their own file system, and through one that reports no changes."""
    return root if request.param == "disk" else request.getfixturevalue("slow_directory")(root, 100)


@pytest.fixture(scope="module", params=("event", "prefork"))
def servers(lab, served, certificate, clock, request):  # noqa: F811 (clock)
    options = dict(mpm=request.param, tls=certificate, http2=request.param == "event", config=CONFIG)
    name = f"{request.param}-{served.name}"
    stock = lab.stock(f"stock-{name}", served, **options).start()
    flash = lab.under_test(f"flash-{name}", served, daemon_settings={"ttl_ms": 60000}, **options)
    yield stock, flash
    lab.end()


def questions():
    for path in paths():
        yield "GET", path, {}
        yield "HEAD", path, {}
        yield "GET", path, {"Accept_Encoding": "gzip"}
        yield "GET", path, {"If_Modified_Since": "Fri, 31 Dec 2100 00:00:00 GMT"}
        for ranges in RANGES:
            yield "GET", path, {"Range": ranges}


def answers(server, tls):
    """All of them over one connection, one sent after the other without waiting."""
    asked = [*questions()]
    last = len(asked) - 1
    data = b"".join(request(method, path, close=number == last, **fields)
                    for number, (method, path, fields) in enumerate(asked))
    port = server.tls_port if tls else server.port
    return parse(exchange(port, data, tls=tls), [method for method, _, _ in asked])


def without_note(response):
    response.headers = [(name, value) for name, value in response.headers if name != "x-note"]
    return normalised(response)


@pytest.mark.parametrize("tls", (False, True), ids=("plain", "tls"))
@pytest.mark.usefixtures("settled")
def test_as_stock(servers, tls):
    stock, flash = servers
    asked = [*questions()]
    # Asked, then from leases.
    for _ in range(2):
        theirs, ours = answers(stock, tls), answers(flash, tls)
        assert len(theirs) == len(ours) == len(asked)
        for what, one, other in zip(asked, theirs, ours):
            assert without_note(other) == without_note(one), what
    # Of another file system's clock nothing is known at first (server_clock.h).
    if hasattr(flash, "daemon"):
        wait_for(lambda: content_files(flash.daemon) >= CONTENTS or not answers(flash, tls), "the contents")
        assert [*map(without_note, answers(flash, tls))] == [*map(without_note, answers(stock, tls))]


@pytest.mark.skipif(not shutil.which("nghttp"), reason="needs nghttp (nghttp2-client)")
@pytest.mark.usefixtures("settled")
@never_where(lambda values: values["servers"] == "prefork")      # prefork has no HTTP/2
def test_over_http2(servers, served):
    _, flash = servers
    for _ in range(2):
        for path in paths():
            done = subprocess.run(["nghttp", f"https://localhost:{flash.tls_port}{path}"], capture_output=True)
            assert done.stdout == (served / path[1:]).read_bytes(), (path, done.stderr)


@pytest.mark.needs_flashpache
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace to see the worker's calls")
@pytest.mark.usefixtures("settled")
def test_a_warm_hit_asks_nobody(lab, root):
    """Asks neither the file system nor the daemon; header and body leave in one call."""
    server = lab.under_test("calls", root, mpm="prefork", limits=LIMITS["prefork"],
                            config=NOTE_CONFIG + "KeepAliveTimeout 60\n", daemon_settings=settings(True))
    connection = Connection(server.port)
    for _ in range(3):
        get_lease(connection, "/file5000.bin")
    assert content_files(server.daemon) == 1

    def traced():
        with Trace(server.pids(), lab.base / "calls.txt", ",".join([*CALLS, "writev"])) as trace:
            answers = {(answer.body, answer.headers["x-note"])
                       for answer in (connection.get("/file5000.bin") for _ in range(REQUESTS))}
        return trace, answers
    # A daemon that gets no processor for a moment ends all leases for that moment.
    wanted = {(tree.content("file5000", 5000), "lease")}
    trace, answers = until_good(traced, lambda made: made[1] == wanted)
    assert answers == wanted
    connection.close()
    names = trace.names()
    print(dict(names))
    lab.end()
    assert names["writev"] == REQUESTS
    assert set(names) == {"writev"}, names


GATED = """#!/bin/sh
while read -r line; do
    touch "$1.waits"
    while [ ! -e "$1" ]; do sleep 0.02; done
    echo "$line"
done
"""


def unread_by(connection, names):
    """Asks for all of them, so often that the shared tables have them, and that this child keeps none."""
    for _ in range(2):
        for name in names:
            assert connection.get(name).status == 200


@pytest.mark.needs_flashpache
@pytest.mark.usefixtures("settled")
def test_content_that_goes_before_its_response(lab, root):
    """A program holds the request between its look-up and its handler. By then other files have the memory."""
    gate, program = lab.base / "gate", tree.put(lab.base / "gated", GATED)
    program.chmod(0o755)
    for number in range(40):
        tree.put(root / f"held/file{number}", tree.content(f"held{number}", 5000))
    names = [f"/held/file{number}" for number in range(40)]
    rules = f"""RewriteEngine On
RewriteMap wait "prg:{program} {gate}"
"""
    inside = f"""<Directory {root}/held>
RewriteEngine On
RewriteCond %{{QUERY_STRING}} =wait
RewriteRule (.*) - [E=waited:${{wait:$1}}]
</Directory>
"""
    server = lab.under_test("held", root, mpm="prefork", config=NOTE_CONFIG + inside,
                            vhosts=[(["localhost"], rules)], daemon_settings={
                                "memory": "208K", "content_file_max": 8192, **settings(True)})
    with closing(Connection(server.port)) as first, closing(Connection(server.port)) as second:
        unread_by(first, names[:10])
        began = second.begin(names[0] + "?wait")
        wait_for((lab.base / "gate.waits").exists, "the program's turn")
        before = stats(server.daemon)["contents_overwritten"]
        unread_by(first, names[10:])
        assert stats(server.daemon)["contents_overwritten"] > before + 10
        gate.touch()
        answer = second.finish(began)
    lab.end()
    assert (answer.status, answer.body) == (200, tree.content("held0", 5000))
    assert answer.headers["x-note"] == "miss"


@pytest.mark.needs_flashpache
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace to see the child's calls")
@pytest.mark.usefixtures("settled")
def test_a_client_that_has_the_file_costs_no_read_of_it(lab, root):
    names = []
    for number in range(20):
        tree.put(root / f"had/file{number}", tree.content(f"had{number}", 5000))
        names.append(f"/had/file{number}")
    server = lab.under_test("had", root, mpm="prefork", limits=ONE_OF_MANY,
                            config=NOTE_CONFIG + "KeepAliveTimeout 60\n", daemon_settings=settings(True))
    with closing(Connection(server.port)) as connection:
        unread_by(connection, names)
    reads = []
    for fields in ({}, {"If_None_Match": "*"}):
        data = b"".join(request("GET", name, close=name == names[-1], **fields) for name in names)
        with Trace(server.pids(), lab.base / "reads.txt", "pread64") as trace:
            found = parse(exchange(server.port, data), ["GET"] * len(names))
        assert {(answer.status, dict(answer.headers)["x-note"]) for answer in found} == {(304 if fields else 200, "lease")}
        reads.append(sum(line.endswith(" = 5000") for line in trace.lines()))
    lab.end()
    assert reads == [len(names), 0]


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("size,files", ((0, 0), (499, 2), (1 << 20, len(SIZES))))
@pytest.mark.usefixtures("settled")
def test_the_setting(lab, root, size, files):
    server = lab.under_test(f"setting{size}", root, daemon_settings={"content_file_max": size, **settings(True)})
    connection = Connection(server.port)
    for one in SIZES:
        assert connection.get(f"/file{one}.bin").body == tree.content(f"file{one}", one)
    found = content_files(server.daemon)
    connection.close()
    lab.end()
    assert found == files


@pytest.mark.needs_flashpache
@pytest.mark.usefixtures("settled")
def test_no_more_than_the_budget(lab, root):
    """The oldest content gives its place to the newest, and is read again at the next question."""
    many = root / "many"
    for number in range(40):
        tree.put(many / f"file{number}", tree.content(f"many{number}", 5000))
    server = lab.under_test("budget", root, daemon_settings={
        "memory": "208K", "content_file_max": 8192, **settings(True)})
    connection = Connection(server.port)
    for _ in range(2):
        for number in range(40):
            assert connection.get(f"/many/file{number}").body == tree.content(f"many{number}", 5000)
        found = stats(server.daemon)
        assert 8 <= found["content_files"] <= 13 and found["content_bytes"] <= found["content_memory"] <= 65536
        assert found["contents_overwritten"] >= 27
    connection.close()
    lab.end()


# Above content_file_max, and one above what a content can be.
LARGE = {f"large{size}": tree.content(f"large{size}", size) for size in (16_385, 300_000, 1 << 20)}
TOO_LARGE = {"large1048577": tree.content("large1048577", (1 << 20) + 1)}


@pytest.fixture
def remote(lab, base, slow_directory, settled):  # noqa: F811 (settled)
    """remote(name, files, settings) -> (server, connection, the files' directory behind the mount); once in a test"""
    connections = []

    def make(name, files=LARGE | TOO_LARGE, mpm="event", **daemon_settings):
        source = base / f"{name}-source"
        for file, content in files.items():
            tree.put(source / file, content)
        server = lab.under_test(name, slow_directory(source, 100), mpm=mpm, config=NOTE_CONFIG,
                                daemon_settings={"ttl_ms": 600, **daemon_settings})
        connections.append(Connection(server.port))
        return server, connections[-1], source
    yield make
    for connection in connections:
        connection.close()
    lab.end()


def use(connection, files=LARGE):
    for file, content in files.items():
        answer = connection.get(f"/{file}")
        assert (answer.status, answer.complete, answer.body == content) == (200, True, True), file


@pytest.mark.needs_flashpache
@pytest.mark.parametrize("mpm", ("event", "prefork"))
def test_larger_files_on_a_remote_mount(remote, mpm):
    """In use when they are refreshed, they become content: no request waits for the reading."""
    server, connection, source = remote(f"remote-{mpm}", mpm=mpm)
    use(connection)
    found = stats(server.daemon)
    assert found["content_files"] == 0 or found["refreshed"] > 0
    wait_for(lambda: use(connection, LARGE | TOO_LARGE) or content_files(server.daemon) == len(LARGE), "the contents")
    # Served without a question to the file system.
    get_lease(connection, "/large300000")
    use(connection)
    # Another machine's change, which nobody reports.
    changed = {file: content[::-1] for file, content in LARGE.items()}
    for file, content in changed.items():
        tree.put(source / file, content)

    def new():
        answers = {file: connection.get(f"/{file}").body for file in LARGE}
        assert all(answers[file] in (LARGE[file], changed[file]) for file in LARGE)
        return answers == changed
    wait_for(new, "the new contents")
    wait_for(lambda: use(connection, changed) or content_files(server.daemon) == len(LARGE), "their contents")


@pytest.mark.needs_flashpache
def test_no_room_for_larger_files(remote):
    """They take at most half of the room for contents: six of ten, and descriptors serve the others."""
    size, room = 300_000, 4 << 20
    files = {f"many{n}": tree.content(f"many{n}", size) for n in range(10)}
    server, connection, _ = remote("half", files, memory=room // 4 * 13)
    fit = room // 2 // size
    wait_for(lambda: use(connection, files) or content_files(server.daemon) == fit, "as many as there is room for")
    refreshed = stats(server.daemon)["refreshed"] + 2 * len(files)

    def goes_on():
        use(connection, files)
        found = stats(server.daemon)
        assert (found["content_files"], found["contents_overwritten"]) == (fit, 0)
        return found["refreshed"] > refreshed
    wait_for(goes_on, "more refreshes")


@pytest.mark.needs_flashpache
def test_no_larger_files_without_contents(remote):
    server, connection, _ = remote("none", content_file_max=0)
    most = stats(server.daemon)["walks"] + 12
    wait_for(lambda: use(connection) or stats(server.daemon)["walks"] > most, "refreshes")
    assert content_files(server.daemon) == 0


@pytest.mark.needs_flashpache
def test_a_fresh_file_becomes_content_later(lab, base, clock):  # noqa: F811
    """Too new at first, the file is open; after the next look leases use the content."""
    root = base / "fresh"
    tree.put(root / "file.txt", "text\n")
    server = lab.under_test("fresh", root, config=NOTE_CONFIG, daemon_settings={
        "ttl_ms": 600, "watch": "ttl"})
    connection = Connection(server.port)
    assert get_lease(connection, "/file.txt").body == b"text\n"
    assert content_files(server.daemon) == 0

    def becomes_content():
        assert get_lease(connection, "/file.txt").body == b"text\n"
        return content_files(server.daemon) == 1
    with clock.ahead(SETTLED_S):
        wait_for(becomes_content, "the next look")
    connection.close()
    lab.end()


def test_a_fresh_file_in_use_becomes_content_soon(lab, base):
    """Changes are reported, so the usual next look is minutes away: it is not waited for."""
    root = base / "fresh-watched"
    root.mkdir()
    server = lab.under_test("fresh-watched", root, config=NOTE_CONFIG)
    connection = Connection(server.port)
    tree.put(root / "file.txt", "text\n")
    assert connection.get("/file.txt").body == b"text\n"
    assert content_files(server.daemon) == 0

    def becomes_content():
        assert get_lease(connection, "/file.txt").body == b"text\n"
        return content_files(server.daemon) == 1
    wait_for(becomes_content, "a look once the file has settled", timeout=20)
    connection.close()
    lab.end()
