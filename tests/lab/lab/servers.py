# SPDX-License-Identifier: Apache-2.0
"""The compared servers, each as its makers advise for static files, and the papers' names for their architectures.

A Server is started and stopped; it has host, port, pids() and its configuration.
"""

import array
import os
import subprocess
from collections import namedtuple
from pathlib import Path

import httpd as httpd_tests
import procs
from daemon import Flashpached
from waiting import wait_for

from lab import BUILD, Impossible, machine, program

MODULE = program("mod_flashpache/.libs/mod_flashpache.so", "FLASHPACHE_MODULE")
DAEMON = program("backend/flashpached", "FLASHPACHE_DAEMON")
ARCHSERVER = program("tests/lab/archserver/archserver", "FLASHPACHE_ARCHSERVER")
# Debian has unixd (User, Group) and log_config (LogFormat) compiled in; Fedora and the makers' own httpd have files.
APACHE_MODULES = ["unixd", "log_config", "alias", "authz_core", "authz_host", "dir", "mime"]
THREADS_PER_CHILD = 64
# Descriptors that nginx needs beside connections and its open_file_cache.
SPARE_DESCRIPTORS = 512
Kind = namedtuple("Kind", "maker options architecture")


class Place:
    """The servers' surroundings: document root, address, directory, prefixes of commands."""

    def __init__(self, directory, docroot, *, host="127.0.0.1", connections=1024,
                 server_prefix=(), client_prefix=(), site_config=None, pages=""):
        """site_config: an operator's own configuration for httpd, in place of the lab's. pages: httpd's lines on who
        makes pages."""
        self.site_config, self.pages = site_config, pages
        self.directory, self.docroot, self.host = Path(directory), Path(docroot), host
        self.connections = connections
        self.client_prefix = list(client_prefix)
        self.server_prefix = [*server_prefix, *machine.on_processors(machine.server_processors())]

    def answers(self, port):
        """True if a server listens there, by a connection from the client's place."""
        done = subprocess.run([*self.client_prefix, "python3", "-c", "import socket, sys; "
                               "socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)",
                               self.host, str(port)], capture_output=True)
        return done.returncode == 0


class Apache(httpd_tests.Httpd):
    """httpd without logs and with as many workers as connections."""

    def __init__(self, place, key, mpm, override, *, sendfile=False, socket=None, extra=""):
        self.place, self.override, self.sendfile = place, override, sendfile
        super().__init__(place.directory, key, place.docroot, mpm=mpm, socket=socket,
                         module=MODULE if socket else None, config=extra,
                         limits=limits(mpm, place.connections))
        self.host = place.host

    def _load_modules(self):
        lines = httpd_tests.load_modules(["mpm_" + self.mpm, *APACHE_MODULES])
        return "\n".join(lines + ([f"LoadModule flashpache_module {self.module}"] if self.module else []))

    def config_text(self):
        ours = f"FlashpacheSocket {self.socket}\nFlashpacheEngine On\n" if self.socket else ""
        if self.place.site_config:
            load = f"LoadModule flashpache_module {self.module}\n" if self.module else ""
            return self.place.pages + self.place.site_config.text(self.dir, self.place.host, self.port) + load + ours
        return f"""{self._load_modules()}
ServerRoot {self.dir}
DefaultRuntimeDir {self.dir}
PidFile {self.dir}/httpd.pid
Mutex pthread
User {httpd_tests.USER}
Group {httpd_tests.group()}
ServerName localhost
Listen {self.place.host}:{self.port}
ListenBacklog 4096
{self.limits}ErrorLog {self.error_log}
LogLevel warn
TypesConfig {self.dir}/mime.types
DocumentRoot {self.docroot}
KeepAlive On
MaxKeepAliveRequests 0
Timeout 60
EnableSendfile {"On" if self.sendfile else "Off"}
<Directory />
    AllowOverride None
    Require all denied
</Directory>
<Directory {self.docroot}>
    Options FollowSymLinks
    AllowOverride {self.override}
    Require all granted
</Directory>
{self.place.pages}{ours}{self.config}
"""

    def _spawn(self):
        command = [*self.place.server_prefix, httpd_tests.APACHE, "-DFOREGROUND", "-f",
                   str(self.write_config())]
        self.process = spawn(command, self.dir / "start.log")

    def _answers(self):
        if self.process.poll() is not None:
            raise ChildProcessError(f"{self.name} ended at start: {self.error_text()}")
        return self.place.answers(self.port)

    def configuration(self):
        return self.config_text()


