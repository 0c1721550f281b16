# SPDX-License-Identifier: Apache-2.0
"""The attempts of a process of Apache's user: to take the daemon's place, or the daemon itself."""

import ctypes
import os
import signal
import socket

import wire
from httpd import user_ids
from test_hostile_daemon import FD, LOCAL, FakeDaemon, answer
from waiting import wait_for

LIE = b"nobody wrote this\n"
LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PTRACE_DETACH, PIDFD_GETFD = 0x4206, 17, 438


def as_user(do, *args):
    """do(*args) in a process of Apache's user: its result, a number from 0 to 255."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            become_user()
            code = do(*args)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def become_user():
    uid, gid = user_ids()
    os.setgroups([gid])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    LIBC.prctl(4, 1, 0, 0, 0)           # PR_SET_DUMPABLE: as for a CGI, after its exec


def count_successes(attempts):
    """The number of these calls that succeed."""
    done = 0
    for attempt in attempts:
        try:
            attempt()
            done += 1
        except OSError:
            pass
    return done


def take_place(path):
    """Tries to remove, rename or replace a socket, and to change its permissions."""
    away = f"{path}.away"
    return count_successes([lambda: os.unlink(path), lambda: os.rename(path, away), lambda: os.link(path, away),
                            lambda: os.chmod(path, 0o777), lambda: os.rename(os.path.dirname(path), away),
                            lambda: os.symlink("/etc/passwd", away), lambda: os.mknod(away),
                            lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind(away)])


def checked(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def trace(pid):
    checked(LIBC.ptrace(PTRACE_SEIZE, pid, None, None))
    LIBC.ptrace(PTRACE_DETACH, pid, None, None)


def take_descriptor(pid, fd=0):
    handle = os.pidfd_open(pid)
    try:
        return checked(LIBC.syscall(PIDFD_GETFD, handle, fd, 0))
    finally:
        os.close(handle)


def read_file(path):
    with open(path, "rb") as file:
        file.read(1)


def take_process(pid):
    """Tries to trace a process, and to read or take its resources."""
    proc = f"/proc/{pid}"
    return count_successes([lambda: trace(pid), lambda: take_descriptor(pid), lambda: os.listdir(f"{proc}/fd"),
                            lambda: os.readlink(f"{proc}/cwd"), lambda: os.readlink(f"{proc}/exe"),
                            lambda: os.stat(f"{proc}/root/"), lambda: read_file(f"{proc}/environ"),
                            lambda: read_file(f"{proc}/maps"), lambda: os.close(os.open(f"{proc}/mem", os.O_RDWR))])


def tell_lies(conn, path, number):
    lie = os.memfd_create("lie")
    os.write(lie, LIE)
    wire.give(conn, answer(path, number, FD | LOCAL), lie)
    return False


class Impostor:
    """A daemon of Apache's user at that path, in a process of its own; it replaces whatever is there."""

    def __init__(self, path):
        ready, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                become_user()
                if os.path.lexists(path):
                    os.unlink(path)
                fake = FakeDaemon(path)
                fake.reply = tell_lies
                os.write(tell, b"r")
                signal.pause()
            finally:
                os._exit(1)
        os.close(tell)
        assert os.read(ready, 1) == b"r", "the impostor could not begin"
        os.close(ready)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def open_to_user(directory):
    """As a careless administrator would; the returned function closes it again."""
    st = directory.stat()
    os.chown(directory, *user_ids())

    def close():
        os.chown(directory, st.st_uid, st.st_gid)
    return close


def until_note(server, path, good):
    """Asks until the log's note is one of these."""
    from fetch import get

    def asked():
        mark = server.mark()
        get(server.port, path)
        entry = server.wait_entries(1, mark)[-1]
        return entry if entry.note in good or entry.reason in good else None
    return wait_for(asked, f"one of {good} for {path}")
