# SPDX-License-Identifier: Apache-2.0
"""A real httpd 2.2 or 2.0, or 2.4 before 2.4.7, with or without Flashpache, and the configuration of its comparison.

FLASHPACHE_APACHE is its program, FLASHPACHE_APACHE_MODULES the directory of its modules, and FLASHPACHE_BUILD a build
of this tree for its apxs.
"""

import functools
import os
import re
import subprocess

from httpd import APACHE, LOG_FORMAT, MODULES_DIR, USER, Httpd

# Those of these that the server was built with are loaded.
MODULES = """access authz_host authn_file authz_user authz_default auth_basic auth unixd access_compat authn_core
authz_core log_config alias asis autoindex deflate dir env expires headers include mime negotiation rewrite
setenvif""".split()
OPEN = "Order allow,deny\nAllow from all"
CLOSED = "Order allow,deny\nDeny from all"
LIMITS = {
    "prefork": "StartServers {0}\nMinSpareServers {0}\nMaxSpareServers {0}\nServerLimit 64\nMaxClients {1}\n",
    "worker": "StartServers 1\nServerLimit 2\nThreadLimit 32\nThreadsPerChild 32\nMinSpareThreads 1\n"
              "MaxSpareThreads 64\nMaxClients 64\n",
}
CONFIGURATIONS = ("none", "all", "owner", "nolinks", "sections", "unset")


def run(*args):
    return subprocess.run([APACHE, *args], capture_output=True, text=True, timeout=30).stdout


@functools.cache
def version():
    """(2, 2, 34) of FLASHPACHE_APACHE."""
    found = re.search(r"Apache/(\d+)\.(\d+)\.(\d+)", run("-v")) if APACHE else None
    return tuple(map(int, found.groups())) if found else (0, 0, 0)


def is_old():
    """True if the httpd that the tests start is one that the glue of httpd22/ serves."""
    return (2, 0, 42) <= version() < (2, 4, 7)


@functools.cache
def mpm():
    return "worker" if re.search(r"worker", run("-V")) else "prefork"


def old_text(text):
    """An access file or a section in the words of these servers."""
    return text.replace("Require all granted", OPEN).replace("Require all denied", CLOSED)


class OldHttpd(Httpd):
    """As Httpd, whose options it takes; children: how many processes serve."""

    def __init__(self, base, name, docroot, *, children=4, most=32, **options):
        super().__init__(base, name, docroot, mpm=mpm(), **options)
        self.limits = LIMITS[self.mpm].format(children, most)

    def _load_modules(self):
        static = run("-l")
        present = [n for n in MODULES if (MODULES_DIR / f"mod_{n}.so").exists() and f"mod_{n}.c" not in static]
        lines = [f"LoadModule {n}_module {MODULES_DIR}/mod_{n}.so" for n in present]
        return "\n".join(lines + [f"LoadModule flashpache_module {self.module}"] * bool(self.module))

    def config_text(self):
        ours = f"FlashpacheSocket {self.socket}\nFlashpacheEngine On\nFlashpacheAdmission 2\n" if self.socket else ""
        vhosts = "".join(self._vhost(self.port, names, text) for names, text in self.vhosts)
        return f"""{self._load_modules()}
ServerRoot {self.dir}
PidFile {self.dir}/httpd.pid
{f"Mutex file:{self.dir}" if version() >= (2, 4) else f"LockFile {self.dir}/accept.lock"}
User {USER}
Group {USER}
ServerName localhost
Listen 127.0.0.1:{self.port}
{"" if version() >= (2, 4) else f"NameVirtualHost 127.0.0.1:{self.port}"}
{self.limits}
ErrorLog {self.error_log}
LogLevel warn
LogFormat "{LOG_FORMAT}" flashpache
CustomLog {self.access_log} flashpache
TypesConfig {self.dir}/mime.types
DefaultType text/plain
DocumentRoot {self.docroot}
Timeout 30
KeepAlive On
KeepAliveTimeout 30
MaxKeepAliveRequests 100
<Directory />
    Options FollowSymLinks
    {OPEN}
</Directory>
{ours}{self.config}
{vhosts}"""


