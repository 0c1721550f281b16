#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who should wait for the disk when the data of a known file is no longer in memory?

Compares two ways on cold files of one size. Children read the file themselves. Or they first ask one of a few
workers to read it in (over a socket, with the descriptor), as the daemon's would.
Also what the question "is it in memory?" costs for files that are (preadv2 with RWF_NOWAIT).

Needs a directory on a disk; it makes and removes its files there.
"""

import argparse
import os
import shutil
import socket
import statistics
import tempfile
import time


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default="/var/tmp", help="on the disk that is to be measured (%(default)s)")
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--size", type=int, default=16384, help="of each (%(default)s)")
    parser.add_argument("--children", type=int, default=16)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def make_files(base, count, size):
    fds = []
    for number in range(count):
        path = os.path.join(base, str(number))
        with open(path, "wb") as file:
            file.write(os.urandom(size))
            os.fsync(file.fileno())
        fds.append(os.open(path, os.O_RDONLY))
    return fds


def make_cold(fds):
    for fd in fds:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def worker(sock, size):
    while True:
        data, fds, _, _ = socket.recv_fds(sock, 16, 1)
        if not data:
            os._exit(0)
        os.pread(fds[0], size, 0)
        os.close(fds[0])
        sock.send(b"!")


def start_workers(count, size):
    socks = []
    for _ in range(count):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            for sock in socks + [ours]:
                sock.close()
            worker(theirs, size)
        theirs.close()
        socks.append(ours)
    return socks


def work(fds, size, sock, out):
    times = []
    for fd in fds:
        began = time.perf_counter()
        if sock:
            socket.send_fds(sock, [b"?"], [fd])
            sock.recv(16)
        os.pread(fd, size, 0)
        times.append(time.perf_counter() - began)
    os.write(out, f"{statistics.mean(times)}\n".encode())
    os._exit(0)


def run(fds, opt, through_workers):
    """(requests per second, mean seconds of one)"""
    make_cold(fds)
    # A child has one worker to itself at a time, so no more children than workers can wait.
    count = min(opt.children, opt.workers) if through_workers else opt.children
    socks = start_workers(count, opt.size) if through_workers else [None] * count
    read_end, write_end = os.pipe()
    began = time.perf_counter()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            work(fds[number::count], opt.size, socks[number], write_end)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    took = time.perf_counter() - began
    means = [float(line) for line in os.read(read_end, 65536).split()]
    os.close(read_end)
    os.close(write_end)
    for sock in filter(None, socks):
        sock.close()
        os.wait()
    return len(fds) / took, statistics.mean(means)


def cost_of_asking(fds, opt):
    """Microseconds that RWF_NOWAIT adds to a read of data in memory: of every read, and as a look before it."""
    buffer = bytearray(opt.size)
    for fd in fds:
        os.pread(fd, opt.size, 0)

    def each(read):
        began = time.perf_counter()
        for fd in fds:
            read(fd)
        return (time.perf_counter() - began) / len(fds) * 1e6
    plain = min(each(lambda fd: os.preadv(fd, [buffer], 0)) for _ in range(5))
    nowait = min(each(lambda fd: os.preadv(fd, [buffer], 0, os.RWF_NOWAIT)) for _ in range(5))
    return plain, nowait


def main():
    opt = options()
    base = tempfile.mkdtemp(prefix="read-in-", dir=opt.dir)
    try:
        fds = make_files(base, opt.files, opt.size)
        for number in range(opt.rounds):
            for through in (False, True):
                rate, mean = run(fds, opt, through)
                who = f"{min(opt.children, opt.workers)} workers" if through else f"{opt.children} children"
                print(f"round {number + 1}: cold, read by {who}: {rate:.0f} files/s, mean {mean * 1e6:.0f} us", flush=True)
        plain, nowait = cost_of_asking(fds, opt)
        print(f"in memory: read {plain:.2f} us, with RWF_NOWAIT {nowait:.2f} us")
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
