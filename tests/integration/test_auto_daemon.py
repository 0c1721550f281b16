# SPDX-License-Identifier: Apache-2.0
"""httpd's own flashpached (FlashpacheDaemon auto): its start, its life, its end."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import procs
import status_kit
import status_page_kit
import tree
import user_namespace
import wire
from fetch import Load, get
from httpd import HITS, USER, user_ids
from waiting import restart, wait_for

pytestmark = pytest.mark.needs_flashpache

SIZES = {f"f{i}.bin": 100 + 997 * i for i in range(60)}
SOME = 300          # this many requests show that the load goes on
DAEMON = "flashpached"


@pytest.fixture(scope="module")
def root(base):
    root = base / "auto-tree"
    tree.hot_files(root, SIZES)
    return root


@pytest.fixture
def make(lab, root, module_path, flashpached_program):
    """make(config, mpm=...): a server with the module and no daemon."""
    made = []

    def server(config="", program=flashpached_program, **options):
        # A short name: the socket's path has no room for more.
        name = f"auto{len(lab.started)}"
        text = f"FlashpacheDaemonProgram {program}\n{config}"
        made.append(lab.stock(name, root, module=module_path, config=text, **options))
        return made[-1]
    yield server
    for one in made:
        one.stop()


def daemons(server):
    """Pids of the daemons that this httpd's parent has."""
    below = procs.descendants(server.process.pid)
    return [p for p in procs.children(server.process.pid) if below.get(p) == DAEMON]


def daemon_of(server, but=None):
    """The pid of its one daemon, once there is one other than `but`."""
    def only():
        found = daemons(server)
        return found[0] if len(found) == 1 and found[0] != but else None
    return wait_for(only, "one flashpached below httpd")


def socket_of(server):
    return server.dir / "flashpache/flashpached.sock"


def until_hit(server, path="/f7.bin"):
    def hit():
        mark = server.mark()
        assert get(server.port, path) == (200, tree.content(path[1:], SIZES[path[1:]]))
        return server.wait_entries(1, mark)[-1].note in HITS
    wait_for(hit, f"a hit for {path}")


def more_requests(server, count=SOME):
    return server.wait_entries(count, server.mark())


def assert_clean(ended):
    bodies, wrong, failed, complaints = ended
    assert (wrong, failed) == (0, 0), complaints
    assert bodies > 0


def gone(pids):
    return all(procs.state(p) in (None, "Z") for p in pids)


def family(pid):
    return [pid, *procs.descendants(pid)]


def held_by(pid):
    """A process's open files: paths, and the kinds of those without a path."""
    return {link.split(":")[0] for link in procs.open_files(pid)}


def status_of(pid, *fields):
    rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return [rows[f].split() for f in fields]


# Start

@pytest.mark.parametrize("mpm", ("prefork", "event"))
def test_loading_the_module_is_enough(make, mpm):
    with make(mpm=mpm) as server:
        daemon_of(server)
        until_hit(server)
        place = socket_of(server).parent.stat()
        assert (place.st_uid, place.st_gid, place.st_mode & 0o7777) == (0, user_ids()[1], 0o710)
        there = socket_of(server).stat()
        assert (there.st_uid, there.st_gid, there.st_mode & 0o7777) == (0, user_ids()[1], 0o660)


def test_identity_is_that_of_the_children(make):
    with make(mpm="prefork") as server:
        daemon = daemon_of(server)
        below = procs.descendants(server.process.pid)
        worker = next(p for p in procs.children(server.process.pid) if below[p] != DAEMON)
        wait_for(lambda: status_of(worker, "Uid")[0][0] != "0", "a worker of its own identity")
        fields = ("Uid", "Gid", "Groups", "CapEff")
        assert status_of(daemon, *fields) == status_of(worker, *fields)
        assert os.getsid(daemon) == daemon


