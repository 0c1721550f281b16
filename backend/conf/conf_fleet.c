/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/conf_fleet.h"

#include <arpa/inet.h>
#include <confuse.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "conf/conf_check.h"
#include "wire/packet.h"

#define DEFAULT_PORT 6379
#define MAX_PORT     65535
#define MAX_DB       65535
#define MAX_NAME     64
#define MAX_USER     128
#define MAX_STREAM   10000000
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

static const char *last_text(cfg_opt_t *opt)
{
    return cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);
}

static int check_url(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *url = last_text(opt);
    struct fp_fleet_settings s;

    if (begins(url, SCHEME_TLS))
        cfg_error(cfg,
                  "url = \"%s\": there is no TLS to Redis; let stunnel or the like carry "
                  "it, and give its local address",
                  url);
    else if (!parse_url(url, &s))
        cfg_error(cfg,
                  "url = \"%s\" is no redis://ADDRESS:PORT/DATABASE or unix:/PATH; ADDRESS "
                  "is one in numbers, for the daemon waits for no name server",
                  url);
    else
        return 0;
    return -1;
}

static int check_name(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *name = last_text(opt);
    const size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789._-");

    if (len > 0 && len <= MAX_NAME && name[len] == '\0')
        return 0;
    cfg_error(cfg, "name = \"%s\": use 1 to %d letters, digits, dots, hyphens and underscores", name,
              MAX_NAME);
    return -1;
}

static int check_user(cfg_t *cfg, cfg_opt_t *opt)
{
    if (strlen(last_text(opt)) <= MAX_USER)
        return 0;
    cfg_error(cfg, "user has more than %d bytes", MAX_USER);
    return -1;
}

static int check_stream_max(cfg_t *cfg, cfg_opt_t *opt)
{
    const long v = cfg_opt_getnint(opt, 0);

    if (v >= 1 && v <= MAX_STREAM)
        return 0;
    cfg_error(cfg, "stream_max = %ld is out of range: use 1 to %d", v, MAX_STREAM);
    return -1;
}

/* Checks the keys of the section together. */
static int check_fleet(cfg_t *cfg, cfg_opt_t *opt)
{
    cfg_t *section = cfg_opt_getnsec(opt, 0);
    const unsigned n = cfg_size(section, "roots");

    if (!HAVE_HIREDIS)
        cfg_error(cfg, "fleet: this program was built without Redis; install libhiredis-dev "
                       "(hiredis-devel), then configure and make it again");
    else if (cfg_getstr(section, "url")[0] == '\0')
        cfg_error(cfg, "fleet needs a url: where Redis is");
    else if (n == 0 || n > FP_MAX_FLEET_ROOTS)
        cfg_error(cfg, "fleet needs roots, at most %d: the trees that its machines share",
                  FP_MAX_FLEET_ROOTS);
    else if (cfg_getstr(section, "user")[0] != '\0' && cfg_getstr(section, "password_file")[0] == '\0')
        cfg_error(cfg, "fleet has a user but no password_file");
    else
        return 0;
    return -1;
}

/* ---- for conf.c ---- */

cfg_opt_t fp_conf_fleet_section(void)
{
    static cfg_opt_t opts[] = {
        CFG_STR("url", "", CFGF_NONE),
        CFG_STR("user", "", CFGF_NONE),
        CFG_STR("password_file", "", CFGF_NONE),
        CFG_STR("name", "default", CFGF_NONE),
        CFG_STR_LIST("roots", "{}", CFGF_NONE),
        CFG_BOOL("publish_changes", cfg_false, CFGF_NONE),
        CFG_INT_CB("stream_max", 10000, CFGF_NONE, fp_conf_parse_number),
        CFG_END(),
    };
    const cfg_opt_t section = CFG_SEC("fleet", opts, CFGF_NONE);

    return section;
}

void fp_conf_fleet_check(cfg_t *cfg)
{
    cfg_set_validate_func(cfg, "fleet|url", check_url);
    cfg_set_validate_func(cfg, "fleet|user", check_user);
    cfg_set_validate_func(cfg, "fleet|password_file", fp_conf_check_path);
    cfg_set_validate_func(cfg, "fleet|name", check_name);
    cfg_set_validate_func(cfg, "fleet|roots", fp_conf_check_path);
    cfg_set_validate_func(cfg, "fleet|stream_max", check_stream_max);
    cfg_set_validate_func(cfg, "fleet", check_fleet);
}

bool fp_conf_fleet_take(cfg_t *cfg, struct fp_fleet_settings *s)
{
    cfg_t *section = cfg_getsec(cfg, "fleet");
    const unsigned n = cfg_size(section, "roots");

    memset(s, 0, sizeof(*s));
    if (!parse_url(cfg_getstr(section, "url"), s))
        return false;
    s->user = cfg_getstr(section, "user");
    s->password_file = cfg_getstr(section, "password_file");
    s->name = cfg_getstr(section, "name");
    s->publish_changes = cfg_getbool(section, "publish_changes");
    s->stream_max = cfg_getint(section, "stream_max");
    for (unsigned i = 0; i < n; i++)
        s->roots[i] = cfg_getnstr(section, "roots", i);
    return true;
}

bool fp_fleet_settings_equal(const struct fp_fleet_settings *a, const struct fp_fleet_settings *b)
{
    return fp_conf_roots_equal(a->roots, b->roots) && strcmp(a->url, b->url) == 0
           && strcmp(a->user, b->user) == 0 && strcmp(a->password_file, b->password_file) == 0
           && strcmp(a->name, b->name) == 0 && a->publish_changes == b->publish_changes
           && a->stream_max == b->stream_max;
}
