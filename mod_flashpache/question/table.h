/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded table of reference-counted items that a child's requests share: open files, parsed access files, names
 * of directories. Threads share a table under one mutex. An evicted or replaced item lives until the last request
 * releases it, and nothing is destroyed under the mutex. Eviction is SIEVE, as in the daemon's cache.
 */
#ifndef FP_TABLE_H
#define FP_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of each kind of item. */
struct fp_item {
    const void *key; /* no copy: it must live as long as the item */
    unsigned key_len;
    unsigned hash; /* of the key, from fp_table_put() on */
    struct fp_item *older, *younger;
    atomic_uint references;
    bool visited;
    size_t bytes;                          /* 0, or set before fp_table_put(): the table bounds them */
    void (*destroy)(struct fp_item *item); /* runs in the thread that releases it last */
};

struct fp_table;

/* Call it once in a child, before the first item. Returns 0, or -1: without random numbers there can be no table. */
int fp_table_init(void);

/* Makes a table for at most limit items of at most bytes together (SIZE_MAX: no bound). It stays as long as the
 * process. NULL: no memory; such a table keeps nothing. */
struct fp_table *fp_table_create(unsigned limit, size_t bytes);

/* Writes the key of a path for one owner (a server, or its settings) and returns its length:
 * FP_ITEM_KEY_SIZE() bytes. */
#define FP_ITEM_KEY_SIZE(path_len) (sizeof(const void *) + (path_len))
size_t fp_item_key(char *key, const void *owner, const char *path, size_t len);

/* Prepares a new item, with one reference for the caller. */
void fp_item_init(struct fp_item *item, const void *key, size_t key_len, void (*destroy)(struct fp_item *item));
void fp_item_release(struct fp_item *item);

/* Retained for the caller; NULL if there is none. */
struct fp_item *fp_table_get(struct fp_table *t, const void *key, size_t key_len);

/* True if the table keeps items of so many bytes, once there is room. */
bool fp_table_takes(const struct fp_table *t, size_t bytes);

/*
 * Keeps the item, which was in no table before, in place of the one with its key. The table takes
 * its own reference. An item of more than a quarter of the table's bytes is not kept.
 */
void fp_table_put(struct fp_table *t, struct fp_item *item);

/* Removes the item if the table still has it. */
void fp_table_drop(struct fp_table *t, struct fp_item *item);

/* The number of items in the table. */
unsigned fp_table_count(const struct fp_table *t);

/* Removes expired items; expired() must not use the table. The mutex is held for a few of them at a time. Only one
 * thread may do this. */
void fp_table_drop_if(struct fp_table *t, bool (*expired)(const struct fp_item *item));

#endif
