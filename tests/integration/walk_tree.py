# SPDX-License-Identifier: Apache-2.0
"""The tree and the virtual hosts of the matrix of AllowOverride, Options and .htaccess."""

import os

from httpd import user_ids
from tree import _link as link, put, touch_directories

USERS = "reader:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"     # password "secret"
MIB = 1 << 20

OVERRIDES = {
    "none": "AllowOverride None",
    "all": "AllowOverride All",
    "fileinfo": "AllowOverride FileInfo",
    "auth": "AllowOverride AuthConfig",
    "options": "AllowOverride Options=Indexes,FollowSymLinks",
    "most": "AllowOverride FileInfo Indexes Limit AuthConfig Options",
    "nonfatal": "AllowOverride All Nonfatal=All",
    "list": "AllowOverride None\nAllowOverrideList Header Require Redirect Options",
    "listtoo": "AllowOverride AuthConfig\nAllowOverrideList Header RewriteEngine RewriteRule",
}
OPTIONS = {
    "follow": "Options FollowSymLinks Indexes Includes",
    "nofollow": "Options Indexes Includes",
    "owner": "Options SymLinksIfOwnerMatch Indexes Includes",
}
NAMES = {"two": "AccessFileName .htaccess .second", "swapped": "AccessFileName .second .htaccess",
         "other": "AccessFileName .second", "sub": "AccessFileName conf/.htaccess .htaccess"}


def vhosts(root):
    """[(names, text)], the first answers unknown names."""
    made = []
    for override, text in OVERRIDES.items():
        for options, line in OPTIONS.items():
            made.append(([f"{override}-{options}"], f"<Directory {root}>\n{text}\n{line}\n</Directory>\n"))
    everything = f"<Directory {root}>\n{OVERRIDES['all']}\n{OPTIONS['follow']}\n</Directory>\n"
    made += [([f"names-{name}"], f"{line}\n{everything}") for name, line in NAMES.items()]
    made.append((["down"], everything + f"<Directory {root}/h>\nAllowOverride FileInfo AuthConfig\n"
                 f"</Directory>\n<Directory {root}/h/*/a>\nAllowOverride None\n</Directory>\n"
                 f"<Directory {root}/h/*/a/b>\nAllowOverride All\nOptions -FollowSymLinks\n"
                 f"</Directory>\n<Directory {root}/lk/plain>\nOptions -FollowSymLinks "
                 "+SymLinksIfOwnerMatch\n</Directory>\n<DirectoryMatch \"/lk/ht-\">\n"
                 "Options +FollowSymLinks\n</DirectoryMatch>\n"))
    made.append((["unspoken"], f"<Directory {root}>\nOptions SymLinksIfOwnerMatch\n</Directory>\n"))
    return made


def config(root, outside):
    return ("DirectoryIndex one.html two.html index.html\nAddOutputFilter INCLUDES .shtml\n"
            "AddType text/html .shtml\nAddHandler send-as-is .asis\n"
            "AddLanguage en .en\nAddLanguage de .de\nIndexOptions FancyIndexing\n"
            '<FilesMatch "^\\.(ht|second)">\nRequire all denied\n</FilesMatch>\n'
            f"<Directory {outside}>\nRequire all granted\nAllowOverride All\n</Directory>\n"
            f"<Directory {root}/lk/dir-owner>\nOptions -FollowSymLinks +SymLinksIfOwnerMatch\n</Directory>\n"
            f"<Directory {root}/lk/dir-follow>\nOptions +FollowSymLinks\n</Directory>\n"
            # Otherwise prefork keeps a child on each idle connection of the comparison.
            "KeepAliveTimeout 2\n")


