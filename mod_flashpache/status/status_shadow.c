/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page for people: what FlashpacheEngine Shadow predicts.
 */
#include "config.h"
#include "status/status.h"

#include <http_protocol.h>

#include "status/html.h"
#include "status/snapshot.h"

/* Of a request, in microseconds. */
static apr_uint64_t mean_us(const struct fp_snapshot_host *h, enum fp_count sum_ns)
{
    return h->counts[sum_ns] / h->counts[FP_COUNT_TIMED] / 1000;
}

static void write_host(request_rec *r, const struct fp_snapshot_host *h)
{
    ap_rvputs(r, "<tr><td>", ap_escape_html(r->pool, h->name), "</td>", NULL);
    fp_html_number_cell(r, "requests", h->counts[FP_COUNT_TIMED]);
    fp_html_cell(r, "in the file system", fp_html_time(r->pool, mean_us(h, FP_COUNT_STOCK_NS)));
    fp_html_cell(r, "would remain", fp_html_time(r->pool, mean_us(h, FP_COUNT_REMAINING_NS)));
    ap_rputs("</tr>\n", r);
}

void fp_status_write_shadow(request_rec *r, const struct fp_snapshot *f)
{
    if (f->total.counts[FP_COUNT_TIMED] == 0)
        return;
    ap_rputs("<h2>What Flashpache would save</h2>\n<table class=\"rows\">\n<thead><tr><th>virtual host</th>"
             "<th>requests</th><th>in the file system</th><th>would remain</th></tr></thead>\n",
             r);
    for (int i = 0; i < f->hosts->nelts; i++) {
        const struct fp_snapshot_host *h = &APR_ARRAY_IDX(f->hosts, i, struct fp_snapshot_host);

        if (h->counts[FP_COUNT_TIMED] > 0)
            write_host(r, h);
    }
    ap_rputs(
        "</table>\n<p class=\"quiet\">Mean times of a request, from FlashpacheEngine Shadow: httpd's own walk, "
        "access files and opens; and with FlashpacheEngine On the questions, and calls without an answer.</p>\n",
        r);
}
