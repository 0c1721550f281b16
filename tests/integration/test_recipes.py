# SPDX-License-Identifier: Apache-2.0
"""What conf/ has for other tools: the image and its containers, the pod, the role, the policy; and RPM packages."""

import json
import os
import re
import shutil
import subprocess

import pytest

import procs
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
        """Its first process, as text; there is none in the first moment."""
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


def test_the_role_is_valid_and_its_settings_are_the_daemons(base):
    need("ansible-playbook")
    own = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(base / "ansible"), "ANSIBLE_HOME": str(base / "ansible"), "LC_ALL": "C.UTF-8"}
    run("ansible-playbook", "--syntax-check", "-i", "localhost,", str(REPO / "conf/ansible/site.yml"), env=own)
    # Its two files are made as a run would make them, without the rest of the role.
    tasks = yaml().safe_load((REPO / "conf/ansible/roles/flashpache/tasks/main.yml").read_text())
    wanted = [task for task in tasks if "content" in task.get("ansible.builtin.copy", {})]
    assert len(wanted) == 2
    for number, task in enumerate(wanted):
        task["ansible.builtin.copy"]["dest"] = str(base / f"made{number}")
        task.pop("notify")
        if "validate" in task["ansible.builtin.copy"]:
            check = task["ansible.builtin.copy"]["validate"]
            task["ansible.builtin.copy"]["validate"] = check.replace("flashpached", str(BUILD / "backend/flashpached"))
    play = [{"hosts": "all", "connection": "local", "gather_facts": False, "tasks": wanted,
             "vars": {"flashpache_engine": "Shadow", "flashpache_settings": {"ttl_ms": "3000", "user": '"www-data"'}}}]
    (base / "play.yml").write_text(yaml().safe_dump(play, width=1000))
    run("ansible-playbook", "-i", "localhost,", str(base / "play.yml"), env=own)
    assert (base / "made0").read_text() == 'ttl_ms = 3000\nuser = "www-data"\n'
    text = (base / "made1").read_text()
    assert "FlashpacheEngine Shadow" in text and "FlashpacheDaemonConfig /etc/flashpached.conf" in text
    # A mistake stays out.
    play[0]["vars"]["flashpache_settings"] = {"ttl_ms": "a while"}
    (base / "play.yml").write_text(yaml().safe_dump(play, width=1000))
    done = subprocess.run(["ansible-playbook", "-i", "localhost,", str(base / "play.yml")], capture_output=True, text=True,
                          timeout=300, env=own)
    assert done.returncode != 0 and "ttl_ms" in done.stdout
    assert (base / "made0").read_text().startswith("ttl_ms = 3000")


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
