# SPDX-License-Identifier: Apache-2.0
"""Every command, option and setting is in --help, in its page and in the shells' completions. The manual pages, which the
build makes of the pages, have all of it."""

import contextlib
import os
import pty
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import BUILD, REPO

MANUALS = {name: BUILD / "docs/man" / name
           for name in ("flashpachectl.8", "flashpached.8", "flashpached.conf.5", "flashpache-compare.8")}
COMPLETIONS = {shell: REPO / f"conf/flashpachectl.{shell}-completion" for shell in ("bash", "zsh", "fish")}
# The place of the commands' names in each shell's file.
NAMES = {
    "bash": lambda text: re.search(r'commands="([^"]*)"', text).group(1).split(),
    "zsh": lambda text: re.findall(r"^        '([a-z-]+):", text, re.M),
    "fish": lambda text: re.findall(r"-n __flashpachectl_begins -a ([a-z-]+) ", text),
}
OPTION = re.compile(r"--[a-z][a-z-]+")


def usage(program):
    return subprocess.run([program, "--help"], capture_output=True, text=True, check=True, timeout=20).stdout


def guide(name):
    return (REPO / "docs" / name).read_text()


def options_of(name):
    """Long options in the first cells of the table of options of that page."""
    table = re.search(r"^\| option \| \|\n((?:\|.*\n)+)", guide(name), re.M).group(1)
    return {option for cell in re.findall(r"^\| ([^|]*) \|", table, re.M) for option in OPTION.findall(cell)}


@pytest.fixture(scope="module", autouse=True)
def manuals():
    """make all leaves out the page of a command that packages install only."""
    subprocess.run(["make", "-s", "-C", BUILD, *(f"docs/man/{name}" for name in MANUALS)], check=True, timeout=60,
                   capture_output=True)


def tags(manual):
    """The code that begins a paragraph, and the headings of commands."""
    text = MANUALS[manual].read_text().replace("\\-", "-")
    return {name for line in re.findall(r"^\.(?:TP\n|SS )(.*)$", text, re.M)
            for name in re.findall(r"\\fB(.*?)\\fP", line) or [line]}


@pytest.mark.parametrize("name", MANUALS)
def test_manual_has_what_its_page_has(name):
    page = re.sub(r"^```.*?^```", "", guide(f"{name[:-2]}.md"), flags=re.M | re.S)
    cells = re.findall(r"^\| ([^|]*) \|.*\|$", page, re.M)
    names = {code for cell in cells for code in re.findall(r"`([^`]+)`", cell)} | set(re.findall(r"^### (.*)$", page, re.M))
    names |= {cell for cell in cells if re.fullmatch(r"FP\d{4}|\d", cell)}
    assert names and tags(name) >= names
    own = {"NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"}
    sections = [one for one in re.findall(r"^\.SH (.*)$", MANUALS[name].read_text(), re.M) if one not in own]
    assert sections == [one.upper() for one in re.findall(r"^## (.*)$", page, re.M)]


@pytest.fixture(scope="module")
def ctl_usage(flashpachectl):
    return flashpachectl("--help").stdout


def commands(text):
    return set(re.findall(r"^  ([a-z][a-z-]*)(?= |$)", text, re.M))


def test_commands_of_flashpachectl(ctl_usage, flashpachectl, base):
    names = commands(ctl_usage)
    assert tags("flashpachectl.8") >= names >= {"purge", "explain", "check"}
    for shell, path in COMPLETIONS.items():
        completed = NAMES[shell](path.read_text())
        assert set(completed) == names and len(completed) == len(names), shell
    for name in names:
        assert "unknown command" not in flashpachectl("-s", base / "nobody.sock", name, "--no-such-option").stderr
    assert set(re.findall(r"^### ([a-z-]+)$", guide("flashpachectl.md"), re.M)) == names


def sources_of(program, name):
    """Long options of the sources: { "name", no_argument, ... }."""
    found = set()
    for source in (REPO / "backend").rglob(name):
        found |= set(re.findall(r'\{ "([a-z-]+)", (?:no|required)_argument', source.read_text()))
    assert found, program
    return {f"--{option}" for option in found}


def test_options_of_flashpachectl(ctl_usage):
    options = sources_of("flashpachectl", "flashpachectl.c")
    page = set(OPTION.findall(guide("flashpachectl.md")))
    assert set(OPTION.findall(ctl_usage)) == options
    assert page == options
    for shell, path in COMPLETIONS.items():
        text = path.read_text()
        if shell == "fish":
            text = " ".join(f"--{name}" for name in re.findall(r"^complete .* -l ([a-z-]+)", text, re.M))
        assert set(OPTION.findall(text)) == options, shell


