# SPDX-License-Identifier: Apache-2.0
"""A child that spoils its own set of events: each client has a set of its own, and the others' sets report as before.

The daemon stands still while a change waits, so a set's report does not depend on time."""

import contextlib
import fcntl
import os
import select
import signal
import socket
from collections import namedtuple

import pytest

import procs
import tree
import wire
from lease_kit import new_root
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache
GREETING = ("generations", "referenced", "events", "alive", "answers", "contents")      # a descriptor with each frame
MORE_THAN_THE_DAEMON_HAS = 200      # numbers of descriptors
WAYS = 400                  # the kernel allows 500 paths of length two from one queue

Client = namedtuple("Client", "conn events alive")


@contextlib.contextmanager
def client(path):
    """A connection, with everything received on it."""
    with wire.connect(path) as conn:
        conn.sendall(wire.hello())
        fds = {name: socket.recv_fds(conn, 65536, 4)[1][0] for name in GREETING}
        events = select.epoll.fromfd(fds.pop("events"))        # closes it
        try:
            yield Client(conn, events, fds["alive"])
        finally:
            events.close()
            for fd in fds.values():
                os.close(fd)


def at_every_number(own, act):
    """act(set, number) in a process that shares the set, with the daemon's pipe in turn as each number that the
    daemon may have for it. The kernel finds a member only by file and number. Returns how many succeeded."""
    pid = os.fork()
    if pid == 0:
        pipe = fcntl.fcntl(own.alive, fcntl.F_DUPFD, MORE_THAN_THE_DAEMON_HAS)
        events = select.epoll.fromfd(fcntl.fcntl(own.events.fileno(), fcntl.F_DUPFD, MORE_THAN_THE_DAEMON_HAS))
        done = 0
        for number in range(MORE_THAN_THE_DAEMON_HAS):
            os.dup2(pipe, number)
            with contextlib.suppress(OSError):
                act(events, number)
                done += 1
        os._exit(done)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def remove_all(own, _stack):
    """EPOLL_CTL_DEL: it succeeds for the pipe. A client does not have the queue, which stays."""
    assert at_every_number(own, lambda events, number: events.unregister(number)) == 1


def once(own, _stack):
    """EPOLLONESHOT, so that an event is reported once."""
    flags = select.EPOLLIN | select.EPOLLONESHOT
    assert at_every_number(own, lambda events, number: events.modify(number, flags)) == 1


def nothing_more(own, _stack):
    """Asks for no events any more."""
    assert at_every_number(own, lambda events, number: events.modify(number, 0)) == 1


def filled(own, stack):
    """Fills the set with descriptors that are always ready."""
    for _ in range(WAYS):
        read, write = os.pipe()
        stack.callback(os.close, read)
        stack.callback(os.close, write)
        os.write(write, b"x")
        own.events.register(read, select.EPOLLIN)


def exclusive(own, stack):
    """Waits for the set exclusively, which takes wakeups from other waiters of the same set."""
    for flags in (select.EPOLLIN, select.EPOLLIN | select.EPOLLET | select.EPOLLEXCLUSIVE):
        other = select.epoll()
        stack.callback(other.close)
        with contextlib.suppress(OSError):      # the kernel may refuse that for a set
            other.register(own.events.fileno(), flags)


def nested(own, stack):
    """As many paths from the queue to sets as the kernel allows."""
    for _ in range(WAYS):
        other = select.epoll()
        stack.callback(other.close)
        other.register(own.events.fileno(), select.EPOLLIN)


def taken_out(own, _stack):
    """Asks again and again, and takes the ready events."""
    for _ in range(WAYS):
        own.events.poll(0)


def written(own, stack):
    """Opens the daemon's pipe anew and writes: the pipe is in all clients' sets."""
    pipe = os.open(f"/proc/self/fd/{own.alive}", os.O_WRONLY | os.O_NONBLOCK)
    stack.callback(os.close, pipe)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, bytes(4096))


ATTACKS = (remove_all, once, nothing_more, filled, exclusive, nested, taken_out, written)


@pytest.fixture
def root(base):
    root = new_root(base, "sets")
    tree.put(root / "file.txt", "content")
    return root


def says(events):
    """Asks as a client does: without taking anything out of the set."""
    looks = select.poll()
    looks.register(events.fileno(), select.POLLIN)
    return bool(looks.poll(0))


@contextlib.contextmanager
def standing(daemon):
    """After signal() returns the process may run on for a moment."""
    daemon.signal(signal.SIGSTOP)
    try:
        wait_for(lambda: procs.state(daemon.pid) == "T", "the daemon to stand still")
        yield
    finally:
        daemon.signal(signal.SIGCONT)


def ask(someone, path):
    return wire.parse_answer(wire.ask(someone.conn, wire.whole_lookup(path)))


@pytest.mark.parametrize("attack", ATTACKS)
def test_other_clients_see_every_change(lab, root, attack):
    path = root / "file.txt"
    with (lab.daemon(root.name) as daemon, client(daemon.socket) as bad, client(daemon.socket) as good,
          contextlib.ExitStack() as stack):
        assert ask(good, path)[0] == 0
        attack(bad, stack)
        for number in range(20):
            assert ask(good, path)[0] == 0          # the daemon has read all events, and watches the file
            wait_for(lambda: not says(good.events), "a set in which nothing is ready")
            with standing(daemon):
                path.write_text(f"content {number}")
                assert says(good.events) and says(bad.events)
                # The client that looked took nothing.
                bad.events.poll(0)
                assert says(good.events)
        assert ask(bad, path)[0] == 0               # it is answered as before
        with client(daemon.socket) as late:         # and so is one that comes later
            assert ask(late, path)[0] == 0
            with standing(daemon):
                path.write_text("content")
                assert says(late.events)
        if attack is written:
            stack.close()       # while somebody could write, the pipe's end does not show, and the heartbeat does
        daemon.kill()
        # Processes that close its files may end a moment later; until then the queues exist, too.
        wait_for(lambda: says(good.events), "word that nobody reads the queues any more")
        daemon.start()
