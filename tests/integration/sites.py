# SPDX-License-Identifier: Apache-2.0
"""Rules of applications that people run, in the form in which each writes them, over a tree of static files.

The front controller is a static file: what PHP would ask is left out, and httpd's part stays.
"""

from dataclasses import dataclass, field

import tree

GZIP = {"Accept-Encoding": "gzip"}
COOKIE = {"Cookie": "wordpress_logged_in_1=x"}
FRONT = "front controller\n"


@dataclass(frozen=True)
class Ask:
    """One request, and the status that a stock httpd gives."""
    path: str
    status: int = 200
    headers: dict = field(default_factory=dict)


def asks(status, *paths, **headers):
    return tuple(Ask(path, status, headers) for path in paths)


@dataclass(frozen=True)
class Site:
    """Rules as in .htaccess, further files than FILES, the requests. server: the rules suit a server, too, once
    for_server() has translated them."""
    rules: str
    files: tuple
    asks: tuple
    server: bool = False

    def make(self, root, is_htaccess):
        for name in (*FILES, *self.files):
            tree.put(root / name, FRONT if name.endswith("index.php") else f"{name}\n")
        if is_htaccess:
            tree.put(root / ".htaccess", self.rules)


FILES = ("index.php", "style.css", "robots.txt", "files/photo.txt")
COMMON = asks(200, "/", "/index.php", "/style.css", "/robots.txt", "/files/photo.txt") + asks(200, "/style.css", **GZIP)
PRETTY = asks(200, "/2024/05/a-post", "/2024/05/other-post/", "/files/none.png", "/search?q=a")
CACHED = asks(200, "/cached/", "/deep/cached/", "/cached/?p=1") + asks(200, "/cached/", "/not-cached/", **GZIP) + \
    asks(200, "/cached/", **COOKIE)


def cached(pattern, kind):
    """Pages of a cache, each also compressed."""
    return tuple(pattern.format(name) + end for name in ("cached", "deep/cached") for end in ("", kind))

WORDPRESS_RULES = """# BEGIN WordPress
<IfModule mod_rewrite.c>
RewriteEngine On
RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
RewriteBase /
RewriteRule ^index\\.php$ - [L]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule . /index.php [L]
</IfModule>
# END WordPress
"""
WORDPRESS = Site(WORDPRESS_RULES, ("wp-content/uploads/a.txt",), COMMON + PRETTY + asks(403, "/wp-content/uploads/"),
                 server=True)

SUPER_CACHE = Site("""# BEGIN WPSuperCache
<IfModule mod_rewrite.c>
RewriteEngine On
RewriteBase /
AddDefaultCharset UTF-8
RewriteCond %{REQUEST_URI} !^.*[^/]$
RewriteCond %{REQUEST_URI} !^.*//.*$
RewriteCond %{REQUEST_METHOD} !POST
RewriteCond %{QUERY_STRING} ^$
RewriteCond %{HTTP:Cookie} !^.*(comment_author_|wordpress_logged_in|wp-postpass_).*$
RewriteCond %{HTTP:Accept-Encoding} gzip
RewriteCond %{DOCUMENT_ROOT}/wp-content/cache/supercache/%{SERVER_NAME}/$1/index.html.gz -f
RewriteRule ^(.*) "/wp-content/cache/supercache/%{SERVER_NAME}/$1/index.html.gz" [L]
RewriteCond %{REQUEST_URI} !^.*[^/]$
RewriteCond %{REQUEST_METHOD} !POST
RewriteCond %{QUERY_STRING} ^$
RewriteCond %{HTTP:Cookie} !^.*(comment_author_|wordpress_logged_in|wp-postpass_).*$
RewriteCond %{DOCUMENT_ROOT}/wp-content/cache/supercache/%{SERVER_NAME}/$1/index.html -f
RewriteRule ^(.*) "/wp-content/cache/supercache/%{SERVER_NAME}/$1/index.html" [L]
</IfModule>
# END WPSuperCache
""" + WORDPRESS_RULES, cached("wp-content/cache/supercache/super-cache/{}/index.html", ".gz"), COMMON + PRETTY + CACHED)

