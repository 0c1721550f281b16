/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page for machines.
 */
#include "config.h"
#include "status/status.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <http_protocol.h>

#include "status/snapshot.h"

#define U64 "%" APR_UINT64_T_FMT

/* ---- lines "Name: value", as mod_status writes them ---- */

/* Makes ContentFiles of content_files. */
static const char *camel(apr_pool_t *p, const char *name)
{
    char *made = apr_pcalloc(p, strlen(name) + 1), *to = made;
    int upper = 1;

    for (; *name != '\0'; name++) {
        if (*name != '_')
            *to++ = (char)(upper ? apr_toupper(*name) : *name);
        upper = *name == '_';
    }
    return made;
}

/* A host's name as one word, whatever its characters. */
static const char *one_word(apr_pool_t *p, const char *name)
{
    char *made = apr_pstrdup(p, name);

    for (char *c = made; *c != '\0'; c++) {
        if (!apr_isgraph(*c) || *c == '[' || *c == ']')
            *c = '?';
    }
    return made;
}

static void write_counts(request_rec *r, const struct fp_snapshot_host *h, const char *of)
{
    for (unsigned i = 0; i < FP_OUTCOMES; i++) {
        const struct fp_outcome *o = &fp_outcomes[i];

        ap_rprintf(r, "Flashpache%s%s%s: " U64 "\n", camel(r->pool, o->word),
                   o->reason != NULL ? camel(r->pool, o->reason) : "", of, h->counts[i]);
    }
    ap_rprintf(r, "FlashpacheAbsent%s: " U64 "\n", of, h->counts[FP_COUNT_ABSENT]);
    ap_rprintf(r, "FlashpacheShadowCompared%s: " U64 "\n", of, h->counts[FP_COUNT_COMPARED]);
    ap_rprintf(r, "FlashpacheShadowDifferent%s: " U64 "\n", of, h->counts[FP_COUNT_DIFFERENT]);
    for (unsigned i = 0; i < FP_FILES_RESULTS; i++)
        ap_rprintf(r, "FlashpachePhp%s%s: " U64 "\n", camel(r->pool, fp_php_results[i]), of,
                   h->counts[FP_COUNT_PHP + i]);
}

void fp_status_total_lines(request_rec *r, const struct fp_snapshot *f)
{
    write_counts(r, &f->total, "");
    ap_rprintf(r,
               "FlashpacheLeasesHeld: %u\nFlashpacheDescriptorsHeld: %u\n"
               "FlashpacheBytesMapped: " U64 "\nFlashpacheChildren: %u\n",
               f->usage.open_files, f->usage.descriptors, f->usage.mapped, f->children);
}

void fp_status_lines(request_rec *r, const struct fp_snapshot *f)
{
    fp_status_total_lines(r, f);
    for (int i = 0; i < f->hosts->nelts; i++) {
        const struct fp_snapshot_host *h = &APR_ARRAY_IDX(f->hosts, i, struct fp_snapshot_host);

        write_counts(r, h, apr_pstrcat(r->pool, "[", one_word(r->pool, h->name), "]", NULL));
    }
    ap_rprintf(r, "FlashpachedUp: %d\n", f->daemon == FP_OK);
    if (f->daemon != FP_OK)
        ap_rprintf(r, "FlashpachedProblem: %s\n", fp_snapshot_daemon_problem(f));
    for (int i = 0; i < f->from_daemon->nelts; i++) {
        const struct fp_snapshot_counter *g = &APR_ARRAY_IDX(f->from_daemon, i, struct fp_snapshot_counter);

        ap_rprintf(r, "Flashpached%s: " U64 "\n", camel(r->pool, g->stat->name), g->value);
    }
}

/* ---- Prometheus' text format, version 0.0.4 ---- */

/* A label's value: backslash, quote and line end are escaped; it has to be UTF-8. */
static const char *label(apr_pool_t *p, const char *value)
{
    char *made = apr_palloc(p, 2 * strlen(value) + 1), *to = made;

    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"' || *value == '\n')
            *to++ = '\\';
        *to++ = (char)(*value == '\n' ? 'n' : (unsigned char)*value < 128 ? *value : '?');
    }
    *to = '\0';
    return made;
}

