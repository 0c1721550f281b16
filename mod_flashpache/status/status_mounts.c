/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page for people: file systems, the way changes are noticed, and the latency of
 * lookups.
 */
#include "config.h"
#include "status/status.h"

#include <apr_strings.h>
#include <http_protocol.h>
#include <string.h>

#include "status/html.h"
#include "status/snapshot.h"

#define MINUTE_MS 60000u

static void write_latency(request_rec *r, const struct fp_report_latency *l)
{
    ap_rvputs(r, "<p class=\"quiet\">", fp_html_number(r->pool, l->count),
              l->count == 1 ? " lookup: " : " lookups: ", "half of them within ",
              fp_html_time(r->pool, fp_latency_percentile_us(l, 50)), ", 99 % within ",
              fp_html_time(r->pool, fp_latency_percentile_us(l, 99)), ", the longest ",
              fp_html_time(r->pool, l->longest_us), "</p>\n", NULL);
}

/* "inotify+ttl": by "inotify", and the TTL for what others change. */
static const char *noticed(apr_pool_t *p, const struct fp_report_mount *m)
{
    const char *plus = strchr(m->watch, '+');
    const char *ttl = fp_html_time(p, m->ttl_ms * 1000);

    if (m->ttl_ms == 0)
        return "no change is reported: each request looks";
    if (strcmp(m->watch, "ttl") == 0)
        return apr_psprintf(p, "no change is reported: requests see each within %s (ttl_ms)", ttl);
    if (plus == NULL)
        return apr_psprintf(p, "the kernel reports each change at once (%s)", ap_escape_html(p, m->watch));
    return apr_psprintf(
        p,
        "the kernel reports this machine's changes at once (%s); requests see those of others "
        "within %s (ttl_ms)",
        ap_escape_html(p, apr_pstrmemdup(p, m->watch, (apr_size_t)(plus - m->watch))), ttl);
}

static void write_state(request_rec *r, const struct fp_report_mount *m)
{
    ap_rvputs(r, ap_escape_html(r->pool, m->type), "</small> ",
              m->out ? "<span class=\"tag out\">does not answer</span>"
                     : "<span class=\"tag\">answers</span>",
              "</h3>\n<p class=\"quiet\">Changes: ", noticed(r->pool, m), NULL);
    if (m->stale_ms > 0)
        ap_rvputs(r, ". Stale answers for ",
                  m->stale_ms < MINUTE_MS ? fp_html_time(r->pool, m->stale_ms * 1000)
                                          : fp_html_duration(r->pool, m->stale_ms / 1000),
                  " while it does not answer", NULL);
    ap_rputs(".</p>\n", r);
}

/* m NULL: a mount that is gone, or that exceeds the daemon's number of separate mounts. l NULL: no lookup. */
static void write_mount(request_rec *r, const char *point, const struct fp_report_mount *m,
                        const struct fp_report_latency *l)
{
    ap_rputs("<div class=\"box\"><h3>", r);
    fp_html_code(r, point);
    ap_rputs(" <small>", r);
    if (m != NULL)
        write_state(r, m);
    else
        ap_rputs("not mounted now</small></h3>\n", r);
    if (l != NULL)
        write_latency(r, l);
    ap_rputs("</div>\n", r);
}

void fp_status_write_mounts(request_rec *r, const struct fp_snapshot *f)
{
    if (f->mounts->nelts == 0)
        return;
    ap_rputs("<h2>File systems</h2>\n<div class=\"mounts\">\n", r);
    for (int i = 0; i < f->mounts->nelts; i++) {
        const struct fp_report_mount *m = &APR_ARRAY_IDX(f->mounts, i, struct fp_report_mount);
        const struct fp_report_latency *l = fp_snapshot_latency_at(f, m->point);

        if (m->out || l != NULL)
            write_mount(r, m->point, m, l);
    }
    for (int i = 0; i < f->latencies->nelts; i++) {
        const struct fp_report_latency *l = &APR_ARRAY_IDX(f->latencies, i, struct fp_report_latency);

        if (fp_snapshot_mount_at(f, l->point) == NULL)
            write_mount(r, l->point, NULL, l);
    }
    ap_rputs("</div>\n", r);
}