# W3 Total Cache, "disk: enhanced".
TOTAL_CACHE = Site("""# BEGIN W3TC Browser Cache
<IfModule mod_mime.c>
    AddType text/css .css
    <IfModule mod_deflate.c>
        AddOutputFilterByType DEFLATE text/css
    </IfModule>
</IfModule>
<FilesMatch "\\.(css|js|CSS|JS)$">
    FileETag MTime Size
    <IfModule mod_headers.c>
         Header set Pragma "public"
         Header append Cache-Control "public"
    </IfModule>
</FilesMatch>
# END W3TC Browser Cache
# BEGIN W3TC Page Cache core
<IfModule mod_rewrite.c>
    RewriteEngine On
    RewriteBase /
    RewriteCond %{HTTP:Accept-Encoding} gzip
    RewriteRule .* - [E=W3TC_ENC:_gzip]
    RewriteCond %{HTTP_COOKIE} w3tc_preview [NC]
    RewriteRule .* - [E=W3TC_PREVIEW:_preview]
    RewriteCond %{REQUEST_URI} \\/$
    RewriteRule .* - [E=W3TC_SLASH:_slash]
    RewriteCond %{REQUEST_METHOD} !=POST
    RewriteCond %{QUERY_STRING} =""
    RewriteCond %{HTTP_COOKIE} !(comment_author|wp\\-postpass|w3tc_logged_out|wordpress_logged_in) [NC]
    RewriteCond %{REQUEST_URI} \\/$
    RewriteCond %{HTTP_USER_AGENT} !(W3\\ Total\\ Cache) [NC]
    RewriteCond "%{DOCUMENT_ROOT}/wp-content/cache/page_enhanced/%{HTTP_HOST}/%{REQUEST_URI}/_index%{ENV:W3TC_SLASH}%{ENV:W3TC_PREVIEW}.html%{ENV:W3TC_ENC}" -f
    RewriteRule .* "/wp-content/cache/page_enhanced/%{HTTP_HOST}/%{REQUEST_URI}/_index%{ENV:W3TC_SLASH}%{ENV:W3TC_PREVIEW}.html%{ENV:W3TC_ENC}" [L]
</IfModule>
# END W3TC Page Cache core
""" + WORDPRESS_RULES, cached("wp-content/cache/page_enhanced/total-cache/{}/_index_slash.html", "_gzip"), COMMON + PRETTY + CACHED)

LARAVEL = Site("""<IfModule mod_rewrite.c>
    <IfModule mod_negotiation.c>
        Options -MultiViews -Indexes
    </IfModule>
    RewriteEngine On
    # Handle Authorization Header
    RewriteCond %{HTTP:Authorization} .
    RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
    # Redirect Trailing Slashes If Not A Folder...
    RewriteCond %{REQUEST_FILENAME} !-d
    RewriteCond %{REQUEST_URI} (.+)/$
    RewriteRule ^ %1 [L,R=301]
    # Send Requests To Front Controller...
    RewriteCond %{REQUEST_FILENAME} !-d
    RewriteCond %{REQUEST_FILENAME} !-f
    RewriteRule ^ index.php [L]
</IfModule>
""", (), COMMON + asks(200, "/users/7/edit", "/files/none.png") + asks(301, "/users/7/", "/files") + asks(403, "/files/")
               + asks(200, "/users", Authorization="Bearer x"), server=True)

JOOMLA = Site("""<IfModule mod_autoindex.c>
  IndexIgnore *
</IfModule>
<IfModule mod_headers.c>
Header always set X-Content-Type-Options "nosniff"
</IfModule>
Options +FollowSymLinks
Options -Indexes
RewriteEngine On
RewriteCond %{QUERY_STRING} base64_encode[^(]*\\([^)]*\\) [OR]
RewriteCond %{QUERY_STRING} (<|%3C)([^s]*s)+cript.*(>|%3E) [NC,OR]
RewriteCond %{QUERY_STRING} GLOBALS(=|\\[|\\%[0-9A-Z]{0,2})
RewriteRule .* index.php [F]
RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
RewriteCond %{REQUEST_URI} ^/api/
RewriteCond %{REQUEST_URI} !^/api/index\\.php
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule .* api/index.php [L]
RewriteCond %{REQUEST_URI} !^/index\\.php
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule .* index.php [L]
<IfModule mod_headers.c>
RewriteCond "%{HTTP:Accept-encoding}" "gzip"
RewriteCond "%{REQUEST_FILENAME}\\.gz" -s
RewriteRule "^(.*)\\.css" "$1\\.css\\.gz" [QSA]
RewriteRule "\\.css\\.gz$" "-" [T=text/css,E=no-gzip:1,E=no-brotli:1]
<FilesMatch "(\\.js\\.gz|\\.css\\.gz)$">
Header set Content-Encoding gzip
Header append Vary Accept-Encoding
</FilesMatch>
</IfModule>
""", ("style.css.gz", "plain.css", "api/index.php", "images/a.txt"),
              COMMON + PRETTY + asks(200, "/api/index.php/v1/users", "/api/v1/users") + asks(200, "/plain.css", **GZIP)
              + asks(403, "/images/", "/?q=GLOBALS=x"))

