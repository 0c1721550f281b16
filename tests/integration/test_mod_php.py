# SPDX-License-Identifier: Apache-2.0
"""FlashpacheIntercept mod_php: the calls of a module of that name and of its extensions are answered by the child, as true
as the kernel's. The module is mod_php.c here; test_apps has PHP's own."""

import os
import re
import time
from urllib.parse import quote

import pytest

import c_module
import files_kit
import filesystems
import status_kit
import tree
from fetch import Client
from httpd import user_ids
from test_walk_calls import LIMITS
from trace import Trace
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache
FIRST_TIMES = 100
CHANGES = int(os.environ.get("FLASHPACHE_CHANGES", "300"))
DIRECTORIES = max(48, CHANGES // 6)
PATIENT_S = 3000
INTERCEPT = "FlashpacheIntercept mod_php\n"


@pytest.fixture(scope="module")
def module(base):
    made = base / "php-module"
    made.mkdir()
    extension = files_kit.compiled(made, "files_extension.c", "-shared", "-fPIC")
    return f"LoadModule php_module {c_module.compiled(made, files_kit.HERE / 'mod_php.c')}\nPhpExtension {extension}\n"


class Php:
    """A server, and what its child says."""

    def __init__(self, server):
        self.server = server

    def __call__(self, *words):
        with Client(self.server.port, PATIENT_S) as client:
            status, body = client.get("/php?" + quote(" ".join(map(str, words))))
        assert status == 200, body
        return body.decode()

    def count(self, result):
        return status_kit.figures(self.server)[f"FlashpachePhp{result.title()}"]

    def is_answered(self, *words):
        before = self.count("answered")
        self(*words)
        return self.count("answered") > before

    def until_answered(self, *words):
        wait_for(lambda: self.is_answered(*words), f"{words} from memory")


@pytest.fixture(scope="module")
def start(lab, module):
    def started(name, root, mpm="prefork", config=INTERCEPT, host="", **options):
        return Php(lab.under_test(name, root, mpm=mpm, limits=LIMITS[mpm], config=module + config, vhosts=[(["localhost"], host), status_kit.VHOST],
                                  daemon_settings={"ttl_ms": 60000}, **options))
    yield started
    lab.end()


def site_below(directory):
    site = directory / "site"
    tree.put(site / "a/b/file.php", "<?php\n")
    (site / "a/link").symlink_to("b")
    for path in (site, *site.rglob("*")):
        os.lchown(path, *user_ids())
    return site


@pytest.fixture(scope="module", params=("prefork", "event"))
def php(start, base, request):
    site = site_below(base / f"php-{request.param}")
    running = start(f"php-{request.param}", site, request.param)
    running.site = site
    wait_for(lambda: time.time() > site.stat().st_ctime + 3, "the directories to be settled")
    return running


def test_calls_of_the_module_and_of_its_extension(php):
    path = php.site / "a/b/file.php"
    for word in ("stat", "access", "extension"):
        php.until_answered(word, path)
        assert php(word, path) == "0"
    assert php("stat", php.site / "a/b/none") == "2" and php("stat", path / "x") == "20"


def test_names_of_a_directory(php):
    php.until_answered("list", php.site / "a")
    assert sorted(php("list", php.site / "a").split()) == [".", "..", "b", "link"]
    php.until_answered("glob", php.site / "a/*")
    assert php("glob", php.site / "a/*").split() == [f"{php.site}/a/b/", f"{php.site}/a/link/"]
    assert php("glob", php.site / "a/b/*.php").split() == [f"{php.site}/a/b/file.php"]


def test_nothing_is_asked_of_the_kernel(php, tmp_path):
    asked = [("stat", php.site / "a/b/file.php"), ("access", php.site / "a/b/file.php"), ("list", php.site / "a"), ("stat", php.site / "a/no")]
    for words in asked:
        php.until_answered(*words)
    with Trace(php.server.pids(), tmp_path / "trace", files_kit.KERNEL_CALLS + ",open,openat,getdents64") as trace:
        for words in asked:
            php(*words)
    assert not [line for line in trace.lines() if str(php.site) in line]


def test_a_forked_process_looks_itself(php):
    path = php.site / "a/b/file.php"
    php.until_answered("stat", path)
    before = php.count("answered")
    assert php("fork", path) == "0" and php.count("answered") == before
    assert php.is_answered("stat", path)


def test_counts_say_why_a_call_is_left(php):
    def counted(path):
        before = {why: php.count(why) for why in ("new", "doubt", "answered")}
        php("stat", path)
        return [why for why, n in before.items() for _ in range(php.count(why) - n)]
    assert counted(f"{php.site}/a/b/file.php/../x") == ["doubt"]
    # Where the machine is so busy that calls are slow, the process waits for the daemon's answer.
    for number in range(FIRST_TIMES):
        said = counted(php.site / f"a/asked/for/the/first/time{number}")
        assert said in (["new"], ["answered"])
        if said == ["new"]:
            break
    assert said == ["new"]


def test_where_flashpache_is_off_or_excludes(start, base):
    site = site_below(base / "off")
    for name, config, host in (("off", INTERCEPT, "FlashpacheEngine Off\n"), ("excluded", INTERCEPT, f"FlashpacheExclude {site}/a\n"), ("plain", "", "")):
        running = start(f"php-{name}", site, config=config, host=host)
        for _ in range(20):
            assert running("stat", site / "a/b/file.php") == "0"
        assert running.count("answered") == 0


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_the_daemon_ends_and_comes_back(start, base, end):
    site = site_below(base / f"ends-{end}")
    running = start(f"php-ends-{end}", site)
    path = site / "a/b/file.php"
    running.until_answered("stat", path)
    getattr(running.server.daemon, end)()
    path.unlink()
    assert running("stat", path) == "2"
    path.write_text("again\n")
    assert running("stat", path) == "0" and not running.is_answered("stat", path)
    running.server.daemon.start()
    running.until_answered("stat", path)
    path.unlink()
    assert running("stat", path) == "2"


@pytest.mark.parametrize("how", ["own", "other", "directories", "directories-other"])
@pytest.mark.parametrize("kind", filesystems.KINDS)
def test_every_change_is_in_the_next_answer(kind, how, start, base, slow_directory):
    own = base / f"{kind}-{how}"
    own.mkdir()
    with filesystems.directory(kind, own, slow_directory) as directory:
        site = site_below(directory)
        running = start(f"php-{kind}-{how}", site)
        number = DIRECTORIES if how.startswith("directories") else CHANGES
        before = running.count("answered")
        told = running("truth", site, how, number, 11)
        answered = running.count("answered") - before
        running.server.stop()
        assert "wrong 0" in told, told
        if how.startswith("directories"):
            assert int(re.search(r"kept (\d+)", told)[1]) > number * 9 // 10, f"{told}: little was tested"
        else:
            assert answered > CHANGES, "hardly an answer came from memory: nothing was tested"
