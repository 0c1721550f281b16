# SPDX-License-Identifier: Apache-2.0
"""Every child knows the answers to one child's questions: another child's first request needs no message, and no call
on a path. Changes, restarts, purges and reloads end or renew these answers like all others."""

import os
import shutil

import pytest

import tree
from content_kit import clock, settled, stats  # noqa: F401 (fixtures)
from fetch import Client
from freshness import NEVER_MS
from httpd import MPM_LIMITS
from keepalive import Children, Connection, children_config
from lease_kit import NOTE_CONFIG
from procs import fd_count
from system_limits import needs_linux
from trace import Trace
from waiting import restart, until_good, wait_for

pytestmark = [pytest.mark.needs_flashpache, pytest.mark.usefixtures("settled")]

CHILDREN = 4
LIMITS = (f"StartServers {CHILDREN}\nMinSpareServers 1\nMaxSpareServers {CHILDREN}\nServerLimit {CHILDREN}\n"
          f"MaxRequestWorkers {CHILDREN}\n")
DEEP = "a/b/c/page.txt"
LARGE = {f"/large/{n}.bin": tree.content(f"large{n}", 100_000 + n) for n in range(5)}
# A child's calls to the daemon, except the question to its event queues (poll): messages, and calls on paths.
MESSAGES = "connect,sendto,sendmsg,recvmsg"
SMALL = {f"/small/{n}.txt": tree.content(f"small{n}", 400 + n) for n in range(20)}
# path: status
OTHERS = {f"/{DEEP}": 200, "/small/": 200, "/none/none": 404, "/small/0.txt/more": 404, "/link.txt": 200,
          "/rules/page.txt": 200, "/rules/denied.txt": 403}


@pytest.fixture(scope="module")
def root(base):
    root = base / "known"
    for path, content in {**SMALL, **LARGE}.items():
        tree.put(root / path[1:], content)
    tree.put(root / DEEP, "deep\n")
    tree.put(root / "small/index.html", "index\n")
    tree.put(root / "rules/.htaccess", "Header set X-Rules these\n<Files denied.txt>\nRequire all denied\n</Files>\n")
    tree.put(root / "rules/page.txt", "ruled\n")
    tree.put(root / "rules/denied.txt", "denied\n")
    tree.put(root / "index.html", "root\n")
    os.symlink(DEEP, root / "link.txt")
    os.symlink("large", root / "through")
    return root


def config(root):
    return (NOTE_CONFIG + "DirectoryIndex index.html\nAcceptPathInfo Off\n"
            f"<Directory {root}>\nAllowOverride All\n</Directory>\n")


@pytest.fixture
def servers(lab, root):
    """servers(name, ...) -> (httpd, its children's connections)."""
    def make(name, count=CHILDREN, mpm="prefork", limits=LIMITS, **daemon_settings):
        log = lab.base / f"{name}-children"
        server = lab.under_test(name, root, mpm=mpm, limits=limits, config=config(root) + children_config(log),
                                daemon_settings={"ttl_ms": NEVER_MS, **daemon_settings})
        return server, Children(server, log, count)
    yield make
    lab.end()


def first_to_answer(children):
    """(a child's connection, another one's)"""
    return children.all()[:2]


def learn(connection, path):
    """This child asks until its answer comes from memory."""
    def known():
        answer = connection.get(path)
        return answer if answer.headers["x-note"] == "lease" else None
    return wait_for(known, f"{path} to be known")


def asked(server):
    found = stats(server.daemon)
    return found["hits"] + found["misses"] + found["joined"]


def test_no_message_and_no_call(servers, lab, root):
    """The first requests of a child for paths that another one asked about."""
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    server, children = servers("first")
    made = {}

    def traced():
        """Another child each time: after its first request a child may have the answer itself."""
        one, *others = children.all()
        other = others[len(made) % len(others)]
        child = next(pid for pid, connections in children.by_child.items() if other in connections)
        for path in (*SMALL, *OTHERS):
            learn(one, path)
        with Trace([child], lab.base / f"first-{len(made)}.txt", f"%file,{MESSAGES}") as trace:
            answers = {path: other.get(path) for path in (*SMALL, *OTHERS)}
        made[len(made)] = child
        return answers, [line for line in trace.lines() if "+++" not in line and "---" not in line]

    def from_memory(result):
        return {answer.headers["x-note"] for answer in result[0].values()} == {"lease"}
    # A daemon that gets no processor for a moment ends all answers for that moment.
    answers, calls = until_good(traced, from_memory)
    assert from_memory((answers, calls)), {path: answer.headers["x-note"] for path, answer in answers.items()}
    # Except for the log's own, and core's questions about a link's target.
    assert [line for line in calls if str(root) in line or any(f"{name}(" in line for name in MESSAGES.split(","))] == []
    for path, content in SMALL.items():
        assert (answers[path].status, answers[path].body) == (200, content), path
    for path, status in OTHERS.items():
        assert answers[path].status == status, path
    assert answers["/rules/page.txt"].headers["x-rules"] == "these" and answers["/link.txt"].body == b"deep\n"
    children.close()


def test_every_child_without_a_question(servers):
    """By the daemon's counters."""
    server, children = servers("counted")
    one, *others = children.all()
    paths = iter(SMALL)     # another one each time: by then a child may have the answer itself

    def counted():
        path = next(paths)
        learn(one, path)
        before = asked(server)
        notes = [other.get(path).headers["x-note"] for other in others]
        return notes, asked(server) - before
    notes, questions = until_good(counted, lambda made: made[1] == 0)
    assert (notes, questions) == (["lease"] * (CHILDREN - 1), 0)
    children.close()


