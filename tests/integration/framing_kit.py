# SPDX-License-Identifier: Apache-2.0
"""Random requests for test_framing: a tree of many kinds of paths, and byte streams that ask for them on one connection."""

import os
import random
import re
import time

import tree
from rawhttp import exchange

SETTLED_S = 1.5             # from then on the tags of what has just changed are strong
MODULES = ("actions", "cgid", "speling", "userdir")
SIZES = (0, 1, 100, 4096, 8191, 8192, 16_383, 16_384, 65_536, 70_000, 300_000)
SSI = ("a<!--#include virtual=\"{}\" -->b\n" * 2 + "<!--#if expr=\"-A /sub/\" -->yes<!--#endif -->\n"
       "<!--#flastmod file=\"part.html\" --><!--#fsize virtual=\"/size100.txt\" -->\n")
PARTS = ("part.html", "none.html", "/d/", "/neg/v", "/sub", "/denied/x.txt", "nested.shtml", "/link/part.html", "/dangling")
CONFIG = """DirectoryIndex index.html
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 20
AddOutputFilter INCLUDES .shtml
AddType text/html .shtml
AddHandler type-map .var
AddLanguage en .en
AddLanguage de .de
AddOutputFilterByType DEFLATE text/plain
CheckSpelling On
ErrorDocument 404 /d/error.shtml
TraceEnable extended
RewriteEngine On
RewriteRule ^/pretty/ /d/index.html [PT]
<Directory {root}>
Options +Includes +MultiViews +FollowSymLinks +Indexes
IndexOptions SuppressLastModified
AllowOverride All
</Directory>
"""


def make(root):
    for size in SIZES:
        tree.put(root / f"size{size}.txt", tree.content(f"framing{size}", size))
        tree.put(root / f"page{size}.html", tree.content(f"framing-html{size}", size))
    for number, part in enumerate(PARTS):
        tree.put(root / f"ssi{number}.shtml", SSI.replace("{}", part))
    tree.put(root / "part.html", "<p>part\n" * 30)
    tree.put(root / "nested.shtml", '[<!--#include file="part.html" -->]')
    for name in ("index.html", "a.txt"):
        tree.put(root / "d" / name, f"{name}\n" * 50)
    tree.put(root / "d/error.shtml", 'missing: <!--#echo var="REDIRECT_URL" -->\n<!--#include virtual="/part.html" -->')
    tree.put(root / "sub/one.txt", "one\n")
    tree.put(root / "denied/.htaccess", "Require all denied\nErrorDocument 403 \"no\"\n")
    tree.put(root / "denied/x.txt", "secret\n")
    for language in ("en", "de"):
        tree.put(root / f"neg/v.html.{language}", f"<p>{language}\n" * 20)
    tree.put(root / "neg/map.var", "URI: v\n\nURI: v.html.en\nContent-type: text/html\nContent-language: en\n\n"
             "URI: v.html.de\nContent-type: text/html\nContent-language: de\n")
    tree.put(root / "rules/.htaccess", "RewriteEngine On\nRewriteRule ^to/(.*) /d/$1 [L]\nRewriteRule ^gone - [G]\nRewriteRule ^away "
             "http://other.test/ [R=302,L]\nHeader set X-Rules yes\nErrorDocument 404 /ssi1.shtml\n")
    tree.put(root / "rules/x.txt", "x\n" * 20)
    tree.put(root / "front/.htaccess", "FallbackResource /front/index.html\n")
    tree.put(root / "front/index.html", "front\n" * 9)
    tree.put(root / "broken/.htaccess", "NoSuchDirective\n")
    tree.put(root / "asis/x.asis", "Status: 207 As is\nContent-Type: text/plain\n\nas it is\n")
    os.symlink("d", root / "link")
    os.symlink("nowhere", root / "dangling")
    tree.put(root / "Speling.txt", "speling\n")
    time.sleep(SETTLED_S)


