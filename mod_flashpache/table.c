/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/keyed_hash.h"

#define MOST_SHARDS   16u  /* a power of two, as every number of shards is */
#define SHARD_LEAST   64   /* items; smaller shards would not fill evenly */
#define SWEEP_AT_ONCE 256u /* items checked under one hold of a mutex */
#define LARGEST_SHARE 4    /* an item may take one in so many bytes of the table's */
#define FIRST_SLOTS   32u  /* a power of two, as every number of slots is */

/* A slot of the index. */
struct slot {
    unsigned hash;
    struct fp_item *item; /* NULL: the slot is empty */
};

struct queue {
    struct fp_item *oldest, *youngest;
    struct fp_item *hand; /* where the next eviction begins; NULL: at the oldest */
};

/*
 * The index is one array, probed in sequence from the slot that the hash names; at most half of it is in
 * use. So a look-up touches the array once, and an item only if the hash is its own. In a process
 * among a thousand each touch of memory is a miss in the processor's caches.
 */
struct shard {
    pthread_mutex_t mutex;
    struct slot *slots;
    unsigned n_slots; /* 0: there are none yet */
    unsigned count;   /* items */
    unsigned limit;
    apr_size_t bytes;       /* of its items */
    struct fp_table *table; /* that it is a part of */
    struct queue queues[FP_TABLE_QUEUES];
    struct fp_item *sweep; /* the next item of fp_table_drop_if() */
};

struct fp_table {
    atomic_flag sweeping;
    unsigned swept; /* the shard that the sweep has reached */
    unsigned n_shards;
    atomic_uint total; /* items in all shards */
    apr_size_t bytes_limit;
    atomic_size_t bytes; /* of all items */
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
    item->key = key;
    item->key_len = (unsigned)key_len;
    item->hash = 0;
    atomic_init(&item->references, 1);
    item->visited = false;
    item->bytes = 0;
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
        struct fp_item *next = dropped->younger[FP_TABLE_ALL];

        fp_item_release(dropped);
        dropped = next;
    }
}

/* ---- a shard, under its mutex ---- */

/* Chooses by the upper bits, as the lower ones choose the slot. */
static struct shard *shard_of(const struct fp_table *t, unsigned hash)
{
    return &t->shards[(uint64_t)hash * t->n_shards >> 32];
}

static struct slot *next_of(const struct shard *s, struct slot *slot)
{
    return slot + 1 < s->slots + s->n_slots ? slot + 1 : s->slots;
}

static struct slot *first_of(const struct shard *s, unsigned hash)
{
    return &s->slots[hash & (s->n_slots - 1)];
}

/* The slot of that key, or the empty one where it would be. There are slots. */
static struct slot *slot_of(const struct shard *s, const void *key, apr_size_t len, unsigned hash)
{
    struct slot *slot = first_of(s, hash);

    while (slot->item != NULL
           && (slot->hash != hash || slot->item->key_len != len || memcmp(slot->item->key, key, len) != 0))
        slot = next_of(s, slot);
    return slot;
}

static struct fp_item *find(const struct shard *s, const void *key, apr_size_t len, unsigned hash)
{
    return s->n_slots > 0 ? slot_of(s, key, len, hash)->item : NULL;
}

/* The shard has no other item of its key. */
static void set_slot(struct shard *s, struct slot added)
{
    struct slot *slot = first_of(s, added.hash);

    while (slot->item != NULL)
        slot = next_of(s, slot);
    *slot = added;
}

/* Empties the slot. Those behind it move up where a probe would not get past the gap to them. */
static void clear_slot(struct shard *s, struct slot *slot)
{
    const unsigned mask = s->n_slots - 1;
    unsigned gap = (unsigned)(slot - s->slots);

    for (unsigned i = (gap + 1) & mask; s->slots[i].item != NULL; i = (i + 1) & mask) {
        if (((i - s->slots[i].hash) & mask) < ((i - gap) & mask))
            continue;
        s->slots[gap] = s->slots[i];
        gap = i;
    }
    s->slots[gap].item = NULL;
}

