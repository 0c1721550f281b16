# SPDX-License-Identifier: Apache-2.0
"""Rules of WordPress and its page caches, Laravel, Joomla, Drupal and Nextcloud: stock's responses, and no call on a
path in a warm request."""

import shutil

import pytest

import sites
from content_kit import clock, settled  # noqa: F401 (fixtures)
from fetch import Client
from test_walk_calls import LIMITS
from trace import PathTrace

WHERE = ("htaccess", "directory", "server")
TIMES, TRIES = 3, 5
CHANGING = ("Date", "Expires")          # headers that tell the time


def names(where):
    return [name for name, site in sites.SITES.items() if where != "server" or site.server]


def host(name, root, where):
    """The virtual host of one site."""
    site = sites.SITES[name]
    inside = site.rules if where == "directory" else ""
    rules = sites.for_server(site.rules) if where == "server" else ""
    return [name], (f"DocumentRoot {root}\n<Directory {root}>\nAllowOverride {'All' if where == 'htaccess' else 'None'}\n"
                    f"Require all granted\nDirectoryIndex index.php\nAcceptPathInfo On\n{inside}</Directory>\n{rules}")


def ask(client, one):
    client.conn.request("GET", one.path, headers={"Host": client.host, **one.headers})
    answer = client.conn.getresponse()
    return answer.status, [pair for pair in answer.getheaders() if pair[0] not in CHANGING], answer.read()


def status(one, where):
    """In a server's rules, mod_dir's subrequest for the index file is rewritten, too."""
    return 200 if where == "server" and one.status == 403 else one.status


def fetch(server, name, times):
    """[(request, answer)]"""
    with Client(server.port, host=name) as client:
        return [(one, ask(client, one)) for _ in range(times) for one in sites.SITES[name].asks]


def traced(server, name):
    """Calls on paths of warm requests."""
    mark = server.mark()
    with PathTrace(server.pids(), server.dir / f"strace-{name}.txt") as trace:
        fetch(server, name, TIMES)
        server.wait_entries(len(sites.SITES[name].asks) * TIMES, mark)
        return trace.calls("")


def least_traced(server, name):
    """Of a few tries the first without a call: on a busy machine an answer may come too late."""
    found = traced(server, name)
    for _ in range(TRIES - 1):
        if found:
            found = traced(server, name)
    return found


@pytest.mark.parametrize("mpm", ("prefork", "event"))
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.needs_flashpache
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace to see the path calls")
def test_a_warm_request_makes_no_path_calls(lab, base, mpm, where, settled):  # noqa: F811 (settled)
    """Of files without a change for a while; and the responses are stock's."""
    roots = {name: base / f"{name}-{mpm}-{where}" for name in names(where)}
    for name, root in roots.items():
        sites.SITES[name].make(root, where == "htaccess")
    options = dict(mpm=mpm, vhosts=[host(name, root, where) for name, root in roots.items()], limits=LIMITS[mpm],
                   config="UseCanonicalName Off\n")
    stock = lab.stock(f"sites-stock-{mpm}-{where}", base, **options).start()
    # A server's own rule looks for its substitution in "/".
    options["config"] += "FlashpacheIntercept mod_rewrite\n" if where == "server" else ""
    flash = lab.under_test(f"sites-{mpm}-{where}", base, daemon_settings={"ttl_ms": 60000}, **options)
    counts = {}
    for name in names(where):
        expected, ours = fetch(stock, name, 4), fetch(flash, name, 4)
        wrong = [(one, answer[0]) for one, answer in expected if answer[0] != status(one, where)]
        assert not wrong, f"{name} has it otherwise: {wrong[:5]}"
        different = [(theirs, own) for theirs, own in zip(expected, ours) if theirs != own]
        assert not different, (name, different[:3])
        requests = len(sites.SITES[name].asks) * TIMES
        counts[name] = len(traced(stock, name)) / requests
        own = least_traced(flash, name)
        assert not own, f"{name}\n" + "\n".join(own[:10])
    print("calls on paths for one request without Flashpache: " + ", ".join(f"{name} {count:.1f}" for name, count in counts.items()))
    assert min(counts.values()) > 2
    lab.end()