def test_nothing_of_httpds_is_open_but_its_error_log(make):
    with make(mpm="event") as server:
        daemon = daemon_of(server)
        until_hit(server)
        open_files = {int(fd): os.readlink(f"/proc/{daemon}/fd/{fd}")
                      for fd in os.listdir(f"/proc/{daemon}/fd")}
        assert [open_files[fd] for fd in (0, 1, 2)] == ["/dev/null"] * 2 + [str(server.error_log)]
        below = {p for fd, p in open_files.items() if fd > 2 and p.startswith(f"{server.dir}/")}
        assert below <= {f"{socket_of(server)}.lock"}
        listening = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
                     if line.split()[1].endswith(f":{server.port:04X}")}
        assert listening and not {f"socket:[{i}]" for i in listening} & set(open_files.values())


def test_nothing_is_started_by_a_check(make):
    server = make()
    done = server.check()
    assert done.returncode == 0, done.stderr
    assert not socket_of(server).parent.exists()


@pytest.mark.parametrize("config", ("FlashpacheEngine Off\n", "FlashpacheDaemon external\n",
                                    "FlashpacheSocket /nowhere/flashpached.sock\n", "ChrootDir /\n"))
def test_none_is_started_where_none_is_wanted(make, config):
    with make(config) as server:
        assert get(server.port, "/f1.bin", "once")[0] == 200
        assert daemons(server) == []
        assert not socket_of(server).parent.exists()
        assert server.wait_entries(1, tag="once")[0].note not in HITS


def test_missing_program_is_named_and_httpd_serves(make, base):
    with make(program=base / "no-such-program") as server:
        content = tree.content("f1.bin", SIZES["f1.bin"])
        assert get(server.port, "/f1.bin", "once") == (200, content)
        assert server.wait_entries(1, tag="once")[0].note == "fallback"
        text = server.error_text()
        assert "FP0112" in text and str(base / "no-such-program") in text
        assert "FlashpacheDaemonProgram" in text


def test_unusable_place_is_named_and_httpd_serves(make, base):
    server = make()
    (base / "elsewhere").mkdir()
    socket_of(server).parent.symlink_to(base / "elsewhere")
    with server:
        assert get(server.port, "/f1.bin")[0] == 200
        assert "FP0112" in server.error_text() and str(socket_of(server).parent) in server.error_text()
        assert (base / "elsewhere").stat().st_uid == 0


def test_program_that_fails_is_started_ever_more_slowly(make, base):
    script = tree.put(base / "failing-daemon", "#!/bin/sh\necho this is why >&2\nexit 3\n", 0o755)
    with make(program=script) as server:
        wait_for(lambda: "started again in 4 s" in server.error_text(), "three starts")
        text = server.error_text()
        assert "FP0111" in text and "(status or signal 3)" in text and text.count("this is why") >= 3
        assert get(server.port, "/f1.bin")[0] == 200


def test_program_that_the_user_may_not_run_is_named(make, base):
    script = tree.put(base / "root-only", "#!/bin/sh\n", 0o700)
    with make(program=script) as server:
        wait_for(lambda: "FP0111" in server.error_text(), "the failure")
        wait_for(lambda: f"FP0112: cannot run {script} as uid {user_ids()[0]}" in server.error_text(), "its reason")


@pytest.mark.parametrize("directive", ("FlashpacheDaemon auto", "FlashpacheDaemonProgram /bin/true",
                                       "FlashpacheDaemonConfig /etc/flashpached.conf"))
def test_directives_are_refused_in_a_virtual_host(make, directive):
    done = make(vhosts=[(["localhost"], directive)]).check()
    assert done.returncode != 0 and directive.split()[0] in done.stderr, done.stderr


@pytest.mark.parametrize("config,message", (
    ("FlashpacheDaemon sometimes\n", "auto"),
    ("FlashpacheDaemon auto\nFlashpacheSocket /run/x.sock\n", "FP0113")))
def test_mistakes_are_found_by_a_check(make, config, message):
    done = make(config).check()
    assert done.returncode != 0 and message in done.stderr, done.stderr


def no_program(place):
    return f"FlashpacheDaemonProgram {place}/no-such-program\n", "no-such-program: No such file"


def another_program(place):
    return "FlashpacheDaemonProgram /bin/true\n", "/bin/true is not flashpached"


