# SPDX-License-Identifier: Apache-2.0
"""Disturbances beside the writers: contexts, by name."""

import os
import random
import signal
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import procs
from content_kit import forget_all
from quick import Quick

NOISY_FILES = 50
DEEPEST_NAMES = 2           # below the document root: a place's own directory
NOISY_PACE_S = 1 / 3000     # between two events of the steady stream
LONGEST_STOP_S, LONGEST_RUN_S = 0.06, 0.1
RESTART_EVERY_S = 0.5
STORMING = 3                # processes; together they make 100,000 events a second and more
BURST = 300                # changes of a kind in a row
PURGE_EVERY_S = 0.01


@contextmanager
def _beside(step):
    """step() again and again in a thread, until the block ends."""
    ended, problems = threading.Event(), []

    def run():
        try:
            while not ended.is_set():
                step()
        except Exception as problem:    # reported below: nobody sees it in a thread
            problems.append(problem)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not problems, problems


def _make_noise(paths, pace_s):
    while True:
        for path in paths:
            path.chmod(0o644)
            if pace_s:
                time.sleep(pace_s)


@contextmanager
def _noise(server, pace_s):
    """Events of files in a directory that the daemon watches, as the files were requested."""
    directory = server.docroot / "noisy"
    directory.mkdir()
    connection = Quick(server.port)
    paths = [directory / f"file{number}.txt" for number in range(NOISY_FILES)]
    for path in paths:
        path.write_text("noisy\n")
        connection.ask(f"/noisy/{path.name}")
    connection.close()
    with procs.beside(_make_noise, paths, pace_s):
        yield


def noise(server):
    return _noise(server, NOISY_PACE_S)


def storm(server):
    """As many events as one process can make."""
    return _noise(server, 0)


def _make_storm(root):
    """Changes attributes and names in all present directories, those of the writers' kinds included."""
    while True:
        # It goes on where a writer moves a directory meanwhile.
        directories = [Path(directory) for directory, _, _ in os.walk(root)]
        # So many in a row are a storm on a busy machine as well.
        for directory in (one for one in directories for _ in range(BURST)):
            with suppress(OSError):     # a writer has moved it
                os.utime(directory)
                # A kind may remove deeper ones, which it finds empty.
                if len(directory.relative_to(root).parts) < DEEPEST_NAMES:
                    name = directory / f"storm{os.getpid()}"
                    name.write_text("storm")
                    name.unlink()


@contextmanager
def storms(server):
    """Several processes make as many events as they can, in the very directories of the writers."""
    with ExitStack() as processes:
        for _ in range(STORMING):
            processes.enter_context(procs.beside(_make_storm, server.docroot))
        yield
        assert server.daemon.counters()["left_out"] > 0, "no directory was left out"


@contextmanager
def _stopped_in_turns(pids):
    chance = random.Random(1)

    def signal_all(number):
        for pid in chance.sample(pids, len(pids)):
            os.kill(pid, number)

    def step():
        signal_all(signal.SIGSTOP)
        time.sleep(chance.uniform(0, LONGEST_STOP_S))
        signal_all(signal.SIGCONT)
        time.sleep(chance.uniform(0, LONGEST_RUN_S))
    try:
        with _beside(step):
            yield
    finally:
        signal_all(signal.SIGCONT)


def stops(server):
    """The daemon gets no processor for a while, again and again."""
    return _stopped_in_turns([server.daemon.pid])


def pauses(server):
    """All our processes get none, as on a paused machine, while files change. The order in which they go on is
    chance."""
    return _stopped_in_turns([server.daemon.pid, *server.daemon.worker_pids(), *server.pids()])


def restarts(server):
    """The daemon is killed, and another one begins."""
    def step():
        server.daemon.kill()
        server.daemon.start()
        time.sleep(RESTART_EVERY_S)
    return _beside(step)


def purges(server):
    """An operator purges everything, again and again."""
    def step():
        forget_all(server.daemon)
        time.sleep(PURGE_EVERY_S)
    return _beside(step)


FAULTS = {function.__name__: function for function in (noise, storm, storms, stops, pauses, restarts, purges)}
