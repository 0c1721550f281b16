# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a base directory, the built programs, and servers shared by a module's tests. Which tests
run, and which beside each other: selection.

FLASHPACHE_BUILD      build directory (default: the repository's build/)
FLASHPACHE_SELFCHECK  1: run the comparisons with a stock httpd in Flashpache's place; this tests
                      the tests
FLASHPACHE_KEEP       1: keep the base directory
FLASHPACHE_FULL       1: the full form, with the tests that are marked `full` (forms)
FLASHPACHE_LONG       1: the long forms of soak and leaks (test_soak, test_leaks; more: for so many
                      seconds) and of the flood (test_hostile_clients)
FLASHPACHE_SEED       of the soak's random faults
FLASHPACHE_FILESYSTEMS  kinds of file system (filesystems)
FLASHPACHE_VM         1: inside the virtual machine of tests/vm/run, which sets it (network_mounts)
FLASHPACHE_WATCH      ttl: as where no file system is watched (freshness)
FLASHPACHE_SANITIZE   address or thread: the build is such a one (sanitizer)
"""

import functools
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

sys.dont_write_bytecode = sys.pycache_prefix is None       # nothing into the source tree

import fault_kit  # noqa: E402
import forms  # noqa: E402
import httpd22  # noqa: E402
import machine_lock  # noqa: E402
import mount_namespace  # noqa: E402
import reliability  # noqa: E402
import sanitizer  # noqa: E402
import selection  # noqa: E402
import slowfs as slowfs_module  # noqa: E402
from daemon import Flashpached  # noqa: E402
from httpd import APACHE, Httpd, make_certificate  # noqa: E402

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
BUILD = Path(os.environ.get("FLASHPACHE_BUILD", REPO / "build")).resolve()
SELFCHECK = os.environ.get("FLASHPACHE_SELFCHECK") == "1"
MPMS = ("prefork", "worker", "event")
SHORT = 16              # bytes of the base directory's place, as a socket's path has room for 107
# Without an httpd of that generation there is nothing to compare.
collect_ignore = [] if httpd22.is_old() else ["test_httpd22.py"]
os.umask(0o022)         # whatever the umask of the caller: www-data has to read the tests' files


def pytest_report_header():
    found = ".".join(map(str, httpd22.version()))
    return None if httpd22.is_old() else f"httpd 2.2 and 2.0: not compared, as FLASHPACHE_APACHE is {found}"


def pytest_configure(config):
    mount_namespace.enter()
    selection.configure(config)
    config.addinivalue_line("markers", "needs_flashpache: compares nothing, so no self-check")
    config.addinivalue_line("markers", "not_sanitized(why): makes no sense in a sanitized build")
    config.addinivalue_line("markers", "never: no test, by parameters that do not go together")
    for name in ("full", "never"):
        config.addinivalue_line("markers", f"{name}_where(judge): {name}, where judge({{parameter: value}}) is true")
    config.addinivalue_line("markers", "reliability: tells rows of docs/reliability.md; added here")


def pytest_itemcollected(item):
    forms.mark(item)


@pytest.hookimpl(tryfirst=True)         # before xdist looks at the groups
def pytest_collection_modifyitems(config, items):
    selection.select(config, items)
    for item in items:
        if "outcome" in item.fixturenames:
            item.add_marker("reliability")
        if os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root: httpd and flashpached are "
                                             "started as root and drop to www-data"))
        elif not APACHE:
            item.add_marker(pytest.mark.skip(reason="needs apache2: no httpd found, set "
                                             "FLASHPACHE_APACHE"))
        elif SELFCHECK and item.get_closest_marker("needs_flashpache"):
            item.add_marker(pytest.mark.skip(reason="FLASHPACHE_SELFCHECK=1: stock only"))
        elif sanitizer.KIND and (marker := item.get_closest_marker("not_sanitized")):
            item.add_marker(pytest.mark.skip(reason=f"FLASHPACHE_SANITIZE: {marker.args[0]}"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    reliability.order = item.stash[selection.PLACE]
    with machine_lock.held(exclusive=bool(item.get_closest_marker("alone"))):
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    selection.plain(report)


def passable(path):
    """True if everybody may go through a directory and all above it."""
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


@functools.cache
def session_directory():
    """A directory that www-data can pass, unlike pytest's own, and with a short name without a space."""
    given = Path(tempfile.gettempdir()).resolve()
    fits = passable(given) and len(str(given)) <= SHORT and not re.search(r"[^\w./-]", str(given))
    path = Path(tempfile.mkdtemp(prefix="flashpache-", dir=given if fits else "/tmp"))
    path.chmod(0o755)
    return path


def built(name):
    """A copy of the built programs where www-data can reach it: the build may lie in a closed home."""
    if not (BUILD / name).exists():
        pytest.fail(f"{BUILD / name} is not built: run make, or set FLASHPACHE_BUILD", pytrace=False)
    copy = session_directory() / "built" / name
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(BUILD / name, copy)
        copy.chmod(0o711 if name == "backend/flashpached" else 0o755)       # as installed
    return copy


def remove_tree(path):
    """Remove what a run made, but never through a mount: that would empty its source."""
    with open("/proc/self/mountinfo") as mounts:
        left = [line.split()[4] for line in mounts if line.split()[4].startswith(f"{path}/")]
    if left:
        print(f"\nnot removed: {path}: still mounted below it: {', '.join(left)}")
        return
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def session_base():
    path = session_directory()
    sanitizer.begin(path / "sanitizer")
    yield path
    late = sanitizer.new_reports()
    if os.environ.get("FLASHPACHE_KEEP") != "1":
        remove_tree(path)
    assert not late, "\n".join(late)


@pytest.fixture(scope="module")
def base(session_base, request):
    """A module's own directory, a new one each time: the module's tests may come in several parts."""
    name = request.module.__name__.removeprefix("test_")
    names = itertools.chain([name], (f"{name}{number}" for number in itertools.count(2)))
    path = next(session_base / each for each in names if not (session_base / each).exists())
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def no_report():
    """A sanitizer's report fails the test during which it came."""
    yield
    found = sanitizer.new_reports()
    assert not found, "\n".join(found)


@pytest.fixture(scope="session")
def flashpached_program():
    built("backend/flashpachectl")          # Flashpached.counters needs it beside the daemon
    return built("backend/flashpached")


@pytest.fixture(scope="session")
def flashpachectl():
    """flashpachectl(*args, ...) runs it to its end: the completed process."""
    program = str(built("backend/flashpachectl"))

    def run(*args, **options):
        defaults = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 60,
                    **({} if "input" in options else {"stdin": subprocess.DEVNULL})}
        return subprocess.run([program, *map(str, args)], **{**defaults, **options})
    return run