def closed_program(place):
    program = tree.put(place / "closed-program", "#!/bin/sh\n", 0o700)
    return f"FlashpacheDaemonProgram {program}\n", f"cannot run it as uid {user_ids()[0]}"


def no_configuration(place):
    return f"FlashpacheDaemonConfig {place}/no-such.conf\n", f"{place}/no-such.conf: No such file"


def wrong_configuration(place):
    config = tree.put(place / "wrong.conf", "ttl_ms = 5\nttl_ms = 10ms5\n")
    return f"FlashpacheDaemonConfig {config}\n", f"{config}:2"


def closed_configuration(place):
    config = tree.put(place / "closed.conf", "ttl_ms = 5\n", 0o600)
    return f"FlashpacheDaemonConfig {config}\n", f"{config}: Permission denied"


WOULD_NOT_START = (no_program, another_program, closed_program, no_configuration, wrong_configuration,
                   closed_configuration)


@pytest.mark.parametrize("wrong", WOULD_NOT_START)
def test_daemon_that_would_not_start_is_found_by_a_check(make, base, wrong):
    config, message = wrong(base)
    server = make(config)
    done = server.check()
    assert done.returncode != 0 and "FP0116" in done.stderr, done.stderr
    assert message in done.stderr, done.stderr
    assert not socket_of(server).parent.exists()


def test_a_good_configuration_may_warn_at_length(make, base):
    script = tree.put(base / "warns", "#!/bin/sh\nseq 2000 >&2\necho 'flashpached: configuration x is good'\n", 0o755)
    done = make(f"FlashpacheDaemonProgram {script}\n").check()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("unused", ("FlashpacheEngine Off\n", "FlashpacheDaemon external\n", "ChrootDir /\n"))
def test_daemon_that_is_not_wanted_is_not_checked(make, base, unused):
    assert make(no_program(base)[0] + unused).check().returncode == 0


# Life

@pytest.mark.parametrize("wrong", (no_program, another_program, no_configuration, wrong_configuration))
def test_graceful_restart_keeps_a_daemon_where_the_next_would_not_start(make, base, wrong):
    with make("FlashpacheTimeout 10\n") as server:
        first = daemon_of(server)
        until_hit(server)
        config = server.dir / "httpd.conf"
        good = config.read_text()
        text, message = wrong(base)
        config.write_text(f"{good}{text}")
        server.graceful()
        until_hit(server)
        assert daemon_of(server) == first
        told = [line for line in server.error_text().splitlines() if "FP0116" in line]
        assert len(told) == 1 and message in told[0], told
        config.write_text(good)
        server.graceful()
        until_hit(server)
        assert daemon_of(server) == first
        assert server.error_text().count("FP0116") == 1


def test_killed_daemon_is_started_again_and_no_request_fails(make, root, bodycheck_program):
    with make(mpm="event") as server:
        first = daemon_of(server)
        until_hit(server)
        with Load(bodycheck_program, server.url(), root, list(SIZES)) as running:
            more_requests(server)
            os.kill(first, signal.SIGKILL)
            daemon_of(server, but=first)
            until_hit(server)
            more_requests(server)
            assert_clean(running.end())
        assert "FP0111" in server.error_text() and "signal 9)" in server.error_text()


def test_daemon_comes_back_where_somebody_has_emptied_the_runtime_directory(make):
    with make(mpm="event") as server:
        first = daemon_of(server)
        until_hit(server)
        shutil.rmtree(socket_of(server).parent)
        os.kill(first, signal.SIGKILL)
        daemon_of(server, but=first)
        until_hit(server)


def test_way_out_of_a_daemon_that_hangs(make):
    """The status page names it. A graceful restart would not do."""
    with make(vhosts=[(["localhost"], ""), status_kit.VHOST], extra_modules=status_kit.MODULES) as server:
        first = daemon_of(server)
        until_hit(server)
        os.kill(first, signal.SIGSTOP)
        said = status_page_kit.until(server, "down").text_of("health")
        server.graceful()
        assert daemon_of(server) == first
        command, = re.findall(r"kill -KILL \$\(cat [^ )]+\)", said)
        subprocess.run(["sh", "-c", command], check=True)
        daemon_of(server, but=first)
        until_hit(server)


