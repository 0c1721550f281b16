/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page for people.
 */
#include "config.h"
#include "status/status.h"

#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>

#include "status/snapshot.h"

#define PER_CENT 1000u /* in tenths of one */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Flashpache</title>\n<style>\n"
    "body { margin: 0 auto; max-width: 60rem; padding: 1rem; color: #1b1f24; background: #fff;\n"
    "  font: 16px/1.45 system-ui, sans-serif }\n"
    "h1 { font-size: 1.5rem; margin: 0 }\n"
    "h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }\n"
    "p { margin: .25rem 0; color: #57606a; overflow-wrap: anywhere }\n"
    "div { overflow-x: auto }\n"
    "dl { display: grid; gap: .5rem; margin: 1rem 0;\n"
    "  grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)) }\n"
    "dl > div { border: 1px solid #d0d7de; border-radius: 6px; padding: .5rem .75rem }\n"
    "dt { color: #57606a; font-size: .85rem }\n"
    "dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums }\n"
    "table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }\n"
    "th, td { padding: .3rem .5rem; text-align: right; border-bottom: 1px solid #d0d7de }\n"
    "th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere;\n"
    "  min-width: 7rem }\n"
    "th { font-weight: 600; font-size: .85rem; color: #57606a }\n"
    ".all { font-weight: 600 }\n"
    ".reasons { max-width: 26rem }\n"
    "footer { margin: 2rem 0 }\n"
    /* A virtual host's numbers stand below its name, each with its label. */
    "@media (max-width: 40rem) {\n"
    "  .hosts tr { display: grid; grid-template-columns: repeat(4, 1fr); padding: .5rem 0;\n"
    "    border-bottom: 1px solid #d0d7de }\n"
    "  .hosts tr:first-child { display: none }\n"
    "  .hosts td { border: 0; padding: .15rem .25rem; text-align: left }\n"
    "  .hosts td:first-child { grid-column: 1 / -1; font-weight: 600 }\n"
    "  .hosts td:not(:first-child)::before { content: attr(data-is); display: block;\n"
    "    color: #57606a; font-size: .75rem; font-weight: 400 }\n"
    "}\n"
    ".bad { margin: .75rem 0; border-left: 4px solid #cf222e; background: #fff5f5; color: #1b1f24;\n"
    "  padding: .5rem .75rem; overflow-wrap: anywhere }\n"
    "</style>\n</head>\n<body>\n";

