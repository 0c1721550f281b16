/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/keyed_hash.h"

#define SWEEP_AT_ONCE 256u /* items checked under one hold of the mutex */
#define LARGEST_SHARE 4    /* an item may take one in so many bytes of the table's */
#define FIRST_SLOTS   32u  /* a power of two, as every number of slots is */

/* A slot of the index. */
struct slot {
    unsigned hash;
    struct fp_item *item; /* NULL: the slot is empty */
};

/*
 * The index is one array, probed in sequence from the slot that the hash names; at most half of it is in
 * use. So a look-up touches the array once, and an item only if the hash is its own. In a process
 * among a thousand each touch of memory is a miss in the processor's caches.
 */
struct fp_table {
    pthread_mutex_t mutex;
    struct slot *slots;
    unsigned n_slots; /* 0: there are none yet */
    atomic_uint count; /* items; changed under the mutex */
    unsigned limit;
    size_t bytes, bytes_limit; /* of its items */
    struct fp_item *oldest, *youngest;
    struct fp_item *hand;  /* where the next eviction begins; NULL: at the oldest */
    struct fp_item *sweep; /* the next item of fp_table_drop_if() */
};

int fp_table_init(void)
{
    return fp_keyed_hash_init();
}

struct fp_table *fp_table_create(unsigned limit, size_t bytes)
{
    struct fp_table *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return NULL;
    pthread_mutex_init(&t->mutex, NULL);
    t->limit = limit;
    t->bytes_limit = bytes;
    return t;
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
    *item = (struct fp_item){ .key = key, .key_len = (unsigned)key_len, .destroy = destroy };
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
        struct fp_item *next = dropped->younger;

        fp_item_release(dropped);
        dropped = next;
    }
}

/* ---- under the mutex ---- */

static struct slot *next_of(const struct fp_table *t, struct slot *slot)
{
    return slot + 1 < t->slots + t->n_slots ? slot + 1 : t->slots;
}

static struct slot *first_of(const struct fp_table *t, unsigned hash)
{
    return &t->slots[hash & (t->n_slots - 1)];
}

/* The slot of that key, or the empty one where it would be. There are slots. */
static struct slot *slot_of(const struct fp_table *t, const void *key, size_t len, unsigned hash)
{
    struct slot *slot = first_of(t, hash);

    while (slot->item != NULL
           && (slot->hash != hash || slot->item->key_len != len || memcmp(slot->item->key, key, len) != 0))
        slot = next_of(t, slot);
    return slot;
}

static struct fp_item *find(const struct fp_table *t, const void *key, size_t len, unsigned hash)
{
    return t->n_slots > 0 ? slot_of(t, key, len, hash)->item : NULL;
}

/* The table has no other item of its key. */
static void set_slot(struct fp_table *t, struct slot added)
{
    struct slot *slot = first_of(t, added.hash);

    while (slot->item != NULL)
        slot = next_of(t, slot);
    *slot = added;
}

/* Empties the slot. Those behind it move up where a probe would not get past the gap to them. */
static void clear_slot(struct fp_table *t, struct slot *slot)
{
    const unsigned mask = t->n_slots - 1;
    unsigned gap = (unsigned)(slot - t->slots);

    for (unsigned i = (gap + 1) & mask; t->slots[i].item != NULL; i = (i + 1) & mask) {
        if (((i - t->slots[i].hash) & mask) < ((i - gap) & mask))
            continue;
        t->slots[gap] = t->slots[i];
        gap = i;
    }
    t->slots[gap].item = NULL;
}

/* Makes room for one more item; false: memory is out. */
static bool make_room(struct fp_table *t)
{
    const unsigned n_old = t->n_slots, n = n_old > 0 ? 2 * n_old : FIRST_SLOTS;
    struct slot *old = t->slots, *made;

    if (fp_table_count(t) < n_old / 2)
        return true;
    made = calloc(n, sizeof(*made));
    if (made == NULL)
        return false;
    t->slots = made;
    t->n_slots = n;
    for (unsigned i = 0; i < n_old; i++) {
        if (old[i].item != NULL)
            set_slot(t, old[i]);
    }
    free(old);
    return true;
}