def texts(root):
    """{directory below h/: text of its .htaccess}"""
    long_lines = "".join(f"# {i} {'x' * 90}\n" for i in range(11000))
    auth = f'AuthType Basic\nAuthName "it"\nAuthUserFile {root}/users\nRequire valid-user\n'
    rewrite = ("RewriteEngine On\nRewriteRule ^moved(.*)$ file.txt$1 [R=302,L]\n"
               "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\n"
               "RewriteRule ^(.*)$ front.html [L,QSA]\n")
    return {
        "absent": None, "empty": "", "blank": "\n  \n\t\n",
        "deny": "Require all denied\n", "deny/a/b": "Require all granted\n",
        "grant": "Require all granted\n", "grant/a/b": "Require all denied\n",
        "old-deny": "Order deny,allow\nDeny from all\n",
        "ip": "<RequireAny>\nRequire ip 10.0.0.0/8\nRequire ip 127.0.0.1\n</RequireAny>\n",
        "auth": auth, "auth/a/b": "Require user nobody\n", "auth/a/b/c": "Require all granted\n",
        "satisfy": auth + "Satisfy Any\nOrder allow,deny\nAllow from 127.0.0.1\n",
        "header": "Header set X-Which outer\nHeader set X-Outer yes\n",
        "header/a": "Header set X-Which a\n", "header/a/b/c": "Header set X-Which c\nHeader unset X-Outer\n",
        "rewrite": rewrite, "rewrite/a/b": "RewriteEngine Off\n",
        "inherit": "RewriteEngine On\nRewriteRule ^(.*)missing$ /h/header/file.txt\n",
        "inherit/a/b": "RewriteEngine On\nRewriteOptions Inherit\nRewriteRule ^file /h/deny/file.txt [L]\n",
        "rewrite-sub": "RewriteEngine On\nRewriteCond /h/deny/file.txt !-F\nRewriteCond /h/header/file.txt -U\n"
                       "RewriteRule ^missing /h/header/a/file.txt [L,E=x:1]\n"
                       "RewriteRule ^forbidden - [F]\nRewriteRule ^gone - [G]\n",
        "error": "ErrorDocument 404 /h/header/a/file.txt\nErrorDocument 403 \"go away\n"
                 "ErrorDocument 500 /h/error/file.txt\n",
        "error/a/b": "NoSuchDirective\n", "error/a/b/c": "Require all granted\n",
        "error-loop": "ErrorDocument 404 /h/error-loop/nowhere\nErrorDocument 403 /h/deny/x\n",
        "types": "AddType text/x-special .txt\nAddDefaultCharset utf-8\n<Files other.txt>\n"
                 "ForceType text/css\n</Files>\n",
        "index": "DirectoryIndex no.html nor.html file.txt\n",
        "index/a": "DirectoryIndex b/other.txt\n", "index/a/b": "DirectoryIndex /h/header/file.txt\n",
        "index-off": "DirectorySlash Off\nDirectoryIndex disabled\nOptions -Indexes\n",
        "fallback": "FallbackResource /h/fallback/file.txt\n",
        "handler": "<Files file.txt>\nSetHandler send-as-is\n</Files>\n<Files other.txt>\nSetHandler none\n</Files>\n",
        "handler-odd": "SetHandler no-such-handler\n", "handler-odd/a/b": "SetHandler none\n",
        "files": "<Files other.txt>\nRequire all denied\n</Files>\n<FilesMatch \"^mis\">\n"
                 "Header always set X-Files match\n</FilesMatch>\n",
        "if": "<If \"%{QUERY_STRING} == 'no'\">\nRequire all denied\n</If>\n<ElseIf \"-f "
              "%{REQUEST_FILENAME}\">\nHeader set X-If file\n</ElseIf>\n<Else>\n"
              "Header always set X-If none\n</Else>\n",
        "indexes-on": "Options +Indexes\n", "indexes-off": "Options -Indexes\n",
        "indexes-off/a/b": "Options +Indexes\nAddDescription \"the file\" *.txt\n"
                           "IndexOptions +DescriptionWidth=* +SuppressLastModified\nIndexIgnore other.txt\n",
        "options-none": "Options None\n", "options-odd": "Options Indexes +FollowSymLinks\n",
        "nofollow": "Options -FollowSymLinks\n",
        "broken": "Header set X-Before yes\nNoSuchDirective on\n",
        "broken-deep/a/b": "Header set\n", "unclosed": "<Files file.txt>\nRequire all denied\n",
        "not-here": "ServerName elsewhere\n", "section": "<Directory />\n</Directory>\n",
        "continued": "Header set X-Long \\\n  \"one two\"\nHeader \\\n\\\nset X-More yes\n",
        "continued-end": "Header set X-End yes\\", "no-newline": "Header set X-No newline",
        "crlf": "Header set X-Cr lf\r\nRequire all granted\r\n", "cr": "Header set X-Cr only\r",
        "crlf-continued": "Header set X-Cr \\\r\nlf\r\n",
        "nul": "Header set X-Nul before\0after\nHeader set X-Next yes\n", "bom": "\ufeffHeader set X-Bom yes\n",
        "long-line": f"Header set X-Long-Line {'y' * 3000}\n#{'z' * 20000}\nHeader set X-After line\n",
        "buffer-edge": f"#{'z' * 8190}\nHeader set X-Edge one\n#{'z' * 8189}\\\nHeader set X-Edge two\n",
        "long": long_lines + "Header set X-Long file\n",
        "long-deny": long_lines + "Require all denied\n",
        "exactly": "Header set X-Size mib\n" + "#" * (MIB - 23) + "\n",
        "one-more": "Header set X-Size more\n" + "#" * (MIB - 22) + "\n",
        "deflate": "AddOutputFilterByType DEFLATE text/plain\nExpiresActive On\nExpiresDefault A60\n",
        "etag": "FileETag None\nAcceptPathInfo On\n", "pathinfo-off": "AcceptPathInfo Off\n",
        "multi": "Options +MultiViews\nLanguagePriority de en\nForceLanguagePriority Prefer\n",
        "redirect": "Redirect /h/redirect/missing /h/redirect/file.txt\nRedirectMatch 410 /a/b/c/.*\n",
        "setenv": "SetEnvIf Request_URI other denied\nOrder allow,deny\nAllow from all\nDeny from env=denied\n",
        "ifmodule": "<IfModule mod_headers.c>\nHeader set X-If module\n</IfModule>\n"
                    "<IfModule no.c>\nBad\n</IfModule>\n",
        "limit": "<Limit GET>\nRequire all denied\n</Limit>\n",
        "with space%41é": "RewriteEngine On\nRewriteRule ^missing file.txt\nHeader set X-Odd name\n",
    }


