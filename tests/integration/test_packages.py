# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: built, checked by lintian, installed and removed in a clean system."""

import os
import re
import shutil
import subprocess

import pytest

import procs
from conftest import BUILD
from forms import chosen
from httpd import HITS
from waiting import wait_for

pytestmark = pytest.mark.needs_flashpache

PACKAGES = ("libapache2-mod-flashpache", "flashpached", "flashpache-compare")
LATER = "9.9"       # a version above ours
LOG = "var/log/apache2/notes.log"
SECONDS = 1200      # for fetching, unpacking and building in the time that other tests leave; it ends a hang


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=SECONDS, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}"
    return done.stdout


def need(*programs):
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: packages of these names on Debian and Ubuntu, "
                    "dpkg-dev, debhelper, iproute2 and util-linux")


@pytest.fixture(scope="module")
def packages():
    """The files that `make deb` left in the build directory."""
    need("dpkg-buildpackage", "dh", "dh_apache2")
    if subprocess.run(["pkg-config", "--exists", "libsystemd"]).returncode:
        pytest.skip("needs libsystemd-dev")
    options = "nocheck" + chosen(" noopt noautodbgsym", "")
    run("make", "-C", str(BUILD), "deb", env={**os.environ, "DEB_BUILD_OPTIONS": options})
    found = [next(BUILD.glob(f"{name}_*.deb")) for name in PACKAGES]
    return [*found, next(BUILD.glob("flashpache_*.changes"))]


