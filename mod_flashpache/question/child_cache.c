/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/child_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/keyed_hash.h"

#define SWEEP_AT_ONCE 256u /* items checked under one hold of the mutex */
#define LARGEST_SHARE 4    /* an item may take one in so many bytes of the cache's */
#define FIRST_CELLS   32u  /* a power of two, as every number of cells is */

/* A cell of the index. */
struct cell {
    unsigned hash;
    struct fp_item *item; /* NULL: the cell is empty */
};

/*
 * The index is one array, probed in sequence from the cell that the hash names; at most half of it is in
 * use. So a look-up touches the array once, and an item only if the hash is its own. In a process
 * among a thousand each touch of memory is a miss in the processor's caches.
 */
struct fp_child_cache {
    pthread_mutex_t mutex;
    struct cell *cells;
    unsigned n_cells; /* 0: there are none yet */
    atomic_uint count; /* items; changed under the mutex */
    unsigned limit;
    size_t bytes, bytes_limit; /* of its items */
    struct fp_item *oldest, *youngest;
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

static struct cell *next_of(const struct fp_child_cache *c, struct cell *cell)
{
    return cell + 1 < c->cells + c->n_cells ? cell + 1 : c->cells;
}

static struct cell *first_of(const struct fp_child_cache *c, unsigned hash)
{
    return &c->cells[hash & (c->n_cells - 1)];
}

/* The cell of that key, or the empty one where it would be. There are cells. */
static struct cell *cell_of(const struct fp_child_cache *c, const void *key, size_t len, unsigned hash)
{
    struct cell *cell = first_of(c, hash);

    while (cell->item != NULL
           && (cell->hash != hash || cell->item->key_len != len || memcmp(cell->item->key, key, len) != 0))
        cell = next_of(c, cell);
    return cell;
}

static struct fp_item *find(const struct fp_child_cache *c, const void *key, size_t len, unsigned hash)
{
    return c->n_cells > 0 ? cell_of(c, key, len, hash)->item : NULL;
}

/* The cache has no other item of its key. */
static void set_cell(struct fp_child_cache *c, struct cell added)
{
    struct cell *cell = first_of(c, added.hash);

    while (cell->item != NULL)
        cell = next_of(c, cell);
    *cell = added;
}

/* Empties the cell. Those behind it move up where a probe would not get past the gap to them. */
static void clear_cell(struct fp_child_cache *c, struct cell *cell)
{
    const unsigned mask = c->n_cells - 1;
    unsigned gap = (unsigned)(cell - c->cells);

    for (unsigned i = (gap + 1) & mask; c->cells[i].item != NULL; i = (i + 1) & mask) {
        if (((i - c->cells[i].hash) & mask) < ((i - gap) & mask))
            continue;
        c->cells[gap] = c->cells[i];
        gap = i;
    }
    c->cells[gap].item = NULL;
}

/* Makes room for one more item; false: memory is out. */
static bool make_room(struct fp_child_cache *c)
{
    const unsigned n_old = c->n_cells, n = n_old > 0 ? 2 * n_old : FIRST_CELLS;
    struct cell *old = c->cells, *made;

    if (fp_child_cache_count(c) < n_old / 2)
        return true;
    made = calloc(n, sizeof(*made));
    if (made == NULL)
        return false;
    c->cells = made;
    c->n_cells = n;
    for (unsigned i = 0; i < n_old; i++) {
        if (old[i].item != NULL)
            set_cell(c, old[i]);
    }
    free(old);
    return true;
}

/* Moves the item, and the cache's reference, to the list of the dropped. */
static void drop(struct fp_child_cache *c, struct fp_item *item, struct fp_item **dropped)
{
    if (c->sweep == item)
        c->sweep = item->younger;
    if (c->hand == item)
        c->hand = item->younger;
    *(item->older != NULL ? &item->older->younger : &c->oldest) = item->younger;
    *(item->younger != NULL ? &item->younger->older : &c->youngest) = item->older;
    clear_cell(c, cell_of(c, item->key, item->key_len, item->hash));
    atomic_fetch_sub_explicit(&c->count, 1, memory_order_relaxed);
    c->bytes -= item->bytes;
    item->younger = *dropped;
    *dropped = item;
}

/* Out of memory: only the caller's reference remains. */
static void add(struct fp_child_cache *c, struct fp_item *item)
{
    if (!make_room(c))
        return;
    retain(item);
    set_cell(c, (struct cell){ item->hash, item });
    item->older = c->youngest;
    item->younger = NULL;
    *(c->youngest != NULL ? &c->youngest->younger : &c->oldest) = item;
    c->youngest = item;
    atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed);
    c->bytes += item->bytes;
}

/* The cache has an item. */
static void evict_one(struct fp_child_cache *c, struct fp_item **dropped)
{
    struct fp_item *item = c->hand != NULL ? c->hand : c->oldest;

    while (item->visited) {
        item->visited = false;
        item = item->younger != NULL ? item->younger : c->oldest;
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
    item->hash = fp_keyed_hash(item->key, item->key_len);
    pthread_mutex_lock(&c->mutex);
    old = find(c, item->key, item->key_len, item->hash);
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
    if (find(c, item->key, item->key_len, item->hash) == item)
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
            c->sweep = c->oldest;
        for (unsigned n = 0; c->sweep != NULL && n < SWEEP_AT_ONCE; n++) {
            struct fp_item *item = c->sweep;

            c->sweep = item->younger;
            if (expired(item))
                drop(c, item, &dropped);
        }
        more = c->sweep != NULL;
        pthread_mutex_unlock(&c->mutex);
        release_all(dropped);
        dropped = NULL;
    }
}
