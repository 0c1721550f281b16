/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl top: rates, hot paths, slow lookups and mounts.  A terminal shows them again
 * every second, fitted to its size; a pipe gets one screen after the other.
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

#include "base/clock.h"
#include "ctl/ctl_json_report.h"
#include "ctl/ctl_out.h"
#include "ctl/ctl_paint.h"
#include "ctl/ctl_report.h"

#define MAX_HOT    12u
#define MAX_SLOW   6u
#define MAX_MOUNTS 12u
/* Lines of a screen beside the lists, with the one of the cursor. */
#define OTHER_LINES    9u
#define OUT_OF_SERVICE " OUT OF SERVICE"
#define TO_THE_TOP     "\033[H"
#define CLEAR_LINE     "\033[K"
#define CLEAR_BELOW    "\033[J"

/* The reports of one screen. */
struct snapshot {
    uint64_t at_ms;
    struct ctl_reports reports;
};

/* The greatest length of each list. */
struct lengths {
    unsigned hot, slow, mounts;
};

/* A daemon that was started again counts from 0. */
static double growth(uint64_t now, uint64_t before)
{
    return (double)(now < before ? now : now - before);
}

/* Per second since the last screen; 0 on the first one. */
static double rate(const struct snapshot *now, const struct snapshot *before, const char *name)
{
    const uint64_t ms = now->at_ms - before->at_ms;

    if (before->reports.stats == NULL || ms == 0)
        return 0.;
    return 1e3 * growth(ctl_value(now->reports.stats, name), ctl_value(before->reports.stats, name))
           / (double)ms;
}

static void print_rates(FILE *to, const struct snapshot *now, const struct snapshot *before)
{
    fprintf(to, "%.0f hits/s, %.0f misses/s, %.0f joined/s, %.0f refreshed/s, %.0f changes/s\n",
            rate(now, before, "hits"), rate(now, before, "misses"), rate(now, before, "joined"),
            rate(now, before, "refreshed"), rate(now, before, "changes"));
    ctl_fill_in(to,
                "{running} of {workers} workers at work, {queued} walks waiting, "
                "{out_of_service} mounts out of service, {connections} connections\n",
                &now->reports);
}

static void print_hot(FILE *to, char *report, unsigned most)
{
    struct fp_report_hot h;
    char *line;

    fputs("\n     asked  path\n", to);
    for (unsigned i = 0; i < most && (line = ctl_next_line(&report)) != NULL; i++) {
        if (fp_report_read(fp_hot_form, line, &h))
            fprintf(to, "%10" PRIu64 "  %s\n", h.asked, h.path);
    }
}

static void print_mounts(FILE *to, const struct snapshot *now, const struct snapshot *before, unsigned most)
{
    const uint64_t ms = now->at_ms - before->at_ms;
    char *copy = strdup(now->reports.latency), *next = copy, *line, mean[32], late[32], mount[8192];
    struct fp_report_latency l;

    fputs("\n   walks/s      mean      99 %  mount\n", to);
    for (unsigned i = 0; i < most && (line = ctl_next_line(&next)) != NULL; i++) {
        bool out;

        if (!fp_report_read(fp_latency_form, line, &l) || l.count == 0)
            continue;
        out = ctl_word(now->reports.mounts, l.point, mount, sizeof(mount))
              && strstr(mount, " out-of-service") != NULL;
        fprintf(to, "%10.0f %9s %9s  %s%s\n",
                before->reports.stats != NULL && ms > 0
                    ? 1e3 * growth(l.count, ctl_value(before->reports.latency, l.point)) / (double)ms
                    : 0.,
                ctl_time_text(l.sum_us / l.count, mean, sizeof(mean)),
                ctl_time_text(fp_latency_percentile_us(&l, 99), late, sizeof(late)), l.point,
                out ? OUT_OF_SERVICE : "");
    }
    free(copy);
}