/* Moves the item, and the table's reference, to the list of the dropped. */
static void drop(struct fp_table *t, struct fp_item *item, struct fp_item **dropped)
{
    if (t->sweep == item)
        t->sweep = item->younger;
    if (t->hand == item)
        t->hand = item->younger;
    *(item->older != NULL ? &item->older->younger : &t->oldest) = item->younger;
    *(item->younger != NULL ? &item->younger->older : &t->youngest) = item->older;
    clear_slot(t, slot_of(t, item->key, item->key_len, item->hash));
    atomic_fetch_sub_explicit(&t->count, 1, memory_order_relaxed);
    t->bytes -= item->bytes;
    item->younger = *dropped;
    *dropped = item;
}

/* Out of memory: only the caller's reference remains. */
static void add(struct fp_table *t, struct fp_item *item)
{
    if (!make_room(t))
        return;
    retain(item);
    set_slot(t, (struct slot){ item->hash, item });
    item->older = t->youngest;
    item->younger = NULL;
    *(t->youngest != NULL ? &t->youngest->younger : &t->oldest) = item;
    t->youngest = item;
    atomic_fetch_add_explicit(&t->count, 1, memory_order_relaxed);
    t->bytes += item->bytes;
}

/* The table has an item. */
static void evict_one(struct fp_table *t, struct fp_item **dropped)
{
    struct fp_item *item = t->hand != NULL ? t->hand : t->oldest;

    while (item->visited) {
        item->visited = false;
        item = item->younger != NULL ? item->younger : t->oldest;
    }
    t->hand = item;
    drop(t, item, dropped);
}

static bool has_room(const struct fp_table *t, size_t bytes)
{
    return fp_table_count(t) < t->limit && bytes <= t->bytes_limit - t->bytes;
}

/* ---- the table ---- */

bool fp_table_takes(const struct fp_table *t, size_t bytes)
{
    return t != NULL && t->limit > 0 && bytes <= t->bytes_limit / LARGEST_SHARE;
}

struct fp_item *fp_table_get(struct fp_table *t, const void *key, size_t key_len)
{
    struct fp_item *item;
    unsigned hash;

    if (fp_table_count(t) == 0)
        return NULL;
    hash = fp_keyed_hash(key, key_len);
    pthread_mutex_lock(&t->mutex);
    item = find(t, key, key_len, hash);
    if (item != NULL) {
        item->visited = true;
        retain(item);
    }
    pthread_mutex_unlock(&t->mutex);
    return item;
}

void fp_table_put(struct fp_table *t, struct fp_item *item)
{
    struct fp_item *old, *dropped = NULL;

    if (t == NULL)
        return;
    item->hash = fp_keyed_hash(item->key, item->key_len);
    pthread_mutex_lock(&t->mutex);
    old = find(t, item->key, item->key_len, item->hash);
    if (old != NULL)
        drop(t, old, &dropped);
    if (fp_table_takes(t, item->bytes)) {
        while (!has_room(t, item->bytes))
            evict_one(t, &dropped);
        add(t, item);
    }
    pthread_mutex_unlock(&t->mutex);
    release_all(dropped);
}

void fp_table_drop(struct fp_table *t, struct fp_item *item)
{
    struct fp_item *dropped = NULL;

    pthread_mutex_lock(&t->mutex);
    if (find(t, item->key, item->key_len, item->hash) == item)
        drop(t, item, &dropped);
    pthread_mutex_unlock(&t->mutex);
    release_all(dropped);
}

unsigned fp_table_count(const struct fp_table *t)
{
    return t != NULL ? atomic_load_explicit(&t->count, memory_order_relaxed) : 0;
}

void fp_table_drop_if(struct fp_table *t, bool (*expired)(const struct fp_item *item))
{
    struct fp_item *dropped = NULL;
    bool more = fp_table_count(t) > 0;

    for (bool first = true; more; first = false) {
        pthread_mutex_lock(&t->mutex);
        if (first)
            t->sweep = t->oldest;
        for (unsigned n = 0; t->sweep != NULL && n < SWEEP_AT_ONCE; n++) {
            struct fp_item *item = t->sweep;

            t->sweep = item->younger;
            if (expired(item))
                drop(t, item, &dropped);
        }
        more = t->sweep != NULL;
        pthread_mutex_unlock(&t->mutex);
        release_all(dropped);
        dropped = NULL;
    }
}
