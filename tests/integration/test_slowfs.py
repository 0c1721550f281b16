# SPDX-License-Identifier: Apache-2.0
"""slowfs, on which other tests rely: delays that overlap, hanging and coming back, permissions, replaced and unlinked
files, the end. Times have lower bounds, and only loose upper ones."""

import concurrent.futures
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time

import pytest

import slowfs as slowfs_module
from conftest import built
from waiting import wait_for

MS = 0.001
TIMES = 10


class Mount:
    """One run of slowfs in the foreground, with a control and a statistics file."""

    def __init__(self, directory, *options):
        self.source, self.path = directory / "source", directory / "mount"
        self.control, self.stats = directory / "control", directory / "stats"
        self.source.mkdir(parents=True)
        self.path.mkdir()
        command = [built("tests/lab/slowfs/slowfs"), "--foreground", "--stats", self.stats,
                   "--control", self.control, *options, self.source, self.path]
        self.process = subprocess.Popen([str(part) for part in command])
        wait_for(self.mounted, "slowfs to mount")

    def mounted(self):
        assert self.process.poll() is None, "slowfs has ended"
        return os.path.ismount(self.path)

    def counters(self):
        """The counters now, and the mode, as a dictionary."""
        return slowfs_module.counters(self.process, self.stats)

    def behave(self, words):
        self.control.write_text(words + "\n")
        self.process.send_signal(signal.SIGHUP)
        return self.counters()["mode"]

    def end(self):
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture
def mount(base, request):
    slowfs_module.needed()
    directory = base / f"slowfs-{request.node.name}"
    mounts = []

    def start(*options):
        mounts.append(Mount(directory / str(len(mounts)), *options))
        return mounts[-1]
    yield start
    for one in mounts:
        one.end()
        assert not os.path.ismount(one.path)
        shutil.rmtree(one.source)


def seconds(function, *arguments):
    start = time.monotonic()
    function(*arguments)
    return time.monotonic() - start


def at_best(function, *arguments):
    """The least of several times: on a busy machine one of them may exceed any delay."""
    return min(seconds(function, *arguments) for _ in range(TIMES))


def read(path):
    with open(path, "rb", buffering=0) as file:
        return os.pread(file.fileno(), 1 << 20, 0)


def as_www_data(*command):
    user = pwd.getpwnam("www-data")
    return subprocess.run([str(part) for part in command], user=user.pw_uid, group=user.pw_gid,
                          extra_groups=[], capture_output=True, text=True)


def test_each_kind_of_call_has_its_delay(mount):
    m = mount()
    (m.source / "file").write_text("hello")
    assert at_best(os.stat, m.path / "file") < 100 * MS
    for kind in ("lookup-us", "getattr-us", "open-us"):
        m.behave(f"{kind}=100000")
        assert seconds(read, m.path / "file") >= 100 * MS
    m.behave("open-us=100000")
    assert at_best(os.stat, m.path / "file") < 100 * MS


def test_delays_overlap(mount):
    m = mount()
    names = [f"file{i}" for i in range(50)]
    for name in names:
        (m.source / name).write_text(name)
    m.behave("delay-us=100000")
    one = seconds(os.stat, m.path / names[0])
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        start = time.monotonic()
        list(pool.map(lambda name: os.stat(m.path / name), names))
        all_of_them = time.monotonic() - start
    assert all_of_them < len(names) / 2 * one


def test_every_call_is_counted(mount):
    m = mount()
    (m.source / "file").write_text("hello")
    before = m.counters()
    for _ in range(10):
        assert read(m.path / "file") == b"hello"
    after = m.counters()
    assert after["open"] - before["open"] == 10
    assert after["lookup"] - before["lookup"] >= 10


def test_kernel_caching_only_when_asked_for(mount):
    m = mount("--attr-timeout", "60", "--entry-timeout", "60")
    (m.source / "file").write_text("hello")
    os.stat(m.path / "file")
    before = m.counters()
    for _ in range(10):
        os.stat(m.path / "file")
        assert not (m.path / "absent").exists()
    after = m.counters()
    assert after["getattr"] == before["getattr"]
    assert after["lookup"] - before["lookup"] == 10, "absent names must not be cached"


