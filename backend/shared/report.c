/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/report.h"

#include <stdlib.h>
#include <string.h>

const struct fp_stat fp_stat_rows[FP_STATS] = {
#define ROW(name, field, type, help) { #name, #type, help },
    FP_STATS_TABLE(ROW)
#undef ROW
};

/* clang-format off */
#define END { NULL, FP_WORD_END, 0 }
#define MOUNT(name, kind, member) { name, FP_WORD_##kind, offsetof(struct fp_report_mount, member) }
#define LATENCY(member, kind) { #member, FP_WORD_##kind, offsetof(struct fp_report_latency, member) }
#define KNOWN(member, kind) { #member, FP_WORD_##kind, offsetof(struct fp_report_known, member) }

const struct fp_word fp_mount_form[] = {
    MOUNT("point", TEXT, point), MOUNT("type", TEXT, type), MOUNT("watch", TEXT, watch),
    MOUNT("ttl_ms", SETTING, ttl_ms), MOUNT("negative_ttl_ms", SETTING, negative_ttl_ms),
    MOUNT("stale_if_error_ms", SETTING, stale_ms), MOUNT("calls_per_minute", SETTING, calls),
    MOUNT("out_of_service", FLAG, out), END
};
const struct fp_word fp_latency_form[] = {
    LATENCY(point, TEXT), LATENCY(count, NUMBER), LATENCY(sum_us, NUMBER), LATENCY(longest_us, NUMBER),
    LATENCY(calls, NUMBER), LATENCY(buckets, BUCKETS), END
};
const struct fp_word fp_known_form[] = {
    KNOWN(len, NUMBER), KNOWN(state, TEXT), KNOWN(watch, TEXT), KNOWN(reason, TEXT), KNOWN(left_ms, NUMBER),
    KNOWN(lease, TEXT), KNOWN(kept, TEXT), KNOWN(point, TEXT), END
};
/* clang-format on */

static bool take_number(const char *word, uint64_t *v_r)
{
    char *end;

    *v_r = strtoull(word, &end, 10);
    return word[0] >= '0' && word[0] <= '9' && *end == '\0';
}

static bool take_buckets(char *word, uint64_t *buckets)
{
    for (unsigned i = 0; i < FP_LATENCY_BUCKETS; i++) {
        const char *number = strsep(&word, ",");

        if (number == NULL || !take_number(number, &buckets[i]))
            return false;
    }
    return word == NULL;
}

/* text NULL: the line has ended. */
static bool take_word(const struct fp_word *word, char *text, void *member)
{
    const size_t len = strlen(word->name);

    if (word->kind == FP_WORD_FLAG)
        *(bool *)member = text != NULL;
    if (text == NULL || word->kind == FP_WORD_FLAG)
        return word->kind == FP_WORD_FLAG;
    switch (word->kind) {
    case FP_WORD_NUMBER: return take_number(text, member);
    case FP_WORD_SETTING:
        return strncmp(text, word->name, len) == 0 && text[len] == '=' && take_number(text + len + 1, member);
    case FP_WORD_BUCKETS: return take_buckets(text, member);
    default: *(char **)member = text; return true;
    }
}

bool fp_report_read(const struct fp_word *form, char *line, void *row)
{
    for (; form->kind != FP_WORD_END; form++) {
        if (!take_word(form, line != NULL ? strsep(&line, " ") : NULL, (char *)row + form->offset))
            return false;
    }
    return line == NULL;
}

uint64_t fp_latency_percentile_us(const struct fp_report_latency *l, unsigned percent)
{
    uint64_t seen = 0;

    for (unsigned i = 0; i < FP_LATENCY_BUCKETS - 1; i++) {
        const uint64_t bound = (uint64_t)FP_LATENCY_FIRST_US << i;

        seen += l->buckets[i];
        if (seen * 100 >= l->count * percent)
            return bound < l->longest_us ? bound : l->longest_us;
    }
    return l->longest_us;
}
