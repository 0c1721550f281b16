/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for the lists of access file names that clients ask about: a names_id from 1 to
 * FP_MAX_LISTS, 0 for none.  A list is kept for good, because entries of the cache refer to it.
 */
#ifndef FP_NAMES_REGISTRY_H
#define FP_NAMES_REGISTRY_H

#include "cache/cache.h"
#include "common/wire.h"

/* Set cache, leave the rest zero. */
struct fp_names_registry {
    struct fp_cache *cache; /* learns each new list; the caller's */
    unsigned n;
    struct {
        struct fp_names names; /* point into text */
        char text[FP_MAX_NAMES * FP_MAX_NAME];
    } lists[FP_MAX_LISTS]; /* names_id n is lists[n - 1] */
};

/* The list's names_id; 0: no client asked about it. */
unsigned fp_names_registry_find(const struct fp_names_registry *r, const struct fp_names *names);

/* As above, after adding a new list.  0 for an empty list, and when there are too many lists: the
 * client then looks for those files itself. */
unsigned fp_names_registry_add(struct fp_names_registry *r, const struct fp_names *names);

#endif
