# SPDX-License-Identifier: Apache-2.0
"""A real Apache 1.3, with or without Flashpache.

FLASHPACHE_APACHE is its program, FLASHPACHE_APACHE_MODULES the directory of its modules, and FLASHPACHE_BUILD a build
of this tree for its apxs.
"""

import functools
import subprocess

import sanitizer
from httpd import APACHE, MODULES_DIR, USER, Httpd

# In the order of httpd's own example: what is loaded last runs first.
MODULES = {"vhost_alias": "vhost_alias", "env": "env", "config_log": "log_config", "mime": "mime",
           "negotiation": "negotiation", "includes": "include", "autoindex": "autoindex", "dir": "dir", "cgi": "cgi",
           "asis": "asis", "action": "actions", "userdir": "userdir", "alias": "alias", "rewrite": "rewrite",
           "access": "access", "auth": "auth", "expires": "expires", "headers": "headers", "setenvif": "setenvif"}
MIME_TYPES = "text/html html\ntext/plain txt\ntext/css css\nimage/png png\napplication/octet-stream bin\n"
PASSWORD = "reader:$5$flashpache$i4Ijg7LPayW.yJAjrmsin7srj2H8PZikawJWea6j6Y2\n"       # secret
LOG_FORMAT = r"%{X-Test}i\t%{flashpache}n\t%{flashpache-reason}n\t%{flashpache-us}n" \
             r"\t%>s\t%b\t%m\t%U\t%f\t%H"


@functools.cache
def is_given():
    """True if the httpd that the tests start is an Apache 1.3."""
    return bool(APACHE) and "Apache/1.3." in subprocess.run([APACHE, "-v"], capture_output=True, text=True, timeout=30).stdout


class Httpd13(Httpd):
    """As Httpd, in prefork mode, the only one of Apache 1.3. children: how many there are, always."""

    def __init__(self, base, name, docroot, *, children=4, **options):
        super().__init__(base, name, docroot, mpm="prefork", **options)
        self.children = children
        (self.dir / "mime.types").write_text(MIME_TYPES)

    def _load_modules(self):
        lines = [f"LoadModule {symbol}_module {MODULES_DIR}/mod_{file}.so" for symbol, file in MODULES.items()]
        if self.module:
            lines.append(f"LoadModule flashpache_module {self.module}")
        return "\n".join(lines)

    def config_text(self):
        ours = f"FlashpacheSocket {self.socket}\nFlashpacheEngine On\n" if self.socket else ""
        log_format = LOG_FORMAT.replace("\\t", "\t")
        return f"""ServerRoot {self.dir}
{self._load_modules()}
PidFile {self.dir}/httpd.pid
ScoreBoardFile {self.dir}/scoreboard
LockFile {self.dir}/lock
User {USER}
Group {USER}
ServerName localhost
Port {self.port}
BindAddress 127.0.0.1
StartServers {self.children}
MinSpareServers {self.children}
MaxSpareServers {self.children}
MaxClients 64
MaxRequestsPerChild 0
Timeout 30
KeepAliveTimeout 30
MaxKeepAliveRequests 0
ErrorLog {self.error_log}
LogLevel warn
LogFormat "{log_format}" flashpache
CustomLog {self.access_log} flashpache
TypesConfig {self.dir}/mime.types
DocumentRoot {self.docroot}
DirectoryIndex index.html
<Location /flashpache-status>
    SetHandler flashpache-status
</Location>
{ours}{self.config}
"""

    def _spawn(self):
        # With -F the parent makes a session of its own, for which it may not have one yet.
        with open(self.dir / "start.log", "ab") as out:
            self.process = subprocess.Popen([*self.around, APACHE, "-F", "-f", str(self.write_config())],
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            env=sanitizer.environment())
