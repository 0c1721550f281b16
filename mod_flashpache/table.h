/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded table of things that requests share in one child: each is counted,
 * so what is evicted or replaced lives until the last request lets go of it.
 * Eviction is SIEVE, as in the daemon's cache.  Threads may share a table.
 */
#ifndef FP_TABLE_H
#define FP_TABLE_H

#include <apr_pools.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

/* The first member of whatever is kept. */
struct fp_item {
    TAILQ_ENTRY(fp_item) link;
    atomic_uint references;
    bool visited;
    const void *key;               /* lives as long as the item */
    apr_size_t key_len;
    void (*destroy)(struct fp_item *item);   /* by whichever thread is the last */
};

struct fp_table;

/* For at most limit things; the table's own references go with the pool. */
struct fp_table *fp_table_create(apr_pool_t *p, int limit);

/* A new item has one reference, its maker's. */
void fp_item_init(struct fp_item *item, const void *key, apr_size_t key_len,
                  void (*destroy)(struct fp_item *item));
void fp_item_release(struct fp_item *item);

/* Retained for the caller; NULL if there is none. */
struct fp_item *fp_table_get(struct fp_table *t, const void *key, apr_size_t key_len);

/* Keeps the item, instead of what had its key; the caller keeps its reference. */
void fp_table_put(struct fp_table *t, struct fp_item *item);

/* No longer kept, if it still is. */
void fp_table_drop(struct fp_table *t, struct fp_item *item);

/* No longer keeps those for which over says so; it must not use the table. */
void fp_table_drop_if(struct fp_table *t, bool (*over)(const struct fp_item *item));

#endif
