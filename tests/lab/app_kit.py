# SPDX-License-Identifier: Apache-2.0
"""Applications in PHP, set up privately: their files, a database, PHP. For scripts/compare --app and the tests.

Programs and files are Debian's, unpacked below the build directory by scripts/compare --app (scripts/lib/apps.sh).
Nothing of them is installed, and everything is made below the directory that is given.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import lab_kit      # adds the path to the next modules
import httpd as httpd_tests
import procs
from waiting import wait_for

HERE = Path(__file__).resolve().parent
ROOT = lab_kit.BUILD / "apps/root"
FPM_PROCESSES = 8
PATIENT_S = 120         # seconds for a page that PHP compiles on a busy machine
# One after another: some need an earlier one.
EXTENSIONS = """ctype dom fileinfo iconv intl mbstring mysqlnd mysqli pdo pdo_sqlite posix simplexml tokenizer
xml xmlreader xmlwriter""".split()
# PHP's own defaults, as Debian installs it: the reference for other settings.
SETTINGS = {"opcache.enable": 1, "opcache.memory_consumption": 128, "opcache.validate_timestamps": 1,
            "opcache.revalidate_freq": 2, "realpath_cache_size": "4096k", "realpath_cache_ttl": 120}
PROGRAMS = ("usr/sbin/php-fpm8.2", "usr/bin/php8.2", "usr/sbin/mariadbd", "usr/lib/apache2/modules/libphp8.2.so",
            "usr/share/wordpress", "usr/share/dokuwiki", "usr/share/mediawiki")
MODULES = ("proxy", "proxy_fcgi")       # of httpd, for php-fpm


def why_not():
    """The reason why no application can be set up here, or None."""
    missing = [name for name in PROGRAMS if not (ROOT / name).exists()]
    return (f"needs Debian's wordpress, dokuwiki, mediawiki, php8.2-fpm, libapache2-mod-php8.2 and mariadb-server-core unpacked "
            f"in {ROOT}: scripts/compare --app wordpress does that") if missing else None


def around():
    """Before each program's command: the paths of libraries that this machine lacks, and no settings of its own PHP."""
    libraries = ":".join(str(path) for path in sorted(ROOT.glob("usr/lib/*-linux-gnu*")) + sorted(ROOT.glob("lib/*-linux-gnu*")))
    return ["env", f"LD_LIBRARY_PATH={libraries}", "PHP_INI_SCAN_DIR="]


def copy(source, target, without=()):
    """A plain tree, as on a file server: links between packages become copies of their targets."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*without))


def give_away(*paths):
    """Makes the user that runs PHP their owner."""
    for path in paths:
        subprocess.run(["chown", "-R", f"{httpd_tests.USER}:{httpd_tests.USER}", path], check=True)


class Service:
    """A program in the foreground, with a log, and with more environment for its next start."""

    def __init__(self, directory):
        self.environment = {}
        self.dir = Path(directory)
        self.dir.mkdir(parents=True)
        self.process = None

    def start(self):
        with open(self.dir / "log", "ab") as log:
            self.process = subprocess.Popen([*around(), *(f"{name}={value}" for name, value in self.environment.items()),
                                             *map(str, self.command())], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True)
        wait_for(self.is_up, f"{self.socket} of {self.command()[0]}", 60)
        return self

    def is_up(self):
        if self.process.poll() is not None:
            raise ChildProcessError(f"{self.command()[0]} ended at start: {(self.dir / 'log').read_text(errors='replace')}")
        return self.socket.exists()

    def stop(self):
        if self.process:
            procs.end(self.process)
            self.process = None

    def restart(self):
        self.stop()
        self.socket.unlink(missing_ok=True)
        return self.start()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


class Database(Service):
    """MariaDB without a network. Its user root has no password: the socket's directory is PHP's user's alone."""

    def __init__(self, directory):
        super().__init__(directory)
        self.data, self.run = self.dir / "data", self.dir / "run"
        self.run.mkdir(mode=0o710)
        os.chown(self.run, 0, httpd_tests.user_ids()[1])
        self.socket = self.run / "db.sock"

    def make(self):
        done = subprocess.run([*around(), ROOT / "usr/bin/mariadb-install-db", "--no-defaults", f"--basedir={ROOT}/usr",
                               f"--datadir={self.data}", "--auth-root-authentication-method=normal", "--skip-test-db",
                               "--user=root"], capture_output=True, text=True)
        if done.returncode:
            raise ChildProcessError(f"mariadb-install-db failed: {done.stdout}{done.stderr}")

    def command(self):
        return [ROOT / "usr/sbin/mariadbd", "--no-defaults", f"--basedir={ROOT}/usr", f"--datadir={self.data}",
                f"--socket={self.socket}", f"--pid-file={self.run}/db.pid", "--skip-networking", "--user=root",
                "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=4M",
                f"--lc-messages-dir={ROOT}/usr/share/mysql", f"--plugin-dir={ROOT}/usr/lib/mysql/plugin"]


