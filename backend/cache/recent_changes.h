/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recent changes and their times. A walk under way may have seen something that a change has invalidated
 * since, and nothing depends on it yet.
 *
 * The memory is bounded, and so each set forgets its oldest change. It keeps the time of that change: a
 * question about an earlier time is answered with "perhaps". A file that changes all the time has one place,
 * so it does not drive others out.
 */
#ifndef FP_RECENT_CHANGES_H
#define FP_RECENT_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#define FP_RECENT_SETS 2048u
#define FP_RECENT_WAYS 8u

struct fp_recent_changes {
    struct fp_recent_set {
        uint64_t forgotten_ms;       /* no change after that is missing here */
        uint64_t ms[FP_RECENT_WAYS]; /* 0: a free place */
        uint64_t hashes[FP_RECENT_WAYS];
    } sets[FP_RECENT_SETS];
};

/* Times never go back. */
void fp_recent_changes_note(struct fp_recent_changes *r, uint64_t hash, uint64_t now_ms);
/* True if it may have changed then or later. */
bool fp_recent_changes_has(const struct fp_recent_changes *r, uint64_t hash, uint64_t since_ms);

#endif