def test_way_out_of_a_limit_on_watches(make, flashpachectl):
    """The daemon counts those that were refused, until it is another one."""
    def watches():
        said = flashpachectl("-s", socket_of(server), "check").stdout
        return next((line for line in said.splitlines() if re.search("inotify watches|watches were refused", line)), "")
    with make(around=user_namespace.around("max_inotify_watches=3")) as server:
        first = daemon_of(server)
        wait_for(lambda: get(server.port, "/f7.bin") and "BAD" in watches(), "a watch to be refused")
        command, = re.findall(r"kill \$\(cat [^ )]+\)", watches())
        subprocess.run(["sh", "-c", command], check=True)
        daemon_of(server, but=first)
        wait_for(lambda: "ok" in watches(), "the next daemon to count anew")


@pytest.mark.parametrize("mpm", ("prefork", "event"))
def test_graceful_restart_keeps_the_daemon(make, root, bodycheck_program, mpm):
    with make(mpm=mpm) as server:
        first = daemon_of(server)
        until_hit(server)
        with Load(bodycheck_program, server.url(), root, list(SIZES)) as running:
            for _ in range(3):
                more_requests(server)
                server.graceful()
            more_requests(server)
            assert_clean(running.end())
        assert daemon_of(server) == first
        assert "FP0111:" not in server.error_text()


@pytest.mark.parametrize("mpm", ("prefork", "event"))
def test_restart_keeps_the_daemon(make, mpm):
    with make(mpm=mpm) as server:
        first = daemon_of(server)
        restart(server)
        until_hit(server)
        assert daemon_of(server) == first
        held = procs.fd_count(server.process.pid)
        os.kill(first, signal.SIGKILL)
        daemon_of(server, but=first)
        restart(server)
        until_hit(server)
        assert procs.fd_count(server.process.pid) == held


def test_graceful_restart_with_another_configuration_replaces_the_daemon(make, lab, root,
                                                                         bodycheck_program):
    config = lab.base / "own.conf"
    config.write_text("workers = 3\n")
    with make(f"FlashpacheDaemonConfig {config}\n") as server:
        first = daemon_of(server)
        wait_for(lambda: "with 3 workers" in server.error_text(), "the daemon to be ready")
        config.write_text("workers = 4 # more\n")
        with Load(bodycheck_program, server.url(), root, list(SIZES)) as running:
            more_requests(server)
            server.graceful()
            daemon_of(server, but=first)
            wait_for(lambda: "with 4 workers" in server.error_text(), "the next daemon to be ready")
            assert gone([first])
            until_hit(server)
            assert_clean(running.end())
        assert "FP0111:" not in server.error_text()


def test_restart_as_another_user_replaces_the_daemon(make):
    with make() as server:
        first = daemon_of(server)
        until_hit(server)
        config = server.dir / "httpd.conf"
        config.write_text(config.read_text().replace(f"User {USER}\nGroup {USER}",
                                                     "User nobody\nGroup nogroup"))
        restart(server)
        second = daemon_of(server, but=first)
        until_hit(server)
        assert os.stat(f"/proc/{second}").st_gid == socket_of(server).stat().st_gid != user_ids()[1]


def test_engine_switched_off_ends_the_daemon(make):
    with make() as server:
        daemon = family(daemon_of(server))
        config = server.dir / "httpd.conf"
        config.write_text(config.read_text() + "FlashpacheEngine Off\n")
        server.graceful()
        wait_for(lambda: gone(daemon), "the daemon to end")
        assert get(server.port, "/f1.bin")[0] == 200


