/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl top: what goes on, drawn anew every second on a terminal, written one
 * screen after the other into a pipe.
 */
#include "config.h"
#include "ctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl_report.h"
#include "proto/clock.h"

#define MOST_HOT    12u
#define MOST_SLOW   6u
#define MOST_MOUNTS 12u
#define CLEAR       "\033[H\033[2J"

/* All that is read for one screen. */
struct view {
    uint64_t at_ms;
    char *stats, *hot, *slow, *latency, *mounts;
};

static void free_view(struct view *v)
{
    free(v->stats);
    free(v->hot);
    free(v->slow);
    free(v->latency);
    free(v->mounts);
    memset(v, 0, sizeof(*v));
}

static enum ctl_exit read_view(const struct ctl *ctl, struct view *v)
{
    const struct ctl_part parts[] = {
        { FP_REPORT_STATS, &v->stats }, { FP_REPORT_HOT, &v->hot }, { FP_REPORT_SLOW, &v->slow },
        { FP_REPORT_LATENCY, &v->latency }, { FP_REPORT_MOUNTS, &v->mounts } };
    enum ctl_exit rc = ctl_read_reports(ctl, parts, sizeof(parts) / sizeof(parts[0]));

    v->at_ms = fp_now_ms();
    return rc;
}

/* A second, between the last screen and this; nothing before the first. */
static double rate(const struct view *now, const struct view *before, const char *name)
{
    const uint64_t ms = now->at_ms - before->at_ms;

    if (before->stats == NULL || ms == 0)
        return 0.;
    return 1e3 * (double)(ctl_value(now->stats, name) - ctl_value(before->stats, name))
        / (double)ms;
}

static void print_rates(const struct view *now, const struct view *before)
{
    printf("%.0f hits/s, %.0f misses/s, %.0f joined/s, %.0f looked at again/s, %.0f changes/s\n",
           rate(now, before, "hits"), rate(now, before, "misses"), rate(now, before, "joined"),
           rate(now, before, "refreshed"), rate(now, before, "changes"));
    printf("%" PRIu64 " of %" PRIu64 " helpers at work, %" PRIu64 " walks waiting, %" PRIu64
           " file systems out of service, %" PRIu64 " connections\n",
           ctl_value(now->stats, "running"), ctl_value(now->stats, "helpers"),
           ctl_value(now->stats, "queued"), ctl_value(now->stats, "out_of_service"),
           ctl_value(now->stats, "connections"));
}

static void print_hot(const char *report)
{
    puts("\n     asked  path");
    for (unsigned i = 0; i < MOST_HOT && *report != '\0'; i++) {
        const int number = (int)strcspn(report, " ");
        const int line = (int)strcspn(report, "\n");

        printf("%10.*s  %.*s\n", number, report, line - number - 1, report + number + 1);
        report += line + (report[line] == '\n');
    }
}

/* The walks that had been counted there before; the report stays whole. */
static uint64_t walks_before(const struct view *before, const char *point)
{
    return before->latency != NULL ? ctl_value(before->latency, point) : 0;
}

static bool is_out(const char *mounts, const char *point)
{
    char line[8192];

    return ctl_word(mounts, point, line, sizeof(line)) && strstr(line, " out-of-service") != NULL;
}

static void print_mounts(const struct view *now, const struct view *before)
{
    const uint64_t ms = now->at_ms - before->at_ms;
    char *copy = strdup(now->latency), *next = copy, *line, mean[32], late[32];
    struct ctl_latency l;

    puts("\n   walks/s      mean      99 %  mount");
    for (unsigned i = 0; i < MOST_MOUNTS && (line = ctl_next_line(&next)) != NULL; i++) {
        if (!ctl_parse_latency(line, &l) || l.count == 0)
            continue;
        printf("%10.0f %9s %9s  %s%s\n",
               before->stats != NULL && ms > 0
                   ? 1e3 * (double)(l.count - walks_before(before, l.point)) / (double)ms : 0.,
               ctl_time_text(l.sum_us / l.count, mean, sizeof(mean)),
               ctl_time_text(ctl_percentile_us(&l, 99), late, sizeof(late)), l.point,
               is_out(now->mounts, l.point) ? " OUT OF SERVICE" : "");
    }
    free(copy);
}

static void print_view(const struct view *now, const struct view *before)
{
    if (isatty(STDOUT_FILENO))
        fputs(CLEAR, stdout);
    print_rates(now, before);
    print_hot(now->hot);
    if (now->slow[0] != '\0') {
        puts("\nthe longest lookups of the last minute");
        ctl_print_slow(now->slow, MOST_SLOW);
    }
    print_mounts(now, before);
}

static enum ctl_exit run(const struct ctl *ctl, unsigned long times, unsigned long seconds)
{
    const struct timespec pause = { .tv_sec = (time_t)seconds };
    struct view now, before = { .stats = NULL };
    enum ctl_exit rc;

    for (unsigned long i = 0;; i++) {
        rc = read_view(ctl, &now);
        if (rc != CTL_DONE)
            break;
        if (i > 0 && !isatty(STDOUT_FILENO))
            putchar('\n');
        print_view(&now, &before);
        free_view(&before);
        before = now;
        memset(&now, 0, sizeof(now));
        if (fflush(stdout) == EOF || i + 1 == times)
            break;
        nanosleep(&pause, NULL);
    }
    free_view(&now);
    free_view(&before);
    return rc;
}

/* 1 to 86400. */
static bool parse_number(const char *text, unsigned long *v_r)
{
    char *end;

    *v_r = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *v_r >= 1 && *v_r <= 86400;
}

enum ctl_exit ctl_top(const struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = {
        { "times", required_argument, NULL, 'n' },
        { "delay", required_argument, NULL, 'd' },
        { NULL, 0, NULL, 0 }
    };
    unsigned long times = 0, seconds = 1;
    int c;

    while ((c = getopt_long(argc, argv, "n:d:", options, NULL)) != -1) {
        if (c != 'n' && c != 'd')
            return ctl_misused(NULL);
        if (!parse_number(optarg, c == 'n' ? &times : &seconds))
            return ctl_misused("top: --times and --delay take a number from 1 to 86400");
    }
    if (optind != argc)
        return ctl_misused("top takes no arguments but options");
    return run(ctl, times, seconds);
}
