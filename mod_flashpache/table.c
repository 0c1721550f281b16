/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "table.h"

#include <pthread.h>
#include <string.h>

#define MOST_SHARDS   16u  /* a power of two, as every number of shards is */
#define SHARD_LEAST   64   /* items; smaller shards would not fill evenly */
#define SWEEP_AT_ONCE 256u /* items checked under one hold of a mutex */

/* The hash's list is the queue: from the oldest item to the newest. */
struct shard {
    pthread_mutex_t mutex;
    struct fp_item *items;
    struct fp_item *hand;  /* where the next eviction begins; NULL: at the oldest */
    struct fp_item *sweep; /* the next item of fp_table_drop_if() */
    unsigned limit;
    atomic_uint *total; /* items in all shards */
};

struct fp_table {
    atomic_flag sweeping;
    unsigned swept; /* the shard that the sweep has reached */
    unsigned n_shards;
    atomic_uint total;
    struct shard *shards;
};

static int sharers = 1; /* threads that share a table */

int fp_table_init(int threads)
{
    sharers = threads;
    return fp_keyed_hash_init();
}

/* ---- items ---- */

apr_size_t fp_item_key(char *key, const void *owner, const char *path, apr_size_t len)
{
    memcpy(key, &owner, sizeof(owner));
    memcpy(key + sizeof(owner), path, len);
    return FP_ITEM_KEY_SIZE(len);
}

void fp_item_init(struct fp_item *item, const void *key, apr_size_t key_len,
                  void (*destroy)(struct fp_item *item))
{
    item->hh.key = key;
    item->hh.keylen = (unsigned)key_len;
    item->hh.hashv = fp_keyed_hash(key, key_len);
    atomic_init(&item->references, 1);
    item->visited = false;
    item->destroy = destroy;
}

void fp_item_retain(struct fp_item *item)
{
    atomic_fetch_add_explicit(&item->references, 1, memory_order_relaxed);
}

void fp_item_release(struct fp_item *item)
{
    /* Orders all use by other threads before the destruction. */
    if (atomic_fetch_sub_explicit(&item->references, 1, memory_order_acq_rel) == 1)
        item->destroy(item);
}

static apr_status_t release(void *item)
{
    fp_item_release(item);
    return APR_SUCCESS;
}

void fp_item_release_with(apr_pool_t *p, struct fp_item *item)
{
    apr_pool_cleanup_register(p, item, release, apr_pool_cleanup_null);
}

/* Runs without a mutex: destroying an item may close a file. */
static void release_all(struct fp_item *dropped)
{
    while (dropped != NULL) {
        struct fp_item *next = dropped->hh.next;

        fp_item_release(dropped);
        dropped = next;
    }
}

/* ---- a shard, under its mutex ---- */

/* Chooses by the upper bits, as the lower ones choose the bucket. */
static struct shard *shard_of(const struct fp_table *t, unsigned hash)
{
    return &t->shards[(uint64_t)hash * t->n_shards >> 32];
}

FP_HASH_DIAGNOSTICS_OFF
static struct fp_item *find(const struct shard *s, const void *key, apr_size_t len, unsigned hash)
{
    struct fp_item *item;

    HASH_FIND_BYHASHVALUE(hh, s->items, key, len, hash, item);
    return item;
}

/* Moves the item, and the shard's reference, to the list of the dropped. */
static void drop(struct shard *s, struct fp_item *item, struct fp_item **dropped)
{
    if (s->hand == item)
        s->hand = item->hh.next;
    if (s->sweep == item)
        s->sweep = item->hh.next;
    HASH_DEL(s->items, item);
    atomic_fetch_sub_explicit(s->total, 1, memory_order_relaxed);
    item->hh.next = *dropped;
    *dropped = item;
}

static void add(struct shard *s, struct fp_item *item)
{
    fp_item_retain(item);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, s->items, item->hh.key, item->hh.keylen, item->hh.hashv, item);
    if (item->hh.tbl != NULL)
        atomic_fetch_add_explicit(s->total, 1, memory_order_relaxed);
    else
        fp_item_release(item); /* out of memory: only the caller's reference remains */
}
FP_HASH_DIAGNOSTICS_ON

static void evict_one(struct shard *s, struct fp_item **dropped)
{
    struct fp_item *item = s->hand != NULL ? s->hand : s->items;

    while (item->visited) {
        item->visited = false;
        item = item->hh.next != NULL ? item->hh.next : s->items;
    }
    s->hand = item;
    drop(s, item, dropped);
}

/* ---- the table ---- */

struct fp_item *fp_table_get(struct fp_table *t, const void *key, apr_size_t key_len)
{
    unsigned hash = fp_keyed_hash(key, key_len);
    struct shard *s = shard_of(t, hash);
    struct fp_item *item;