class Php(Service):
    """php-fpm on a private socket; its settings serve mod_php, too."""

    def __init__(self, directory, **settings):
        super().__init__(directory)
        self.settings = {**SETTINGS, **settings}
        self.socket = self.dir / "fpm.sock"
        self.sessions = self.dir / "sessions"
        self.sessions.mkdir()
        give_away(self.sessions)
        self.ini = self.dir / "php.ini"
        (self.dir / "fpm.conf").write_text(
            f"[global]\ndaemonize = no\nerror_log = {self.dir}/fpm.log\n[www]\nuser = {httpd_tests.USER}\n"
            f"group = {httpd_tests.USER}\nlisten = {self.socket}\nlisten.owner = {httpd_tests.USER}\npm = static\n"
            f"pm.max_children = {FPM_PROCESSES}\ncatch_workers_output = yes\n")
        self.write_ini()

    def write_ini(self):
        extensions = next(ROOT.glob("usr/lib/php/2*"))
        lines = [f"extension_dir={extensions}", "zend_extension=opcache", *(f"extension={name}" for name in EXTENSIONS),
                 f"session.save_path={self.sessions}", "date.timezone=UTC", "error_log=" + str(self.dir / "php.log"),
                 "log_errors=1", "display_errors=0", "mysqli.default_socket=/nowhere",
                 *(f"{name}={value}" for name, value in self.settings.items())]
        self.ini.write_text("\n".join(lines) + "\n")

    def set(self, **settings):
        """Starts it again with other settings; names of settings have dots, so give them as **{...}."""
        self.settings = {**SETTINGS, **settings}
        self.write_ini()
        return self.restart()

    def command(self):
        return [ROOT / "usr/sbin/php-fpm8.2", "-F", "-c", self.ini, "-y", self.dir / "fpm.conf"]

    def pids(self):
        """The processes that run scripts."""
        return procs.children(self.process.pid)

    def run(self, script, *arguments):
        """A script outside the server, as the user of the server, to its end."""
        done = subprocess.run([*around(), ROOT / "usr/bin/php8.2", "-c", self.ini, "-d", "opcache.enable_cli=0", script,
                               *arguments], capture_output=True, text=True)
        if done.returncode or "Fatal error" in done.stdout:
            raise ChildProcessError(f"{script} failed: {done.stdout}{done.stderr}\n{self.log_text()}")

    def log_text(self):
        log = self.dir / "php.log"
        return log.read_text(errors="replace") if log.exists() else ""


@dataclass(frozen=True)
class Page:
    """One request: its kind, URL path and status."""
    kind: str
    path: str
    status: int = 200


