# SPDX-License-Identifier: Apache-2.0
"""Every client finds in memory the daemon's answers to other clients. A second reader, written from docs/protocol.md,
checks them."""

import os
import stat

import pytest

import shared_reader
import tree
import wire
from content_kit import clock, settled, stats  # noqa: F401 (fixtures)
from fetch import Client
from shared_reader import CONTENT, LOCAL, READABLE, WATCHED, Reader
from trace import Trace
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

DEFAULT = (b".htaccess",)        # the names in flashpachectl's questions
NAMES = (b".acl", b".htaccess")
LARGE = 100_000
ONE_CHILD = "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 1\nMaxRequestWorkers 1\n"
# Children that may become so many read contents by pread (FEW_CHILDREN in start.c).
ONE_OF_MANY = "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 300\nMaxRequestWorkers 300\n"
KINDS = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "link"}


@pytest.fixture(scope="module")
def root(base):
    root = base / "shared"
    tree.put(root / "file.txt", "text\n")
    tree.put(root / ".htaccess", "Options None\n")
    tree.put(root / "a/b/c/deep.txt", tree.content("deep", 5000))
    tree.put(root / "a/b/.acl", "acl\n")
    tree.put(root / "large.bin", tree.content("large", LARGE))
    tree.put(root / "empty", "")
    os.symlink("a/b", root / "link")
    os.symlink("file.txt", root / "filelink")
    os.symlink("nowhere", root / "dangling")
    os.mkfifo(root / "fifo")
    return root


PATHS = ("", "/file.txt", "/a", "/a/b/c/deep.txt", "/link", "/link/c/deep.txt", "/filelink", "/dangling",
         "/large.bin", "/empty", "/fifo", "/absent", "/absent/further/down", "/file.txt/more", "/a/b/none/x")


@pytest.fixture(scope="module")
def daemon(lab, clock):  # noqa: F811 (clock)
    with clock.ahead(3):
        yield lab.daemon("shared", ttl_ms=600000).start()


@pytest.fixture
def reader(daemon):
    made = Reader(daemon.socket, NAMES)
    yield made
    made.close()


@pytest.fixture
def look_up(daemon, flashpachectl):
    """flashpachectl's report about a path: its lines."""
    def ask(path, names):
        options = [option for name in names for option in ("--access-file", name.decode())]
        done = flashpachectl("-s", daemon.socket, "explain", *options, path)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n\n")[0].splitlines()
    return ask


def meta_text(meta):
    kind = KINDS.get(stat.S_IFMT(meta["mode"]), "special")
    text = f"{kind} {meta['mode'] & 0o7777:04o} {meta['uid']}:{meta['gid']}"
    return text + (f" {meta['size']} bytes" if kind == "file" else "")


def assert_line(line, path, step, names):
    """One step's line of flashpachectl explain."""
    assert line.startswith(f"  {path[:step['end']]}: "), (line, step)
    if step["status"]:
        return
    assert f": {meta_text(step['self'])}" in line
    if "target" in step:
        assert f" to {meta_text(step['target'])}" in line
    for name, access in zip(names, step["access"]):
        size = f"{access['size']} bytes" if access["status"] == 0 else ""
        assert f"; {name.decode()}: {size}" in line, (line, access)


def assert_as_told(told, path, answer, names):
    lines = told[1:]
    assert "known to the daemon" in told[0] and "it may be leased" in told[0]
    assert ("its content is in memory" in told[0]) == bool(answer["flags"] & CONTENT), told[0]
    assert ("no file comes" in told[0]) == (not answer["flags"] & READABLE), told[0]
    assert len(lines) == len(answer["steps"])
    for line, step in zip(lines, answer["steps"]):
        assert_line(line, path, step, names)


def assert_as_lstat(path, step):
    """The path up to that step."""
    if step["status"]:
        with pytest.raises(OSError):
            os.lstat(path[:step["end"]])
        return
    st, meta = os.lstat(path[:step["end"]]), step["self"]
    assert (meta["mode"], meta["ino"], meta["dev"], meta["uid"]) == (st.st_mode, st.st_ino, st.st_dev, st.st_uid)
    assert meta["mtime"] == st.st_mtime_ns or stat.S_ISDIR(st.st_mode)


