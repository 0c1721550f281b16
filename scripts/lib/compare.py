#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows the effect of Flashpache on this site and file system. Run by scripts/compare."""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The installed form has all files in one directory.
sys.path.insert(0, str(HERE if (HERE / "lab").is_dir() else HERE.parents[1] / "tests" / "lab"))

import workload  # noqa: E402

from lab import BUILD, Impossible, apart, machine, servers, site, summary, verdict  # noqa: E402
from lab.findings import Findings  # noqa: E402
from lab.load import Content, Load  # noqa: E402
from lab.plan import Experiment, equal_load, step  # noqa: E402
from lab.runner import FAILURES, Runner  # noqa: E402
from lab.store import Store  # noqa: E402

EXAMPLE_DIRECTORIES = 20
INSTALLED = "FLASHPACHE_COMMAND" in os.environ
NAME = os.environ.get("FLASHPACHE_COMMAND", "scripts/compare")
APPLICATIONS = ("--app wordpress, dokuwiki or mediawiki: on an application set up for this, on local disk and on a slow file "
                "system; --app wordpress --help has its options.")
FILES = summary.Part("site", "static requests")
PAGES = summary.Part("pages", "pages")
PROBE_MOST_S = 300


def host_name(text):
    if not workload.HOST_NAME.fullmatch(text.lower()):
        raise argparse.ArgumentTypeError(f"{text}: is no name of a host")
    return text.lower()


def parse_arguments():
    parser = argparse.ArgumentParser(prog=NAME, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Stock Apache and Flashpache in turn on your documents, which are only read.",
                                     epilog=None if INSTALLED else APPLICATIONS)
    parser.add_argument("docroot", type=Path, nargs="?",
                        help="document root (default: that of --config; else a set of files made for this)")
    parser.add_argument("--log", help="access log (common, combined, .gz) or list of URLs: what to ask for, in its order")
    parser.add_argument("--config", type=Path, help="your httpd.conf or apache2.conf: both servers get a copy of it")
    parser.add_argument("--host", metavar="NAME", type=host_name,
                        help="the virtual host of requests where the log names none (default: the first with TLS, or else the first)")
    parser.add_argument("--mpm", choices=("prefork", "worker", "event"), default="event",
                        help="without --config (%(default)s)")
    parser.add_argument("--override", choices=("None", "All"), default="All",
                        help="AllowOverride without --config (%(default)s)")
    parser.add_argument("--connections", type=int, default=32, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, choices=range(2, 100), metavar="N",
                        help="at least 2: without repetition nothing is known of the noise (%(default)s)")
    parser.add_argument("--page-ms", type=float, default=20, metavar="MS",
                        help="what PHP, or what else makes your pages, takes for one: a stub stands for it (%(default)s)")
    parser.add_argument("--results", type=Path,
                        help="directory for the report, without results of an earlier run (default: a new one)")
    return parser.parse_args()


class Compare(Runner):
    """The lab's runner, on the operator's documents."""

    def __init__(self, store, work, rounds, make_rig):
        super().__init__(store, work, rounds)
        self.make_rig = make_rig

    def rig_for(self, experiment):
        return self.make_rig(experiment.content)


def probe(content, rig, key, directory):
    """The requests, divided by the answers of a private stock Apache."""
    directory.mkdir()
    server = servers.make(key, rig.place(directory))
    distinct = list(dict.fromkeys(content.requests))
    try:
        server.start()
        load = Load(directory, server.host, server.port, connections=rig.connections)
        load.ask_for([request._replace(status=None).line() for request in distinct])
        started = load.start("probe", "-u", load.urls, "--once", "-d", PROBE_MOST_S, records=True)
        load.finish(started)
        statuses = statuses_of(started[2])
    finally:
        server.stop()
    return content.split({request: statuses.get(number) for number, request in enumerate(distinct)})


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
    docroot, host = docroot.resolve(), arguments.host
    return docroot, site.from_log(arguments.log, host) if arguments.log else site.from_tree(docroot, host)


def pair_for(arguments):
    """(stock's key, Flashpache's)"""
    kind = "site" if arguments.config else f"{arguments.mpm}-{arguments.override}"
    return f"stock-{kind}", f"flash-{kind}"