def limits(mpm, connections):
    """All workers from the start, and never fewer."""
    if mpm == "prefork":
        count = connections + 32
        return (f"ServerLimit {count}\nMaxRequestWorkers {count}\nStartServers {count}\n"
                f"MinSpareServers 1\nMaxSpareServers {count}\nMaxConnectionsPerChild 0\n")
    children = -(-connections // THREADS_PER_CHILD) + 1
    count = children * THREADS_PER_CHILD
    return (f"ThreadsPerChild {THREADS_PER_CHILD}\nServerLimit {children}\n"
            f"MaxRequestWorkers {count}\nStartServers {children}\n"
            f"MinSpareThreads 1\nMaxSpareThreads {count}\nMaxConnectionsPerChild 0\n")


def spawn(command, log):
    """In a session of its own: prefork ends its whole process group on SIGTERM."""
    with open(log, "ab") as out:
        return subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=out,
                                stderr=out, start_new_session=True)


def check_runs(process, name):
    if process.poll() is not None:
        raise ChildProcessError(f"{name} ended while it was measured, by {process.returncode} (the kernel's log says "
                                "whether memory was short)")


class StockApache:
    def __init__(self, place, key, **options):
        self.httpd = Apache(place, key, **options)
        self.host = place.host

    def start(self):
        self.httpd.start()
        return self

    def check(self):
        """Raises if the server was not whole to the end: then what was measured is another server's."""
        check_runs(self.httpd.process, "httpd")

    def daemon_counters(self):
        return {}

    def turns(self):
        """{ready events: turns of an event loop that found so many}, where that is counted."""
        return {}

    def stop(self):
        self.httpd.stop()

    @property
    def port(self):
        return self.httpd.port

    def pids(self):
        return [self.httpd.process.pid, *procs.descendants(self.httpd.process.pid)]

    def configuration(self):
        return self.httpd.configuration()


class LabDaemon(Flashpached):
    """flashpached on the servers' processors, in the rig's cgroup or namespace."""

    def __init__(self, place, name, **settings):
        super().__init__(place.directory, name, DAEMON, **settings)
        self.place = place

    def command(self, *args):
        return [*self.place.server_prefix, *super().command(*args)]


class Flashpache(StockApache):
    """The same httpd, with the module and a daemon of its own."""

    def __init__(self, place, key, **options):
        if not MODULE.exists() or not DAEMON.exists():
            raise Impossible(f"Flashpache is not built in {BUILD}: run make, or set FLASHPACHE_BUILD")
        self.daemon = LabDaemon(place, "daemon")
        super().__init__(place, key, socket=self.daemon.socket, **options)

    def start(self):
        self.daemon.start()
        return super().start()

    def check(self):
        super().check()
        check_runs(self.daemon.process, "flashpached")

    def stop(self):
        super().stop()
        self.daemon.stop()

    def pids(self):
        return super().pids() + self.daemon.family()

    def daemon_counters(self):
        return self.daemon.counters()

    def configuration(self):
        return super().configuration() + "\n# flashpached.conf\n" + self.daemon.config.read_text()


