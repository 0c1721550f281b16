# SPDX-License-Identifier: Apache-2.0
"""The parts of conf/ for other tools: the image and its containers, the pod, the role, the policy; and RPM packages."""

import json
import os
import re
import shutil
import subprocess

import pytest

import procs
import tree
from conftest import BUILD, REPO
from test_packages import clean, need, packages, run  # noqa: F401 (fixtures)
from waiting import wait_for

pytestmark = [pytest.mark.needs_flashpache, pytest.mark.full]

CONTAINERS = REPO / "conf/containers"
POLICY_MAKEFILE = "/usr/share/selinux/devel/Makefile"
# A container's own: a layer above the image, mounts, and lo alone. Everything ends with its first process.
BEGIN = """mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
ip link set lo up
mount -t proc proc "$2/root/proc"
mount -t tmpfs tmpfs "$2/root/run" && mkdir -p "$2/root/run/flashpache" "$2/root/run/apache2" "$2/root/run/lock"
. "$2/mounts"
exec chroot "$2/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "${@:3}"
"""


def yaml():
    """Here, so that a run without the full form needs no package for it."""
    return pytest.importorskip("yaml", reason="needs python3-yaml")


class Container:
    """A command in namespaces of its own over the image. mounts: {path in it: directory or file of ours}"""

    def __init__(self, image, directory, command, mounts):
        self.directory, self.log = directory, directory / "log"
        for name in ("upper", "work", "root"):
            (directory / name).mkdir(parents=True)
        lines = []
        for inside, ours in mounts.items():
            made = "mkdir -p" if ours.is_dir() else "touch"
            lines.append(f'{made} "{directory}/root{inside}" && mount --bind "{ours}" "{directory}/root{inside}"\n')
        (directory / "mounts").write_text("".join(lines))
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--ipc", "--uts", "--net",
                 "bash", "-ec", BEGIN, "container", str(image), str(directory), *command],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)

    def first(self):
        """Its first process, as text; it does not exist in the first moment."""
        def child():
            assert self.process.poll() is None, self.log.read_text()
            return procs.children(self.process.pid)
        return str(wait_for(child, "the first process")[0])

    def inside(self, *command):
        """Runs a command in its network and files; its output."""
        return subprocess.run(["nsenter", "-t", self.first(), "--mount", "--net", "--pid", "chroot", str(self.directory / "root"),
                               *command], capture_output=True, text=True, timeout=60)

    def get(self, path):
        done = subprocess.run(["nsenter", "-t", self.first(), "--net", "curl", "-sS", "--fail", f"http://127.0.0.1{path}"],
                              capture_output=True, text=True, timeout=60)
        return done.stdout if done.returncode == 0 else None

    def end(self):
        for child in procs.children(self.process.pid):
            os.kill(child, 9)
        self.process.wait()


def steps():
    """[(instruction, its text)] of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", (CONTAINERS / "Dockerfile").read_text(), flags=re.M).replace("\\\n", " ")
    return [tuple(line.split(" ", 1)) for line in text.splitlines() if line]


@pytest.fixture(scope="module")
def image(packages, clean):  # noqa: F811
    """The Dockerfile's steps, done in a fresh system: its directory."""
    for instruction, text in steps():
        if instruction == "COPY":
            (clean.root / "packages").mkdir()
            for package in packages[:-1]:
                shutil.copy(package, clean.root / "packages")
        elif instruction == "RUN":
            clean.run(text, networks=())
        else:
            assert instruction in ("FROM", "EXPOSE", "CMD"), instruction
    return clean.root


@pytest.fixture
def start(image, base):
    begun, number = [], len(list(base.glob("container*")))

    def begin(command, mounts):
        begun.append(Container(image, base / f"container{number + len(begun)}", command, mounts))
        return begun[-1]
    yield begin
    for one in begun:
        one.end()


