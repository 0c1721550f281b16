# SPDX-License-Identifier: Apache-2.0
"""A child looks itself at a file that the daemon does not know yet. The file's directory must be known, lie on a file
system of this machine, and be in the kernel's memory. At the FlashpacheAdmission-th look the daemon hears of the file."""

import os
import shutil
import stat
import subprocess

import pytest

import tree
from content_kit import forget_all, get_lease, stats
from keepalive import Connection
from lease_kit import NOTE_CONFIG
from system_limits import needs_linux
from trace import Trace
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

NEVER = 65_535          # FlashpacheAdmission: no file is asked for so often
USUAL = 8               # with 2 GiB of memory or more
# Around the borders of reading, mapping, and APR's buckets.
SIZES = (0, 1, 500, 16_383, 16_384, 65_535, 65_536, 65_537, 262_144, 5_000_000)
KNOWN = "/a/b/known.txt"
OTHER = ("Header set X-Rules these\n<Files denied.txt>\nRequire all denied\n</Files>\n"
         "<If \"-f '%{REQUEST_FILENAME}'\">\nHeader set X-Is file\n</If>\n")


def name(size):
    return f"/a/b/size{size}.bin"


@pytest.fixture(scope="module", autouse=True)
def kernel():
    needs_linux(5, 12, "RESOLVE_CACHED")


@pytest.fixture(params=("event", "prefork"), scope="module")
def looking(request, lab, base):
    """(stock, ours, root): our children never ask about a file in a known directory."""
    root = base / f"looks-{request.param}"
    for size in SIZES:
        tree.put(root / name(size)[1:], tree.content(f"look{size}", size))
    tree.put(root / KNOWN[1:], "known\n")
    tree.put(root / "a/b/.htaccess", OTHER)
    tree.put(root / "a/b/denied.txt", "denied\n")
    tree.put(root / "plain/known.txt", "known\n")
    tree.put(root / "plain/page.txt", "page\n")
    text = NOTE_CONFIG + f"<Directory {root}>\nAllowOverride All\nRequire all granted\n</Directory>\n"
    stock = lab.stock(f"stock-{request.param}", root, mpm=request.param, config=text).start()
    ours = lab.under_test(f"looks-{request.param}", root, mpm=request.param, config=text, admission=NEVER)
    yield stock, ours, root
    lab.end()


@pytest.fixture
def connections(looking):
    """(stock's, ours): the directory is known."""
    made = [Connection(server.port) for server in looking[:2]]
    know(looking[1], made[1], KNOWN)
    yield made
    for one in made:
        one.close()


def know(server, connection, path):
    """The daemon hears of the path, which a child would else find itself below a directory that is known."""
    forget_all(server.daemon)
    get_lease(connection, path)


def lasting(headers):
    """Those that are not of their moment."""
    return {key: value for key, value in headers.items() if key not in ("date", "x-note")}


def by_look(server, connection, get):
    """The rest of get()'s (note, rest) where the note is "look". A daemon without a processor for a while is asked, and knows
    the file then."""
    for _ in range(20):
        note, rest = get()
        if note == "look":
            return rest
        know(server, connection, KNOWN)
    raise AssertionError(f"no look, but {note}")


def visible(answer):
    return answer.status, lasting(answer.headers), answer.body


def ask(connection, path, headers="", method="GET"):
    """(status, lasting headers, note, body) of any request; HEAD and 304 have no body."""
    connection.socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
    status, fields, data = connection.read_head()
    length = 0 if method == "HEAD" or status == 304 else int(fields["content-length"])
    while len(data) < length:
        data += connection.receive()
    assert len(data) == length
    return status, lasting(fields), fields["x-note"], data


@pytest.mark.parametrize("size", SIZES)
def test_as_stock(looking, connections, size):
    """The same file three times: the child never learns it."""
    stock, ours = connections
    expected = stock.get(name(size))
    assert expected.status == 200 and len(expected.body) == size

    def get():
        answer = ours.get(name(size))
        assert visible(answer) == visible(expected)
        return answer.headers["x-note"], None
    for _ in range(3):
        by_look(looking[1], ours, get)


@pytest.mark.parametrize("size", (500, 65_537, 262_144))
@pytest.mark.parametrize("method, headers", (
    ("HEAD", ""), ("GET", "Range: bytes=10-99\r\n"), ("GET", "Range: bytes=-5\r\n"),
    ("GET", "If-Modified-Since: {last-modified}\r\n"), ("GET", "If-None-Match: {etag}\r\n")))
