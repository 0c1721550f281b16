/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module record and its hooks, for httpd 2.0, 2.2 and 2.4.0 to 2.4.6.
 */
#include <http_connection.h>
#include <http_protocol.h>
#include <http_request.h>
#include <stdbool.h>

#include "access/parsed.h"
#include "httpd22/prefill.h"
#include "httpd22/respond.h"
#include "httpd22/rules.h"
#include "question/again.h"
#include "question/fresh.h"
#include "question/note.h"
#include "question/request.h"
#include "setup/daemon.h"
#include "setup/settings.h"
#include "start.h"

/* Just before core's own functions, which come last. */
#define HOOK_BEFORE_DEFAULT (APR_HOOK_REALLY_LAST - 1)

#define SECOND_PASS "flashpache: the second pass"

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
                     "FP0117: FlashpacheEngine Shadow needs httpd 2.4.7 or later; use On or Off");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
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
    fp_settings_share_names(s);
    status = check_shadow(s);
    if (status != OK || is_first_pass(s))
        return status;
    fp_daemon_begin(fp_settings_of(s)->external == FP_DAEMON_ELSEWHERE);
    fp_start_daemon(pconf, s, fp_start_obstacle(FP_CHROOT_DIR));
    return OK;
}

static void start_child(apr_pool_t *p, server_rec *s)
{
    fp_start_child(p, s, fp_start_obstacle(FP_CHROOT_DIR));
}

/* ---- hooks ---- */

static void register_hooks(apr_pool_t *p)
{
    (void)p;
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(start_child, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_create_request(fp_parsed_begin, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_create_request(fp_again_begin, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_read_request(fp_again_restore, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_map_to_storage(fp_again_name, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_map_to_storage(fp_prefill, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_pre_connection(fp_start_connection, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_pre_connection(fp_fresh_connect, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(fp_fresh_begin_handler, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_handler(fp_respond, NULL, NULL, HOOK_BEFORE_DEFAULT);
    ap_hook_insert_filter(fp_note_timing, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_error_filter(fp_note_timing, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_log_transaction(fp_note_log, NULL, NULL, APR_HOOK_REALLY_FIRST);
}

module AP_MODULE_DECLARE_DATA flashpache_module = {
    STANDARD20_MODULE_STUFF, fp_settings_create_section, fp_settings_merge_sections,
    fp_settings_create,      fp_settings_merge,          fp_directives,
    register_hooks
};
