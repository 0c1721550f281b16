# SPDX-License-Identifier: Apache-2.0
"""Every kind of change, one after the other without an end, as generators.

A kind gets a Spot, makes its files, and yields (what, wants) for ever. what: the changes since the last yield.
wants: the one correct answer of each path from then on. The last step before a yield is the system call that makes
the change. A want is a status, a body (status 200), or (body, the file's time).
"""

import ctypes
import itertools
import mmap
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import acl
import aio
from change_cases import exchange
from httpd import user_ids

KINDS = {}
MOUNT_KINDS = {}            # kinds that change mounts, by mount(2) and umount(2)
COPY_KINDS = {}             # kinds whose first change copies a file up from an overlay's lower layer
DENIED, GRANTED = "Require all denied\n", "Require all granted\n"
DANGLING = 403              # the status of a link that leads nowhere
OLD = 1_500_000_000
PAGE = 4096
LARGE = 100_000             # bytes; too long to be served by its content
KEEP_SIZE_AND_PUNCH_HOLE = 3
MS_BIND, MNT_DETACH = 0x1000, 2


class Spot:
    """One kind's own names in a directory in which others may change things as well."""

    def __init__(self, directory, url, prefix=""):
        self.directory, self.prefix, self.url = Path(directory), prefix, url

    def at(self, name):
        return self.directory / (self.prefix + name)

    def path(self, name):
        return f"{self.url}/{self.prefix}{name}"

    def see(self, name, want, *more):
        """{URL: want} of one or several names."""
        names = (name, *more[::2])
        return dict(zip(map(self.path, names), (want, *more[1::2])))

    def write(self, name, data):
        """Make a file, or write it anew, as open(O_TRUNC) and write do."""
        path = self.at(name)
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
        path.write_bytes(data)

    def pwrite(self, name, data):
        fd = os.open(self.at(name), os.O_WRONLY)
        try:
            os.pwrite(fd, data, 0)
        finally:
            os.close(fd)

    def move(self, old, new):
        os.rename(self.at(old), self.at(new))

    def replace(self, name, data):
        self.write(name + ".new", data)
        self.move(name + ".new", name)

    def link(self, name, target):
        """Make a symbolic link, or switch one."""
        os.symlink(target, self.at(name + ".new"))
        self.move(name + ".new", name)


def kind(function, kinds=KINDS):
    kinds[function.__name__] = function
    return function


def mount_kind(function):
    return kind(function, MOUNT_KINDS)


def copy_kind(function):
    """function(spot, directory): makes the change in a directory of make_lower(), and returns the expected answers."""
    def steps(spot):
        for name in sorted(os.listdir(spot.directory)):
            yield "nothing", spot.see(f"{name}/file.txt", LOWER, f"{name}/large.bin", LOWER_LARGE)
            yield function.__name__, function(spot, name)
    steps.__name__ = function.__name__
    return kind(steps, COPY_KINDS)


def texts():
    """Contents that differ and have one length."""
    return (b"content %08d\n" % number for number in itertools.count())


# Content

@kind
def written_in_place(spot):
    spot.write("file.txt", b"content ********\n")
    for text in texts():
        spot.pwrite("file.txt", text)
        yield "pwrite", spot.see("file.txt", text)


@kind
def written_in_place_and_time_set_back(spot):
    spot.write("file.txt", b"content ********\n")
    for text in texts():
        spot.pwrite("file.txt", text)
        os.utime(spot.at("file.txt"), (OLD, OLD))
        yield "pwrite, utime back", spot.see("file.txt", (text, OLD))


@kind
def written_while_it_stays_open(spot):
    spot.write("file.txt", b"")
    with open(spot.at("file.txt"), "r+b", buffering=0) as file:
        for text in texts():
            os.pwrite(file.fileno(), text, 0)
            yield "pwrite, no close", spot.see("file.txt", text)