@pytest.mark.parametrize("names", (DEFAULT, NAMES), ids=("one-name", "two-names"))
@pytest.mark.parametrize("name", PATHS)
def test_the_same_answers(root, reader, look_up, name, names):
    path = f"{root}{name}"
    told = None

    def published():
        nonlocal told
        told = look_up(path, names)
        return reader.valid_answer(os.fsencode(path), names) if "known to the daemon" in told[0] else None
    answer = wait_for(published, f"an answer about {path}")
    assert_as_told(told, path, answer, names)
    for step in answer["steps"]:
        assert_as_lstat(path, step)
    assert answer["n_names"] == len(names)
    if answer["flags"] & CONTENT:
        with open(path, "rb") as file:
            assert reader.content(answer) == file.read()


def test_what_is_said_of_files(root, reader, look_up):
    """A small file has its content in memory; a large one has to be opened; an empty one has no content."""
    def flags(name):
        path = f"{root}/{name}"

        def published():
            look_up(path, DEFAULT)
            return reader.valid_answer(os.fsencode(path), DEFAULT)
        return wait_for(published, f"an answer about {path}")["flags"]
    assert flags("file.txt") & (READABLE | LOCAL | WATCHED | CONTENT) == READABLE | LOCAL | WATCHED | CONTENT
    assert flags("large.bin") & (READABLE | LOCAL | CONTENT) == READABLE | LOCAL
    assert flags("empty") & (READABLE | CONTENT) == READABLE
    assert flags("absent") & (READABLE | LOCAL | CONTENT) == 0


def test_explain_and_reader_agree(root, daemon, reader, look_up, flashpachectl):
    path = f"{root}/a/b/c/deep.txt"
    look_up(path, DEFAULT)
    answer = wait_for(lambda: reader.valid_answer(os.fsencode(path), DEFAULT), "the answer")
    said = flashpachectl("-s", daemon.socket, "explain", path).stdout
    assert "its content is in memory for all" in said
    assert len(reader.content(answer)) == 5000
    # "/" and each component have a line of their own.
    assert all(path[:step["end"]] in said for step in answer["steps"])


def test_a_change_ends_an_answer(root, reader, look_up):
    path = root / "changing.txt"
    for turn in range(3):
        tree.put(path, f"turn {turn}\n")
        # The change's call has returned: the answer published before is not valid, or not current.
        assert reader.valid_answer(os.fsencode(path), DEFAULT) is None

        def published():
            look_up(str(path), DEFAULT)
            return reader.valid_answer(os.fsencode(path), DEFAULT)
        answer = wait_for(published, "the new answer")
        assert answer["steps"][-1]["self"]["size"] == 7


def test_what_a_question_of_httpd_brings(lab, root, settled):  # noqa: F811 (settled)
    """A child's question is enough for all."""
    server = lab.under_test("asks", root, config=f"<Directory {root}>\nAllowOverride All\n</Directory>")
    path = os.fsencode(root / "large.bin")
    reader = Reader(server.daemon.socket)
    with Client(server.port) as client:
        wait_for(lambda: len(client.get("/large.bin")[1]) == LARGE and reader.valid_answer(path, (b".htaccess",)),
                 "the answer")
    reader.close()
    lab.end()


@pytest.mark.parametrize("allowed", ("None", "All"))
@pytest.mark.parametrize("mpm", ("event", "prefork"))
def test_a_change_further_up(lab, root, mpm, allowed, settled):  # noqa: F811 (settled)
    """Files whose directory is unchanged need one question, not one each."""
    name = f"up-{mpm}-{allowed}"
    files = [f"/{name}/in/{i}.txt" for i in range(20)]
    for file in files:
        tree.put(root / file[1:], f"text of {file}\n")
    server = lab.under_test(name, root, mpm=mpm, admission=1,
                            config=f"<Directory {root}>\nAllowOverride {allowed}\n</Directory>")
    with Client(server.port) as client:
        def ask():
            before = len(server.entries())
            assert [client.get(file)[1].decode() for file in files] == [f"text of {file}\n" for file in files]
            return [entry.note for entry in server.wait_entries(before + len(files))[before:]]
        wait_for(lambda: ask() == ["lease"] * len(files), "the answers")
        (root / name / "another").write_text("")
        assert [note != "lease" for note in ask()].count(True) <= 1
        (root / name).rename(root / f"{name}-moved")
        assert client.get(files[0])[0] == 404
        (root / f"{name}-moved").rename(root / name)
        assert client.get(files[1])[1].decode() == f"text of {files[1]}\n"
    lab.end()


