# SPDX-License-Identifier: Apache-2.0
"""The soak's changes: one process makes them at a steady rate and records the time of each."""

import heapq
import marshal
import os
import random
import time

import soak_tree as tree

DENY = "Require all denied\n"
DENY_FILE = "deny-all"          # beside the tops: the target of a linked .htaccess
# A directory stays closed for a time in this range.
CLOSED_S = (0.05, 0.4)
# The time between a file's change in place and other changes on the way to it, besides the bound. A response takes
# its length from one moment and its bytes from a later one, as stock's do.
APART_S = 0.25
WEIGHTS = {"replace": 60, "remove": 12, "write_in_place": 30, "append": 14, "truncate": 14, "close_file": 20,
           "touch": 8, "edit_by_link": 10, "burst": 4, "close_object": 4, "deny_object": 4,
           "close_top": 1, "deny_top": 1, "turn_slot": 12}


class Changer:
    """Knows every value, changes it, and keeps the history [(before, after, key, value)]."""

    def __init__(self, root, layout, choose, bound_s, seed):
        self.root, self.layout, self.choose = root, layout, choose
        self.apart_s = APART_S + bound_s
        self.random = random.Random(seed)
        self.values, self.changed, self.history, self.later = {}, {}, [], []
        self.version = 0
        (root / DENY_FILE).write_text(DENY)

    def value(self, key):
        found = self.values.get(key)
        return tree.initial(key) if found is None else found

    def make(self, key, value, action, *arguments):
        before = time.monotonic()
        action(*arguments)
        after = time.monotonic()
        self.values[key], self.changed[key] = value, after
        self.history.append((before, after, key, tuple(value) if key[0] == "file" else value))

    def run(self, rate, seconds):
        """Spreads changes evenly; a late one comes at once, so the rate holds where the machine can."""
        begin = time.monotonic()
        kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
        for number in range(int(rate * seconds)):
            time.sleep(max(0, begin + number / rate - time.monotonic()))
            if time.monotonic() > begin + seconds:
                break
            if self.later and self.later[0][0] <= time.monotonic():
                _, _, undo = heapq.heappop(self.later)
                undo()
            else:
                getattr(self, self.random.choices(kinds, weights)[0])()
        while self.later:
            heapq.heappop(self.later)[2]()

    def undo_later(self, undo):
        when = time.monotonic() + self.random.uniform(*CLOSED_S)
        heapq.heappush(self.later, (when, len(self.history), undo))

    # Files

    def some_file(self):
        """(name, which, key, path, value) of a file in either of its two directories."""
        name = self.layout.name(self.choose(self.random))
        slot = self.value(tree.slot_key(name))
        which = slot if slot != tree.NOWHERE and self.random.random() < 0.9 else self.random.randrange(2)
        key = tree.file_key(name, which)
        path = self.object_path(name.top, name.slot, which) / f"f{name.file:03}.txt"
        return name, which, key, path, self.value(key)

    def object_path(self, top, slot, which):
        if not tree.is_link(slot) and self.value(("slot", top, slot)) == which:
            return tree.place(self.root, top, slot)
        return tree.home(self.root, top, slot, which)

    def next_body(self, name, which, length=None):
        """A new (version, length, body)."""
        self.version += 1
        ident = tree.identity(name, which)
        length = length or tree.full_length(name, ident, self.version)
        return self.version, length, tree.body(ident, self.version, length)

    def replace(self):
        name, which, key, path, _ = self.some_file()
        version, length, data = self.next_body(name, which)
        new = path.with_suffix(".new")
        new.write_bytes(data)
        self.make(key, tree.File(version, length, False), os.rename, new, path)

    def burst(self):
        """The same file three times in a row."""
        state = self.random.getstate()
        for _ in range(3):
            self.random.setstate(state)
            self.replace()

    def remove(self):
        _, _, key, path, value = self.some_file()
        if value.version != tree.ABSENT:
            self.make(key, tree.File(tree.ABSENT, 0, False), os.unlink, path)
        else:
            self.replace()

    def close_file(self):
        """Closed or open again."""
        _, _, key, path, value = self.some_file()
        if value.version == tree.ABSENT:
            return self.replace()
        mode = 0o644 if value.closed else self.random.choice((0, 0o600))
        return self.make(key, value._replace(closed=not value.closed), path.chmod, mode)

    def touch(self):
        _, _, key, path, value = self.some_file()
        if value.version != tree.ABSENT:
            when = self.random.randrange(10 ** 9)
            self.make(key, value, os.utime, path, (when, when))
            self.make(key, value, path.chmod, 0 if value.closed else self.random.choice((0o644, 0o664, 0o604)))

    # Files, in place

    def some_quiet_file(self, most):
        """A file there, at most that long, on whose path nothing changed just now; or None."""
        name, which, key, path, value = self.some_file()
        keys = (key, tree.top_key(name), tree.slot_key(name), tree.object_key(name, which))
        latest = max(self.changed.get(k, 0) for k in keys)
        quiet = time.monotonic() - latest > self.apart_s
        if value.version == tree.ABSENT or value.length > most or not quiet:
            return None
        return name, which, key, path, value

    def write_in_place(self):
        """One write below a page: readers hardly ever see half of it."""
        self._overwrite(lambda path: path)

    def edit_by_link(self):
        """The same, through another name in another directory."""
        def other(path):
            link = self.root / "other-name"
            link.unlink(missing_ok=True)
            os.link(path, link)
            return link
        self._overwrite(other)

    def _overwrite(self, through):
        found = self.some_quiet_file(tree.SMALL)
        if found is None:
            return self.replace()
        name, which, key, path, value = found
        version, length, data = self.next_body(name, which, value.length)
        with open(through(path), "r+b", buffering=0) as file:
            self.make(key, tree.File(version, length, value.closed), os.pwrite, file.fileno(), data, 0)

    def append(self):
        found = self.some_quiet_file(tree.SMALL // 2)
        if found is None:
            return self.replace()
        name, which, key, path, value = found
        length = value.length + self.random.randint(1, tree.SMALL // 2)
        more = tree.body(tree.identity(name, which), value.version, length)[value.length:]
        with open(path, "ab", buffering=0) as file:
            self.make(key, value._replace(length=length), os.write, file.fileno(), more)

    def truncate(self):
        found = self.some_quiet_file(2 * tree.LARGE)
        if found is None or found[4].length <= tree.HEADER_MOST:
            return self.replace()
        _, _, key, path, value = found
        length = self.random.randint(tree.HEADER_MOST, value.length - 1)
        self.make(key, value._replace(length=length), os.truncate, path, length)

    # Directories

    def some_object(self):
        name = self.layout.name(self.choose(self.random))
        slot = self.value(tree.slot_key(name))
        which = slot if slot != tree.NOWHERE else 0
        return (tree.object_key(name, which),
                lambda: self.object_path(name.top, name.slot, which))

    def some_top(self):
        name = self.layout.name(self.random.randrange(self.layout.names))
        return tree.top_key(name), lambda: self.root / f"t{name.top:02}"

    def close_object(self):
        self._close(*self.some_object())

    def close_top(self):
        self._close(*self.some_top())

    def _close(self, key, path):
        if self.value(key) & tree.CLOSED:
            return
        self.make(key, self.value(key) | tree.CLOSED, os.chmod, path(), 0)
        self.undo_later(lambda: self.make(key, self.value(key) & ~tree.CLOSED, os.chmod, path(), 0o755))

    def deny_object(self):
        self._deny(*self.some_object())

    def deny_top(self):
        self._deny(*self.some_top())

    def _deny(self, key, path):
        if self.value(key) & tree.DENIED:
            return
        way = self.random.choice((self._deny_by_rename, self._deny_by_write, self._deny_by_link))
        self.make(key, self.value(key) | tree.DENIED, way, path() / ".htaccess")
        self.undo_later(lambda: self.make(key, self.value(key) & ~tree.DENIED, os.unlink, path() / ".htaccess"))

    def _deny_by_rename(self, path):
        new = path.with_name("htaccess.new")
        new.write_text(DENY)
        os.rename(new, path)

    def _deny_by_write(self, path):
        path.write_text(DENY)

    def _deny_by_link(self, path):
        os.symlink(self.root / DENY_FILE, path)

    def turn_slot(self):
        """Puts the other object in this one's place; at times removes a link."""
        name = self.layout.name(self.choose(self.random))
        key, at = tree.slot_key(name), tree.place(self.root, name.top, name.slot)
        value = self.value(key)
        homes = [tree.home(self.root, name.top, name.slot, which) for which in range(2)]
        other = self.random.randrange(2) if value == tree.NOWHERE else 1 - value
        if not tree.is_link(name.slot):
            if value != tree.NOWHERE:
                self.make(key, tree.NOWHERE, os.rename, at, homes[value])
            if self.random.random() < 0.8:
                self.make(key, other, os.rename, homes[other], at)
        elif value != tree.NOWHERE and self.random.random() < 0.2:
            self.make(key, tree.NOWHERE, os.unlink, at)
        else:
            new = at.with_suffix(".link")
            os.symlink(homes[other].name, new)
            self.make(key, other, os.rename, new, at)


def run(root, layout, choose, bound_s, seed, rate, seconds, result):
    """A process's body: change, then write the history to `result`."""
    changer = Changer(root, layout, choose, bound_s, seed)
    changer.run(rate, seconds)
    with open(result, "wb") as out:
        marshal.dump(changer.history, out)