def test_parts_and_conditions(looking, connections, size, method, headers):
    stock, ours = connections
    headers = headers.format(**stock.get(name(size)).headers)
    expected = ask(stock, name(size), headers, method)

    def get():
        status, fields, note, body = ask(ours, name(size), headers, method)
        return note, (status, fields, body)
    assert by_look(looking[1], ours, get) == expected[:2] + expected[3:]


@pytest.mark.parametrize("path", ("/a/b/none.txt", "/a/b/none.txt?query", "/a/b/none/below.txt", "/a/b/denied.txt"))
def test_absent_and_denied(looking, connections, path):
    stock, ours = connections

    def get():
        answer = ours.get(path)
        return answer.headers["x-note"], visible(answer)
    assert by_look(looking[1], ours, get) == visible(stock.get(path))


def test_no_message(looking, connections, lab):
    """As many calls on the path as stock's, one more look before the response, and one to read the file. The daemon is not asked."""
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    server, ours = looking[1], connections[1]
    know(server, ours, "/plain/known.txt")
    with Trace(server.pids(), lab.base / f"look-{server.mpm}.txt",
               "%file,connect,sendto,sendmsg,recvmsg,pread64") as trace:
        assert ours.get("/plain/page.txt").headers["x-note"] == "look"
    # A look through a descriptor names no path.
    calls = [line for line in trace.lines() if "page.txt" in line and "AT_EMPTY_PATH" not in line]
    assert [line.split("(")[0].split()[-1] for line in calls] == ["newfstatat", "openat", "newfstatat", "pread64"]
    assert not any(f" {call}(" in line for line in trace.lines() for call in ("connect", "sendmsg", "recvmsg"))


def test_a_test_opens_nothing(lab, base):
    """A page's rules may test a thousand files."""
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    root = base / "tested"
    for name in ("known", "page", "tested"):
        tree.put(root / f"d/{name}.txt", f"{name}\n")
    text = (f"{NOTE_CONFIG}<Directory {root}/d>\nRewriteEngine On\nRewriteCond {root}/d/tested.txt -f\n"
            "RewriteRule page - [E=TESTED:yes]\nHeader always set X-Tested %{TESTED}e\n</Directory>\n")
    server = lab.under_test("tested", root, config=text, admission=NEVER)
    connection = Connection(server.port)
    get_lease(connection, "/d/known.txt")
    with Trace(server.pids(), lab.base / "tested.txt", "%file") as trace:
        answer = connection.get("/d/page.txt")
    assert (answer.headers["x-tested"], answer.headers["x-note"]) == ("yes", "look")
    calls = [line.split("(")[0].split()[-1] for line in trace.lines() if "tested.txt" in line]
    assert calls == ["newfstatat"]
    connection.close()
    lab.end()


def test_a_change_shows_at_once(looking, connections):
    """Of the file, of its name, of an access file above it, and of a directory on the way."""
    _, server, root = looking
    ours = connections[1]
    directory, page = root / "a/c", root / "a/c/page.txt"
    tree.put(directory / "known.txt", "known\n")
    know(server, ours, "/a/c/known.txt")
    for turn in range(40):
        page.write_text(f"written {turn}\n")
        assert ours.get("/a/c/page.txt").body == f"written {turn}\n".encode()
        os.rename(tree.put(directory / "new", f"renamed {turn}\n"), page)
        assert ours.get("/a/c/page.txt").body == f"renamed {turn}\n".encode()
        (directory / ".htaccess").write_text("Require all denied\n")
        assert ours.get("/a/c/page.txt").status == 403
        (directory / ".htaccess").unlink()
        assert ours.get("/a/c/page.txt").status == 200
        directory.chmod(0o700)
        assert ours.get("/a/c/page.txt").status == 403
        directory.chmod(0o755)
        directory.rename(root / "a/away")
        assert ours.get("/a/c/page.txt").status == 404
        (root / "a/away").rename(directory)
        assert ours.get("/a/c/page.txt").status == 200
        page.unlink()
        assert ours.get("/a/c/page.txt").status == 404


