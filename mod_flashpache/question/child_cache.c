/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/child_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_AT_ONCE 256u /* items checked under one hold of the mutex */
#define LARGEST_SHARE 4    /* an item may take one in so many bytes of the cache's */

struct fp_child_cache {
    pthread_mutex_t mutex;
    struct fp_item *items; /* the oldest, and the index of all; their links are in the order of their age */
    atomic_uint count;     /* items; changed under the mutex */
    unsigned limit;
    size_t bytes, bytes_limit; /* of its items */
    struct fp_item *hand;  /* where the next eviction begins; NULL: at the oldest */
    struct fp_item *sweep; /* the next item of fp_child_cache_drop_if() */
};

int fp_child_cache_init(void)
{
    return fp_keyed_hash_init();
}

struct fp_child_cache *fp_child_cache_create(unsigned limit, size_t bytes)
{
    struct fp_child_cache *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return NULL;
    pthread_mutex_init(&c->mutex, NULL);
    c->limit = limit;
    c->bytes_limit = bytes;
    return c;
}

/* ---- items ---- */

size_t fp_item_key(char *key, const void *owner, const char *path, size_t len)
{
    memcpy(key, &owner, sizeof(owner));
    memcpy(key + sizeof(owner), path, len);
    return FP_ITEM_KEY_SIZE(len);
}

void fp_item_init(struct fp_item *item, const void *key, size_t key_len, void (*destroy)(struct fp_item *item))
{
    *item = (struct fp_item){ .hh = { .key = key, .keylen = (unsigned)key_len }, .destroy = destroy };
    atomic_init(&item->references, 1);
}

static void retain(struct fp_item *item)
{
    atomic_fetch_add_explicit(&item->references, 1, memory_order_relaxed);
}

void fp_item_release(struct fp_item *item)
{
    /* Orders all use by other threads before the destruction. */
    if (atomic_fetch_sub_explicit(&item->references, 1, memory_order_acq_rel) == 1)
        item->destroy(item);
}

/* Runs without the mutex: destroying an item may close a file. */
static void release_all(struct fp_item *dropped)
{
    while (dropped != NULL) {
        struct fp_item *next = dropped->hh.next;

        fp_item_release(dropped);
        dropped = next;
    }
}

/* ---- under the mutex ---- */

FP_HASH_DIAGNOSTICS_OFF
static struct fp_item *find(const struct fp_child_cache *c, const void *key, size_t len, unsigned hash)
{
    struct fp_item *item;

    HASH_FIND_BYHASHVALUE(hh, c->items, key, len, hash, item);
    return item;
}

/* Moves the item, and the cache's reference, to the list of the dropped. */
static void drop(struct fp_child_cache *c, struct fp_item *item, struct fp_item **dropped)
{
    if (c->sweep == item)
        c->sweep = item->hh.next;
    if (c->hand == item)
        c->hand = item->hh.next;
    HASH_DELETE(hh, c->items, item);
    atomic_fetch_sub_explicit(&c->count, 1, memory_order_relaxed);
    c->bytes -= item->bytes;
    item->hh.next = *dropped;
    *dropped = item;
}

/* Out of memory: only the caller's reference remains. */
static void add(struct fp_child_cache *c, struct fp_item *item)
{
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, c->items, item->hh.key, item->hh.keylen, item->hh.hashv, item);
    if (item->hh.tbl == NULL)
        return;
    retain(item);
    atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed);
    c->bytes += item->bytes;
}
FP_HASH_DIAGNOSTICS_ON

/* The cache has an item. */
static void evict_one(struct fp_child_cache *c, struct fp_item **dropped)
{
    struct fp_item *item = c->hand != NULL ? c->hand : c->items;

    while (item->visited) {
        item->visited = false;
        item = item->hh.next != NULL ? item->hh.next : c->items;
    }
    c->hand = item;
    drop(c, item, dropped);
}

static bool has_room(const struct fp_child_cache *c, size_t bytes)
{
    return fp_child_cache_count(c) < c->limit && bytes <= c->bytes_limit - c->bytes;
}

/* ---- the cache ---- */

bool fp_child_cache_takes(const struct fp_child_cache *c, size_t bytes)
{
    return c != NULL && c->limit > 0 && bytes <= c->bytes_limit / LARGEST_SHARE;
}

struct fp_item *fp_child_cache_get(struct fp_child_cache *c, const void *key, size_t key_len)
{
    struct fp_item *item;
    unsigned hash;

    if (fp_child_cache_count(c) == 0)
        return NULL;
    hash = fp_keyed_hash(key, key_len);
    pthread_mutex_lock(&c->mutex);
    item = find(c, key, key_len, hash);
    if (item != NULL) {
        item->visited = true;
        retain(item);
    }
    pthread_mutex_unlock(&c->mutex);
    return item;
}

void fp_child_cache_put(struct fp_child_cache *c, struct fp_item *item)
{
    struct fp_item *old, *dropped = NULL;

    if (c == NULL)
        return;
    item->hh.hashv = fp_keyed_hash(item->hh.key, item->hh.keylen);
    pthread_mutex_lock(&c->mutex);
    old = find(c, item->hh.key, item->hh.keylen, item->hh.hashv);
    if (old != NULL)
        drop(c, old, &dropped);
    if (fp_child_cache_takes(c, item->bytes)) {
        while (!has_room(c, item->bytes))
            evict_one(c, &dropped);
        add(c, item);
    }
    pthread_mutex_unlock(&c->mutex);
    release_all(dropped);
}

void fp_child_cache_drop(struct fp_child_cache *c, struct fp_item *item)
{
    struct fp_item *dropped = NULL;

    pthread_mutex_lock(&c->mutex);
    if (find(c, item->hh.key, item->hh.keylen, item->hh.hashv) == item)
        drop(c, item, &dropped);
    pthread_mutex_unlock(&c->mutex);
    release_all(dropped);
}

unsigned fp_child_cache_count(const struct fp_child_cache *c)
{
    return c != NULL ? atomic_load_explicit(&c->count, memory_order_relaxed) : 0;
}

void fp_child_cache_drop_if(struct fp_child_cache *c, bool (*expired)(const struct fp_item *item))
{
    struct fp_item *dropped = NULL;
    bool more = fp_child_cache_count(c) > 0;

    for (bool first = true; more; first = false) {
        pthread_mutex_lock(&c->mutex);
        if (first)
            c->sweep = c->items;
        for (unsigned n = 0; c->sweep != NULL && n < SWEEP_AT_ONCE; n++) {
            struct fp_item *item = c->sweep;

            c->sweep = item->hh.next;
            if (expired(item))
                drop(c, item, &dropped);
        }
        more = c->sweep != NULL;
        pthread_mutex_unlock(&c->mutex);
        release_all(dropped);
        dropped = NULL;
    }
}
