# SPDX-License-Identifier: Apache-2.0
"""An operator's own site: its documents, which are only read, its requests, its configuration."""

import glob
import os
import random
import re
import subprocess
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import httpd as httpd_tests
import workload

from lab import Impossible, program, servers
from lab.rigs.rig import Rig

MOST_FILES = 100_000
PAGE = 203                  # the status of a page by the stub
STUB = program("tests/lab/page_stub/.libs/mod_proxy.so", "FLASHPACHE_STUB")
# Directives that reach beyond a private copy of the server: its addresses, logs and files.
DROPPED = re.compile(r"\s*(Listen|PidFile|\w*Log|Mutex|ScoreBoardFile|"
                     r"DefaultRuntimeDir|CoreDumpDirectory|User|Group|Flashpache\w+)\s", re.IGNORECASE)
# Directives that ask other servers, run programs, or need keys; and lines that a macro's argument makes one of these.
OUTWARD = re.compile(r"\s*(Proxy(?!Pass(Match)?\s)\w*|(Balancer|SSL|Fcgid|WSGI|Passenger|Jk|php_|FastCgi|SCGI|Lua|Perl|Cache|"
                     r"ExtFilter|DBD|LDAP|AuthLDAP|AuthDBD|Sec|DOS)\w*|Action|LoadFile|"
                     r"RewriteMap\s+\S+\s+[\"']?(prg|f?dbd):.*|[$@%&]\S*)\s", re.IGNORECASE)
# Httpd's own modules that connect to nothing and run no program. No other is loaded.
HARMLESS = frozenset("""access_compat alias allowmethods asis auth_basic auth_digest auth_form authn_anon authn_core authn_dbm
authn_file authn_socache authz_core authz_dbm authz_groupfile authz_host authz_owner authz_user autoindex brotli buffer
cern_meta charset_lite data dav dav_fs dav_lock deflate dir env expires filter headers http2 imagemap include info log_config
log_debug logio macro mime mime_magic mpm_event mpm_prefork mpm_worker negotiation ratelimit reflector remoteip reqtimeout
request rewrite sed session session_cookie session_crypto setenvif slotmem_plain slotmem_shm socache_dbm socache_shmcb speling
status substitute unique_id unixd userdir usertrack version vhost_alias watchdog xml2enc""".split())
MODULE = re.compile(r"\s*LoadModule\s+(\w+?)_module\s", re.IGNORECASE)
UNKNOWN = re.compile(r"Invalid command '(<?)([^'>]+)>?'")
MOST_UNKNOWN = 200
PROXY_SECTION = re.compile(r"^[ \t]*<Proxy(Match)?\s.*?^[ \t]*</Proxy(Match)?>[^\n]*\n", re.IGNORECASE | re.DOTALL | re.MULTILINE)
# The stub stands for mod_proxy and for all modules below it.
PROXY_TEST = re.compile(r'(<IfModule\s+"?!?)(?:mod_proxy_\w+\.c|proxy_\w+_module)', re.IGNORECASE)
# A stub makes pages, in place of an interpreter. It stands for mod_proxy, too, which is not loaded.
PAGES = """LoadModule proxy_module {stub}
PageStubMs {ms:g}
<FilesMatch "\\.(php\\d?|phtml|phar|cgi|fcgi|pl|py|rb|asp|aspx|jsp)$">
    SetHandler page-stub
</FilesMatch>
"""
INCLUDE = re.compile(r"\s*(Include|IncludeOptional)\s+(\S+)", re.IGNORECASE)
VIRTUAL_HOST = re.compile(r"[ \t]*<VirtualHost\s[^>]*>.*?</VirtualHost>[^\n]*\n", re.IGNORECASE | re.DOTALL)
TLS = re.compile(r"^\s*SSLEngine\s+(on|optional)", re.IGNORECASE | re.MULTILINE)


class SiteContent:
    """Requests in the order of a log, or for all files of a document root alike."""

    def __init__(self, requests, in_order, text):
        if not requests:
            raise Impossible("there is nothing to ask for: no file, or no line of the log that can be used")
        self.requests, self.in_order, self.text = requests, in_order, text

    def urls(self, count, seed):
        if not self.in_order:
            return [each.line() for each in random.Random(seed).choices(self.requests, k=count)]
        start = random.Random(seed).randrange(len(self.requests))
        return [self.requests[(start + i) % len(self.requests)].line() for i in range(count)]

    def bytes(self):
        return 0

    def split(self, statuses):
        """Divides the requests by a stock httpd's {request: status}."""
        return Split(self, statuses)


