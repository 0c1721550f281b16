/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page for people: all counters, folded away.
 */
#include "config.h"
#include "status/status.h"

#include <apr_strings.h>
#include <http_protocol.h>
#include <string.h>

#include "status/html.h"
#include "status/snapshot.h"

static void write_host(request_rec *r, const struct fp_snapshot_host *h, const char *row)
{
    ap_rvputs(r, row, "<td>", ap_escape_html(r->pool, h->name), "</td>", NULL);
    for (unsigned i = FP_COUNT_LEASE; i <= FP_COUNT_STALE; i++)
        fp_html_number_cell(r, fp_outcomes[i].word, h->counts[i]);
    fp_html_number_cell(r, "bypass", fp_snapshot_sum(h, FP_COUNT_NOFILE, FP_COUNT_DEEP));
    fp_html_number_cell(r, "fallback", fp_snapshot_sum(h, FP_COUNT_NOBODY, FP_COUNT_ERROR));
    fp_html_number_cell(r, "absent", h->counts[FP_COUNT_ABSENT]);
    ap_rputs("</tr>\n", r);
}

static void write_hosts(request_rec *r, const struct fp_snapshot *f)
{
    ap_rputs(
        "<details><summary>Requests by virtual host</summary>\n<div class=\"wide\"><table class=\"rows\">\n"
        "<thead><tr><th>virtual host</th><th>lease</th><th>look</th><th>hit</th><th>miss</th><th>stale</th>"
        "<th>bypass</th><th>fallback</th><th>absent</th></tr></thead>\n",
        r);
    for (int i = 0; i < f->hosts->nelts; i++)
        write_host(r, &APR_ARRAY_IDX(f->hosts, i, struct fp_snapshot_host), "<tr>");
    if (f->hosts->nelts > 1)
        write_host(r, &f->total, "<tr class=\"all\">");
    ap_rputs("</table></div></details>\n", r);
}

static void write_children(request_rec *r, const struct fp_snapshot *f)
{
    ap_rputs("<details><summary>httpd's children</summary>\n<dl>\n", r);
    fp_html_number_card(r, "children", f->children);
    fp_html_number_card(r, "files kept open", f->usage.open_files);
    fp_html_number_card(r, "descriptors held", f->usage.descriptors);
    fp_html_number_card(r, "bytes mapped", f->usage.mapped);
    fp_html_number_card(r, "shadow: compared", f->total.counts[FP_COUNT_COMPARED]);
    fp_html_number_card(r, "shadow: different", f->total.counts[FP_COUNT_DIFFERENT]);
    ap_rputs("</dl></details>\n", r);
}

static const char *in_words(apr_pool_t *p, const char *name)
{
    char *made = apr_pstrdup(p, name);

    for (char *c = strchr(made, '_'); c != NULL; c = strchr(c, '_'))
        *c = ' ';
    return made;
}

static void write_daemon(request_rec *r, const struct fp_snapshot *f)
{
    if (f->from_daemon->nelts == 0)
        return;
    ap_rputs("<details><summary>flashpached's counters</summary>\n<dl>\n", r);
    for (int i = 0; i < f->from_daemon->nelts; i++) {
        const struct fp_snapshot_counter *c = &APR_ARRAY_IDX(f->from_daemon, i, struct fp_snapshot_counter);

        fp_html_number_card(r, in_words(r->pool, c->stat->name), c->value);
    }
    ap_rputs("</dl></details>\n", r);
}

static void write_about(request_rec *r, const struct fp_snapshot *f)
{
    ap_rputs("<details><summary>flashpached itself</summary>\n<dl>\n", r);
    fp_html_card(r, "socket", ap_escape_html(r->pool, f->socket));
    for (int i = 0; i < f->about->nelts; i++) {
        const struct fp_snapshot_fact *fact = &APR_ARRAY_IDX(f->about, i, struct fp_snapshot_fact);

        fp_html_card(r, ap_escape_html(r->pool, in_words(r->pool, fact->key)),
                     ap_escape_html(r->pool, fact->value));
    }
    ap_rputs("</dl></details>\n", r);
}

void fp_status_write_raw(request_rec *r, const struct fp_snapshot *f)
{
    ap_rputs("<h2>All counters</h2>\n", r);
    write_hosts(r, f);
    write_children(r, f);
    write_daemon(r, f);
    write_about(r, f);
}