def main(www, outside):
    """Text for the main server of the comparison: every virtual host inherits it."""
    def directory(name, text):
        return f"<Directory {www}/{name}>\n{text}\n</Directory>\n"
    return "\n".join([
        f"Alias /alias {outside}/alias",
        f"AliasMatch ^/match/(.*)$ {outside}/alias/$1",
        "Redirect /gone-away http://parity.test:8080/plain.txt",
        "DirectoryIndex index.html index2.html",
        "AddLanguage en .en\nAddLanguage de .de\nLanguagePriority en de\nForceLanguagePriority Prefer Fallback",
        "AddHandler type-map .var\nAddHandler send-as-is .asis",
        "AddType text/html .shtml\nAddOutputFilter INCLUDES .shtml",
        f'<FilesMatch "^\\.ht">\n{CLOSED}\n</FilesMatch>',
        f'<Location "/location">\n{CLOSED}\n</Location>',
        directory("listing", "Options +Indexes\nIndexOptions FancyIndexing"),
        directory("emptydir", "Options +Indexes"),
        directory("noslash", "DirectorySlash Off"),
        directory("pathinfo-on", "AcceptPathInfo On"),
        directory("pathinfo-off", "AcceptPathInfo Off\nOptions +Includes"),
        directory("denied", CLOSED),
        directory("files", f'<FilesMatch "\\.key$">\n{CLOSED}\n</FilesMatch>'),
        directory("etag-none", "FileETag None"),
        directory("etag-all", "FileETag All"),
        directory("md5", "ContentDigest On"),
        directory("mmapoff", "EnableMMAP Off"),
        directory("both-off", "EnableMMAP Off\nEnableSendfile Off"),
        directory("ssi", "Options +Includes"),
        directory("headers", "Header set X-Set yes\nHeader add X-Twice one\nHeader unset Last-Modified"),
        directory("expires", "ExpiresActive On\nExpiresDefault A300"),
        directory("multi", "Options +MultiViews"),
        directory("perdir", "RewriteEngine On\nRewriteRule ^from$ target.txt\nRewriteRule ^out$ /plain.txt\n"
                  "RewriteRule ^moved$ target.txt [R=302]\nRewriteRule ^forbidden$ - [F]"),
    ])


def vhosts(www):
    """[(names, text)]: one for each configuration; the first also answers for unknown names."""
    def root(text):
        return f"<Directory />\n{text}\n</Directory>\n"
    rewrite = ("RewriteEngine On\nRewriteRule ^/rw/abs$ /rewritten/target.txt\n"
               "RewriteRule ^/rw/pt$ /alias/file.txt [PT]\n"
               f"RewriteCond {www}%{{REQUEST_URI}} !-f\nRewriteRule ^/rw/cond$ /plain.txt\n"
               "RewriteRule ^/rw/redirect$ /plain.txt [R=301,L]\nRewriteRule ^/rw/gone$ - [G]\n")
    links = f"<Directory {www}/links/never>\nOptions -FollowSymLinks\n</Directory>\n" \
            f"<Directory {www}/links/owner>\nOptions -FollowSymLinks +SymLinksIfOwnerMatch\n</Directory>\n"
    sections = f"""<Directory {www}/ht>
AllowOverride FileInfo Indexes
</Directory>
<Directory {www}/*>
Header append X-Wild yes
</Directory>
<Directory {www}/plain.txt>
Header append X-File yes
</Directory>
<Directory {www}/missing.txt>
ErrorDocument 404 "section for an absent name"
</Directory>
<DirectoryMatch "^{www}/.*txt$">
Header append X-Regex yes
</DirectoryMatch>
"""
    return [
        (["none.test"], root("AllowOverride None") + rewrite),
        (["all.test"], root("AllowOverride All")),
        (["owner.test"], root("AllowOverride All\nOptions SymLinksIfOwnerMatch") + links),
        (["nolinks.test"], root("AllowOverride None\nOptions None")),
        (["sections.test"], root("AllowOverride None") + links + sections),
        (["unset.test"], rewrite),
        (["othername.test"], root("AllowOverride All") + "AccessFileName .access\n"),
        (["errors.test"], root("AllowOverride None") + "ErrorDocument 404 /errors/404.html\n"
         "ErrorDocument 403 /errors/403.shtml\n"),
    ]


def make_old(root):
    """Puts the access files of a tree into the words of these servers, with their modes and times."""
    for path in root.rglob(".htaccess"):
        if path.is_file() and not path.is_symlink():
            before = path.stat()
            path.write_text(old_text(path.read_text()))
            os.utime(path, (before.st_mtime, before.st_mtime))
