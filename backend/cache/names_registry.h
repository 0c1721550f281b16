/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for the lists of access file names that clients ask about: a names_id from 1 to
 * FP_MAX_LISTS, 0 for none.  Entries of the cache and walks refer to a list by its number.  A new list
 * takes the place of the one that was unused for longest, once no walk looks for that one's names and the
 * cache has forgotten its access files.  So strangers' lists hold no place for good.  No reader gets another
 * list's answer: records in shared memory have the names themselves as their key.
 */
#ifndef FP_NAMES_REGISTRY_H
#define FP_NAMES_REGISTRY_H

#include <stdint.h>

#include "cache/cache.h"
#include "common/wire.h"

/* A list keeps its place for so long after its last use; a refresh of an entry is one as well.  So invented
 * lists do not take the place of a list in use. */
#define FP_LIST_IDLE_MS 60000u

/* Set cache, leave the rest zero. */
struct fp_names_registry {
    struct fp_cache *cache; /* learns each new list; the caller's */
    unsigned n;
    struct {
        struct fp_names names; /* point into text */
        char text[FP_NAMES_TEXT];
        uint64_t used_ms;
        unsigned holders;
    } lists[FP_MAX_LISTS]; /* names_id n is lists[n - 1] */
};

/* The list's names_id; 0: no client asked about it of late. */
unsigned fp_names_registry_find(const struct fp_names_registry *r, const struct fp_names *names);

/* As above, after adding a new list.  0 for an empty list, and while there are too many lists: the
 * client then looks for those files itself.  The number is good until the next call, or while it is held. */
unsigned fp_names_registry_add(struct fp_names_registry *r, const struct fp_names *names, uint64_t now_ms);

/* The list keeps its number and its memory until it is released as often as it was held.  0: no effect. */
void fp_names_registry_hold(struct fp_names_registry *r, unsigned names_id, uint64_t now_ms);
void fp_names_registry_release(struct fp_names_registry *r, unsigned names_id);

#endif