@kind
def truncated_and_grown(spot):
    spot.write("file.txt", b"")
    for text in texts():
        spot.pwrite("file.txt", text)
        yield "pwrite", spot.see("file.txt", text)
        os.truncate(spot.at("file.txt"), 7)
        yield "truncate", spot.see("file.txt", b"content")
        os.truncate(spot.at("file.txt"), 9)
        yield "truncate to a longer one", spot.see("file.txt", b"content\0\0")
        with open(spot.at("file.txt"), "ab", buffering=0) as file:
            file.write(b"more")
        yield "append", spot.see("file.txt", b"content\0\0more")
        os.truncate(spot.at("file.txt"), 0)
        yield "truncate to nothing", spot.see("file.txt", b"")


@kind
def copied_into(spot):
    """Without a write: copy_file_range, sendfile, fallocate."""
    spot.write("file.txt", b"*" * 17)
    libc = ctypes.CDLL(None, use_errno=True)
    for text in texts():
        spot.write("source.txt", text)
        with open(spot.at("source.txt"), "rb") as source, open(spot.at("file.txt"), "r+b", buffering=0) as file:
            os.copy_file_range(source.fileno(), file.fileno(), len(text), 0, 0)
            yield "copy_file_range", spot.see("file.txt", text)
            if libc.fallocate(file.fileno(), KEEP_SIZE_AND_PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(4)) == 0:
                text = bytes(4) + text[4:]
                yield "fallocate, a hole", spot.see("file.txt", text)
            os.sendfile(file.fileno(), source.fileno(), 0, 4)
            yield "sendfile", spot.see("file.txt", b"cont" + text[4:])


@kind
def written_through_a_mapping(spot):
    spot.write("file.txt", b"*" * PAGE)
    for letter in itertools.cycle(b"abcdefg"):
        with open(spot.at("file.txt"), "r+b") as file, mmap.mmap(file.fileno(), PAGE) as area:
            area[:] = bytes([letter]) * PAGE
            area.flush()
        yield "mmap, store, msync, munmap, close", spot.see("file.txt", bytes([letter]) * PAGE)


@kind
def written_through_a_mapping_that_stays(spot):
    """No event reports it, so the file is longer than those served by their content."""
    spot.write("file.txt", b"*" * LARGE)
    with open(spot.at("file.txt"), "r+b") as file, mmap.mmap(file.fileno(), LARGE) as area:
        for letter in itertools.cycle(b"abcdefg"):
            area[:] = bytes([letter]) * LARGE
            area.flush()
            yield "store, msync", spot.see("file.txt", bytes([letter]) * LARGE)


@kind
def written_asynchronously(spot):
    spot.write("file.txt", b"*" * PAGE)
    for letter in itertools.cycle(b"abcdefg"):
        with open(spot.at("file.txt"), "r+b") as file:
            aio.pwrite(file.fileno(), bytes([letter]) * PAGE)
        yield "io_submit, close", spot.see("file.txt", bytes([letter]) * PAGE)


@kind
def written_asynchronously_while_it_stays_open(spot):
    """No event reports that either."""
    spot.write("file.txt", b"*" * LARGE)
    with open(spot.at("file.txt"), "r+b") as file:
        for letter in itertools.cycle(b"abcdefg"):
            aio.pwrite(file.fileno(), bytes([letter]) * LARGE)
            yield "io_submit", spot.see("file.txt", bytes([letter]) * LARGE)


@kind
def of_a_large_file(spot):
    spot.write("file.txt", b"*" * LARGE)
    for text in texts():
        spot.pwrite("file.txt", text)
        yield "pwrite", spot.see("file.txt", text + b"*" * (LARGE - len(text)))
        spot.replace("file.txt", text)
        yield "rename over by a small one", spot.see("file.txt", text)
        spot.replace("file.txt", b"*" * LARGE)
        yield "rename over by a large one", spot.see("file.txt", b"*" * LARGE)


# Names of files

@kind
def renamed_over(spot):
    for text in texts():
        spot.replace("file.txt", text)
        yield "rename over", spot.see("file.txt", text)


@kind
def renamed_over_with_the_same_time(spot):
    for text in texts():
        spot.write("new", text)
        os.utime(spot.at("new"), (OLD, OLD))
        spot.move("new", "file.txt")
        yield "rename over, same size and time", spot.see("file.txt", (text, OLD))