class Split:
    """files, pages: the SiteContent of those that httpd and the stub answer, or None. Others are left out: the copy
    answers them otherwise than the site did. unexpected: their share; a redirect's reason is often TLS, and does not count."""

    def __init__(self, content, statuses):
        self.content, whole = content, len(content.requests)
        answered = [(request, statuses.get(request)) for request in content.requests]
        files = [each._replace(status=status) for each, status in answered if is_static(each, status)]
        pages = [each._replace(status=PAGE) for each, status in answered if status == PAGE]
        others = Counter((each.status, status) for each, status in answered if status != PAGE and not is_static(each, status))
        self.unexpected = sum(count for (said, _), count in others.items() if said and said // 100 != 3) / whole
        self.left_out = ", ".join(f"{count} {difference(*pair)}" for pair, count in others.most_common())
        if not files and not pages:
            raise Impossible(f"a private stock Apache serves none of what is asked for: {self.left_out}")
        self.files = self.part(files, f"that httpd answers itself ({by_status(files)})")
        self.pages = self.part(pages, "for pages, which a stub makes")

    def part(self, kept, which):
        if not kept:
            return None
        text = f"{self.content.text}; {len(kept) / len(self.content.requests):.1%} of them are measured here, those {which}"
        return SiteContent(kept, self.content.in_order, text + (f" (left out of all: {self.left_out})" if self.left_out else ""))


def is_static(request, status):
    """True if httpd itself answers as the log says. Of a list without statuses it may say so itself."""
    if request.status is None:
        return status is not None and status != PAGE and bool(workload.REPEATABLE.fullmatch(str(status)))
    return status not in (None, PAGE) and status == request.status


def difference(said, status):
    now = f"with status {status}" if status else "with no answer"
    return f"{now} in place of {said}" if said else now


def by_status(requests):
    counted = Counter(request.status for request in requests)
    return ", ".join(f"{count} with status {status}" for status, count in counted.most_common())


def from_log(path, host):
    """host: for lines that have none, or None."""
    requests, left_out = workload.from_log(path, 10 * MOST_FILES)
    requests = [each if each.host else each._replace(host=host) for each in requests] if host else requests
    hosts = {each.host for each in requests}
    why = ", ".join(f"{count} {reason}" for reason, count in left_out.most_common())
    return SiteContent(requests, True, f"{len(requests)} requests of {path} in their order"
                                       + (f", to {len(hosts)} hosts" if len(hosts) > 1 else "")
                                       + (f" (left out: {why})" if why else ""))


def from_tree(docroot, host=None):
    """Every regular file, hidden ones left out; nothing is opened."""
    found = []
    for where, directories, names in os.walk(docroot):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        found += [os.path.join(where, name) for name in sorted(names) if not name.startswith(".")]
        if len(found) >= MOST_FILES:
            break
    files = [os.path.relpath(path, docroot) for path in found[:MOST_FILES] if os.path.isfile(path)]
    # A name is bytes, not always UTF-8.
    requests = [workload.Request("GET", host, "/" + quote(os.fsencode(name)), None) for name in files]
    return SiteContent(requests, False, f"{len(requests)} files of {docroot}, all alike: with an access log the result would "
                                        "be that of the site's own visitors")


class Site(Rig):
    """Not a rig that is built: the documents stay as they are, in their place."""

    name = "site"

    def __init__(self, directory, content, connections, docroot, site_config, page_ms):
        super().__init__(directory, content, connections, files=docroot)
        self.site_config, self.pages = site_config, pages(page_ms)
        kind, mount = file_system(docroot)
        self.about = f"{docroot}, on {kind} mounted at {mount}; {content.text}; {connections} connections"

    def build(self):
        """There is nothing to build."""

    def place(self, directory):
        return servers.Place(directory, self.files, connections=self.connections, site_config=self.site_config,
                             pages=self.pages)


def pages(milliseconds):
    """httpd's lines for the stub that makes pages."""
    if not STUB.exists():
        raise Impossible(f"{STUB} is not built: run make, or set FLASHPACHE_BUILD")
    return PAGES.format(stub=STUB, ms=milliseconds)


def file_system(path):
    """(type, mount point) of a path's file system."""
    path = os.path.realpath(path)
    with open("/proc/self/mounts") as mounts:
        rows = [line.split()[1:3] for line in mounts]
    mount, kind = max(((m, k) for m, k in rows if path == m or path.startswith(m.rstrip("/") + "/")),
                      key=lambda row: len(row[0]))
    return kind, mount


class SiteConfig:
    """A copy of an httpd configuration that touches nothing of the server that it is from."""

    def __init__(self, path):
        self.path = Path(path)
        text = self.path.read_text(errors="replace")
        found = re.search(r'^\s*ServerRoot\s+"?([^"\s]+)', text, re.IGNORECASE | re.MULTILINE)
        self.root = Path(found.group(1)) if found else self.path.parent
        self.variables = dict(re.findall(r"^\s*export\s+(\w+)=(\S+)", self.variables_text(), re.MULTILINE))
        self.template = self.inward("".join(self.lines(text)))

    def inward(self, whole):
        """Virtual hosts with TLS are served without it, and only the stub says that they have it. They come before the
        others, which often only redirect to them. No directive leads to another server or to a program but those that the
        stub knows."""
        hosts = VIRTUAL_HOST.findall(whole)
        secure = [host for host in hosts if TLS.search(host)]
        self.tls_hosts = len(secure)
        first = whole.index(hosts[0]) if hosts else len(whole)
        for host in secure:
            whole = whole.replace(host, "", 1)
        secure = [TLS.sub("PageStubTls", host) for host in secure]
        whole = PROXY_SECTION.sub("", whole[:first] + "".join(secure) + whole[first:])
        lines = PROXY_TEST.sub(r"\1mod_proxy.c", whole).splitlines(keepends=True)
        return "".join(line for line in lines if not OUTWARD.match(line) and not loads_another(line))

    def drop_unknown(self, work, page_ms):
        """Drops the directives of modules that are not loaded, as httpd names them one after another; their names."""
        file, dropped = work / "trial.conf", []
        while len(dropped) < MOST_UNKNOWN:
            file.write_text(pages(page_ms) + self.text(work, "127.0.0.1", 1))
            done = subprocess.run([httpd_tests.APACHE, "-t", "-f", file], capture_output=True, text=True, errors="replace")
            found = UNKNOWN.search(done.stderr)
            if not found:
                break
            dropped.append(found.group(2).strip())
            self.template = without(self.template, dropped[-1], section=bool(found.group(1)))
        return dropped

    def variables_text(self):
        """Debian's envvars; its suffix for several instances is empty."""
        path = self.root / "envvars"
        text = path.read_text() if path.exists() else ""
        return re.sub(r"\$SUFFIX|\$\{SUFFIX\}", "", text)

    def lines(self, text):
        """Its lines with included files in place, without those that must be ours."""
        for name, value in self.variables.items():
            text = text.replace("${%s}" % name, value)
        for line in text.replace("\\\n", " ").splitlines(keepends=True):
            included = INCLUDE.match(line)
            if included:
                for path in sorted(glob.glob(str(self.root / included.group(2).strip('"')))):
                    yield from self.lines(Path(path).read_text(errors="replace") + "\n")
            elif not DROPPED.match(line):
                yield line

    def docroot(self):
        found = re.search(r'^\s*DocumentRoot\s+"?([^"\n]+?)"?\s*$', self.template, re.IGNORECASE | re.MULTILINE)
        if not found:
            raise Impossible(f"{self.path} has no DocumentRoot: name one on the command line")
        return Path(found.group(1))

    def text(self, directory, host, port):
        """For a server with files of its own in a directory, at a private address."""
        head = (f"ServerName localhost\nListen {host}:{port}\nPidFile {directory}/httpd.pid\n"
                f"DefaultRuntimeDir {directory}\nMutex pthread\nErrorLog {directory}/error.log\n"
                f"User {httpd_tests.USER}\nGroup {httpd_tests.group()}\n")
        body = re.sub(r"<VirtualHost\s[^>]*>", f"<VirtualHost {host}:{port}>", self.template, flags=re.IGNORECASE)
        return body + "\n" + head


def loads_another(line):
    """True if the line loads a module that may reach beyond the server."""
    found = MODULE.match(line)
    return bool(found) and found.group(1).lower() not in HARMLESS


def without(text, name, section):
    """A configuration without a directive, or without its sections."""
    name = re.escape(name)
    whole = rf"^[ \t]*<{name}\b.*?^[ \t]*</{name}>[^\n]*\n" if section else rf"^[ \t]*{name}\b[^\n]*\n"
    return re.sub(whole, "", text, flags=re.IGNORECASE | re.MULTILINE | re.DOTALL)
