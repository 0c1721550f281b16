/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_json_report.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_json.h"
#include "wire/wire.h"

/* Lines of "KEY VALUE": a number, "on" or "off", or a text. */
static void put_values(struct ctl_json *j, const char *key, char *report)
{
    char *line;

    if (report == NULL)
        return;
    ctl_json_begin(j, key, '{');
    while ((line = ctl_next_line(&report)) != NULL) {
        const char *name = strsep(&line, " "), *value = line != NULL ? line : "";

        if (value[0] >= '0' && value[0] <= '9' && value[strspn(value, "0123456789")] == '\0')
            ctl_json_number(j, name, strtoull(value, NULL, 10));
        else if (strcmp(value, "on") == 0 || strcmp(value, "off") == 0)
            ctl_json_bool(j, name, value[1] == 'n');
        else
            ctl_json_text(j, name, value);
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

void ctl_json_rows(struct ctl_json *j, const char *key, const struct fp_word *form, char *report)
{
    union {
        struct fp_report_mount mount;
        struct fp_report_latency latency;
        struct fp_report_known known;
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
    put_values(&j, "daemon", r->text[FP_REPORT_ABOUT]);
    put_values(&j, "stats", r->text[FP_REPORT_STATS]);
    ctl_json_rows(&j, "mounts", fp_mount_form, r->text[FP_REPORT_MOUNTS]);
    ctl_json_rows(&j, "lookups", fp_latency_form, r->text[FP_REPORT_LATENCY]);
    ctl_json_finish(&j, '}');
}
