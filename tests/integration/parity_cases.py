# SPDX-License-Identifier: Apache-2.0
"""The requests of the comparison, each a few raw bytes and the methods in them.

`expect` is the status that stock must give to the first request: it keeps a case from silently testing something
else.
"""

from dataclasses import dataclass
from email.utils import formatdate
from urllib.parse import quote

import tree
from rawhttp import HOST, request

AUTH = "Basic cmVhZGVyOnNlY3JldA=="       # reader:secret
AT = formatdate(tree.MTIME, usegmt=True)
BEFORE = formatdate(tree.MTIME - 100, usegmt=True)
AFTER = formatdate(tree.MTIME + 100, usegmt=True)
PLAIN = "/plain.txt"
PLAIN_SIZE = 200 * len("line 0000 of the plain file\n")
PLAIN_ETAG = f'"{PLAIN_SIZE:x}-{tree.MTIME * 1000000:x}"'


@dataclass(frozen=True)
class Case:
    name: str
    data: bytes
    methods: tuple = ("GET",)
    tls: bool = False
    log: bool = True          # True if its access-log entries can be compared, too
    expect: int = None


def one(name, path, method="GET", expect=None, tls=False, log=True, **options):
    data = request(method, path, tag=name, **options)
    return Case(name, data, (method,), tls, log, expect)


def pipelined(name, requests, expect=200, tls=False):
    """Several requests in one write over one connection; the last one closes."""
    last = len(requests) - 1
    data = b"".join(request(method, path, close=i == last, tag=name, **options)
                    for i, (method, path, options) in enumerate(requests))
    return Case(name, data, tuple(r[0] for r in requests), tls, True, expect)


def raw(name, data, methods=("GET",), expect=None):
    return Case(name, data, methods, log=False, expect=expect)


def methods():
    yield one("get", PLAIN, expect=200)
    yield one("head", PLAIN, "HEAD", expect=200)
    for method in ("OPTIONS", "POST", "PUT", "DELETE", "TRACE", "PATCH", "PROPFIND", "BREW"):
        yield one(method.lower(), PLAIN, method)
    yield one("post-body", PLAIN, "POST", body=b"a=b&c=d")
    yield one("get-body", PLAIN, body=b"unexpected")
    yield one("post-expect", PLAIN, "POST", body=b"late", Expect="100-continue")
    yield one("options-star", "*", "OPTIONS", log=False)
    yield one("head-dir", "/both/", "HEAD", expect=200)
    yield one("post-dir", "/both/", "POST")
    yield one("options-dir", "/both/", "OPTIONS")
    yield one("head-404", "/missing.txt", "HEAD", expect=404)
    yield one("put-404", "/missing.txt", "PUT")
    yield one("allowmethods", "/cond/file.txt", "POST")
    yield one("http10", PLAIN, version="HTTP/1.0", close=False, expect=200)
    yield one("http10-keepalive", PLAIN, version="HTTP/1.0", close=False, host=None, expect=200)
    yield raw("http09", b"GET /plain.txt\r\n")
    yield raw("no-host", b"GET /plain.txt HTTP/1.1\r\n\r\n", expect=400)
    yield raw("bad-version", b"GET /plain.txt HTTP/7.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    yield raw("absolute-uri", b"GET http://parity.test:8080/plain.txt HTTP/1.1\r\n"
              b"Host: ignored\r\nConnection: close\r\n\r\n", expect=200)
    yield raw("lower-case-method", b"get /plain.txt HTTP/1.1\r\nHost: " + HOST.encode()
              + b"\r\nConnection: close\r\n\r\n")


BAD_BODIES = {
    "chunk": (b"Transfer-Encoding: chunked", b"nothing\r\n"),
    "late-chunk": (b"Transfer-Encoding: chunked", b"3\r\nabc\r\n-1\r\n\r\n"),
    "length": (b"Content-Length: -5", b""),
    "two-lengths": (b"Content-Length: 1\r\nContent-Length: 2", b"xy"),
}


