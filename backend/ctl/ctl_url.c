/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths and URLs on flashpachectl's command line.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "ctl/ctl_out.h"

/* Fedora's apachectl takes no options of httpd.  Debian's httpd is apache2, and needs what apachectl sets. */
#define QUESTION "-t -D DUMP_RUN_CFG 2>/dev/null"
#define ASK_HTTPD \
    "PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/local/apache2/bin; " \
    "apachectl " QUESTION " || httpd " QUESTION
#define SAYS_ROOT "Main DocumentRoot: \""

/* Asks httpd itself for the main server's DocumentRoot.  Beside a document of JSON the note goes to standard
 * error. */
static bool ask_root(const struct ctl *ctl, char *root)
{
    char line[FP_MAX_PATH + 64];
    FILE *f = popen(ASK_HTTPD, "r");
    bool found = false;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (found || strncmp(line, SAYS_ROOT, sizeof(SAYS_ROOT) - 1) != 0)
            continue;
        line[strcspn(line, "\n") - 1] = '\0';
        found = ctl_absolute(line + sizeof(SAYS_ROOT) - 1, root);
    }
    if (f != NULL)
        pclose(f);
    if (found)
        fprintf(ctl->json ? stderr : stdout,
                "DocumentRoot %s, the main server's as httpd reports it: --root for another\n",
                ctl_name(root, strlen(root)));
    else
        ctl_complain("cannot find DocumentRoot by apachectl: give it with --root");
    return found;
}

static int hex(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Decodes the URL's path.  False for an encoded NUL byte or slash, which httpd refuses. */
static bool decode(const char *url, char *to, size_t size)
{
    size_t n = 0;

    for (; *url != '\0' && *url != '?' && *url != '#' && n + 1 < size; url++) {
        char c = *url;

        if (c == '%') {
            if (!isxdigit((unsigned char)url[1]) || !isxdigit((unsigned char)url[2]))
                return false;
            c = (char)(hex(url[1]) * 16 + hex(url[2]));
            url += 2;
            if (c == '\0' || c == '/')
                return false;
        }
        to[n++] = c;
    }
    to[n] = '\0';
    return true;
}

/* Takes the part behind scheme and host, below the document root. */
static bool take_url(const struct ctl *ctl, const char *host, char *root, char *to, bool *slash_r)
{
    char path[FP_MAX_PATH + 1], whole[2 * FP_MAX_PATH + 2];
    const char *url = host + strcspn(host, "/?#");

    if (root[0] == '\0' && !ask_root(ctl, root))
        return false;
    if (!decode(url, path, sizeof(path))) {
        ctl_complain("%s: httpd refuses what is encoded in it", url);
        return false;
    }
    *slash_r = path[0] == '\0' || path[strlen(path) - 1] == '/';
    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    return ctl_absolute(whole, to);
}

/* The part behind "SCHEME://" (RFC 3986, 3.1); NULL: the text is a path, in which that may stand as well. */
static const char *behind_scheme(const char *text)
{
    size_t len = 0;

    while (isalnum((unsigned char)text[len]) || (len > 0 && strchr("+-.", text[len]) != NULL && text[len] != '\0'))
        len++;
    return isalpha((unsigned char)text[0]) && strncmp(text + len, "://", 3) == 0 ? text + len + 3 : NULL;
}

bool ctl_take_path(const struct ctl *ctl, const char *text, char *root, char *path, bool *slash_r)
{
    const char *host = behind_scheme(text);

    *slash_r = text[0] != '\0' && text[strlen(text) - 1] == '/';
    return host != NULL ? take_url(ctl, host, root, path, slash_r) : ctl_absolute(text, path);
}