static const char *number(apr_pool_t *p, apr_uint64_t n)
{
    const char *digits = apr_psprintf(p, "%" APR_UINT64_T_FMT, n);
    apr_size_t len = strlen(digits);
    char *made = apr_palloc(p, len + len / 3 + 1), *to = made;

    for (apr_size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return made;
}

static const char *share(apr_pool_t *p, apr_uint64_t part, apr_uint64_t all)
{
    apr_uint64_t n = all > 0 ? part * PER_CENT / all : 0;

    return all == 0 ? "-" : apr_psprintf(p, "%u.%u %%", (unsigned)(n / 10), (unsigned)(n % 10));
}

static void card(request_rec *r, const char *what, const char *value)
{
    ap_rvputs(r, "<div><dt>", what, "</dt><dd>", value, "</dd></div>\n", NULL);
}

static void number_card(request_rec *r, const char *what, apr_uint64_t n)
{
    card(r, what, number(r->pool, n));
}

static void write_head(request_rec *r, const struct fp_snapshot *f)
{
    apr_uint64_t all = fp_snapshot_sum(&f->total, 0, FP_OUTCOMES - 1);
    char now[APR_RFC822_DATE_LEN];

    apr_rfc822_date(now, apr_time_now());
    ap_rputs(head, r);
    ap_rvputs(r, "<h1>Flashpache</h1>\n<p>", ap_escape_html(r->pool, ap_get_server_name(r)), ", ", now,
              "</p>\n", NULL);
    if (f->daemon != FP_OK)
        ap_rvputs(r, "<p class=\"bad\">The daemon at ", ap_escape_html(r->pool, f->socket),
                  " does not answer: ", fp_snapshot_daemon_problem(f), ".</p>\n", NULL);
    ap_rputs("<dl>\n", r);
    number_card(r, "requests", all);
    card(r, "from memory", share(r->pool, fp_snapshot_sum(&f->total, FP_COUNT_LEASE, FP_COUNT_HIT), all));
    number_card(r, "leases held", f->usage.leases);
    number_card(r, "descriptors held", f->usage.descriptors);
    number_card(r, "bytes mapped", f->usage.mapped);
    number_card(r, "children", f->children);
    ap_rputs("</dl>\n", r);
}

static void cell(request_rec *r, const char *what, apr_uint64_t n)
{
    ap_rvputs(r, "<td data-is=\"", what, "\">", number(r->pool, n), "</td>", NULL);
}

static void write_host(request_rec *r, const struct fp_snapshot_host *h, const char *row)
{
    ap_rvputs(r, row, "<td>", ap_escape_html(r->pool, h->name), "</td>", NULL);
    for (unsigned i = FP_COUNT_LEASE; i <= FP_COUNT_STALE; i++)
        cell(r, fp_outcomes[i].word, h->counts[i]);
    cell(r, "bypass", fp_snapshot_sum(h, FP_COUNT_NOFILE, FP_COUNT_DEEP));
    cell(r, "fallback", fp_snapshot_sum(h, FP_COUNT_NOBODY, FP_COUNT_ERROR));
    cell(r, "absent", h->counts[FP_COUNT_ABSENT]);
    ap_rputs("</tr>\n", r);
}

static void write_hosts(request_rec *r, const struct fp_snapshot *f)
{
    ap_rputs("<h2>Requests</h2>\n<div><table class=\"hosts\">\n<tr><th>virtual host</th>"
             "<th>lease</th><th>hit</th><th>miss</th><th>stale</th><th>bypass</th><th>fallback</th>"
             "<th>absent</th></tr>\n",
             r);
    for (int i = 0; i < f->hosts->nelts; i++)
        write_host(r, &APR_ARRAY_IDX(f->hosts, i, struct fp_snapshot_host), "<tr>");
    if (f->hosts->nelts > 1)
        write_host(r, &f->total, "<tr class=\"all\">");
    ap_rputs("</table></div>\n", r);
    if (f->hosts->nelts == 0)
        ap_rputs("<p>FlashpacheEngine is off everywhere.</p>\n", r);
}

static void write_reasons(request_rec *r, const struct fp_snapshot_host *t)
{
    if (fp_snapshot_sum(t, FP_COUNT_NOFILE, FP_COUNT_ERROR) == 0)
        return;
    ap_rputs("<h2>Why without an answer</h2>\n<div><table class=\"reasons\">\n"
             "<tr><th>reason</th><th>requests</th></tr>\n",
             r);
    for (unsigned i = FP_COUNT_NOFILE; i < FP_OUTCOMES; i++) {
        if (t->counts[i] == 0)
            continue;
        ap_rvputs(r, "<tr><td>", fp_outcomes[i].word, ": ", fp_outcomes[i].reason, "</td>", NULL);
        cell(r, "requests", t->counts[i]);
        ap_rputs("</tr>\n", r);
    }
    ap_rputs("</table></div>\n", r);
}

static void write_shadow(request_rec *r, const struct fp_snapshot_host *t)
{
    if (t->counts[FP_COUNT_COMPARED] == 0)
        return;
    ap_rputs("<h2>Shadow</h2>\n<dl>\n", r);
    number_card(r, "compared", t->counts[FP_COUNT_COMPARED]);
    number_card(r, "different", t->counts[FP_COUNT_DIFFERENT]);
    ap_rputs("</dl>\n", r);
}

static void write_daemon(request_rec *r, const struct fp_snapshot *f)
{
    if (f->daemon != FP_OK)
        return;
    ap_rvputs(r, "<h2>flashpached</h2>\n<p>", ap_escape_html(r->pool, f->socket), "</p>\n<dl>\n", NULL);
    for (int i = 0; i < f->from_daemon->nelts; i++) {
        const struct fp_snapshot_counter *g = &APR_ARRAY_IDX(f->from_daemon, i, struct fp_snapshot_counter);
        char *name = apr_pstrdup(r->pool, g->name);

        for (char *c = strchr(name, '_'); c != NULL; c = strchr(c, '_'))
            *c = ' ';
        number_card(r, name, g->value);
    }
    ap_rputs("</dl>\n", r);
}

void fp_status_page(request_rec *r, const struct fp_snapshot *f)
{
    write_head(r, f);
    write_hosts(r, f);
    write_reasons(r, &f->total);
    write_shadow(r, &f->total);
    write_daemon(r, f);
    ap_rputs("<footer><a href=\"?auto\">for scripts</a>, "
             "<a href=\"?prometheus\">for Prometheus</a>, "
             "<a href=\"?refresh=5\">refreshed</a></footer>\n</body>\n</html>\n",
             r);
}
