#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many operations a request costs at the file server, with a stock httpd and with Flashpache.

  tests/vm/run python3 tests/vm/operations.py [--files N,...] [--rates N,...] [--options OPTIONS]... [KIND]...

KIND is nfs4, nfs3 or cifs, by default each. OPTIONS are further ones of mount, such as noac; each is a measurement of its own.

A line for each number of files in use and each rate: the operations during random requests, counted by the client. Every
file has been asked for before, and as many random requests come first. No delegations; settings are the defaults. In emulation the higher rate is not reached:
the line says which one was.
"""

import argparse
import itertools
import random
import re
import tempfile
import time
from collections import Counter
from pathlib import Path

import kit
import network_mounts
from quick import Quick

FILES, RATES = "1,100,10000", "1,10,1000"
SECONDS = 10            # of each line, or what LEAST requests take
LEAST = 40
SIZE = 4096
WARM_UP_S = (3, 1, 0)   # the files have just been made, and are kept by their content after two seconds
SHOWN = 4               # of the kinds of operation
CONNECTIONS = 4
# A mount's own connection and counters, even where another one leads to the same server.
OPTIONS = {"nfs4": "nosharecache", "nfs3": "nosharecache", "cifs": "nosharesock"}
# Their commands, of one share.
SMB_OPERATION = re.compile(r"^(\w[\w ]*?): (\d+) (?:total|sent)", re.M)


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
                assert self.connections[number % CONNECTIONS].ask(kit.url(number)).status == 200
            time.sleep(pause_s)

    def run(self, rate):
        """How many requests came to pass, in how many seconds."""
        begin, count = time.monotonic(), 0
        end = begin + max(SECONDS, LEAST / rate)
        while (now := time.monotonic()) < end:
            due = begin + count / rate
            if due > now:
                time.sleep(min(due, end) - now)
            if time.monotonic() >= end:
                break
            reply = self.connections[count % CONNECTIONS].ask(kit.url(self.random.randrange(self.files)))
            assert reply.status == 200 and len(reply.body) == SIZE
            count += 1
        return count, time.monotonic() - begin


def measure(kind, name, files, rates, options, base):
    operations = smb_operations if kind == "cifs" else kit.nfs_operations
    with network_mounts.mounted(kind, base / "www", ",".join(filter(None, (OPTIONS[kind], options)))) as mount:
        kit.make(mount.behind, files, SIZE)
        with kit.server(name, base, mount.at) as server:
            load = Load(server.port, files)
            for rate in rates:
                load.run(rate)
                before = operations(mount.at)
                requests, seconds = load.run(rate)
                made = operations(mount.at) - before
                total = made.total()
                most = ", ".join(f"{each} {number}" for each, number in made.most_common(SHOWN))
                print(f"{kind:6} {options:18} {files:6} files, {rate:5}/s ({requests / seconds:6.1f}/s): {name:10} {total / requests:7.3f} a request, "
                      f"{total / seconds:7.1f}/s: {most}", flush=True)


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=numbers, default=FILES)
    parser.add_argument("--rates", type=numbers, default=RATES)
    parser.add_argument("--options", action="append")
    parser.add_argument("kinds", nargs="*")
    given = parser.parse_args()
    kit.begin()
    for kind, options, files, name in itertools.product(given.kinds or OPTIONS, given.options or [""], given.files, kit.SERVERS):
        with tempfile.TemporaryDirectory(prefix="operations-") as directory:
            Path(directory).chmod(0o755)
            measure(kind, name, files, given.rates, options, Path(directory))


main()