def test_a_larger_file(servers, lab):
    """Another child opens it itself, once, by its name, links included; and sends no question."""
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    needs_linux(5, 12, "RESOLVE_CACHED")
    server, children = servers("larger")
    one, *others = children.all()
    paths = [*LARGE, *(path.replace("large", "through") for path in LARGE)]
    made = []

    def traced():
        other = others[len(made) % len(others)]
        child = next(pid for pid, connections in children.by_child.items() if other in connections)
        for path in paths:
            learn(one, path)
        with Trace([child], lab.base / f"larger-{len(made)}.txt", f"openat2,{MESSAGES}") as trace:
            answers = [other.get(path) for path in paths]
        made.append(child)
        return answers, trace.names()
    answers, names = until_good(traced, lambda made: {answer.headers["x-note"] for answer in made[0]} == {"lease"})
    assert [answer.body for answer in answers] == [*LARGE.values()] * 2
    assert dict(names) == {"openat2": len(paths)}
    children.close()


@pytest.mark.parametrize("size", (1, 10_000), ids=("small", "large"))
@pytest.mark.parametrize("mpm", ("prefork", "event"))
def test_a_change_is_seen_at_once(servers, root, mpm, size):
    """By the children that did not ask before the change."""
    limits = {"limits": LIMITS, "count": CHILDREN} if mpm == "prefork" else {"limits": MPM_LIMITS[mpm], "count": 2}
    server, children = servers(f"change-{mpm}-{size}", mpm=mpm, **limits)
    one, *others = children.all()
    path = root / "changing/page.txt"
    for turn in range(30):
        text = f"turn {turn % 10}\n" * size     # of one length, where only times and inode differ
        os.rename(tree.put(root / "changing/new", text), path)
        assert one.get("/changing/page.txt").body == text.encode()
        for other in others:
            assert other.get("/changing/page.txt").body == text.encode()
        path.unlink()
        assert [connection.get("/changing/page.txt").status for connection in (*others, one)] == [404] * len(children.all())
    children.close()


def test_after_a_graceful_restart(servers):
    """New children know the answers to the former ones' questions, from their first request on."""
    server, children = servers("graceful")
    one = children.all()[0]
    learn(one, f"/{DEEP}")
    children.close()

    def restarted():
        with Client(server.port) as client:
            client.get(f"/{DEEP}")
        before = asked(server)
        mark = server.mark()
        restart(server)
        with Client(server.port) as client:
            status, body = client.get(f"/{DEEP}")[:2]
        assert (status, body) == (200, b"deep\n")
        return server.wait_entries(1, mark)[-1].note, asked(server) - before
    # After two seconds without a request the first one asks: the daemon rests.
    assert until_good(restarted, lambda made: made == ("lease", 0)) == ("lease", 0)


def test_other_tables(servers, flashpachectl):
    """Another daemon, a purge: right answers, and soon from memory again."""
    server, children = servers("renewed")
    one, other = first_to_answer(children)

    def purge():
        assert flashpachectl("-s", server.daemon.socket, "purge", "--all").returncode == 0

    def another():
        server.daemon.kill()
        server.daemon.start()
    for change in (purge, another):
        learn(one, f"/{DEEP}")
        change()
        for connection in (other, one):
            answer = connection.get(f"/{DEEP}")
            assert (answer.status, answer.body) == (200, b"deep\n"), change
        learn(one, f"/{DEEP}")
        assert learn(other, f"/{DEEP}").body == b"deep\n"
    children.close()


def tables_of(pid):
    """The inodes of the lease tables that a process has."""
    with open(f"/proc/{pid}/maps") as maps:
        return {line.split()[4] for line in maps if "memfd:flashpache-generations" in line}


@pytest.mark.parametrize("mpm", ("prefork", "event"))
def test_former_tables_are_given_up(servers, mpm):
    """After other daemons, a child has the present tables alone, and no more descriptors than before. Its leases on the
    former ones would hold for hours."""
    limits = {} if mpm == "prefork" else {"limits": MPM_LIMITS[mpm], "count": 2}
    server, children = servers(f"former-{mpm}", mpm=mpm, **limits)
    child, [connection] = next(iter(children.by_child.items()))

    def use():
        for path in (*LARGE, *SMALL) * 2:
            learn(connection, path)

    def another(megabytes):
        server.daemon.kill()
        server.daemon.settings.update(memory=f"{13 * megabytes}M")
        server.daemon.write_config()
        server.daemon.start()
    use()
    descriptors = fd_count(child)
    for megabytes in (1, 2, 3):
        former = tables_of(child)
        another(megabytes)
        wait_for(lambda: learn(connection, f"/{DEEP}") and len(now := tables_of(child)) == 1 and now != former,
                 "the present tables alone")
        assert fd_count(child) <= descriptors
        use()
    children.close()


def test_leases_0_asks_each_time(lab, root):
    server = lab.under_test("zero", root, mpm="prefork", config=config(root) + "FlashpacheLeases 0\n",
                            daemon_settings={"ttl_ms": NEVER_MS})
    connection = Connection(server.port)
    wait_for(lambda: connection.get(f"/{DEEP}").headers["x-note"] == "hit", "a known answer")
    before = asked(server)
    assert {connection.get(f"/{DEEP}").headers["x-note"] for _ in range(5)} == {"hit"}
    assert asked(server) - before == 5
    connection.close()
    lab.end()