def make(base):
    """(root, outside of it)"""
    root, outside = base / "walk", base / "walk-outside"
    put(root / "users", USERS)
    for name, text in texts(root).items():
        if text is not None:
            put(root / "h" / name / ".htaccess", text)
        if "/" not in name:
            _files(root / "h" / name, name)
    for name in ("link-deny", "link-dangling", "link-loop", "link-dir", "link-file", "link-locked",
                 "mode0", "root-only", "directory", "second", "both", "second-broken"):
        _files(root / "h" / name, name)
    _odd_files(root / "h", outside)
    _ssi(root)
    _listing(root)
    _links(root, outside)
    touch_directories(root)
    return root, outside


def _files(at, name):
    for where in ("", "a/", "a/b/", "a/b/c/"):
        put(at / where / "file.txt", f"Status: 203 As is\n\nfile of {name} {where} {'pad ' * 60}\n")
        put(at / where / "other.txt", f"other of {name} {where}\n")
    put(at / "front.html", f"front of {name}\n")
    put(at / "a/b/c/index.html", f"index of {name}\n")
    put(at / "a/doc.html.en", "english\n")
    put(at / "a/doc.html.de", "deutsch\n")


def _odd_files(h, outside):
    link(h / "link-deny/.htaccess", "../deny/.htaccess")
    link(h / "link-dangling/.htaccess", "nowhere")
    link(h / "link-loop/.htaccess", ".htaccess")
    link(h / "link-dir/.htaccess", "a")
    link(h / "link-file/.htaccess", "file.txt/x")
    put(outside / "locked/.htaccess", "Require all granted\n")
    (outside / "locked").chmod(0o700)
    link(h / "link-locked/.htaccess", outside / "locked/.htaccess")
    put(h / "mode0/.htaccess", "Require all granted\n", mode=0)
    put(h / "root-only/a/b/.htaccess", "Require all granted\n", mode=0o600)
    (h / "directory/.htaccess").mkdir()
    put(h / "directory/a/conf/.htaccess", "Header set X-Conf sub\n")
    put(h / "second/.second", "Header set X-Name second\n")
    put(h / "both/.htaccess", "Header set X-Name htaccess\n")
    put(h / "both/.second", "Header set X-Name second\nRequire all denied\n")
    put(h / "both/a/b/.second", "Require all granted\n")
    put(h / "second-broken/.second", "NoSuchDirective\n")
    put(h / "second-broken/a/.htaccess", "Header set X-Name deeper\n")


def _ssi(root):
    includes = ("plain.txt", "missing", "/h/deny/file.txt", "/h/header/a/b/c/file.txt", "/h/broken/file.txt",
                "/h/mode0/file.txt", "/h/auth/file.txt", "/h/rewrite/whatever", "/h/index/", "/lk/plain/other")
    # Without the zone's name, which glibc's strftime now and then leaves out where many threads ask for it at once.
    put(root / "ssi/page.shtml", '<!--#config timefmt="%Y-%m-%d %H:%M:%S" -->\n'
        + "".join(f'{i} <!--#include virtual="{i}" -->\n' for i in includes)
        + '<!--#fsize virtual="/h/deny/file.txt" --> <!--#flastmod file="plain.txt" -->\n')
    put(root / "ssi/plain.txt", "plain\n")
    put(root / "ssi/.htaccess", "Header set X-Ssi yes\n")
    put(root / "ssi/on/.htaccess", "Options +Includes\nAddOutputFilter INCLUDES .txt\nDirectoryIndex page.txt\n")
    put(root / "ssi/on/page.txt", '<!--#include virtual="../page.shtml" -->\n<!--#echo var="DOCUMENT_NAME" -->\n')