def test_only_regular_files_are_opened(looking, connections):
    """The open of a FIFO would let its writer go on; a link and an unreadable file are the daemon's."""
    root, (stock, ours) = looking[2], connections
    os.mkfifo(root / "a/b/fifo")
    os.chmod(root / "a/b/fifo", 0o644)
    os.mknod(root / "a/b/device", stat.S_IFCHR | 0o644, os.makedev(1, 3))
    os.symlink("known.txt", root / "a/b/link")
    tree.put(root / "a/b/secret.txt", "secret\n").chmod(0o600)
    (root / "a/b/sub").mkdir()
    with subprocess.Popen(["sh", "-c", f"echo written > {root}/a/b/fifo"]) as writer:
        try:
            assert ours.get("/a/b/fifo").status == 403
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(0.5)
        finally:
            writer.kill()
    for path in ("/a/b/device", "/a/b/link", "/a/b/secret.txt"):
        answer = ours.get(path)
        assert visible(answer) == visible(stock.get(path)), path
        assert answer.headers["x-note"] == "miss", path


# Below /a/b, which is known, as is the document root: what a child finds itself, and where it asks.
DEEP = {
    "new/page.txt": "look", "new/sub/page.txt": "look", "new/sub/": "look", "new/none.txt": "look", "new/none/below/it": "look",
    "none/a/b/c": "look", "../../" + "/".join("n" * 50): "look", "../../none/a": "look",
    "new/page.txt/below": "miss", "alias/page.txt": "miss", "rules/page.txt": "miss", "rules/sub/page.txt": "miss", "linked/page.txt": "miss",
    "closed/page.txt": "miss", "bound/page.txt": "miss", "fifo/below": "miss", "listed/page.txt": "miss",
}


def test_below_what_is_known(looking, connections):
    """The nearest known directory is enough, unless a link, an access file, a mount or a right is on the way."""
    root, (stock, ours) = looking[2] / "a/b", connections
    for name in ("new", "new/sub", "rules/sub", "rules", "linked", "closed", "bound", "listed"):
        tree.put(root / name / "page.txt", f"{name}\n")
    tree.put(looking[2] / "front.txt", "front\n")
    tree.put(root / "rules/.htaccess", "Header set X-Of rules\n")
    os.symlink("../rules/.htaccess", root / "linked/.htaccess")
    os.symlink("new", root / "alias")
    (root / "closed").chmod(0o700)
    (root / "listed").chmod(0o744)
    if not (root / "fifo").exists():
        os.mkfifo(root / "fifo")
    subprocess.run(["mount", "--bind", root / "new", root / "bound"], check=True)
    try:
        for path, note in DEEP.items():
            # Nothing of it is known, nor of what was asked before.
            know(looking[1], ours, "/front.txt")
            get_lease(ours, KNOWN)
            url = f"/a/b/{path}".replace("/a/b/../..", "")
            answer = ours.get(url)
            assert visible(answer) == visible(stock.get(url)), path
            assert answer.headers["x-note"] == note, path
    finally:
        subprocess.run(["umount", "-l", root / "bound"], check=True)


def test_below_what_is_known_a_change_shows_at_once(looking, connections):
    root, ours = looking[2] / "a/b", connections[1]
    for turn in range(40):
        assert ours.get("/a/b/fresh/sub/page.txt").status == 404
        tree.put(root / "fresh/sub/page.txt", f"{turn}\n")
        assert ours.get("/a/b/fresh/sub/page.txt").body == f"{turn}\n".encode()
        tree.put(root / "fresh/.htaccess", "Require all denied\n")
        assert ours.get("/a/b/fresh/sub/page.txt").status == 403
        shutil.rmtree(root / "fresh")


def test_another_file_system_at_the_name(looking, connections, base):
    """A file of a tmpfs, mounted over a name: the daemon says what it is."""
    _, _, root = looking
    ours = connections[1]
    other = base / f"other-{looking[1].mpm}"
    other.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", other], check=True)
    try:
        tree.put(other / "file", "of another one\n")
        tree.put(root / "a/b/mounted", "below\n")
        assert ours.get("/a/b/mounted").body == b"below\n"
        subprocess.run(["mount", "--bind", other / "file", root / "a/b/mounted"], check=True)
        try:
            wait_for(lambda: ours.get("/a/b/mounted").body == b"of another one\n", "the mount to be seen")
            assert "look" not in {ours.get("/a/b/mounted").headers["x-note"] for _ in range(3)}
        finally:
            subprocess.run(["umount", "-l", root / "a/b/mounted"], check=True)
    finally:
        subprocess.run(["umount", "-l", other], check=True)