static void print_snapshot(FILE *to, const struct snapshot *now, const struct snapshot *before, struct lengths most)
{
    print_rates(to, now, before);
    print_hot(to, now->reports.hot, most.hot);
    if (now->reports.slow[0] != '\0') {
        fputs("\nthe longest lookups of the last minute\n", to);
        ctl_print_slow(to, now->reports.slow, most.slow);
    }
    print_mounts(to, now, before, most.mounts);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Gives two fifths of a screen to hot paths, one to slow lookups, the rest to mounts. */
static struct lengths lengths_for(unsigned rows)
{
    const unsigned lines = rows > OTHER_LINES ? rows - OTHER_LINES : 0;
    struct lengths most = { least(MAX_HOT, lines * 2 / 5), least(MAX_SLOW, lines / 5), 0 };

    most.mounts = least(MAX_MOUNTS, lines - most.hot - most.slow);
    return most;
}

/* Prints one snapshot, with the rates since the snapshot before. */
static void print_json_snapshot(struct snapshot *now, const struct snapshot *before)
{
    static const char *const rates[] = { "hits", "misses", "joined", "refreshed", "changes" };
    struct ctl_json j = { .to = stdout };

    ctl_json_begin(&j, NULL, '{');
    ctl_json_number(&j, "interval_ms", now->at_ms - before->at_ms);
    ctl_json_begin(&j, "per_second", '{');
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        ctl_json_real(&j, rates[i], rate(now, before, rates[i]));
    ctl_json_end(&j, '}');
    ctl_json_stats(&j, now->reports.stats);
    ctl_json_rows(&j, "hot", fp_hot_form, now->reports.hot);
    ctl_json_rows(&j, "slow", fp_slow_form, now->reports.slow);
    ctl_json_rows(&j, "lookups", fp_latency_form, now->reports.latency);
    ctl_json_rows(&j, "mounts", fp_mount_form, now->reports.mounts);
    ctl_json_finish(&j, '}');
}

/* A line that is too long loses its middle: the end of a path says most. */
static void draw_line(const char *line, unsigned columns)
{
    const unsigned len = (unsigned)strlen(line), end = columns / 3, alarm = sizeof(OUT_OF_SERVICE) - 1;
    const bool is_alarm = len > alarm && strcmp(line + len - alarm, OUT_OF_SERVICE) == 0;

    ctl_put_control(CLEAR_LINE); /* behind a full line it would take the last column */
    if (is_alarm)
        ctl_paint(CTL_ERROR);
    if (len <= columns || columns < 12)
        printf("%.*s", (int)columns, line);
    else
        printf("%.*s...%s", (int)(columns - end - 3), line, line + len - end);
    if (is_alarm)
        ctl_plain();
    putchar('\n');
}

static void draw_snapshot(const struct snapshot *now, const struct snapshot *before)
{
    struct winsize size;
    char *text = NULL, *next, *line;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    if (to == NULL)
        return;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_row == 0 || size.ws_col == 0)
        size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
    print_snapshot(to, now, before, lengths_for(size.ws_row));
    if (fclose(to) == 0) {
        next = text;
        ctl_put_control(TO_THE_TOP);
        for (unsigned row = 1; row < size.ws_row && (line = ctl_next_line(&next)) != NULL; row++)
            draw_line(line, size.ws_col);
        ctl_put_control(CLEAR_BELOW);
    }
    free(text);
}

static enum ctl_exit take_snapshot(const struct ctl *ctl, struct snapshot *v)
{
    static const enum fp_report wanted[] = { FP_REPORT_STATS,   FP_REPORT_HOT,    FP_REPORT_SLOW,
                                             FP_REPORT_LATENCY, FP_REPORT_MOUNTS, 0 };
    const enum ctl_exit rc = ctl_read_reports(ctl, wanted, &v->reports);

    v->at_ms = fp_now_ms();
    return rc;
}

static void show_snapshot(const struct snapshot *now, const struct snapshot *before, bool terminal)
{
    const struct lengths all = { MAX_HOT, MAX_SLOW, MAX_MOUNTS };

    if (terminal) {
        draw_snapshot(now, before);
        return;
    }
    if (before->reports.stats != NULL)
        putchar('\n');
    print_snapshot(stdout, now, before, all);
}

static enum ctl_exit run(const struct ctl *ctl, unsigned long times, unsigned long seconds)
{
    const struct timespec pause = { .tv_sec = (time_t)seconds };
    const bool terminal = isatty(STDOUT_FILENO);
    struct snapshot now, before = { .at_ms = 0 };
    enum ctl_exit rc;

    for (unsigned long i = 0;; i++) {
        rc = take_snapshot(ctl, &now);
        if (rc != CTL_DONE)
            break;
        if (!ctl->json)
            show_snapshot(&now, &before, terminal);
        else if (i > 0)
            print_json_snapshot(&now, &before);
        ctl_free_reports(&before.reports);
        before = now;
        memset(&now, 0, sizeof(now));
        if (fflush(stdout) == EOF || i + 1 == times)
            break;
        nanosleep(&pause, NULL);
    }
    ctl_free_reports(&now.reports);
    ctl_free_reports(&before.reports);
    return rc;
}

/* Takes numbers from 1 to 86400. */
static bool parse_number(const char *text, unsigned long *v_r)
{
    char *end;

    *v_r = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *v_r >= 1 && *v_r <= 86400;
}

enum ctl_exit ctl_top(const struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = { { "times", required_argument, NULL, 'n' },
                                             { "delay", required_argument, NULL, 'd' },
                                             { NULL, 0, NULL, 0 } };
    unsigned long times = 0, seconds = 1;
    int c;

    while ((c = ctl_option(argc, argv, "n:d:", options)) != -1) {
        if (c != 'n' && c != 'd')
            return ctl_misused(NULL);
        if (!parse_number(optarg, c == 'n' ? &times : &seconds))
            return ctl_misused("top: --times and --delay take a number from 1 to 86400");
    }
    if (optind != argc)
        return ctl_misused("top takes no arguments but options");
    if (ctl->json && times > 1)
        return ctl_misused("top --json is one document, of one interval: leave out --times");
    return run(ctl, ctl->json ? 2 : times, seconds);
}