@kind
def unlinked_and_created(spot):
    for text in texts():
        spot.write("file.txt", text)
        os.utime(spot.at("file.txt"), (OLD, OLD))
        yield "create, utime", spot.see("file.txt", (text, OLD))
        spot.at("file.txt").unlink()
        yield "unlink", spot.see("file.txt", 404)


@kind
def unlinked_and_created_at_once(spot):
    spot.write("file.txt", b"")
    for text in texts():
        spot.at("file.txt").unlink()
        spot.write("file.txt", text)
        os.utime(spot.at("file.txt"), (OLD, OLD))
        yield "unlink, create, same size and time", spot.see("file.txt", (text, OLD))


@kind
def created_empty_and_then_written(spot):
    """Each system call is a change of its own."""
    for text in texts():
        fd = os.open(spot.at("file.txt"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            yield "open(O_CREAT)", spot.see("file.txt", b"")
            os.write(fd, text[:9])
            yield "first write", spot.see("file.txt", text[:9])
            os.write(fd, text[9:])
            yield "second write", spot.see("file.txt", text)
        finally:
            os.close(fd)
        spot.at("file.txt").unlink()
        yield "unlink", spot.see("file.txt", 404)


@kind
def written_by_its_other_name(spot):
    spot.write("one/file.txt", b"content ********\n")
    spot.at("two").mkdir()
    os.link(spot.at("one/file.txt"), spot.at("two/name.txt"))
    for text in texts():
        spot.pwrite("two/name.txt", text)
        yield "pwrite by the other name", spot.see("one/file.txt", text)
        spot.at("two/name.txt").chmod(0)
        yield "chmod 0 by the other name", spot.see("one/file.txt", 403)
        spot.at("two/name.txt").chmod(0o644)
        yield "chmod 644 by the other name", spot.see("one/file.txt", text)
        os.truncate(spot.at("two/name.txt"), 3)
        yield "truncate by the other name", spot.see("one/file.txt", text[:3])


@kind
def written_by_a_name_made_since(spot):
    spot.write("one/file.txt", b"content ********\n")
    spot.at("two").mkdir()
    for text in texts():
        os.link(spot.at("one/file.txt"), spot.at("two/name.txt"))
        spot.pwrite("two/name.txt", text)
        yield "link, pwrite by the new name", spot.see("one/file.txt", text)
        spot.at("two/name.txt").unlink()
        yield "unlink of the new name", spot.see("one/file.txt", text)


@kind
def linked_in(spot):
    spot.at("elsewhere").mkdir()
    for text in texts():
        spot.write("elsewhere/made.txt", text)
        os.link(spot.at("elsewhere/made.txt"), spot.at("file.txt"))
        yield "link", spot.see("file.txt", text)
        spot.pwrite("elsewhere/made.txt", text.upper())
        yield "pwrite by the name it was made by", spot.see("file.txt", text.upper())
        spot.at("elsewhere/made.txt").unlink()
        spot.at("file.txt").unlink()
        yield "unlink", spot.see("file.txt", 404)


@kind
def linked_in_without_a_name_before(spot):
    for text in texts():
        fd = os.open(spot.at("file.txt").parent, os.O_TMPFILE | os.O_WRONLY, 0o644)
        try:
            os.write(fd, text)
            os.link(f"/proc/self/fd/{fd}", spot.at("file.txt"), src_dir_fd=fd)     # so linkat follows it
            yield "O_TMPFILE, link", spot.see("file.txt", text)
            os.pwrite(fd, text.upper(), 0)
            yield "pwrite", spot.see("file.txt", text.upper())
        finally:
            os.close(fd)
        spot.at("file.txt").unlink()
        yield "unlink", spot.see("file.txt", 404)


@kind
def moved_between_directories(spot):
    spot.at("one").mkdir()
    spot.at("two").mkdir()
    for text in texts():
        spot.write("one/file.txt", text)
        yield "create", spot.see("one/file.txt", text, "two/file.txt", 404)
        spot.move("one/file.txt", "two/file.txt")
        yield "rename to another directory", spot.see("two/file.txt", text, "one/file.txt", 404)
        spot.at("two/file.txt").unlink()
        yield "unlink", spot.see("two/file.txt", 404)


# Directories

@kind
def parent_renamed(spot):
    spot.write("one/deep/file.txt", b"file\n")
    while True:
        yield "rename of the parent's parent back", spot.see("one/deep/file.txt", b"file\n", "two/deep/file.txt", 404)
        spot.move("one", "two")
        yield "rename of the parent's parent", spot.see("one/deep/file.txt", 404, "two/deep/file.txt", b"file\n")
        spot.move("two/deep", "two/other")
        yield "rename of the parent", spot.see("two/deep/file.txt", 404, "two/other/file.txt", b"file\n")
        spot.move("two/other", "two/deep")
        yield "rename of the parent back", spot.see("two/deep/file.txt", b"file\n", "two/other/file.txt", 404)
        spot.move("two", "one")


@kind
def written_below_a_renamed_parent(spot):
    """The daemon set its watches while the parent had another name."""
    spot.write("one/deep/file.txt", b"file\n")
    for text in texts():
        spot.move("one", "two")
        yield "rename of the parent's parent", spot.see("two/deep/file.txt", spot.at("two/deep/file.txt").read_bytes())
        spot.pwrite("two/deep/file.txt", text)
        yield "pwrite below it", spot.see("two/deep/file.txt", text)
        spot.replace("two/deep/file.txt", text)
        yield "rename over below it", spot.see("two/deep/file.txt", text)
        spot.move("two", "one")
        yield "rename of the parent's parent back", spot.see("one/deep/file.txt", text, "two/deep/file.txt", 404)


@kind
def directories_exchanged(spot):
    for name in ("one", "two"):
        spot.write(f"{name}/deep/file.txt", f"of {name}\n".encode())
    bodies = [b"of one\n", b"of two\n"]
    while True:
        bodies.reverse()
        exchange(spot.at("one"), spot.at("two"))
        yield "renameat2(RENAME_EXCHANGE)", spot.see("one/deep/file.txt", bodies[0], "two/deep/file.txt", bodies[1])


@kind
def directory_removed_and_made(spot):
    for text in texts():
        spot.write("one/deep/file.txt", text)
        yield "mkdir, mkdir, create", spot.see("one/deep/file.txt", text)
        shutil.rmtree(spot.at("one"))
        yield "unlink, rmdir, rmdir", spot.see("one/deep/file.txt", 404)
        spot.at("one").mkdir()
        yield "mkdir", spot.see("one/deep/file.txt", 404)


@kind
def file_and_directory_in_turn(spot):
    for text in texts():
        spot.write("x", text)
        yield "create", spot.see("x", text, "x/in.txt", 404)
        spot.at("x").unlink()
        spot.write("x/in.txt", text)
        yield "unlink, mkdir, create", spot.see("x/in.txt", text, "x", 301)
        shutil.rmtree(spot.at("x"))
        yield "unlink, rmdir", spot.see("x/in.txt", 404, "x", 404)


@kind
def index_made_and_removed(spot):
    spot.at("d").mkdir()
    for text in texts():
        spot.write("d/index.html", text)
        yield "create an index", spot.see("d/", text)
        spot.replace("d/index.html", text.upper())
        yield "rename over the index", spot.see("d/", text.upper())
        spot.at("d/index.html").unlink()
        yield "unlink the index", spot.see("d/", 403)


# Symbolic links

@kind
def written_through_a_link(spot):
    spot.write("real/file.txt", b"content ********\n")
    spot.link("way", f"{spot.prefix}real")
    for text in texts():
        spot.pwrite("way/file.txt", text)
        yield "pwrite by a path with a link", spot.see("real/file.txt", text)
        spot.replace("way/file.txt", text.upper())
        yield "rename over by a path with a link", spot.see("real/file.txt", text.upper())


@kind
def served_through_a_link(spot):
    spot.write("real/file.txt", b"content ********\n")
    spot.link("way", f"{spot.prefix}real")
    for text in texts():
        spot.pwrite("real/file.txt", text)
        yield "pwrite by the path without the link", spot.see("way/file.txt", text)
        spot.replace("real/file.txt", text.upper())
        yield "rename over by the path without the link", spot.see("way/file.txt", text.upper())


@kind
def link_in_the_middle_replaced(spot):
    for name in ("one", "two"):
        spot.write(f"{name}/deep/file.txt", f"of {name}\n".encode())
    while True:
        for name in ("one", "two"):
            spot.link("way", spot.prefix + name)
            yield "rename of a link over the link", spot.see("way/deep/file.txt", f"of {name}\n".encode())
        spot.at("way").unlink()
        yield "unlink of the link", spot.see("way/deep/file.txt", 404)
        os.symlink(spot.prefix + "one", spot.at("way"))
        yield "symlink", spot.see("way/deep/file.txt", b"of one\n")


@kind
def chain_of_links(spot):
    """The second link changes; the path names the first."""
    for name in ("one", "two"):
        spot.write(f"{name}/file.txt", f"of {name}\n".encode())
    spot.at("links").mkdir()
    spot.link("links/second", f"../{spot.prefix}one")
    spot.link("first", f"{spot.prefix}links/second")
    while True:
        for name in ("two", "one"):
            spot.link("links/second", f"../{spot.prefix}{name}")
            yield "rename of a link over the second link", spot.see("first/file.txt", f"of {name}\n".encode())
        spot.move("links/second", "links/other")
        yield "rename of the second link", spot.see("first/file.txt", DANGLING)
        spot.move("links/other", "links/second")
        yield "rename of the second link back", spot.see("first/file.txt", b"of one\n")


@kind
def target_made_and_removed(spot):
    spot.link("link.txt", f"{spot.prefix}target.txt")
    for text in texts():
        spot.write("target.txt", text)
        yield "create the link's target", spot.see("link.txt", text)
        spot.at("target.txt").unlink()
        yield "unlink the link's target", spot.see("link.txt", DANGLING)


# Rights

@kind
def mode_of_the_file(spot):
    spot.write("file.txt", b"file\n")
    while True:
        spot.at("file.txt").chmod(0)
        yield "chmod 0", spot.see("file.txt", 403)
        spot.at("file.txt").chmod(0o644)
        yield "chmod 644", spot.see("file.txt", b"file\n")


@kind
def owner_of_the_file(spot):
    spot.write("file.txt", b"file\n")
    spot.at("file.txt").chmod(0o600)
    while True:
        os.chown(spot.at("file.txt"), *user_ids())
        yield "chown to Apache's user", spot.see("file.txt", b"file\n")
        os.chown(spot.at("file.txt"), 0, 0)
        yield "chown to root", spot.see("file.txt", 403)


@kind
def mode_of_a_parent(spot):
    spot.write("one/two/file.txt", b"file\n")
    while True:
        for name in ("one", "one/two"):
            spot.at(name).chmod(0)
            yield f"chmod 0 {name}", spot.see("one/two/file.txt", 403)
            spot.at(name).chmod(0o755)
            yield f"chmod 755 {name}", spot.see("one/two/file.txt", b"file\n")


@kind
def mode_of_a_parent_by_descriptor(spot):
    spot.write("one/two/file.txt", b"file\n")
    fd = os.open(spot.at("one"), os.O_RDONLY | os.O_DIRECTORY)
    try:
        while True:
            os.fchmod(fd, 0)
            yield "fchmod 0", spot.see("one/two/file.txt", 403)
            os.fchmod(fd, 0o755)
            yield "fchmod 755", spot.see("one/two/file.txt", b"file\n")
    finally:
        os.close(fd)


@kind
def list_of_a_parent(spot):
    spot.write("one/two/file.txt", b"file\n")
    while True:
        for name in ("one", "one/two"):
            acl.deny(spot.at(name))
            yield f"setxattr of an ACL that denies, {name}", spot.see("one/two/file.txt", 403)
            acl.allow(spot.at(name))
            yield f"removexattr of the ACL, {name}", spot.see("one/two/file.txt", b"file\n")


@kind
def list_of_the_file(spot):
    spot.write("file.txt", b"file\n")
    while True:
        acl.deny(spot.at("file.txt"))
        yield "setxattr of an ACL that denies", spot.see("file.txt", 403)
        acl.allow(spot.at("file.txt"))
        yield "removexattr of the ACL", spot.see("file.txt", b"file\n")


@kind
def time_of_the_file(spot):
    spot.write("file.txt", b"file\n")
    for seconds in itertools.count(OLD):
        os.utime(spot.at("file.txt"), (seconds, seconds))
        yield "utime", spot.see("file.txt", (b"file\n", seconds))


# Access files

@kind
def access_file_made_and_removed(spot):
    """In each directory above the file."""
    spot.write("one/two/file.txt", b"file\n")
    while True:
        for name in ("one", "one/two"):
            spot.write(f"{name}/.htaccess", DENIED.encode())
            yield f"create {name}/.htaccess: denied", spot.see("one/two/file.txt", 403)
            spot.at(f"{name}/.htaccess").unlink()
            yield f"unlink {name}/.htaccess", spot.see("one/two/file.txt", b"file\n")


@kind
def access_file_changed(spot):
    """Both texts have one length."""
    assert len(DENIED) == len(GRANTED) - 1
    texts_of = {403: DENIED + "\n", b"file\n": GRANTED}
    spot.write("one/two/file.txt", b"file\n")
    spot.write("one/.htaccess", GRANTED.encode())
    while True:
        for want, text in texts_of.items():
            spot.pwrite("one/.htaccess", text.encode())
            yield f"pwrite of one/.htaccess: {text.strip()}", spot.see("one/two/file.txt", want)
        for want, text in texts_of.items():
            spot.replace("one/.htaccess", text.encode())
            os.utime(spot.at("one/.htaccess"), (OLD, OLD))
            yield f"rename over one/.htaccess, utime: {text.strip()}", spot.see("one/two/file.txt", want)


@kind
def access_file_by_other_ways(spot):
    """By a link to it whose target is written, and by a hard link."""
    spot.write("one/file.txt", b"file\n")
    spot.write("rules", GRANTED.encode())
    texts_of = {403: DENIED + "\n", b"file\n": GRANTED}
    while True:
        os.symlink(f"../{spot.prefix}rules", spot.at("one/.htaccess"))
        for want, text in texts_of.items():
            spot.pwrite("rules", text.encode())
            yield f"pwrite of what one/.htaccess links to: {text.strip()}", spot.see("one/file.txt", want)
        spot.at("one/.htaccess").unlink()
        os.link(spot.at("rules"), spot.at("one/.htaccess"))
        for want, text in texts_of.items():
            spot.pwrite("rules", text.encode())
            yield f"pwrite of one/.htaccess by its other name: {text.strip()}", spot.see("one/file.txt", want)
        spot.at("one/.htaccess").unlink()
        yield "unlink one/.htaccess", spot.see("one/file.txt", b"file\n")


@kind
def rights_of_an_access_file(spot):
    """An unreadable one denies all."""
    spot.write("one/file.txt", b"file\n")
    spot.write("one/.htaccess", GRANTED.encode())
    while True:
        spot.at("one/.htaccess").chmod(0)
        yield "chmod 0 one/.htaccess", spot.see("one/file.txt", 403)
        spot.at("one/.htaccess").chmod(0o644)
        yield "chmod 644 one/.htaccess", spot.see("one/file.txt", b"file\n")


# Mounts

def _call(function, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), function, str(arguments))


def mount(source, target, flags=MS_BIND):
    _call("mount", os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), None)