def test_slow_file_systems_are_asked_about(lab, base, slow_directory):
    """On FUSE each new path is the daemon's, whatever the kernel has in memory."""
    source = base / "slow-source"
    for number in range(5):
        tree.put(source / f"d/{number}.txt", f"{number}\n")
    root = slow_directory(source, 0)
    server = lab.under_test("on-slowfs", root, config=NOTE_CONFIG, admission=NEVER,
                            daemon_settings={"ttl_ms": 600_000})
    connection = Connection(server.port)
    get_lease(connection, "/d/0.txt")
    assert [connection.get(f"/d/{number}.txt").headers["x-note"] for number in range(1, 5)] == ["miss"] * 4
    connection.close()
    lab.end()


def test_a_link_that_leads_elsewhere_unnoticed(lab, base):
    """Where changes are not reported the directory stays the known one for its TTL. A file in the directory where the
    link leads now would come without that one's access files."""
    root = base / "switched"
    for name in ("known", "page"):
        tree.put(root / f"own/{name}.txt", f"{name}\n")
    tree.put(root / "other/secret.txt", "secret\n")
    tree.put(root / "other/.htaccess", "Require all denied\n")
    os.symlink("own", root / "x")
    text = NOTE_CONFIG + f"<Directory {root}>\nAllowOverride All\nRequire all granted\n</Directory>\n"
    server = lab.under_test("switched", root, config=text, admission=NEVER,
                            daemon_settings={"ttl_ms": 600_000, "watch": "ttl"})
    connection = Connection(server.port)
    get_lease(connection, "/x/known.txt")
    assert connection.get("/x/page.txt").headers["x-note"] == "look"
    os.symlink("other", root / "new")
    os.rename(root / "new", root / "x")
    for _ in range(3):
        answer = connection.get("/x/secret.txt")
        assert (answer.status, answer.headers["x-note"]) != (200, "look") and answer.body != b"secret\n"
    connection.close()
    lab.end()


@pytest.fixture
def hundred(base, request):
    root = base / request.node.name.replace("[", "-").rstrip("]")
    for number in (*range(100), "known"):
        tree.put(root / f"d/{number}.txt", f"{number}\n")
    return root


AS_USER = ["setpriv", "--reuid=www-data", "--regid=www-data", "--init-groups", "--"]


@pytest.mark.parametrize("began_as", ("root", "user"))
def test_a_directory_mounted_over(lab, base, began_as):
    """A bind mount has the same device. A file of the directory that is there now is never served by the other
    one's rules. Only a daemon that began as root hears of mounts as of changes (Linux 6.15)."""
    root = base / f"over-{began_as}"
    tree.put(root / "shown/known.txt", "known\n")
    tree.put(root / "denied/secret.txt", "secret\n")
    tree.put(root / "denied/.htaccess", "Require all denied\n")
    text = NOTE_CONFIG + f"<Directory {root}>\nAllowOverride All\nRequire all granted\n</Directory>\n"
    daemon = lab.daemon(f"over-{began_as}-daemon")
    server = lab.flash(f"over-{began_as}", root, daemon.socket, config=text, admission=NEVER)
    if began_as == "user":
        for one, directory in ((daemon, daemon.socket_dir), (server, server.dir)):
            shutil.chown(directory, "www-data", "www-data")
            one.around = AS_USER
    daemon.start()
    server.start()
    connection = Connection(server.port)
    for _ in range(40):
        get_lease(connection, "/shown/known.txt")
        subprocess.run(["mount", "--bind", root / "denied", root / "shown"], check=True)
        try:
            answer = connection.get("/shown/secret.txt")
        finally:
            subprocess.run(["umount", "-l", root / "shown"], check=True)
        assert answer.status in (403, 404) and b"secret" not in answer.body, answer.headers["x-note"]
    connection.close()
    lab.end()


def heard(daemon, before):
    now = stats(daemon)
    return {key: now[key] - before[key] for key in ("misses", "hinted", "hints_dropped")}