PATHS = [f"/size{size}.txt" for size in SIZES] + [f"/page{size}.html" for size in SIZES] + \
    [f"/ssi{number}.shtml" for number in range(len(PARTS))] + [
        "/", "/d", "/d/", "/d/a.txt", "/d/none", "/d/a.txt/info", "/sub/", "/sub/?C=M;O=D", "/denied/x.txt", "/denied/", "/neg/v",
        "/neg/v.html", "/neg/map.var", "/neg/none", "/rules/x.txt", "/rules/to/a.txt", "/rules/to/none", "/rules/gone", "/rules/away",
        "/rules/none", "/front/a/b", "/front/", "/broken/x", "/link/a.txt", "/link/", "/dangling", "/dangling/x", "/pretty/1", "/none/at/all",
        "/sPeling.txt", "/speling", "//d//a.txt", "/d/./a.txt", "/d/../d/a.txt", "/d/%61.txt", "/d%2fa.txt", "/%ff", "/" + "x" * 300,
        "/" + "y/" * 30, "/~nobody/x", "/ssi0.shtml/info", "/size100.txt?query", "/nested.shtml"]
FIELDS = ("Range: bytes=0-9", "Range: bytes=-5", "Range: bytes=0-1,5-6,80-", "Range: bytes=900000-", "If-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT",
          "If-None-Match: *", "If-Match: \"no\"", "If-Unmodified-Since: Mon, 01 Jan 1990 00:00:00 GMT", "Accept-Encoding: gzip", "Accept-Language: de",
          "Accept: image/png", "Expect: 100-continue", "Via: 1.1 proxy", "Cache-Control: no-cache", "If-Range: \"no\"\r\nRange: bytes=1-3")
# Behind such a request the connection ends.
LAST = (b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n", b"GET /d/a.txt\r\n\r\n",
        b"BAD\r\n\r\n", b"GET /d HTTP/1.1\r\n\r\n", b"GET /d HTTP/1.1\r\nHost: a.test\r\nContent-Length: x\r\n\r\n",
        b"POST /d/a.txt HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        b"GET /d/a.txt HTTP/3.0\r\nHost: a.test\r\nConnection: close\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")


def _body(dice):
    text = b"x" * dice.choice((0, 1, 50, 9000))
    if dice.random() < 0.5:
        return f"Content-Length: {len(text)}\r\n", text
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (text[:7], text[7:]) if part)
    trailer = b"X-Trailer: t\r\n" if dice.random() < 0.5 else b""
    return "Transfer-Encoding: chunked\r\n", chunks + b"0\r\n" + trailer + b"\r\n"


def request(dice):
    """One request on a connection that stays."""
    method = dice.choices(("GET", "HEAD", "POST", "OPTIONS", "PUT", "TRACE", "DELETE", "PROPFIND", "get"), (60, 12, 10, 5, 3, 2, 2, 2, 1))[0]
    fields = "".join(f"{field}\r\n" for field in dice.sample(FIELDS, dice.choice((0, 0, 0, 1, 1, 2))))
    more, body = _body(dice) if method in ("POST", "PUT") or dice.random() < 0.03 else ("", b"")
    if method == "TRACE":
        more, body = "", b""
    version = "1.0\r\nConnection: keep-alive" if dice.random() < 0.05 else "1.1"
    return f"{method} {dice.choice(PATHS)} HTTP/{version}\r\nHost: a.test\r\n{fields}{more}\r\n".encode() + body


def conversation(seed, requests):
    """Requests for one connection, the last of which ends it."""
    dice = random.Random(seed)
    return [request(dice) for _ in range(requests)] + [dice.choice(LAST)]


CLOCK = re.compile(rb"(\r\n(?:[Dd]ate|[Ee]xpires): )[^\r]*")
ALLOW = re.compile(rb"(\r\n[Aa]llow: )([^\r]*)")
WIDTH = 16                  # digits of most boundaries
BOUNDARY = re.compile(rb"boundary=([0-9a-f]+)")


def comparable(stream, port):
    """The bytes without the port, and without all that httpd draws or takes from its clock: dates, the order of methods,
    the boundary between parts of a file."""
    stream = CLOCK.sub(rb"\1now", stream)
    stream = ALLOW.sub(lambda found: found[1] + b",".join(sorted(found[2].split(b","))), stream)
    for drawn in set(BOUNDARY.findall(stream)):
        stream = stream.replace(drawn, b"B" * len(drawn))
    return stream.replace(str(port).encode(), b"P" * len(str(port)))


def modules():
    """Those of MODULES that are not loaded anyway."""
    from httpd import MODULES as loaded
    return [name for name in MODULES if name not in loaded]


def width(port):
    """That of the boundaries which the server has drawn: lengths count it."""
    stream = exchange(port, b"GET /size100.txt HTTP/1.1\r\nHost: a.test\r\nRange: bytes=0-1,5-6\r\nConnection: close\r\n\r\n")
    return len(BOUNDARY.search(stream)[1])