    pthread_mutex_lock(&s->mutex);
    item = find(s, key, key_len, hash);
    if (item != NULL) {
        item->visited = true;
        fp_item_retain(item);
    }
    pthread_mutex_unlock(&s->mutex);
    return item;
}

void fp_table_put(struct fp_table *t, struct fp_item *item)
{
    struct shard *s = shard_of(t, item->hh.hashv);
    struct fp_item *old, *dropped = NULL;

    pthread_mutex_lock(&s->mutex);
    old = find(s, item->hh.key, item->hh.keylen, item->hh.hashv);
    if (old != NULL)
        drop(s, old, &dropped);
    if (s->items != NULL && HASH_COUNT(s->items) >= s->limit)
        evict_one(s, &dropped);
    if (s->limit > 0)
        add(s, item);
    pthread_mutex_unlock(&s->mutex);
    release_all(dropped);
}

void fp_table_drop(struct fp_table *t, struct fp_item *item)
{
    struct shard *s = shard_of(t, item->hh.hashv);
    struct fp_item *dropped = NULL;

    pthread_mutex_lock(&s->mutex);
    if (find(s, item->hh.key, item->hh.keylen, item->hh.hashv) == item)
        drop(s, item, &dropped);
    pthread_mutex_unlock(&s->mutex);
    release_all(dropped);
}

unsigned fp_table_count(const struct fp_table *t)
{
    return atomic_load_explicit(&t->total, memory_order_relaxed);
}

/* Checks the next few items of a sweep; false: none are left. */
static bool sweep_some(struct shard *s, bool (*expired)(const struct fp_item *item))
{
    struct fp_item *dropped = NULL;
    bool more;

    pthread_mutex_lock(&s->mutex);
    for (unsigned i = 0; s->sweep != NULL && i < SWEEP_AT_ONCE; i++) {
        struct fp_item *item = s->sweep;

        s->sweep = item->hh.next;
        if (expired(item))
            drop(s, item, &dropped);
    }
    more = s->sweep != NULL;
    pthread_mutex_unlock(&s->mutex);
    release_all(dropped);
    return more;
}

void fp_table_drop_if(struct fp_table *t, bool (*expired)(const struct fp_item *item), unsigned most)
{
    unsigned looked = 0, done = 0;

    if (atomic_flag_test_and_set(&t->sweeping))
        return;
    /* Once around, from the middle of one shard back to its middle. */
    for (; looked < most && done <= t->n_shards; looked += SWEEP_AT_ONCE) {
        struct shard *s;

        if (sweep_some(&t->shards[t->swept], expired))
            continue;
        t->swept = (t->swept + 1) % t->n_shards;
        s = &t->shards[t->swept];
        pthread_mutex_lock(&s->mutex);
        s->sweep = s->items;
        pthread_mutex_unlock(&s->mutex);
        done++;
    }
    atomic_flag_clear(&t->sweeping);
}

/* ---- begin and end ---- */

static apr_status_t end(void *data)
{
    struct fp_table *t = data;

    for (struct shard *s = t->shards; s < t->shards + t->n_shards; s++) {
        struct fp_item *dropped = NULL;

        /* prefork ends a child from a signal handler, which may have interrupted the holder of this
         * mutex. Then the end of the process frees the items. */
        if (pthread_mutex_trylock(&s->mutex) != 0)
            continue;
        s->limit = 0;
        while (s->items != NULL)
            drop(s, s->items, &dropped);
        pthread_mutex_unlock(&s->mutex);
        release_all(dropped);
    }
    return APR_SUCCESS;
}

static unsigned shards_for(int limit)
{
    unsigned n = 1;

    while (sharers > 1 && n < MOST_SHARDS && limit / (int)(2 * n) >= SHARD_LEAST)
        n *= 2;
    return n;
}

struct fp_table *fp_table_create(apr_pool_t *p, int limit)
{
    struct fp_table *t = apr_palloc(p, sizeof(*t));
    unsigned most = limit > 0 ? (unsigned)limit : 0;

    atomic_flag_clear(&t->sweeping);
    t->swept = 0;
    atomic_init(&t->total, 0);
    t->n_shards = shards_for(limit);
    t->shards = apr_pcalloc(p, t->n_shards * sizeof(t->shards[0]));
    for (unsigned i = 0; i < t->n_shards; i++) {
        pthread_mutex_init(&t->shards[i].mutex, NULL);
        t->shards[i].total = &t->total;
        /* The shares add up to exactly the limit. */
        t->shards[i].limit = most / t->n_shards + (i < most % t->n_shards);
    }
    apr_pool_cleanup_register(p, t, end, apr_pool_cleanup_null);
    return t;
}
