# SPDX-License-Identifier: Apache-2.0
"""Runs every example of the pages. The program that reads a configuration checks it; a daemon gets the commands of
flashpachectl. A list names the examples that cannot run here, and the place where they do. Each program of this tree
that a page names exists, and takes the named options. The lab's programs read each command that a page has of them; those
that only print run."""

import functools
import gzip
import itertools
import os
import re
import shlex
import subprocess

import pytest

import tree
from conftest import REPO, built
from httpd import Httpd

PAGES = ["README.md", "HACKING.md", "SECURITY.md", "tests/lab/README.md", "tests/lab/archserver/README.md",
         *(str(path.relative_to(REPO)) for path in sorted((REPO / "docs").rglob("*.md")))]
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)
HTTPD = re.compile(r"<|Flashpache|LogFormat|LoadModule")
DAEMON = re.compile(r"\w+ (\"[^\"]+\" )?\{")
COMMAND = re.compile(r"flashpachectl |flashpached |flashpache-compare |find .*\| flashpachectl |ln -sfn ")
SUDO = re.compile(r"\w+ ALL=\(")
WORKLOAD = re.compile(r"tests/lab/workload.py ")
# A program of this tree, as a page names it, and what follows.
OURS = re.compile(r"(?:^|`|= )(?:\w+=\S+ )*((?:scripts|tests)/[\w/-]+(?:\.py)?)(?![\w/.*]) ?([^`#\n]*)", re.M)
# Programs that read all arguments before one that asks for help; the commands of them that print without it.
READS = re.compile(r"scripts/compare$|tests/lab/")
PRINTS = re.compile(r"--plan$")
# Stands for a name or number of the reader's.
PLACEHOLDER = re.compile(r"\b[A-Z]{4,}\b")
SELECTS = re.compile(r"-k (?:\"([^\"]*)\"|'([^']*)'|(\w+))")
# The general form of a command; test_pages compares these with --help.
SYNOPSIS = re.compile(r"\[|COMMAND|PATH$| \| -V$")
# Commands that begin so run elsewhere: the place, or the reason why not.
ELSEWHERE = {
    "archserver ": "test_archserver",
    "../configure --with-apxs=/opt/httpd-2.2": "test_httpd22, where such a build is given",
    "./configure --with-apxs=/usr/local/apache": "test_httpd13, where such a build is given",
    "backend    main >": "check_rooms.py",
    "scripts/test": "this is it",
    "FLASHPACHE_STRESS_READS": "make check, with fewer",
    "scripts/compare": "test_compare",
    "$ time scripts/compare": "test_compare; the times are of one run",
    "scripts/reliability": "most of what it runs is in scripts/test",
    "scripts/srpt-setup": "test_srpt_setup",
    "apt-get install": "scripts/test, test_packages",
    "dnf install": "test_recipes: make rpm; test_rpm_is_built_of_what_install_md_names",
    "apachectl": "test_auto_daemon",
    "systemctl enable": "systemd's: test_service plays it",
    "mkdir -p /etc/systemd/system/php": "systemd's: test_program_files sets the same environment",
    "echo '[Service]": "systemd's: test_program_files sets the same environment",
    "ACL SETUSER": "test_fleet",
    "redis-cli": "test_fleet",
    "[Service]": "systemd's",
    "scrape_configs": "Prometheus'",
    "FP0120": "test_shadow: a line of the log",
    "/ ext4 inotify": "test_control: what flashpachectl mounts prints",
    "tests/lab/outage.py": "test_outage",
    "kubectl": "test_recipes: the pod",
    "ansible-playbook": "test_recipes",
    "# group_vars": "test_recipes",
    "cd conf/selinux": "test_recipes: the policy",
    "FlashpacheIntercept mod_php": "test_mod_php: mod_php has to be loaded",
    "flashpachectl php": "test_program_files: a process with the library has to run",
    "opcache.": "tests/lab/app_compare.py, each of them: PHP's settings",
    'after "deploy:': "Capistrano's language; its command is that of the other examples",
    "task(": "Deployer's language; its command is that of the other examples",
    "RewriteCond": "test_rewrite: a line of the log; check_condition",
    " ": "a picture",
}
NUMBERS = itertools.count()


def examples():
    for page in PAGES:
        for number, block in enumerate(BLOCK.findall((REPO / page).read_text())):
            yield pytest.param(block, id=f"{page}-{number}")


@pytest.fixture(scope="module")
def site(base):
    """The directory that the examples call /srv/www."""
    root = base / "srv"
    for name in ("index.html", "static/a.css", "shop/index.html", "releases/42/a.html", "releases/43/a.html"):
        tree.put(root / name, name)
    (root / "current").symlink_to("releases/41")
    (root / "paths.txt").write_text(f"{root}/index.html\n")
    return root


@pytest.fixture(scope="module")
def daemon(lab):
    return lab.daemon().start()


def here(text, site):
    return text.replace("/srv/www", str(site)).replace("paths.txt", str(site / "paths.txt"))


def check_httpd(block, base, module_path):
    own = re.sub(r"^LoadModule flashpache_module .*\n|^LoadModule flashpache_srpt_module .*\n", "", block, flags=re.M)
    own = own.replace(" logs/", f" {base}/")
    server = Httpd(base, f"e{next(NUMBERS)}", base, module=module_path, config=own, extra_modules=("userdir",))
    done = server.check()
    assert done.returncode == 0, done.stderr


