#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The files that are served and the requests for them: a set of files like SPECweb99's, and lists of URL paths.

  tests/lab/workload.py make DIR (--directories N | --bytes B)
  tests/lab/workload.py urls (--directories N | --bytes B) [--requests N] [--seed S] [--hot N]
  tests/lab/workload.py from-log FILE [--limit N]

A directory has 36 files in four classes of nine: 0.1 to 0.9 KB, 1 to 9, 10 to 90, 100 to 900.
35 % of the requests are for the first class, 50, 14 and 1 % for the others. Directories are
asked for by Zipf's law with exponent 1, dir00000 most. The nine files of a class are asked for
alike: SPECweb99's own table for them is not published with the papers. So the sizes that Ruan and
Pai print in their table 2 come out within 14 %. Only the smallest one (the MB for half of the
requests) comes out up to 21 % larger.

The same arguments give the same files and the same list, whenever and wherever.
"""

import argparse
import collections
import gzip
import heapq
import io
import itertools
import random
import re
import signal
import sys
from pathlib import Path

CLASS_SHARE = (0.35, 0.50, 0.14, 0.01)
FILES_PER_CLASS = 9
FILES_PER_DIRECTORY = len(CLASS_SHARE) * FILES_PER_CLASS
# The start of a file's content in the random block: so many files differ from each other.
DISTINCT = 1 << 20
STRIDE = 40503
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

# The form of nearly all lines, in one look; the others are taken apart.
PLAIN_LINE = re.compile(r'\] "(GET|HEAD) (/[!$-\[\]-~]*) HTTP/\d\.\d" (\d{3})(?: |$)')
LOG_LINE = re.compile(r'\] "((?:[^"\\]|\\.)*)" (\d{3})(?: |$)')
REQUEST = re.compile(r"([A-Z-]+) (\S+) HTTP/\d(?:\.\d)?")
ESCAPE = re.compile(r"\\x([0-9A-Fa-f]{2})|\\(.)")
HOST = re.compile(r"https?://(?:[^/?#@\s]*@)?([^/?#@:\s]*)[^/?#\s]*", re.IGNORECASE)
# The virtual host in front of a line: NAME:PORT, or NAME before the three fields of a common log.
IN_FRONT = re.compile(r"([A-Za-z0-9._-]+):\d+ |(?=\S*[A-Za-z])([A-Za-z0-9._-]+) \S+ \S+ \S+ \[")
HOST_NAME = re.compile(r"[a-z0-9._-]+")
# Others need more than the method and the path: a header, a rate, a fault of that moment.
REPEATABLE = re.compile(r"2\d\d|30[0-8]|401|403|404|410")
# Of a request for a part of a file, or for one that has not changed: without the header the file comes whole.
WHOLE = {206: 200, 304: 200}
CONTROL = {"b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}


class Request(collections.namedtuple("Request", "method host path status")):
    """host: or None where it is not known. status: the one to expect, or None."""

    def line(self):
        """As flashpache-bench takes it."""
        url = f"http://{self.host}{self.path}" if self.host else self.path
        words = (self.method if self.method != "GET" else None, url, self.status)
        return " ".join(str(word) for word in words if word is not None)


def size_of(class_, file):
    """The bytes of a file: class 0 to 3, file 0 to 8."""
    return round(102.4 * 10 ** class_ * (file + 1))


KINDS = [(class_, file) for class_ in range(len(CLASS_SHARE)) for file in range(FILES_PER_CLASS)]
DIRECTORY_BYTES = sum(size_of(*kind) for kind in KINDS)


def directories_for(size):
    """The number of directories that comes nearest to so many bytes; at least one."""
    return max(1, round(size / DIRECTORY_BYTES))


def directory_name(number):
    return f"dir{number:05d}"


def file_name(class_, file):
    return f"class{class_}_{file}"


def make(directory, directories, seed=1):
    """Writes the files; returns (number of files, bytes)."""
    block = memoryview(random.Random(seed).randbytes(DISTINCT + size_of(*KINDS[-1])))
    number = 0
    for index in range(directories):
        place = Path(directory, directory_name(index))
        place.mkdir(parents=True, exist_ok=True)
        for kind in KINDS:
            start = number * STRIDE % DISTINCT
            with open(place / file_name(*kind), "wb", buffering=0) as file:
                file.write(block[start:start + size_of(*kind)])
            number += 1
    return number, directories * DIRECTORY_BYTES


def make_holes(directory, directories):
    """Makes the same files without a block on disk: their bytes are zeros. Returns (number of files, bytes)."""
    for index in range(directories):
        place = Path(directory, directory_name(index))
        place.mkdir(parents=True, exist_ok=True)
        for kind in KINDS:
            with open(place / file_name(*kind), "wb", buffering=0) as file:
                file.truncate(size_of(*kind))
    return directories * FILES_PER_DIRECTORY, directories * DIRECTORY_BYTES


def popularity(directories):
    """(weight, directory, kind) of every file; the weights do not add up to 1."""
    for index, kind in itertools.product(range(directories), range(FILES_PER_DIRECTORY)):
        yield CLASS_SHARE[KINDS[kind][0]] / FILES_PER_CLASS / (index + 1), index, kind


def bytes_for(directories, shares):
    """For each share of the requests, ascending: the bytes of the most popular files that take so many of them."""
    files = sorted(popularity(directories), reverse=True)
    total = sum(weight for weight, _, _ in files)
    wanted, found, seen, size = list(shares), [], 0, 0
    for weight, _, kind in files:
        seen += weight
        size += size_of(*KINDS[kind])
        while wanted and seen >= total * wanted[0]:
            found.append(size)
            wanted.pop(0)
    return found


def most_popular(directories, count):
    """Most popular first; of equally popular ones in the order of their names."""
    return heapq.nsmallest(count, ((-weight, index, kind)
                                   for weight, index, kind in popularity(directories)))


def path_of(index, kind, prefix):
    return f"{prefix}/{directory_name(index)}/{file_name(*KINDS[kind])}"


def popular(directories, count, prefix=""):
    """The URL paths of the most popular files, most popular first."""
    return [path_of(index, kind, prefix) for _, index, kind in most_popular(directories, count)]


def hot_urls(directories, requests, seed, hot, prefix):
    chosen = most_popular(directories, hot)
    paths = [path_of(index, kind, prefix) for _, index, kind in chosen]
    return random.Random(seed).choices(paths, [-weight for weight, _, _ in chosen], k=requests)


def urls(directories, requests, seed=1, hot=None, prefix=""):
    """URL paths in the order of the requests."""
    if hot is not None:
        return hot_urls(directories, requests, seed, hot, prefix)
    rng = random.Random(seed)
    places = [f"{prefix}/{directory_name(index)}/" for index in range(directories)]
    names = [file_name(*kind) for kind in KINDS]
    zipf = list(itertools.accumulate(1 / (index + 1) for index in range(directories)))
    share = list(itertools.accumulate(CLASS_SHARE[class_] for class_, _ in KINDS))
    return [place + name for place, name in zip(rng.choices(places, cum_weights=zipf, k=requests),
                                                rng.choices(names, cum_weights=share, k=requests))]


def unescape(match):
    """A strange byte in a log, as httpd and nginx write it, turned into a URL's form."""
    byte, letter = match.groups()
    value = int(byte, 16) if byte else CONTROL.get(letter, ord(letter))
    return f"%{value:02X}"