def bad_bodies():
    for path in (PLAIN, "/missing.txt", "/perm/none.txt", "/perm/fifo", "/links/never/same", "/denied/file.txt", "/both/"):
        for name, (field, body) in BAD_BODIES.items():
            for method in ("GET", "HEAD"):
                yield raw(f"bad-{name}{path}-{method}", f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n"
                          .encode() + field + b"\r\n\r\n" + body, methods=(method,))


def connections():
    yield pipelined("keepalive-two", [("GET", PLAIN, {}), ("GET", PLAIN, {})])
    yield pipelined("pipeline-mixed", [
        ("GET", PLAIN, {}), ("HEAD", "/large.bin", {}), ("GET", "/missing", {}),
        ("GET", "/large.bin", {}), ("GET", "/empty.txt", {}), ("OPTIONS", PLAIN, {}),
        ("GET", "/denied/file.txt", {}), ("GET", "/both/", {}), ("GET", "/both", {}),
        ("GET", "/four-kib.bin", {"Range": "bytes=5-10"}), ("GET", PLAIN, {})])
    yield pipelined("pipeline-same-many", [("GET", "/four-kib.bin", {})] * 30)
    yield pipelined("pipeline-large", [("GET", "/large.bin", {})] * 8)
    yield pipelined("pipeline-hosts", [
        ("GET", PLAIN, {}), ("GET", PLAIN, {"host": "second.test:8080"}), ("GET", PLAIN, {})])
    yield pipelined("pipeline-post", [
        ("POST", PLAIN, {"body": b"x" * 5000}), ("GET", PLAIN, {}), ("PUT", PLAIN, {"body": b"y"}),
        ("GET", "/style.css", {})])
    yield pipelined("pipeline-120", [("GET", "/style.css", {})] * 101)


RANGES = {
    "first": "bytes=0-0", "middle": "bytes=100-199", "open": "bytes=5590-", "suffix": "bytes=-20",
    "suffix-all": "bytes=-999999", "suffix-zero": "bytes=-0", "all": "bytes=0-",
    "past-end": "bytes=0-999999", "beyond": "bytes=999999-", "backwards": "bytes=20-10",
    "multi": "bytes=0-9,100-109,-5", "multi-overlap": "bytes=0-99,50-149",
    "multi-some-beyond": "bytes=0-9,999999-", "multi-all-beyond": "bytes=99999-,88888-",
    "unit": "lines=1-2", "rubbish": "bytes=x-y", "empty": "bytes=", "spaces": "bytes= 0-1 , 3-4 ",
    "huge": "bytes=0-99999999999999999999", "many": "bytes=" + ",".join(
        f"{i * 10}-{i * 10 + 1}" for i in range(210)),
    "reversals": "bytes=100-101,50-51,150-151,20-21",
}
EXPECT_RANGE = {"first": 206, "middle": 206, "suffix": 206, "beyond": 416, "multi": 206}


def ranges():
    for name, value in RANGES.items():
        yield one(f"range-{name}", PLAIN, Range=value, expect=EXPECT_RANGE.get(name))
    for path in ("/large.bin", "/four-kib.bin"):
        for name in ("middle", "suffix", "multi"):
            yield one(f"range-{name}{path}", path, Range=RANGES[name], expect=206)
        yield one(f"range-open{path}", path, Range=RANGES["open"])
    yield one("range-head", PLAIN, "HEAD", Range="bytes=0-9")
    yield one("range-post", PLAIN, "POST", Range="bytes=0-9")
    yield one("range-empty-file", "/empty.txt", Range="bytes=0-9")
    yield one("range-index", "/both/", Range="bytes=2-5", expect=206)
    yield one("range-deflate", "/deflate/text.txt", Range="bytes=2-50", Accept_Encoding="gzip")
    for name, value, expect in (("etag", PLAIN_ETAG, 206), ("other", '"no"', 200), ("date", AT, 206),
                                ("date-before", BEFORE, None), ("date-after", AFTER, None),
                                ("weak", "W/" + PLAIN_ETAG, 200), ("rubbish", "tomorrow", None)):
        yield one(f"if-range-{name}", PLAIN, Range="bytes=3-9", If_Range=value, expect=expect)


