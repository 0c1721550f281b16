# SPDX-License-Identifier: Apache-2.0
"""A real Apache httpd in a directory of its own, with or without Flashpache."""

import grp
import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections import namedtuple
from pathlib import Path

import procs
import sanitizer
from ports import free_port
from waiting import wait_for

APACHE = os.environ.get("FLASHPACHE_APACHE") or shutil.which("apache2") or shutil.which("httpd") or ""
MODULES_DIR = Path(os.environ.get("FLASHPACHE_APACHE_MODULES", "/usr/lib/apache2/modules"))
USER = os.environ.get("FLASHPACHE_USER", "www-data")
MODULES = """access_compat alias asis auth_basic authn_core authn_file authz_core authz_host
authz_user autoindex deflate dir env expires filter headers include mime negotiation
reqtimeout rewrite setenvif substitute""".split()
MPM_LIMITS = {
    "prefork": "StartServers 4\nMinSpareServers 4\nMaxSpareServers 80\n"
               "ServerLimit 96\nMaxRequestWorkers 96\n",
    "worker": "StartServers 2\nServerLimit 2\nThreadLimit 48\nThreadsPerChild 48\n"
              "MinSpareThreads 1\nMaxSpareThreads 96\nMaxRequestWorkers 96\n",
    "event": "StartServers 2\nServerLimit 2\nThreadLimit 48\nThreadsPerChild 48\n"
             "MinSpareThreads 1\nMaxSpareThreads 96\nMaxRequestWorkers 96\n",
}
MIME_TYPES = """text/html html htm shtml
text/plain txt
text/css css
image/png png
application/octet-stream bin
application/pdf pdf
"""
LOG_FIELDS = "tag note reason us status size method url filename protocol"
LOG_FORMAT = r"%{X-Test}i\t%{flashpache}n\t%{flashpache-reason}n\t%{flashpache-us}n" \
             r"\t%>s\t%B\t%m\t%U%q\t%f\t%H"
START = "start"             # the tag of start()'s own requests, which may be logged after it has returned
# The module's notes for answers without a question to any file system.
HITS = {"hit", "lease"}

Entry = namedtuple("Entry", LOG_FIELDS)


def load_modules(names, directory=MODULES_DIR):
    """LoadModule lines for those that are not compiled into this httpd: it has no file of these."""
    return [f"LoadModule {name}_module {directory}/mod_{name}.so" for name in names
            if (Path(directory) / f"mod_{name}.so").exists()]


def make_certificate(directory):
    """A self-made certificate for localhost: (certificate, key)."""
    cert, key = directory / "cert.pem", directory / "key.pem"
    if not cert.exists():
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
    return cert, key


