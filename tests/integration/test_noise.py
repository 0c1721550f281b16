# SPDX-License-Identifier: Apache-2.0
"""One tenant's storm of events: each request asks about noisy places, and about no others. Where a whole file system
is marked, what changes elsewhere on it costs no answer."""

import itertools
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

import procs
import tree
from forms import chosen
from freshness import WATCHED, settings
from lease_kit import NOTE_CONFIG, new_root
from quick import Quick, note
from waiting import until_good, wait_for

pytestmark = [pytest.mark.needs_flashpache,
              pytest.mark.skipif(not WATCHED, reason="FLASHPACHE_WATCH=ttl: nothing is told")]
FILES = 20                  # of each tenant
HITS = chosen(6000, 200_000)
MOST_QUESTIONS = 0.005      # of the other tenant's hits
CHANGES = chosen(120, 5000)
HOT = "/home/b/site/page3.html"
MANY = 3000                 # files of one tenant
OWN = 256                   # of one owner's that may be left out at a time
STRANGER = 12345            # a user of no other files
CROWD = 4200                # links, more than may depend on one directory
LEVELS = 30
ELSEWHERE, AT_ONCE = 20_000, 100    # other files; of which so many change, again and again with a rest
REST_S = 0.01
DIRECTORIES, LINKS = 6, 2000    # until each is left out, its events concern some 32,000 entries


def modes(own):
    """chmod of files."""
    for path in sorted(own.glob("site/*")):
        path.chmod(0o644)


def own_directory(own):
    """Attributes of the tenant's own directory; the directory above, everybody's, reports them as well."""
    os.utime(own)


def names(own):
    """Names come and go."""
    (own / "site/new").write_text("new")
    (own / "site/new").unlink()


def writes(own):
    """One file is written all the time."""
    with open(own / "site/page0.html", "r+b", buffering=0) as file:
        for _ in range(1000):
            file.write(b"<")
            file.seek(0)


def access_file(own):
    """The same of a file that affects a whole directory."""
    (own / "site/.htaccess").write_text("Options None\n")


STORMS = (modes, own_directory, names, writes, access_file)


def _make(storm, own):
    while True:
        with suppress(OSError):     # the test has moved it
            storm(own)


def storm_of(storm, own):
    return procs.beside(_make, storm, own)


def text_of(tenant, number):
    return f"<p>{tenant} {number}</p>\n"


@pytest.fixture
def root(base):
    root = new_root(base, "noise")
    for tenant in "ab":
        for number in range(FILES):
            tree.put(root / f"home/{tenant}/site/page{number}.html", text_of(tenant, number))
        tree.put(root / f"home/{tenant}/site/.htaccess", "Options None\n")
        (root / f"to-{tenant}").symlink_to(f"{root}/home/{tenant}/site")
    return root


@pytest.fixture
def server(lab, root):
    return lab.under_test(root.name, root, mpm="event", daemon_settings=settings(True),
                          config=f"{NOTE_CONFIG}<Directory {root}>\nAllowOverride All\n</Directory>\n")


def ask_all(connection, tenant):
    return [note(connection.ask(f"/home/{tenant}/site/page{number}.html")) for number in range(FILES)]


def begin(server):
    """A connection, after both tenants' files have leases."""
    connection = Quick(server.port)
    for tenant in "ab":
        wait_for(lambda t=tenant: set(ask_all(connection, t)) == {"lease"}, "leases")
    return connection


def notice(server, connection):
    """Waits until the daemon has noticed the storm, and quiet places are leased again."""
    wait_for(lambda: ask_all(connection, "a") and server.daemon.counters()["noisy"] > 0, "the storm to be noticed")
    wait_for(lambda: set(ask_all(connection, "b")) == {"lease"}, "the other tenant's leases")


@pytest.mark.alone
@pytest.mark.parametrize("storm", STORMS)
def test_the_other_tenant_has_leases(server, root, storm):
    connection = begin(server)
    with storm_of(storm, root / "home/a"):
        notice(server, connection)
        # Changes that other programs make in /tmp are reported, too.
        questions = until_good(lambda: sum(note(connection.ask(HOT)) != "lease" for _ in range(HITS)),
                               lambda made: made <= MOST_QUESTIONS * HITS)
        counters = server.daemon.counters()
    print(f"{storm.__name__}: {questions} of {HITS} hits were questions; {counters['events']} events, "
          f"{counters['left_out']} left out")
    assert questions <= MOST_QUESTIONS * HITS
    assert f"{root}/home/a" in server.daemon.log_text() and "FP0047" in server.daemon.log_text()