def experiment_for(arguments, part, content, pair):
    seconds = arguments.seconds
    steps = [step("capacity", seconds), equal_load(seconds)]
    if part is FILES:
        steps.append(step("sleepers", min(seconds, 3), once=True))
    return Experiment(part.name, "site", content, list(pair), steps, arguments.connections, warm_s=seconds, reference=pair[0])


def answer(found, parts, pair, page_ms):
    """(the text, whether it has a verdict)"""
    refused = summary.refusal(found, parts, pair)
    head = refused or summary.sentence(found, parts, pair, page_ms)
    if not head:
        return "Nothing could be measured.", False
    tables = [f"{part.label}\n{verdict.text(rows)}\n{verdict.sentence(rows, part.label)}" for part in parts
              for rows in [verdict.of(found, part.name, *pair)] if rows]
    about = [found.rigs[part.name]["about"] for part in parts if part.name in found.rigs]
    stub = (f"A stub stands for PHP, other interpreters and proxies: it answers after {page_ms:g} ms. " if PAGES in parts else "")
    return ("\n\n".join([head, *(tables if not refused else ()), *about])
            + f"\n{stub}The same load is half of what stock Apache can serve. Both servers were private ones, in a network "
              "that has nothing but a loopback of its own."), not refused


def lab_page(store):
    """A line on the lab's own page of the same numbers; it needs a package that nothing else here needs."""
    try:
        from lab import report
    except ImportError:
        return '<p class="note">For the lab\'s own plots of the same numbers install python3-matplotlib.</p>'
    return f'<p class="note"><a href="{report.write(store, name="lab.html").name}">The lab\'s page of the same numbers</a></p>'


def measure(arguments, config, docroot, content, work, store):
    """The parts of the requests that were measured."""
    def rig(of):
        return site.Site(work / "rig", of, arguments.connections, docroot, config, arguments.page_ms)
    pair = pair_for(arguments)
    split = probe(content, rig(content), pair[0], work / "probe")
    store.facts("left_out", {"unexpected": split.unexpected, "what": split.left_out})
    contents = {FILES: split.files, PAGES: split.pages}
    parts = [part for part in (FILES, PAGES) if contents[part]]
    Compare(store, work, arguments.rounds, rig).run([experiment_for(arguments, part, contents[part], pair) for part in parts])
    return parts


def refuse_earlier(directory):
    """The runner measures nothing twice: a second run into the same directory would repeat the verdict of the first."""
    if directory.is_dir() and Store(directory).measurements():
        raise Impossible(f"{directory} has the results of an earlier run: give another directory to --results, "
                         "or remove this one")


def leave(arguments, docroot, work):
    """A configuration, a .htaccess or a module could otherwise reach the site's own servers."""
    used = (docroot, work, BUILD, os.getcwd(), arguments.results, arguments.config)
    apart.leave([path for path in used if path])


def run(arguments, work):
    if arguments.results:
        refuse_earlier(arguments.results)
    config = site.SiteConfig(arguments.config) if arguments.config else None
    if config and config.tls_hosts:
        print(f"{config.tls_hosts} virtual host(s) with TLS are served without it, and before the others")
    docroot, content = documents(arguments, config, work)
    leave(arguments, docroot, work)
    dropped = config.drop_unknown(work, arguments.page_ms) if config else []
    if dropped:
        print(f"left out of the configuration, as its modules are not loaded: {', '.join(dropped)}")
    store = Store(arguments.results or Path(tempfile.mkdtemp(prefix="flashpache-compare-", dir=".")))
    store.facts("machine", machine.describe())
    parts = measure(arguments, config, docroot, content, work, store)
    for where in store.failures():
        print("not measured:", *where)
    found = Findings(store)
    text, certain = answer(found, parts, pair_for(arguments), arguments.page_ms)
    (store.directory / "report.txt").write_text(text + "\n")
    path = summary.write(found, parts, pair_for(arguments), arguments.page_ms, lab_page(store))
    print(f"\n{text}\n\n{path}")
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
        except FAILURES as problem:         # httpd's own messages have several lines
            sys.exit(f"compare: {' '.join(str(problem).split())}")
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