CONDITIONS = (
    ("if-modified-since-at", {"If_Modified_Since": AT}, 304),
    ("if-modified-since-before", {"If_Modified_Since": BEFORE}, 200),
    ("if-modified-since-after", {"If_Modified_Since": AFTER}, 304),
    ("if-modified-since-rubbish", {"If_Modified_Since": "whenever"}, 200),
    ("if-none-match", {"If_None_Match": PLAIN_ETAG}, 304),
    ("if-none-match-weak", {"If_None_Match": "W/" + PLAIN_ETAG}, 304),
    ("if-none-match-list", {"If_None_Match": f'"a", {PLAIN_ETAG}, "b"'}, 304),
    ("if-none-match-other", {"If_None_Match": '"a"'}, 200),
    ("if-none-match-star", {"If_None_Match": "*"}, 304),
    ("if-none-match-and-since", {"If_None_Match": '"a"', "If_Modified_Since": AT}, 200),
    ("if-match", {"If_Match": PLAIN_ETAG}, 200),
    ("if-match-other", {"If_Match": '"a"'}, 412),
    ("if-match-star", {"If_Match": "*"}, 200),
    ("if-match-weak", {"If_Match": "W/" + PLAIN_ETAG}, None),
    ("if-unmodified-since-at", {"If_Unmodified_Since": AT}, 200),
    ("if-unmodified-since-before", {"If_Unmodified_Since": BEFORE}, 412),
    ("if-unmodified-since-after", {"If_Unmodified_Since": AFTER}, 200),
    ("if-match-range", {"If_Match": PLAIN_ETAG, "Range": "bytes=0-4"}, 206),
    ("if-none-match-range", {"If_None_Match": PLAIN_ETAG, "Range": "bytes=0-4"}, 304),
)


def conditions():
    for name, headers, expect in CONDITIONS:
        yield one(name, PLAIN, expect=expect, **headers)
        yield one(f"{name}-head", PLAIN, "HEAD", **headers)
    yield one("if-none-match-star-404", "/missing", If_None_Match="*", expect=404)
    yield one("if-match-star-404", "/missing", If_Match="*", expect=404)
    yield one("if-modified-since-index", "/both/", If_Modified_Since=AT, expect=304)
    yield one("if-modified-since-post", PLAIN, "POST", If_Modified_Since=AT)
    yield one("if-none-match-post", PLAIN, "POST", If_None_Match=PLAIN_ETAG)
    yield one("if-modified-since-denied", "/denied/file.txt", If_Modified_Since=AT, expect=403)
    yield one("future", "/future.txt", expect=200)
    yield one("future-since", "/future.txt", If_Modified_Since=AT)
    yield one("before-1970", "/old.txt", expect=200)


EXPECT_PATH = {"/": 200, "/empty.txt": 200, "/second/": 200, "/both": 301, "/noindex/": 403,
               "/listing/": 200, "/denied/file.txt": 403, "/alias/file.txt": 200,
               "/plain.txt/": 404, "/pathinfo-on/file.txt/more/info": 200, "/plain.txt%00": 404,
               "/../plain.txt": 400, "/a/../plain.txt": 200, "//plain.txt": 200,
               "/plain%2Etxt": 200, "/a%2Fb": 404, "/fallback/none": 200, "/missing.txt": 404}


