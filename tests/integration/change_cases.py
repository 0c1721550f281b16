# SPDX-License-Identifier: Apache-2.0
"""Every kind of change, as generators.

A case gets a Place, makes its files, and yields the expected responses: {path: want}. Between two yields it makes
one change. A want is a status, a body (status 200), or (body, value of the header X-State). The case changes files
below place.hand, which may be another way to the directory that httpd knows as place.served.
"""

import ctypes
import mmap
import os
import shutil
import subprocess
import time
from pathlib import Path

from httpd import user_ids

CASES = {}
DENIED = "Require all denied\n"
SWAPS = 20              # how often modes go back and forth
OLD = 1_500_000_000
PAGE = 4096
HEARTBEAT_S = 0.05      # a lease is used for at most this time after the daemon's last heartbeat
AT_FDCWD, RENAME_EXCHANGE = -100, 2


class Place:
    """A case's own directory. hand: the path for changes; served: httpd's path; elsewhere: a directory outside of the
    document root, on the base directory's file system."""

    def __init__(self, served, hand, elsewhere, name):
        self.served, self.hand, self.elsewhere = (Path(root) / name for root in (served, hand, elsewhere))
        self.hand.mkdir()

    def at(self, name):
        return self.hand / name

    def write(self, name, text, mode=0o644):
        """Make a file, or write an existing one anew in place."""
        path = self.at(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def replace(self, name, text, **options):
        self.write(name + ".new", text, **options)
        os.rename(self.at(name + ".new"), self.at(name))

    def pwrite(self, name, text, at=0):
        with open(self.at(name), "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), text.encode(), at)

    def link(self, name, target):
        """Make a symbolic link, or switch an existing one atomically."""
        path = self.at(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, self.at(name + ".new"))
        os.rename(self.at(name + ".new"), path)

    def move(self, old, new):
        os.rename(self.at(old), self.at(new))


def state(value):
    return f"Header set X-State {value}\n"


def case(function=None, *, headers=True, behind=True, hard_link=False):
    """Register a case. headers: compare Last-Modified and ETag with stock's, too. behind: the change can also be made
    behind a pass-through file system. hard_link: it changes a file by another of its names."""
    def register(function):
        function.headers, function.behind, function.hard_link = headers, behind, hard_link
        CASES[function.__name__] = function
        return function
    return register(function) if function else register


# Files

@case
def renamed_over(place):
    place.write("file.txt", "one\n")
    yield {"file.txt": "one\n"}
    place.replace("file.txt", "another\n")
    yield {"file.txt": "another\n"}
    place.replace("file.txt", "")
    yield {"file.txt": ""}
    place.replace("file.txt", "third\n")
    yield {"file.txt": "third\n"}


@case
def renamed_over_same_size_and_time(place):
    for text in ("one\n", "two\n", "six\n"):
        place.write("new", text)
        os.utime(place.at("new"), (OLD, OLD))
        place.move("new", "file.txt")
        yield {"file.txt": text}


@case
def written_in_place(place):
    for text in ("one\n", "two\n", "six\n"):
        if place.at("file.txt").exists():
            place.pwrite("file.txt", text)
        else:
            place.write("file.txt", text)
        yield {"file.txt": text}


@case
def grown_and_shrunk(place):
    text = "first line\n"
    place.write("file.txt", text)
    yield {"file.txt": text}
    for _ in range(2):
        with open(place.at("file.txt"), "a") as file:
            file.write("x" * 9000)
        text += "x" * 9000
        yield {"file.txt": text}
    for length in (5000, 6, 0):
        os.truncate(place.at("file.txt"), length)
        yield {"file.txt": text[:length]}
    os.truncate(place.at("file.txt"), 3)
    yield {"file.txt": "\0\0\0"}


@case
def written_anew(place):
    """open(O_TRUNC) and write, as editors and cp do."""
    for text in ("one\n", "a longer one\n", "short\n"):
        place.write("file.txt", text)
        yield {"file.txt": text}


@case
def unlinked_and_created(place):
    place.write("other.txt", "other\n")
    yield {"file.txt": 404, "none/deeper.txt": 404}
    place.write("file.txt", "new\n")
    yield {"file.txt": "new\n", "none/deeper.txt": 404}
    place.at("file.txt").unlink()
    yield {"file.txt": 404, "none/deeper.txt": 404}
    place.at("none").mkdir()
    yield {"file.txt": 404, "none/deeper.txt": 404}
    place.write("none/deeper.txt", "deep\n")
    yield {"file.txt": 404, "none/deeper.txt": "deep\n"}
    os.link(place.at("other.txt"), place.at("file.txt"))
    yield {"file.txt": "other\n", "none/deeper.txt": "deep\n"}
    shutil.rmtree(place.at("none"))
    yield {"file.txt": "other\n", "none/deeper.txt": 404}


@case
def index_appears_and_goes(place):
    place.write("d/file.txt", "file\n")
    yield {"d/": 403}
    place.write("d/index.html", "index\n")
    yield {"d/": "index\n"}
    place.replace("d/index.html", "second\n")
    yield {"d/": "second\n"}
    place.at("d/index.html").unlink()
    yield {"d/": 403}


@case
def renamed_from_and_to_elsewhere(place):
    place.write("d/file.txt", "file\n")
    place.write("e/other.txt", "other\n")
    yield {"d/file.txt": "file\n", "e/file.txt": 404}
    place.move("d/file.txt", "e/file.txt")
    yield {"d/file.txt": 404, "e/file.txt": "file\n"}
    place.move("e/other.txt", "d/file.txt")
    yield {"d/file.txt": "other\n", "e/file.txt": "file\n"}


def exchange(one, other):
    """renameat2(RENAME_EXCHANGE); Python has no function for it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2", str(one))


@case(behind=False)
def exchanged(place):
    for name in ("d", "e"):
        place.write(f"{name}/file.txt", f"of {name}\n")
    place.write("one.txt", "one\n")
    place.write("two.txt", "two\n")
    paths = ("one.txt", "two.txt", "d/file.txt", "e/file.txt")
    yield dict(zip(paths, ("one\n", "two\n", "of d\n", "of e\n")))
    exchange(place.at("one.txt"), place.at("two.txt"))
    yield dict(zip(paths, ("two\n", "one\n", "of d\n", "of e\n")))
    exchange(place.at("d"), place.at("e"))
    yield dict(zip(paths, ("two\n", "one\n", "of e\n", "of d\n")))
    exchange(place.at("one.txt"), place.at("d"))
    yield {"one.txt/file.txt": "of e\n", "e/file.txt": "of d\n", "d": "two\n", "d/file.txt": 404}


@case
def replaced_where_httpd_opens_it_itself(place):
    """Core itself computes ContentDigest, from its own descriptor."""
    place.write("d/.htaccess", "ContentDigest On\n")
    for length in (3000, 60_000):
        place.replace("d/file.txt", "x" * length)
        yield {"d/file.txt": "x" * length}
        place.replace("d/file.txt", "short\n")
        yield {"d/file.txt": "short\n"}


@case
def other_kinds_in_its_place(place):
    place.write("x", "file\n")
    place.write("y", "other\n")
    yield {"x": "file\n", "x/in.txt": 404}
    place.at("x").unlink()
    place.write("x/in.txt", "inner\n")
    yield {"x": 301, "x/in.txt": "inner\n"}
    shutil.rmtree(place.at("x"))
    place.link("x", "y")
    yield {"x": "other\n", "x/in.txt": 404}
    place.replace("x", "file again\n")
    yield {"x": "file again\n", "x/in.txt": 404}


@case
def touched(place):
    place.write("file.txt", "same\n")
    for seconds in (OLD, OLD + 7, OLD - 7, OLD + 3600):
        os.utime(place.at("file.txt"), (seconds, seconds))
        yield {"file.txt": "same\n"}


@case(headers=False)
def written_through_a_mapping(place):
    """No event reports such a write, yet the body is right."""
    place.write("file.txt", "a" * PAGE)
    yield {"file.txt": "a" * PAGE}
    for letter in "bc":
        with open(place.at("file.txt"), "r+b") as file, mmap.mmap(file.fileno(), PAGE) as area:
            area[:] = letter.encode() * PAGE
        yield {"file.txt": letter * PAGE}


@case(hard_link=True)
def written_through_a_link_made_before(place):
    place.write("one/file.txt", "one\n")
    place.at("two").mkdir()
    os.link(place.at("one/file.txt"), place.at("two/name.txt"))
    yield {"one/file.txt": "one\n"}
    yield from edits_through(place, "two/name.txt", "one/file.txt")


@case(hard_link=True)
def written_through_a_link_made_after(place):
    place.write("one/file.txt", "one\n")
    place.at("two").mkdir()
    yield {"one/file.txt": "one\n"}
    os.link(place.at("one/file.txt"), place.at("two/name.txt"))
    yield {"one/file.txt": "one\n"}
    yield from edits_through(place, "two/name.txt", "one/file.txt")


@case(hard_link=True)
def written_through_a_link_right_after_it_was_made(place):
    place.write("one/file.txt", "one\n")
    place.at("two").mkdir()
    yield {"one/file.txt": "one\n"}
    os.link(place.at("one/file.txt"), place.at("two/name.txt"))
    place.pwrite("two/name.txt", "two\n")
    yield {"one/file.txt": "two\n"}
    with open(place.at("two/name.txt"), "a") as file:
        file.write("more\n")
    yield {"one/file.txt": "two\nmore\n"}
    place.at("two/name.txt").chmod(0)
    yield {"one/file.txt": 403}
    place.at("two/name.txt").chmod(0o644)
    place.at("two/name.txt").unlink()
    yield {"one/file.txt": "two\nmore\n"}


def edits_through(place, hidden, path):
    """Changes of the file through its name `hidden`, seen at `path`."""
    place.pwrite(hidden, "two\n")
    yield {path: "two\n"}
    with open(place.at(hidden), "a") as file:
        file.write("more\n")
    yield {path: "two\nmore\n"}
    os.truncate(place.at(hidden), 2)
    yield {path: "tw"}
    place.at(hidden).chmod(0)
    yield {path: 403}
    place.at(hidden).chmod(0o644)
    yield {path: "tw"}
    os.utime(place.at(hidden), (OLD, OLD))
    yield {path: "tw"}
    place.at(hidden).unlink()
    yield {path: "tw"}


@case
def written_while_it_stays_open(place):
    """Nobody closes the file, so only the writes themselves are reported."""
    place.write("file.txt", "one\n")
    yield {"file.txt": "one\n"}
    with open(place.at("file.txt"), "r+b", buffering=0) as file:
        for text in ("two\n", "three\n", "fourth line\n"):
            os.pwrite(file.fileno(), text.encode(), 0)
            yield {"file.txt": text}


# Permissions

@case
def mode_of_the_file(place):
    place.write("file.txt", "file\n")
    yield {"file.txt": "file\n"}
    for mode in (0, 0o644, 0o600, 0o604):
        place.at("file.txt").chmod(mode)
        yield {"file.txt": "file\n" if mode & 0o4 else 403}


@case
def mode_back_and_forth(place):
    place.write("file.txt", "file\n")
    yield {"file.txt": "file\n"}
    for i in range(SWAPS):
        place.at("file.txt").chmod(0o644 if i % 2 else 0o600)
        yield {"file.txt": "file\n" if i % 2 else 403}


@case
def replaced_after_it_was_closed(place):
    """The cached knowledge of an unreadable file must not apply to the file that takes its name."""
    for length in (3000, 60_000):
        place.replace("file.txt", "x" * length, mode=0)
        yield {"file.txt": 403}
        place.replace("file.txt", "short\n")
        yield {"file.txt": "short\n"}
        place.replace("file.txt", "x" * length, mode=0)
        yield {"file.txt": 403}
        place.replace("file.txt", "y" * 2 * length)
        yield {"file.txt": "y" * 2 * length}


@case
def closed_file_gives_way_to_a_denied_one(place):
    """At no moment may either be read: one has no mode, the other an access file."""
    place.write("releases/1/file.txt", "closed\n", mode=0)
    place.write("releases/2/file.txt", "denied\n")
    place.write("releases/2/.htaccess", DENIED)
    for number in "121":
        place.link("current", f"releases/{number}")
        yield {"current/file.txt": 403}


@case
def many_modes_at_once(place):
    """Only the last of a burst of changes counts."""
    place.write("file.txt", "file\n")
    yield {"file.txt": "file\n"}
    for last in (0, 0o644):
        for i in range(SWAPS):
            place.at("file.txt").chmod(0o644 if i % 2 else 0o600)
        place.at("file.txt").chmod(last)
        yield {"file.txt": "file\n" if last else 403}


@case
def owner_of_the_file(place):
    place.write("file.txt", "file\n", mode=0o600)
    os.chown(place.at("file.txt"), *user_ids())
    yield {"file.txt": "file\n"}
    os.chown(place.at("file.txt"), 0, 0)
    yield {"file.txt": 403}
    os.chown(place.at("file.txt"), 0, user_ids()[1])
    place.at("file.txt").chmod(0o640)
    yield {"file.txt": "file\n"}


@case
def mode_of_the_parent(place):
    place.write("p/file.txt", "file\n")
    yield {"p/file.txt": "file\n", "p/none.txt": 404}
    for mode in (0, 0o755, 0o744, 0o711):
        place.at("p").chmod(mode)
        search = mode & 0o1
        yield {"p/file.txt": "file\n" if search else 403, "p/none.txt": 404 if search else 403}


@case
def mode_of_a_grandparent(place):
    place.write("g/h/p/file.txt", "file\n")
    yield {"g/h/p/file.txt": "file\n"}
    for mode in (0, 0o755, 0o700, 0o755):
        place.at("g").chmod(mode)
        yield {"g/h/p/file.txt": "file\n" if mode & 0o1 else 403}


@case
def owner_of_a_directory(place):
    place.write("g/p/file.txt", "file\n")
    place.at("g").chmod(0o700)
    os.chown(place.at("g"), *user_ids())
    yield {"g/p/file.txt": "file\n"}
    os.chown(place.at("g"), 0, 0)
    yield {"g/p/file.txt": 403}
    os.chown(place.at("g"), *user_ids())
    yield {"g/p/file.txt": "file\n"}


# Directories

@case
def directory_renamed_away_and_replaced(place):
    place.write("d/file.txt", "first\n")
    place.write("e/file.txt", "second\n")
    yield {"d/file.txt": "first\n", "d/none.txt": 404}
    place.move("d", "away")
    yield {"d/file.txt": 404, "d/none.txt": 404, "away/file.txt": "first\n"}
    place.move("e", "d")
    yield {"d/file.txt": "second\n", "d/none.txt": 404, "away/file.txt": "first\n"}
    place.replace("d/file.txt", "third\n")
    yield {"d/file.txt": "third\n", "away/file.txt": "first\n"}


@case
def ancestor_renamed_away_and_back(place):
    place.write("g/h/p/file.txt", "file\n")
    yield {"g/h/p/file.txt": "file\n"}
    place.move("g", "away")
    yield {"g/h/p/file.txt": 404}
    place.replace("away/h/p/file.txt", "changed while away\n")
    yield {"g/h/p/file.txt": 404}
    place.move("away", "g")
    yield {"g/h/p/file.txt": "changed while away\n"}
    place.replace("g/h/p/file.txt", "and later\n")
    yield {"g/h/p/file.txt": "and later\n"}


@case
def changed_below_a_renamed_directory(place):
    """The daemon learns of the directory under one name; the change comes under the next."""
    place.write("d/in/file.txt", "one\n")
    yield {"d/in/file.txt": "one\n"}
    place.move("d", "e")
    yield {"d/in/file.txt": 404, "e/in/file.txt": "one\n"}
    place.replace("e/in/file.txt", "two\n")
    yield {"d/in/file.txt": 404, "e/in/file.txt": "two\n"}
    place.write("e/in/.htaccess", DENIED)
    yield {"d/in/file.txt": 404, "e/in/file.txt": 403}


@case
def directory_removed_and_made_anew(place):
    place.write("d/e/file.txt", "first\n")
    yield {"d/e/file.txt": "first\n"}
    shutil.rmtree(place.at("d"))
    yield {"d/e/file.txt": 404}
    place.write("d/e/file.txt", "second\n")
    yield {"d/e/file.txt": "second\n"}
    shutil.rmtree(place.at("d"))
    place.write("d/e/file.txt", "third\n")
    yield {"d/e/file.txt": "third\n"}


# Links

def releases(place):
    for number in "12":
        place.write(f"releases/{number}/sub/page.txt", f"page of {number}\n")


@case
def link_in_the_middle_switched(place):
    releases(place)
    for number in "121":
        place.link("current", f"releases/{number}")
        yield {"current/sub/page.txt": f"page of {number}\n", "current/sub/none": 404}
    place.at("current").unlink()
    yield {"current/sub/page.txt": 404, "current/sub/none": 404}


@case
def absolute_link_switched(place):
    releases(place)
    for number in "121":
        place.link("current", place.served / "releases" / number)
        yield {"current/sub/page.txt": f"page of {number}\n"}


@case
def last_component_switched(place):
    for name in ("one", "two"):
        place.write(f"{name}.txt", f"{name}\n")
    for name in ("one", "two", "one"):
        place.link("link.txt", f"{name}.txt")
        yield {"link.txt": f"{name}\n"}
    place.link("link.txt", "nowhere")
    yield {"link.txt": 403}
    place.write("nowhere", "somewhere\n")
    yield {"link.txt": "somewhere\n"}


@case
def link_to_a_link_switched(place):
    releases(place)
    place.link("current", "stable")
    for number in "121":
        place.link("stable", f"releases/{number}")
        yield {"current/sub/page.txt": f"page of {number}\n"}
    place.link("current", "releases/2")
    yield {"current/sub/page.txt": "page of 2\n"}


@case
def file_behind_a_link_changed(place):
    releases(place)
    place.link("current", "releases/1")
    place.link("page.txt", "releases/1/sub/page.txt")
    page = "releases/1/sub/page.txt"

    def seen(want):
        return {"current/sub/page.txt": want, "page.txt": want if want != 404 else 403}
    yield seen("page of 1\n")
    place.replace(page, "another page\n")
    yield seen("another page\n")
    place.pwrite(page, "ANOTHER")
    yield seen("ANOTHER page\n")
    place.at(page).chmod(0)
    yield seen(403)
    place.at(page).chmod(0o644)
    yield seen("ANOTHER page\n")
    place.at(page).unlink()
    yield seen(404)
    place.write(page, "once more\n")
    yield seen("once more\n")


@case
def directory_behind_a_link_replaced(place):
    for name in ("mid", "other"):
        place.write(f"real/{name}/deep/file.txt", f"below {name}\n")
    place.link("link.txt", "real/mid/deep/file.txt")
    place.link("dir", "real/mid/deep")
    paths = ("link.txt", "dir/file.txt")
    yield dict.fromkeys(paths, "below mid\n")
    place.move("real/mid", "real/away")
    yield {"link.txt": 403, "dir/file.txt": 403}
    place.move("real/other", "real/mid")
    yield dict.fromkeys(paths, "below other\n")
    place.at("real/mid").chmod(0)
    yield dict.fromkeys(paths, 403)
    place.at("real/mid").chmod(0o755)
    yield dict.fromkeys(paths, "below other\n")
    place.move("real", "gone")
    yield {"link.txt": 403, "dir/file.txt": 403}
    place.move("gone", "real")
    yield dict.fromkeys(paths, "below other\n")


@case
def link_behind_a_link_switched(place):
    """The target's own path leads through a link."""
    releases(place)
    place.link("inner", "releases/1")
    place.link("page.txt", "inner/sub/page.txt")
    yield {"page.txt": "page of 1\n"}
    place.link("inner", "releases/2")
    yield {"page.txt": "page of 2\n"}


@case
def changed_outside_of_the_root(place):
    place.elsewhere.mkdir(parents=True)
    (place.elsewhere / "file.txt").write_text("one\n")
    place.link("out", place.elsewhere)
    yield {"out/file.txt": "one\n"}
    (place.elsewhere / "new").write_text("another\n")
    os.rename(place.elsewhere / "new", place.elsewhere / "file.txt")
    yield {"out/file.txt": "another\n"}
    os.rename(place.elsewhere, place.elsewhere.with_suffix(".away"))
    yield {"out/file.txt": 403}
    os.rename(place.elsewhere.with_suffix(".away"), place.elsewhere)
    yield {"out/file.txt": "another\n"}


# Access files

@case
def access_file_comes_changes_goes(place):
    yield from access_file(place, "d", "d/file.txt")


@case
def access_file_of_a_parent(place):
    yield from access_file(place, "d", "d/e/f/file.txt")


def access_file(place, directory, path):
    name = f"{directory}/.htaccess"
    place.write(path, "file\n")
    yield {path: ("file\n", None)}
    place.write(name, DENIED)
    yield {path: 403}
    place.replace(name, state("one"))
    yield {path: ("file\n", "one")}
    place.pwrite(name, state("two"))
    yield {path: ("file\n", "two")}
    place.write(name, state("three"))
    yield {path: ("file\n", "three")}
    place.replace(name, state("THREE"))
    yield {path: ("file\n", "THREE")}
    place.at(name).chmod(0)
    yield {path: 403}
    place.at(name).chmod(0o644)
    yield {path: ("file\n", "THREE")}
    place.at(name).unlink()
    yield {path: ("file\n", None)}
    place.replace(name, state("again"))
    yield {path: ("file\n", "again")}
    place.move(name, f"{directory}/other")
    yield {path: ("file\n", None)}


@case
def access_file_is_a_link(place):
    place.write("d/file.txt", "file\n")
    place.write("shared/one", state("one"))
    place.write("shared/two", state("two"))
    yield {"d/file.txt": ("file\n", None)}
    place.link("d/.htaccess", "../shared/one")
    yield {"d/file.txt": ("file\n", "one")}
    place.link("d/.htaccess", "../shared/two")
    yield {"d/file.txt": ("file\n", "two")}
    place.pwrite("shared/two", state("TWO"))
    yield {"d/file.txt": ("file\n", "TWO")}
    place.replace("shared/two", DENIED)
    yield {"d/file.txt": 403}
    place.at("shared/two").unlink()
    yield {"d/file.txt": ("file\n", None)}
    place.write("shared/two", state("back"))
    yield {"d/file.txt": ("file\n", "back")}
    place.move("shared", "away")
    yield {"d/file.txt": ("file\n", None)}
    place.write("shared/two", DENIED)
    yield {"d/file.txt": 403}


@case(hard_link=True)
def access_file_through_another_name(place):
    place.write("d/.htaccess", state("one"))
    place.write("d/file.txt", "file\n")
    place.at("e").mkdir()
    os.link(place.at("d/.htaccess"), place.at("e/name"))
    yield {"d/file.txt": ("file\n", "one")}
    place.pwrite("e/name", state("two"))
    yield {"d/file.txt": ("file\n", "two")}
    place.write("e/name", DENIED)
    yield {"d/file.txt": 403}


@case
def access_file_behind_a_switched_link(place):
    for number in "12":
        place.write(f"releases/{number}/file.txt", f"file {number}\n")
        place.write(f"releases/{number}/.htaccess", state(number))
    for number in "121":
        place.link("current", f"releases/{number}")
        yield {"current/file.txt": (f"file {number}\n", number)}
    place.replace("releases/1/.htaccess", DENIED)
    yield {"current/file.txt": 403}


@case
def access_file_in_a_moved_directory(place):
    place.write("d/in/file.txt", "open\n")
    place.write("e/in/file.txt", "closed\n")
    place.write("e/.htaccess", DENIED)
    yield {"d/in/file.txt": "open\n"}
    place.move("d", "away")
    place.move("e", "d")
    yield {"d/in/file.txt": 403}
    place.at("d/.htaccess").unlink()
    yield {"d/in/file.txt": "closed\n"}


# The daemon keeps directories open, so umount has to be lazy (umount -l).

def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def unmount(path):
    subprocess.run(["umount", "-l", str(path)], check=True)


class Mounted:
    """mount with these arguments, the last of which is the mount point; unmounted at the end of the block at the
    latest. Neither is an event in any queue: it shows when the daemon has written its heartbeat anew, or the last
    one has expired."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        mount(*self.arguments)
        time.sleep(HEARTBEAT_S)
        return self

    def end(self):
        if self.arguments:
            unmount(self.arguments[-1])
            self.arguments = ()
            time.sleep(HEARTBEAT_S)

    def __exit__(self, *_):
        self.end()


@case(behind=False)
def mounted_over_a_directory(place):
    place.write("d/e/file.txt", "below\n")
    yield {"d/e/file.txt": "below\n", "d/e/none": 404}
    with Mounted("-t", "tmpfs", "-o", "mode=755", "none", place.at("d")) as over:
        yield {"d/e/file.txt": 404, "d/e/none": 404}
        place.write("d/e/file.txt", "above\n")
        yield {"d/e/file.txt": "above\n", "d/e/none": 404}
        place.replace("d/e/file.txt", "above, changed\n")
        yield {"d/e/file.txt": "above, changed\n", "d/e/none": 404}
        over.end()
        yield {"d/e/file.txt": "below\n", "d/e/none": 404}
    place.replace("d/e/file.txt", "below, changed\n")
    yield {"d/e/file.txt": "below, changed\n"}


@case(behind=False)
def bound_over_a_directory(place):
    place.write("d/file.txt", "below\n")
    place.write("other/file.txt", "other\n")
    yield {"d/file.txt": "below\n"}
    with Mounted("--bind", place.at("other"), place.at("d")) as over:
        yield {"d/file.txt": "other\n"}
        place.replace("other/file.txt", "changed under its own name\n")
        yield {"d/file.txt": "changed under its own name\n"}
        over.end()
        yield {"d/file.txt": "below\n"}


@case(behind=False)
def bound_over_a_file(place):
    place.write("file.txt", "below\n")
    place.write("other.txt", "other\n")
    yield {"file.txt": "below\n"}
    with Mounted("--bind", place.at("other.txt"), place.at("file.txt")) as over:
        yield {"file.txt": "other\n"}
        over.end()
        yield {"file.txt": "below\n"}