static void begin(request_rec *r, const char *name, const char *type, const char *help)
{
    ap_rprintf(r, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A counter's labels, but for the host. */
typedef const char *write_labels(apr_pool_t *p, unsigned i);

static const char *outcome_labels(apr_pool_t *p, unsigned i)
{
    const struct fp_outcome *o = &fp_outcomes[i];

    return apr_psprintf(p, ",outcome=\"%s\",reason=\"%s\"", o->word, o->reason != NULL ? o->reason : "");
}

static const char *php_labels(apr_pool_t *p, unsigned i)
{
    return apr_psprintf(p, ",result=\"%s\"", fp_php_results[i]);
}

static const char *no_labels(apr_pool_t *p, unsigned i)
{
    (void)p;
    (void)i;
    return "";
}

static void write_hosts(request_rec *r, const struct fp_snapshot *f, const char *name, enum fp_count first, unsigned n,
                        write_labels *labels, const char *help)
{
    begin(r, name, "counter", help);
    for (int i = 0; i < f->hosts->nelts; i++) {
        const struct fp_snapshot_host *h = &APR_ARRAY_IDX(f->hosts, i, struct fp_snapshot_host);

        for (unsigned k = 0; k < n; k++)
            ap_rprintf(r, "%s{vhost=\"%s\"%s} " U64 "\n", name, label(r->pool, h->name), labels(r->pool, k),
                       h->counts[first + k]);
    }
}

static void write_gauge(request_rec *r, const char *name, apr_uint64_t value, const char *help)
{
    begin(r, name, "gauge", help);
    ap_rprintf(r, "%s " U64 "\n", name, value);
}

static void write_release(request_rec *r, const char *name, const char *version, const char *help)
{
    begin(r, name, "gauge", help);
    ap_rprintf(r, "%s{version=\"%s\"} 1\n", name, label(r->pool, version));
}

/* The daemon's release is there while the daemon answers. */
static void write_releases(request_rec *r, const struct fp_snapshot *f)
{
    const char *version = fp_snapshot_about(f, "version"), *uptime = fp_snapshot_about(f, "uptime_s");

    write_release(r, "flashpache_build_info", FP_RELEASE, "The release of the module, always 1.");
    if (version != NULL)
        write_release(r, "flashpached_build_info", version, "The release of the daemon, always 1.");
    if (uptime != NULL)
        write_gauge(r, "flashpached_uptime_seconds", (apr_uint64_t)apr_atoi64(uptime),
                    "For how long the daemon has been running.");
}

static void write_daemon_number(request_rec *r, const struct fp_snapshot_counter *c)
{
    const char *name = apr_pstrcat(r->pool, "flashpached_", c->stat->name,
                                   strcmp(c->stat->type, "counter") == 0 ? "_total" : "", NULL);

    begin(r, name, c->stat->type, c->stat->help);
    ap_rprintf(r, "%s " U64 "\n", name, c->value);
}

static void write_histogram(request_rec *r, const char *name, const struct fp_report_latency *l)
{
    const char *mount = label(r->pool, l->point);
    apr_uint64_t n = 0;

    for (unsigned i = 0; i < FP_LATENCY_BUCKETS - 1; i++) {
        n += l->buckets[i];
        ap_rprintf(r, "%s_bucket{mount=\"%s\",le=\"%.6f\"} " U64 "\n", name, mount,
                   (double)((apr_uint64_t)FP_LATENCY_FIRST_US << i) / 1e6, n);
    }
    ap_rprintf(r,
               "%s_bucket{mount=\"%s\",le=\"+Inf\"} " U64 "\n%s_sum{mount=\"%s\"} %.6f\n"
               "%s_count{mount=\"%s\"} " U64 "\n",
               name, mount, l->count, name, mount, (double)l->sum_us / 1e6, name, mount, l->count);
}

static void write_mounts(request_rec *r, const struct fp_snapshot *f)
{
    static const char service[] = "flashpache_mount_in_service";
    static const char duration[] = "flashpache_lookup_duration_seconds", calls[] = "flashpache_lookup_calls_total";

    begin(r, service, "gauge", "1: the file system answers, 0: it is out of service");
    for (int i = 0; i < f->mounts->nelts; i++) {
        const struct fp_report_mount *m = &APR_ARRAY_IDX(f->mounts, i, struct fp_report_mount);

        ap_rprintf(r, "%s{mount=\"%s\",watch=\"%s\"} %d\n", service, label(r->pool, m->point),
                   label(r->pool, m->watch), !m->out);
    }
    begin(r, duration, "histogram", "How long walks took, by where they ended");
    for (int i = 0; i < f->latencies->nelts; i++)
        write_histogram(r, duration, &APR_ARRAY_IDX(f->latencies, i, struct fp_report_latency));
    begin(r, calls, "counter", "System calls of walks that the file system may have had to ask its server for");
    for (int i = 0; i < f->latencies->nelts; i++) {
        const struct fp_report_latency *l = &APR_ARRAY_IDX(f->latencies, i, struct fp_report_latency);

        ap_rprintf(r, "%s{mount=\"%s\"} " U64 "\n", calls, label(r->pool, l->point), l->calls);
    }
}

void fp_status_metrics(request_rec *r, const struct fp_snapshot *f)
{
    write_hosts(r, f, "flashpache_requests_total", 0, FP_OUTCOMES, outcome_labels, "Requests by what became of them.");
    write_hosts(r, f, "flashpache_absent_total", FP_COUNT_ABSENT, 1, no_labels, "Requests whose path is not there.");
    write_hosts(r, f, "flashpache_shadow_compared_total", FP_COUNT_COMPARED, 1, no_labels,
                "Requests compared with what httpd found.");
    write_hosts(r, f, "flashpache_shadow_different_total", FP_COUNT_DIFFERENT, 1, no_labels,
                "Requests for which httpd found something else.");
    write_hosts(r, f, "flashpache_php_calls_total", FP_COUNT_PHP, FP_FILES_RESULTS, php_labels,
                "Calls of mod_php on files by what became of them.");
    write_gauge(r, "flashpache_children", f->children, "Children of httpd that report.");
    write_gauge(r, "flashpache_leases", f->usage.open_files, "Files that children keep open.");
    write_gauge(r, "flashpache_lease_descriptors", f->usage.descriptors, "Descriptors that they hold open.");
    write_gauge(r, "flashpache_mapped_bytes", f->usage.mapped, "Bytes that they keep mapped.");
    write_releases(r, f);
    write_gauge(r, "flashpached_up", f->daemon == FP_OK, "Whether the daemon answers.");
    for (int i = 0; i < f->from_daemon->nelts; i++)
        write_daemon_number(r, &APR_ARRAY_IDX(f->from_daemon, i, struct fp_snapshot_counter));
    write_mounts(r, f);
}
