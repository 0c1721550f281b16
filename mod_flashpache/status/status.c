/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "status/status.h"

#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <mod_status.h>
#include <stdlib.h>

#include "status/snapshot.h"

APLOG_USE_MODULE(flashpache);

#define HANDLER       "flashpache-status"
#define USUAL_REFRESH 10 /* seconds */
#define MOST_REFRESH  86400

/* ---- the request ---- */

/* The value of a word in the query, "" if it has none; NULL: the query has no such word. */
static const char *argument(request_rec *r, const char *name)
{
    char *rest = apr_pstrdup(r->pool, r->args != NULL ? r->args : ""), *word;
    apr_size_t len = strlen(name);

    while ((word = apr_strtok(rest, "&;", &rest)) != NULL) {
        if (strncmp(word, name, len) == 0 && (word[len] == '\0' || word[len] == '='))
            return word[len] == '=' ? word + len + 1 : "";
    }
    return NULL;
}

/* Sets the header as mod_status does. */
static void set_refresh(request_rec *r)
{
    const char *value = argument(r, "refresh");
    int seconds = value != NULL ? atoi(value) : 0;

    if (value == NULL)
        return;
    if (seconds < 1 || seconds > MOST_REFRESH)
        seconds = USUAL_REFRESH;
    apr_table_setn(r->headers_out, "Refresh", apr_psprintf(r->pool, "%d", seconds));
}

int fp_status_respond(request_rec *r, bool allowed)
{
    void (*write)(request_rec *, const struct fp_snapshot *) = fp_status_page;
    const char *type = "text/html; charset=utf-8";
    struct fp_snapshot f;

    if (r->handler == NULL || strcmp(r->handler, HANDLER) != 0)
        return DECLINED;
    /* Anybody who writes an .htaccess can set the handler, but the page has the paths of all sites. */
    if (!allowed) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                      "FP0126: no status page at %s: FlashpacheStatus On is missing in the <Location> there", r->uri);
        return HTTP_FORBIDDEN;
    }
    r->allowed = AP_METHOD_BIT << M_GET;
    if (r->method_number != M_GET)
        return HTTP_METHOD_NOT_ALLOWED;
    if (argument(r, "prometheus") != NULL) {
        write = fp_status_metrics;
        type = "text/plain; version=0.0.4; charset=utf-8";
    } else if (argument(r, "auto") != NULL) {
        write = fp_status_lines;
        type = "text/plain; charset=utf-8";
    }
    ap_set_content_type(r, type);
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    set_refresh(r);
    if (r->header_only)
        return OK;
    fp_snapshot_count(r, &f);
    fp_snapshot_ask(r, &f, write != fp_status_lines);
    write(r, &f);
    return OK;
}

/* ---- mod_status ---- */

int fp_status_section(request_rec *r, int flags)
{
    const struct fp_snapshot_host *t;
    struct fp_snapshot f;

    fp_snapshot_count(r, &f);
    if (flags & AP_STATUS_SHORT) {
        fp_status_total_lines(r, &f);
        return OK;
    }
    t = &f.total;
    ap_rprintf(r,
               "<hr />\n<h2>Flashpache</h2>\n<dl>\n<dt>Requests by lease: %" APR_UINT64_T_FMT
               ", look: %" APR_UINT64_T_FMT ", hit: %" APR_UINT64_T_FMT ", miss: %" APR_UINT64_T_FMT
               ", stale: %" APR_UINT64_T_FMT ", bypass: %" APR_UINT64_T_FMT ", fallback: %" APR_UINT64_T_FMT "</dt>\n",
               t->counts[FP_COUNT_LEASE], t->counts[FP_COUNT_LOOK], t->counts[FP_COUNT_HIT],
               t->counts[FP_COUNT_MISS], t->counts[FP_COUNT_STALE],
               fp_snapshot_sum(t, FP_COUNT_NOFILE, FP_COUNT_DEEP),
               fp_snapshot_sum(t, FP_COUNT_NOBODY, FP_COUNT_ERROR));
    ap_rprintf(r,
               "<dt>Held: %u open files, %u descriptors, %" APR_UINT64_T_FMT " bytes mapped, in "
               "%u children</dt>\n</dl>\n",
               f.usage.open_files, f.usage.descriptors, f.usage.mapped, f.children);
    return OK;
}