def test_absent_names_are_kept_when_asked_for(mount):
    m = mount("--absent-timeout", "60")
    before = m.counters()
    for _ in range(10):
        assert not (m.path / "absent").exists()
    assert m.counters()["lookup"] - before["lookup"] == 1
    (m.path / "absent").write_text("made through the mount")
    assert (m.path / "absent").exists()


def test_reads_of_an_open_file_are_not_delayed(mount):
    m = mount()
    (m.source / "file").write_text("hello")
    with open(m.path / "file", "rb", buffering=0) as file:
        m.behave("delay-us=300000")
        assert at_best(os.pread, file.fileno(), 100, 0) < 300 * MS
        assert seconds(os.fstat, file.fileno()) >= 300 * MS
        m.behave("hang")
        (m.source / "file").write_text("HELLO")
        assert os.pread(file.fileno(), 100, 0) == b"HELLO"
        m.behave("normal")


def test_hangs_and_comes_back(mount):
    m = mount()
    (m.source / "file").write_text("hello")
    assert m.behave("hang") == "hang"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(read, m.path / "file")
        wait_for(lambda: m.counters()["waiting"] >= 1, "the call to hang")
        with pytest.raises(concurrent.futures.TimeoutError):
            answer.result(300 * MS)
        m.behave("normal")
        assert answer.result(10) == b"hello"


def test_caller_of_a_hung_call_can_be_killed(mount):
    m = mount()
    (m.source / "file").write_text("hello")
    m.behave("hang")
    process = subprocess.Popen(["cat", str(m.path / "file")])
    wait_for(lambda: m.counters()["waiting"] >= 1, "the call to hang")
    process.kill()
    assert process.wait(5) == -signal.SIGKILL
    assert m.counters()["waiting"] == 0


def test_fails_as_told(mount):
    m = mount()
    (m.source / "file").write_text("hello")
    m.behave("error=EIO")
    with pytest.raises(OSError, match="Input/output error"):
        os.stat(m.path / "file")
    m.behave("normal")
    assert read(m.path / "file") == b"hello"


def test_bad_control_file_changes_nothing(mount):
    m = mount()
    m.behave("error=EIO")
    assert m.behave("sideways") == "error"


def test_permissions_are_checked(mount):
    m = mount()
    m.source.chmod(0o755)
    (m.source / "public").write_text("public")
    (m.source / "secret").write_text("secret")
    (m.source / "secret").chmod(0o600)
    (m.source / "closed").mkdir(mode=0o700)
    (m.source / "closed" / "file").write_text("closed")
    assert as_www_data("cat", m.path / "public").stdout == "public"
    for name in ("secret", "closed/file"):
        denied = as_www_data("cat", m.path / name)
        assert denied.returncode != 0 and "Permission denied" in denied.stderr
    assert as_www_data("touch", m.path / "new").returncode != 0


def test_new_files_belong_to_their_maker(mount):
    m = mount()
    m.source.chmod(0o777)
    user = pwd.getpwnam("www-data")
    script = f"cd {m.path} && umask 027 && echo x >f && mkdir d && ln -s f l && mkfifo p"
    assert as_www_data("sh", "-c", script).returncode == 0
    for name, mode in (("f", 0o640), ("d", 0o750), ("l", None), ("p", 0o640)):
        found = os.lstat(m.source / name)
        assert (found.st_uid, found.st_gid) == (user.pw_uid, user.pw_gid), name
        assert mode is None or found.st_mode & 0o7777 == mode, name


