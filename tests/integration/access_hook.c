/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module of another author, for the tests: its hook for access is of httpd 2.2's kind, and has no say.
 */
#include <httpd.h>

#include <http_config.h>
#include <http_request.h>

static int check_access(request_rec *r)
{
    (void)r;
    return DECLINED;
}

static void register_hooks(apr_pool_t *p)
{
    (void)p;
    ap_hook_access_checker(check_access, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(access_hook) = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, register_hooks };