class App:
    """One application. `docroot` has its files; the same files may be served through another path as well."""

    changing = ()       # patterns of the parts that differ from one response to the next, whichever server answers
    changing_headers = ("Date", "Expires", "Set-Cookie")
    is_redirect_dated = False       # Last-Modified of a redirect is the present time
    needs_database = False

    def __init__(self, base, php):
        self.base, self.php = Path(base), php
        self.docroot = self.base / self.name
        self.share = self.base / "share"
        if not self.share.exists():
            for name in ("php", "php-geshi", "javascript"):
                copy(ROOT / "usr/share" / name, self.share / name)

    def config(self, docroot):
        """Text for httpd with php-fpm."""
        return self._directory(docroot) + (f'<FilesMatch "\\.php$">\nSetHandler "proxy:unix:{self.php.socket}|fcgi://localhost"\n'
                                           "</FilesMatch>\n")

    def config_mod_php(self, docroot):
        """Text for httpd with PHP in its own processes (prefork)."""
        return (f"LoadModule php_module {ROOT}/usr/lib/apache2/modules/libphp8.2.so\nPHPIniDir {self.php.dir}\n"
                + self._directory(docroot) + '<FilesMatch "\\.php$">\nSetHandler application/x-httpd-php\n</FilesMatch>\n')

    @staticmethod
    def _directory(docroot):
        return f"Timeout {PATIENT_S}\nDirectoryIndex index.php index.html\n<Directory {docroot}>\nAllowOverride All\n</Directory>\n"

    def page(self, kind):
        return next(page for page in self.pages if page.kind == kind)


class WordPress(App):
    """With pretty permalinks and the .htaccess that it writes itself."""

    name = "wordpress"
    needs_database = True
    pages = (Page("static", "/wp-includes/js/jquery/jquery.min.js"), Page("pretty", "/hello-world/"),
             Page("missing", "/no-such-page/", 404), Page("front", "/"), Page("page", "/sample-page/"),
             Page("script", "/wp-login.php"), Page("feed", "/feed/"), Page("style", "/wp-includes/css/dashicons.min.css"),
             Page("missing file", "/wp-content/uploads/none.png", 404), Page("redirect", "/hello-world", 301),
             Page("api", "/wp-json/wp/v2/posts"), Page("directory", "/wp-admin/", 302))
    changing = (r'redirect_to=[^&"]*', r'name="redirect_to" value="[^"]*"')

    def make(self, database):
        copy(ROOT / "usr/share/wordpress", self.docroot)
        (self.docroot / ".htaccess").unlink(missing_ok=True)
        (self.docroot / "wp-config.php").write_text(
            (HERE / "apps/wp-config.php").read_text().replace("@SOCKET@", str(database.socket)))
        (self.docroot / "wp-content/uploads").mkdir(exist_ok=True)
        give_away(self.docroot)
        self.php.run(HERE / "apps/wp-install.php", self.docroot, database.socket)
        if "RewriteRule" not in (self.docroot / ".htaccess").read_text():
            raise ChildProcessError(f"WordPress wrote no rules into {self.docroot}/.htaccess")
        return self


class DokuWiki(App):
    """With the rules for nice URLs of its own .htaccess.dist."""

    name = "dokuwiki"
    pages = (Page("static", "/lib/tpl/dokuwiki/images/logo.png"), Page("pretty", "/wiki:syntax"),
             Page("missing", "/no-such-page", 404), Page("front", "/wiki:welcome"), Page("feed", "/feed.php"),
             Page("script", "/doku.php?id=wiki:dokuwiki"), Page("style", "/lib/tpl/dokuwiki/css/basic.less"),
             Page("media", "/_media/wiki:dokuwiki-128.png"), Page("denied", "/VERSION", 403))
    changing = (r'name="sectok" value="\w*"', r"sectok=\w*", r"taskrunner\.php\?[^\"]*", r"[?&]t(?:seed)?=\w+",
                r"<(?:pub|last)\w*Date>[^<]*", r"<dc:date>[^<]*")

    def make(self, _database=None):
        copy(ROOT / "usr/share/dokuwiki", self.docroot)
        copy(ROOT / "etc/dokuwiki", self.docroot / "conf")
        copy(ROOT / "var/lib/dokuwiki/data", self.docroot / "data")
        (self.docroot / "inc/preload.php").write_text("<?php // Debian's leads to /etc/dokuwiki\n")
        for path in (*self.docroot.glob("vendor/composer/*.php"), *self.docroot.glob("lib/exe/*.php")):
            path.write_text(path.read_text().replace("/usr/share/", f"{self.share}/"))
        (self.docroot / "conf/local.php").write_text(
            "<?php\n$conf['savedir'] = './data';\n$conf['useacl'] = 0;\n$conf['userewrite'] = 1;\n$conf['updatecheck'] = 0;\n$conf['send404'] = 1;\n")
        rules = (self.docroot / ".htaccess.dist").read_text()
        begin = rules.index("#RewriteEngine on")
        end = rules.index("## Not all installations")
        (self.docroot / ".htaccess").write_text(rules[:begin] + rules[begin:end].replace("#Rewrite", "Rewrite") + rules[end:])
        give_away(self.docroot)
        return self