@pytest.fixture
def ctl(flashpachectl, server):
    """Runs one command of flashpachectl against the daemon of a module's server; its output."""
    def run(*args, code=0):
        finished = flashpachectl("-s", server.daemon.socket, *args)
        assert finished.returncode == code, finished
        return finished.stdout
    return run


@pytest.fixture(scope="session")
def module_path():
    built("mod_flashpache/.libs/mod_flashpache_srpt.so")    # Httpd needs it beside the module
    built("backend/flashpached")                            # Httpd.check() needs it
    return built("mod_flashpache/.libs/mod_flashpache.so")


@pytest.fixture(scope="session")
def certificate(session_base):
    return make_certificate(session_base)


@pytest.fixture(scope="session")
def bodycheck_program(session_base):
    """The body comparer: the build's, or one compiled here."""
    if (BUILD / "tests/integration/bodycheck").exists():
        return built("tests/integration/bodycheck")
    program = session_base / "bodycheck"
    done = subprocess.run(["cc", "-std=c11", "-O2", "-o", program, HERE / "bodycheck.c", "-lcurl"],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip("needs libcurl4-openssl-dev and a C compiler: " + done.stderr[-300:])
    return program


@pytest.fixture
def outcome():
    """outcome(group, case, requests=N, ...) reports the outcome of a fault or an attack: reliability.Row."""
    return lambda *args, **named: reliability.tell(reliability.Row(*args, **named))


@pytest.fixture(scope="session")
def fault_root(session_base):
    return fault_kit.make_tree(session_base / "fault-tree")


@pytest.fixture
def under_load(bodycheck_program, fault_root, outcome):
    """under_load(server, case, ...): a fault or an attack on a server while clients ask it (fault_kit.Fault)."""
    return functools.partial(fault_kit.Fault, bodycheck_program, outcome, root=fault_root)


def crashes_of(server):
    """A crashed child costs one client its answer, and shows nowhere else. Tests kill some. UBSan's last words,
    unlike those of other sanitizers, stand in the log."""
    is_httpd = isinstance(server, Httpd)
    text = server.error_text() if is_httpd else server.log_text()
    return [line for line in text.splitlines() if "runtime error:" in line] + (server.crashes() if is_httpd else [])


class Lab:
    """Makes servers and daemons for one test module and ends them afterwards."""

    def __init__(self, base, request):
        self.base, self.request = base, request
        self.started = []

    def daemon(self, name="daemon", **settings):
        program = self.request.getfixturevalue("flashpached_program")
        daemon = Flashpached(self.base, name, program, **settings)
        self.started.append(daemon)
        return daemon

    def stock(self, name, docroot, **options):
        server = Httpd(self.base, name, docroot, **options)
        self.started.append(server)
        return server

    def flash(self, name, docroot, socket, **options):
        module = self.request.getfixturevalue("module_path")
        return self.stock(name, docroot, socket=socket, module=module, **options)

    def under_test(self, name, docroot, **options):
        """A started httpd with Flashpache and its own started daemon (self-check: stock)."""
        settings = options.pop("daemon_settings", {})
        if SELFCHECK:
            return self.stock(name, docroot, **options).start()
        daemon = self.daemon(name + "-daemon", **settings).start()
        server = self.flash(name, docroot, daemon.socket, **options).start()
        server.daemon = daemon
        return server

    def end(self):
        problems = []
        for one in reversed(self.started):
            try:
                one.stop()
            except Exception as problem:  # end the others too, then report it
                problems.append(problem)
            crashes = crashes_of(one)
            if crashes and getattr(one, "module", one):
                problems.append(f"{one.dir.name}: {crashes}")
            elif crashes:       # seen with 2.4.71, event and HTTP/2; nothing of ours runs in it
                warnings.warn(f"stock httpd {one.dir.name} crashed: {crashes}")
        self.started = []
        problems += sanitizer.new_reports()
        assert not problems, "\n".join(map(str, problems))


@pytest.fixture(scope="module")
def lab(base, request):
    directory = base / "lab"
    directory.mkdir()
    made = Lab(directory, request)
    yield made
    made.end()


@pytest.fixture(params=MPMS, scope="module")
def mpm(request):
    return request.param


@pytest.fixture(scope="module")
def slowfs(base):
    """Mounts slowfs, and returns the mount; skips with the reason where that is impossible."""
    reason = slowfs_module.why_not()
    if reason:
        pytest.skip(reason)
    program = built("tests/lab/slowfs/slowfs")
    mounts = []

    def mount(source, delay_us, *options):
        mounts.append(slowfs_module.Slowfs(program, source, base / f"slow{len(mounts)}", delay_us,
                                           *options))
        mounts[-1].mount()
        return mounts[-1]
    yield mount
    for one in mounts:
        one.unmount()


@pytest.fixture(scope="module")
def slow_directory(slowfs):
    """The same, and returns its directory."""
    return lambda *given: slowfs(*given).target


LOG_TAIL = 2500


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the end of its servers' logs."""
    report = (yield).get_result()
    lab_used = item.funcargs.get("lab") if hasattr(item, "funcargs") else None
    if report.failed and lab_used:
        for one in lab_used.started:
            text = one.error_text() if isinstance(one, Httpd) else one.log_text()
            report.sections.append((f"log of {one.dir.name}", text[-LOG_TAIL:]))
