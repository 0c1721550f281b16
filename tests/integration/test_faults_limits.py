# SPDX-License-Identifier: Apache-2.0
"""No room on the disk, no descriptors, no memory, and very low limits of the system."""

import os
import resource
import signal
import time
from functools import partial
from pathlib import Path

import pytest

import fault_kit
import httpd
import procs
from fault_kit import COLD, SETTINGS, SOME, daemon, server  # noqa: F401 (fixtures)
from fetch import get
from httpd import HITS
from system_limits import SmallDisk, inotify, lowered, next_descriptor, with_descriptors
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

FEW_DESCRIPTORS, FEW_WATCHES = 96, 16  # a quarter are connections: one for each of the load, and a few
HEALTHY_S = 2.5
HTTPD_DESCRIPTORS = 256     # with 64 httpd itself, stock as well, ends now and then: AH02324
A_LITTLE_MORE = 64 << 10            # bytes of memory
NAMES = 1000                        # absent names; the daemon would keep an entry for each


# Disk

@pytest.fixture
def disk(lab, request):
    made = SmallDisk(lab.base / f"disk{len(lab.started)}", "256k", 64)
    yield made
    made.unmount()


def test_disk_of_the_daemon_full(under_load, lab, fault_root, disk):
    daemon = lab.daemon(f"{disk.path.name}/daemon", **SETTINGS).start()
    server = lab.flash("disk-flash", fault_root, daemon.socket, config=fault_kit.config(fault_root)).start()
    with under_load(server, "disk of the daemon's log, settings and socket full") as fault:
        disk.fill()
        os.kill(daemon.worker_pids()[0], signal.SIGKILL)
        daemon.signal(signal.SIGHUP)
        daemon.signal(signal.SIGUSR1)
        fault.ends()
        disk.clear()
    daemon.signal(signal.SIGUSR1)
    wait_for(lambda: "FP0006" in daemon.log_text(), "the log to go on")


def test_disk_of_the_socket_full_at_a_start(under_load, lab, fault_root, module_path, flashpached_program, disk):
    server = fault_kit.with_own_daemon(lab, fault_root, module_path, flashpached_program,
                                       config=f"DefaultRuntimeDir {disk.path}\n").start()
    with under_load(server, "disk of the socket full, httpd's own daemon killed") as fault:
        disk.fill()
        os.kill(fault_kit.own_daemon(server), signal.SIGKILL)
        fault.goes_on()
        disk.clear()
        fault.ends()


# Descriptors

def none_free(pids):
    return {pid: next_descriptor(pid) for pid in pids}


def test_daemon_out_of_descriptors(under_load, server, daemon):
    """Open descriptors stay; a graceful restart makes new connections necessary."""
    with under_load(server, "daemon and workers out of descriptors") as fault:
        with lowered("nofile", none_free(daemon.family())):
            fault.falls_back()
            server.graceful()
            fault.falls_back()
        fault.ends()
    assert "(timeout" not in server.error_text()


def test_no_worker_can_be_made(under_load, lab, fault_root):
    """Requests fall back at once: none waits for a worker until its time is over."""
    daemon = lab.daemon("barren", **SETTINGS).start()
    server = lab.flash("barren-flash", fault_root, daemon.socket, config=fault_kit.config(fault_root)).start()
    with under_load(server, "all workers killed while no other can be made") as fault:
        with lowered("nofile", none_free([daemon.spawner_pid()])):
            for pid in daemon.worker_pids():
                os.kill(pid, signal.SIGKILL)
            fault.falls_back()
            wait_for(lambda: "FP0023" in daemon.log_text(), "word of it")
        fault.ends()
    assert "(timeout" not in server.error_text()


def test_child_out_of_descriptors(under_load, lab, server, fault_root):
    """The child can neither open files nor accept connections, and httpd replaces it."""
    def starve(one, fault):
        # A child that is sick before httpd has seen a healthy one ends httpd itself (AH02324), stock as well. httpd
        # looks for a healthy one once a second.
        time.sleep(HEALTHY_S)
        with lowered("nofile", none_free(procs.children(one.process.pid)[:1])):
            fault.goes_on()
        fault.ends()
    stock = lab.stock("stock", fault_root, config=fault_kit.config(fault_root)).start()
    with under_load(stock, "", denies=True) as beside:
        starve(stock, beside)
    with under_load(server, "one of httpd's children out of descriptors", beside=beside,
                    denies=True) as fault:
        starve(server, fault)


# Memory

def address_space(pid):
    """Bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


def knows_all(ctl):
    """True if the daemon has room for every requested name. It may have none even to report it."""
    done = ctl("stats")
    return done.returncode == 0 and int(dict(map(str.split, done.stdout.splitlines()))["negative"]) >= NAMES


@pytest.mark.not_sanitized("its memory is the sanitizer's as well")
def test_out_of_memory(under_load, lab, fault_root, flashpachectl):
    daemon = lab.daemon("memory", **SETTINGS).start()
    server = lab.flash("memory-flash", fault_root, daemon.socket, config=fault_kit.config(fault_root)).start()
    ctl = partial(flashpachectl, "-s", daemon.socket)
    absent = "".join(f"{fault_root}/cold/absent-{i}\n" for i in range(NAMES))
    with under_load(server, "daemon and its workers out of memory (RLIMIT_AS)",
                    note="it may end of it (libev gives up), and is started again as systemd would") as fault:
        with lowered("as", {pid: address_space(pid) + A_LITTLE_MORE for pid in daemon.family()}):
            ctl("warm", "-", input=absent)
            fault.goes_on()
            assert not knows_all(ctl)
        assert "FP0091" in daemon.log_text()
        fault.goes_on()
        if daemon.process.poll() is not None:
            daemon.start()
        fault.ends()


# Everything

def test_least_settings(under_load, lab, fault_root):
    """Hardly anything is kept or waits: requests without room are served without Flashpache."""
    least = {"workers": 1, "memory": "208K", "open_files": 4, "content_file_max": 0, "max_connections": 2}
    daemon = lab.daemon("least", **least).start()
    server = lab.flash("least-flash", fault_root, daemon.socket,
                       config=fault_kit.config(fault_root) + "FlashpacheLeases 1\n").start()
    with under_load(server, "every limit of the daemon at or near its least") as fault:
        notes = fault.goes_on(3 * SOME)
    assert "fallback" in notes and notes & HITS


@pytest.mark.alone
def test_tiny_system(under_load, lab, fault_root, monkeypatch):
    case = (f"{FEW_DESCRIPTORS} descriptors for daemon and workers, {HTTPD_DESCRIPTORS} for httpd, "
            f"{FEW_WATCHES} watches")
    monkeypatch.setattr(httpd, "APACHE", with_descriptors(HTTPD_DESCRIPTORS, httpd.APACHE, lab.base / "httpd"))
    daemon = lab.daemon("tiny", **SETTINGS)
    daemon.program = with_descriptors(FEW_DESCRIPTORS, daemon.program, lab.base / "flashpached")
    server = lab.flash("tiny-flash", fault_root, daemon.socket, config=fault_kit.config(fault_root))
    with inotify("max_user_watches", FEW_WATCHES):
        daemon.start()
        server.start()
        for name in COLD:
            get(server.port, f"/{name}")
            if "FP0042" in daemon.log_text():
                break
    with under_load(server, case) as fault:
        fault.goes_on()
        fault.ends()
    text = daemon.log_text()
    assert "FP0007" in text and "FP0042" in text
    assert "Too many open files" not in server.error_text()
