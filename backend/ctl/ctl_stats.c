/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl stats: the daemon's counters for people, as JSON, and in the text format
 * that Prometheus reads.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/stats_table.h"
#include "ctl/ctl_report.h"

/* What the formats are made of. */
struct reports {
    char *stats, *mounts, *latency, *about;
};

#define ROW(name, field, type, help) { #name, #type, help },
static const struct { const char *name, *type, *help; } rows[] = { FP_STATS_TABLE(ROW) };
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Earlier names, beside the present ones. */
#define OLD(name, field, type, help) #name,
static const char *const deprecated[] = { FP_STATS_DEPRECATED(OLD) };

static void free_reports(struct reports *r)
{
    free(r->stats);
    free(r->mounts);
    free(r->latency);
    free(r->about);
}

static enum ctl_exit read_reports(const struct ctl *ctl, struct reports *r)
{
    const struct ctl_part parts[] = {
        { FP_REPORT_STATS, &r->stats }, { FP_REPORT_MOUNTS, &r->mounts },
        { FP_REPORT_LATENCY, &r->latency }, { FP_REPORT_ABOUT, &r->about } };

    return ctl_read_reports(ctl, parts, sizeof(parts) / sizeof(parts[0]));
}

/* The daemon has escaped all but quotes: JSON's and Prometheus's rules for the rest are
 * the same. */
