/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded table of reference-counted items that requests share in one child. An evicted or
 * replaced item lives until the last request releases it. Eviction is SIEVE, as in the daemon's
 * cache.
 *
 * Threads share a table. For several threads it consists of shards; each has a mutex, an index,
 * queues and a share of the number. A full shard evicts even if others are not full. The bound on bytes is
 * that of all shards together. For it a shard evicts those of its own items that take bytes. They have a
 * queue of their own, so no eviction passes by the others. Nothing is destroyed under a mutex.
 */
#ifndef FP_TABLE_H
#define FP_TABLE_H

#include <apr_pools.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A queue of all items, and one of those that take bytes. */
enum fp_table_queue { FP_TABLE_ALL, FP_TABLE_SIZED, FP_TABLE_QUEUES };

/* The first member of each kind of item. */
struct fp_item {
    const void *key; /* no copy: it must live as long as the item */
    unsigned key_len;
    unsigned hash; /* of the key, from fp_table_put() on */
    struct fp_item *older[FP_TABLE_QUEUES], *younger[FP_TABLE_QUEUES];
    atomic_uint references;
    bool visited;
    apr_size_t bytes;                      /* 0, or set before fp_table_put(): the table bounds them */
    void (*destroy)(struct fp_item *item); /* runs in the thread that releases it last */
};

struct fp_table;

/*
 * Call it once in a child, before the first table and the first item. threads: how many will share
 * a table. Returns 0, or -1: without random numbers there can be no table.
 */
int fp_table_init(int threads);

/* Makes a table for at most limit items of at most bytes together
 * (SIZE_MAX: no bound); the pool's cleanup releases the table's references. */
struct fp_table *fp_table_create(apr_pool_t *p, int limit, apr_size_t bytes);

/* Writes the key of a path for one owner (a server, or its settings) and returns its length:
 * FP_ITEM_KEY_SIZE() bytes. */
#define FP_ITEM_KEY_SIZE(path_len) (sizeof(const void *) + (path_len))
apr_size_t fp_item_key(char *key, const void *owner, const char *path, apr_size_t len);

/* Prepares a new item, with one reference for the caller. */
void fp_item_init(struct fp_item *item, const void *key, apr_size_t key_len,
                  void (*destroy)(struct fp_item *item));
void fp_item_retain(struct fp_item *item);
void fp_item_release(struct fp_item *item);
/* Releases the item when the pool is cleared. */
void fp_item_release_with(apr_pool_t *p, struct fp_item *item);

/* Retained for the caller; NULL if there is none. */
struct fp_item *fp_table_get(struct fp_table *t, const void *key, apr_size_t key_len);

/* True if the table keeps items of so many bytes, once there is room. */
bool fp_table_takes(const struct fp_table *t, apr_size_t bytes);

/*
 * Keeps the item, which was in no table before, in place of the one with its key. The table takes
 * its own reference. An item of more than a quarter of the table's bytes is not kept, nor one for which
 * its shard cannot make room.
 */
void fp_table_put(struct fp_table *t, struct fp_item *item);

/* Removes the item if the table still has it. */
void fp_table_drop(struct fp_table *t, struct fp_item *item);

/* The number of items in the table. */
unsigned fp_table_count(const struct fp_table *t);

/*
 * Removes expired items; expired() must not use the table. Checks about most items, and the next
 * call those that follow. A mutex is held for a few of them at a time. Does nothing while another
 * thread does this.
 */
void fp_table_drop_if(struct fp_table *t, bool (*expired)(const struct fp_item *item), unsigned most);

#endif