/* Makes room for one more item; false: memory is out. */
static bool make_room(struct shard *s)
{
    const unsigned n_old = s->n_slots, n = n_old > 0 ? 2 * n_old : FIRST_SLOTS;
    struct slot *old = s->slots, *made;

    if (s->count < n_old / 2)
        return true;
    made = calloc(n, sizeof(*made));
    if (made == NULL)
        return false;
    s->slots = made;
    s->n_slots = n;
    for (unsigned i = 0; i < n_old; i++) {
        if (old[i].item != NULL)
            set_slot(s, old[i]);
    }
    free(old);
    return true;
}

static unsigned queues_of(const struct fp_item *item)
{
    return item->bytes > 0 ? FP_TABLE_SIZED + 1 : FP_TABLE_ALL + 1;
}

static void append(struct shard *s, struct fp_item *item)
{
    for (unsigned i = 0; i < queues_of(item); i++) {
        struct queue *q = &s->queues[i];

        item->older[i] = q->youngest;
        item->younger[i] = NULL;
        *(q->youngest != NULL ? &q->youngest->younger[i] : &q->oldest) = item;
        q->youngest = item;
    }
}

static void take_out(struct shard *s, struct fp_item *item)
{
    for (unsigned i = 0; i < queues_of(item); i++) {
        struct queue *q = &s->queues[i];

        if (q->hand == item)
            q->hand = item->younger[i];
        *(item->older[i] != NULL ? &item->older[i]->younger[i] : &q->oldest) = item->younger[i];
        *(item->younger[i] != NULL ? &item->younger[i]->older[i] : &q->youngest) = item->older[i];
    }
}

/* Moves the item, and the shard's reference, to the list of the dropped. */
static void drop(struct shard *s, struct fp_item *item, struct fp_item **dropped)
{
    if (s->sweep == item)
        s->sweep = item->younger[FP_TABLE_ALL];
    take_out(s, item);
    clear_slot(s, slot_of(s, item->key, item->key_len, item->hash));
    s->count--;
    s->bytes -= item->bytes;
    atomic_fetch_sub_explicit(&s->table->total, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&s->table->bytes, item->bytes, memory_order_relaxed);
    item->younger[FP_TABLE_ALL] = *dropped;
    *dropped = item;
}

/* Out of memory: only the caller's reference remains. */
static void add(struct shard *s, struct fp_item *item)
{
    if (!make_room(s))
        return;
    fp_item_retain(item);
    set_slot(s, (struct slot){ item->hash, item });
    append(s, item);
    s->count++;
    s->bytes += item->bytes;
    atomic_fetch_add_explicit(&s->table->total, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->table->bytes, item->bytes, memory_order_relaxed);
}

/* The queue has an item. */
static void evict_one(struct shard *s, enum fp_table_queue which, struct fp_item **dropped)
{
    struct queue *q = &s->queues[which];
    struct fp_item *item = q->hand != NULL ? q->hand : q->oldest;

    while (item->visited) {
        item->visited = false;
        item = item->younger[which] != NULL ? item->younger[which] : q->oldest;
    }
    q->hand = item;
    drop(s, item, dropped);
}

/* The bytes that the table may take more. Shards that add items at once may exceed its limit by those. */
static apr_size_t free_bytes(const struct fp_table *t)
{
    const apr_size_t bytes = atomic_load_explicit(&t->bytes, memory_order_relaxed);

    return bytes < t->bytes_limit ? t->bytes_limit - bytes : 0;
}

bool fp_table_takes(const struct fp_table *t, apr_size_t bytes)
{
    return bytes <= t->bytes_limit / LARGEST_SHARE;
}

/* False: the item is too large, or would have no room even without all of the shard's items. */
static bool evict_for(struct shard *s, const struct fp_item *item, struct fp_item **dropped)
{
    if (s->limit == 0 || !fp_table_takes(s->table, item->bytes)
        || (item->bytes > s->bytes && item->bytes - s->bytes > free_bytes(s->table)))
        return false;
    while (s->bytes > 0 && item->bytes > free_bytes(s->table))
        evict_one(s, FP_TABLE_SIZED, dropped);
    if (s->count > 0 && s->count >= s->limit)
        evict_one(s, FP_TABLE_ALL, dropped);
    return true;
}

