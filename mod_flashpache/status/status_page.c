/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page for people: its top, and outcomes.
 */
#include "config.h"
#include "status/status.h"

#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <scoreboard.h>
#include <stdlib.h>
#include <string.h>

#include "status/health.h"
#include "status/html.h"
#include "status/snapshot.h"

#define MOST_HOSTS 20 /* hosts with a bar; ?auto has the others */

/* ---- the top ---- */

static void write_finding(request_rec *r, const struct fp_finding *finding)
{
    fp_html_text(r, finding->why);
    ap_rputs(" ", r);
    fp_html_advice(r, finding->advice);
}

static void write_good(request_rec *r, const struct fp_snapshot *f)
{
    const apr_uint64_t all = fp_snapshot_sum(&f->total, 0, FP_OUTCOMES - 1);
    const apr_uint64_t memory = fp_snapshot_sum(&f->total, FP_COUNT_LEASE, FP_COUNT_HIT);

    if (all == 0)
        ap_rputs("The daemon answers. No request has come yet.", r);
    else
        ap_rvputs(r, "The daemon answers. ", fp_html_share(r->pool, memory, all), " of ",
                  fp_html_number(r->pool, all),
                  " requests were answered from memory. There is nothing to do.", NULL);
}

static void write_health(request_rec *r, const struct fp_snapshot *f, const struct fp_health *health)
{
    const struct fp_finding *findings = (const struct fp_finding *)health->findings->elts;
    const bool good = health->level == FP_HEALTHY;
    int next = good ? 0 : 1;

    ap_rvputs(r, "<div class=\"health ", fp_health_text(health->level), "\" role=\"status\"><strong>",
              fp_health_text(health->level), "</strong> ", NULL);
    if (good)
        write_good(r, f);
    else
        write_finding(r, &findings[0]);
    if (next < health->findings->nelts) {
        ap_rputs("\n<ul>", r);
        for (; next < health->findings->nelts; next++) {
            ap_rputs("<li>", r);
            write_finding(r, &findings[next]);
            ap_rputs("</li>\n", r);
        }
        ap_rputs("</ul>", r);
    }
    ap_rputs("</div>\n", r);
}

static void write_versions(request_rec *r, const struct fp_snapshot *f)
{
    const char *version = fp_snapshot_about(f, "version"), *uptime = fp_snapshot_about(f, "uptime_s");
    const apr_time_t began = ap_scoreboard_image != NULL ? ap_scoreboard_image->global->restart_time : 0;
    char now[APR_RFC822_DATE_LEN];

    apr_rfc822_date(now, apr_time_now());
    ap_rvputs(r, "<p class=\"quiet\">", ap_escape_html(r->pool, ap_get_server_name(r)),
              " · mod_flashpache " FP_RELEASE, NULL);
    if (began > 0 && began < r->request_time)
        ap_rvputs(r, ", httpd up ",
                  fp_html_duration(r->pool, (apr_uint64_t)apr_time_sec(r->request_time - began)), NULL);
    if (version != NULL && uptime != NULL)
        ap_rvputs(r, " · flashpached ", ap_escape_html(r->pool, version), ", up ",
                  fp_html_duration(r->pool, strtoull(uptime, NULL, 10)), NULL);
    ap_rvputs(r, " · ", now, "</p>\n", NULL);
}

static void write_head(request_rec *r, const struct fp_snapshot *f, const struct fp_health *health)
{
    ap_rvputs(r,
              "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Flashpache: ",
              fp_health_text(health->level), "</title>\n<style>\n", fp_html_style,
              "</style>\n</head>\n<body>\n<h1>Flashpache</h1>\n", NULL);
    write_versions(r, f);
    write_health(r, f, health);
}

/* ---- outcomes ---- */

