#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many operations a request costs at the file server, with a stock httpd and with Flashpache.

  tests/vm/run python3 tests/vm/operations.py [--files N,...] [--rates N,...] [KIND]...      nfs4, nfs3 and cifs by default

A line for each number of files in use and each rate: the operations during SECONDS of random requests, counted by
the client. Every file has been asked for before. No delegations; settings are the defaults. In emulation the higher rate is
not reached: the line says which one was.
"""

import argparse
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests/integration"))

import mount_namespace  # noqa: E402
import network_mounts  # noqa: E402
from daemon import Flashpached  # noqa: E402
from httpd import Httpd  # noqa: E402
from quick import Quick  # noqa: E402

BUILD = Path(os.environ["FLASHPACHE_BUILD"])
FILES, RATES = "1,100,10000", "1,10,1000"
SECONDS = 10
SIZE = 4096
WARM_UP_S = (3, 1, 0)   # the files have just been made, and are kept by their content after two seconds
A_DIRECTORY = 100       # files in each
SHOWN = 4               # of the kinds of operation
CONNECTIONS = 4
# A mount's own connection and counters, even where another one leads to the same server.
OPTIONS = {"nfs4": "nosharecache", "nfs3": "nosharecache", "cifs": "nosharesock"}
NFS_OPERATION = re.compile(r"^\s+(\w+): (\d+)", re.M)
# Their commands, of one share.
SMB_OPERATION = re.compile(r"^(\w[\w ]*?): (\d+) (?:total|sent)", re.M)


def nfs_operations(at):
    text = Path("/proc/self/mountstats").read_text()
    part = next(each for each in text.split("\ndevice ") if f"mounted on {at} with" in each)
    return Counter({name: int(number) for name, number in NFS_OPERATION.findall(part.split("per-op statistics")[1])})


def smb_operations(at):
    """There is one share of that name."""
    text = Path("/proc/fs/cifs/Stats").read_text()
    return Counter({name: int(number) for name, number in SMB_OPERATION.findall(text)})


class Load:
    def __init__(self, port, files):
        self.connections = [Quick(port) for _ in range(CONNECTIONS)]
        self.files, self.random = files, random.Random(1)
        for pause_s in WARM_UP_S:
            for number in range(files):
                assert self.connections[number % CONNECTIONS].ask(url(number)).status == 200
            time.sleep(pause_s)
        self.last = time.monotonic()

    def run(self, rate):
        """As many requests as came to pass in SECONDS."""
        begin, count = time.monotonic(), 0
        while (now := time.monotonic()) < begin + SECONDS:
            due = begin + count / rate
            if due > now:
                time.sleep(min(due, begin + SECONDS) - now)
            if time.monotonic() >= begin + SECONDS:
                break
            reply = self.connections[count % CONNECTIONS].ask(url(self.random.randrange(self.files)))
            assert reply.status == 200 and len(reply.body) == SIZE
            count += 1
        return count


def url(number):
    return f"/d{number // A_DIRECTORY}/f{number}.html"


def make(behind, files):
    for number in range(files):
        path = behind / url(number).lstrip("/")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * SIZE)
        os.utime(path, (1_500_000_000, 1_500_000_000))


def server(name, base, root):
    config = f"KeepAliveTimeout 7200\nMaxKeepAliveRequests 0\n<Directory {root}>\nAllowOverride None\n</Directory>\n"
    if name == "stock":
        return Httpd(base, name, root, config=config).start(), None
    daemon = Flashpached(base, f"{name}-daemon", BUILD / "backend/flashpached").start()
    module = BUILD / "mod_flashpache/.libs/mod_flashpache.so"
    return Httpd(base, name, root, config=config, socket=daemon.socket, module=module).start(), daemon


def measure(kind, name, files, rates, base):
    operations = smb_operations if kind == "cifs" else nfs_operations
    with network_mounts.mounted(kind, base / "www", OPTIONS[kind]) as mount:
        mount.behind.chmod(0o755)
        make(mount.behind, files)
        httpd, daemon = server(name, base, mount.at)
        try:
            load = Load(httpd.port, files)
            for rate in rates:
                before = operations(mount.at)
                requests = load.run(rate)
                made = operations(mount.at) - before
                total = made.total()
                most = ", ".join(f"{each} {number}" for each, number in made.most_common(SHOWN))
                print(f"{kind:6} {files:6} files, {rate:5}/s ({requests / SECONDS:6.1f}/s): {name:10} {total / requests:7.3f} a request, "
                      f"{total / SECONDS:7.1f}/s: {most}", flush=True)
        finally:
            httpd.stop()
            if daemon:
                daemon.stop()


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    if not network_mounts.INSIDE:
        sys.exit(network_mounts.NEEDS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=numbers, default=FILES)
    parser.add_argument("--rates", type=numbers, default=RATES)
    parser.add_argument("kinds", nargs="*")
    given = parser.parse_args()
    mount_namespace.enter()
    os.umask(0o022)
    for kind in given.kinds or OPTIONS:
        for files in given.files:
            for name in ("stock", "flashpache"):
                with tempfile.TemporaryDirectory(prefix="operations-") as directory:
                    Path(directory).chmod(0o755)
                    measure(kind, name, files, given.rates, Path(directory))


main()