class Clean:
    """A fresh system below a directory, in namespaces of its own; its network is lo alone."""

    def __init__(self, root):
        self.root = root
        ready = root / "run/ready"
        begin = ("ip link set lo up && mount --bind \"$1\" \"$1\" && mount -t proc proc \"$1/proc\" "
                 "&& touch \"$2\" && exec bash -c 'while :; do sleep 3600; done'")     # it reaps, as an init has to
        self.keeper = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", begin,
             "sh", str(root), str(ready)], start_new_session=True)
        wait_for(lambda: ready.exists() or self.keeper.poll() is not None, "namespaces")
        self.inside = procs.children(self.keeper.pid)

    def run(self, command, networks=("--net",)):
        """A shell command in it."""
        return run("nsenter", "-t", str(self.inside[0]), "--mount", "--pid", *networks, "chroot",
                   str(self.root), "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                   "DEBIAN_FRONTEND=noninteractive", "sh", "-ec", command)

    def apt(self, arguments):
        """With the network of the host, for what it fetches."""
        return self.run(f"apt-get -y -q --no-install-recommends {arguments}", networks=())

    def get(self, path):
        """A restarting Apache listens after a moment."""
        return run("nsenter", "-t", str(self.inside[0]), "--net", "curl", "-sS", "--fail", "--retry", "20",
                   "--retry-delay", "1", "--retry-connrefused", f"http://127.0.0.1{path}")

    def notes(self, number):
        """The notes of the first requests; httpd logs a request after its response."""
        def written():
            lines = (self.root / LOG).read_text().splitlines()
            return len(lines) >= number and lines
        return wait_for(written, f"{number} requests in the log")

    def end(self):
        os.kill(self.inside[0], 9)      # and with it everything in there
        self.keeper.wait()


def sources():
    """The lines of the host's own sources that belong to its distribution."""
    text = run("apt-get", "indextargets", "--format", "$(ORIGIN)|deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
               "Created-By: Packages")
    return sorted({line.split("|")[1] for line in text.splitlines()
                   if line.split("|")[0] in ("Debian", "Ubuntu") and line.endswith(" main")})


@pytest.fixture(scope="module")
def clean(base):
    need("mmdebstrap", "unshare", "nsenter", "ip", "curl", "apt-get")
    root = base / "clean"
    lines = sources()
    if not lines:
        pytest.skip("needs apt sources of Debian or Ubuntu: apt-get update")
    made = subprocess.run(["mmdebstrap", "--mode=root", "--variant=apt", "--include=apache2",
                           "--skip=cleanup/apt", "--quiet", "", str(root), *lines], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SECONDS)
    if made.returncode:
        pytest.skip(f"cannot make a clean system from {lines}: {made.stderr[-400:]}")
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    system = Clean(root)
    yield system
    system.end()


def test_lintian_finds_nothing(packages):
    need("lintian")
    done = subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root", str(packages[-1])],
                          capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout


def test_maintainer_can_be_an_address(packages):
    for package in packages[:-1]:
        maintainer = run("dpkg-deb", "-f", str(package), "Maintainer")
        assert "@" in maintainer and ".invalid" not in maintainer


def test_directory_of_the_socket_is_made_at_each_boot(packages, base):
    """By systemd-tmpfiles, from the package's line."""
    need("systemd-tmpfiles")
    root = base / "booted"
    run("dpkg-deb", "-x", str(packages[1]), str(root))
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nwww-data:x:33:\n")
    run("systemd-tmpfiles", f"--root={root}", "--create", "flashpached.conf")
    made = (root / "run/flashpache").stat()
    assert (made.st_uid, made.st_gid, made.st_mode & 0o7777) == (0, 33, 0o710)


def later(package, directory):
    """The same package of a later version."""
    tree = directory / f"tree-{package.stem}"
    run("dpkg-deb", "-R", str(package), str(tree))
    control = tree / "DEBIAN/control"
    own = re.search(r"^Version: (.*)$", control.read_text(), re.M).group(1)
    control.write_text(control.read_text().replace(own, LATER))
    run("dpkg-deb", "-b", str(tree), str(directory))


def left_behind(root):
    """Remaining paths of ours; logs of apt and dpkg are theirs."""
    found = []
    for directory, names, files in os.walk(root):
        names[:] = [n for n in names if os.path.join(directory, n) not in
                    (f"{root}/proc", f"{root}/packages", f"{root}/later")]
        found += [os.path.join(directory, n) for n in [*names, *files] if "flashpach" in n]
    return found


def pid_of(clean):
    """The pid of Apache's parent; empty while it begins."""
    return clean.run("cat /run/apache2/apache2.pid 2>/dev/null || true")


def until_noted(clean, notes, what):
    """Asks until the last request has one of these notes. A daemon that httpd starts answers after a moment, and until
    then a child of before a restart may answer."""
    def noted():
        assert clean.get("/page.txt") == "a page\n"
        return clean.notes(1)[-1] in notes
    wait_for(noted, what)


def until_hit(clean):
    until_noted(clean, HITS, "an answer of the daemon")


def test_installed_used_and_purged(packages, clean):
    page = clean.root / "var/www/html/page.txt"
    page.write_text("a page\n")
    (clean.root / "etc/apache2/conf-enabled/notes.conf").write_text(
        f'ServerName localhost\nGlobalLog /{LOG} "%{{flashpache}}n"\n')
    clean.run("apachectl start")
    wait_for(lambda: (clean.root / "run/apache2/apache2.pid").exists(), "apache2")
    assert clean.get("/page.txt") == "a page\n"

    (clean.root / "packages").mkdir()
    for package in packages[:-1]:
        shutil.copy(package, clean.root / "packages")
    clean.apt("install /packages/*.deb")
    assert "flashpache" not in clean.run("apachectl -M"), "not before the administrator wants it"
    assert "flashpache_srpt_module" in clean.run("a2enmod -q flashpache_srpt && apachectl configtest && apachectl -M")
    clean.run("a2enmod flashpache && apachectl configtest && apachectl restart")
    assert clean.notes(1) == ["-"]
    until_hit(clean)
    status = clean.get("/flashpache-status")
    assert "<title>Flashpache: healthy</title>" in status, status

    # A mistake in the daemon's settings shows before Apache is restarted with it.
    clean.run("echo 'FlashpacheDaemonConfig /etc/no-such.conf' >/etc/apache2/conf-enabled/wrong.conf")
    assert "/etc/no-such.conf" in clean.run("! apachectl configtest 2>&1")
    clean.run("rm /etc/apache2/conf-enabled/wrong.conf")

    # matplotlib is not installed, and the only network is lo.
    assert "requests per second at most" in clean.run(
        "flashpache-compare --seconds 0.3 --rounds 2 --connections 2 --results /root/compared /var/www/html 2>&1")
    clean.run("rm -r /root/compared")

    # An upgrade restarts a running Apache, and with it the daemon.
    (clean.root / "later").mkdir()
    for package in packages[:-1]:
        later(package, clean.root / "later")
    before = pid_of(clean)
    (clean.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 0\n")
    # Not by apt(): Apache has to begin in the network of the questions below; nothing has to be fetched.
    clean.run("apt-get -y -q --no-install-recommends install /later/*.deb")
    assert LATER in clean.run("dpkg-query -W libapache2-mod-flashpache")
    wait_for(lambda: pid_of(clean) not in (before, ""), "another Apache")
    until_hit(clean)
    (clean.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")

    clean.apt(f"purge {' '.join(PACKAGES)}")
    clean.run("apachectl configtest && apachectl restart")
    until_noted(clean, ("-",), "a request without the module")
    assert "flashpache" not in clean.run("apachectl -M")
    assert not left_behind(clean.root)
    clean.run("apachectl stop")
