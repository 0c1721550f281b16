/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_json_report.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_json.h"
#include "wire/wire.h"

static void put_stats(struct ctl_json *j, const char *report)
{
    ctl_json_begin(j, "stats", '{');
    for (size_t i = 0; i < FP_STATS; i++)
        ctl_json_number(j, fp_stat_rows[i].name, ctl_value(report, fp_stat_rows[i].name));
    ctl_json_end(j, '}');
}

/* ---- the daemon itself ---- */

enum kind { WORD, NUMBER, SWITCH /* "on" or "off" */ };
static const struct {
    const char *key;
    enum kind kind;
} about[] = { { "version", WORD },
              { "pid", NUMBER },
              { "uid", NUMBER },
              { "gid", NUMBER },
              { "uptime_s", NUMBER },
              { "config", WORD },
              { "log", WORD },
              { "log_level", WORD },
              { "workers_wanted", NUMBER },
              { "descriptors", NUMBER },
              { "max_connections", NUMBER },
              { "connections_wanted", NUMBER },
              { "seccomp", SWITCH },
              { "prompt", SWITCH },
              { "supervised", SWITCH } };

static void put_about(struct ctl_json *j, const char *report)
{
    static char word[4 * FP_MAX_PATH + 1];

    ctl_json_begin(j, "daemon", '{');
    for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
        const char *key = about[i].key;

        if (!ctl_word(report, key, word, sizeof(word)))
            continue;
        if (about[i].kind == NUMBER)
            ctl_json_number(j, key, ctl_value(report, key));
        else if (about[i].kind == SWITCH)
            ctl_json_bool(j, key, strcmp(word, "on") == 0);
        else
            ctl_json_text(j, key, word);
    }
    ctl_json_end(j, '}');
}

/* ---- rows ---- */

static void put_buckets(struct ctl_json *j, const uint64_t *buckets)
{
    ctl_json_begin(j, "buckets", '[');
    for (unsigned i = 0; i < FP_LATENCY_BUCKETS; i++) {
        ctl_json_begin(j, NULL, '{');
        if (i < FP_LATENCY_BUCKETS - 1)
            ctl_json_number(j, "le_us", (uint64_t)FP_LATENCY_FIRST_US << i);
        else
            ctl_json_null(j, "le_us");
        ctl_json_number(j, "count", buckets[i]);
        ctl_json_end(j, '}');
    }
    ctl_json_end(j, ']');
}

static void put_row(struct ctl_json *j, const struct fp_word *form, const void *row)
{
    ctl_json_begin(j, NULL, '{');
    for (; form->kind != FP_WORD_END; form++) {
        const void *member = (const char *)row + form->offset;

        switch (form->kind) {
        case FP_WORD_TEXT: ctl_json_text(j, form->name, *(char *const *)member); break;
        case FP_WORD_FLAG: ctl_json_bool(j, form->name, *(const bool *)member); break;
        case FP_WORD_BUCKETS: put_buckets(j, member); break;
        default: ctl_json_number(j, form->name, *(const uint64_t *)member);
        }
    }
    ctl_json_end(j, '}');
}

static void put_rows(struct ctl_json *j, const char *key, const struct fp_word *form, char *report)
{
    union {
        struct fp_report_mount mount;
        struct fp_report_latency latency;
    } row;
    char *line;

    if (report == NULL)
        return;
    ctl_json_begin(j, key, '[');
    while ((line = ctl_next_line(&report)) != NULL) {
        if (fp_report_read(form, line, &row))
            put_row(j, form, &row);
    }
    ctl_json_end(j, ']');
}

void ctl_json_reports(const struct ctl_reports *r)
{
    struct ctl_json j = { .to = stdout };

    ctl_json_begin(&j, NULL, '{');
    if (r->text[FP_REPORT_ABOUT] != NULL)
        put_about(&j, r->text[FP_REPORT_ABOUT]);
    if (r->text[FP_REPORT_STATS] != NULL)
        put_stats(&j, r->text[FP_REPORT_STATS]);
    put_rows(&j, "mounts", fp_mount_form, r->text[FP_REPORT_MOUNTS]);
    put_rows(&j, "lookups", fp_latency_form, r->text[FP_REPORT_LATENCY]);
    ctl_json_finish(&j, '}');
}