def test_options_of_flashpached(flashpached_program):
    options = sources_of("flashpached", "arguments.c")
    assert set(OPTION.findall(usage(flashpached_program))) == options
    assert options_of("flashpached.md") == options


def test_options_of_compare():
    assert set(OPTION.findall(usage(REPO / "scripts/compare"))) == options_of("flashpache-compare.md")


def test_settings():
    source = (REPO / "backend/conf/conf.c").read_text()

    def rows(name):
        table = re.search(rf"^static const struct setting {name}\[\].*?^\}};", source, re.M | re.S).group()
        return set(re.findall(r'^    (?:(?:TEXT|NUMBER|BYTES|BOOLEAN|LIST)_OF\(\w+, |WORD_OF\(\w+, ")([a-z_]+)', table, re.M))
    keys = rows("settings") | {"mount", "fleet"}
    of_fleet = rows("fleet_settings")
    settings, fleet = guide("flashpached.conf.md").split("## Fleet")
    assert set(re.findall(r"^\| `([a-z_]+)` \|", settings, re.M)) == keys
    assert set(re.findall(r"^\| `([a-z_]+)` \|", fleet, re.M)) == of_fleet
    example = (REPO / "conf/flashpached.conf").read_text()
    assert {key for key in keys if re.search(rf"^#?{key} (?:=|\"|{{)", example, re.M)} == keys


@pytest.mark.parametrize("name", MANUALS)
@pytest.mark.skipif(not shutil.which("man"), reason="needs man to check the pages")
def test_pages_are_clean(name):
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", MANUALS[name]],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""


def run_shell(shell, *args):
    return subprocess.run([shell, *map(str, args)], capture_output=True, text=True, check=True, timeout=60,
                          stdin=subprocess.DEVNULL).stdout


def bash_completes(*words):
    script = (f'source "{COMPLETIONS["bash"]}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _flashpachectl; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    return run_shell("bash", "-c", script, "flashpachectl", *words).split()


def fish_completes(*words):
    script = f"source '{COMPLETIONS['fish']}'; complete -C '{' '.join(words)}'"
    return [line.split("\t")[0] for line in run_shell("fish", "--no-config", "-c", script).splitlines()]


ZSHRC = """
PROMPT=READY
autoload -Uz compinit; compinit -u -D
_flashpachectl() {{ source '{completion}' }}; compdef _flashpachectl flashpachectl
compadd() {{ local -a found; builtin compadd -O found "$@"; print -rl -- $found >>{found}; builtin compadd "$@" }}
"""


def zsh_completes(*words):
    """An interactive zsh, on a terminal of its own, writes its additions."""
    control, terminal = pty.openpty()
    with tempfile.TemporaryDirectory() as place:
        found = Path(place, "found")
        Path(place, ".zshrc").write_text(ZSHRC.format(completion=COMPLETIONS["zsh"], found=found))
        with subprocess.Popen(["zsh", "-i"], stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
                              env={"PATH": os.environ["PATH"], "TERM": "dumb", "ZDOTDIR": place}) as shell:
            os.close(terminal)
            text = b""
            while b"READY" not in text:         # before it the terminal itself would read the keys
                text += os.read(control, 65536)
            # ^U: the line goes, and zsh reads the next one after the completion.
            os.write(control, f"{' '.join(words)}\t\x15print END >>{found}; exit\n".encode())
            with contextlib.suppress(OSError):      # at the end: EIO
                while os.read(control, 65536):
                    pass
            shell.wait(60)
        os.close(control)
        *names, end = found.read_text().split()
        assert end == "END"
        return names


COMPLETES = {"bash": bash_completes, "zsh": zsh_completes, "fish": fish_completes}


@pytest.mark.parametrize("shell", COMPLETES)
def test_completion(shell, ctl_usage):
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")

    def completed(*words):
        return set(COMPLETES[shell]("flashpachectl", *words))
    assert completed("st") == {"stats", "status"}
    assert completed("-s", "/x.sock", "exp") == {"explain"}
    assert completed("stats", "--j") == {"--json"} == completed("check", "--j")
    assert completed("") >= commands(ctl_usage)
    if shell == "bash":
        assert completed("-c", "/etc/x", "explain", "--a") == {"--access-file"}
        assert "/etc" in completed("explain", "/et")
