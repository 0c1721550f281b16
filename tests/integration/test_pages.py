# SPDX-License-Identifier: Apache-2.0
"""Every command, option and setting is in --help, in its man page and in bash's completion."""

import re
import shutil
import subprocess

import pytest

from conftest import REPO

PAGES = REPO / "docs/man"
COMPLETION = REPO / "conf/flashpachectl.bash-completion"
OPTION = re.compile(r"--[a-z][a-z-]+")


def usage(program):
    return subprocess.run([program, "--help"], capture_output=True, text=True, check=True, timeout=20).stdout


def page_of(name):
    """Its text, with options as they are typed."""
    text = (PAGES / name).read_text()
    return re.sub(r"Fl -", "--", text)


@pytest.fixture(scope="module")
def ctl_usage(flashpachectl):
    return flashpachectl("--help").stdout


def commands(text):
    return set(re.findall(r"^  ([a-z][a-z-]*)(?= |$)", text, re.M))


def test_commands_of_flashpachectl(ctl_usage, flashpachectl, base):
    names = commands(ctl_usage)
    page = page_of("flashpachectl.8")
    assert set(re.findall(r"^(?:\.It )?\.?Cm ([a-z-]+)(?= |$)", page, re.M)) >= names >= {"purge", "explain", "top"}
    completed = re.search(r'commands="([^"]*)"', COMPLETION.read_text()).group(1).split()
    assert set(completed) == names
    for name in names:
        assert "unknown command" not in flashpachectl("-s", base / "nobody.sock", name, "--no-such-option").stderr
    guide = (REPO / "docs/flashpachectl.md").read_text()
    assert set(re.findall(r"^## ([a-z-]+)$", guide, re.M)) == names


def sources_of(program, name):
    """Long options that the sources know: { "name", no_argument, ... }."""
    found = set()
    for source in (REPO / "backend").rglob(name):
        found |= set(re.findall(r'\{ "([a-z-]+)", (?:no|required)_argument', source.read_text()))
    assert found, program
    return {f"--{option}" for option in found}


def test_options_of_flashpachectl(ctl_usage):
    options = sources_of("flashpachectl", "ctl_*.c") | sources_of("flashpachectl", "flashpachectl.c")
    # Known only to say where the numbers are now.
    options -= {"--prometheus"}
    completion = set(OPTION.findall(COMPLETION.read_text()))
    page = set(OPTION.findall(page_of("flashpachectl.8")))
    # top's options are short in the usage.
    assert set(OPTION.findall(ctl_usage)) | {"--times", "--delay"} == options
    assert page == options
    assert completion == options


def test_options_of_flashpached(flashpached_program):
    options = sources_of("flashpached", "arguments.c")
    assert set(OPTION.findall(usage(flashpached_program))) == options
    assert set(OPTION.findall(page_of("flashpached.8"))) == options


def test_settings():
    source = (REPO / "backend/conf/conf.c").read_text()
    table = re.search(r"^static const struct setting settings\[\].*?^\};", source, re.M | re.S).group()
    keys = set(re.findall(r'^    (?:TEXT_OF\(|NUMBER_OF\(fp_conf, |WORD_OF\(fp_conf, "|\{ ")([a-z_]+)', table, re.M))
    section = re.compile(r'\bCFG_(?:STR|INT|INT_CB|BOOL|STR_LIST|SEC)\("([a-z_]+)"')
    # pid_file has no effect any more: the pages say so, and have no row for it.
    keys |= {*section.findall(source), "fleet"} - {"pid_file"}
    of_fleet = set(section.findall((REPO / "backend/conf/conf_fleet.c").read_text())) - {"fleet"}
    page = (PAGES / "flashpached.conf.5").read_text()
    assert set(re.findall(r"^\.It Cm ([a-z_]+)$", page, re.M)) == keys | of_fleet
    fleet = set(re.findall(r"^\| `([a-z_]+)` \|", (REPO / "docs/fleet.md").read_text(), re.M))
    assert {key for key in fleet if not key.startswith("fleet_")} == of_fleet
    guide = (REPO / "docs/flashpached.conf.md").read_text()
    assert set(re.findall(r"^\| `([a-z_]+)` \|", guide, re.M)) == keys
    example = (REPO / "conf/flashpached.conf").read_text()
    assert {key for key in keys if re.search(rf"^#?{key} (?:=|\"|{{)", example, re.M)} == keys


@pytest.mark.parametrize("name", sorted(page.name for page in PAGES.glob("*.[1-8]")))
@pytest.mark.skipif(not shutil.which("man"), reason="needs man to check the pages")
def test_pages_are_clean(name):
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", PAGES / name],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_completion():
    def completed(*words):
        script = (f'source "{COMPLETION}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _flashpachectl; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        return subprocess.run(["bash", "-c", script, "flashpachectl", *words], capture_output=True, text=True,
                              check=True, timeout=20).stdout.split()
    assert completed("flashpachectl", "st") == ["stats", "status"]
    assert completed("flashpachectl", "-s", "/x.sock", "log") == ["log-level"]
    assert completed("flashpachectl", "stats", "--j") == ["--json"]
    assert completed("flashpachectl", "-c", "/etc/x", "explain", "--links", "o") == ["owner"]
    assert completed("flashpachectl", "log-level", "") == ["error", "warning", "info", "debug"]
    assert "/etc" in completed("flashpachectl", "lookup", "/et")