def path_in(target):
    """The path, with its query, of a request target or URL; None if it has none."""
    path = ESCAPE.sub(unescape, HOST.sub("", target).split("#")[0])
    if path.startswith("?") or (path == "" and target):
        path = "/" + path
    if not path.startswith("/") or re.search(r"\s", path):
        return None
    return "".join(c if "!" <= c <= "~" else f"%{ord(c):02X}" for c in path)


def from_line(line):
    """(Request, None), or (None, why this line is left out)."""
    plain = PLAIN_LINE.search(line)
    if plain:
        return from_entry(plain.group(1), host_of(line), plain.group(2), plain.group(3))
    if not line:
        return None, "empty"
    if line.startswith("/") or HOST.match(line):
        path = path_in(line)
        return (Request("GET", host_of("", line), path, None), None) if path else (None, "not understood")
    entry = LOG_LINE.search(line)
    request = entry and REQUEST.fullmatch(entry.group(1))
    path = request and path_in(request.group(2))
    if not path:
        return None, "not understood"
    return from_entry(request.group(1), host_of(line, request.group(2)), path, entry.group(2))


def host_of(line, target="/"):
    """The host of a request's URL, or else the one in front of its line; None if neither has one."""
    found = HOST.match(target) or IN_FRONT.match(line)
    name = next(filter(None, found.groups()), "").lower() if found else ""
    return sys.intern(name) if HOST_NAME.fullmatch(name) else None