DRUPAL = Site("""<FilesMatch "\\.(engine|inc|install|make|module|profile|po|sh|.*sql|theme|twig|tpl(\\.php)?|xtmpl|yml)(~|\\.sw[op]|\\.bak|\\.orig|\\.save)?$|^(\\.(?!well-known).*|Entries.*|Root|composer\\.(json|lock)|web\\.config)$">
  <IfModule mod_authz_core.c>
    Require all denied
  </IfModule>
</FilesMatch>
Options -Indexes
DirectoryIndex index.php index.html index.htm
AddType image/svg+xml svg svgz
AddEncoding gzip svgz
<IfModule mod_expires.c>
  ExpiresActive On
  ExpiresDefault A1209600
  <FilesMatch \\.php$>
    ExpiresActive Off
  </FilesMatch>
</IfModule>
ErrorDocument 404 /index.php
<IfModule mod_rewrite.c>
  RewriteEngine on
  RewriteRule ^ - [E=protossl]
  RewriteCond %{HTTPS} on
  RewriteRule ^ - [E=protossl:s]
  RewriteRule ^ - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
  RewriteRule "/\\.|^\\.(?!well-known/)" - [F]
  RewriteCond %{REQUEST_URI} ^(.*)?/(install\\.php) [OR]
  RewriteCond %{REQUEST_URI} ^(.*)?/(rebuild\\.php)
  RewriteCond %{REQUEST_URI} !core
  RewriteRule ^ %1/core/%2 [L,QSA,R=301]
  RewriteCond %{REQUEST_FILENAME} !-f
  RewriteCond %{REQUEST_FILENAME} !-d
  RewriteCond %{REQUEST_URI} !=/favicon.ico
  RewriteRule ^ index.php [L]
  RewriteCond %{REQUEST_URI} !/core/[^/]*\\.php$
  RewriteCond %{REQUEST_URI} !/core/modules/system/tests/https?\\.php
  RewriteRule "^(.+/.*|autoload)\\.php($|/)" - [F]
  <IfModule mod_headers.c>
    RewriteCond %{HTTP:Accept-encoding} gzip
    RewriteCond %{REQUEST_FILENAME}\\.gz -s
    RewriteRule ^(.*css_[a-zA-Z0-9-_]+)\\.css$ $1\\.css\\.gz [QSA]
    RewriteRule \\.css\\.gz$ - [T=text/css,E=no-gzip:1,E=no-brotli:1]
    <FilesMatch "(\\.js\\.gz|\\.css\\.gz)$">
      Header set Content-Encoding gzip
      Header append Vary Accept-Encoding
    </FilesMatch>
  </IfModule>
</IfModule>
<IfModule mod_headers.c>
  Header always set X-Content-Type-Options nosniff
</IfModule>
""", ("sites/css_a1-_B.css", "sites/css_a1-_B.css.gz", "sites/css_none.css", "sites/settings.php", "sites/icon.svgz",
       "core/rebuild.php", "core/system.module"),
              COMMON + PRETTY + asks(200, "/node/1", "/core/rebuild.php", "/sites/icon.svgz", "/sites/css_a1-_B.css")
              + asks(200, "/sites/css_a1-_B.css", "/sites/css_none.css", **GZIP) + asks(301, "/rebuild.php") + asks(404, "/favicon.ico")
              + asks(403, "/sites/settings.php", "/core/system.module", "/.git/config"))

