# SPDX-License-Identifier: Apache-2.0
"""flashpachectl, every command: no name that strangers chose makes the terminal do anything, nor a line of its own."""

import re

import pytest

import tree

pytestmark = pytest.mark.needs_flashpache

# Escape, bell, a control of UTF-8 above ASCII, and the end of a line.
HOSTILE = "x\x1b]0;title\x07\x9b31m\r\x7f\nFORGED line"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
# The arguments of each command, and what it reads; {} is a file of that name, {dir} its directory.
CASES = {
    "status": [([HOSTILE], "")], "check": [([HOSTILE], ""), ([], "")],
    "stats": [([f"--{HOSTILE}"], "")], "mounts": [([HOSTILE], ""), ([], "")],
    "explain": [(["{}"], ""), (["{}/absent"], ""), (["--access-file", HOSTILE.replace("\n", ""), "{dir}"], ""), (["--access-file", HOSTILE + "/", "{}"], ""),
               (["y" * 5000 + HOSTILE], "")],
    "purge": [(["{}"], ""), (["{}/absent"], ""), (["--tree", "{}"], "")],
    "warm": [(["-"], "{}\n{}/absent\n" + "z" * 5000 + HOSTILE + "\n"), ([HOSTILE], ""), (["-"], f"{HOSTILE}\0\n")],
    "php": [([], ""), ([HOSTILE], "")],
    HOSTILE: [([], "")],
    f"--{HOSTILE}": [([], "")],
}


@pytest.fixture(scope="module")
def place(base):
    place = base / "named" / HOSTILE
    tree.put(place, "text\n")
    (place.parent / "link").symlink_to(HOSTILE)
    return place


@pytest.fixture(scope="module")
def daemon(lab, place):
    return lab.daemon("named").start()


def test_every_command_is_here(flashpachectl):
    named = set(re.findall(r"^  ([a-z][a-z-]*)", flashpachectl("--help").stdout, re.MULTILINE))
    assert named == {name for name in CASES if "\x1b" not in name}


@pytest.mark.parametrize("json", ([], ["--json"]), ids=("text", "json"))
@pytest.mark.parametrize("command", CASES, ids=ascii)
def test_nothing_for_the_terminal(flashpachectl, daemon, place, command, json):
    for number, (arguments, given) in enumerate(CASES[command]):
        filled = [argument.replace("{dir}", str(place.parent)).replace("{}", str(place)) for argument in arguments]
        for before in (["-s", daemon.socket], ["-s", place], ["-c", place]):
            done = flashpachectl(*before, *json, command, *filled, input=given.replace("{}", str(place)))
            output = done.stdout + done.stderr
            assert not CONTROLS.search(output), (number, before, output)
            # The words of strangers are nowhere at the beginning of a line. They do not name the configuration.
            assert before[0] == "-c" or not re.search("^FORGED", output, re.MULTILINE), (number, before, output)
