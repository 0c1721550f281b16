/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module record for Apache 1.3, and its handlers.
 *
 * Apache 1.3 has no hook around its walk. So the translate handler runs the rest of the chain itself, and
 * then fills in what the walk would find. Modules that are added later come before it, and a file that
 * one of them chooses is core's: FP0123 says so at the start.
 */
#define CORE_PRIVATE
#include "config.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <httpd.h>
#include <http_config.h>
#include <http_log.h>

#include "httpd13/counters.h"
#include "httpd13/lookup13.h"
#include "httpd13/request.h"
#include "httpd13/respond.h"
#include "httpd13/settings.h"
#include "httpd13/status.h"
#include "question/open_files.h"
#include "question/shared.h"
#include "question/child_cache.h"
#include "shared/client.h"

#define IDLE 1 /* connections of a child, which has one thread */

static bool as_root; /* httpd was started so */
static const struct fp_names *asked;

static bool engine_is_on(const server_rec *s)
{
    for (; s != NULL; s = s->next) {
        if (fp_settings_of(s)->engine == 1)
            return true;
    }
    return false;
}

static void warn_of_order(server_rec *s)
{
    for (const module *m = top_module; m != NULL && m != &flashpache_module; m = m->next) {
        if (m->translate_handler != NULL)
            ap_log_error(
                APLOG_MARK, APLOG_NOERRNO | APLOG_WARNING, s,
                "FP0123: %s comes before mod_flashpache, which then does not see the files it chooses: let "
                "\"AddModule mod_flashpache.c\" (or its LoadModule) come last",
                m->name);
    }
}

static void end(void *unused)
{
    (void)unused;
    fp_counters13_end();
}

/* After each reading of the configuration; httpd loads the module anew for each. */
static void init(server_rec *s, pool *p)
{
    as_root = geteuid() == 0;
    for (server_rec *each = s; each != NULL; each = each->next)
        fp_settings_finish(p, each);
    asked = fp_settings_ask(s);
    if (!engine_is_on(s))
        return;
    fp_counters13_begin();
    ap_register_cleanup(p, NULL, end, ap_null_cleanup);
    warn_of_order(s);
}

static void start_child(server_rec *s, pool *p)
{
    const struct fp_settings *settings = fp_settings_of(s);

    (void)p;
    if (!engine_is_on(s))
        return;
    if (fp_child_cache_init() == -1) {
        ap_log_error(APLOG_MARK, APLOG_NOERRNO | APLOG_ERR, s,
                     "FP0108: no random numbers: this child serves without Flashpache");
        return;
    }
    fp_child_client = fp_client_create(&(struct fp_client_settings){ .path = settings->socket,
                                                                     .timeout_ms = (uint32_t)settings->timeout_ms,
                                                                     .max_idle = IDLE,
                                                                     .root_only = as_root,
                                                                     .compares = true,
                                                                     .compares_files = !settings->elsewhere,
                                                                     .names = *asked,
                                                                     .tells_names = true });
    if (fp_child_client == NULL) {
        ap_log_error(
            APLOG_MARK, APLOG_NOERRNO | APLOG_ERR, s,
            "FP0104: out of memory, or the path of flashpached's socket is too long: this child serves "
            "without Flashpache");
        return;
    }
    fp_shared_init(settings->open_files > 0);
    fp_open_files_init((unsigned)settings->open_files, NULL);
}

static void end_child(server_rec *s, pool *p)
{
    (void)s;
    (void)p;
    fp_client_destroy(&fp_child_client);
}

static int translate(request_rec *r)
{
    const module *m = flashpache_module.next;
    int status = DECLINED;

    for (; m != NULL && status == DECLINED; m = m->next) {
        if (m->translate_handler != NULL)
            status = m->translate_handler(r);
        if (status == OK)
            fp_request_ask(r, strcmp(m->name, "mod_rewrite.c") == 0);
    }
    return status;
}

static const handler_rec handlers[] = { { "flashpache-status", fp_status13_respond },
                                        { "*/*", fp_respond },
                                        { NULL, NULL } };

module MODULE_VAR_EXPORT flashpache_module = {
    STANDARD_MODULE_STUFF,
    init,
    NULL,
    NULL,
    fp_settings_create,
    fp_settings_merge,
    fp_directives,
    handlers,
    translate,
    NULL,                  /* check_user_id */
    NULL,                  /* check auth */
    fp_request_undisguise, /* access_checker: of subrequests */
    NULL,                  /* type_checker */
    NULL,                  /* fixups */
    fp_request_log,
    fp_request_undisguise, /* header_parser: of main requests */
    start_child,
    end_child,
    NULL /* post_read_request */
};
