# SPDX-License-Identifier: Apache-2.0
"""The soak's tree, and the text in its files.

The root has tops (t00), and each top slots (s00). A slot is one of two directories, its objects A and B, with the
same names of files in each. A slot is a directory that is renamed (even numbers), or a symbolic link that is
switched (odd ones). Each of them has a key, and each change gives it a value. Four values decide a request's
response (see seen()).
"""

import os
import random
import zlib
from collections import namedtuple
from pathlib import Path

OBJECTS = "AB"
NOWHERE = 2             # a slot's value when neither object is in it
CLOSED, DENIED = 1, 2   # bits of a directory's value: its mode is 000, its .htaccess denies all
ABSENT = -1             # a file's version
SMALL, LARGE = 3900, 40_000
LARGE_EVERY, LARGE_AT = 50, 7
ABSENT_SHARE = 20       # one of so many files is absent at first
HEADER_MOST = 64
BLOCK = random.Random("soak").randbytes(1 << 17)
HEX = BLOCK.hex().encode()

# A file's value. closed: nobody but root may read it.
File = namedtuple("File", "version length closed")
Name = namedtuple("Name", "top slot file")


class Layout:
    """Numbers of things, and the names made of them."""

    def __init__(self, tops, slots, files):
        self.tops, self.slots, self.files = tops, slots, files
        self.names = tops * slots * files

    def name(self, number):
        rest, file = divmod(number, self.files)
        return Name(*divmod(rest, self.slots), file)

    def path(self, number):
        """The URL path of a request."""
        name = self.name(number)
        return f"/t{name.top:02}/s{name.slot:02}/f{name.file:03}.txt"


def identity(name, which):
    return f"t{name.top:02}/s{name.slot:02}.{OBJECTS[which]}/f{name.file:03}.txt"


def is_link(slot):
    return slot % 2 == 1


def full_length(name, ident, version):
    check = zlib.crc32(f"{ident} {version}".encode())
    if name.file % LARGE_EVERY == LARGE_AT:
        return LARGE + check % LARGE
    return HEADER_MOST + check % (SMALL - HEADER_MOST)


def body(ident, version, length):
    """The first `length` bytes of a version of a file."""
    check = zlib.crc32(f"{ident} {version}".encode())
    head = f"{ident} {version:08} {check:08x}\n".encode()
    at = check % (len(HEX) - 2 * LARGE - HEADER_MOST)
    return head + HEX[at:at + length - len(head)]


def read_body(name, data):
    """(which object, version) if the data is true to itself, else None."""
    words = bytes(data[:HEADER_MOST]).split(b" ", 2)
    if len(words) < 3 or not words[1].isdigit():
        return None
    ident, version = words[0].decode("latin-1"), int(words[1])
    for which in range(len(OBJECTS)):
        if ident == identity(name, which) and data == body(ident, version, len(data)):
            return which, version
    return None


def first(name, which):
    """A file's value at the beginning."""
    ident = identity(name, which)
    if zlib.crc32(ident.encode()) % ABSENT_SHARE == 0:
        return File(ABSENT, 0, False)
    return File(0, full_length(name, ident, 0), False)


def seen(top, slot, thing, file):
    """(status, version, length) by these values: of the top, the slot, the object in it and the file in that. keys()
    has their names."""
    if top:
        return 403, 0, 0
    if slot == NOWHERE:
        return 404, 0, 0
    if thing:
        return 403, 0, 0
    if file.version == ABSENT:
        return 404, 0, 0
    return (403, 0, 0) if file.closed else (200, file.version, file.length)


def top_key(name):
    return "top", name.top


def slot_key(name):
    return "slot", name.top, name.slot


def object_key(name, which):
    return "object", name.top, name.slot, which


def file_key(name, which):
    return "file", name.top, name.slot, which, name.file


def initial(key):
    """A key's value at the beginning."""
    if key[0] == "file":
        _, top, slot, which, file = key
        return first(Name(top, slot, file), which)
    return 0


def home(root, top, slot, which):
    """An object's place while it is not in its slot."""
    return Path(root) / f"t{top:02}/s{slot:02}.{OBJECTS[which]}"


def place(root, top, slot):
    return Path(root) / f"t{top:02}/s{slot:02}"


def make(root, layout):
    """The tree as it is at the beginning: object A in every slot."""
    for top in range(layout.tops):
        for slot in range(layout.slots):
            for which in range(len(OBJECTS)):
                _make_object(root, layout, top, slot, which)
            if is_link(slot):
                os.symlink(home(root, top, slot, 0).name, place(root, top, slot))
            else:
                os.rename(home(root, top, slot, 0), place(root, top, slot))


def _make_object(root, layout, top, slot, which):
    at = home(root, top, slot, which)
    at.mkdir(parents=True)
    for file in range(layout.files):
        name = Name(top, slot, file)
        value = first(name, which)
        if value.version != ABSENT:
            with open(f"{at}/f{file:03}.txt", "wb", buffering=0) as out:
                out.write(body(identity(name, which), value.version, value.length))
