/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded table of reference-counted items that requests share in one child: an item that
 * is evicted or replaced lives until the last request releases it.  Eviction is SIEVE, as in
 * the daemon's cache.
 *
 * Threads share a table.  Where there are several it is made of shards, and
 * each has a mutex, a hash, a queue and a share of the limit: a full shard
 * evicts even if others are not full.  Nothing is destroyed under a mutex.
 */
#ifndef FP_TABLE_H
#define FP_TABLE_H

#include <apr_pools.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/keyed_hash.h"

/* The first member of each kind of item. */
struct fp_item {
    UT_hash_handle hh; /* the key is not copied: it lives as long as the item */
    atomic_uint references;
    bool visited;
    void (*destroy)(struct fp_item *item); /* in the thread that released it last */
};

struct fp_table;

/*
 * Once in a child, before the first table and the first item; threads: the number
 * that will share a table.  0, or -1: no random numbers, so there can be no table.
 */
int fp_table_init(int threads);

/* For at most limit items; the pool's cleanup releases the table's references. */
struct fp_table *fp_table_create(apr_pool_t *p, int limit);

/* Writes the key of a path as one owner sees it (a server, or its settings): FP_ITEM_KEY_SIZE()
 * bytes, which it returns. */
#define FP_ITEM_KEY_SIZE(path_len) (sizeof(const void *) + (path_len))
apr_size_t fp_item_key(char *key, const void *owner, const char *path, apr_size_t len);

/* A new item has one reference, the caller's. */
void fp_item_init(struct fp_item *item, const void *key, apr_size_t key_len,
                  void (*destroy)(struct fp_item *item));
void fp_item_retain(struct fp_item *item);
void fp_item_release(struct fp_item *item);
/* Releases it when the pool is cleared. */
void fp_item_release_with(apr_pool_t *p, struct fp_item *item);

/* Retained for the caller; NULL if there is none. */
struct fp_item *fp_table_get(struct fp_table *t, const void *key, apr_size_t key_len);

/*
 * Keeps the item, which was in no table before, in place of the one with its key.  The
 * table takes a reference of its own.
 */
void fp_table_put(struct fp_table *t, struct fp_item *item);

/* Removes the item if the table still has it. */
void fp_table_drop(struct fp_table *t, struct fp_item *item);

/* The number of items in the table. */
unsigned fp_table_count(const struct fp_table *t);

/*
 * Removes the items that are expired; that function must not use the table.  Looks at
 * about most items, and the next time at those that follow.  A mutex is held for a few of
 * them at a time.  Does nothing while another thread does this.
 */
void fp_table_drop_if(struct fp_table *t, bool (*expired)(const struct fp_item *item), unsigned most);

#endif