/* ---- the table ---- */

struct fp_item *fp_table_get(struct fp_table *t, const void *key, apr_size_t key_len)
{
    struct fp_item *item;
    struct shard *s;
    unsigned hash;

    if (fp_table_count(t) == 0)
        return NULL;
    hash = fp_keyed_hash(key, key_len);
    s = shard_of(t, hash);
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
    struct fp_item *old, *dropped = NULL;
    struct shard *s;

    item->hash = fp_keyed_hash(item->key, item->key_len);
    s = shard_of(t, item->hash);
    pthread_mutex_lock(&s->mutex);
    old = find(s, item->key, item->key_len, item->hash);
    if (old != NULL)
        drop(s, old, &dropped);
    if (evict_for(s, item, &dropped))
        add(s, item);
    pthread_mutex_unlock(&s->mutex);
    release_all(dropped);
}

void fp_table_drop(struct fp_table *t, struct fp_item *item)
{
    struct shard *s = shard_of(t, item->hash);
    struct fp_item *dropped = NULL;

    pthread_mutex_lock(&s->mutex);
    if (find(s, item->key, item->key_len, item->hash) == item)
        drop(s, item, &dropped);
    pthread_mutex_unlock(&s->mutex);
    release_all(dropped);
}

unsigned fp_table_count(const struct fp_table *t)
{
    return atomic_load_explicit(&t->total, memory_order_relaxed);
}

/* Checks the next items of a sweep, n at most. Returns how many; 0: none are left. */
static unsigned sweep_some(struct shard *s, unsigned n, bool (*expired)(const struct fp_item *item))
{
    struct fp_item *dropped = NULL;
    unsigned looked = 0;

    pthread_mutex_lock(&s->mutex);
    for (; s->sweep != NULL && looked < n; looked++) {
        struct fp_item *item = s->sweep;

        s->sweep = item->younger[FP_TABLE_ALL];
        if (expired(item))
            drop(s, item, &dropped);
    }
    pthread_mutex_unlock(&s->mutex);
    release_all(dropped);
    return looked;
}

void fp_table_drop_if(struct fp_table *t, bool (*expired)(const struct fp_item *item), unsigned most)
{
    unsigned looked = 0, done = 0;

    if (fp_table_count(t) == 0 || atomic_flag_test_and_set(&t->sweeping))
        return;
    /* Once around, from the middle of one shard back to its middle. */
    while (looked < most && done <= t->n_shards) {
        const unsigned left = most - looked, n_most = left < SWEEP_AT_ONCE ? left : SWEEP_AT_ONCE;
        const unsigned n = sweep_some(&t->shards[t->swept], n_most, expired);
        struct shard *s;

        looked += n;
        if (n > 0)
            continue;
        t->swept = (t->swept + 1) % t->n_shards;
        s = &t->shards[t->swept];
        pthread_mutex_lock(&s->mutex);
        s->sweep = s->queues[FP_TABLE_ALL].oldest;
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
        while (s->queues[FP_TABLE_ALL].oldest != NULL)
            drop(s, s->queues[FP_TABLE_ALL].oldest, &dropped);
        free(s->slots);
        s->slots = NULL;
        s->n_slots = 0;
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

struct fp_table *fp_table_create(apr_pool_t *p, int limit, apr_size_t bytes)
{
    struct fp_table *t = apr_palloc(p, sizeof(*t));
    unsigned most = limit > 0 ? (unsigned)limit : 0;

    atomic_flag_clear(&t->sweeping);
    t->swept = 0;
    atomic_init(&t->total, 0);
    atomic_init(&t->bytes, 0);
    t->bytes_limit = bytes;
    t->n_shards = shards_for(limit);
    t->shards = apr_pcalloc(p, t->n_shards * sizeof(t->shards[0]));
    for (unsigned i = 0; i < t->n_shards; i++) {
        pthread_mutex_init(&t->shards[i].mutex, NULL);
        t->shards[i].table = t;
        /* The shares add up to exactly the limit. */
        t->shards[i].limit = most / t->n_shards + (i < most % t->n_shards);
    }
    apr_pool_cleanup_register(p, t, end, apr_pool_cleanup_null);
    return t;
}