@pytest.mark.parametrize("allowed, limits", (("None", ONE_OF_MANY), ("All", ONE_OF_MANY), ("All", ONE_CHILD)))
def test_calls_of_a_hit(lab, root, base, allowed, limits, settled):  # noqa: F811 (settled)
    """A child looks whether an event waits: before the walk, and before the response. One of many reads the content by pread."""
    files = [f"/calls/{i}.txt" for i in range(12)]
    contents = len(files) if limits == ONE_OF_MANY else 0
    for file in files:
        tree.put(root / file[1:], f"text of {file}\n")
    server = lab.under_test(f"calls-{allowed}-{contents}", root, mpm="prefork", limits=limits, admission=1,
                            config=f"<Directory {root}>\nAllowOverride {allowed}\n</Directory>")
    with Client(server.port) as client:
        def ask():
            mark = server.mark()
            for file in files:
                client.get(file)
            return {entry.note for entry in server.wait_entries(len(files), mark)} == {"lease"}

        def calls():
            with Trace(server.pids(), base / f"calls-{allowed}-{contents}", "poll,pread64", ("-y",)) as trace:
                leased = ask()
            counts = [sum(name in line for line in trace.lines()) for name in ("[eventpoll]", "flashpache-answers", "flashpache-contents")]
            return leased and counts == [2 * len(files), 0, contents]
        wait_for(ask, "hits alone")
        # A look is made twice if an event of something else waits at that moment. No lease is used if the daemon had no
        # processor for its heartbeat.
        wait_for(calls, "no call too many")
    lab.end()


def test_other_sizes(lab, root, flashpachectl, settled):  # noqa: F811 (settled)
    """Another daemon makes other tables; the former ones end, and clients get the new."""
    daemon = lab.daemon("resized", ttl_ms=600000).start()
    path = root / "file.txt"

    def ask():
        flashpachectl("-s", daemon.socket, "explain", path)
    ask()
    before = Reader(daemon.socket)
    ask()
    assert wait_for(lambda: ask() or before.valid_answer(os.fsencode(path), DEFAULT), "the answer")
    daemon.settings.update(memory="13M")
    daemon.write_config()
    daemon.stop()
    daemon.start()
    wait_for(lambda: not before.is_current() and not before.is_valid({"slot": 1, "generation": 1}) or
             before.valid_answer(os.fsencode(path), DEFAULT) is None, "the end of the former tables")
    after = Reader(daemon.socket)
    wait_for(lambda: after.answers.size == 1 << 20, "tables of the other size")
    answer = wait_for(lambda: ask() or after.valid_answer(os.fsencode(path), DEFAULT), "the answer in the other table")
    assert after.content(answer) == b"text\n"
    assert before.valid_answer(os.fsencode(path), DEFAULT) is None
    before.close()
    after.close()


def test_more_than_fits(lab, base, settled):  # noqa: F811 (settled)
    """Both rings wrap around: each record found is right, and the daemon answers the rest."""
    root = base / "many-shared"
    contents = {f"file{n}": tree.content(f"many{n}", 14_000 + n) for n in range(300)}
    for name, content in contents.items():
        tree.put(root / name, content)
    daemon = lab.daemon("full", ttl_ms=600000, memory="1300K").start()
    reader = Reader(daemon.socket)
    with wire.greet(daemon.socket) as conn:
        for name in contents:
            for _ in range(2):
                assert wire.parse_answer(wire.ask(conn, wire.whole_lookup(root / name)))[0] == 0
    found = whole = 0
    for name, content in contents.items():
        answer = reader.answer(os.fsencode(root / name))
        if answer is None or not answer["flags"] & CONTENT:
            continue
        found += 1
        got = reader.content(answer)
        assert got in (None, content), name
        whole += got is not None
    counted = stats(daemon)
    reader.close()
    assert found == 300 and 15 <= whole <= 35
    assert counted["contents_overwritten"] >= 260 and counted["content_files"] == whole
    assert counted["answer_memory"] > 300 * 150


def test_the_hash():
    """From the paper: SipHash-2-4 of 15 bytes."""
    assert shared_reader.siphash(bytes(range(16)), bytes(range(15))) == 0xa129ca6149be45e5
