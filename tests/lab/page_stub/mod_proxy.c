/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands for all that makes the pages of a site while that is compared: interpreters, and
 * mod_proxy.  This file has mod_proxy's name, so httpd, its other modules and <IfModule> take it
 * for that.  It connects to nothing: it waits, as a worker of httpd does for a page, and answers
 * itself.  So neither a configuration nor a .htaccess can reach a server or a socket by a proxy.
 * It says of hosts that have TLS at the site that they have it: rules then do not redirect to it.
 */
#include "config.h"

#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_protocol.h>
#include <http_request.h>
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 102)
#include <http_ssl.h>
#else
#include <mod_ssl.h>
#endif

#include <stdlib.h>
#include <string.h>

/* No file is served with this status, so a client can count the pages. */
#define PAGE_STATUS    HTTP_NON_AUTHORITATIVE
#define PAGE_BYTES     12000
#define PAGE_MOST_MS   3600000.0
#define STUB_HANDLER   "page-stub"
#define PROXIED        "proxy:"
#define PROXIED_LENGTH (sizeof(PROXIED) - 1)

/* The URL paths of a ProxyPass or ProxyPassMatch. */
struct rule {
    const char *prefix; /* or NULL */
    ap_regex_t *pattern;
    int excluded; /* "!": no later rule holds for these */
};

struct host {
    apr_array_header_t *rules;
    int secure; /* the site's has TLS, as its rules and conditions may ask */
};

/* A ProxyPass in <Location>: its section has the paths. */
struct section {
    enum { UNSAID, EXCLUDED, PASSED } what;
};

static apr_interval_time_t page_time;
extern module AP_MODULE_DECLARE_DATA proxy_module;

static const char *set_time(cmd_parms *cmd, void *config, const char *text)
{
    char *end;
    double ms = strtod(text, &end);

    (void)config;
    if (end == text || *end != '\0' || !(ms >= 0 && ms <= PAGE_MOST_MS))
        return apr_psprintf(cmd->pool, "PageStubMs %s: must be milliseconds, at most an hour", text);
    page_time = (apr_interval_time_t)(ms * 1000);
    return NULL;
}

static void *create_host(apr_pool_t *pool, server_rec *server)
{
    struct host *host = apr_pcalloc(pool, sizeof(*host));

    (void)server;
    host->rules = apr_array_make(pool, 4, sizeof(struct rule));
    return host;
}

/* A virtual host's own rules come first. */
static void *merge_hosts(apr_pool_t *pool, void *of_server, void *of_host)
{
    const struct host *outer = of_server;
    struct host *merged = apr_pmemdup(pool, of_host, sizeof(*merged));

    merged->rules = apr_array_append(pool, merged->rules, outer->rules);
    return merged;
}

static struct host *host_of(const server_rec *server)
{
    return ap_get_module_config(server->module_config, &proxy_module);
}

static const char *set_secure(cmd_parms *cmd, void *config)
{
    (void)config;
    host_of(cmd->server)->secure = 1;
    return NULL;
}

/* A directive of a module that is not there, as documents have it in a .htaccess. */
static const char *ignore(cmd_parms *cmd, void *config, const char *arguments)
{
    (void)cmd;
    (void)config;
    (void)arguments;
    return NULL;
}

static void *create_section(apr_pool_t *pool, char *path)
{
    (void)path;
    return apr_pcalloc(pool, sizeof(struct section));
}

static void *merge_sections(apr_pool_t *pool, void *outer, void *inner)
{
    (void)pool;
    return ((const struct section *)inner)->what == UNSAID ? outer : inner;
}

static const char *add_rule(cmd_parms *cmd, const char *path, const char *target, int is_pattern)
{
    struct rule *rule = apr_array_push(host_of(cmd->server)->rules);

    *rule = (struct rule){ .prefix = is_pattern ? NULL : path, .excluded = strcmp(target, "!") == 0 };
    if (!is_pattern)
        return NULL;
    rule->pattern = ap_pregcomp(cmd->pool, path, AP_REG_EXTENDED);
    return rule->pattern == NULL ? "ProxyPassMatch: the pattern is no regular expression" : NULL;
}

/* ProxyPass [PATH] TARGET, with settings of the connection behind it. cmd->info is not NULL for a pattern. */
static const char *set_pass(cmd_parms *cmd, void *config, const char *arguments)
{
    struct section *section = config;
    const char *first = ap_getword_conf(cmd->pool, &arguments);

    if (cmd->path != NULL) {
        section->what = strcmp(first, "!") == 0 ? EXCLUDED : PASSED;
        return NULL;
    }
    return add_rule(cmd, first, ap_getword_conf(cmd->pool, &arguments), cmd->info != NULL);
}

static int begins_with(const char *uri, const char *prefix)
{
    size_t length = strlen(prefix);

    if (strncmp(uri, prefix, length) != 0)
        return 0;
    return (length > 0 && prefix[length - 1] == '/') || uri[length] == '/' || uri[length] == '\0';
}

static int holds(const struct rule *rule, const char *uri)
{
    if (rule->prefix != NULL)
        return begins_with(uri, rule->prefix);
    return ap_regexec(rule->pattern, uri, 0, NULL, 0) == 0;
}