def unmount(target):
    _call("umount2", os.fsencode(target), MNT_DETACH)


@contextmanager
def mounted(source, target):
    """Unmounts in every case. The block may have unmounted it."""
    mount(source, target)
    try:
        yield
    finally:
        if os.path.ismount(target) or os.stat(source).st_ino == os.stat(target).st_ino:
            unmount(target)


@mount_kind
def mounted_over_a_directory(spot):
    for name in ("one", "two"):
        spot.write(f"{name}/deep/file.txt", f"of {name}\n".encode())
    while True:
        with mounted(spot.at("two"), spot.at("one")):
            yield "mount of another directory on it", spot.see("one/deep/file.txt", b"of two\n")
        yield "umount", spot.see("one/deep/file.txt", b"of one\n")


@mount_kind
def mounted_over_a_file(spot):
    for name in ("one", "two"):
        spot.write(f"{name}.txt", f"of {name}\n".encode())
    while True:
        with mounted(spot.at("two.txt"), spot.at("one.txt")):
            yield "mount of another file on it", spot.see("one.txt", b"of two\n")
        yield "umount", spot.see("one.txt", b"of one\n")


@mount_kind
def written_below_a_mount(spot):
    """By the path of the mount's source, and by the served one."""
    spot.write("two/deep/file.txt", b"content ********\n")
    spot.at("one").mkdir()
    for text in texts():
        with mounted(spot.at("two"), spot.at("one")):
            yield "mount", spot.see("one/deep/file.txt", spot.at("two/deep/file.txt").read_bytes())
            spot.pwrite("two/deep/file.txt", text)
            yield "pwrite where it is mounted from", spot.see("one/deep/file.txt", text)
            spot.replace("one/deep/file.txt", text.upper())
            yield "rename over where it is mounted", spot.see("one/deep/file.txt", text.upper())
        yield "umount", spot.see("one/deep/file.txt", 404)


