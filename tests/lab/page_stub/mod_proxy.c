/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands for all that makes the pages of a site while that is compared: interpreters, and
 * mod_proxy.  This file has mod_proxy's name, so httpd, its other modules and <IfModule> take it
 * for that.  It connects to nothing: it waits, as a worker of httpd does for a page, and answers
 * itself.  So neither a configuration nor a .htaccess can reach a server or a socket by a proxy.
 */
#include "config.h"

#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_protocol.h>
#include <http_request.h>

#include <stdlib.h>
#include <string.h>

/* No file is served with this status, so a client can count the pages. */
#define PAGE_STATUS    HTTP_NON_AUTHORITATIVE
#define PAGE_BYTES     12000
#define PAGE_MOST_MS   3600000.0
#define STUB_HANDLER   "page-stub"
#define PROXIED        "proxy:"
#define PROXIED_LENGTH (sizeof(PROXIED) - 1)

static apr_interval_time_t page_time;

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

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_map_to_storage(find_no_file, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_handler(answer, NULL, NULL, APR_HOOK_FIRST);
}

static const command_rec commands[] = {
    AP_INIT_TAKE1("PageStubMs", set_time, NULL, RSRC_CONF, "the milliseconds in which a page is made"),
    { NULL, { NULL }, NULL, 0, NO_ARGS, NULL },
};

AP_DECLARE_MODULE(proxy) = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, commands, register_hooks,
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 70)
    AP_MODULE_FLAG_NONE
#endif
};