class Other:
    """A server that is one command and one file of configuration."""

    def __init__(self, place, key, **options):
        self.place, self.key, self.options = place, key, options
        self.host = place.host
        self.dir = place.directory / key
        self.dir.mkdir(parents=True)
        # lighttpd opens its log after it has become this user.
        os.chown(self.dir, *httpd_tests.user_ids())
        self.port, self.process = None, None

    def start(self):
        self.port = httpd_tests.free_port()
        path = self.dir / "server.conf"
        path.write_text(self.configuration())
        self.process = spawn([*self.place.server_prefix, *self.command(path)], self.dir / "start.log")
        wait_for(self._answers, f"{self.key} to answer", 30)
        return self

    def _answers(self):
        if self.process.poll() is not None:
            raise ChildProcessError(f"{self.key} ended at start: " + (self.dir / "start.log").read_text())
        return self.place.answers(self.port)

    def stop(self):
        if self.process is None:
            return
        procs.end(self.process)
        self.process = None

    def check(self):
        check_runs(self.process, self.key)

    def pids(self):
        return [self.process.pid, *procs.descendants(self.process.pid)]

    def daemon_counters(self):
        return {}

    def turns(self):
        return {}


class Nginx(Other):
    def command(self, path):
        return ["nginx", "-p", self.dir, "-c", path, "-e", self.dir / "error.log"]

    def configuration(self):
        files = min(100_000, machine.descriptor_limit() - 2 * self.place.connections - SPARE_DESCRIPTORS)
        cache = (f"open_file_cache max={files} inactive=600s;\nopen_file_cache_valid 3s;\n"
                 "open_file_cache_min_uses 1;\nopen_file_cache_errors on;\n")
        return f"""daemon off;
worker_processes {self.options.get("workers", 1)};
worker_rlimit_nofile {machine.descriptor_limit()};
user {httpd_tests.USER};
pid {self.dir}/nginx.pid;
error_log {self.dir}/error.log;
events {{ worker_connections {2 * self.place.connections + 64}; }}
http {{
access_log off;
sendfile on;
tcp_nopush on;
keepalive_requests 1000000;
default_type text/plain;
client_body_temp_path {self.dir}/body;
proxy_temp_path {self.dir}/proxy;
fastcgi_temp_path {self.dir}/fastcgi;
uwsgi_temp_path {self.dir}/uwsgi;
scgi_temp_path {self.dir}/scgi;
{"aio threads;" if self.options.get("aio") else ""}
{cache if self.options.get("cache") else ""}
server {{ listen {self.place.host}:{self.port} backlog=4096; root {self.place.docroot}; }}
}}
"""


class Lighttpd(Other):
    def command(self, path):
        return ["lighttpd", "-D", "-f", path]

    def configuration(self):
        return f"""server.document-root = "{self.place.docroot}"
server.bind = "{self.place.host}"
server.port = {self.port}
server.username = "{httpd_tests.USER}"
server.groupname = "{httpd_tests.USER}"
server.errorlog = "{self.dir}/error.log"
server.max-fds = {min(machine.descriptor_limit(), 4 * self.place.connections + SPARE_DESCRIPTORS)}
server.max-connections = {2 * self.place.connections}
server.max-keep-alive-requests = 1000000
server.listen-backlog = 4096
server.stat-cache-engine = "{self.options["engine"]}"
mimetype.assign = ( "" => "text/plain" )
"""


class ArchServer(Other):
    """tests/lab/archserver: all but the architecture is the same. It keeps opened files, as nginx's open_file_cache
    does."""

    def command(self, path):
        return [ARCHSERVER, *path.read_text().split()]

    def configuration(self):
        if not ARCHSERVER.exists():
            raise Impossible(f"{ARCHSERVER} is not built: run make, or set FLASHPACHE_BUILD")
        arch, connections = self.options["arch"], 2 * self.place.connections
        if arch in ("mp", "mt"):        # as many workers, as prefork has
            connections = self.place.connections + 32
        files = min(100_000, machine.descriptor_limit() - 2 * connections - SPARE_DESCRIPTORS)
        return (f"--arch {arch} {self.options.get('more', '')} --connections {connections} --cache-entries {files}\n"
                f"--root {self.place.docroot} --host {self.place.host} --port {self.port} --turns {self.dir}/turns\n")

    def turns(self):
        counts = array.array("Q", (self.dir / "turns").read_bytes())
        return {ready: count for ready, count in enumerate(counts) if count}


