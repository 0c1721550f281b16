/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/conf_fleet.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "conf/conf_text.h"
#include "wire/packet.h"

#define DEFAULT_PORT 6379
#define MAX_PORT     65535
#define MAX_DB       65535
#define MAX_NAME     64
#define MAX_USER     128
#define MAX_ROOTS    64
#define SCHEME_TCP   "redis://"
#define SCHEME_TLS   "rediss://"
#define SCHEME_UNIX  "unix:"

/* ---- url ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Takes a number up to max at *text, which then points behind it. */
static bool take_number(const char **text, long max, long *number_r)
{
    char *end;

    if (**text < '0' || **text > '9')
        return false;
    *number_r = strtol(*text, &end, 10);
    *text = end;
    return *number_r <= max;
}

/* Takes the address in front of a port or a database, in brackets if it has colons. */
static bool take_host(const char **text, struct fp_fleet_settings *s)
{
    const bool brackets = **text == '[';
    const char *begin = *text + brackets;
    size_t len = strcspn(begin, brackets ? "]" : ":/");
    struct in6_addr address;

    if (len == 0 || len >= sizeof(s->host) || (brackets && begin[len] != ']'))
        return false;
    memcpy(s->host, begin, len);
    s->host[len] = '\0';
    *text = begin + len + brackets;
    return inet_pton(AF_INET, s->host, &address) == 1 || inet_pton(AF_INET6, s->host, &address) == 1;
}

static bool parse_tcp(const char *rest, struct fp_fleet_settings *s)
{
    long port = DEFAULT_PORT, db = 0;

    if (!take_host(&rest, s))
        return false;
    if (*rest == ':' && (rest++, !take_number(&rest, MAX_PORT, &port)))
        return false;
    if (*rest == '/' && *++rest != '\0' && !take_number(&rest, MAX_DB, &db))
        return false;
    s->port = (int)port;
    s->db = (unsigned)db;
    return *rest == '\0' && port > 0;
}

static bool parse_url(const char *url, struct fp_fleet_settings *s)
{
    s->url = url;
    s->path = begins(url, SCHEME_UNIX) ? url + strlen(SCHEME_UNIX) : "";
    if (s->path[0] != '\0')
        return fp_path_is_normal(s->path, strlen(s->path)) && strlen(s->path) <= FP_MAX_SOCKET_PATH;
    return begins(url, SCHEME_TCP) && parse_tcp(url + strlen(SCHEME_TCP), s);
}

/* ---- checks ---- */

bool fp_conf_fleet_check_url(const struct fp_conf_text *t, const char *key, const char *url)
{
    struct fp_fleet_settings s;

    (void)key;
    if (begins(url, SCHEME_TLS))
        return fp_conf_mistake(t,
                               "url = \"%s\": there is no TLS to Redis; use stunnel or the like, and "
                               "give its local address",
                               url);
    return parse_url(url, &s)
           || fp_conf_mistake(t,
                              "url = \"%s\" is neither redis://ADDRESS:PORT/DATABASE nor unix:/PATH; ADDRESS "
                              "is numeric, because the daemon waits for no name server",
                              url);
}

bool fp_conf_fleet_check_name(const struct fp_conf_text *t, const char *key, const char *name)
{
    const size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789._-");

    return (len > 0 && len <= MAX_NAME && name[len] == '\0')
           || fp_conf_mistake(t, "%s = \"%s\": use 1 to %d letters, digits, dots, hyphens and underscores", key,
                              name, MAX_NAME);
}

bool fp_conf_fleet_check_user(const struct fp_conf_text *t, const char *key, const char *user)
{
    return strlen(user) <= MAX_USER || fp_conf_mistake(t, "%s has more than %d bytes", key, MAX_USER);
}

bool fp_conf_fleet_finish(const struct fp_conf_text *t, struct fp_fleet_settings *s)
{
    size_t n = 0;

    while (s->roots[n] != NULL)
        n++;
    if (!HAVE_HIREDIS)
        return fp_conf_mistake(t, "fleet: this program was built without Redis; install libhiredis-dev "
                                  "(hiredis-devel), then configure and make it again");
    if (!parse_url(s->url, s))
        return fp_conf_mistake(t, "fleet needs a url: where Redis is");
    if (n == 0 || n > MAX_ROOTS)
        return fp_conf_mistake(t, "fleet needs roots, at most %d: the trees that its machines share", MAX_ROOTS);
    return s->user[0] == '\0' || s->password_file[0] != '\0'
           || fp_conf_mistake(t, "fleet has a user but no password_file");
}
