/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module record and its hooks.
 */
#include "config.h"
#include "setup/settings.h"

#include <apr_optional_hooks.h>
#include <http_core.h>
#include <http_config.h>
#include <http_connection.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mod_status.h>
#include <unixd.h>

#include "access/htaccess.h"
#include "access/parsed.h"
#include "access/sections.h"
#include "body/respond.h"
#include "question/again.h"
#include "question/fresh.h"
#include "question/lookup.h"
#include "question/note.h"
#include "question/request.h"
#include "setup/daemon.h"
#include "setup/trial.h"
#include "shadow.h"
#include "start.h"
#include "status/counters.h"
#include "status/snapshot.h"
#include "status/status.h"
#include "walk/expression.h"
#include "walk/intercept.h"
#include "walk/multiviews.h"
#include "walk/php_calls.h"
#include "walk/rewrite.h"
#include "walk/walk.h"

/* Just before core's own functions, which come last. */
#define HOOK_BEFORE_DEFAULT (APR_HOOK_REALLY_LAST - 1)

static const char *obstacle(void)
{
    return fp_start_obstacle(ap_unixd_config.chroot_dir);
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
    if (!fp_start_is_on(s) || obstacle() != NULL || settings->external)
        return OK;
    wrong = fp_trial_run(ptemp, s, settings->program, settings->configuration, settings->socket);
    if (wrong == NULL)
        return OK;
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s, "FP0116: flashpached would not start: %s",
                 wrong);
    return HTTP_INTERNAL_SERVER_ERROR;
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
    fp_settings_share_names(s);
    fp_multiviews_begin();
    fp_daemon_begin(fp_settings_of(s)->external == FP_DAEMON_ELSEWHERE);
    /* A pass that only checks the configuration starts nothing. */
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG)
        return OK;
    fp_start_daemon(pconf, s, obstacle());
    fp_snapshot_init(pconf, s, fp_settings_of(s)->socket, fp_daemon_client, counted_as);
    return OK;
}

/* Other modules have completed their sections by now. */
static int post_config_last(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    (void)plog;
    (void)ptemp;
    if (fp_start_is_on(s) && fp_settings_of(s)->parsed > 0)
        fp_sections_merge(pconf, s);
    return OK;
}

static apr_status_t end_counters(void *unused)
{
    (void)unused;
    fp_counters_end_child();
    return APR_SUCCESS;
}

static void start_child(apr_pool_t *p, server_rec *s)
{
    if (!fp_start_child(p, s, obstacle()))
        return;
    if (fp_child_client != NULL)
        fp_intercept_begin(s, fp_settings_of(s)->intercepted);
    fp_counters_begin_child();
    apr_pool_cleanup_register(p, NULL, end_counters, apr_pool_cleanup_null);
}

static int map_to_storage(request_rec *r)
{
    int status;

    fp_sections_begin(r);
    status = fp_lookup_begin(r);
    fp_fresh_note_method(r);
    fp_htaccess_inject(r);
    /* Where it is DECLINED core's own walk comes now: <Directory>, .htaccess and Require. */
    return status;
}

static int respond_status(request_rec *r)
{
    return fp_status_respond(r, fp_settings_allow_status(r));
}

static void register_hooks(apr_pool_t *p)
{
    (void)p;
    fp_rewrite_register();
    ap_hook_expr_lookup(fp_expression_find, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_check_config(fp_settings_check, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(check_daemon, NULL, NULL, APR_HOOK_LAST);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(post_config_last, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_child_init(start_child, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_create_request(fp_parsed_begin, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_create_request(fp_again_begin, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_read_request(fp_again_restore, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_map_to_storage(fp_again_name, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_create_request(fp_intercept_request, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_dirwalk_stat(fp_sections_stat, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_open_htaccess(fp_sections_open, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_map_to_storage(fp_sections_walk, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_dirwalk_stat(fp_walk_stat, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_error_log(fp_htaccess_note_line, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_open_htaccess(fp_htaccess_open, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_dirwalk_stat(fp_shadow_stat, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_open_htaccess(fp_shadow_htaccess, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_post_perdir_config(fp_htaccess_keep, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_type_checker(fp_multiviews_before, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_fixups(fp_multiviews_after, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_pre_connection(fp_start_connection, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_pre_connection(fp_fresh_connect, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(fp_fresh_begin_handler, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_handler(fp_php_calls_note, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_handler(respond_status, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(fp_respond, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_insert_filter(fp_note_timing, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_error_filter(fp_note_timing, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_log_transaction(fp_note_log, NULL, NULL, APR_HOOK_REALLY_FIRST);
    APR_OPTIONAL_HOOK(ap, status_hook, fp_status_section, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(flashpache) = { STANDARD20_MODULE_STUFF,
                                  fp_settings_create_section,
                                  fp_settings_merge_sections,
                                  fp_settings_create,
                                  fp_settings_merge,
                                  fp_directives,
                                  register_hooks,
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 70)
                                  AP_MODULE_FLAG_NONE
#endif
};