def apache_kinds():
    """{key: Kind} of stock Apache and Flashpache on every MPM, with AllowOverride None and All."""
    architecture = {"prefork": "MP: a process for each connection",
                    "worker": "MT: a thread for each connection",
                    "event": "MT with an event thread for idle connections (hybrid)"}
    kinds = {}
    for mpm, text in architecture.items():
        for override in ("None", "All"):
            options = {"mpm": mpm, "override": override}
            kinds[f"stock-{mpm}-{override}"] = Kind(StockApache, options, text)
            kinds[f"flash-{mpm}-{override}"] = Kind(
                Flashpache, options, text.split(":")[0].split(" ")[0] + " with an AMPED daemon for names and descriptors")
    for who, maker in (("stock", StockApache), ("flash", Flashpache)):
        kinds[f"{who}-prefork-None-sendfile"] = Kind(
            maker, {"mpm": "prefork", "override": "None", "sendfile": True}, "as above, EnableSendfile On")
    return kinds


def other_kinds():
    several = max(4, 2 * len(machine.server_processors()))
    return {
        "nginx-1": Kind(Nginx, {}, "SPED: one event-driven process"),
        "nginx-1-cache": Kind(Nginx, {"cache": True}, "SPED that keeps descriptors (as Flash's caches)"),
        "nginx-n": Kind(Nginx, {"workers": several}, f"SYMPED: {several} event-driven processes"),
        "nginx-n-cache": Kind(Nginx, {"workers": several, "cache": True},
                              "SYMPED that keeps descriptors"),
        "nginx-aio": Kind(Nginx, {"aio": True}, "AMPED for data, not for names: threads read"),
        "nginx-aio-cache": Kind(Nginx, {"aio": True, "cache": True},
                                "AMPED for data, names and descriptors kept"),
        "lighttpd-simple": Kind(Lighttpd, {"engine": "simple"}, "SPED, stat cache of 1 s"),
        "lighttpd-inotify": Kind(Lighttpd, {"engine": "inotify"}, "SPED, stat cache kept by inotify"),
    }


def arch_kinds():
    """One server with each architecture of the papers (tests/lab/archserver), as the papers' servers send and keep."""
    knot, userver = "MT (Knot)", "SYMPED (userver)"
    return {
        "arch-mp": Kind(ArchServer, {"arch": "mp"}, "MP (Apache 1.3): mmap, keeps nothing"),
        "arch-mt": Kind(ArchServer, {"arch": "mt"}, f"{knot}: blocking sendfile, keeps descriptors"),
        "arch-mt-content": Kind(ArchServer, {"arch": "mt", "more": "--cache content"}, f"{knot}: keeps 64 MiB of contents"),
        "arch-sped": Kind(ArchServer, {"arch": "sped"}, "SPED (userver, one process)"),
        "arch-symped": Kind(ArchServer, {"arch": "symped"}, f"{userver}: 8 loops, non-blocking sendfile"),
        "arch-symped-blocking": Kind(ArchServer, {"arch": "symped", "more": "--send blocking-sendfile --workers 100"},
                                     f"{userver}: 100 loops, blocking sendfile"),
        "arch-shared-symped": Kind(ArchServer, {"arch": "shared-symped"}, f"shared-{userver}: one cache of descriptors"),
        "arch-amped": Kind(ArchServer, {"arch": "amped"}, "AMPED (Flash): mmap, mincore, 8 helpers"),
        "arch-new-flash": Kind(ArchServer, {"arch": "new-flash"}, "AMPED (New-Flash): helpers pass descriptors"),
        "arch-pipeline": Kind(ArchServer, {"arch": "pipeline"}, "pipeline (WatPipe, Haboob): a stage for what blocks"),
    }


def site_kinds():
    """httpd with an operator's own configuration."""
    options = {"mpm": "event", "override": "All"}
    return {"stock-site": Kind(StockApache, options, "as its configuration says"),
            "flash-site": Kind(Flashpache, options, "the same with an AMPED daemon for names and descriptors")}


def kinds():
    return {**apache_kinds(), **other_kinds(), **arch_kinds(), **site_kinds()}


def make(key, place):
    kind = kinds()[key]
    return kind.maker(place, key, **kind.options)