/* The parts of a bar. */
static const struct part {
    const char *name;
    enum fp_count from, to;
    const char *meaning;
} parts[] = {
    { "lease", FP_COUNT_LEASE, FP_COUNT_LEASE, "in httpd's memory, no question" },
    { "look", FP_COUNT_LOOK, FP_COUNT_LOOK, "httpd looked in a known directory, no question" },
    { "hit", FP_COUNT_HIT, FP_COUNT_HIT, "in the daemon's memory" },
    { "miss", FP_COUNT_MISS, FP_COUNT_MISS, "the daemon asked the file system" },
    { "stale", FP_COUNT_STALE, FP_COUNT_STALE, "the file system does not answer, memory does" },
    { "bypass", FP_COUNT_NOFILE, FP_COUNT_DEEP, "not asked" },
    { "fallback", FP_COUNT_NOBODY, FP_COUNT_ERROR, "asked without success: httpd looked itself" },
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static void write_bar(request_rec *r, const struct fp_snapshot_host *h)
{
    ap_rputs("<div class=\"bar\" aria-hidden=\"true\">", r);
    for (size_t i = 0; i < PARTS; i++) {
        const apr_uint64_t n = fp_snapshot_sum(h, parts[i].from, parts[i].to);

        if (n > 0)
            ap_rprintf(r, "<i class=\"%s\" style=\"flex-grow:%" APR_UINT64_T_FMT "\" title=\"%s: %s\"></i>",
                       parts[i].name, n, parts[i].name, fp_html_number(r->pool, n));
    }
    ap_rputs("</div>\n", r);
}

static void write_shares(request_rec *r, const struct fp_snapshot_host *h, apr_uint64_t all)
{
    ap_rputs("<ul class=\"parts\">", r);
    for (size_t i = 0; i < PARTS; i++) {
        const apr_uint64_t n = fp_snapshot_sum(h, parts[i].from, parts[i].to);

        if (n > 0)
            ap_rvputs(r, "<li class=\"", parts[i].name, "\" title=\"", parts[i].meaning, "\">", parts[i].name,
                      " ", fp_html_share(r->pool, n, all), "</li>", NULL);
    }
    ap_rputs("</ul>", r);
}

static void write_host(request_rec *r, const struct fp_snapshot_host *h)
{
    const apr_uint64_t all = fp_snapshot_sum(h, 0, FP_OUTCOMES - 1);

    ap_rvputs(r, "<div class=\"box\"><h3>", ap_escape_html(r->pool, h->name), " <small>",
              fp_html_number(r->pool, all), all == 1 ? " request" : " requests", "</small></h3>\n", NULL);
    write_bar(r, h);
    write_shares(r, h, all);
    ap_rputs("</div>\n", r);
}

/* Orders by requests, the busiest first. */
static int by_requests(const void *a, const void *b)
{
    const struct fp_snapshot_host *x = *(const struct fp_snapshot_host *const *)a;
    const struct fp_snapshot_host *y = *(const struct fp_snapshot_host *const *)b;
    const apr_uint64_t of_x = fp_snapshot_sum(x, 0, FP_OUTCOMES - 1);
    const apr_uint64_t of_y = fp_snapshot_sum(y, 0, FP_OUTCOMES - 1);

    return of_x == of_y ? strcmp(x->name, y->name) : of_x < of_y ? 1 : -1;
}

static apr_array_header_t *busy_hosts(request_rec *r, const struct fp_snapshot *f)
{
    apr_array_header_t *busy =
        apr_array_make(r->pool, f->hosts->nelts, sizeof(const struct fp_snapshot_host *));

    for (int i = 0; i < f->hosts->nelts; i++) {
        const struct fp_snapshot_host *h = &APR_ARRAY_IDX(f->hosts, i, struct fp_snapshot_host);

        if (fp_snapshot_sum(h, 0, FP_OUTCOMES - 1) > 0)
            APR_ARRAY_PUSH(busy, const struct fp_snapshot_host *) = h;
    }
    qsort(busy->elts, (size_t)busy->nelts, (size_t)busy->elt_size, by_requests);
    return busy;
}

static void write_legend(request_rec *r)
{
    ap_rputs("<ul class=\"parts quiet\">", r);
    for (size_t i = 0; i < PARTS; i++)
        ap_rvputs(r, "<li class=\"", parts[i].name, "\">", parts[i].name, ": ", parts[i].meaning, "</li>",
                  NULL);
    ap_rputs("</ul>\n", r);
}

static void write_outcomes(request_rec *r, const struct fp_snapshot *f)
{
    const apr_array_header_t *busy = busy_hosts(r, f);

    if (busy->nelts == 0)
        return;
    ap_rputs("<h2>Requests</h2>\n", r);
    if (busy->nelts > 1)
        write_host(r, &f->total);
    for (int i = 0; i < busy->nelts && i < MOST_HOSTS; i++)
        write_host(r, APR_ARRAY_IDX(busy, i, const struct fp_snapshot_host *));
    if (busy->nelts > MOST_HOSTS)
        ap_rprintf(r, "<p class=\"quiet\">%d more virtual hosts are in the counters for scripts.</p>\n",
                   busy->nelts - MOST_HOSTS);
    write_legend(r);
}

/* ---- reasons ---- */

/* The reason why such a number grows, for an operator. */
static const char *const reasons[FP_OUTCOMES] = {
    [FP_COUNT_NOFILE] = "the request leads to no file, as a proxied one",
    [FP_COUNT_KNOWN] = "httpd knew the file already, as in a listing",
    [FP_COUNT_METHOD] = "the method is not GET, HEAD, POST or OPTIONS",
    [FP_COUNT_PATH] = "the path has no normal form, or is too long",
    [FP_COUNT_EXCLUDED] = "FlashpacheExclude names it",
    [FP_COUNT_DISABLED] = "the module stays off beside another one, or has no memory: see httpd's error log",
    [FP_COUNT_CHANGED] = "the file was replaced meanwhile: httpd served the new one",
    [FP_COUNT_ROOTS] = "outside of roots in flashpached.conf",
    [FP_COUNT_DEEP] = "more than 64 components, or 40 symbolic links",
    [FP_COUNT_NOBODY] = "no connection to the daemon: FP0101 in httpd's error log says why",
    [FP_COUNT_PAUSED] = "the daemon failed a moment before, and the child waited before it asked again",
    [FP_COUNT_TIMEOUT] = "no answer within FlashpacheTimeout: see FP0046 in the daemon's log",
    [FP_COUNT_BUSY] = "the daemon's queue is full: raise workers, or see FP0046 in the daemon's log",
    [FP_COUNT_UNAVAILABLE] = "the file system does not answer: check its server",
    [FP_COUNT_FAILED] = "a worker died: FP0022 and FP0023 in the daemon's log",
    [FP_COUNT_VERSION] = "module and daemon are of different releases: install both from one",
    [FP_COUNT_FOREIGN] = "another user made the socket: FP0114 in httpd's error log",
    [FP_COUNT_ELSEWHERE] = "the daemon sees other files than httpd: FP0115 in httpd's error log",
    [FP_COUNT_DESCRIPTORS] = "httpd has no descriptor free: raise its LimitNOFILE=",
    [FP_COUNT_ERROR] = "a call failed, or the daemon broke the protocol: see httpd's error log",
};

static void write_reasons(request_rec *r, const struct fp_snapshot_host *t)
{
    if (fp_snapshot_sum(t, FP_COUNT_NOFILE, FP_COUNT_ERROR) == 0)
        return;
    ap_rputs("<h2>Requests without an answer of Flashpache</h2>\n<table class=\"words\">\n"
             "<thead><tr><th>reason</th><th class=\"n\">requests</th><th>meaning</th></tr></thead>\n",
             r);
    for (unsigned i = FP_COUNT_ERROR + 1; i-- > FP_COUNT_NOFILE;) {
        if (t->counts[i] > 0)
            ap_rvputs(r, "<tr><td>", fp_outcomes[i].word, ": ", fp_outcomes[i].reason,
                      "</td><td class=\"n\">", fp_html_number(r->pool, t->counts[i]), "</td><td>", reasons[i],
                      "</td></tr>\n", NULL);
    }
    ap_rputs("</table>\n", r);
}

void fp_status_page(request_rec *r, const struct fp_snapshot *f)
{
    const struct fp_health health = fp_health_of(r->pool, f);

    write_head(r, f, &health);
    write_outcomes(r, f);
    write_reasons(r, &f->total);
    fp_status_write_mounts(r, f);
    ap_rputs("<footer><a href=\"?refresh=5\">refresh every 5 s</a> <a href=\"?auto\">for scripts</a> "
             "<a href=\"?prometheus\">for Prometheus</a></footer>\n</body>\n</html>\n",
             r);
}