def served_from_memory(web):
    """The page is served, and at the end by the daemon's answers."""
    def hits():
        found = web.get("/page.txt") == "a page\n" and web.get("/flashpache-status?auto")
        counts = dict(line.split(": ", 1) for line in found.splitlines()) if found else {}
        return int(counts.get("FlashpacheHit", 0)) + int(counts.get("FlashpacheLease", 0)) > 0
    wait_for(hits, f"answers of the daemon: {web.log}", 60)


@pytest.fixture
def documents(base):
    made = base / "documents"
    made.mkdir(exist_ok=True)
    (made / "page.txt").write_text("a page\n")
    return made


def test_the_image_serves_by_itself(start, documents):
    """One container: httpd starts the daemon."""
    command = json.loads(dict(steps())["CMD"])
    served_from_memory(start(command, {"/var/www/html": documents}))


def test_compose(image, start, documents, base):
    """The two services, by the file's own commands and volumes."""
    made = yaml().safe_load((CONTAINERS / "compose.yaml").read_text())
    named = {name: base / f"volume-{name}" for name in made["volumes"]}
    running = {}
    for name, service in made["services"].items():
        mounts = {}
        for volume in service["volumes"]:
            ours, inside = volume.split(":")[:2]
            if ours in named and not named[ours].exists():
                subprocess.run(["cp", "-a", image / inside[1:], named[ours]], check=True)   # as the image has it
            mounts[inside] = named.get(ours) or {"./www": documents}.get(ours, CONTAINERS / ours)
        running[name] = start(service.get("command") or json.loads(dict(steps())["CMD"]), mounts)
    served_from_memory(running["web"])
    assert "ready" in running["daemon"].log.read_text()
    assert not running["web"].inside("pgrep", "flashpached").stdout, "one daemon, in its own container"


def test_pod(start, documents, base):
    """The pod's containers, after its init container, by the file's own commands and volumes."""
    settings, pod = yaml().safe_load_all((CONTAINERS / "pod.yaml").read_text())
    assert settings["data"]["elsewhere.conf"] in (CONTAINERS / "elsewhere.conf").read_text()
    empty, elsewhere = base / "empty-dir", base / "elsewhere"
    empty.mkdir()
    empty.chmod(0o777)
    elsewhere.mkdir()
    (elsewhere / "elsewhere.conf").write_text(settings["data"]["elsewhere.conf"])
    volumes = {"socket": empty, "documents": documents, "elsewhere": elsewhere}
    assert {volume["name"] for volume in pod["spec"]["volumes"]} == set(volumes)

    def begin(container):
        return start(container["command"], {mount["mountPath"]: volumes[mount["name"]] / mount.get("subPath", "")
                                            for mount in container["volumeMounts"]})
    for container in pod["spec"]["initContainers"]:
        assert begin(container).process.wait(60) == 0
    running = {container["name"]: begin(container) for container in pod["spec"]["containers"]}
    served_from_memory(running["web"])
    daemon = next(one for one in pod["spec"]["containers"] if one["name"] == "daemon")
    done = running["daemon"].inside(*daemon["livenessProbe"]["exec"]["command"])
    assert done.returncode == 0 and "hits" in done.stdout, done