def paths():
    every = (
        "/", "/?query", "/plain.txt?", "/plain.txt?a=b&c=%20", "/plain.txt#fragment", "/empty.txt",
        "/noextension", "/a/b/c/d/e/f/deep.txt", "/style.css", "/missing.txt", "/missing/",
        "/missing/deep/er.txt", "/a/missing.txt", "/a/b/missing/", "/a", "/a/",
        # directories and their index
        "/second/", "/second", "/both/", "/both", "/both?x=y", "/both/index.html", "/noindex/",
        "/noindex", "/emptydir/", "/emptydir", "/listing/", "/listing", "/listing/?C=M;O=D",
        "/listing/?C=S;O=A", "/listing/sub/", "/indexdir/", "/indexdir/index.html",
        "/indexdir/index.html/", "/indexdir/index.html/inner.txt", "/noslash", "/noslash/",
        "/noindex/file.txt", "/fallback/none", "/fallback/", "/fallback/deep/none",
        # path-info, trailing slashes
        "/plain.txt/", "/plain.txt/more", "/plain.txt/more/and/more", "/plain.txt/.htaccess",
        "/plain.txt/../style.css", "/empty.txt/", "/index.html/", "/pathinfo-on/file.txt/more/info",
        "/pathinfo-on/file.txt/", "/pathinfo-on/file.txt", "/pathinfo-on/none/more",
        "/pathinfo-off/page.shtml/x", "/pathinfo-off/page.shtml", "/missing/path/info",
        # alias and redirect
        "/alias", "/alias/", "/alias/file.txt", "/alias/sub", "/alias/sub/", "/alias/missing",
        "/alias/file.txt/x", "/aliasfile.txt", "/match/file.txt", "/match/", "/match/missing",
        "/gone-away", "/gone-away/deeper", "/alias/../plain.txt",
        # access control
        "/denied/file.txt", "/denied/", "/denied", "/denied/missing", "/denied/index.html",
        "/location/file.txt", "/location/missing", "/files/secret.key", "/files/public.txt",
        "/files/missing.key", "/.htaccess", "/noht/.htaccess", "/noht/file.txt", "/noht/",
        # encodings, dots and slashes
        "/%70lain.txt", "/plain%2Etxt", "/plain.txt%00", "/plain%00.txt", "/%00", "/a%2Fb",
        "/a%2fb/c", "/a%5Cb", "/plain.txt%2F", "/%", "/%zz", "/%2", "/plain.txt%",
        "/../plain.txt", "/..", "/../..", "/a/../plain.txt", "/a/b/../../plain.txt", "/a/b/c/..",
        "/a/b/c/../", "/./plain.txt", "/a/./b/./c/d/e/f/deep.txt", "/a/.", "/.", "/...", "/....",
        "//plain.txt", "//", "///", "/a//b///c/d/e/f//deep.txt", "/both//", "//both", "//both//index.html",
        "/%2e%2e/plain.txt", "/a/%2e%2e/plain.txt", "/a/%2e/b", "/a/..%2fplain.txt", "/a/.%2e/plain.txt",
        "/..plain.txt", "/plain.txt.", "/plain.txt..", "/PLAIN.TXT", "/plain.txt%20", "/%20plain.txt",
        "/plain.txt;x=y", "/plain.txt:", "/~nobody/", "/proc/self/environ", "/etc/passwd",
        # other directory settings
        "/etag-none/file.txt", "/etag-none-set/file.txt", "/etag-all/file.txt", "/etag-digest/file.txt", "/md5/file.txt",
        "/mmapoff/small.bin", "/mmapoff/large.bin", "/sendfile/small.bin", "/sendfile/large.bin",
        "/both-off/small.bin", "/both-off/large.bin",
    )
    for path in every:
        # httpd logs a refused request line without its headers, so without the tag.
        yield one(f"path{path}", path, expect=EXPECT_PATH.get(path), log="#" not in path)


