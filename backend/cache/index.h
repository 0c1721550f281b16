/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table that grows and shrinks by one bucket at a time (Litwin, "Linear hashing", VLDB
 * 1980).  So no insertion pays for a new table, however many objects there are.  A member of theirs
 * links the objects; their keys are the caller's business.
 */
#ifndef FP_INDEX_H
#define FP_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#define FP_INDEX_SEGMENT  512u   /* buckets that are allocated together */
#define FP_INDEX_SEGMENTS 32768u /* at most; then chains grow */

/* The first member of each object. */
struct fp_indexed {
    struct fp_indexed *next; /* in its bucket */
    unsigned hash;           /* of the key, by fp_keyed_hash() */
};

/* All zero: empty. */
struct fp_index {
    struct fp_indexed ***segments;
    size_t buckets;
    size_t round; /* a power of two: the number of buckets when this round of splits began */
    size_t n;     /* objects */
};

/* False: out of memory. */
bool fp_index_add(struct fp_index *x, struct fp_indexed *e, unsigned hash);
/* Frees all memory of the index with the last object. */
void fp_index_remove(struct fp_index *x, struct fp_indexed *e);

/* The first in the chain (next) of the objects with that hash, and of others; NULL if there are none. */
struct fp_indexed *fp_index_chain(const struct fp_index *x, unsigned hash);

/* The first in the chain of that bucket, which is less than buckets; NULL if there are none. */
struct fp_indexed *fp_index_bucket(const struct fp_index *x, size_t i);

/* The first of all objects, in no order; the index must not change meanwhile.  NULL if there is none. */
struct fp_indexed *fp_index_first(const struct fp_index *x);
struct fp_indexed *fp_index_next(const struct fp_index *x, const struct fp_indexed *e);

#endif
