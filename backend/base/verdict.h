/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How changes of a step of a path are noticed: one verdict with its reason, and one table of how long a step
 * is valid (docs/design/coherence.md). It begins with the mount's verdict. A worker adds what it finds at
 * each step, and the daemon what it knows of the directory above.
 */
#ifndef FP_VERDICT_H
#define FP_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

enum fp_verdict {
    FP_REPORTED,         /* every change is reported */
    FP_REPORTED_OTHERS,  /* every change that this machine makes through the mount; not those of others */
    FP_REPORTED_NOISE,   /* something is not watched for now, or not wholly (noise.h), but another watch reports it */
    FP_REPORTED_NAMES,   /* so is the watch of the step's own directory, which reports names alone */
    FP_REPORTED_LIMIT,   /* the system's limit on watches is reached, but another watch reports it */
    FP_TTL_UNREPORTED,   /* a change may come without a report: no watch is possible, or no event tells of it */
    FP_TTL_UNWATCHED,    /* nothing on the mount is watched */
    FP_EACH_REQUEST      /* so may a change by this machine, at any time */
};
#define FP_VERDICTS 8

/* The verdict where both hold. */
enum fp_verdict fp_verdict_both(enum fp_verdict a, enum fp_verdict b);

/* True if every change that this machine makes through the mount is reported. */
bool fp_verdict_is_reported(enum fp_verdict v);

/* For how many milliseconds it is valid: watched_ms where nothing but a report ends it, ttl_ms on its mount. */
uint32_t fp_verdict_ms(enum fp_verdict v, uint32_t watched_ms, uint32_t ttl_ms);

/* "inotify", "inotify+ttl" or "ttl". */
const char *fp_verdict_text(enum fp_verdict v);
/* The reason, a word: "reported", "others", "noise", "names", "limit", "unreported", "unwatched", "unseen". */
const char *fp_verdict_reason(enum fp_verdict v);

#endif