def test_links_through_the_directory_of_all(server, root):
    """Where its watch reports names alone, each tenant's own directory reports the right to pass it."""
    connection = begin(server)
    wait_for(lambda: note(connection.ask("/to-b/page4.html")) == "lease", "a lease by the link")
    with storm_of(own_directory, root / "home/a"):
        notice(server, connection)
        wait_for(lambda: note(connection.ask("/to-b/page4.html")) == "lease", "a lease by the link again")
        assert "home reports more changes" in server.daemon.log_text()


@pytest.mark.parametrize("storm", STORMS)
def test_nobody_gets_what_was(server, root, storm):
    """In the noisy directory, beside it, and of the directories themselves."""
    connection = begin(server)
    files = [f"home/{tenant}/site/page1.html" for tenant in "ab"]
    with storm_of(storm, root / "home/a"):
        notice(server, connection)
        for number in range(CHANGES):
            for file in files:
                tree.put(root / "new", f"{number}")
                os.rename(root / "new", root / file)
                assert connection.ask(f"/{file}").body == b"%d" % number
                (root / file).write_text(f"again {number}")
                assert connection.ask(f"/{file}").body == b"again %d" % number
                (root / file).unlink()
                assert connection.ask(f"/{file}").status == 404
            for tenant in "ab":
                home = root / "home" / tenant
                os.rename(home / "site", home / "away")
                assert connection.ask(f"/home/{tenant}/site/page2.html").status == 404
                os.rename(home / "away", home / "site")
                assert connection.ask(f"/home/{tenant}/site/page2.html").status == 200


@pytest.mark.parametrize("tenant", "ab")
def test_rights_of_noisy_directories(server, root, tenant):
    """The directory above both is noisy: each directory's own watch reports the right to pass it."""
    connection = begin(server)
    home = root / "home" / tenant
    paths = [f"/home/{tenant}/site/page2.html", f"/to-{tenant}/page2.html"]
    with storm_of(own_directory if tenant == "b" else modes, root / "home/a"):
        notice(server, connection)
        for _ in range(CHANGES):
            for mode, status in ((0o700, 403), (0o755, 200)):
                home.chmod(mode)
                assert [connection.ask(path).status for path in paths] == [status] * 2


def test_it_is_watched_again(server, root):
    connection = begin(server)
    with storm_of(modes, root / "home/a"):
        notice(server, connection)
    wait_for(lambda: server.daemon.counters()["noisy"] == 0 and set(ask_all(connection, "a")) == {"lease"},
             "leases of what was noisy", 60)
    (root / "home/a/site/page1.html").write_text("changed")
    assert connection.ask("/home/a/site/page1.html").body == b"changed"


def test_many_links_to_directories_that_change(server, root):
    """Each change in one concerns all links to it. Beyond a bound the daemon looks at everything again instead."""
    connection = begin(server)
    paths = []
    for number in range(DIRECTORIES):
        tree.put(root / f"target{number}/page.html", "first")
        for link in range(LINKS):
            (root / f"link{number}-{link}").symlink_to(root / f"target{number}")
            paths.append(f"/link{number}-{link}/page.html")
    assert {connection.ask(path).body for path in paths} == {b"first"}
    server.daemon.signal(signal.SIGSTOP)
    for number in range(DIRECTORIES):
        for created in range(64):
            (root / f"target{number}/{created}").touch()
        tree.put(root / "new", "last")
        os.rename(root / "new", root / f"target{number}/page.html")
    (root / "home/b/site/page0.html").write_text("last")
    server.daemon.signal(signal.SIGCONT)
    assert connection.ask("/home/b/site/page0.html").body == b"last"
    assert {connection.ask(path).body for path in paths} == {b"last"}
    wait_for(lambda: "FP0048" in server.daemon.log_text(), "the daemon to say so")


def test_links_of_another_tenant(lab, base):
    """One tenant's links lead to another's directory, more than may depend on it; httpd refuses each. The other has leases, also
    behind his own link and while names change in his directory."""
    root = new_root(base, "crowded")
    for path in ("b/page.html", "b/releases/1/page.html", "a/own.html"):
        tree.put(root / path, "page")
    (root / "b/current").symlink_to(root / "b/releases/1")
    for number in range(CROWD):
        (root / f"a/{number}").symlink_to(root / "b")
        os.lchown(root / f"a/{number}", STRANGER, STRANGER)
    server = lab.under_test("crowded", root, daemon_settings=settings(WATCHED),
                            config=f"{NOTE_CONFIG}<Directory {root}>\nOptions SymLinksIfOwnerMatch\nAllowOverride All\n</Directory>\n")
    connection = Quick(server.port)
    assert {connection.ask(f"/a/{number}/page.html").status for number in range(CROWD)} == {403}
    for path in ("/a/own.html", "/b/page.html", "/b/current/page.html"):
        wait_for(lambda path=path: note(connection.ask(path)) == "lease", f"leases on {path}")
        assert sum(note(connection.ask(path)) == "lease" for _ in range(100)) > 90, path
    leases = 0
    for _ in range(20):
        tree.put(root / "b/new", "other")
        os.rename(root / "b/new", root / "b/other.html")
        assert connection.ask("/b/other.html").body == b"other"
        connection.ask("/b/page.html")
        leases += sum(note(connection.ask("/b/page.html")) == "lease" for _ in range(20))
    assert leases > 300
    assert server.daemon.counters()["noisy"] == 0