static void print_string(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

/* ---- JSON ---- */

static void print_json_latency(const struct ctl_latency *l)
{
    fputs("{\"point\": ", stdout);
    print_string(l->point);
    printf(", \"count\": %" PRIu64 ", \"sum_us\": %" PRIu64 ", \"longest_us\": %" PRIu64
           ", \"buckets\": [", l->count, l->sum_us, l->longest_us);
    for (unsigned i = 0; i < FP_LATENCY_BUCKETS - 1; i++)
        printf("{\"le_us\": %u, \"count\": %" PRIu64 "}, ", FP_LATENCY_FIRST_US << i,
               l->buckets[i]);
    printf("{\"le_us\": null, \"count\": %" PRIu64 "}]}", l->buckets[FP_LATENCY_BUCKETS - 1]);
}

static void print_json_mount(const struct ctl_mount *m)
{
    fputs("{\"point\": ", stdout);
    print_string(m->point);
    fputs(", \"type\": ", stdout);
    print_string(m->type);
    printf(", \"watch\": \"%s\", \"ttl_ms\": %" PRIu64 ", \"stale_if_error_ms\": %" PRIu64
           ", \"out_of_service\": %s}", m->watch, m->ttl_ms, m->stale_ms,
           m->out ? "true" : "false");
}

static void print_json(const struct reports *r)
{
    char *next = r->mounts, *line, version[64] = "";
    const char *between = "";
    struct ctl_latency l;
    struct ctl_mount m;

    ctl_word(r->about, "version", version, sizeof(version));
    fputs("{\"version\": ", stdout);
    print_string(version);
    fputs(",\n \"stats\": {", stdout);
    for (size_t i = 0; i < ROWS; i++)
        printf("%s\"%s\": %" PRIu64, i > 0 ? ", " : "", rows[i].name,
               ctl_value(r->stats, rows[i].name));
    fputs("},\n \"deprecated\": [", stdout);
    for (size_t i = 0; i < sizeof(deprecated) / sizeof(deprecated[0]); i++)
        printf("%s\"%s\"", i > 0 ? ", " : "", deprecated[i]);
    fputs("],\n \"mounts\": [", stdout);
    for (; (line = ctl_next_line(&next)) != NULL; between = ",\n  ") {
        fputs(between, stdout);
        if (ctl_parse_mount(line, &m))
            print_json_mount(&m);
    }
    fputs("],\n \"lookups\": [", stdout);
    between = "";
    for (next = r->latency; (line = ctl_next_line(&next)) != NULL; between = ",\n  ") {
        fputs(between, stdout);
        if (ctl_parse_latency(line, &l))
            print_json_latency(&l);
    }
    puts("]}");
}

/* ---- Prometheus ---- */

static void print_family(const char *name, const char *type, const char *help)
{
    printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_counters(const char *stats)
{
    for (size_t i = 0; i < ROWS; i++) {
        const bool grows = strcmp(rows[i].type, "counter") == 0;
        char name[80];

        snprintf(name, sizeof(name), "flashpache_%s%s", rows[i].name, grows ? "_total" : "");
        print_family(name, rows[i].type, rows[i].help);
        printf("%s %" PRIu64 "\n", name, ctl_value(stats, rows[i].name));
    }
}

/* More than one may be mounted at a point: there is one sample for it, of the last. */
static bool is_covered(const char *rest, const char *point)
{
    const size_t len = strlen(point);

    for (const char *line = rest; line != NULL && *line != '\0';) {
        if (strncmp(line, point, len) == 0 && line[len] == ' ')
            return true;
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return false;
}

static void print_service(char *mounts)
{
    static const char name[] = "flashpache_mount_in_service";
    struct ctl_mount m;
    char *line;

    print_family(name, "gauge", "1: the file system answers, 0: it is out of service");
    while ((line = ctl_next_line(&mounts)) != NULL) {
        if (!ctl_parse_mount(line, &m) || is_covered(mounts, m.point))
            continue;
        printf("%s{mount=", name);
        print_string(m.point);
        printf(",watch=\"%s\"} %d\n", m.watch, !m.out);
    }
}

static void print_bucket(const char *name, const char *point, const char *bound, uint64_t n)
{
    printf("%s_bucket{mount=", name);
    print_string(point);
    printf(",le=\"%s\"} %" PRIu64 "\n", bound, n);
}

static void print_histogram(const char *name, const struct ctl_latency *l)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < FP_LATENCY_BUCKETS - 1; i++) {
        char bound[32];

        n += l->buckets[i];
        snprintf(bound, sizeof(bound), "%.6f", (double)(FP_LATENCY_FIRST_US << i) / 1e6);
        print_bucket(name, l->point, bound, n);
    }
    print_bucket(name, l->point, "+Inf", l->count);
    printf("%s_sum{mount=", name);
    print_string(l->point);
    printf("} %.6f\n%s_count{mount=", (double)l->sum_us / 1e6, name);
    print_string(l->point);
    printf("} %" PRIu64 "\n", l->count);
}

static void print_prometheus(const struct reports *r)
{
    static const char name[] = "flashpache_lookup_duration_seconds";
    char *next = r->latency, *line;
    struct ctl_latency l;

    print_counters(r->stats);
    print_service(r->mounts);
    print_family(name, "histogram", "How long workers' walks took, by where they ended");
    while ((line = ctl_next_line(&next)) != NULL) {
        if (ctl_parse_latency(line, &l))
            print_histogram(name, &l);
    }
}

/* ---- for people ---- */

static enum ctl_exit print_latency(const struct ctl *ctl)
{
    enum ctl_exit rc;
    char *text = ctl_report(ctl, FP_REPORT_LATENCY, "latency", &rc);

    if (text != NULL)
        ctl_print_latency(text);
    free(text);
    return rc;
}

void ctl_print_latency(char *report)
{
    char *line, a[32], b[32], c[32], d[32];
    struct ctl_latency l;

    printf("%10s %9s %9s %9s %9s  %s\n", "walks", "mean", "50 %", "99 %", "longest", "mount");
    while ((line = ctl_next_line(&report)) != NULL) {
        if (!ctl_parse_latency(line, &l) || l.count == 0)
            continue;
        printf("%10" PRIu64 " %9s %9s %9s %9s  %s\n", l.count,
               ctl_time_text(l.sum_us / l.count, a, sizeof(a)),
               ctl_time_text(ctl_percentile_us(&l, 50), b, sizeof(b)),
               ctl_time_text(ctl_percentile_us(&l, 99), c, sizeof(c)),
               ctl_time_text(l.longest_us, d, sizeof(d)), l.point);
    }
}

/* ---- the command ---- */

static enum ctl_exit print_all(const struct ctl *ctl, int format)
{
    struct reports r;
    enum ctl_exit rc = read_reports(ctl, &r);

    if (rc == CTL_DONE && format == 'j')
        print_json(&r);
    else if (rc == CTL_DONE)
        print_prometheus(&r);
    free_reports(&r);
    return rc;
}

enum ctl_exit ctl_stats(const struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        { "prometheus", no_argument, NULL, 'p' },
        { "latency", no_argument, NULL, 'l' },
        { NULL, 0, NULL, 0 }
    };
    int c, format = 0;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == '?')
            return ctl_misused(NULL);
        if (format != 0)
            return ctl_misused("stats takes one of --json, --prometheus and --latency");
        format = c;
    }
    if (optind != argc)
        return ctl_misused("stats takes no arguments but options");
    if (format == 0)
        return ctl_print_report(ctl, FP_REPORT_STATS, argv[0]);
    return format == 'l' ? print_latency(ctl) : print_all(ctl, format);
}
