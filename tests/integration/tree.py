# SPDX-License-Identifier: Apache-2.0
"""Document trees: the one of the parity test, the big one, hot files."""

import os
import random
from pathlib import Path

from httpd import user_ids

# A time long past: a fresh file would get a weak ETag for a second.
MTIME = 1_500_000_000
BIG_SIZE = (1 << 31) + (4 << 20)
BIG_MARKS = (0, (1 << 31) - 8, BIG_SIZE - 16)
NAME_255 = "n" * 251 + ".txt"


def content(name, size):
    """Incompressible bytes, different for every name, the same in every run."""
    return random.Random(name).randbytes(size)


def put(path, data=b"", mode=0o644, mtime=MTIME):
    """Write one file, its directories included."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    path.chmod(mode)
    os.utime(path, (mtime, mtime))
    return path


def release(fifo):
    """A process that waits in open() for a writer goes on."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        pass                            # no process waits


def etag(path):
    """The entity tag of FileETag MTime Size."""
    found = os.stat(path)
    return f'"{found.st_size:x}-{found.st_mtime_ns // 1000:x}"'


def touch_directories(root):
    """Equal directory times, so that listings can be compared."""
    for where, _, _ in os.walk(root):
        os.utime(where, (MTIME, MTIME))


def hot_files(root, sizes):
    """{name: size} -> files of incompressible distinct content below root."""
    for name, size in sizes.items():
        put(Path(root) / name, content(name, size))


def many_files(root, count=2100, largest=300_000, seed=7):
    """count files of 0 B .. largest in nested directories: {path: content}."""
    rng = random.Random(seed)
    made = {}
    for i in range(count):
        path = f"d{i % 12}/e{i % 7}/f{i % 5}/file{i}.bin"
        size = 0 if i % 97 == 0 else largest if i % 499 == 1 else int(2 ** rng.uniform(0, 18.2))
        made[path] = content(f"{seed}/{path}", min(size, largest))
        put(Path(root) / path, made[path])
    return made


