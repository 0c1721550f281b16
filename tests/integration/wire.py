# SPDX-License-Identifier: Apache-2.0
"""Just enough of the wire (docs/protocol.md) to be a bad peer."""

import array
import contextlib
import os
import pwd
import socket
import struct
import threading

MAGIC = 0x46504348
VERSION = 5
GREETING = (2, 9, 10, 11, 13, 14)       # WELCOME, REFERENCED, EVENTS, ALIVE, ANSWERS, CONTENTS
HELLO, WELCOME, LOOKUP, ANSWER, CONTROL, DONE = 1, 2, 3, 4, 7, 8
PURGE, REPORT = 1, 2
PATH, TREE, ALL = 1, 2, 3
MOUNTS, STATS = 1, 2
KNOWN, LOOKED = 1, 2            # an ANSWER's source
AGAIN = 8                       # of its flags: leasable
MAX_FRAME = 16384


def frame(kind, body=b"", number=0, length=None):
    size = 16 + len(body) if length is None else length
    return struct.pack(">IBBHQ", size, kind, 0, 0, number) + body


def sight():
    """This process's sight, as the body of a WELCOME has it; mounts count in other namespaces only."""
    root = os.open("/", os.O_PATH)
    with open(f"/proc/self/fdinfo/{root}") as info:
        mount = next(int(line.split()[1]) for line in info if line.startswith("mnt_id:"))
    os.close(root)
    st = os.stat("/")
    return struct.pack(">7Q", st.st_dev, st.st_ino, mount,
                       *(os.stat(f"/proc/self/ns/{name}").st_ino for name in ("mnt", "user", "time")), 0)


def welcome(version=VERSION):
    return frame(WELCOME, struct.pack(">IH", MAGIC, version) + sight() + b"\0")


def hello(low=VERSION, high=VERSION, magic=MAGIC, names=()):
    listed = bytes([len(names)]) + b"".join(bytes([len(name)]) + name for name in names)
    return frame(HELLO, struct.pack(">IHH", magic, low, high) + listed)


def lookup(path, number=1, deadline_ms=1000, claimed=None):
    data = os.fsencode(path)
    size = len(data) if claimed is None else claimed
    return frame(LOOKUP, struct.pack(">IBH", deadline_ms, 0, size) + data, number)


def whole_lookup(path, number=1, deadline_ms=20000, fresh=False, no_stale_fd=False, hint=False):
    """A right LOOKUP."""
    data = os.fsencode(path)
    return frame(LOOKUP, struct.pack(">IBH", deadline_ms, int(fresh) + 2 * no_stale_fd + 4 * hint, len(data)) + data, number)


def purge(scope, path="", number=1, claimed=None):
    data = os.fsencode(path)
    size = len(data) if claimed is None else claimed
    return frame(CONTROL, struct.pack(">BBH", PURGE, scope, size) + data, number)


def report(what, cursor=0, number=1):
    return frame(CONTROL, struct.pack(">BBI", REPORT, what, cursor), number)


def parse_done(packet, number=1):
    """(status, count, next, text) of a DONE."""
    size, kind, _, _, got = struct.unpack(">IBBHQ", packet[:16])
    assert (size, kind, got) == (len(packet), DONE, number), packet
    status, count, cursor, length = struct.unpack(">BQIH", packet[16:31])
    assert len(packet) == 31 + length
    return status, count, cursor, packet[31:].decode()


def parse_answer(packet, number=1):
    """(status, source, leasable?) of an ANSWER."""
    size, kind, _, _, got = struct.unpack(">IBBHQ", packet[:16])
    assert (size, kind, got) == (len(packet), ANSWER, number), packet
    status, source, flags, _, _ = struct.unpack(">BBBBB", packet[16:21])
    return status, source, bool(flags & AGAIN)


def ask(conn, packet):
    """One question's answer; closes a descriptor that comes with it."""
    conn.sendall(packet)
    return receive(conn)


def receive(conn):
    data, fds, _, _ = socket.recv_fds(conn, 65536, 4)
    for fd in fds:
        os.close(fd)
    return data


def greet(path, timeout=20):
    """A connection on which questions may be asked."""
    conn = connect(path, timeout)
    ask(conn, hello())
    receive(conn)       # the second area of the lease table,
    receive(conn)       # the set of events,
    receive(conn)       # the end of the daemon's pipe,
    receive(conn)       # the table of answers,
    receive(conn)       # and their contents
    return conn


def connect(path, timeout=20):
    conn = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    conn.settimeout(timeout)
    conn.connect(str(path))
    return conn


def send(conn, packet, fds=()):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    conn.sendmsg([packet], rights)


def sent_all(conn, packets, fds=()):
    """False where the kernel refuses to pass descriptors to the daemon (Linux 6.16): then nothing came."""
    try:
        for packet in packets:
            send(conn, packet, fds)
    except PermissionError:
        assert fds, "a frame without a descriptor was not sent"
        return False
    except (BrokenPipeError, ConnectionError):
        pass                        # already ended at an earlier packet
    return True


def nobody_listens(path):
    """There is no socket, or one without a listener: only root removes root's."""
    try:
        with connect(path):
            return False
    except (FileNotFoundError, ConnectionRefusedError):
        return True


def give(conn, packet, *fds):
    """As send(); closes the descriptors once they are under way."""
    try:
        send(conn, packet, fds)
    finally:
        for fd in fds:
            os.close(fd)


class Listener:
    """In a daemon's place: a socket that everybody may connect to. A subclass's serve(connection) runs for each
    connection, in a thread of its own."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        os.chmod(path, 0o666)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.begin(self.listener.accept()[0])

    def begin(self, conn):
        threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def is_closed_by_peer(conn):
    """Read answers until the daemon ends the connection; False when it never does."""
    try:
        while True:
            data, ancillary, _, _ = conn.recvmsg(65536, 1024)
            for _, _, content in ancillary:
                for fd in array.array("i", content[:len(content) // 4 * 4]):
                    os.close(fd)
            if not data:
                return True
    except ConnectionError:
        return True
    except socket.timeout:
        return False


def refused_as(user, path):
    """True if the daemon ends a connection that this user made, or if the user cannot even connect."""
    entry = pwd.getpwnam(user)
    return refused_with(entry.pw_uid, entry.pw_gid, [], path)


def refused_with(uid, gid, groups, path):
    """The same for any identity, in a child of its own."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
            with connect(path) as conn:
                conn.sendall(hello())
                code = 1 if receive(conn) else 0
        except OSError as problem:
            code = 0 if isinstance(problem, (PermissionError, ConnectionError)) else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
