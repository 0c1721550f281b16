# SPDX-License-Identifier: Apache-2.0
"""httpd restarted, stopped and bereft of children under load: it loses only what stock loses, too."""

import os
import random
import signal

import pytest

import fault_kit
import procs
import waiting
from fault_kit import LONG, PAUSE, ROUNDS, Download, daemon  # noqa: F401 (a fixture)
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

# All children at once: the test is not about prefork's speed in making more of them.
PREFORK = "StartServers 20\nMinSpareServers 4\nMaxSpareServers 80\nServerLimit 96\nMaxRequestWorkers 96\n"


@pytest.fixture(scope="module", params=("prefork", "event", "worker") if LONG else ("prefork", "event"))
def mpm(request):
    return request.param


@pytest.fixture(scope="module")
def pair(lab, fault_root, daemon, mpm):
    """(stock, Flashpache), started, alike but for the module."""
    options = {"mpm": mpm, "config": fault_kit.config(fault_root),
               "limits": PREFORK if mpm == "prefork" else None}
    return (lab.stock(f"stock-{mpm}", fault_root, **options).start(),
            lab.flash(f"flash-{mpm}", fault_root, daemon.socket, **options).start())


def test_graceful_restart(under_load, pair, mpm):
    """The old children finish a response while the new ones answer."""
    with under_load(pair[1], f"graceful restart ({mpm})", note=PAUSE) as fault:
        for _ in range(2 * ROUNDS):
            download = Download(pair[1])
            pair[1].graceful()
            fault.ends()
            assert download.is_whole()


def beside_stock(under_load, pair, case, do, **options):
    """Does the same to both."""
    stock, flash = pair
    with under_load(stock, case, **options) as beside:
        do(stock, beside)
    with under_load(flash, case, beside=beside, **options) as fault:
        do(flash, fault)


def restart(server, fault):
    for _ in range(ROUNDS):
        waiting.restart(server)
        fault.ends()


def test_restart(under_load, pair, mpm):
    beside_stock(under_load, pair, f"restart, which ends children (SIGHUP, {mpm})", restart)


def workers(server):
    return procs.children(server.process.pid)


def test_child_killed(under_load, pair, mpm):
    chosen = random.Random(1)

    def kill(server, fault):
        for _ in range(ROUNDS):
            victim = chosen.choice(workers(server))
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda: procs.state(victim) is None, "httpd to notice")
            fault.ends()
    beside_stock(under_load, pair, f"children with leases killed ({mpm})", kill)


def test_graceful_stop(under_load, pair, daemon, mpm):
    """The last of a pair. Requests under way end; later ones are refused, by stock, too."""
    def stop(server, _):
        download = Download(server)
        server.process.send_signal(signal.SIGWINCH)
        assert download.is_whole()
        server.process.wait(60)
    beside_stock(under_load, pair, f"graceful stop ({mpm})", stop, stops=True)
    wait_for(lambda: daemon.counters()["connections"] == 1, "the daemon to let all of them go")