@pytest.mark.parametrize("admission", (2, 3, None))
def test_the_daemon_hears_of_what_is_asked_for_again(lab, hundred, admission):
    """Nobody waits for it. One file after another: two may share a count, and each would begin it anew."""
    server = lab.under_test(f"again-{admission}", hundred, config=NOTE_CONFIG, admission=admission)
    connection = Connection(server.port)
    get_lease(connection, "/d/known.txt")
    learnt = 0
    for number in range(1, 21):
        path, before = f"/d/{number}.txt", stats(server.daemon)
        # Where the daemon had no processor for a while, it was asked.
        if {connection.get(path).headers["x-note"] for _ in range(admission or USUAL)} != {"look"}:
            continue
        wait_for(lambda: stats(server.daemon)["inflight"] == 0 and heard(server.daemon, before)["hinted"] == 1,
                 "the daemon to have looked at the file")
        assert heard(server.daemon, before) == {"misses": 0, "hinted": 1, "hints_dropped": 0}
        get_lease(connection, path)
        assert heard(server.daemon, before)["misses"] == 0
        learnt += 1
    assert learnt > 10
    connection.close()
    lab.end()


def of_one_pass(lab, root, admission, text="", **daemon_settings):
    """Asks for 100 files once. (notes of the responses, the daemon's counters)."""
    server = lab.under_test(f"pass-{admission}{len(text)}{''.join(daemon_settings)}", root, config=NOTE_CONFIG + text,
                            admission=admission, daemon_settings=daemon_settings)
    connection = Connection(server.port)
    connection.get("/d/known.txt")
    before = stats(server.daemon)
    notes = {connection.get(f"/d/{number}.txt").headers["x-note"] for number in range(100)}
    counts = heard(server.daemon, before)
    connection.close()
    lab.end()
    return notes, counts


@pytest.mark.parametrize("admission, text", (
    (1, ""), (None, "FlashpacheLeases 0\n"), (NEVER, "FlashpacheUnavailable 503\n")), ids=("one", "no-leases", "unavailable"))
def test_each_asks(lab, hundred, admission, text):
    """By 1; without the shared tables; and where such requests shall begin nothing that may hang."""
    notes, counts = of_one_pass(lab, hundred, admission, text)
    assert notes == {"miss"} and counts == {"misses": 100, "hinted": 0, "hints_dropped": 0}


def test_each_asks_where_a_stale_answer_may_be_wanted(lab, hundred):
    notes, counts = of_one_pass(lab, hundred, NEVER, stale_if_error_ms=60_000)
    assert notes == {"miss"} and counts["misses"] == 100


def test_hints_are_counted_over_all_children(lab, hundred):
    """Each request comes to another child: no one of them looks twice."""
    server = lab.under_test("all-children", hundred, mpm="prefork", config=NOTE_CONFIG, admission=3)
    connections = [Connection(server.port) for _ in range(4)]
    for connection in connections:
        assert connection.get("/d/known.txt").status == 200
    paths = (path for path in (f"/d/{number}.txt" for number in range(100))
             if {connection.get(path).headers["x-note"] for connection in connections[:3]} == {"look"})
    path = next(paths)
    wait_for(lambda: stats(server.daemon)["hinted"] > 0, "the hint")
    wait_for(lambda: connections[3].get(path).headers["x-note"] == "lease", "the daemon to know the file")
    for connection in connections:
        connection.close()
    lab.end()


MAKES = """function make(r)
    local file = io.open(r.filename, "w")
    file:write("made")
    file:close()
    return apache2.DECLINED
end
"""


def test_a_test_of_a_file_looks_again(lab, base):
    """Another module makes the file between the walk and the rules of its directory: they see it, as in stock."""
    found = {}
    for kind in ("stock", "ours"):
        root = base / f"made-{kind}"
        tree.put(root / "d/known.txt", "known\n")
        (root / "d").chmod(0o777)
        script = tree.put(base / f"{kind}.lua", MAKES)
        text = (f"<Directory {root}/d>\n<FilesMatch made>\nLuaHookAccessChecker {script} make\n</FilesMatch>\n"
                "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} -f\nRewriteRule made - [E=MADE:yes]\n"
                "Header always set X-Made %{MADE}e\n</Directory>\n")
        options = {"config": NOTE_CONFIG + text, "extra_modules": ("lua",)}
        server = lab.stock("made-stock", root, **options).start() if kind == "stock" else \
            lab.under_test("made-ours", root, admission=NEVER, **options)
        connection = Connection(server.port)
        wait_for(lambda: connection.get("/d/known.txt").status == 200, "the directory to be known")
        found[kind] = [connection.get(f"/d/made{number}") for number in range(5)]
        connection.close()
    assert [(one.status, one.headers["x-made"]) for one in found["stock"]] == [(404, "yes")] * 5
    assert [visible(one) for one in found["ours"]] == [visible(one) for one in found["stock"]]
    assert "look" in {one.headers["x-note"] for one in found["ours"]}
    lab.end()
