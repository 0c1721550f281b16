/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl top: what goes on, drawn anew every second on a terminal and fitted to
 * its size, written one screen after the other into a pipe.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "ctl/ctl_report.h"

#define MOST_HOT    12u
#define MOST_SLOW   6u
#define MOST_MOUNTS 12u
/* Lines of a screen that are no list's, and the one where the cursor stays. */
#define OTHER_LINES 9u
#define TO_THE_TOP  "\033[H"
#define CLEAR_LINE  "\033[K"
#define CLEAR_BELOW "\033[J"

/* All that is read for one screen. */
struct view {
    uint64_t at_ms;
    char *stats, *hot, *slow, *latency, *mounts;
};

/* How long each list may be. */
struct lengths {
    unsigned hot, slow, mounts;
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

static void print_rates(FILE *to, const struct view *now, const struct view *before)
{
    fprintf(to, "%.0f hits/s, %.0f misses/s, %.0f joined/s, %.0f looked at again/s, %.0f changes/s\n",
            rate(now, before, "hits"), rate(now, before, "misses"), rate(now, before, "joined"),
            rate(now, before, "refreshed"), rate(now, before, "changes"));
    fprintf(to, "%" PRIu64 " of %" PRIu64 " workers at work, %" PRIu64 " walks waiting, %" PRIu64
            " mounts out of service, %" PRIu64 " connections\n",
            ctl_value(now->stats, "running"), ctl_value(now->stats, "workers"),
            ctl_value(now->stats, "queued"), ctl_value(now->stats, "out_of_service"),
            ctl_value(now->stats, "connections"));
}

static void print_hot(FILE *to, const char *report, unsigned most)
{
    fputs("\n     asked  path\n", to);
    for (unsigned i = 0; i < most && *report != '\0'; i++) {
        const int number = (int)strcspn(report, " ");
        const int line = (int)strcspn(report, "\n");

        fprintf(to, "%10.*s  %.*s\n", number, report, line - number - 1, report + number + 1);
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

static void print_mounts(FILE *to, const struct view *now, const struct view *before,
                         unsigned most)
{
    const uint64_t ms = now->at_ms - before->at_ms;
    char *copy = strdup(now->latency), *next = copy, *line, mean[32], late[32];
    struct ctl_latency l;

    fputs("\n   walks/s      mean      99 %  mount\n", to);
    for (unsigned i = 0; i < most && (line = ctl_next_line(&next)) != NULL; i++) {
        if (!ctl_parse_latency(line, &l) || l.count == 0)
            continue;
        fprintf(to, "%10.0f %9s %9s  %s%s\n",
                before->stats != NULL && ms > 0
                    ? 1e3 * (double)(l.count - walks_before(before, l.point)) / (double)ms : 0.,
                ctl_time_text(l.sum_us / l.count, mean, sizeof(mean)),
                ctl_time_text(ctl_percentile_us(&l, 99), late, sizeof(late)), l.point,
                is_out(now->mounts, l.point) ? " OUT OF SERVICE" : "");
    }
    free(copy);
}

static void print_view(FILE *to, const struct view *now, const struct view *before,
                       struct lengths most)
{
    print_rates(to, now, before);
    print_hot(to, now->hot, most.hot);
    if (now->slow[0] != '\0') {
        fputs("\nthe longest lookups of the last minute\n", to);
        ctl_print_slow(to, now->slow, most.slow);
    }
    print_mounts(to, now, before, most.mounts);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Two fifths of a screen for what is hot, one for what is slow; the rest is the mounts'. */
static struct lengths lengths_for(unsigned rows)
{
    const unsigned room = rows > OTHER_LINES ? rows - OTHER_LINES : 0;
    struct lengths most = { least(MOST_HOT, room * 2 / 5), least(MOST_SLOW, room / 5), 0 };

    most.mounts = least(MOST_MOUNTS, room - most.hot - most.slow);
    return most;
}

static struct winsize terminal_size(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_row == 0 || size.ws_col == 0)
        return (struct winsize){ .ws_row = 24, .ws_col = 80 };
    return size;
}

/* One that is too long loses its middle, because a path's end tells most. */
static void draw_line(const char *line, unsigned columns)
{
    const unsigned len = (unsigned)strlen(line), end = columns / 3;

    fputs(CLEAR_LINE, stdout);      /* behind a full line it would take the last column */
    if (len <= columns || columns < 12)
        printf("%.*s\n", (int)columns, line);
    else
        printf("%.*s...%s\n", (int)(columns - end - 3), line, line + len - end);
}

static void draw(char *text, const struct winsize *size)
{
    char *line;

    fputs(TO_THE_TOP, stdout);
    for (unsigned row = 1; row < size->ws_row && (line = ctl_next_line(&text)) != NULL; row++)
        draw_line(line, size->ws_col);
    fputs(CLEAR_BELOW, stdout);
}

static void draw_view(const struct view *now, const struct view *before)
{
    const struct winsize size = terminal_size();
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    if (to == NULL)
        return;
    print_view(to, now, before, lengths_for(size.ws_row));
    if (fclose(to) == 0)
        draw(text, &size);
    free(text);
}

static void show_view(const struct view *now, const struct view *before)
{
    const struct lengths all = { MOST_HOT, MOST_SLOW, MOST_MOUNTS };

    if (isatty(STDOUT_FILENO))
        draw_view(now, before);
    else
        print_view(stdout, now, before, all);
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
        show_view(&now, &before);
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