# Copying up

LOWER, LOWER_LARGE = b"lower ********\n", b"l" * LARGE
UPPER = b"upper ********\n"


def make_lower(directory, count):
    """The files below each kind's directory: one directory for each change."""
    for number in range(count):
        each = directory / f"{number:05d}"
        each.mkdir(parents=True)
        (each / "file.txt").write_bytes(LOWER)
        (each / "large.bin").write_bytes(LOWER_LARGE)
        (each / ".htaccess").write_text(GRANTED)


@copy_kind
def first_write(spot, name):
    spot.pwrite(f"{name}/file.txt", UPPER)
    return spot.see(f"{name}/file.txt", UPPER)


@copy_kind
def first_write_of_a_large_file(spot, name):
    """A process that has the lower file open goes on reading it."""
    spot.pwrite(f"{name}/large.bin", UPPER)
    return spot.see(f"{name}/large.bin", UPPER + LOWER_LARGE[len(UPPER):], f"{name}/file.txt", LOWER)


@copy_kind
def first_truncate(spot, name):
    os.truncate(spot.at(f"{name}/file.txt"), 5)
    return spot.see(f"{name}/file.txt", LOWER[:5])


@copy_kind
def first_chmod(spot, name):
    spot.at(f"{name}/file.txt").chmod(0)
    return spot.see(f"{name}/file.txt", 403, f"{name}/large.bin", LOWER_LARGE)


