/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "status/outcomes.h"

const struct fp_outcome fp_outcomes[FP_OUTCOMES] = {
    [FP_COUNT_LEASE] = { "lease", NULL },
    [FP_COUNT_LOOK] = { "look", NULL },
    [FP_COUNT_HIT] = { "hit", NULL },
    [FP_COUNT_MISS] = { "miss", NULL },
    [FP_COUNT_STALE] = { "stale", NULL },
    [FP_COUNT_NOFILE] = { "bypass", "nofile" },
    [FP_COUNT_KNOWN] = { "bypass", "known" },
    [FP_COUNT_METHOD] = { "bypass", "method" },
    [FP_COUNT_PATH] = { "bypass", "path" },
    [FP_COUNT_EXCLUDED] = { "bypass", "excluded" },
    [FP_COUNT_DISABLED] = { "bypass", "disabled" },
    [FP_COUNT_CHANGED] = { "bypass", "changed" },
    [FP_COUNT_ROOTS] = { "bypass", "roots" },
    [FP_COUNT_DEEP] = { "bypass", "deep" },
    [FP_COUNT_NOBODY] = { "fallback", "absent" },
    [FP_COUNT_PAUSED] = { "fallback", "paused" },
    [FP_COUNT_TIMEOUT] = { "fallback", "timeout" },
    [FP_COUNT_BUSY] = { "fallback", "busy" },
    [FP_COUNT_UNAVAILABLE] = { "fallback", "unavailable" },
    [FP_COUNT_FAILED] = { "fallback", "failed" },
    [FP_COUNT_VERSION] = { "fallback", "version" },
    [FP_COUNT_FOREIGN] = { "fallback", "foreign" },
    [FP_COUNT_ELSEWHERE] = { "fallback", "elsewhere" },
    [FP_COUNT_DESCRIPTORS] = { "fallback", "descriptors" },
    [FP_COUNT_ERROR] = { "fallback", "error" },
};

const char *const fp_php_results[FP_FILES_RESULTS] = { "answered", "new", "doubt", "nobody" };

enum fp_count fp_outcome_of_failure(fp_status st)
{
    switch (st) {
    case FP_TIMEOUT: return FP_COUNT_TIMEOUT;
    case FP_BUSY: return FP_COUNT_BUSY;
    case FP_REFUSED: return FP_COUNT_ROOTS;
    case FP_TOODEEP: return FP_COUNT_DEEP;
    case FP_AGAIN: return FP_COUNT_PAUSED;
    case FP_CLOSED: return FP_COUNT_NOBODY;
    case FP_VERSION: return FP_COUNT_VERSION;
    case FP_FOREIGN: return FP_COUNT_FOREIGN;
    case FP_ELSEWHERE: return FP_COUNT_ELSEWHERE;
    case FP_LOSTFD: return FP_COUNT_DESCRIPTORS;
    case FP_FAILED: return FP_COUNT_FAILED;
    case FP_UNAVAILABLE: return FP_COUNT_UNAVAILABLE;
    default: return FP_COUNT_ERROR;
    }
}

enum fp_count fp_outcome_of_source(enum fp_source source)
{
    return source == FP_SOURCE_CACHE   ? FP_COUNT_HIT
           : source == FP_SOURCE_STALE ? FP_COUNT_STALE
                                       : FP_COUNT_MISS;
}