class Httpd:
    """One server. Its files are in <base>/<name>; start() returns when it answers.

    socket: the daemon's socket, or None for a stock server; module: mod_flashpache.so.
    config: text for the main server, which every vhost inherits.
    vhosts: [(names, text)]; the first is the default of every port.
    admission: FlashpacheAdmission, where the module is loaded. By 1 each path that the daemon does not know is asked
    about; None: its default.
    tls: (certificate, key) opens a second port; http2 offers h2 there, and h2c on a third.
    """

    def __init__(self, base, name, docroot, *, mpm="event", socket=None, module=None, config="",
                 vhosts=None, tls=None, http2=False, limits=None, extra_modules=(), around=(), admission=1):
        self.dir = Path(base) / name
        self.docroot = Path(docroot)
        self.name, self.mpm, self.socket, self.module = name, mpm, socket, module
        self.config, self.tls, self.http2 = config, tls, http2
        self.vhosts = vhosts or [(["localhost"], "")]
        self.limits = limits if limits is not None else MPM_LIMITS[mpm]
        self.extra_modules = extra_modules
        self.admission = admission
        self.around = list(around)      # a command that starts the server, as some user or in some namespace
        self.process = None
        self.end_of_log = None
        self.port = self.tls_port = self.h2c_port = None
        self.dir.mkdir(parents=True)
        (self.dir / "mime.types").write_text(MIME_TYPES)
        self.access_log, self.error_log = self.dir / "access.log", self.dir / "error.log"

    # Configuration

    def _load_modules(self):
        names = ["mpm_" + self.mpm, *MODULES, *self.extra_modules]
        names += ["ssl", "socache_shmcb"] if self.tls else []
        names += ["http2"] if self.http2 else []
        lines = [f"LoadModule {n}_module {MODULES_DIR}/mod_{n}.so" for n in names]
        if self.module:
            lines.append(f"LoadModule flashpache_module {self.module}")
        if self.module and any(word in f"{self.config}{self.vhosts}" for word in ("FlashpacheSchedule", "FlashpachePrio")):
            lines.append(f"LoadModule flashpache_srpt_module {Path(self.module).with_name('mod_flashpache_srpt.so')}")
        return "\n".join(lines)

    def _vhost(self, port, names, text, extra=""):
        aliases = "".join(f"ServerAlias {n}\n" for n in names[1:])
        return (f"<VirtualHost 127.0.0.1:{port}>\nServerName {names[0]}:{8080}\n{aliases}"
                f"{extra}{text}\n</VirtualHost>\n")

    def _ports(self):
        """(port, text for its vhosts) of each port."""
        ports = [(self.port, "")]
        if self.tls:
            h2 = "Protocols h2 http/1.1\n" if self.http2 else ""
            ports.append((self.tls_port, f"SSLEngine on\nSSLCertificateFile {self.tls[0]}\n"
                                         f"SSLCertificateKeyFile {self.tls[1]}\n{h2}"))
        if self.http2:
            ports.append((self.h2c_port, "Protocols h2c http/1.1\n"))
        return ports

    def config_text(self):
        ours = f"FlashpacheSocket {self.socket}\nFlashpacheEngine On\n" if self.socket else ""
        if self.module and self.admission:
            ours += f"FlashpacheAdmission {self.admission}\n"
        listen = "".join(f"Listen 127.0.0.1:{port}\n" for port, _ in self._ports())
        vhosts = "".join(self._vhost(port, names, text, extra)
                         for port, extra in self._ports() for names, text in self.vhosts)
        return f"""{self._load_modules()}
ServerRoot {self.dir}
DefaultRuntimeDir {self.dir}
PidFile {self.dir}/httpd.pid
Mutex file:{self.dir}
User {USER}
Group {USER}
ServerName localhost
{listen}{self.limits}
ErrorLog {self.error_log}
LogLevel warn core:notice mpm_{self.mpm}:notice{" ssl:error" if self.tls else ""}
LogFormat "{LOG_FORMAT}" flashpache
CustomLog {self.access_log} flashpache
TypesConfig {self.dir}/mime.types
DocumentRoot {self.docroot}
Timeout 30
KeepAliveTimeout 30
MaxKeepAliveRequests 0
<Directory />
    AllowOverride None
    Require all denied
</Directory>
<Directory {self.docroot}>
    Options FollowSymLinks
    Require all granted
</Directory>
{ours}{self.config}
{vhosts}"""

    def _new_ports(self):
        self.port = free_port()
        self.tls_port = free_port() if self.tls else None
        self.h2c_port = free_port() if self.http2 else None

    def write_config(self):
        self._new_ports()
        path = self.dir / "httpd.conf"
        path.write_text(self.config_text())
        return path

    def check(self):
        """apache2 -t with this configuration: the completed process. A configuration without a flashpached program
        gets the one built beside the module."""
        ours = f"{self.config}{self.vhosts}"
        program = Path(self.module).parents[2] / "backend/flashpached" if self.module else None
        more = ["-c", f"FlashpacheDaemonProgram {program}"] if program and "FlashpacheDaemonProgram" not in ours else []
        return subprocess.run([APACHE, "-t", "-f", str(self.write_config()), *more],
                              capture_output=True, text=True, timeout=30,
                              env=sanitizer.environment())

    # Life

    def start(self):
        for attempt in range(3):
            self._spawn()
            try:
                wait_for(self._answers, f"httpd {self.name} to answer", 30)
                return self
            except ChildProcessError:
                if attempt == 2 or "could not bind" not in self.error_text():
                    raise
        return self

    def _spawn(self):
        out = open(self.dir / "start.log", "ab")
        # A session of its own: prefork ends its whole process group on SIGTERM.
        self.process = subprocess.Popen([*self.around, APACHE, "-DFOREGROUND", "-f", str(self.write_config())],
                                        stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                        start_new_session=True,
                                        env=sanitizer.environment())
        out.close()

    def _answers(self):
        if self.process.poll() is not None:
            raise ChildProcessError(f"httpd {self.name} ended at start: {self.error_text()}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as conn:
                conn.sendall(f"OPTIONS * HTTP/1.0\r\nX-Test: {START}\r\n\r\n".encode())
                return conn.recv(12) != b""
        except OSError:
            return False

    def graceful(self):
        """SIGUSR1, and wait until the new generation is up."""
        before = self.error_text().count("resuming normal operations")
        self.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: self.error_text().count("resuming normal operations") > before,
                 "the graceful restart")

    def stop(self):
        if self.process is None:
            return
        sanitizer.look_for_leaks(self.process.pid)
        self.end_of_log = len(self.error_text())
        procs.end(self.process)
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def pids(self):
        """The parent and its children."""
        return [self.process.pid, *procs.children(self.process.pid)]

    def url(self, path="", tls=False):
        return (f"https://localhost:{self.tls_port}" if tls else f"http://localhost:{self.port}") + path

    # Logs

    def crashes(self):
        """Lines of the log that report crashes. A child of stock event may crash at its end, after a connection has
        just ended. The MPM itself does so in 3 of 100 cases, with and without Flashpache; these lines are left
        out."""
        text = self.error_text()
        lines = text[:self.end_of_log].splitlines()
        if self.end_of_log is not None:
            lines += [line for line in text[self.end_of_log:].splitlines()
                      if self.mpm != "event" or "Segmentation fault" not in line]
        return [line for line in lines if "exit signal" in line and "Killed (9)" not in line]

    def error_text(self):
        texts = [p.read_text(errors="replace") for p in (self.dir / "start.log", self.error_log)
                 if p.exists()]
        return "".join(texts)

    def mark(self):
        """The end of the access log's last whole line now, for entries(since=...)."""
        text = self.access_log.read_bytes() if self.access_log.exists() else b""
        return text.rfind(b"\n") + 1

    def entries(self, since=0, tag=None):
        """Access-log entries after a mark, of one tag (the request's X-Test header); without one, of all but start()."""
        # One read: line by line, a line could come in two while httpd writes it.
        text = self.access_log.read_bytes()[since:]
        whole = text[:text.rfind(b"\n") + 1].decode(errors="replace")
        rows = [Entry(*line.split("\t")) for line in whole.split("\n")[:-1]]
        return [e for e in rows if e.tag == tag or (tag is None and e.tag != START)]

    def wait_entries(self, count, since=0, tag=None, **bound):
        """The entries, once there are `count`: httpd writes the log after the response."""
        def enough():
            found = self.entries(since, tag)
            return found if len(found) >= count else None
        return wait_for(enough, f"{count} access-log entries of {self.name}", **bound)


def user_ids():
    """(uid, gid) of the children."""
    entry = pwd.getpwnam(USER)
    return entry.pw_uid, entry.pw_gid


def group():
    """The name of the children's group: Debian's nobody, for example, is in nogroup."""
    return grp.getgrgid(user_ids()[1]).gr_name