def _listing(root):
    at = root / "listing"
    put(at / ".htaccess", 'AddDescription "described" *.txt\nAddDescription "a directory" sub*\n'
        "IndexOptions FancyIndexing FoldersFirst\nIndexOrderDefault Ascending Name\nHeaderName HEAD.html\n"
        "ReadmeName /ssi/page.shtml\n")
    put(at / "HEAD.html", "<p>head</p>\n")
    put(at / "a.txt", "a\n")
    put(at / "denied.txt", "no\n", mode=0)
    for name, text in (("sub-deny", "Require all denied\n"), ("sub-broken", "NoSuch\n"),
                       ("sub-auth", f"AuthType Basic\nAuthName x\nAuthUserFile {root}/users\nRequire valid-user\n"),
                       ("sub-plain", "Header set X-Sub yes\n")):
        put(at / name / ".htaccess", text)
        put(at / name / "x.txt", "x\n")
    link(at / "link.txt", "a.txt")
    link(at / "other.txt", "a.txt", user_ids())
    link(at / "dangling.txt", "nowhere")
    link(at / "sub-link", "sub-plain")


LINK_DIRECTORIES = {"plain": None, "dir-owner": None, "dir-follow": None,
                    "ht-nofollow": "Options -FollowSymLinks\n",
                    "ht-owner": "Options -FollowSymLinks +SymLinksIfOwnerMatch\n",
                    "ht-follow": "Options +FollowSymLinks\n", "ht-header": "Header set X-Link dir\n"}
LINK_PATHS = ("file", "chain", "other", "other-chain", "chain-other", "absolute", "outside", "dangling",
              "loop", "dangling/x", "loop/x", "file/info", "dir", "dir/", "dir/file.txt", "dir/missing",
              "dir/deep/file.txt", "dir/deep/link", "otherdir/file.txt", "otherdir/", "otherdir/missing",
              "dirchain/deep/file.txt", "absdir/file.txt", "outdir/file.txt", "outdir/", "outdir/in/file.txt",
              "outfile", "up/plain/file", "denied/file.txt", "broken/file.txt", "auth/a/b/c/file.txt",
              "dir/deep/otherlink", "owned", "owneddir/file.txt", "through-file", "slash/file.txt", "")


def _links(root, outside):
    put(outside / "target/file.txt", "outside\n")
    put(outside / "target/.htaccess", "Header set X-Out side\n")
    put(outside / "target/in/file.txt", "outside, deeper\n")
    put(outside / "target/in/.htaccess", "Require all denied\n")
    for name, text in LINK_DIRECTORIES.items():
        at = root / "lk" / name
        put(at / "real/file.txt", f"real {name}\n")
        put(at / "real/.htaccess", "Header set X-Real yes\nDirectoryIndex file.txt\n")
        put(at / "real/deep/file.txt", f"deep {name}\n")
        put(at / "real/deep/.htaccess", "Header set X-Deep yes\n")
        owned = put(at / "owned-target/file.txt", "of www-data\n")
        for path in (owned, owned.parent):
            os.chown(path, *user_ids())
        if text:
            put(at / ".htaccess", text)
        _links_in(at, root, outside)


def _links_in(at, root, outside):
    targets = {"file": "real/file.txt", "chain": "file", "chain-other": "other", "absolute": at / "real/file.txt",
               "outside": outside / "target/file.txt", "dangling": "nowhere", "loop": "loop", "dir": "real",
               "dirchain": "dir", "absdir": at / "real", "outdir": outside / "target", "up": "..",
               "outfile": "../../../walk-outside/target/file.txt", "denied": root / "h/deny",
               "broken": root / "h/broken", "auth": "../../h/auth", "through-file": "real/file.txt/more",
               "slash": "real/", "real/deep/link": "../file.txt"}
    for name, target in targets.items():
        link(at / name, target)
    others = {"other": "real/file.txt", "other-chain": "file", "otherdir": "real", "owned": "owned-target/file.txt",
              "owneddir": "owned-target", "real/deep/otherlink": "file.txt"}
    for name, target in others.items():
        link(at / name, target, user_ids())