@copy_kind
def first_chmod_of_the_directory(spot, name):
    spot.at(name).chmod(0)
    return spot.see(f"{name}/file.txt", 403, f"{name}/large.bin", 403)


@copy_kind
def first_utime(spot, name):
    os.utime(spot.at(f"{name}/file.txt"), (OLD, OLD))
    return spot.see(f"{name}/file.txt", (LOWER, OLD))


@copy_kind
def first_rename_over(spot, name):
    spot.replace(f"{name}/file.txt", UPPER)
    return spot.see(f"{name}/file.txt", UPPER)


@copy_kind
def first_unlink(spot, name):
    spot.at(f"{name}/file.txt").unlink()
    return spot.see(f"{name}/file.txt", 404, f"{name}/large.bin", LOWER_LARGE)


@copy_kind
def first_write_of_an_access_file(spot, name):
    spot.pwrite(f"{name}/.htaccess", f"{DENIED}\n".encode())
    return spot.see(f"{name}/file.txt", 403)


@copy_kind
def directory_made_anew(spot, name):
    """The lower directory's content does not come back."""
    shutil.rmtree(spot.at(name))
    spot.write(f"{name}/large.bin", UPPER)
    return spot.see(f"{name}/file.txt", 404, f"{name}/large.bin", UPPER)
