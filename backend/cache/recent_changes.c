/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/recent_changes.h"

void fp_recent_changes_note(struct fp_recent_changes *r, uint64_t hash, uint64_t now_ms)
{
    struct fp_recent_set *set = &r->sets[hash % FP_RECENT_SETS];
    unsigned place = 0;

    for (unsigned i = 0; i < FP_RECENT_WAYS; i++) {
        if (set->ms[i] != 0 && set->hashes[i] == hash) {
            set->ms[i] = now_ms;
            return;
        }
        if (set->ms[i] < set->ms[place])
            place = i;
    }
    if (set->ms[place] > set->forgotten_ms)
        set->forgotten_ms = set->ms[place];
    set->ms[place] = now_ms;
    set->hashes[place] = hash;
}

bool fp_recent_changes_has(const struct fp_recent_changes *r, uint64_t hash, uint64_t since_ms)
{
    const struct fp_recent_set *set = &r->sets[hash % FP_RECENT_SETS];

    if (set->forgotten_ms >= since_ms)
        return true;
    for (unsigned i = 0; i < FP_RECENT_WAYS; i++) {
        if (set->hashes[i] == hash && set->ms[i] >= since_ms)
            return true;
    }
    return false;
}
