#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A network file system whose server stops for a while: the share of requests that stock Apache and Flashpache answer,
second by second. A 503 is no answer here.

  tests/lab/outage.py network --seconds 120 --page outage.html
  tests/lab/outage.py own --docroot /mnt/site --stop COMMAND --go COMMAND --page outage.html

Client and server are on this machine (tests/lab/rig list). The server's processes get SIGSTOP, and later SIGCONT, as a
machine that is away and comes back. With `own` the documents are those of a mount of yours, which are only read, and two
shell commands of yours make its server go away and come back. A request counts as answered within --patience.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import lab_kit
from lab import Impossible, charts, servers, site
from lab.load import Content, Load
from lab.page import page
from lab.rigs import RIGS
from lab.rigs.network import Remote
from lab.rigs.rig import Rig
from lab.summary import STYLE

PAIR = {"stock": "stock-event-All", "flash": "flash-event-All"}
STALE_MS = 3_600_000        # longer than any outage that is measured
HOT = 40                    # files: an outage shows those in use


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rig", choices=[*(name for name, rig in RIGS.items() if issubclass(rig, Remote)), Own.name])
    for option, what in (("--docroot", "the documents"), ("--stop", "begins the outage"), ("--go", "ends it")):
        parser.add_argument(option, help=f"of `own`: {what}")
    parser.add_argument("--seconds", type=int, default=120, help="of the outage (%(default)s)")
    parser.add_argument("--around", type=int, default=20, help="seconds before it and after (%(default)s)")
    parser.add_argument("--rate", type=float, default=50, help="requests a second (%(default)s)")
    parser.add_argument("--patience", type=float, default=2, help="seconds for one request (%(default)s)")
    parser.add_argument("--ttl-ms", type=int, default=3000, help="(%(default)s)")
    parser.add_argument("--content-file-max", type=int, default=16384, help="bytes of the files that are kept in memory (%(default)s)")
    parser.add_argument("--unavailable", choices=("httpd", "503"), default="503", help="FlashpacheUnavailable (%(default)s)")
    parser.add_argument("--page", type=Path, help="writes the curve there, as a page")
    wanted = parser.parse_args()
    if wanted.rig == Own.name and not (wanted.docroot and wanted.stop and wanted.go):
        parser.error("own needs --docroot, --stop and --go")
    return wanted


