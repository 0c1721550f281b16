#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many requests/s Flashpache answers for each one of a stock httpd, with a file server that is some milliseconds away.

  tests/vm/run python3 tests/vm/capacity.py [--delays MS,...] [--mpms MPM,...] [--overrides None,All] [--rounds N]
                                            [KIND]...      nfs4 and nfs3 by default

A line for each delay, MPM, AllowOverride and load: medians of rounds in which the servers run in turn, each on a mount of
its own, and the range of the ratio. The delay is that of each request to the file server, by netem. Every file has been
asked for before. No delegations; settings are the defaults. Only the ratio says something about other machines.
"""

import argparse
import contextlib
import statistics
import tempfile
from pathlib import Path

import kit
import lab_kit
import network_mounts

FILES = 40
SECONDS, ROUNDS = 3, 3
# Bytes of a file, connections.
LOADS = ((1024, 1), (1024, 16), (20480, 16))


def load(server, base, connections, urls):
    """Requests/s."""
    return lab_kit.bench(server.port, base, "-c", connections, "-d", SECONDS, "--random", 1, "--urls", urls)["requests_per_s"]


def measure(kind, base, mpm, override, rounds, told):
    with contextlib.ExitStack() as stack:
        servers = {}
        (base / "out").mkdir()
        for name in kit.SERVERS:
            mount = stack.enter_context(network_mounts.mounted(kind, base / f"www-{name}", "nosharecache"))
            for size in {size for size, _ in LOADS}:
                (mount.behind / str(size)).mkdir()
                kit.make(mount.behind / str(size), FILES, size)
            mount.behind.chmod(0o755)
            servers[name] = stack.enter_context(kit.server(name, base, mount.at, mpm, override))
        for size, connections in LOADS:
            urls = base / "out/urls"
            urls.write_text("".join(f"/{size}{kit.url(number)}\n" for number in range(FILES)))
            for server in servers.values():     # until new files are kept by their content, too
                load(server, base, connections, urls)
            made = {name: [] for name in servers}
            for _ in range(rounds):
                for name, server in servers.items():
                    made[name].append(load(server, base, connections, urls))
            stock, flash = (statistics.median(made[name]) for name in kit.SERVERS)
            ratios = [two / one for one, two in zip(*made.values())]
            print(f"{told} {mpm:8} {override:4} {size:6} bytes, {connections:3} connections: stock {stock:7.1f}/s, flashpache {flash:7.1f}/s, "
                  f"{flash / stock:6.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def words(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delays", type=words, default="1,10")
    parser.add_argument("--mpms", type=words, default="event,prefork")
    parser.add_argument("--overrides", type=words, default="None,All")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("kinds", nargs="*")
    given = parser.parse_args()
    kit.begin()
    for kind in given.kinds or ("nfs4", "nfs3"):
        for delay in given.delays:
            for mpm in given.mpms:
                for override in given.overrides:
                    with tempfile.TemporaryDirectory(prefix="capacity-") as directory, kit.delayed(delay):
                        Path(directory).chmod(0o755)
                        measure(kind, Path(directory), mpm, override, given.rounds, f"{kind:5} {delay:>3} ms")


main()
