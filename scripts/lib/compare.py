#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows the effect of Flashpache on this site and file system. Run by scripts/compare."""

import argparse
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The installed form has all files in one directory.
sys.path.insert(0, str(HERE if (HERE / "lab").is_dir() else HERE.parents[1] / "tests" / "lab"))

from lab import Impossible, machine, servers, site, verdict  # noqa: E402
from lab.findings import Findings  # noqa: E402
from lab.load import Content, Load  # noqa: E402
from lab.plan import Experiment, equal_load, step  # noqa: E402
from lab.runner import Runner  # noqa: E402
from lab.store import Store  # noqa: E402

EXAMPLE_DIRECTORIES = 20
INSTALLED = "FLASHPACHE_COMMAND" in os.environ
NAME = os.environ.get("FLASHPACHE_COMMAND", "scripts/compare")
APPLICATIONS = ("--app wordpress or --app dokuwiki: on an application set up for this, on local disk and on a slow file "
                "system; --app wordpress --help has its options.")
MOST_WRONG = 0.01           # of the responses: above this share there is no verdict
PROBE_MOST_S = 300
CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 0x1


def parse_arguments():
    parser = argparse.ArgumentParser(prog=NAME, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Stock Apache and Flashpache in turn on your documents, which are only read.",
                                     epilog=None if INSTALLED else APPLICATIONS)
    parser.add_argument("docroot", type=Path, nargs="?",
                        help="document root (default: that of --config; else a set of files made for this)")
    parser.add_argument("--log", help="access log (common, combined, .gz) or list of URLs: what to ask for, in its order")
    parser.add_argument("--config", type=Path, help="your httpd.conf or apache2.conf: both servers get a copy of it")
    parser.add_argument("--mpm", choices=("prefork", "worker", "event"), default="event",
                        help="without --config (%(default)s)")
    parser.add_argument("--override", choices=("None", "All"), default="All",
                        help="AllowOverride without --config (%(default)s)")
    parser.add_argument("--connections", type=int, default=32, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, choices=range(2, 100), metavar="N",
                        help="at least 2: without repetition nothing is known of the noise (%(default)s)")
    parser.add_argument("--results", type=Path, help="directory for the report (default: a new one)")
    return parser.parse_args()


class Compare(Runner):
    """The lab's runner, on the operator's documents."""

    def __init__(self, store, work, rounds, docroot, config):
        super().__init__(store, work, rounds)
        self.docroot, self.config = docroot, config

    def rig_for(self, experiment):
        return site.Site(self.work / "rig", experiment.content, experiment.connections, self.docroot, self.config)


def leave_the_network():
    """From here on there is a loopback of our own and nothing else. So a copy of the configuration cannot reach any
    server of the site."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) == -1:
        raise Impossible(f"no network of its own ({os.strerror(ctypes.get_errno())}): without one the site's own servers "
                         "could be reached; run this outside of the container")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def probe(content, rig, key, directory):
    """The part of the content that a private stock Apache serves as files."""
    directory.mkdir()
    server = servers.make(key, rig.place(directory))
    distinct = list(dict.fromkeys(content.paths))
    try:
        server.start()
        load = Load(directory, server.host, server.port, connections=rig.connections)
        load.ask_for(distinct)
        started = load.start("probe", "-u", load.urls, "--once", "-d", PROBE_MOST_S, records=True)
        load.finish(started)
        statuses = statuses_of(started[2])
    finally:
        server.stop()
    good = {distinct[number] for number, status in statuses.items() if 200 <= status < 300}
    why = {path: f"status {statuses[number]}" if statuses.get(number) else "no answer"
           for number, path in enumerate(distinct)}
    return content.only(good, why)


def statuses_of(records):
    """{number of the URL: status} of a file of records."""
    with open(records, encoding="latin-1") as lines:
        names = next(lines).rstrip("\n").split("\t")
        rows = (dict(zip(names, line.rstrip("\n").split("\t"))) for line in lines)
        return {int(row["url"]): int(row["status"]) for row in rows}


def documents(arguments, config, work):
    """(document root, requests)"""
    docroot = arguments.docroot or (config.docroot() if config else None)
    if docroot is None:
        docroot = work / "example"
        Content(EXAMPLE_DIRECTORIES).make(docroot)
        print(f"no documents named: {docroot} is made for this and removed at the end")
    if not docroot.is_dir():
        raise Impossible(f"{docroot} is not a directory")
    return docroot.resolve(), site.from_log(arguments.log) if arguments.log else site.from_tree(docroot.resolve())


def experiment_for(arguments, content):
    kind = "site" if arguments.config else f"{arguments.mpm}-{arguments.override}"
    pair = [f"stock-{kind}", f"flash-{kind}"]
    seconds = arguments.seconds
    steps = [step("capacity", seconds), equal_load(seconds), step("sleepers", min(seconds, 3), once=True)]
    return Experiment("site", "site", content, pair, steps, arguments.connections, warm_s=seconds, reference=pair[0])


def answer(store, pair):
    """(the text, whether it has a verdict)"""
    found = Findings(store)
    rows = verdict.of(found, "site", *pair)
    for where in store.failures():
        print("not measured:", *where)
    if not rows:
        return "Nothing could be measured.", False
    wrong = verdict.wrong(found, "site", pair)
    said = verdict.sentence(rows)
    if wrong > MOST_WRONG:
        said = (f"No verdict: {wrong:.1%} of the responses were errors. The error.log of the servers, or a shorter list of "
                "requests, shows why; numbers above say nothing about your site.")
    return (f"{found.rigs['site']['about']}\n\n{verdict.text(rows)}\n\n{said}\n"
            "The same load is half of what stock Apache can serve. Static files alone; both servers were private ones, in a "
            "network that has nothing but a loopback of its own."), wrong <= MOST_WRONG


def plots(store):
    """The report's path; the report needs a package that the numbers do not need."""
    try:
        from lab import report
    except ImportError:
        return f"{store.directory}/report.txt; for plots install python3-matplotlib"
    return report.write(store)


def run(arguments, work):
    config = site.SiteConfig(arguments.config) if arguments.config else None
    if config and config.tls_hosts:
        print(f"{config.tls_hosts} virtual host(s) with TLS are served without it, and before the others")
    leave_the_network()
    docroot, content = documents(arguments, config, work)
    experiment = experiment_for(arguments, content)
    rig = site.Site(work / "rig", content, arguments.connections, docroot, config)
    experiment = experiment_for(arguments, probe(content, rig, experiment.reference, work / "probe"))
    store = Store(arguments.results or Path(tempfile.mkdtemp(prefix="flashpache-compare-", dir=".")))
    store.facts("machine", machine.describe())
    Compare(store, work, arguments.rounds, docroot, config).run([experiment])
    text, certain = answer(store, experiment.servers)
    (store.directory / "report.txt").write_text(text + "\n")
    print(f"\n{text}\n\n{plots(store)}")
    return 0 if certain else 1


def main():
    arguments = parse_arguments()
    if os.geteuid() != 0:
        sys.exit("compare: needs root: httpd and flashpached are started as root and drop to www-data")
    # So servers end, and the directory goes away with the program.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="flashpache-", dir="/var/tmp") as name:
        work = Path(name)
        work.chmod(0o755)
        try:
            sys.exit(run(arguments, work))
        except Impossible as problem:
            sys.exit(f"compare: {problem}")
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
