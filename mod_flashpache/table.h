/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded table of things that requests share in one child: each is counted,
 * so what is evicted or replaced lives until the last request lets go of it.
 * Eviction is SIEVE, as in the daemon's cache.
 *
 * Threads share a table.  Where there are several it is made of shards, and
 * each has a mutex, a hash, a queue and a share of the limit: a full shard
 * evicts although others may have room.  Nothing is destroyed under a mutex.
 */
#ifndef FP_TABLE_H
#define FP_TABLE_H

#include <apr_pools.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/keyed_hash.h"

/* The first member of whatever is kept. */
struct fp_item {
    UT_hash_handle hh;             /* the key is not copied: it lives as long as the item */
    atomic_uint references;
    bool visited;
    void (*destroy)(struct fp_item *item);   /* by whichever thread is the last */
};

struct fp_table;

/*
 * Once in a child, before the first table and the first item; threads: how
 * many will share a table.  0, or -1: no randomness, so there can be no table.
 */
int fp_table_init(int threads);

/* For at most limit things; the table's own references go with the pool. */
struct fp_table *fp_table_create(apr_pool_t *p, int limit);

/* A new item has one reference, its maker's. */
void fp_item_init(struct fp_item *item, const void *key, apr_size_t key_len,
                  void (*destroy)(struct fp_item *item));
void fp_item_release(struct fp_item *item);
/* Releases it when the pool goes. */
void fp_item_release_with(apr_pool_t *p, struct fp_item *item);

/* Retained for the caller; NULL if there is none. */
struct fp_item *fp_table_get(struct fp_table *t, const void *key, apr_size_t key_len);

/*
 * Keeps the item, which was in no table before, instead of what had its key;
 * the caller keeps its reference.
 */
void fp_table_put(struct fp_table *t, struct fp_item *item);

/* No longer kept, if it still is. */
void fp_table_drop(struct fp_table *t, struct fp_item *item);

/* How many things are in it. */
unsigned fp_table_count(const struct fp_table *t);

/*
 * No longer keeps those for which over says so; it must not use the table.
 * Looks at about most things, the next time at those that follow; a few at a
 * time, so that others need not wait.  Does nothing while another thread does this.
 */
void fp_table_drop_if(struct fp_table *t, bool (*over)(const struct fp_item *item),
                      unsigned most);

#endif