def check_daemon(block, lab, site, base):
    password = base / "password"
    password.write_text("secret\n")
    daemon = lab.daemon(f"e{next(NUMBERS)}")
    daemon.write_config(here(block, site).replace("/etc/flashpached.redis", str(password)))
    done = daemon.run("-t")
    assert done.returncode == 0, done.stderr


def check_sudo(block, base):
    rules = base / "sudoers"
    rules.write_text(block)
    done = subprocess.run(["visudo", "-c", "-f", rules], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    # The rule allows a command that the same page has run.
    allowed = re.search(r"/usr/sbin/(flashpachectl .*)", block).group(1)
    assert any(f"sudo -u www-data {allowed}\n" in each.values[0] for each in examples())


def run_commands(block, daemon, site, tool):
    for line in here(block.replace("\\\n", " "), site).splitlines():
        if SYNOPSIS.search(line):
            continue
        line = line.replace("flashpachectl", f"{shlex.quote(str(tool))} -s {daemon.socket}")
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"


def run_workload(block, base):
    """With a small set in the place of the papers'."""
    log = base / "access.log.1.gz"
    log.write_bytes(gzip.compress(b'192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] "GET /a.html HTTP/1.1" 200 7\n'))
    for old, new in (("/srv/set", base / "set"), ("3G", "6M"), ("1000000", "1000"), (" -o ", f" -o {base}/"),
                     ("/var/log/apache2/access.log.1.gz", log), ("tests/lab", shlex.quote(str(REPO / "tests/lab")))):
        block = block.replace(old, str(new))
    for line in block.splitlines():
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{line}: {done.stderr}"


@functools.cache
def printed_by(program, arguments="--help"):
    done = subprocess.run([REPO / program, *shlex.split(arguments)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and done.stdout, f"{program} {arguments}: {done.stderr}"
    return done.stdout


def names_of_tests():
    """The names that pytest's -k can select: files and functions."""
    for path in (REPO / "tests/integration").glob("test_*.py"):
        yield path.stem
        yield from re.findall(r"^def (test_\w+)", path.read_text(), re.M)


def commands():
    for page in PAGES:
        for program, rest in OURS.findall((REPO / page).read_text().replace("\\|", "|")):
            if (REPO / program).is_dir() or (REPO / f"{program}.c").exists() or program.endswith("/NAME"):
                continue
            yield page, program, rest


def test_programs_that_pages_name():
    tests, found = list(names_of_tests()), list(commands())
    assert len(found) > 50
    for page, program, rest in found:
        assert os.access(REPO / program, os.R_OK), f"{page}: {program}"
        selected = SELECTS.search(rest)
        if selected:
            for word in next(filter(None, selected.groups())).split(" or "):
                # The part behind an "and" chooses among a test's parameters.
                assert any(word.split(" and ")[0] in name for name in tests), f"{page}: -k {word}"
        elif unit := re.match(r"unit (\w+)", rest):
            assert list((REPO / "tests/unit").glob(f"{unit.group(1)}.*")), f"{page}: {program} {rest}"
        elif READS.match(program) and not PLACEHOLDER.search(rest):
            rest = rest.strip()
            printed_by(program, rest if PRINTS.search(rest) else f"{rest} --help")
        elif program != "scripts/test":
            for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
                assert option in printed_by(program), f"{page}: {program} {option}"


@pytest.mark.parametrize("block", examples())
def test_example(block, lab, base, site, daemon, module_path):
    if any(block.startswith(begin) for begin in ELSEWHERE):
        return
    if HTTPD.match(block):
        check_httpd(block, base, module_path)
    elif SUDO.match(block):
        check_sudo(block, base)
    elif WORKLOAD.match(block):
        run_workload(block, base)
    elif COMMAND.match(block):
        run_commands(block, daemon, site, built("backend/flashpachectl"))
    else:
        assert DAEMON.match(block), "an example that nothing runs: say in ELSEWHERE what does"
        check_daemon(block, lab, site, base)


def test_tests_that_run_examples_elsewhere():
    """Each test that the list names is one, and each of its rows is about an example."""
    there = {*names_of_tests(), *(path.stem for path in (REPO / "tests/unit").iterdir())}
    blocks = [each.values[0] for each in examples()]
    for begin, place in ELSEWHERE.items():
        for name in re.findall(r"\b(?:test|check)_\w+", place):
            assert name in there, f"{begin}: {name}"
        for name in re.findall(r"\b(?:scripts|tests)/[\w/.]*\w", place):
            assert (REPO / name).is_file(), f"{begin}: {name}"
        assert any(block.startswith(begin) for block in blocks), f"{begin}: no page has such an example"


def test_rpm_is_built_of_what_install_md_names():
    """The packages for Fedora are those that the spec requires, rpmbuild itself, and what makes configure."""
    spec = (REPO / "conf/packaging/flashpache.spec").read_text()
    named = re.search(r"^dnf install (rpm-build .*?)\nautoreconf", (REPO / "docs/install.md").read_text(), re.M | re.S).group(1)
    required = set(re.findall(r"^BuildRequires: +(\S+)", spec, re.M))
    assert set(named.replace("\\", " ").split()) == required | {"rpm-build", "autoconf", "automake", "libtool"}