def test_daemon_outlives_its_module_but_not_httpd(make):
    with make() as server:
        daemon = daemon_of(server)
        below = family(daemon)
        config = server.dir / "httpd.conf"
        with_module = config.read_text()
        without = "".join(line for line in with_module.splitlines(True)
                          if not line.startswith(("LoadModule flashpache", "Flashpache")))
        config.write_text(without)
        server.graceful()
        config.write_text(with_module)
        server.graceful()
        assert daemon_of(server) == daemon
        until_hit(server)
        config.write_text(without)
        server.graceful()
        assert get(server.port, "/f1.bin")[0] == 200
        server.stop()
        wait_for(lambda: gone(below), "the daemon to end with httpd")


def test_daemon_logs_into_the_error_log_that_follows_a_rotation(make):
    with make() as server:
        daemon = daemon_of(server)
        until_hit(server)
        server.error_log.rename(server.dir / "error.log.1")
        server.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: server.error_log.exists() and "resuming" in server.error_log.read_text(),
                 "the graceful restart")
        wait_for(lambda: os.readlink(f"/proc/{daemon}/fd/2") == str(server.error_log), "the new log")
        os.kill(daemon, signal.SIGUSR1)
        wait_for(lambda: "FP0006" in server.error_log.read_text(), "the daemon's counters")
        assert daemon_of(server) == daemon
        below = procs.descendants(daemon)
        assert {"fp-monitor", "fp-spawner", "fp-worker", "fp-closer"} <= set(below.values())
        assert [name for p, name in below.items() if str(server.dir / "error.log.1") in held_by(p)] == []


def test_second_httpd_does_not_take_the_socket_of_the_first(make):
    with make() as first:
        daemon = daemon_of(first)
        until_hit(first)
        inode = socket_of(first).stat().st_ino
        with make(f"DefaultRuntimeDir {first.dir}\n") as second:
            wait_for(lambda: "FP0003" in second.error_text(), "the second daemon's complaint")
            assert f"process {daemon}" in second.error_text()
            until_hit(second)
        assert socket_of(first).stat().st_ino == inode
        assert daemon_of(first) == daemon
        until_hit(first)


# End

@pytest.mark.parametrize("mpm", ("prefork", "event"))
@pytest.mark.parametrize("how", (signal.SIGTERM, signal.SIGWINCH))
def test_stop_leaves_nothing(make, mpm, how):
    with make(mpm=mpm) as server:
        until_hit(server)
        below = family(daemon_of(server))
        assert len(below) > 2
        server.process.send_signal(how)
        server.process.wait(60)
        # httpd waits for the daemon's end: a start that follows at once finds the socket free.
        assert gone(below[:1])
        wait_for(lambda: gone(below), "the workers to end")
        assert not socket_of(server).exists()


@pytest.mark.parametrize("mpm", ("prefork", "event"))
def test_killed_parent_leaves_no_daemon(make, mpm):
    with make(mpm=mpm, extra_modules=("cgid",)) as server:
        until_hit(server)
        # mod_cgid's daemon, forked from the parent at each restart, inherits the parent's descriptors.
        server.graceful()
        below = family(daemon_of(server))
        server.process.kill()
        try:
            # httpd's children may live on; the daemon must not.
            wait_for(lambda: gone(below), "the daemon to end with its supervisor")
        finally:
            os.killpg(server.process.pid, signal.SIGKILL)
        assert wire.nobody_listens(socket_of(server))


def test_parent_killed_during_a_pause_leaves_no_process(make, base):
    script = tree.put(base / "failing-again", "#!/bin/sh\nexit 1\n", 0o755)
    with make(program=script) as server:
        held = {"socket", "/dev/null", str(server.error_log)}
        wait_for(lambda: "started again in 4 s" in server.error_text(), "a longer pause")
        pausing = wait_for(lambda: [p for p in procs.children(server.process.pid)
                                    if os.getsid(p) == p and held_by(p) == held], "the pause")
        server.process.kill()
        try:
            wait_for(lambda: gone(pausing), "what would have become a daemon to end")
        finally:
            os.killpg(server.process.pid, signal.SIGKILL)


def test_supervised_by_nobody_is_refused(lab):
    daemon = lab.daemon("by-hand")
    done = daemon.run("--supervised")
    assert done.returncode != 0 and "--supervised" in done.stderr, done.stderr
