/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/verdict.h"

#define AGAIN_MS 2000u /* after so long a walk finds whether it can be watched again */

static const struct {
    const char *text, *reason;
    uint32_t most_ms; /* with the mount's TTL; 0: at no time */
} rows[FP_VERDICTS] = {
    [FP_REPORTED] = { "inotify", "reported", UINT32_MAX },
    [FP_REPORTED_OTHERS] = { "inotify+ttl", "others", UINT32_MAX },
    [FP_REPORTED_NOISE] = { "inotify+ttl", "noise", AGAIN_MS },
    [FP_REPORTED_NAMES] = { "inotify+ttl", "names", AGAIN_MS },
    [FP_REPORTED_LIMIT] = { "inotify+ttl", "limit", AGAIN_MS },
    [FP_TTL_UNREPORTED] = { "ttl", "unreported", UINT32_MAX },
    [FP_TTL_UNWATCHED] = { "ttl", "unwatched", UINT32_MAX },
    [FP_EACH_REQUEST] = { "ttl", "unseen", 0 },
};

/* A watch that is missing for now does no harm while other watches report the same.  With anything worse they
 * do not. */
enum fp_verdict fp_verdict_both(enum fp_verdict a, enum fp_verdict b)
{
    const enum fp_verdict low = a < b ? a : b, high = a < b ? b : a;
    const bool for_now = low >= FP_REPORTED_NOISE && low <= FP_REPORTED_LIMIT;

    return for_now && high > FP_REPORTED_NAMES && high != low ? FP_EACH_REQUEST : high;
}

bool fp_verdict_is_reported(enum fp_verdict v)
{
    return v <= FP_REPORTED_LIMIT;
}

uint32_t fp_verdict_ms(enum fp_verdict v, uint32_t watched_ms, uint32_t ttl_ms)
{
    if (v == FP_REPORTED)
        return watched_ms;
    return ttl_ms < rows[v].most_ms ? ttl_ms : rows[v].most_ms;
}

const char *fp_verdict_text(enum fp_verdict v)
{
    return rows[v].text;
}

const char *fp_verdict_reason(enum fp_verdict v)
{
    return rows[v].reason;
}
