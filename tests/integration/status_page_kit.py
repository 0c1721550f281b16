# SPDX-License-Identifier: Apache-2.0
"""The status page as a reader sees it, and a site that gives it findings."""

import re
from html.parser import HTMLParser

import status_kit
import tree
from fetch import Client
from waiting import wait_for

VOID = {"meta", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """elements: (tag, attributes) of all; text_of(class): the text of the elements of that class."""

    def __init__(self, text):
        super().__init__()
        self.text, self.elements, self.open, self.texts, self.sections = text, [], [], {}, {"": ""}
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            # A paragraph or a list inside of <p> would end it.
            assert "p" not in [each[0] for each in self.open] or tag in ("small", "code", "a"), self.open
            self.open.append((tag, (dict(attrs).get("class") or "").split()))
        if tag == "h2":
            self.sections["(next)"] = ""

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> ends {self.open[-1:]}"
        self.open.pop()
        if tag == "h2":
            self.sections[self.sections.pop("(next)").strip()] = ""

    def handle_data(self, data):
        inside = [each[0] for each in self.open]
        for name in {name for _, classes in self.open for name in classes} | set(inside):
            self.texts[name] = self.texts.get(name, "") + data
        last = list(self.sections)[-1]
        self.sections[last] += data

    def text_of(self, name):
        return re.sub(r"\s+", " ", self.texts.get(name, "")).strip()

    @property
    def state(self):
        return self.text_of("title").removeprefix("Flashpache: ")


def read(server):
    return Page(status_kit.page(server))


def until(server, state):
    """The page once it has that text: on a busy machine lookups may wait for a worker for a moment."""
    def found():
        page = read(server)
        return page if page.state == state else None
    return wait_for(found, f"the page to say {state}", 40)


def serve(lab, world, name, engine="On", **options):
    """A server over the world's trees, with two sites and the page's own."""
    return lab.flash(name, world.root, world.daemon.socket,
                     config=f"FlashpacheEngine {engine}\nFlashpacheTimeout 20\n"
                            f"FlashpacheExclude {world.root}/excluded\n",
                     vhosts=[(["localhost"], ""), (["shop.test"], "FlashpacheEngine On"), status_kit.VHOST],
                     extra_modules=status_kit.MODULES, **options).start()


def traffic(server, world):
    """Requests of each outcome but stale and fallback."""
    tree.put(world.root / "excluded/file.txt", "not asked about\n")
    for host, times in (("localhost", 12), ("shop.test", 4)):
        with Client(server.port, host=host) as client:
            for number in range(times):
                for below in ("local", "slow"):
                    client.get(f"/{below}/file{number % 6}.txt")
                client.get("/local/none")
            client.get("/excluded/file.txt")