def test_link_texts_of_many_names(lab, base):
    """A directory's access file is behind forty links, each with a text of 2,000 names, and so is that of each directory below.
    The other tenant's pages, unknown until then, are served, and no file system is taken for dead."""
    root = new_root(base, "texts")
    deep = root / "a"
    for _ in range(LEVELS):
        deep = deep / "d"
        names = ["t", *(f"h{number}" for number in range(38)), ".htaccess"]
        tree.put(deep / "t", "# nothing\n")
        for end, name in itertools.pairwise(names):
            (deep / name).symlink_to("./" * ((4090 - len(end)) // 2) + end)
    tree.put(deep / "page.html", "deep")
    for number in range(LEVELS):
        tree.put(root / f"b/{number}/page.html", "other")
    server = lab.under_test("texts", root, daemon_settings=settings(WATCHED),
                            config=f"FlashpacheUnavailable 503\n{NOTE_CONFIG}<Directory {root}>\nAllowOverride All\n</Directory>\n")
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(lambda: Quick(server.port).ask("/a" + "/d" * LEVELS + "/page.html")) for _ in range(16)]
        assert [Quick(server.port).ask(f"/b/{number}/page.html").body for number in range(LEVELS)] == [b"other"] * LEVELS
        assert {each.result().body for each in asked} == {b"deep"}
    assert "FP0044" not in server.daemon.log_text()
    assert "FP0021" not in server.daemon.log_text()


def touch_all(paths):
    while True:
        for path in paths:
            os.utime(path)


@pytest.mark.alone
def test_one_owner_takes_the_places_of_no_other(server, root):
    """He changes more files at once than may be left out of one owner. The other tenant has his leases, and later noise has
    its place."""
    connection = begin(server)
    many = []
    for number in range(2 * OWN):
        many.append(tree.put(root / f"home/a/many/{number}.html", "page"))
        os.chown(many[-1], STRANGER, -1)
    assert {connection.ask(f"/home/a/many/{path.name}").status for path in many} == {200}
    with procs.beside(touch_all, many[::2]), procs.beside(touch_all, many[1::2]):
        wait_for(lambda: connection.ask("/home/a/many/0.html") and f"user {STRANGER} owns" in server.daemon.log_text(), "FP0049")
        # The watches that are there still report a few changes each.
        wait_for(lambda: sum(note(connection.ask(HOT)) == "lease" for _ in range(1000)) >= 950, "the other tenant's leases")
        leases = until_good(lambda: sum(note(connection.ask(HOT)) == "lease" for _ in range(HITS)), lambda made: made >= 0.95 * HITS)
        assert server.daemon.counters()["noisy"] < OWN / 2
        with storm_of(writes, root / "home/b"):
            wait_for(lambda: connection.ask("/home/b/site/page0.html") and "/home/b/site/page0.html reports" in server.daemon.log_text(),
                     "another's noise to be left out")
    print(f"{leases} of {HITS} hits were leases; {server.daemon.counters()['events']} events")
    assert leases >= 0.95 * HITS


def touch_in_turn(directory):
    for number in itertools.cycle(range(ELSEWHERE)):
        os.utime(directory / str(number))
        if number % AT_ONCE == 0:
            time.sleep(REST_S)


def test_changes_elsewhere_keep_no_walk_from_being_known(lab, root):
    """A change while a walk is under way may concern what the walk saw; changes of other names do not."""
    (root / "elsewhere").mkdir()
    for number in range(ELSEWHERE):
        (root / f"elsewhere/{number}").touch()
    server = lab.under_test(f"{root.name}-marked", root, mpm="event",
                            daemon_settings={**settings(True), "roots": [root]})
    connection = Quick(server.port)

    def misses(directory):
        before = server.daemon.counters()["misses"]
        assert {connection.ask(f"/{directory}/{number}.html").status for number in range(MANY)} == {200}
        return server.daemon.counters()["misses"] - before

    def misses_again():
        directory = f"new{next(numbers)}"
        for number in range(MANY):
            tree.put(root / directory / f"{number}.html", "page")
        assert misses(directory) >= MANY
        return misses(directory)

    numbers = itertools.count()
    with procs.beside(touch_in_turn, root / "elsewhere"):
        again = until_good(misses_again, lambda made: made == 0)
    assert again == 0, f"{again} of {MANY} walks were not kept"
