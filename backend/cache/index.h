/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table that grows and shrinks by one bucket at a time (Litwin, "Linear hashing", VLDB
 * 1980): no insertion pays for a new table, however many objects there are.  They are linked by a
 * member of theirs; what their keys are is the caller's business.
 */
#ifndef FP_INDEX_H
#define FP_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#define FP_INDEX_SEGMENT  512u   /* buckets that are allocated together */
#define FP_INDEX_SEGMENTS 32768u /* at most; then chains grow */

/* A member of each object, the first. */
struct fp_indexed {
    struct fp_indexed *next; /* in its bucket */
    unsigned hash;           /* of the key, by fp_keyed_hash() */
};

/* All zero: empty. */
struct fp_index {
    struct fp_indexed ***segments;
    size_t buckets;
    size_t round; /* a power of two: so many buckets there were when they began to be split */
    size_t n;     /* objects */
};

/* False: no memory. */
bool fp_index_add(struct fp_index *x, struct fp_indexed *e, unsigned hash);
/* Frees all memory of the index with the last object. */
void fp_index_remove(struct fp_index *x, struct fp_indexed *e);

/* The first in the chain (next) in which objects with that hash are, and others; NULL: none are. */
struct fp_indexed *fp_index_chain(const struct fp_index *x, unsigned hash);

/* All objects, in no order; the index must not change meanwhile.  NULL: that was the last. */
struct fp_indexed *fp_index_first(const struct fp_index *x);
struct fp_indexed *fp_index_next(const struct fp_index *x, const struct fp_indexed *e);

#endif