def sparse(path, size, marks):
    """A file with a few bytes of data and a large hole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as out:
        for at in marks:
            out.seek(at)
            out.write(b"mark%04d" % (at % 10000))
        out.truncate(size)
    os.utime(path, (MTIME, MTIME))


def parity_tree(base):
    """The tree of the comparison: (document root, a second root outside of it)."""
    www, outside = Path(base) / "www", Path(base) / "outside"
    _plain(www)
    _names(www)
    _directories(www)
    _permissions(www)
    _links(www, outside)
    _htaccess(www)
    _modules(www)
    for root in (outside, www):
        touch_directories(root)
    return www, outside


def _plain(www):
    put(www / "index.html", "<p>index</p>\n")
    put(www / "plain.txt", "".join(f"line {i:04d} of the plain file\n" for i in range(200)))
    put(www / "style.css", "body { color: black }\n")
    put(www / "four-kib.bin", content("four", 4096))
    put(www / "large.bin", content("large", 300_000))
    put(www / "empty.txt")
    put(www / "noextension", "no extension\n")
    put(www / "future.txt", "from tomorrow\n", mtime=4_000_000_000)
    put(www / "old.txt", "from 1960\n", mtime=-300_000_000)
    sparse(www / "big.bin", BIG_SIZE, BIG_MARKS)
    put(www / "a/b/c/d/e/f/deep.txt", "deep\n")


def _names(www):
    names = ("with space.txt", "per%cent.txt", "per%41.txt", "plus+plus.txt", "question?.txt",
             "ünïcödé-日本.txt", "semi;colon.txt", "amp&.txt", "quote\".txt", "back\\slash.txt",
             "new\nline.txt", "star*.txt", "colon:.txt", "hash#.txt", "~tilde.txt", "-dash.txt",
             "...", "dot.", " leading.txt", "tab\t.txt", NAME_255)
    for name in names:
        put(www / "names" / name, f"this is {name!r}\n")
    put(os.fsencode(www / "names").decode() + "/latin1-\udce9.txt", "latin-1 name\n")
    put(www / "names/UPPER.TXT", "upper\n")
    put(www / "names" / ("x" * 200) / ("y" * 200) / "z.txt", "long path\n")


def _directories(www):
    put(www / "second/index2.html", "second candidate\n")
    put(www / "both/index.html", "first of both\n")
    put(www / "both/index2.html", "second of both\n")
    put(www / "noindex/file.txt", "no index here\n")
    (www / "emptydir").mkdir()
    put(www / "listing/file-a.txt", "a\n")
    put(www / "listing/file-b.html", "<title>b</title>\n")
    put(www / "listing/sub/x.txt", "x\n")
    put(www / "indexdir/index.html/inner.txt", "the index is a directory\n")
    put(www / "fallback/there.txt", "there\n")
    put(www / "noslash/index.html", "DirectorySlash Off\n")
    put(www / "pathinfo-on/file.txt", "path-info on\n")
    put(www / "pathinfo-off/page.shtml", 'info <!--#echo var="PATH_INFO" -->\n')
    put(www / "denied/file.txt", "nobody may see this\n")
    put(www / "denied/index.html", "nobody may see this index\n")
    put(www / "location/file.txt", "denied by Location\n")
    put(www / "files/secret.key", "denied by FilesMatch\n")
    put(www / "files/public.txt", "allowed\n")
    put(www / "cond/file.txt", "conditional\n")
    for kind in ("none", "none-set", "all", "digest"):
        put(www / f"etag-{kind}/file.txt", f"etag {kind}\n")
    put(www / "md5/file.txt", "content digest\n")
    for kind in ("mmapoff", "sendfile", "both-off"):
        put(www / f"{kind}/small.bin", content(kind, 100))
        put(www / f"{kind}/large.bin", content(kind, 100_000))


def _permissions(www):
    put(www / "perm/none.txt", "mode 000\n", mode=0)
    put(www / "perm/rootonly.txt", "root only\n", mode=0o600)
    put(www / "perm/exec.txt", "executable\n", mode=0o755)
    put(www / "perm/dir000/file.txt", "directory 000\n")
    put(www / "perm/dir000/index.html", "directory 000\n")
    (www / "perm/dir000").chmod(0)
    put(www / "perm/search-only/file.txt", "directory 711\n")
    (www / "perm/search-only").chmod(0o711)
    put(www / "perm/read-only/file.txt", "directory 744: no search\n")
    (www / "perm/read-only").chmod(0o744)
    os.mkfifo(www / "perm/fifo")
    (www / "perm/fifo").chmod(0o644)


def _link(path, target, owner=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(target, path)
    if owner is not None:
        os.lchown(path, *owner)
    os.utime(path, (MTIME, MTIME), follow_symlinks=False)


def _links(www, outside):
    put(outside / "alias/index.html", "alias index\n")
    put(outside / "alias/file.txt", "alias file\n")
    put(outside / "alias/sub/file.txt", "alias sub file\n")
    put(outside / "vhost/index.html", "other virtual host\n")
    put(outside / "vhost/plain.txt", "plain of the other host\n")
    put(outside / "target/file.txt", "outside of the root\n")
    for kind in ("follow", "never", "owner"):
        links = www / "links" / kind
        put(links / "real/file.txt", f"real file {kind}\n")
        put(links / "real/index.html", f"real index {kind}\n")
        _link(links / "same", "real/file.txt")
        _link(links / "other", "real/file.txt", user_ids())
        _link(links / "dir", "real")
        _link(links / "otherdir", "real", user_ids())
        _link(links / "absolute", links / "real/file.txt")
        _link(links / "outside", outside / "target/file.txt")
        _link(links / "outdir", outside / "target")
        _link(links / "chain", "same")
        _link(links / "mixed", "other")
        _link(links / "dangling", "nowhere")
        _link(links / "loop", "loop")
        _link(links / "loop-a", "loop-b")
        _link(links / "loop-b", "loop-a")
        _link(links / "through-file", "real/file.txt/more")
        _link(links / "up", "../..")
        _link(links / "tofifo", www / "perm/fifo")
        _link(links / "denied", www / "denied")


def _htaccess(www):
    ht = www / "ht"
    put(ht / "plain.txt", "no access file here\n")
    texts = {
        "deny": "Require all denied\n",
        "header": "Header set X-From htaccess\nHeader append X-Two one\n",
        "options": "Options -Indexes\n",
        "indexes": "Options +Indexes\n",
        "nofollow": "Options -FollowSymLinks\n",
        "broken": "NoSuchDirective on\n",
        "auth": f'AuthType Basic\nAuthName "it"\nAuthUserFile {www}/ht/users\nRequire valid-user\n',
        "error": "ErrorDocument 404 /errors/nested.html\nErrorDocument 403 \"go away\n",
        "types": "AddType text/x-special .txt\n<Files forced.txt>\nForceType text/css\n</Files>\n",
        "index": "DirectoryIndex start.html\n",
        "rewrite": "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\n"
                   "RewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule ^(.*)$ front.html [L,QSA]\n",
        "files": "<Files secret.txt>\nRequire all denied\n</Files>\n",
        "redirect": "Redirect /ht/redirect/old /ht/redirect/file.txt\n",
        "expires": "ExpiresActive On\nExpiresDefault A60\n",
        "if": "<If \"%{QUERY_STRING} == 'no'\">\nRequire all denied\n</If>\n",
        "empty": "",
        "etag": "FileETag None\n",
        "pathinfo": "AcceptPathInfo On\n",
        "merge": "Header set X-Outer outer\nHeader set X-Which outer\n",
        "merge/inner": "Header set X-Which inner\n",
        "deny/reopened": "Require all granted\n",
        "ssi": "Options +Includes\nAddOutputFilter INCLUDES .txt\n",
    }
    for name, text in texts.items():
        put(ht / name / ".htaccess", text)
        put(ht / name / "file.txt", f"file of {name}\n")
        put(ht / name / "secret.txt", f"secret of {name}\n")
        put(ht / name / "forced.txt", f"forced of {name}\n")
        put(ht / name / "deep/er/file.txt", f"deeper file of {name}\n")
    put(ht / "index/start.html", "start\n")
    put(ht / "rewrite/front.html", "front controller\n")
    put(ht / "redirect/file.txt", "redirected\n")
    _link(ht / "nofollow/link", "file.txt")
    _link(ht / "linkdir", "deny")
    # user "reader", password "secret"
    put(ht / "users", "reader:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n")
    put(ht / "unreadable/.htaccess", "Require all granted\n", mode=0)
    put(ht / "unreadable/file.txt", "unreadable access file\n")
    put(ht / "dirht/file.txt", "access file is a directory\n")
    (ht / "dirht/.htaccess").mkdir()
    put(ht / "danglinght/file.txt", "access file is a dangling link\n")
    _link(ht / "danglinght/.htaccess", "nowhere")
    put(ht / "linkht/file.txt", "access file is a link\n")
    _link(ht / "linkht/.htaccess", "../deny/.htaccess")
    put(ht / "limited/.htaccess", "Header set X-Limited yes\nOptions +Indexes\n")
    put(ht / "limited/file.txt", "AllowOverride FileInfo only\n")
    put(ht / "othername/.access", "Require all denied\n")
    put(ht / "othername/file.txt", "AccessFileName .access\n")
    put(www / "noht/.htaccess", "Require all denied\n")
    put(www / "noht/file.txt", "AllowOverride None: the access file is ignored\n")


def _modules(www):
    put(www / "ssi/page.shtml", 'a <!--#include virtual="/plain.txt" -->\n'
        'b <!--#include virtual="part.txt" -->\nc <!--#include file="part.txt" -->\n'
        'd <!--#include virtual="/denied/file.txt" -->\ne <!--#include virtual="missing" -->\n'
        'f <!--#fsize file="part.txt" --> <!--#flastmod virtual="part.txt" -->\n'
        'g <!--#include virtual="/ht/header/file.txt" --> <!--#echo var="DOCUMENT_URI" -->\n')
    put(www / "ssi/part.txt", "the part\n")
    put(www / "ssi/nested.shtml", '<!--#include virtual="page.shtml" -->nested\n')
    put(www / "deflate/text.txt", "compress me, please. " * 2000)
    put(www / "deflate/small.txt", "small\n")
    put(www / "deflate/random.bin", content("deflate", 200_000))
    put(www / "headers/file.txt", "headers\n")
    put(www / "expires/file.txt", "expires\n")
    put(www / "expires/file.html", "expires\n")
    for language in ("en", "de"):
        put(www / f"multi/doc.html.{language}", f"document in {language}\n")
        put(www / f"multi/index.html.{language}", f"index in {language}\n")
    put(www / "multi/exact.txt", "exact\n")
    put(www / "multi/map.var", "URI: doc\n\nURI: doc.html.en\nContent-type: text/html\n"
        "Content-language: en\n\nURI: doc.html.de\nContent-type: text/html\n"
        "Content-language: de\n")
    put(www / "rewritten/target.txt", "rewrite target\n")
    put(www / "perdir/target.txt", "per-directory target\n")
    put(www / "errors/404.html", "our own 404\n")
    put(www / "errors/403.shtml", "our own 403\n")
    put(www / "errors/nested.html", "nested 404\n")
    put(www / "subst/file.txt", "replace THIS here\n")
    put(www / "asis/file.asis", "Status: 203 As it is\nContent-Type: text/plain\nX-As: is\n\nbody\n")
    put(www / "cookie/file.txt", "expressions\n")
