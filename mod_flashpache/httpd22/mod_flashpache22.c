/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module record and its hooks, for httpd 2.0, 2.2 and 2.4.0 to 2.4.6.
 */
#include <ap_mpm.h>
#include <http_connection.h>
#include <http_protocol.h>
#include <http_request.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "common/client.h"
#include "daemon.h"
#include "fresh.h"
#include "httpd22/access.h"
#include "httpd22/prefill.h"
#include "httpd22/respond.h"
#include "httpd22/rules.h"
#include "lease.h"
#include "lookup.h"
#include "request.h"
#include "settings.h"
#include "shared.h"
#include "status/counters.h"
#include "table.h"

/* Just before core's own functions, which come last. */
#define HOOK_BEFORE_DEFAULT (APR_HOOK_REALLY_LAST - 1)

#define IDLE_SHARE 8 /* at most 1/8 of the descriptors are idle connections' */

#define SECOND_PASS "flashpache: the second pass"

static bool engine_is_on(server_rec *s)
{
    for (; s != NULL; s = s->next) {
        if (fp_settings_of(s)->engine > FP_ENGINE_OFF)
            return true;
    }
    return false;
}

/* The reason why the daemon's answers differ from httpd's own: httpd has other rights from one request
 * to the next. NULL: there is none. */
static const char *obstacle(void)
{
    static const char *const changers[] = { "mpm_itk.c", "itk.c", "mod_ruid2.c", "peruser.c",
                                            "mod_chroot.c" };

    for (size_t i = 0; i < sizeof(changers) / sizeof(changers[0]); i++) {
        if (ap_find_linked_module(changers[i]) != NULL)
            return changers[i];
    }
    return NULL;
}

/* ---- start ---- */

/* httpd reads its configuration twice at its start, and starts nothing in between. */
static bool is_first_pass(server_rec *s)
{
    void *seen = NULL;

    apr_pool_userdata_get(&seen, SECOND_PASS, s->process->pool);
    if (seen != NULL)
        return false;
    /* Copies the key, since httpd unloads this module before the second pass. */
    apr_pool_userdata_set(s->process, SECOND_PASS, apr_pool_cleanup_null, s->process->pool);
    return true;
}

static int check_shadow(const server_rec *s)
{
    for (; s != NULL; s = s->next) {
        if (fp_settings_of(s)->engine != FP_ENGINE_SHADOW)
            continue;
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s,
                     "FP0117: FlashpacheEngine Shadow needs httpd 2.4.7 or later; say On or Off");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}

static void start_or_end_daemon(apr_pool_t *pconf, server_rec *s)
{
    const struct fp_settings *settings = fp_settings_of(s);
    const bool on = engine_is_on(s);

    if (on && obstacle() != NULL)
        ap_log_error(
            APLOG_MARK, APLOG_WARNING, 0, s,
            "FP0103: Flashpache stays off: with %s children have other paths or rights than flashpached",
            obstacle());
    if (on && obstacle() == NULL && !settings->external)
        fp_daemon_keep(pconf, s, settings->program, settings->configuration, settings->socket);
    else
        fp_daemon_end(s);
}

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    int status;

    for (server_rec *each = s; each != NULL; each = each->next) {
        status = fp_settings_check(pconf, plog, ptemp, each);
        if (status != OK)
            return status;
        fp_settings_finish(pconf, each);
        fp_rules_take(pconf, each, fp_settings_of(each));
    }
    status = check_shadow(s);
    if (status != OK || is_first_pass(s))
        return status;
    fp_daemon_begin(fp_settings_of(s)->external == FP_DAEMON_ELSEWHERE);
    start_or_end_daemon(pconf, s);
    return OK;
}

static apr_status_t end_child(void *unused)
{
    (void)unused;
    fp_client_destroy(&fp_child_client);
    return APR_SUCCESS;
}

/* One connection for each thread, as far as the clients' connections leave descriptors. */
static unsigned idle_connections(int threads)
{
    struct rlimit rl = { RLIM_INFINITY, RLIM_INFINITY };
    unsigned wanted = threads > 0 ? (unsigned)threads : 1;

    getrlimit(RLIMIT_NOFILE, &rl);
    return rl.rlim_cur / IDLE_SHARE < wanted ? (unsigned)(rl.rlim_cur / IDLE_SHARE) : wanted;
}

static void start_child(apr_pool_t *p, server_rec *s)
{
    const struct fp_settings *settings = fp_settings_of(s);
    int threads = 1;

    fp_daemon_leave(s);
    if (!engine_is_on(s) || obstacle() != NULL)
        return;
    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    if (fp_table_init(threads) == -1) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "FP0108: no random numbers: this child serves without Flashpache");
        return;
    }
    fp_child_client =
        fp_daemon_client(settings->socket, (uint32_t)(settings->timeout / 1000), idle_connections(threads));
    if (fp_child_client == NULL)
        ap_log_error(
            APLOG_MARK, APLOG_ERR, 0, s,
            "FP0104: out of memory, or the path of flashpached's socket is too long: this child serves "
            "without Flashpache");
    else
        apr_pool_cleanup_register(p, NULL, end_child, apr_pool_cleanup_null);
    if (fp_child_client != NULL && threads > 1)
        fp_client_map_contents(fp_child_client);
    fp_shared_init(settings->leases > 0);
    fp_lease_init(p, settings->leases, threads <= 1);
    fp_access_init(p, settings->parsed);
}

/* ---- hooks ---- */

static void register_hooks(apr_pool_t *p)
{
    (void)p;
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(start_child, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_create_request(fp_access_begin, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_map_to_storage(fp_prefill, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_pre_connection(fp_fresh_connect, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(fp_fresh_begin_handler, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_handler(fp_respond, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_insert_filter(fp_request_add_timing, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_error_filter(fp_request_add_timing, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_log_transaction(fp_request_log, NULL, NULL, APR_HOOK_REALLY_FIRST);
}

module AP_MODULE_DECLARE_DATA flashpache_module = {
    STANDARD20_MODULE_STUFF, NULL, NULL, fp_settings_create, fp_settings_merge, fp_directives, register_hooks
};
