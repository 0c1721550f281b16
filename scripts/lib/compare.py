#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows the effect of Flashpache on this site and file system. Run by scripts/compare."""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "lab"))

from lab import Impossible, machine, report, site, verdict  # noqa: E402
from lab.findings import Findings  # noqa: E402
from lab.load import Content  # noqa: E402
from lab.plan import Experiment, equal_load, step  # noqa: E402
from lab.runner import Runner  # noqa: E402
from lab.store import Store  # noqa: E402

EXAMPLE_DIRECTORIES = 20


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/compare", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Stock Apache and Flashpache in turn on your documents, which are only read.",
                                     epilog="--app wordpress or --app dokuwiki: on an application set up for this, on local disk "
                                            "and on a slow file system; --app wordpress --help has its options.")
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


def documents(arguments, config, work):
    """(document root, what to ask for)"""
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
    found = Findings(store)
    rows = verdict.of(found, "site", *pair)
    for where in store.failures():
        print("not measured:", *where)
    if not rows:
        return "Nothing could be measured."
    return (f"{found.rigs['site']['about']}\n\n{verdict.text(rows)}\n\n{verdict.sentence(rows)}\n"
            "The same load is half of what stock Apache can serve. Private servers on loopback; your own were not touched.")


def run(arguments, work):
    config = site.SiteConfig(arguments.config) if arguments.config else None
    if config and config.hosts_left_out:
        print(f"{config.hosts_left_out} virtual host(s) with TLS are left out")
    docroot, content = documents(arguments, config, work)
    store = Store(arguments.results or Path(tempfile.mkdtemp(prefix="flashpache-compare-", dir=".")))
    store.facts("machine", machine.describe())
    experiment = experiment_for(arguments, content)
    Compare(store, work, arguments.rounds, docroot, config).run([experiment])
    text = answer(store, experiment.servers)
    (store.directory / "report.txt").write_text(text + "\n")
    print(f"\n{text}\n\n{report.write(store)}")


def main():
    arguments = parse_arguments()
    if os.geteuid() != 0:
        sys.exit("compare: needs root: httpd and flashpached are started as root and drop to www-data")
    # So that servers end and the directory goes away with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="flashpache-", dir="/var/tmp") as name:
        work = Path(name)
        work.chmod(0o755)
        try:
            run(arguments, work)
        except Impossible as problem:
            sys.exit(f"compare: {problem}")
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
