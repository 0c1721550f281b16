# SPDX-License-Identifier: Apache-2.0
"""A fault in a server while clients ask it; the clients' results become a row of docs/reliability.md.

FLASHPACHE_LONG=1: more requests, and the fault is repeated again and again
"""

import itertools
import os
import time

import pytest

import keepalive
import procs
import tree
from fetch import Load, get
from httpd import HITS
from waiting import wait_for

LONG = os.environ.get("FLASHPACHE_LONG", "0") != "0"
SOME = 1000 if LONG else 250        # this many requests show that the load goes on
STEP = 250                          # requests of one wait
ROUNDS = 5 if LONG else 1

HOT = {f"f{i}.bin": 100 + 997 * i for i in range(60)}
COLD = {f"cold/{i % 20}/f{i}.bin": 100 + 37 * i for i in range(600)}
LARGE, LARGE_SIZE = "large.bin", 8 << 20
CONNECTIONS = 16
RENEW = "4"                         # one request in so many has a connection of its own
WEIGHT = 8                          # of a hot file, and of an absent or forbidden one
PAUSE = "with httpd's own pause of up to 2 s after a graceful restart"
NEW_NAMES = itertools.count()
LOGGED_S = 5                        # an answer's line is in the log long before
IN_A_ROW = 6                        # this many good answers come from more than one child

# Not all of the tree fits, so there are always misses.
SETTINGS = {"ttl_ms": 60000, "workers": 3, "lookup_timeout_ms": 2000, "open_files": 200,
            "memory": "6500K"}


def config(root):
    """httpd's. It does not log each intended refusal."""
    return f"LogLevel authz_core:crit\n<Directory {root}>\nAllowOverride All\nOptions FollowSymLinks\n</Directory>\n"


@pytest.fixture(scope="module")
def daemon(lab):
    return lab.daemon(**SETTINGS).start()


@pytest.fixture(scope="module")
def server(lab, fault_root, daemon):
    return lab.flash("flash", fault_root, daemon.socket, config=config(fault_root)).start()


def make_tree(root):
    tree.hot_files(root, {**HOT, **COLD, LARGE: LARGE_SIZE})
    tree.put(root / "closed/.htaccess", "Require all denied\n")
    tree.put(root / "closed/file.txt", "never to be seen\n")
    return root


def with_own_daemon(lab, root, module, program, **options):
    """httpd with a daemon of its own."""
    name = f"own{len(lab.started)}"     # the socket's path must be short
    conf = lab.base / f"{name}.conf"
    conf.write_text("".join(f"{key} = {value}\n" for key, value in SETTINGS.items() if key != "open_files"))
    more = options.pop("config", "")
    return lab.stock(name, root, module=module, config=f"{config(root)}FlashpacheDaemonProgram {program}\n"
                     f"FlashpacheDaemonConfig {conf}\n{more}", **options)


def own_daemon(server):
    """Its process, once there is one."""
    def found():
        below = procs.descendants(server.process.pid)
        return [p for p in procs.children(server.process.pid) if below.get(p) == "flashpached"]
    return wait_for(found, "httpd's own daemon")[0]


def targets():
    """bodycheck's: most requests are for the hot files, and no fault may open what is closed."""
    return [*(f"{name}:{WEIGHT}" for name in HOT), *COLD, f"closed/file.txt:{WEIGHT}:403",
            f"absent.txt:{WEIGHT}:404"]


def good_answers(server, expected):
    """Ask for a hot file and for a new name; true if the daemon answers both."""
    tag = f"new-{next(NEW_NAMES)}"
    mark = server.mark()
    assert get(server.port, "/f7.bin", tag) == (200, tree.content("f7.bin", HOT["f7.bin"]))
    assert get(server.port, f"/cold/{tag}", tag)[0] == 404
    try:
        hot, new = (entry.note for entry in server.wait_entries(2, mark, tag, timeout=LOGGED_S))
    except TimeoutError:
        # Just after a graceful restart a child of before may serve: it writes to the log of before.
        return False
    return hot in expected and new == "miss"


def until_well(server, expected=HITS):
    """Wait for several good answers in a row; returns the seconds until the first.

    expected: the notes of a hot file.
    """
    start = time.monotonic()
    good = []

    def well():
        good[:] = [*good, time.monotonic()] if good_answers(server, expected) else []
        return len(good) == IN_A_ROW
    wait_for(well, "hits and misses again")
    return good[0] - start


class Download:
    """The large file: the download begins before a fault and ends after it."""

    def __init__(self, server):
        self.connection = keepalive.Connection(server.port, receive_buffer=4096)
        self.connection.begin("/" + LARGE)
        self.body = bytearray(self.connection.read_head()[2])

    def is_whole(self):
        while len(self.body) < LARGE_SIZE and (part := self.connection.receive()):
            self.body += part
        self.connection.close()
        return self.body == tree.content(LARGE, LARGE_SIZE)


class Fault:
    """A load on a server. The row is reported, and judged, when it ends.

    beside: the same on a stock server, where connections are lost with a child that ends. stops: the server
    refuses connections in the end; denies: stock, too, denies existing files meanwhile; hot: the notes of a hot
    file without a fault.
    """

    def __init__(self, program, tell, server, case, *, root, note="", beside=None, stops=False,
                 denies=False, hot=HITS):
        self.load = Load(program, server.url(), root, targets(), CONNECTIONS, "--renew", RENEW)
        self.server, self.tell, self.case, self.note = server, tell, case, note
        self.beside, self.stops, self.denies, self.hot = beside, stops, denies, hot
        self.seconds = None
        self.bodies = self.wrong = self.failed = 0

    def __enter__(self):
        if self.server.module:
            until_well(self.server, self.hot)
        self.load.__enter__()
        self.goes_on()
        return self

    def goes_on(self, count=SOME):
        """Wait until the load has made `count` more requests: their notes."""
        notes = set()
        for _ in range(0, count, STEP):
            notes |= {e.note for e in self.server.wait_entries(STEP, self.server.mark())}
        return notes

    def falls_back(self):
        """Wait until a request was served as without Flashpache: hot files may be asked for many times before."""
        wait_for(lambda: "fallback" in self.goes_on() | self.goes_on(), "a request that falls back")

    def ends(self):
        """The fault is over: wait until that shows, and a little longer."""
        if self.server.module:
            self.seconds = max(self.seconds or 0, until_well(self.server, self.hot))
        self.goes_on()

    def __exit__(self, kind, *_):
        if kind:
            self.load.__exit__()
            return
        self.bodies, self.wrong, failed, complaints = self.load.end()
        cut, refused = self.load.lost
        self.failed = failed - refused if self.stops else failed
        if self.beside:
            self.note += f"stock: {self.beside.failed} of {self.beside.requests} failed"
        if self.server.module:
            self.tell("fault", self.case, requests=self.requests, failed=self.failed, wrong=self.wrong,
                      recovery_s=self.seconds, note=self.note)
        assert self.wrong == 0, complaints
        assert self.bodies > 0
        as_stock = self.beside or not self.server.module
        assert self.denies or self.failed == (cut if as_stock else 0), complaints

    @property
    def requests(self):
        return self.bodies + self.failed
