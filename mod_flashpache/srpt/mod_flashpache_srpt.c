/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mod_flashpache_srpt: its module record and hooks.  It needs neither mod_flashpache nor
 * flashpached.
 */
#include "config.h"
#include "srpt/srpt_settings.h"

#include <http_connection.h>
#include <http_protocol.h>
#include <http_request.h>

#include "srpt/schedule.h"

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    (void)pconf;
    (void)plog;
    (void)ptemp;
    fp_schedule_init(s);
    return OK;
}

static void register_hooks(apr_pool_t *p)
{
    /* httpd loses filters that are added in front of the first ones, which are its own. */
    static const char *const http[] = { "http_core.c", NULL };

    (void)p;
    fp_schedule_register();
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_pre_connection(fp_schedule_connection, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_create_request(fp_schedule_request, http, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_post_read_request(fp_schedule_body, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(flashpache_srpt) = {
    STANDARD20_MODULE_STUFF, NULL,           NULL, fp_srpt_settings_create, fp_srpt_settings_merge,
    fp_srpt_directives,      register_hooks,
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 70)
    AP_MODULE_FLAG_NONE
#endif
};