def test_the_policy_compiles(base):
    if not os.path.exists(POLICY_MAKEFILE):
        pytest.skip("needs selinux-policy-dev")
    made = base / "selinux"
    shutil.copytree(REPO / "conf/selinux", made)
    done = subprocess.run(["make", "-C", made, "-f", POLICY_MAKEFILE, "flashpache.pp"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "warning" not in (done.stdout + done.stderr).lower(), done
    package = (made / "flashpache.pp").read_bytes()
    assert all(name in package for name in (b"flashpached_t", b"flashpached_exec_t", b"flashpached_fleet", b"httpd_t"))
    assert b"/usr/sbin/flashpached" in package


# The role

# Programs of a target. apt-get notes its commands; it fails where there is a file of that name.
TARGET = {
    "apt-get": """echo "apt-get $*" >>{target}/commands
[ ! -e {target}/fails ] || exit 100
[ "$1" = install ] || exit 0
if [ -e {target}/installed ]; then number=0; else number=10; fi
touch {target}/installed
echo "$number upgraded, 0 newly installed, 0 to remove and 7 not upgraded." """,
    "a2enmod": "touch {target}/etc/apache2/mods-enabled/$2.load",
    "a2enconf": "touch {target}/etc/apache2/conf-enabled/$2.conf",
    "apachectl": "echo apachectl $* >>{target}/commands",
    "flashpached": 'exec {daemon} "$@"',
}
RESTART = "- name: Restart Apache\n  ansible.builtin.command: apachectl restart\n"
PACKAGES = ("flashpached_0.1.0_amd64.deb", "libapache2-mod-flashpache_0.1.0_amd64.deb")


class Role:
    """conf/ansible as the page has it, for a target that is a directory: play() runs it there."""

    def __init__(self, directory):
        self.directory, self.target, self.packages = directory, directory / "target", directory / "packages"
        shutil.copytree(REPO / "conf/ansible", directory / "ansible")
        self.role = directory / "ansible/roles/flashpache"
        tasks = self.role / "tasks/main.yml"
        tasks.write_text(re.sub(r"(?<=[ \"])/(?=etc/|var/)", f"{self.target}/", tasks.read_text()))
        (self.role / "handlers/main.yml").write_text(RESTART)
        for name in ("etc/apache2/conf-available", "etc/apache2/conf-enabled", "etc/apache2/mods-enabled"):
            (self.target / name).mkdir(parents=True)
        for name in PACKAGES:
            tree.put(self.packages / name, "")
        for name, text in TARGET.items():
            text = text.format(target=self.target, daemon=BUILD / "backend/flashpached")
            tree.put(directory / "bin" / name, f"#!/bin/sh\n{text}\n", 0o755)
        tree.put(directory / "ansible/hosts", "[web]\nlocalhost ansible_connection=local ansible_become=false\n")

    def settings(self, text):
        tree.put(self.directory / "ansible/group_vars/web.yml", text)

    def play(self):
        """(exit status, output, the target's commands)"""
        (self.target / "commands").write_text("")
        own = {"ANSIBLE_LOCAL_TEMP": f"{self.directory}/tmp", "ANSIBLE_HOME": f"{self.directory}/home",
               "ANSIBLE_GATHERING": "explicit", "LC_ALL": "C.UTF-8",
               "PATH": f"{self.directory}/bin:{os.environ['PATH']}"}
        command = ["ansible-playbook", "-i", "hosts", "site.yml", "-e", f"flashpache_packages={self.packages}"]
        done = subprocess.run(command, cwd=self.directory / "ansible", env={**os.environ, **own}, capture_output=True,
                              text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr, (self.target / "commands").read_text().splitlines()


@pytest.fixture
def role(base):
    need("ansible-playbook")
    made = Role(base / f"role{len(list(base.glob('role*')))}")
    page = (REPO / "docs/cookbook/ansible.md").read_text()
    made.settings(re.search(r"^```\n(# group_vars/web.yml\n.*?)^```", page, re.M | re.S).group(1))
    return made


def test_the_role_as_its_page_has_it(role):
    """The page's example is what a target gets; a second run changes nothing, and later packages do."""
    status, output, (update, install, *rest) = role.play()
    assert status == 0, output
    assert update.startswith("apt-get update") and rest == ["apachectl configtest", "apachectl restart"]
    assert install.startswith("apt-get install ") and "--force-confold" in install
    assert all(f"{role.target}/var/cache/flashpache/{name}" in install.split() for name in PACKAGES)
    assert (role.target / "etc/flashpached.conf").read_text() == "ttl_ms = 3000\nworkers = 16\n"
    text = (role.target / "etc/apache2/conf-available/flashpache-site.conf").read_text()
    assert "FlashpacheEngine Shadow\n" in text
    assert f"FlashpacheDaemonConfig {role.target}/etc/flashpached.conf\n" in text
    status, output, commands = role.play()
    assert status == 0 and " changed=0 " in output and "apachectl restart" not in commands, output
    (role.target / "installed").unlink()
    status, output, commands = role.play()
    assert status == 0 and commands[-1] == "apachectl restart", output


def test_a_mistake_in_the_role_s_settings_stays_out(role):
    assert role.play()[0] == 0
    role.settings('flashpache_settings: {ttl_ms: "a while"}\n')
    status, output, commands = role.play()
    assert status != 0 and "ttl_ms" in output and "apachectl restart" not in commands
    assert (role.target / "etc/flashpached.conf").read_text().startswith("ttl_ms = 3000")


def test_a_failed_installation_is_tried_again(role):
    tree.put(role.target / "fails")
    assert role.play()[0] != 0
    (role.target / "fails").unlink()
    status, output, commands = role.play()
    assert status == 0 and any(line.startswith("apt-get install") for line in commands), output


def test_a_directory_without_packages_is_a_mistake(role):
    (role.packages / PACKAGES[1]).unlink()
    status, output, commands = role.play()
    assert status != 0 and "libapache2-mod-flashpache" in output and str(role.packages) in output and not commands


# The RPM packages

# Parts that one distribution alone has, or has in other places: by the packages' own conventions.
OWN_PLACES = re.compile(r"/usr/share/doc/|/usr/share/licenses/|/usr/share/lintian/|/etc/apache2/|/etc/httpd/|/usr/lib/.build-id")


def files_of(listing):
    """Paths of files in the form of both: without the module's directory, compression and a merged /usr."""
    made = set()
    for path in listing:
        path = re.sub(r"^/lib/", "/usr/lib/", path)
        if OWN_PLACES.search(path):
            continue
        path = re.sub(r"/usr/lib\S*/(apache2|httpd)/modules/", "modules/", path)
        path = re.sub(r"/usr/lib\S*/flashpache/mod_", "lib/flashpache/mod_", path)
        path = re.sub(r"/zsh/(site-functions|vendor-completions)/", "/zsh/", path)
        made.add(re.sub(r"\.gz$", "", path))
    return made


def test_rpm_has_what_deb_has(packages):  # noqa: F811
    need("rpmbuild", "rpm")
    run("make", "-C", str(BUILD), "rpm", "RPMBUILD_OPTIONS=--nocheck")
    rpms = [next(BUILD.glob(f"{name}-[0-9]*.rpm")) for name in ("mod_flashpache", "flashpached", "flashpache-compare")]
    debs = packages[:-1]
    in_rpms = [line for one in rpms for line in run("rpm", "-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", str(one)).splitlines()]
    in_debs = [line.split(maxsplit=5) for one in debs for line in run("dpkg-deb", "-c", str(one)).splitlines()]
    ours = files_of(line.split(" ", 1)[1] for line in in_rpms if line[0] == "-")
    theirs = files_of(fields[5].split(" -> ")[0].lstrip(".") for fields in in_debs if fields[0][0] == "-")
    assert ours == theirs, (sorted(ours - theirs), sorted(theirs - ours))
    for lines in ([line.split(" ", 1) for line in in_rpms], [(fields[0], fields[5].lstrip(".")) for fields in in_debs]):
        modes = {path: mode for mode, path in lines}
        assert modes["/usr/sbin/flashpached"] == "-rwx--x--x"
    scripts = run("rpm", "-qp", "--scripts", str(rpms[0]))
    assert "try-restart httpd.service" in scripts
    configurations = run("rpm", "-qp", "-c", *map(str, rpms)).split()
    assert [os.path.basename(path) for path in configurations] == ["10-flashpache.conf", "flashpached.conf"]
