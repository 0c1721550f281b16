# SPDX-License-Identifier: Apache-2.0
"""libflashpache_files.so answers a program's own calls on paths from the daemon's memory. The answers are as true as the
kernel's, and only a program that the daemon would answer gets them. It goes on when nobody answers any more."""

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

import content_kit
import files_kit
import filesystems
import tree
from httpd import user_ids
from trace import Trace
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache
CHANGES = int(os.environ.get("FLASHPACHE_CHANGES", "300"))
NOBODY = 65534


@pytest.fixture(scope="module")
def daemon(lab):
    return lab.daemon("files", ttl_ms=60000).start()


@pytest.fixture(scope="module")
def truth(base):
    return files_kit.compiled(base, "files_truth.c")


@pytest.fixture(scope="module")
def program(base):
    return files_kit.compiled(base, "files_program.c", "-pthread")


@pytest.fixture
def site(base, request):
    root = base / request.node.name.replace("/", "-")[-30:]
    tree.put(root / "a/b/file.php", "<?php\n")
    (root / "a/link").symlink_to("b")
    os.chown(root, *user_ids())
    return root


class Program:
    """One that runs, and does a word at a time."""

    def __init__(self, program, roots, socket, around=None, **more):
        around = files_kit.as_user() if around is None else around
        self.process = subprocess.Popen([*around, program], env=files_kit.environment(roots, socket, **more), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)

    def __call__(self, word, path=""):
        self.process.stdin.write(f"{word} {path}\n" if path else f"{word}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the program ended: {self.process.wait(10)}"
        return line.strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(20) == 0
        self.process.stdout.close()


@pytest.fixture
def running(program, site, daemon):
    with Program(program, site, daemon.socket) as p:
        yield p


# ---- truth ----

@pytest.fixture
def compared(truth, lab, base, slow_directory):
    """Runs the program that compares each answer with the kernel's, on a file system of that kind; its output."""
    def run(kind, writer, number, seed):
        daemon = lab.daemon(f"t{kind}{writer}", ttl_ms=60000).start()
        own = base / f"{kind}-{writer}"
        own.mkdir()
        with filesystems.directory(kind, own, slow_directory) as directory:
            site = directory / "site"
            site.mkdir()
            os.chown(site, *user_ids())
            done = files_kit.run([truth, site, writer, number, seed], site, daemon.socket)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout
    return run


@pytest.mark.parametrize("writer", ["own", "other"])
@pytest.mark.parametrize("kind", filesystems.KINDS)
def test_every_change_is_in_the_next_answer(kind, writer, compared):
    fresh = int(re.search(r"fresh (\d+) wrong 0", compared(kind, writer, CHANGES, 11))[1])
    assert fresh > CHANGES, "hardly an answer came from memory: nothing was tested"


@pytest.mark.parametrize("writer", ["directories", "directories-other"])
@pytest.mark.parametrize("kind", filesystems.KINDS)
def test_every_change_is_in_the_next_list_of_names(kind, writer, compared):
    number = max(48, CHANGES // 6)
    output = compared(kind, writer, number, 1)
    assert int(re.search(r"kept (\d+) wrong 0", output)[1]) > number * 9 // 10, f"{output}: little was tested"


def test_a_directory_is_read_in_every_way(running, site):
    """By readdir_r, telldir, seekdir, dirfd, scandir and glob, as by the kernel."""
    assert running("until", site / "a") == "yes"
    wait_for(lambda: running("directory", site / "a") == "0 kept", "the names")


@pytest.fixture
def remote(lab, base, request, slow_directory):
    """A directory of the program's user on a mount that is not local, and the daemon's socket. Where calls are quick, nobody keeps contents."""
    source = base / (request.node.name[:20] + "-source")
    source.mkdir()
    site = slow_directory(source, 1000) / "site"
    site.mkdir()
    os.chown(site, *user_ids())
    return site, lab.daemon(request.node.name[:20], ttl_ms=60000).start().socket


def test_every_change_is_in_the_next_file_opened(truth, remote):
    site, socket = remote
    done = files_kit.run([truth, site, "rested", 140, 1], site, socket)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "copies 140 wrong 0" in done.stdout, "not all were opened from memory: little was tested"


def test_a_descriptor_is_as_one_of_open(remote):
    site, socket = remote
    path = tree.put(site / "file.php", "abc" * 100)
    os.chown(path, *user_ids())
    done = files_kit.run(["/usr/bin/python3", files_kit.HERE / "files_descriptor.py", path], site, socket)
    assert done.returncode == 0, done.stderr


def remount(point, option):
    subprocess.run(["mount", "-i", "-o", f"remount,{option}", point], check=True)


def test_rights_are_the_kernels(program, remote, tmp_path):
    """Kept from one call to the next, until something changes that decides about them."""
    if os.geteuid() != 0:
        pytest.skip("needs root to change a mount")
    site, socket = remote
    path = tree.put(site / "data/file", "x\n")
    for each in (path, path.parent):
        os.chown(each, *user_ids())
    changes = {None: 0, "chmod": errno.EACCES, "chmod back": 0, "owner": errno.EACCES, "owner back": 0,
               "read-only": errno.EROFS, "read-write": 0, "unlink": errno.ENOENT}

    def change(what):
        match what:
            case "chmod" | "chmod back":
                path.chmod(0o444 if what == "chmod" else 0o644)
            case "owner" | "owner back":
                os.chown(path, *((0, 0) if what == "owner" else user_ids()))
            case "read-only" | "read-write":
                remount(site.parent, "ro" if what == "read-only" else "rw")
            case "unlink":
                path.unlink()
    with Program(program, site, socket) as p:
        assert p("until", path) == "yes" and p("access", f"{path} {os.W_OK}") == "0"
        assert p("open", path) == "0"       # of which it learns what kind of mount it is
        for what, expected in changes.items():
            change(what)
            assert p("access", f"{path} {os.W_OK}") == str(expected), what
            assert p("until", path) == "yes"
            for _ in range(3):
                assert p("access", f"{path} {os.R_OK | os.W_OK}") == str(expected), what
            with Trace([p.process.pid], tmp_path / "trace", files_kit.KERNEL_CALLS) as trace:
                assert p("access", f"{path} {os.R_OK | os.W_OK}") == str(expected), what
            asked = any(str(path) in line for line in trace.lines())
            assert asked == (expected == errno.EROFS), what


def test_rights_of_a_process_that_lost_its_view_of_the_mounts(program, remote):
    """It was forked, or has closed its descriptors."""
    if os.geteuid() != 0:
        pytest.skip("needs root to change a mount")
    site, socket = remote
    path = tree.put(site / "file", "x\n")
    os.chown(path, *user_ids())
    with Program(program, site, socket) as p:
        assert p("until", path) == "yes" and p("access", f"{path} {os.W_OK}") == "0" and p("open", path) == "0"
        for word in ("fork", "close", "fork"):
            assert p("access", f"{path} {os.W_OK}") == "0"
            p(word)
            wait_for(lambda: p("until", path) == "yes", "an answer")
            for option, expected in (("rw", 0), ("ro", errno.EROFS), ("rw", 0)):
                remount(site.parent, option)
                for _ in range(2):
                    assert p("access", f"{path} {os.W_OK}") == str(expected), (word, option)


def test_rights_to_files_of_local_mounts_are_asked_of_the_kernel(running, site, tmp_path):
    """It has attributes, such as that of chattr +i."""
    path = site / "a/b/file.php"
    assert running("until", path) == "yes"
    for _ in range(3):
        assert running("open", path) == "0"
        with Trace([running.process.pid], tmp_path / "trace", files_kit.KERNEL_CALLS) as trace:
            assert running("access", f"{path} {os.W_OK}") == str(errno.EACCES)
        assert any(str(path) in line for line in trace.lines())


def test_files_of_local_mounts_are_opened_by_the_kernel(running, site, tmp_path):
    path = site / "a/b/file.php"
    assert running("until", path) == "yes"
    with Trace([running.process.pid], tmp_path / "trace", "open,openat,memfd_create") as trace:
        assert running("open", path) == "0"
    assert any(str(path) in line for line in trace.lines()) and not any("memfd" in line for line in trace.lines())


def test_paths_that_are_written_otherwise(running, site):
    assert running("until", site / "a/b/file.php") == "yes"
    for text, expected in (("a//b/./file.php", 0), ("a/link/file.php", 0), ("a/b/", 0), ("a/b/.", 0), ("a/link/", 0),
                           ("a/b/file.php/", errno.ENOTDIR), ("a/b/file.php/x", errno.ENOTDIR), ("a/b/none", errno.ENOENT),
                           ("a/link/../b/file.php", 0), ("a/b/../../../" + site.name + "/a", 0)):
        for _ in range(3):
            assert running("stat", f"{site}/{text}") == str(expected), text
    assert running("count", f"{site}/a//b/./file.php") == "1000"
    running("stat", f"{site}/a/b/../b/file.php")
    assert running("count", f"{site}/a/b/../b/file.php") == "1000"
    assert running("count", f"{site}/a/link/../b/file.php") == "0", "the link may lead anywhere"


def test_nobody_passes_a_directory_that_he_may_not_search(running, site):
    path = site / "a/b/file.php"
    text = f"{site}/a/b/../b/file.php"
    os.chown(path.parent, *user_ids())
    assert running("until", path) == "yes" and running("stat", text) == "0" and running("count", text) == "1000"
    path.parent.chmod(0o600)
    for each in (text, f"{site}/a/b/..", f"{site}/a/b/.", f"{site}/a/b/./"):
        assert running("stat", each) == str(errno.EACCES), each
    path.parent.chmod(0o700)
    assert running("stat", text) == "0"


def test_nothing_is_asked_of_the_kernel(running, site, tmp_path):
    path = site / "a/b/file.php"
    assert running("until", path) == "yes"
    with Trace([running.process.pid], tmp_path / "trace", files_kit.KERNEL_CALLS) as trace:
        assert running("count", path) == "1000"
    assert not [line for line in trace.lines() if str(path) in line]


def test_an_extension_that_looks_in_the_c_library_first(running, site, base):
    assert running("until", site / "a/b/file.php") == "yes"
    assert running("load", files_kit.compiled(base, "files_extension.c", "-shared", "-fPIC")) == "loaded"
    assert running("count", site / "a/b/file.php") == "1000"


SLOW_US, SLOW_FILES = 5000, 60


@pytest.fixture
def slow(lab, base, request, slow_directory):
    """Files on a mount where each call takes milliseconds, and their daemon."""
    name = request.node.name[-20:].strip("[]")
    source = base / (name + "-source")
    files = [tree.put(source / f"site/a/b/c/d/e/f/{i:03}.php", "<?php\n").name for i in range(SLOW_FILES)]
    site = slow_directory(source, SLOW_US) / "site/a/b/c/d/e/f"
    return [site / name for name in files], lab.daemon(name, ttl_ms=60000).start()


def test_the_daemon_is_waited_for_where_calls_are_slow(program, slow, tmp_path):
    files, daemon = slow
    with Program(program, files[0].parent, daemon.socket) as p:
        with Trace([p.process.pid], tmp_path / "trace", files_kit.KERNEL_CALLS) as trace:
            assert {p("stat", path) for path in files} == {"0"}
            assert p("stat", files[0].parent / "none") == str(errno.ENOENT)
        assert len([line for line in trace.lines() if ".php" in line]) < SLOW_FILES // 2


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_a_daemon_that_is_waited_for_and_goes(program, slow, end, tmp_path):
    files, daemon = slow
    half = SLOW_FILES // 2
    with Program(program, files[0].parent, daemon.socket) as p:
        assert {p("stat", path) for path in files[:half]} == {"0"}
        if end == "killed":
            daemon.kill()
        else:
            daemon.signal(signal.SIGSTOP)
        with Trace([p.process.pid], tmp_path / "trace", "recvmsg") as trace:
            assert {p("stat", path) for path in files[half:]} == {"0"}
        assert len([line for line in trace.lines() if "recvmsg" in line]) < half // 2, "it waited for each of them"


def test_what_the_kernel_knows_is_not_asked_of_the_daemon(program, lab, base, slowfs):
    """Answers about a mount of others expire. No look follows while the kernel answers from its own memory, unless a call happens to take long."""
    keeps = [f"--{what}-timeout=600" for what in ("attr", "entry", "absent")]
    source = base / "kept-source"
    files = [tree.put(source / f"site/a/{i:03}.php", "<?php\n").name for i in range(SLOW_FILES)]
    mount = slowfs(source, SLOW_US, *keeps)
    site = mount.target / "site"
    paths = [site / f"a/{name}" for name in [*files, *(f"{name}.absent" for name in files)]]
    daemon = lab.daemon("kept", ttl_ms=300).start()
    for path in paths:
        path.exists()

    def page(p):
        for path in paths:
            p("stat", path)
        time.sleep(0.4)

    with Program(program, site, daemon.socket) as p:
        for _ in range(3):
            page(p)
        before = mount.counters()
        for _ in range(6):
            page(p)
        after = mount.counters()
    assert sum(after[operation] - before[operation] for operation in ("lookup", "getattr", "open")) < len(paths)


def test_threads(running, site):
    assert running("until", site / "a/b/file.php") == "yes"
    assert running("threads", site / "a/b/file.php") == "0"


# ---- who is answered ----

def who(name, *command):
    return pytest.param(command, id=name)


@pytest.mark.parametrize("around", [who("root"), who("another-user", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
                                    who("saved-uid", "setpriv", "--euid=www-data", "--egid=www-data", "--groups=www-data"),
                                    who("other-groups", "setpriv", "--reuid=www-data", "--regid=www-data", "--groups=www-data,daemon"),
                                    who("a-capability", "setpriv", "--reuid=www-data", "--regid=www-data", "--init-groups",
                                        "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")])
def test_others_look_themselves(around, program, site, daemon):
    private = tree.put(site / "a/private/file", "x\n")
    os.chown(private.parent, *user_ids())
    private.parent.chmod(0o700)
    with Program(program, site, daemon.socket) as p:
        assert p("until", private) == "yes"
    by_kernel = subprocess.run([*around, "test", "-e", private], capture_output=True).returncode
    with Program(program, site, daemon.socket, list(around)) as p:
        assert p("count", private) == "0"
        assert (p("stat", private) == "0") == (by_kernel == 0)


def test_who_is_refused_makes_no_call_beside_its_own(program, site, daemon, tmp_path):
    """So a call costs what the C library's does, and a look at the time."""
    around = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    path = site / "a/b/file.php"
    with Program(program, site, daemon.socket, around) as p:
        assert p("stat", path) == "0"
        with Trace([p.process.pid], tmp_path / "trace", "all") as trace:
            assert p("count", path) == "0" and p("open", path) == "0"
    # Its words come and go a byte at a time; the file is opened, read and closed.
    own = re.compile(r"(read\(0|write\(1|read\([3-9]|close\([3-9])\b")
    calls = [line for line in trace.lines() if "(" in line and str(path) not in line and not own.search(line)]
    assert len(calls) < 5, calls


def test_who_is_refused_stops_asking(program, site, daemon, tmp_path):
    around = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with Program(program, site, daemon.socket, around) as p:
        with Trace([p.process.pid], tmp_path / "trace", "socket,connect") as trace:
            for _ in range(5):
                assert p("count", site / "a/b/file.php") == "0"
    assert len([line for line in trace.lines() if "connect(" in line]) <= 1


def test_other_files_are_the_kernels(running, site, base):
    outside = tree.put(base / (site.name + "-beside") / "file", "x\n")
    assert running("until", site / "a/b/file.php") == "yes"
    assert running("stat", outside) == "0" and running("count", outside) == "0"


def test_another_mount_namespace(program, site, daemon, base):
    """Other mounts than the daemon's: nobody answers, unless the operator vouches. The same ones by another namespace: it does."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root to make mount namespaces")
    (base / "elsewhere").mkdir(exist_ok=True)
    other_mount = f"mount -t tmpfs none {base}/elsewhere &&"
    for mount, more, expected in ((other_mount, {}, "no"), (other_mount, {"FLASHPACHE_ELSEWHERE": "yes"}, "yes"), ("", {}, "yes")):
        around = ["unshare", "--mount", "sh", "-c", f'{mount} exec setpriv --reuid=www-data --regid=www-data --init-groups "$@"', "sh"]
        with Program(program, site, daemon.socket, around, **more) as p:
            assert p("until", site / "a/b/file.php") == expected


def test_a_process_that_leaves_its_namespace(running, site):
    assert running("until", site / "a/b/file.php") == "yes"
    running("namespace")
    assert running("count", site / "a/b/file.php") == "0"


def test_programs_that_it_starts_look_themselves(running, site):
    assert "libflashpache_files" in running("preload")
    running("fork")
    assert "libflashpache_files" not in running("preload")
    assert running("until", site / "a/b/file.php") == "yes"


def test_other_libraries_are_left_in_the_environment(program, site, daemon, base):
    other = files_kit.compiled(base, "files_extension.c", "-shared", "-fPIC")
    both = f"{files_kit.environment('', '')['LD_PRELOAD']}:{other}"
    with Program(program, site, daemon.socket, LD_PRELOAD=both) as p:
        p("fork")
        assert p("preload") == str(other)


# ---- the operator's view ----

def told_of(flashpachectl, socket, pid):
    done = flashpachectl("-s", socket, "php", "--json")
    assert done.returncode == 0, done.stderr
    return next(one for one in json.loads(done.stdout)["processes"] if one["pid"] == pid)


def test_counts_of_a_process(running, site, daemon, flashpachectl):
    assert running("until", site / "a/b/file.php") == "yes"
    before = told_of(flashpachectl, daemon.socket, running.process.pid)
    assert before["loaded"] and before["answered"] > 0
    assert running("count", site / "a/b/file.php") == "1000" and running("stat", f"{site}/a/link/../b") == "0"
    after = told_of(flashpachectl, daemon.socket, running.process.pid)
    assert {name: after[name] - before[name] for name in ("answered", "new", "doubt", "nobody")} == {
        "answered": 1000, "new": 0, "doubt": 1, "nobody": 0}
    running("fork")
    assert running("until", site / "a/b/file.php") == "yes"


def test_a_program_that_cannot_use_the_library(base, site, daemon, flashpachectl):
    program = base / "static"
    made = subprocess.run(["cc", "-static", "-o", program, "-x", "c", "-"], input="#include <unistd.h>\nint main(void) { return pause(); }\n",
                          text=True, capture_output=True)
    if made.returncode:
        pytest.skip("needs a static C library: " + made.stderr[-200:])
    with subprocess.Popen([program], env=files_kit.environment(site, daemon.socket)) as process:
        try:
            assert told_of(flashpachectl, daemon.socket, process.pid) == {"pid": process.pid, "loaded": False}
            checked = flashpachectl("-s", daemon.socket, "check").stdout
            assert f"note  process {process.pid} was started with libflashpache_files.so and does without" in checked
        finally:
            process.kill()


# ---- faults ----

def test_without_a_daemon(program, site, base):
    with Program(program, site, base / "nowhere") as p:
        assert p("stat", site / "a/b/file.php") == "0" and p("stat", site / "none") == str(errno.ENOENT)
        assert p("count", site / "a/b/file.php") == "0"


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_the_daemon_ends_and_comes_back(end, program, site, lab):
    daemon = lab.daemon(f"ends-{end}", ttl_ms=60000).start()
    path = site / "a/b/file.php"
    with Program(program, site, daemon.socket) as p:
        assert p("until", path) == "yes"
        getattr(daemon, end)()
        path.unlink()
        assert p("stat", path) == str(errno.ENOENT)
        path.write_text("again\n")
        assert p("stat", path) == "0" and p("count", path) == "0"
        daemon.start()
        wait_for(lambda: p("until", path) == "yes", "answers of the new daemon")
        path.unlink()
        assert p("stat", path) == str(errno.ENOENT)


def test_a_daemon_that_hangs(program, site, lab):
    daemon = lab.daemon("hangs", ttl_ms=60000).start()
    path = site / "a/b/file.php"
    with Program(program, site, daemon.socket) as p:
        assert p("until", path) == "yes"
        daemon.signal(signal.SIGSTOP)
        try:
            path.unlink()
            assert p("stat", path) == str(errno.ENOENT)
        finally:
            daemon.signal(signal.SIGCONT)
        path.write_text("again\n")
        assert p("stat", path) == "0"


def test_its_descriptors_are_closed(running, site):
    path = site / "a/b/file.php"
    assert running("until", path) == "yes"
    assert running("close") == "0"
    path.unlink()
    assert running("stat", path) == str(errno.ENOENT)
    path.write_text("again\n")
    assert running("stat", path) == "0"
    wait_for(lambda: running("until", path) == "yes", "a connection anew")


def test_a_forked_process_asks_by_itself(running, site):
    path = site / "a/b/file.php"
    assert running("until", path) == "yes"
    running("fork")
    assert running("until", path) == "yes"
    path.unlink()
    assert running("stat", path) == str(errno.ENOENT)


def truth_during(disturb, truth, site, socket, around=()):
    """The changes of files_truth, while something disturbs the daemon or the process again and again."""
    with subprocess.Popen([*around, *files_kit.as_user(), truth, site, "own", str(CHANGES * 2), "5"], env=files_kit.environment(site, socket),
                          stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            disturb()
        assert process.returncode == 0, process.stdout.read()


def test_the_daemon_dies_all_the_time(truth, site, lab):
    daemon = lab.daemon("dies", ttl_ms=60000).start()

    def kill():
        time.sleep(random.uniform(0.05, 0.6))
        daemon.kill()
        time.sleep(random.uniform(0, 0.1))
        daemon.start()
    truth_during(kill, truth, site, daemon.socket)


def test_the_tables_change_all_the_time(truth, site, lab):
    daemon = lab.daemon("changes", ttl_ms=60000).start()

    def reload():
        time.sleep(random.uniform(0.05, 0.5))
        daemon.settings["content_file_max"] = random.randrange(1000, 9000)
        daemon.write_config()
        daemon.signal(signal.SIGHUP)
    truth_during(reload, truth, site, daemon.socket)


@pytest.mark.parametrize("limit", ["--nofile=7", "--nofile=9", "--nofile=12", "--as=80000000"])
def test_truth_with_few_resources(limit, truth, site, daemon):
    limited = ["prlimit", limit]
    truth_during(lambda: time.sleep(0.1), truth, site, daemon.socket, limited)


def test_a_flood_of_hints(program, truth, site, lab):
    """Four processes of Apache's user name 200,000 paths. The daemon's memory stays in its bounds, and others get true answers."""
    daemon = lab.daemon("flood", ttl_ms=60000, memory=5000 * 1024 // 8 * 13).start()
    flooding = [Program(program, site, daemon.socket) for _ in range(4)]
    for p in flooding:
        p.process.stdin.write(f"flood {site}/a\n")
        p.process.stdin.flush()
    truth_during(lambda: time.sleep(0.1), truth, site, daemon.socket)
    for p in flooding:
        assert p.process.stdout.readline() == "0\n"
        p.__exit__()
    found = content_kit.stats(daemon)
    assert found["files"] + found["directories"] <= 5000 and found["negative"] <= 5000
    with Program(program, site, daemon.socket) as p:
        assert p("until", site / "a/b/file.php") == "yes"


def test_without_memory(program, site, daemon):
    with Program(program, site, daemon.socket, ["prlimit", "--as=60000000", *files_kit.as_user()]) as p:
        assert p("stat", site / "a/b/file.php") == "0"
        p("count", site / "a/b/file.php")
        assert p("stat", site / "none") == str(errno.ENOENT)


def test_without_descriptors(running, site):
    path = site / "a/b/file.php"
    assert running("limit", 3) == "0"
    assert running("count", path) == "0"
    assert running("stat", path) == "0" and running("stat", site / "none") == str(errno.ENOENT)
    assert running("limit", 100) == "0"
    wait_for(lambda: running("until", path) == "yes", "a connection")


def test_threads_connect_at_once(program, lab, base, slow_directory):
    """Whoever connects to the daemon looks at files itself. These are no calls of the program's."""
    source = base / "connects-source"
    for number in range(120):
        tree.put(source / f"site/{number}", "<?php\n")
    site = slow_directory(source, 3000) / "site"
    for turn in range(3):
        with lab.daemon(f"connects{turn}", ttl_ms=60000) as daemon, Program(program, site, daemon.socket) as running:
            for number in range(40):    # it learns that to ask is quicker
                assert running("stat", site / str(number)) == "0"
            assert running("each", site) == "0"


def test_libraries_loaded_by_threads(program, base, daemon, site):
    """Their import tables are read-only, but for the moment in which one thread leads an entry."""
    library = files_kit.compiled(base, "files_extension.c", "-shared", "-fPIC", "-Wl,-z,relro,-z,now")
    with Program(program, site, daemon.socket) as running:
        assert running("loads", library) == "0"


def test_paths_below_the_working_directory(program, daemon, site):
    """All absolute paths are the library's."""
    tree.put(site / "etc/hostname", "of the site\n")
    with Program(program, "/", daemon.socket) as running:
        assert running("within", site) == "0"
        for _ in range(20):
            assert running("size", "etc/hostname") == "12"
            assert running("stat", "a/b/file.php") == "0"
            assert running("stat", "a") == "0"
            assert running("stat", "none") == str(errno.ENOENT)


def test_beside_a_copy(program, remote):
    """The end of any descriptor of a file ends a process's record locks on it. And anybody can give a memfd a copy's name."""
    site, socket = remote
    path = tree.put(site / "file", "abc" * 100)
    os.chown(path, *user_ids())
    with Program(program, site, socket) as running:
        assert running("lock", path) == "held"
        assert running("forge", path) == "1"