/* True if the first rule for the path passes it on. */
static int is_passed(const request_rec *r)
{
    const struct section *section = ap_get_module_config(r->per_dir_config, &proxy_module);
    const apr_array_header_t *all = host_of(r->server)->rules;
    const struct rule *rules = (const struct rule *)(const void *)all->elts;

    if (section->what != UNSAID)
        return section->what == PASSED;
    for (int i = 0; i < all->nelts; i++)
        if (holds(&rules[i], r->uri))
            return !rules[i].excluded;
    return 0;
}

static int translate(request_rec *r)
{
    if (r->proxyreq != PROXYREQ_NONE || !is_passed(r))
        return DECLINED;
    r->filename = apr_pstrcat(r->pool, PROXIED, r->uri, NULL);
    r->handler = "proxy-server";
    r->proxyreq = PROXYREQ_REVERSE;
    return OK;
}

static int is_proxied(const char *text)
{
    return text != NULL && strncmp(text, PROXIED, PROXIED_LENGTH) == 0;
}

/* True if an interpreter would get the file. */
static int is_interpreted(const request_rec *r)
{
    static const char *const words[] = { STUB_HANDLER, "php", "cgi", "wsgi", "perl-script", "modperl",
                                         "mod_python", "lua-script" };

    if (r->finfo.filetype != APR_REG)
        return 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(r->handler, words[i]) != NULL)
            return 1;
    return 0;
}

static int answer(request_rec *r)
{
    static const char body[PAGE_BYTES] = "<!DOCTYPE html><title>stub</title>";

    if (r->handler == NULL)
        return DECLINED;
    if (!is_proxied(r->handler) && strcmp(r->handler, "proxy-server") != 0 && !is_interpreted(r))
        return DECLINED;
    apr_sleep(page_time);
    r->status = PAGE_STATUS;
    ap_set_content_type(r, "text/html");
    ap_set_content_length(r, sizeof(body));
    (void)ap_rwrite(body, (int)sizeof(body), r);
    return OK;
}

/* A proxied answer is no file: core does not look for one. */
static int find_no_file(request_rec *r)
{
    return r->proxyreq != PROXYREQ_NONE && is_proxied(r->filename) ? OK : DECLINED;
}

/* A connection's requests may be for several hosts, one after another. */
static int note_host(request_rec *r)
{
    if (r->main == NULL)
        ap_set_module_config(r->connection->conn_config, &proxy_module, host_of(r->server));
    return DECLINED;
}

static const struct host *host_now(const conn_rec *c)
{
    const struct host *host = ap_get_module_config(c->conn_config, &proxy_module);

    return host != NULL && host->secure ? host : NULL;
}

#if AP_MODULE_MAGIC_AT_LEAST(20120211, 102)
static int is_secure(conn_rec *c)
{
    return host_now(c) != NULL ? OK : DECLINED;
}
#else
static int ssl_is_https(conn_rec *c)
{
    return host_now(c) != NULL;
}
#endif

static const char *scheme_of(const request_rec *r)
{
    return host_of(r->server)->secure ? "https" : NULL;
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_post_read_request(note_host, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_http_scheme(scheme_of, NULL, NULL, APR_HOOK_FIRST);
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 102)
    ap_hook_ssl_conn_is_ssl(is_secure, NULL, NULL, APR_HOOK_FIRST);
#else
    APR_REGISTER_OPTIONAL_FN(ssl_is_https);
#endif
    ap_hook_translate_name(translate, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_map_to_storage(find_no_file, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_handler(answer, NULL, NULL, APR_HOOK_FIRST);
}

static const command_rec commands[] = {
    AP_INIT_RAW_ARGS("ProxyPass", set_pass, NULL, RSRC_CONF | ACCESS_CONF, "paths that are pages"),
    AP_INIT_RAW_ARGS("ProxyPassMatch", set_pass, &page_time, RSRC_CONF | ACCESS_CONF, "by a pattern"),
    AP_INIT_NO_ARGS("PageStubTls", set_secure, NULL, RSRC_CONF, "this host has TLS at the site"),
    AP_INIT_RAW_ARGS("SSLRequireSSL", ignore, NULL, OR_AUTHCFG, "ignored"),
    AP_INIT_RAW_ARGS("SSLOptions", ignore, NULL, OR_OPTIONS, "ignored"),
    AP_INIT_RAW_ARGS("php_value", ignore, NULL, OR_OPTIONS, "ignored"),
    AP_INIT_RAW_ARGS("php_flag", ignore, NULL, OR_OPTIONS, "ignored"),
    AP_INIT_TAKE1("PageStubMs", set_time, NULL, RSRC_CONF, "the milliseconds in which a page is made"),
    { NULL, { NULL }, NULL, 0, NO_ARGS, NULL },
};

AP_DECLARE_MODULE(proxy) = {
    STANDARD20_MODULE_STUFF, create_section, merge_sections, create_host, merge_hosts, commands,
    register_hooks,
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 70)
    AP_MODULE_FLAG_NONE
#endif
};