class Files:
    """Some of the files of a tree, all alike."""

    def __init__(self, docroot):
        requests = site.from_tree(docroot).requests
        self.requests = requests[::max(1, len(requests) // HOT)][:HOT]

    def all_urls(self):
        return [each.line() for each in self.requests]


class Own(Rig):
    """A mount that is there already, and stays."""

    name = "own"

    def __init__(self, directory, docroot, connections):
        super().__init__(directory, Files(docroot), connections, docroot)
        self.target = next(path for path in (docroot, *docroot.parents) if os.path.ismount(path))
        self.about = f"{docroot}, on the mount {self.target}"

    def build(self):
        """The files are there."""


class Signals:
    """An outage of the processes of a rig's server."""

    failed = None

    def __init__(self, pids):
        self.pids = pids

    def send(self, number):
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def begin(self):
        self.send(signal.SIGSTOP)

    def end(self):
        self.send(signal.SIGCONT)


class Commands:
    """An outage by an operator's commands; failed: the one that did."""

    failed = None

    def __init__(self, stop, go):
        self.stop, self.go, self.away = stop, go, False

    def run(self, command):
        if subprocess.run(command, shell=True).returncode:
            self.failed = command

    def begin(self):
        self.away = True
        self.run(self.stop)

    def end(self):
        if self.away:
            self.away = False
            self.run(self.go)


def read_series(path, last):
    """[(second, share of its requests that got their file)]"""
    with open(path, encoding="ascii") as lines:
        names = next(lines).rstrip("\n").split("\t")
        rows = [dict(zip(names, line.rstrip("\n").split("\t"))) for line in lines]
    return [(float(row["start_s"]), 1 - int(row["errors"]) / int(row["requests"])) for row in rows
            if int(row["requests"]) and float(row["start_s"]) < last]


def measure(rig, key, directory, wanted, outage):
    """The curve of one server."""
    directory.mkdir()
    server = servers.make(key, rig.place(directory))
    if hasattr(server, "daemon"):
        server.httpd.config += f"FlashpacheUnavailable {wanted.unavailable}\n"
        server.daemon.write_config(f'content_file_max = {wanted.content_file_max}\n'
                                   f'mount "{rig.target}" {{\n ttl_ms = {wanted.ttl_ms}\n stale_if_error_ms = {STALE_MS}\n}}\n')
    whole = wanted.seconds + 2 * wanted.around
    timers = [threading.Timer(wanted.around, outage.begin), threading.Timer(wanted.around + wanted.seconds, outage.end)]
    try:
        server.start()
        load = Load(directory, server.host, server.port, connections=rig.connections)
        load.ask_for(rig.content.all_urls())
        load.run("fill", "-u", load.urls, "--once", "-d", 120)
        series = directory / "series.tsv"
        started = load.start("outage", *load.of_list(whole, wanted.rate), "-t", wanted.patience, "--series", series,
                             per_connection=1)
        for timer in timers:
            timer.start()
        load.finish(started)
        return read_series(series, whole)
    finally:
        for timer in timers:
            timer.cancel()
        outage.end()
        server.stop()


def mean(points, since, until):
    shares = [share for second, share in points if since <= second < until]
    return sum(shares) / len(shares) if shares else float("nan")


def tell(curves, wanted):
    """The shares before, during and after; the first second counts for none, as it has parts of two."""
    begin, end = wanted.around, wanted.around + wanted.seconds
    print(f"{'answered':12}{'before':>10}{'during':>10}{'after':>10}")
    for key, points in curves.items():
        shares = (mean(points, 0, begin), mean(points, begin + 1, end), mean(points, end + 1, end + wanted.around))
        print(f"{charts.NAMES[key]:12}" + "".join(f"{share:10.1%}" for share in shares))


def rig_for(wanted, directory):
    connections = int(wanted.rate * wanted.patience * 2) + 16
    if wanted.rig == Own.name:
        return Own(directory, Path(wanted.docroot).resolve(), connections)
    return RIGS[wanted.rig](directory, Content(1, hot=HOT), connections)


def run(wanted, work):
    with rig_for(wanted, work / "rig") as rig:
        for premise in rig.check():
            if not premise.holds:
                raise Impossible(f"{premise.what}: {premise.detail}")
        outage = Commands(wanted.stop, wanted.go) if wanted.rig == Own.name else Signals(rig.server_pids())
        curves = {name: measure(rig, key, work / name, wanted, outage) for name, key in PAIR.items()}
        about = rig.about
    if outage.failed:
        raise Impossible(f"no outage, as this command failed: {outage.failed}")
    tell(curves, wanted)
    if wanted.page:
        title = f"Requests that are answered within {wanted.patience:g} s while the server is away for {wanted.seconds} s"
        away = (wanted.around, wanted.around + wanted.seconds)
        body = (f"<h1>{title}</h1><figure>"
                f"{charts.over_time(f'{wanted.rig}: share of requests answered', curves, away)}</figure>"
                f'<p class="note">{about}; {wanted.rate:g} requests a second for {HOT} files; ttl_ms = {wanted.ttl_ms}, '
                f"stale_if_error_ms = {STALE_MS}, content_file_max = {wanted.content_file_max}, "
                f"FlashpacheUnavailable {wanted.unavailable}. Grey: the server is away.</p>")
        wanted.page.write_text(page("An outage", body, STYLE))
        print(wanted.page)


def main():
    wanted = parse_arguments()
    if wanted.page:
        wanted.page = wanted.page.resolve()
    lab_kit.prepare()
    with tempfile.TemporaryDirectory(prefix="flashpache-outage-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        try:
            run(wanted, Path(name))
        except Impossible as problem:
            sys.exit(f"outage.py: {problem}")
        finally:
            shutil.rmtree(Path(name) / "stock", ignore_errors=True)


if __name__ == "__main__":
    main()
