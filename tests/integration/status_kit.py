# SPDX-License-Identifier: Apache-2.0
"""A server's status page, on a virtual host of its own, so that asking for it counts nothing."""

import http.client

import exposition

HOST = "status.test"
PAGE = "/fp"
MOD_STATUS = "/server-status"
MODULES = ("status",)
VHOST = ([HOST], f"FlashpacheEngine Off\n<Location {PAGE}>\nSetHandler flashpache-status\nFlashpacheStatus On\n"
                 f"Require local\n</Location>\n<Location {MOD_STATUS}>\nSetHandler server-status\n"
                 "Require local\n</Location>")


def fetch(server, target, method="GET", host=HOST):
    """(status, headers in lower case, text)"""
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        conn.request(method, target, headers={"Host": host})
        answer = conn.getresponse()
        found = [(name.lower(), value) for name, value in answer.getheaders()]
        return answer.status, dict(found), answer.read().decode()
    finally:
        conn.close()


def page(server, query=""):
    status, _, text = fetch(server, PAGE + query)
    assert status == 200, text
    return text


def lines(text):
    """{name: value} of lines "Name: value"."""
    pairs = [line.split(": ", 1) for line in text.splitlines()]
    assert all(len(pair) == 2 for pair in pairs), text
    made = dict(pairs)
    assert len(made) == len(pairs), "a name twice"
    return made


def figures(server):
    """?auto, numbers as numbers."""
    return {name: int(value) if value.isdigit() else value
            for name, value in lines(page(server, "?auto")).items()}


def grown(server, before):
    """The counters that have grown since, by name without Flashpache."""
    return {name[len("Flashpache"):]: value - before.get(name, 0)
            for name, value in figures(server).items()
            if not name.startswith("Flashpached") and isinstance(value, int)
            and value != before.get(name, 0)}


def metrics(server):
    return exposition.parse(page(server, "?prometheus"))
