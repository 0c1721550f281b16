# SPDX-License-Identifier: Apache-2.0
"""Run by test_program_files with the library, as the user of httpd. Does a descriptor that has a copy of a file behave in
every way as one of open()? Arguments: a file that rested, with 300 bytes of b"abc".

Ends with 0, or with what is wrong."""

import errno
import fcntl
import mmap
import os
import signal
import subprocess
import sys
import threading
import time

path = sys.argv[1]
TEXT = b"abc" * 100
FORKS, HANGS_S = 300, 60


def is_copy(fd):
    return os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:flashpache:")


def copy(flags=0):
    for _ in range(300):
        fd = os.open(path, os.O_RDONLY | flags)
        if is_copy(fd):
            return fd
        os.close(fd)
        time.sleep(0.05)
    sys.exit("no copy was opened")


def raw_stat():
    """Of the file, by a process without the library."""
    keys = ("st_dev", "st_ino", "st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks", "st_blksize")
    done = subprocess.run(["stat", "-c", "%d %i %f %h %u %g %s %b %o", path], capture_output=True, text=True, check=True,
                          env={**os.environ, "LD_PRELOAD": ""})
    return dict(zip(keys, (int(word, 16 if n == 2 else 10) for n, word in enumerate(done.stdout.split()))))


def write_elsewhere(text, mode="ab"):
    """By a process without the library."""
    subprocess.run([sys.executable, "-c", f"open({path!r}, {mode!r}).write({text!r})"], check=True, env={**os.environ, "LD_PRELOAD": ""})


one, two = copy(), copy()
assert os.read(one, 4) == b"abca" and os.read(two, 2) == b"ab", "the offset is not its own"
assert os.lseek(one, 0, os.SEEK_END) == len(TEXT) and os.lseek(one, -3, os.SEEK_END) == len(TEXT) - 3
assert os.read(one, 100) == b"abc" and os.read(one, 100) == b""
assert os.pread(one, 5, 1) == b"bcabc"
found, truth = os.fstat(one), raw_stat()
assert {key: getattr(found, key) for key in truth} == truth, (found, truth)
assert fcntl.fcntl(one, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
for forbidden in (lambda: os.write(one, b"x"), lambda: os.ftruncate(one, 0)):
    try:
        forbidden()
        sys.exit("it may be written")
    except OSError:
        pass
with mmap.mmap(one, 0, prot=mmap.PROT_READ) as mapped:
    assert mapped[:] == TEXT
again = os.dup(two)
assert os.read(again, 1) == b"c" and os.fstat(again).st_ino == truth["st_ino"], "a second descriptor of it"
if os.fork() == 0:
    os._exit(0 if os.fstat(two).st_ino == truth["st_ino"] and os.read(two, 3) == b"abc" else 1)
assert os.wait()[1] == 0 and os.read(two, 3) == b"abc", "a forked process shares the offset"
assert not os.get_inheritable(copy(os.O_CLOEXEC))

# A lock is one of the file.
fcntl.flock(two, fcntl.LOCK_SH | fcntl.LOCK_NB)
assert not is_copy(two) and os.read(two, 3) == b"abc", "it goes on where it was"
probe = f"import fcntl, os; fcntl.flock(os.open({path!r}, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"
assert subprocess.run([sys.executable, "-c", probe], env={**os.environ, "LD_PRELOAD": ""}, stderr=subprocess.DEVNULL).returncode, "no lock"
os.close(two)
three = copy()
fcntl.lockf(three, fcntl.LOCK_SH | fcntl.LOCK_NB)
assert not is_copy(three)

# Where the file is not to be had any more, there is no lock either: that of a copy would keep nobody from the file.
for take in (lambda fd: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB), lambda fd: fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)):
    lost = copy()
    os.rename(path, path + ".away")
    try:
        take(lost)
        sys.exit("a copy was locked")
    except OSError as problem:
        assert problem.errno == errno.ENOLCK
    os.rename(path + ".away", path)
    take(copy())

# Modes that a program sets are the file's, too.
polite = copy()
fcntl.fcntl(polite, fcntl.F_SETFL, os.O_NONBLOCK)
fcntl.flock(polite, fcntl.LOCK_SH | fcntl.LOCK_NB)
assert not is_copy(polite) and fcntl.fcntl(polite, fcntl.F_GETFL) & os.O_NONBLOCK

# A process that is forked while another thread opens a file opens files itself.
def open_all_the_time():
    while forking:
        os.close(os.open(path, os.O_RDONLY))


forking = True
thread = threading.Thread(target=open_all_the_time)
thread.start()
for _ in range(FORKS):
    child = os.fork()
    if child == 0:
        os.close(os.open(path, os.O_RDONLY))
        os._exit(0)
    signal.alarm(HANGS_S)
    assert os.waitpid(child, 0)[1] == 0
    signal.alarm(0)
forking = False
thread.join()

# What others write behind its end is read, by who waits for it; and they see the size.
four, five = copy(), copy()
assert os.read(four, 1000) == TEXT and os.read(four, 1000) == b""
write_elsewhere(b"more")
assert os.fstat(five).st_size == len(TEXT) + 4 and os.lseek(five, 0, os.SEEK_END) == len(TEXT) + 4
assert os.read(four, 1000) == b"more" and os.read(four, 1000) == b""

# A file that is removed stays what it was for who has it open.
six = copy()
os.rename(path, path + ".away")
write_elsewhere(b"other", "wb")
assert os.read(six, 1000) == TEXT + b"more" and os.read(six, 10) == b"" and os.fstat(six).st_ino == truth["st_ino"]