def names():
    listed = ("with space.txt", "per%cent.txt", "per%41.txt", "perA.txt", "plus+plus.txt",
              "plus plus.txt", "question?.txt", "ünïcödé-日本.txt", "semi;colon.txt", "amp&.txt",
              "quote\".txt", "back\\slash.txt", "new\nline.txt", "star*.txt", "colon:.txt",
              "hash#.txt", "~tilde.txt", "-dash.txt", "...", "dot.", "UPPER.TXT", "upper.txt",
              " leading.txt", "tab\t.txt")
    for name in listed:
        yield one(f"name-{quote(name)}", "/names/" + quote(name))
    yield one("name-latin1", "/names/latin1-%E9.txt", expect=200)
    yield one("name-plus-bare", "/names/plus+plus.txt", expect=200)
    yield one("name-question-bare", "/names/question?.txt", expect=404)
    yield one("name-255", "/names/" + tree.NAME_255, expect=200)
    yield one("name-256", "/names/n" + tree.NAME_255)
    yield one("name-256-dir", "/names/" + "d" * 256 + "/file.txt")
    yield one("name-long-path", f"/names/{'x' * 200}/{'y' * 200}/z.txt", expect=200)
    for length in (4000, 4095, 4096, 5000, 8000):
        yield one(f"path-{length}-flat", "/" + "p" * (length - 1))
        yield one(f"path-{length}-deep", "/a" * (length // 2))
        yield one(f"path-{length}-below-file", "/plain.txt" + "/a" * (length // 2))
    yield one("path-9000", "/" + "p" * 9000, log=False)
    yield one("path-raw-utf8", "/names/ünïcödé-日本.txt", log=False)
    yield one("path-dots-long", "/a/.." * 700 + PLAIN, expect=200)


def big_file():
    yield one("big-head", "/big.bin", "HEAD", expect=200)
    edge = 1 << 31
    for name, value in (("start", "bytes=0-15"), ("edge", f"bytes={edge - 16}-{edge + 15}"),
                        ("behind", f"bytes={edge + 100}-{edge + 5000}"), ("tail", "bytes=-16"),
                        ("multi", f"bytes=0-7,{edge - 8}-{edge + 7},-16"),
                        ("beyond", f"bytes={tree.BIG_SIZE}-")):
        yield one(f"big-range-{name}", "/big.bin", Range=value,
                  expect=416 if name == "beyond" else 206)
    yield one("big-since", "/big.bin", If_Modified_Since=AT, expect=304)


def permissions():
    for path in ("none.txt", "rootonly.txt", "exec.txt", "dir000/file.txt", "dir000/", "dir000",
                 "dir000/missing", "search-only/file.txt", "search-only/", "read-only/file.txt",
                 "read-only/", "read-only/missing", "none.txt/more"):
        expect = 403 if path in ("none.txt", "rootonly.txt", "dir000/file.txt") else None
        yield one(f"perm-{path}", "/perm/" + path, expect=expect)
    yield one("perm-head", "/perm/none.txt", "HEAD", expect=403)
    yield one("perm-post", "/perm/none.txt", "POST")
    yield one("perm-since", "/perm/none.txt", If_Modified_Since=AT)
    yield one("perm-range", "/perm/none.txt", Range="bytes=0-1")


def links():
    for kind in ("follow", "never", "owner"):
        for path in ("real/file.txt", "same", "other", "dir/file.txt", "dir/", "dir",
                     "otherdir/file.txt", "otherdir/", "absolute", "outside", "outdir/file.txt",
                     "chain", "mixed", "dangling", "loop", "loop-a", "loop/x", "through-file",
                     "dangling/x", "same/more", "up/plain.txt", "denied/file.txt", "denied/"):
            expect = {"follow": 200, "never": 403, "owner": 200}[kind] if path == "same" else None
            if path == "other" and kind == "owner":
                expect = 403
            yield one(f"link-{kind}-{path}", f"/links/{kind}/{path}", expect=expect)
    for host in ("owner.test:8080", "nosymlinks.test:8080", "all.test:8080"):
        for path in ("/links/follow/same", "/links/follow/other", "/links/follow/dir/file.txt",
                     "/plain.txt", "/a/b/c/d/e/f/deep.txt", "/links/follow/outside"):
            yield one(f"link-{host}{path}", path, host=host)


def htaccess():
    cases = {
        "plain.txt": 200, "deny/file.txt": 403, "deny/": 403, "deny/missing": 403,
        "deny/deep/er/file.txt": 403, "deny/reopened/file.txt": 200, "header/file.txt": 200,
        "header/deep/er/file.txt": 200, "header/missing": 404, "options/": None, "indexes/": 200,
        "indexes/deep/": 200, "nofollow/link": 403, "nofollow/file.txt": 200, "broken/file.txt": 500,
        "broken/": 500, "broken/deep/er/file.txt": 500, "auth/file.txt": 401, "error/missing": 404,
        "error/deep/missing": 404, "types/file.txt": 200, "types/forced.txt": 200, "index/": 200,
        "index/deep/": None, "rewrite/any/thing": 200, "rewrite/file.txt": 200, "rewrite/": None,
        "rewrite/any?q=1": 200, "files/secret.txt": 403, "files/file.txt": 200,
        "files/deep/er/file.txt": 200, "redirect/old": 302, "redirect/file.txt": 200,
        "expires/file.txt": 200, "if/file.txt": 200, "if/file.txt?no": 403, "empty/file.txt": 200,
        "etag/file.txt": 200, "pathinfo/file.txt/more": 200, "merge/file.txt": 200,
        "merge/inner/file.txt": 200, "ssi/file.txt": 200, "linkdir/file.txt": 403,
        "unreadable/file.txt": 403, "unreadable/": 403, "dirht/file.txt": None,
        "danglinght/file.txt": None, "linkht/file.txt": 403, "limited/file.txt": None,
        "limited/": None, "othername/file.txt": 200, "deny/.htaccess": 403, "plain.txt/.htaccess": 404,
        "plain.txt/more": 404, "": None, "users": 200,
    }
    for path, expect in cases.items():
        yield one(f"ht-{path}", "/ht/" + path, expect=expect)
        yield one(f"ht-all-{path}", "/ht/" + path, host="all.test:8080")
    yield one("ht-auth-good", "/ht/auth/file.txt", Authorization=AUTH, expect=200)
    yield one("ht-auth-bad", "/ht/auth/file.txt", Authorization="Basic eDp5", expect=401)
    yield one("ht-auth-deep", "/ht/auth/deep/er/file.txt", Authorization=AUTH, expect=200)
    yield one("ht-auth-since", "/ht/auth/file.txt", Authorization=AUTH, If_Modified_Since=AT, expect=304)
    yield one("ht-post", "/ht/header/file.txt", "POST")
    yield one("ht-head", "/ht/header/file.txt", "HEAD", expect=200)
    yield one("ht-options", "/ht/header/file.txt", "OPTIONS")
    yield one("ht-range", "/ht/header/file.txt", Range="bytes=0-3", expect=206)
    yield one("ht-all-noht", "/noht/file.txt", host="all.test:8080", expect=403)
    yield one("ht-othername", "/ht/othername/file.txt", host="othername.test:8080", expect=403)
    yield one("ht-othername-deny", "/ht/deny/file.txt", host="othername.test:8080", expect=200)
    yield pipelined("ht-pipeline", [
        ("GET", f"/ht/{name}/file.txt", {}) for name in ("header", "deny", "merge", "merge/inner",
                                                         "types", "etag", "auth", "header")])


def hosts():
    for host in ("second.test:8080", "unknown.test", "all.test:8080", "owner.test:8080", "parity.test",
                 "PARITY.TEST:8080", "parity.test.:8080", "127.0.0.1", "[::1]:8080", "", "bad host"):
        log = host not in ("", "bad host")
        for path in ("/", PLAIN, "/both", "/missing.txt"):
            yield one(f"host-{host}{path}", path, host=host, log=log)
    yield one("host-all-deep", "/a/b/c/d/e/f/deep.txt", host="all.test:8080", expect=200)
    yield one("error-404", "/missing.txt", host="errors.test:8080", expect=404)
    yield one("error-404-head", "/missing.txt", "HEAD", host="errors.test:8080", expect=404)
    yield one("error-403", "/denied/file.txt", host="errors.test:8080", expect=403)
    yield one("error-403-file", "/perm/none.txt", host="errors.test:8080", expect=403)
    yield one("signed-404", "/missing.txt", host="signed.test:8080", expect=404)
    for host in ("slashes.test:8080", "nodecode.test:8080", "nomerge.test:8080"):
        for path in ("/a%2Fb/c/d/e/f/deep.txt", "/plain.txt%2F", "/a%2F..%2Fplain.txt", "//plain.txt",
                     "/a//b/c/d/e/f/deep.txt", "/both//", "/plain.txt"):
            yield one(f"{host}{path}", path, host=host)


def modules():
    for path in ("/ssi/page.shtml", "/ssi/nested.shtml", "/ssi/part.txt", "/ssi/page.shtml/info",
                 "/deflate/text.txt", "/deflate/random.bin", "/deflate/small.txt",
                 "/headers/file.txt", "/headers/missing", "/expires/file.txt", "/expires/file.html",
                 "/multi/doc", "/multi/doc.html", "/multi/doc.html.en", "/multi/", "/multi/exact",
                 "/multi/missing", "/multi/map.var", "/rw/abs", "/rw/pt", "/rw/file", "/rw/cond",
                 "/rw/redirect", "/rw/gone", "/rw/none", "/perdir/from", "/perdir/out",
                 "/perdir/moved", "/perdir/forbidden", "/perdir/target.txt", "/perdir/none",
                 "/subst/file.txt", "/asis/file.asis", "/cookie/file.txt", "/cookie/missing",
                 "/cond/file.txt"):
        yield one(f"mod{path}", path)
        yield one(f"mod-gzip-head{path}", path, "HEAD", Accept_Encoding="gzip")
        yield one(f"mod-tls{path}", path, tls=True, Accept_Encoding="gzip")
    for name, language in (("de", "de"), ("en", "en"), ("fr", "fr"), ("q", "en;q=0.1, de;q=0.9")):
        yield one(f"multi-{name}", "/multi/doc", Accept_Language=language)
        yield one(f"multi-index-{name}", "/multi/", Accept_Language=language)
    yield one("multi-406", "/multi/doc", Accept="image/png", Accept_Language="fr")
    yield one("deflate-gzip", "/deflate/text.txt", Accept_Encoding="gzip", expect=200)
    yield one("deflate-random", "/deflate/random.bin", Accept_Encoding="gzip", expect=200)
    yield one("deflate-since", "/deflate/text.txt", Accept_Encoding="gzip", If_Modified_Since=AT)
    yield one("ssi-since", "/ssi/page.shtml", If_Modified_Since=AT, expect=200)
    yield one("cookie-no", "/cookie/file.txt", Cookie="no", expect=403)
    yield one("subst-range", "/subst/file.txt", Range="bytes=0-5")


def tls():
    for path in (PLAIN, "/large.bin", "/both/", "/both", "/missing.txt", "/denied/file.txt",
                 "/listing/", "/empty.txt", "/ht/header/file.txt", "/links/never/same"):
        yield one(f"tls{path}", path, tls=True)
    yield one("tls-range", "/large.bin", tls=True, Range="bytes=5-10,200000-200100", expect=206)
    yield one("tls-since", PLAIN, tls=True, If_Modified_Since=AT, expect=304)
    yield one("tls-host", PLAIN, tls=True, host="second.test:8080")
    yield pipelined("tls-pipeline", [("GET", "/large.bin", {}), ("GET", PLAIN, {}),
                                     ("HEAD", PLAIN, {}), ("GET", "/four-kib.bin", {})], tls=True)


def every_case():
    groups = (methods, bad_bodies, connections, ranges, conditions, paths, names, big_file, permissions, links,
              htaccess, hosts, modules, tls)
    cases = [case for group in groups for case in group()]
    assert len({c.name for c in cases}) == len(cases), "two cases have one name"
    return cases


# HTTP/2 goes through curl: (name, path, further curl arguments).
HTTP2 = [(f"h2{path}", path, ()) for path in (
    PLAIN, "/large.bin", "/four-kib.bin", "/empty.txt", "/both/", "/both", "/missing.txt",
    "/denied/file.txt", "/listing/", "/ht/header/file.txt", "/ht/deny/file.txt", "/ssi/page.shtml",
    "/links/never/same", "/links/follow/same", "/multi/doc", "/plain.txt/more", "/perm/none.txt",
    "/etag-digest/file.txt", "/md5/file.txt", "/mmapoff/large.bin", "/both-off/large.bin",
    "/deflate/text.txt", "/names/" + quote("with space.txt"))] + [
    ("h2-head", PLAIN, ("-I",)),
    ("h2-post", PLAIN, ("-d", "a=b")),
    ("h2-options", PLAIN, ("-X", "OPTIONS")),
    ("h2-range", "/large.bin", ("-r", "100-5000")),
    ("h2-range-suffix", "/large.bin", ("-r", "-9000")),
    ("h2-since", PLAIN, ("-H", f"If-Modified-Since: {AT}")),
    ("h2-etag", PLAIN, ("-H", f"If-None-Match: {PLAIN_ETAG}")),
    ("h2-deflate", "/deflate/text.txt", ("-H", "Accept-Encoding: gzip")),
    ("h2-big-tail", "/big.bin", ("-r", "-16")),
    ("h2-host", PLAIN, ("-H", "Host: second.test:8080")),
]
