/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl status: how the daemon is, on one screen.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <inttypes.h>

#include "ctl/ctl_json_report.h"
#include "ctl/ctl_paint.h"
#include "ctl/ctl_report.h"

#define MOST_SLOW 5u

static void print_duration(uint64_t s)
{
    if (s >= 86400)
        printf("%" PRIu64 " d ", s / 86400);
    if (s >= 3600)
        printf("%" PRIu64 " h ", s / 3600 % 24);
    printf("%" PRIu64 " min", s / 60 % 60);
}

static void print_about(const char *about)
{
    char version[64] = "?", level[32] = "?", seccomp[8] = "?", prompt[8] = "?";

    ctl_word(about, "version", version, sizeof(version));
    ctl_word(about, "log_level", level, sizeof(level));
    ctl_word(about, "seccomp", seccomp, sizeof(seccomp));
    ctl_word(about, "prompt", prompt, sizeof(prompt));
    printf("flashpached  %s, process %" PRIu64 " of user %" PRIu64 ", up ", version, ctl_value(about, "pid"),
           ctl_value(about, "uid"));
    print_duration(ctl_value(about, "uptime_s"));
    printf(", log_level %s, seccomp %s, prompt %s\n", level, seccomp, prompt);
}

static double share(uint64_t part, uint64_t all)
{
    return all > 0 ? 100. * (double)part / (double)all : 0.;
}

static void print_questions(const char *stats)
{
    const uint64_t hits = ctl_value(stats, "hits"), misses = ctl_value(stats, "misses");
    const uint64_t joined = ctl_value(stats, "joined"), all = hits + misses + joined;

    printf("questions    %" PRIu64 ": %.1f %% hits, %.1f %% misses, %.1f %% joined; %" PRIu64
           " without answer, %" PRIu64 " stale\n",
           all, share(hits, all), share(misses, all), share(joined, all), ctl_value(stats, "unanswered"),
           ctl_value(stats, "stale"));
}

static void print_cache(const char *stats)
{
    printf("cache        %" PRIu64 " files (%" PRIu64 " by content), %" PRIu64 " directories (%" PRIu64
           " open), %" PRIu64 " negative; %" PRIu64 " evicted\n",
           ctl_value(stats, "files"), ctl_value(stats, "content_files"), ctl_value(stats, "directories"),
           ctl_value(stats, "open_dirs"), ctl_value(stats, "negative"), ctl_value(stats, "evictions"));
    printf("memory       %" PRIu64 " KiB of entries, %" PRIu64 " KiB of content, %" PRIu64
           " KiB of answers for all, %" PRIu64 " KiB in all\n",
           ctl_value(stats, "bytes") / 1024, ctl_value(stats, "content_memory") / 1024,
           ctl_value(stats, "answer_memory") / 1024, ctl_value(stats, "resident_bytes") / 1024);
    printf("overwritten  %" PRIu64 " answers for all, %" PRIu64 " contents\n",
           ctl_value(stats, "answers_overwritten"), ctl_value(stats, "contents_overwritten"));
}

static void print_changes(const char *stats)
{
    printf("invalidated  %" PRIu64 " entries; %" PRIu64 " purged, %" PRIu64 " expired; %" PRIu64
           " changes reported, %" PRIu64 " losses, %" PRIu64 " watches\n",
           ctl_value(stats, "changes"), ctl_value(stats, "invalidated_purge"),
           ctl_value(stats, "invalidated_ttl"), ctl_value(stats, "events"), ctl_value(stats, "losses"),
           ctl_value(stats, "watches"));
}

static void print_workers(const char *stats, const char *about)
{
    printf("workers      %" PRIu64 " of %" PRIu64 ", %" PRIu64 " at work, %" PRIu64 " walks waiting; %" PRIu64
           " timeouts, %" PRIu64 " deaths\n",
           ctl_value(stats, "workers"), ctl_value(about, "workers_wanted"), ctl_value(stats, "running"),
           ctl_value(stats, "queued"), ctl_value(stats, "timeouts"), ctl_value(stats, "deaths"));
    printf("connections  %" PRIu64 " of %" PRIu64 "; %" PRIu64 " refused, %" PRIu64 " displaced\n",
           ctl_value(stats, "connections"), ctl_value(about, "max_connections"), ctl_value(stats, "refused"),
           ctl_value(stats, "displaced"));
}

static void print_out_of_service(char *mounts)
{
    struct ctl_mount m;
    char *line;

    while ((line = ctl_next_line(&mounts)) != NULL) {
        if (!ctl_parse_mount(line, &m) || !m.out)
            continue;
        ctl_paint(CTL_ERROR);
        fputs("OUT OF SERVICE", stdout);
        ctl_plain();
        printf(": the %s file system at %s does not answer\n", m.type, m.point);
    }
}

static void print_state(const struct ctl_reports *s)
{
    print_about(s->about);
    print_questions(s->stats);
    print_cache(s->stats);
    print_changes(s->stats);
    print_workers(s->stats, s->about);
    print_out_of_service(s->mounts);
    putchar('\n');
    ctl_print_latency(s->latency);
    if (s->slow[0] == '\0')
        return;
    puts("\nthe longest lookups of the last minute:");
    ctl_print_slow(stdout, s->slow, MOST_SLOW);
}

static void print_json_state(const struct ctl_reports *s)
{
    struct ctl_json j = { .to = stdout };

    ctl_json_begin(&j, NULL, '{');
    ctl_json_about(&j, s->about);
    ctl_json_stats(&j, s->stats);
    ctl_json_mounts(&j, s->mounts);
    ctl_json_lookups(&j, s->latency);
    ctl_json_slow(&j, s->slow);
    ctl_json_finish(&j, '}');
}

enum ctl_exit ctl_status(const struct ctl *ctl, int argc, char **argv)
{
    static const enum fp_report wanted[] = { FP_REPORT_ABOUT,   FP_REPORT_STATS, FP_REPORT_MOUNTS,
                                             FP_REPORT_LATENCY, FP_REPORT_SLOW,  0 };
    struct ctl_reports s;
    enum ctl_exit rc;

    (void)argv;
    if (argc > 1)
        return ctl_misused("status takes nothing more");
    rc = ctl_read_reports(ctl, wanted, &s);
    if (rc == CTL_DONE && ctl->json)
        print_json_state(&s);
    else if (rc == CTL_DONE)
        print_state(&s);
    ctl_free_reports(&s);
    return rc;
}
