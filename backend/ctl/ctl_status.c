/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl status: how the daemon is, on one screen.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <inttypes.h>

#include "ctl/ctl_json_report.h"
#include "ctl/ctl_report.h"

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

static void print_questions(const char *stats)
{
    static const char *const kinds[] = { "hits", "misses", "joined" };
    uint64_t all = 0;

    for (size_t i = 0; i < 3; i++)
        all += ctl_value(stats, kinds[i]);
    printf("questions    %" PRIu64 ":", all);
    for (size_t i = 0; i < 3; i++)
        printf(" %.1f %% %s%s", all > 0 ? 100. * (double)ctl_value(stats, kinds[i]) / (double)all : 0.,
               kinds[i], i < 2 ? "," : ";");
}

static void print_out_of_service(char *mounts)
{
    struct fp_report_mount m;
    char *line;

    while ((line = ctl_next_line(&mounts)) != NULL) {
        if (!fp_report_read(fp_mount_form, line, &m) || !m.out)
            continue;
        printf("OUT OF SERVICE: the %s file system at %s does not answer\n", m.type, m.point);
    }
}

static const char numbers[] =
    " {unanswered} without answer, {stale} stale\n"
    "cache        {files} files ({content_files} by content), {directories} directories ({open_dirs} open), "
    "{negative} negative; {evictions} evicted\n"
    "memory       {bytes/1024} KiB of entries, {content_memory/1024} KiB of content, "
    "{answer_memory/1024} KiB of answers for all, {resident_bytes/1024} KiB in all\n"
    "overwritten  {answers_overwritten} answers for all, {contents_overwritten} contents\n"
    "invalidated  {changes} entries; {invalidated_purge} purged, {invalidated_ttl} expired; {events} changes "
    "reported, {losses} losses, {watches} watches\n"
    "workers      {workers} of {workers_wanted}, {running} at work, {queued} walks waiting; "
    "{timeouts} timeouts, {deaths} deaths\n"
    "connections  {connections} of {max_connections}; {refused} refused, {displaced} displaced\n";

static void print_state(const struct ctl *ctl, const struct ctl_reports *s)
{
    const struct fp_judged by = ctl_judged(ctl, s);
    char text[4096];

    print_about(s->text[FP_REPORT_ABOUT]);
    print_questions(s->text[FP_REPORT_STATS]);
    fp_judge_fill_in(&by, numbers, text, sizeof(text));
    fputs(text, stdout);
    print_out_of_service(s->text[FP_REPORT_MOUNTS]);
    putchar('\n');
    ctl_print_latency(s->text[FP_REPORT_LATENCY]);
}

enum ctl_exit ctl_status(const struct ctl *ctl, char **args)
{
    static const enum fp_report wanted[] = { FP_REPORT_ABOUT,   FP_REPORT_STATS, FP_REPORT_MOUNTS,
                                             FP_REPORT_LATENCY, 0 };
    struct ctl_reports s;
    enum ctl_exit rc;

    (void)args;
    rc = ctl_read_reports(ctl, wanted, &s);
    if (rc == CTL_DONE && ctl->json)
        ctl_json_reports(&s);
    else if (rc == CTL_DONE)
        print_state(ctl, &s);
    ctl_free_reports(&s);
    return rc;
}
