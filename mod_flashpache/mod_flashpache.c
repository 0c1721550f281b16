/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module record and its hooks.
 */
#include "config.h"
#include "settings.h"

#include <ap_mpm.h>
#include <apr_optional_hooks.h>
#include <http_core.h>
#include <http_config.h>
#include <http_connection.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mod_status.h>
#include <sys/resource.h>
#include <unixd.h>

#include "common/client.h"
#include "daemon.h"
#include "expression.h"
#include "fresh.h"
#include "htaccess.h"
#include "intercept.h"
#include "lease.h"
#include "lookup.h"
#include "multiviews.h"
#include "names.h"
#include "request.h"
#include "respond.h"
#include "rewrite.h"
#include "shadow.h"
#include "shared.h"
#include "speling.h"
#include "status/counters.h"
#include "status/snapshot.h"
#include "status/status.h"
#include "table.h"
#include "trial.h"
#include "walk.h"

/* Just before core's own functions, which come last. */
#define HOOK_BEFORE_DEFAULT (APR_HOOK_REALLY_LAST - 1)

#define IDLE_SHARE 8 /* at most 1/8 of the descriptors are idle connections' */

static int engine_is_on(server_rec *s)
{
    for (; s != NULL; s = s->next) {
        if (fp_settings_of(s)->engine > FP_ENGINE_OFF)
            return 1;
    }
    return 0;
}

/*
 * Returns the reason why the daemon's answers differ from httpd's own: httpd sees other paths, or
 * has other rights from one request to the next. NULL: there is none.
 */
static const char *obstacle(void)
{
    static const char *const changers[] = { "mpm_itk.c", "itk.c",          "mod_ruid2.c",
                                            "peruser.c", "mod_apparmor.c", "mod_selinux.c" };

    if (ap_unixd_config.chroot_dir != NULL)
        return "ChrootDir";
    for (size_t i = 0; i < sizeof(changers) / sizeof(changers[0]); i++) {
        if (ap_find_linked_module(changers[i]) != NULL)
            return changers[i];
    }
    return NULL;
}

/* apachectl configtest: a daemon that would not start counts as a mistake in the configuration. */
static int check_daemon(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    const struct fp_settings *settings;
    const char *wrong;

    (void)plog;
    if (ap_state_query(AP_SQ_RUN_MODE) != AP_SQ_RM_CONFIG_TEST)
        return OK;
    /* configtest runs no post_config. */
    for (server_rec *each = s; each != NULL; each = each->next)
        fp_settings_finish(pconf, each);
    settings = fp_settings_of(s);
    if (!engine_is_on(s) || obstacle() != NULL || settings->external)
        return OK;
    wrong = fp_trial_run(ptemp, s, settings->program, settings->configuration, settings->socket);
    if (wrong == NULL)
        return OK;
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s, "FP0116: flashpached would not start: %s",
                 wrong);
    return HTTP_INTERNAL_SERVER_ERROR;
}

/* A pass that only checks the configuration starts nothing. */
static void start_or_end_daemon(apr_pool_t *pconf, server_rec *s)
{
    const struct fp_settings *settings = fp_settings_of(s);
    const int on = engine_is_on(s);

    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG)
        return;
    if (on && obstacle() != NULL)
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s,
                     "FP0103: Flashpache stays off: with %s "
                     "children have other paths or rights than flashpached",
                     obstacle());
    if (on && obstacle() == NULL && !settings->external)
        fp_daemon_keep(pconf, s, settings->program, settings->configuration, settings->socket);
    else
        fp_daemon_end(s);
}

static unsigned *counted_as(const server_rec *s)
{
    struct fp_settings *settings = fp_settings_of(s);

    return settings->engine > FP_ENGINE_OFF ? &settings->host : NULL;
}

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    (void)plog;
    (void)ptemp;
    for (server_rec *each = s; each != NULL; each = each->next)
        fp_settings_finish(pconf, each);
    fp_multiviews_begin();
    fp_speling_begin(pconf);
    fp_daemon_begin(fp_settings_of(s)->external == FP_DAEMON_ELSEWHERE);
    start_or_end_daemon(pconf, s);
    if (ap_state_query(AP_SQ_MAIN_STATE) != AP_SQ_MS_CREATE_PRE_CONFIG)
        fp_snapshot_init(pconf, s, fp_settings_of(s)->socket, fp_daemon_client, counted_as);
    return OK;
}

static apr_status_t end_child(void *unused)
{
    (void)unused;
    fp_client_destroy(&fp_child_client);
    fp_counters_end_child();
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
                     "FP0108: no random numbers: this child "
                     "serves without Flashpache");
        return;
    }
    fp_child_client =
        fp_daemon_client(settings->socket, (uint32_t)(settings->timeout / 1000), idle_connections(threads));
    if (fp_child_client == NULL)
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "FP0104: out of memory, or the path of "
                     "flashpached's socket is too long: this child serves without Flashpache");
    else
        apr_pool_cleanup_register(p, NULL, end_child, apr_pool_cleanup_null);
    if (fp_child_client != NULL && threads > 1)
        fp_client_map_contents(fp_child_client);
    fp_shared_init(settings->leases > 0);
    fp_lease_init(p, settings->leases, threads <= 1);
    fp_htaccess_init(p, settings->parsed);
    if (settings->leases > 0)
        fp_names_init(p);
    if (fp_child_client != NULL)
        fp_intercept_begin(s, settings->intercepted);
    fp_counters_begin_child();
}

static int map_to_storage(request_rec *r)
{
    fp_lookup_begin(r);
    fp_fresh_note_method(r);
    fp_htaccess_inject(r);
    /* Core's own walk comes now: <Directory>, .htaccess and Require. */
    return DECLINED;
}

static void register_hooks(apr_pool_t *p)
{
    static const char *const before_speling[] = { "mod_speling.c", NULL };

    (void)p;
    fp_rewrite_register();
    fp_shadow_register();
    ap_hook_expr_lookup(fp_expression_find, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_check_config(fp_settings_check, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(check_daemon, NULL, NULL, APR_HOOK_LAST);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(start_child, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_create_request(fp_htaccess_begin, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_create_request(fp_intercept_request, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_dirwalk_stat(fp_walk_stat, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_open_htaccess(fp_htaccess_open, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_dirwalk_stat(fp_shadow_stat, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_open_htaccess(fp_shadow_htaccess, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_post_perdir_config(fp_htaccess_keep, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_type_checker(fp_multiviews_before, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_fixups(fp_multiviews_after, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_fixups(fp_speling_before, NULL, before_speling, APR_HOOK_LAST);
    ap_hook_fixups(fp_speling_after, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_pre_connection(fp_fresh_connect, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(fp_fresh_begin_handler, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_handler(fp_status_respond, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(fp_respond, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_insert_filter(fp_request_add_timing, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_filter(fp_shadow_time_open, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_insert_error_filter(fp_request_add_timing, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_log_transaction(fp_request_log, NULL, NULL, APR_HOOK_REALLY_FIRST);
    APR_OPTIONAL_HOOK(ap, status_hook, fp_status_section, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(flashpache) = { STANDARD20_MODULE_STUFF, NULL,          NULL,           fp_settings_create,
                                  fp_settings_merge,       fp_directives, register_hooks,
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 70)
                                  AP_MODULE_FLAG_NONE
#endif
};
