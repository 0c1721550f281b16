/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shared/client.h"

#define MOST_PARTS 1024 /* of a report, 32 MiB: the mounts of a large machine have a few */

static const char *const names[FP_REPORTS + 1] = {
    [FP_REPORT_MOUNTS] = "mounts",
    [FP_REPORT_STATS] = "stats",
    [FP_REPORT_LATENCY] = "latency",
    [FP_REPORT_ABOUT] = "state",
};

/* Appends all parts of the report. */
static enum ctl_exit read_parts(const struct ctl *ctl, enum fp_report what, FILE *to)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_control question = { .op = FP_CONTROL_REPORT, .what = what };
    struct fp_reply reply;

    for (unsigned parts = 0; parts < MOST_PARTS; parts++) {
        fp_status st = fp_client_control(ctl->client, &question, &reply, buf);

        if (st != FP_OK)
            return ctl_no_daemon(ctl, st);
        if (reply.status != FP_OK) {
            ctl_complain("flashpached does not report its %s: %s", names[what],
                         fp_status_text(reply.status));
            return CTL_FAILED;
        }
        fwrite(reply.text, 1, reply.text_len, to);
        if (reply.next == 0)
            return CTL_DONE;
        question.from = reply.next;
    }
    ctl_complain("flashpached's report of its %s never ends; see who listens at %s", names[what],
                 ctl->socket);
    return CTL_FAILED;
}

/* The whole report, terminated, the caller's; NULL after a message, with the exit status in *rc_r. */
static char *read_report(const struct ctl *ctl, enum fp_report what, enum ctl_exit *rc_r)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    *rc_r = to != NULL ? read_parts(ctl, what, to) : CTL_FAILED;
    if ((to == NULL || fclose(to) == EOF) && *rc_r != CTL_NO_DAEMON) {
        ctl_complain("no memory for the report of %s: %s", names[what], strerror(errno));
        *rc_r = CTL_FAILED;
    }
    if (*rc_r == CTL_DONE)
        return text;
    free(text);
    return NULL;
}

enum ctl_exit ctl_read_reports(const struct ctl *ctl, const enum fp_report *wanted, struct ctl_reports *r)
{
    enum ctl_exit rc = CTL_DONE;

    memset(r, 0, sizeof(*r));
    for (; rc == CTL_DONE && *wanted != 0; wanted++)
        r->text[*wanted] = read_report(ctl, *wanted, &rc);
    return rc;
}

void ctl_free_reports(struct ctl_reports *r)
{
    for (size_t i = 1; i <= FP_REPORTS; i++)
        free(r->text[i]);
    memset(r, 0, sizeof(*r));
}

char *ctl_next_line(char **text)
{
    return *text != NULL && **text != '\0' ? strsep(text, "\n") : NULL;
}

/* The text behind "NAME "; NULL: there is no such line. */
static const char *find(const char *report, const char *name)
{
    const size_t len = strlen(name);
    const char *line = report;

    while (line != NULL && !(strncmp(line, name, len) == 0 && line[len] == ' ')) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return line != NULL ? line + len + 1 : NULL;
}

uint64_t ctl_value(const char *report, const char *name)
{
    const char *v = find(report, name);

    return v != NULL ? strtoull(v, NULL, 10) : 0;
}

bool ctl_word(const char *report, const char *name, char *buf, size_t size)
{
    const char *v = find(report, name);
    size_t len = v != NULL ? strcspn(v, "\n") : 0;

    if (v == NULL || len >= size)
        return false;
    memcpy(buf, v, len);
    buf[len] = '\0';
    return true;
}

static uint64_t value_of(const void *ctx, const char *name)
{
    const struct ctl_reports *r = ctx;
    const char *v = find(r->text[FP_REPORT_ABOUT], name);

    if (v == NULL)
        return ctl_value(r->text[FP_REPORT_STATS], name);
    return strncmp(v, "on\n", 3) == 0 ? 1 : strtoull(v, NULL, 10);
}

struct fp_judged ctl_judged(const struct ctl *ctl, const struct ctl_reports *r)
{
    static char version[64];

    if (!ctl_word(r->text[FP_REPORT_ABOUT], "version", version, sizeof(version)))
        strcpy(version, "?");
    return (struct fp_judged){ value_of, r, ctl->socket, version, PACKAGE_VERSION };
}

const char *ctl_time_text(uint64_t us, char *buf, size_t size)
{
    if (us < 1000)
        snprintf(buf, size, "%" PRIu64 " us", us);
    else if (us < 1000000)
        snprintf(buf, size, "%.1f ms", (double)us / 1e3);
    else
        snprintf(buf, size, "%.1f s", (double)us / 1e6);
    return buf;
}

/* ---- for people ---- */

void ctl_print_latency(char *report)
{
    char *line, a[32], b[32], c[32], d[32];
    struct fp_report_latency l;

    printf("%10s %9s %9s %9s %9s %10s  %s\n", "walks", "mean", "50 %", "99 %", "longest", "calls", "mount");
    while ((line = ctl_next_line(&report)) != NULL) {
        if (!fp_report_read(fp_latency_form, line, &l) || l.count == 0)
            continue;
        printf("%10" PRIu64 " %9s %9s %9s %9s %10" PRIu64 "  %s\n", l.count,
               ctl_time_text(l.sum_us / l.count, a, sizeof(a)),
               ctl_time_text(fp_latency_percentile_us(&l, 50), b, sizeof(b)),
               ctl_time_text(fp_latency_percentile_us(&l, 99), c, sizeof(c)),
               ctl_time_text(l.longest_us, d, sizeof(d)), l.calls, l.point);
    }
}
