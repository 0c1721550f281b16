/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl stats: the daemon's counters, for people and as JSON.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/stats_table.h"
#include "ctl/ctl_report.h"

#define NAME(name, field, type, help) #name,
static const char *const names[] = { FP_STATS_TABLE(NAME) };
#define NAMES (sizeof(names) / sizeof(names[0]))

/* Earlier names, beside the present ones. */
#define OLD(name, field, type, help) #name,
static const char *const deprecated[] = { FP_STATS_DEPRECATED(OLD) };

/* The daemon has escaped all but quotes. */
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
    printf(", \"count\": %" PRIu64 ", \"sum_us\": %" PRIu64 ", \"longest_us\": %" PRIu64 ", \"buckets\": [",
           l->count, l->sum_us, l->longest_us);
    for (unsigned i = 0; i < FP_LATENCY_BUCKETS - 1; i++)
        printf("{\"le_us\": %u, \"count\": %" PRIu64 "}, ", FP_LATENCY_FIRST_US << i, l->buckets[i]);
    printf("{\"le_us\": null, \"count\": %" PRIu64 "}]}", l->buckets[FP_LATENCY_BUCKETS - 1]);
}

static void print_json_mount(const struct ctl_mount *m)
{
    fputs("{\"point\": ", stdout);
    print_string(m->point);
    fputs(", \"type\": ", stdout);
    print_string(m->type);
    printf(", \"watch\": \"%s\", \"ttl_ms\": %" PRIu64 ", \"stale_if_error_ms\": %" PRIu64
           ", \"out_of_service\": %s}",
           m->watch, m->ttl_ms, m->stale_ms, m->out ? "true" : "false");
}

static void print_json(const struct ctl_reports *r)
{
    char *next = r->mounts, *line, version[64] = "";
    const char *between = "";
    struct ctl_latency l;
    struct ctl_mount m;

    ctl_word(r->about, "version", version, sizeof(version));
    fputs("{\"version\": ", stdout);
    print_string(version);
    fputs(",\n \"stats\": {", stdout);
    for (size_t i = 0; i < NAMES; i++)
        printf("%s\"%s\": %" PRIu64, i > 0 ? ", " : "", names[i], ctl_value(r->stats, names[i]));
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

/* ---- the command ---- */

static enum ctl_exit print_json_stats(const struct ctl *ctl)
{
    static const enum fp_report wanted[] = { FP_REPORT_STATS, FP_REPORT_MOUNTS, FP_REPORT_LATENCY,
                                             FP_REPORT_ABOUT, 0 };
    struct ctl_reports r;
    enum ctl_exit rc = ctl_read_reports(ctl, wanted, &r);

    if (rc == CTL_DONE)
        print_json(&r);
    ctl_free_reports(&r);
    return rc;
}

static enum ctl_exit print_latency(const struct ctl *ctl)
{
    enum ctl_exit rc;
    char *text = ctl_report(ctl, FP_REPORT_LATENCY, &rc);

    if (text != NULL)
        ctl_print_latency(text);
    free(text);
    return rc;
}

enum ctl_exit ctl_stats(const struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = { { "json", no_argument, NULL, 'j' },
                                             { "prometheus", no_argument, NULL, 'p' },
                                             { "latency", no_argument, NULL, 'l' },
                                             { NULL, 0, NULL, 0 } };
    int c, format = 0;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == '?')
            return ctl_misused(NULL);
        if (c == 'p')
            return ctl_misused("stats has no --prometheus any more: let Prometheus read the module's "
                               "status page, http://SERVER/flashpache-status?prometheus");
        if (format != 0)
            return ctl_misused("stats takes one of --json and --latency");
        format = c;
    }
    if (optind != argc)
        return ctl_misused("stats takes no arguments but options");
    if (format == 0)
        return ctl_print_report(ctl, FP_REPORT_STATS);
    return format == 'l' ? print_latency(ctl) : print_json_stats(ctl);
}