NEXTCLOUD = Site("""<IfModule mod_headers.c>
  <IfModule mod_setenvif.c>
    SetEnvIfNoCase ^Authorization$ "(.+)" XAUTHORIZATION=$1
    RequestHeader set XAuthorization %{XAUTHORIZATION}e env=XAUTHORIZATION
  </IfModule>
  <IfModule mod_env.c>
    Header onsuccess unset X-Robots-Tag
    Header always set X-Robots-Tag "noindex, nofollow"
    SetEnv modHeadersAvailable true
  </IfModule>
  <FilesMatch "\\.(css|js|mjs|svg|gif|png|jpg|webp|ico|wasm|tflite)$">
    <If "%{QUERY_STRING} =~ /(^|&)v=/">
      Header set Cache-Control "max-age=15778463, immutable"
    </If>
    <Else>
      Header set Cache-Control "max-age=15778463"
    </Else>
  </FilesMatch>
</IfModule>
<IfModule mod_rewrite.c>
  RewriteEngine on
  RewriteCond %{HTTP_USER_AGENT} DavClnt
  RewriteRule ^$ /remote.php/webdav/ [L,R=302]
  RewriteRule .* - [env=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
  RewriteRule ^\\.well-known/carddav /remote.php/dav/ [R=301,L]
  RewriteRule ^remote/(.*) remote.php [QSA,L]
  RewriteRule ^(?:build|tests|config|lib|3rdparty|templates)/.* - [R=404,L]
  RewriteRule ^\\.well-known/(?!acme-challenge|pki-validation) /index.php [QSA,L]
  RewriteRule ^ocm-provider/?$ index.php [QSA,L]
  RewriteRule ^(?:\\.(?!well-known)|autotest|occ|issue|indie|db_|console).* - [R=404,L]
</IfModule>
AddDefaultCharset utf-8
Options -Indexes
ErrorDocument 403 /index.php/error/403
ErrorDocument 404 /index.php/error/404
<IfModule mod_rewrite.c>
  Options -MultiViews
  RewriteRule ^core/js/oc.js$ index.php [PT,E=PATH_INFO:$1]
  RewriteRule ^core/preview.png$ index.php [PT,E=PATH_INFO:$1]
  RewriteCond %{REQUEST_FILENAME} !\\.(css|js|mjs|svg|gif|ico|jpg|jpeg|png|html|otf|ttf|woff2?|map|webm|mp4|mp3|ogg|wav|flac|wasm|tflite)$
  RewriteCond %{REQUEST_FILENAME} !/core/ajax/update\\.php
  RewriteCond %{REQUEST_FILENAME} !/(cron|public|remote|status)\\.php
  RewriteCond %{REQUEST_FILENAME} !/ocs/v(1|2)\\.php
  RewriteCond %{REQUEST_FILENAME} !/robots\\.txt
  RewriteCond %{REQUEST_FILENAME} !/(ocm-provider|ocs-provider|updater)/
  RewriteCond %{REQUEST_URI} !^/\\.well-known/(acme-challenge|pki-validation)/.*
  RewriteRule . index.php [PT,E=PATH_INFO:$1]
  RewriteBase /
  <IfModule mod_env.c>
    SetEnv front_controller_active true
    <IfModule mod_dir.c>
      DirectorySlash off
    </IfModule>
  </IfModule>
</IfModule>
""", ("remote.php", "status.php", "core/img/logo.svg", "apps/files/js/main.js", "config/config.php", "ocs/v2.php"),
                 COMMON + asks(200, "/apps", "/apps/files/", "/s/AbCdEf", "/index.php/apps/dashboard/", "/core/js/oc.js", "/status.php",
                               "/core/img/logo.svg?v=1", "/apps/files/js/main.js", "/remote/files", "/ocs/v2.php/cloud/users",
                               "/.well-known/webfinger")
                 + asks(404, "/apps/files/js/none.js", "/config/config.php", "/.htaccess") + asks(301, "/.well-known/carddav")
                 + asks(200, "/remote.php/dav/files/a", Authorization="Basic eA=="))

EXPRESSIONS = Site("""RewriteEngine On
RewriteCond expr "! -e '%{REQUEST_FILENAME}'"
RewriteRule ^ /index.php [L]
<If "-s '%{DOCUMENT_ROOT}/style.css.gz'">
Header set X-Conditions yes
</If>
""", ("style.css.gz",), COMMON + PRETTY + asks(403, "/files/"), server=True)

SITES = {"wordpress": WORDPRESS, "super-cache": SUPER_CACHE, "total-cache": TOTAL_CACHE, "laravel": LARAVEL, "joomla": JOOMLA,
         "drupal": DRUPAL, "nextcloud": NEXTCLOUD, "expressions": EXPRESSIONS}


def for_server(rules):
    """The rules of a directory, for a server: its patterns begin with a slash, and there is no file name yet."""
    return (rules.replace("%{REQUEST_FILENAME}", "%{DOCUMENT_ROOT}%{REQUEST_URI}").replace("^index", "^/index")
            .replace(" index.php", " /index.php").replace("RewriteBase /\n", ""))