class MediaWiki(App):
    """With SQLite, and short URLs by the rules of its manual for a wiki at the root of a site."""

    name = "mediawiki"
    pages = (Page("static", "/resources/assets/poweredby_mediawiki_88x31.png"), Page("pretty", "/wiki/Main_Page"),
             Page("missing", "/wiki/No_such_page", 404), Page("front", "/", 301), Page("script", "/index.php?title=Special:Version"),
             Page("list", "/wiki/Special:AllPages"), Page("style", "/load.php?lang=en&modules=skins.vector.styles&only=styles&skin=vector"),
             Page("api", "/api.php?action=query&meta=siteinfo&format=json"), Page("missing file", "/images/none.png", 301),
             Page("denied", "/includes/Setup.php", 403), Page("directory", "/images/", 403))
    changing = (r'"wgPageParseReport":.*?"transientcontent":\w+', r'"wg(?:RequestId|BackendResponseTime)":[^,}]*', r"(?s)<!--.*?-->",
                r'"time":"[^"]*"', r'"timestamp":"[^"]*"')
    # A page tells its own time in digits, so its length differs, too. Where work is left for after the response, mod_php's
    # MediaWiki asks for the connection's end.
    changing_headers = (*App.changing_headers, "X-Request-Id", "Content-Length", "Connection")
    is_redirect_dated = True
    RULES = """RewriteEngine On
RewriteCond %{DOCUMENT_ROOT}%{REQUEST_URI} !-f
RewriteCond %{DOCUMENT_ROOT}%{REQUEST_URI} !-d
RewriteRule ^(.*)$ %{DOCUMENT_ROOT}/index.php [L]
"""
    # Database and cache are outside the site.
    SETTINGS = """
$wgServer = WebRequest::detectServer();
$wgArticlePath = '/wiki/$1';
$wgUsePathInfo = true;
$wgJobRunRate = 0;              // no request does another one's work
$wgMainCacheType = CACHE_NONE;
$wgCacheDirectory = '@DATA@/cache';
$wgShowHostnames = false;
"""

    def make(self, _database=None):
        copy(ROOT / "usr/share/mediawiki", self.docroot, without=("extensions", "extensions-core", "DebianOverrides.php"))
        data = self.base / "wiki-data"
        (data / "cache").mkdir(parents=True)
        (self.docroot / "extensions").mkdir()
        self.php.run(self.docroot / "maintenance/install.php", "--dbtype=sqlite", "--dbname=wiki", f"--dbpath={data}", "--lang=en",
                     "--scriptpath=", "--server=http://localhost", "--pass=a private password", "A wiki", "Admin")
        with open(self.docroot / "LocalSettings.php", "a", encoding="utf-8") as settings:
            settings.write(self.SETTINGS.replace("@DATA@", str(data)))
        (self.docroot / ".htaccess").write_text(self.RULES)
        give_away(self.docroot, data)
        return self


def plain(app, body):
    """Without the parts that an application changes from one response to the next."""
    for pattern in app.changing:
        body = re.sub(pattern.encode(), b"", body)
    return body


APPS = {app.name: app for app in (WordPress, DokuWiki, MediaWiki)}