def test_writing_calls(mount):
    m = mount()
    file = m.path / "file"
    file.write_text("hello world")
    os.truncate(file, 5)
    assert (m.source / "file").read_text() == "hello"
    with open(file, "a", encoding="ascii") as appended:
        appended.write("!")
        appended.flush()
        os.fsync(appended.fileno())
    file.chmod(0o4711)
    os.chown(file, 33, 44)
    os.utime(file, ns=(10**18, 2 * 10**18))
    found = (m.source / "file").stat()
    assert (found.st_uid, found.st_gid, found.st_mtime_ns) == (33, 44, 2 * 10**18)
    os.link(file, m.path / "hard")
    os.symlink("file", m.path / "soft")
    assert os.stat(m.source / "hard").st_nlink == 2
    assert os.readlink(m.path / "soft") == "file" and read(m.path / "soft") == b"hello!"
    (m.path / "d1" / "d2").mkdir(parents=True)
    os.rename(file, m.path / "d1" / "d2" / "moved")
    os.rename(m.path / "d1", m.path / "d3")
    assert read(m.path / "d3/d2/moved") == b"hello!"
    assert sorted(os.listdir(m.path)) == ["d3", "hard", "soft"]
    for i in range(2000):
        (m.source / "d3" / f"{i:04d}").touch()
    assert len(os.listdir(m.path / "d3")) == 2001
    assert os.statvfs(m.path).f_blocks > 0
    shutil.rmtree(m.path / "d3")
    assert sorted(os.listdir(m.source)) == ["hard", "soft"]


@pytest.mark.parametrize("where", ["source", "path"])
def test_replaced_file(mount, where):
    """By whichever way the file is replaced, the name shows the new one, the descriptor the old."""
    m = mount()
    (m.source / "file").write_text("old")
    with open(m.path / "file", "rb", buffering=0) as held:
        directory = getattr(m, where)
        (directory / "new").write_text("newer")
        os.rename(directory / "new", directory / "file")
        assert read(m.path / "file") == b"newer"
        assert os.pread(held.fileno(), 10, 0) == b"old"
        assert os.fstat(held.fileno()).st_size == 3
        (directory / "file").unlink()
        assert os.fstat(held.fileno()).st_size == 3
    assert not (m.path / "file").exists()


def test_renamed_directory_behind_its_back(mount):
    m = mount()
    for name in ("one", "two"):
        (m.source / name).mkdir()
        (m.source / name / "file").write_text(name)
    os.symlink("one", m.source / "current")
    assert read(m.path / "current/file") == b"one" and read(m.path / "two/file") == b"two"
    os.rename(m.source / "one", m.source / "three")
    os.rename(m.source / "two", m.source / "one")
    assert read(m.path / "one/file") == b"two"
    assert read(m.path / "three/file") == b"one"
    assert read(m.path / "current/file") == b"two"


def test_mapped_file(mount):
    import mmap
    m = mount()
    (m.source / "file").write_bytes(os.urandom(100_000))
    with open(m.path / "file", "rb") as file:
        with contextlib.closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as mapped:
            assert mapped[:] == (m.source / "file").read_bytes()


def test_ends_while_callers_hang(mount):
    m = mount()
    (m.source / "file").write_text("hello")
    m.behave("hang")
    process = subprocess.Popen(["cat", str(m.path / "file")], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: m.counters()["waiting"] >= 1, "the call to hang")
    m.end()
    assert process.wait(10) != 0
    process.stderr.close()
    assert m.process.returncode == 0


def test_ends_when_unmounted_by_others(mount):
    m = mount()
    subprocess.run(["umount", str(m.path)], check=True)
    assert m.process.wait(10) == 0


def test_background_and_errors(mount, base):
    program = built("tests/lab/slowfs/slowfs")
    m = mount()
    for arguments, message in (([], "SOURCE and MOUNTPOINT"),
                               ([m.source, base / "absent"], "make the directory first"),
                               ([m.control, m.path], "does not exist"),
                               (["--delay-us", "x", m.source, m.path], "microseconds"),
                               (["--attr-timeout", "-1", m.source, m.path], "seconds"),
                               (["--bogus"], "--help")):
        done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 1 and message in done.stderr, done.stderr
    assert "Usage" in subprocess.run([str(program), "--help"], capture_output=True, text=True,
                                     check=True).stdout
    other = base / "slowfs-background"
    other.mkdir()
    subprocess.run([str(program), str(m.source), str(other)], check=True)
    assert os.path.ismount(other), "in the background only when mounted"
    subprocess.run(["umount", str(other)], check=True)