def from_entry(method, host, path, status):
    """from_line() for the parts of a log's line."""
    if method not in ("GET", "HEAD"):
        return None, "other methods than GET and HEAD"
    if not REPEATABLE.fullmatch(status):
        return None, "statuses that a request alone does not bring"
    return Request(method, host, path, WHOLE.get(int(status), int(status))), None


def open_log(name):
    """The bytes of a file, or of standard input (-), gzip or not."""
    file = io.BufferedReader(sys.stdin.buffer.raw) if name == "-" else open(name, "rb")
    return gzip.open(file) if file.peek(2)[:2] == b"\x1f\x8b" else file


def from_log(name, limit=None):
    """Requests in their order from a list of URLs or an access log (common or combined, also with the virtual host in
    front). Also a Counter of the lines left out, by reason."""
    requests, left_out = [], collections.Counter()
    with open_log(name) as file:
        for line in io.TextIOWrapper(file, encoding="latin-1", newline="\n"):
            request, why = from_line(line.strip())
            if request is None:
                left_out[why] += 1
                continue
            requests.append(request)
            if len(requests) == limit:
                break
    return latest(requests), left_out


def latest(requests):
    """Each with the status of the last one alike: a file that was missing may have come."""
    last = {request[:-1]: request for request in requests}
    return [last[request[:-1]] for request in requests]


def byte_count(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text.upper())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text}: must be a number, with K, M, G or T if need be")
    return float(match.group(1)) * UNITS[match.group(2)]


def positive(text):
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number above 0")
    return int(text)


def write_lines(lines, name):
    with open(name, "w", encoding="ascii") if name else sys.stdout as out:
        out.writelines(line + "\n" for line in lines)


def run_make(arguments):
    files, size = make(arguments.directory, arguments.directories, arguments.seed)
    print(f"{arguments.directories} directories, {files} files, {size} bytes")


def run_urls(arguments):
    if arguments.requests is not None:
        lines = urls(arguments.directories, arguments.requests, arguments.seed, arguments.hot,
                     arguments.prefix)
    elif arguments.hot is not None:
        lines = popular(arguments.directories, arguments.hot, arguments.prefix)
    else:
        sys.exit("workload.py: give --requests N, or --hot N for a list of the most popular files")
    write_lines(lines, arguments.output)


def run_from_log(arguments):
    requests, left_out = from_log(arguments.log, arguments.limit)
    for why, count in sorted(left_out.items()):
        print(f"workload.py: {arguments.log}: left out {count}: {why}", file=sys.stderr)
    if not requests:
        sys.exit(f"workload.py: {arguments.log}: no request to replay in it")
    write_lines([request.line() for request in requests], arguments.output)


def add_set_size(parser):
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--directories", type=positive, help="of 36 files each, about 5 MB")
    group.add_argument("--bytes", type=byte_count,
                       help="of the whole set, in whole directories (for example 3G)")
    parser.add_argument("--seed", type=int, default=1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("make", help="write the files")
    command.set_defaults(run=run_make)
    command.add_argument("directory")
    add_set_size(command)
    command = commands.add_parser("urls", help="write URL paths in the order to ask for them")
    command.set_defaults(run=run_urls)
    add_set_size(command)
    command.add_argument("--requests", type=positive)
    command.add_argument("--hot", type=positive, metavar="N",
                         help="only the N most popular files; without --requests a list of them")
    command.add_argument("--prefix", default="", help="before each path")
    command.add_argument("-o", "--output", metavar="FILE")
    command = commands.add_parser("from-log", help="write the requests of an access log, with their statuses")
    command.set_defaults(run=run_from_log)
    command.add_argument("log", help="access log or list of URLs, also .gz; - is standard input")
    command.add_argument("--limit", type=positive, help="at most so many requests")
    command.add_argument("-o", "--output", metavar="FILE")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    arguments = parse_arguments()
    if getattr(arguments, "bytes", None):
        arguments.directories = directories_for(arguments.bytes)
    try:
        arguments.run(arguments)
    except OSError as error:
        sys.exit(f"workload.py: {error}")


if __name__ == "__main__":
    main()
