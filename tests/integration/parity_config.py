# SPDX-License-Identifier: Apache-2.0
"""The configuration that both servers of the comparison get."""

MODULES = ("asis", "allowmethods")


def main(www, outside):
    """Text for the main server: every virtual host inherits it."""
    def directory(name, text):
        return f"<Directory {www}/{name}>\n{text}\n</Directory>\n"
    parts = [
        f"Alias /alias {outside}/alias",
        f"AliasMatch ^/match/(.*)$ {outside}/alias/$1",
        "Redirect /gone-away /plain.txt",
        f"<Directory {outside}>\nRequire all granted\nOptions FollowSymLinks\n</Directory>",
        "TraceEnable off",
        "MaxKeepAliveRequests 100",
        "DirectoryIndex index.html index2.html",
        "AddLanguage en .en\nAddLanguage de .de\nLanguagePriority en de\n"
        "ForceLanguagePriority Prefer Fallback",
        "AddHandler type-map .var\nAddHandler send-as-is .asis",
        "AddType text/html .shtml\nAddOutputFilter INCLUDES .shtml",
        '<FilesMatch "^\\.ht">\nRequire all denied\n</FilesMatch>',
        '<Location "/location">\nRequire all denied\n</Location>',
        directory("listing", "Options +Indexes\nIndexOptions FancyIndexing"),
        directory("emptydir", "Options +Indexes"),
        directory("fallback", "FallbackResource /fallback/there.txt"),
        directory("noslash", "DirectorySlash Off"),
        directory("pathinfo-on", "AcceptPathInfo On"),
        directory("pathinfo-off", "AcceptPathInfo Off\nOptions +Includes"),
        directory("denied", "Require all denied"),
        directory("files", '<FilesMatch "\\.key$">\nRequire all denied\n</FilesMatch>'),
        directory("etag-none", "FileETag None"),
        directory("etag-none-set", 'FileETag None\nHeader set ETag "\\"x\\""'),
        directory("etag-all", "FileETag All"),
        directory("etag-digest", "FileETag Digest"),
        directory("md5", "ContentDigest On"),
        directory("mmapoff", "EnableMMAP Off"),
        directory("sendfile", "EnableSendfile On"),
        directory("both-off", "EnableMMAP Off\nEnableSendfile Off"),
        directory("links/never", "Options -FollowSymLinks"),
        directory("links/owner", "Options -FollowSymLinks +SymLinksIfOwnerMatch"),
        directory("ht", "AllowOverride All"),
        directory("ht/limited", "AllowOverride FileInfo"),
        directory("ssi", "Options +Includes"),
        directory("errors", "Options +Includes"),
        directory("deflate", "SetOutputFilter DEFLATE"),
        directory("headers", "Header set X-Set yes\nHeader add X-Twice one\n"
                  "Header add X-Twice two\nHeader unset Last-Modified\nHeader edit ETag - _"),
        directory("expires", "ExpiresActive On\nExpiresDefault A300\n"
                  "ExpiresByType text/html M600"),
        directory("multi", "Options +MultiViews"),
        directory("perdir", "RewriteEngine On\nRewriteRule ^from$ target.txt\n"
                  "RewriteRule ^out$ /plain.txt\nRewriteRule ^moved$ target.txt [R=302]\n"
                  "RewriteRule ^forbidden$ - [F]"),
        directory("subst", 'AddOutputFilterByType SUBSTITUTE text/plain\nSubstitute "s/THIS/that/"'),
        directory("cookie", "<If \"-f %{REQUEST_FILENAME}\">\nHeader set X-If file\n</If>\n"
                  "<If \"%{HTTP_COOKIE} =~ /no/\">\nRequire all denied\n</If>"),
        directory("cond", "AllowMethods GET HEAD"),
    ]
    return "\n".join(parts)


def vhosts(www, outside):
    """[(names, text)]: the first answers unknown names."""
    rewrite = ("RewriteEngine On\nRewriteRule ^/rw/abs$ /rewritten/target.txt\n"
               "RewriteRule ^/rw/pt$ /alias/file.txt [PT]\n"
               f"RewriteRule ^/rw/file$ {www}/rewritten/target.txt\n"
               f"RewriteCond {www}%{{REQUEST_URI}} !-f\nRewriteRule ^/rw/cond$ /plain.txt\n"
               "RewriteRule ^/rw/redirect$ /plain.txt [R=301,L]\nRewriteRule ^/rw/gone$ - [G]\n")
    overrides = f"<Directory {www}>\nAllowOverride All\n</Directory>\n"
    root_owner = (f"<Directory {www}>\nOptions -FollowSymLinks +SymLinksIfOwnerMatch\n"
                  "</Directory>\n")
    return [
        (["parity.test"], rewrite),
        (["second.test"], f"DocumentRoot {outside}/vhost"),
        (["all.test"], overrides),
        (["owner.test"], overrides + root_owner),
        (["nosymlinks.test"], f"<Directory {www}>\nOptions None\n</Directory>\n"),
        (["errors.test"], "ErrorDocument 404 /errors/404.html\nErrorDocument 403 /errors/403.shtml\n"),
        (["slashes.test"], "AllowEncodedSlashes On\n"),
        (["nodecode.test"], "AllowEncodedSlashes NoDecode\n"),
        (["othername.test"], "AccessFileName .access\n"),
        (["nomerge.test"], "MergeSlashes Off\n"),
        (["signed.test"], "ServerSignature On\n"),
    ]
