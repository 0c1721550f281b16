/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a child keeps: a bounded cache of reference-counted items that its requests share. There is one of open
 * files, one of parsed access files, and one of names of directories. Threads share a cache under one mutex. An
 * evicted or replaced item lives until the last request releases it, and nothing is destroyed under the mutex.
 * Eviction is SIEVE, as in the daemon's cache.
 */
#ifndef FP_CHILD_CACHE_H
#define FP_CHILD_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/keyed_table.h"

/* The first member of each kind of item. */
struct fp_item {
    UT_hash_handle hh; /* its key is no copy: that must live as long as the item */
    atomic_uint references;
    bool visited;
    size_t bytes;                          /* 0, or set before fp_child_cache_put(): the cache bounds them */
    void (*destroy)(struct fp_item *item); /* runs in the thread that releases it last */
};

struct fp_child_cache;

/* Call it once in a child, before the first item. Returns 0, or -1: without random numbers there can be no cache. */
int fp_child_cache_init(void);

/* Makes a cache for at most limit items of at most bytes together (SIZE_MAX: no bound). It stays as long as the
 * process. NULL: no memory; such a cache keeps nothing. */
struct fp_child_cache *fp_child_cache_create(unsigned limit, size_t bytes);

/* Writes the key of a path for one owner (a server, or its settings) and returns its length:
 * FP_ITEM_KEY_SIZE() bytes. */
#define FP_ITEM_KEY_SIZE(path_len) (sizeof(const void *) + (path_len))
size_t fp_item_key(char *key, const void *owner, const char *path, size_t len);

/* Prepares a new item, with one reference for the caller. */
void fp_item_init(struct fp_item *item, const void *key, size_t key_len, void (*destroy)(struct fp_item *item));
void fp_item_release(struct fp_item *item);

/* Retained for the caller; NULL if there is none. */
struct fp_item *fp_child_cache_get(struct fp_child_cache *c, const void *key, size_t key_len);

/* True if the cache keeps items of so many bytes, once there is room. */
bool fp_child_cache_takes(const struct fp_child_cache *c, size_t bytes);

/*
 * Keeps the item, which was in no cache before, in place of the one with its key. The cache takes
 * its own reference. An item of more than a quarter of the cache's bytes is not kept.
 */
void fp_child_cache_put(struct fp_child_cache *c, struct fp_item *item);

/* Removes the item if the cache still has it. */
void fp_child_cache_drop(struct fp_child_cache *c, struct fp_item *item);

/* The number of items in the cache. */
unsigned fp_child_cache_count(const struct fp_child_cache *c);

/* Removes expired items; expired() must not use the cache. The mutex is held for a few of them at a time. Only one
 * thread may do this. */
void fp_child_cache_drop_if(struct fp_child_cache *c, bool (*expired)(const struct fp_item *item));

#endif
