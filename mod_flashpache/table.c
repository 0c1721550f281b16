/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "table.h"

#include <apr_hash.h>
#include <pthread.h>

struct fp_table {
    pthread_mutex_t mutex;
    apr_hash_t *hash;
    TAILQ_HEAD(queue, fp_item) queue;
    struct fp_item *hand;
    int count, limit;
};

void fp_item_init(struct fp_item *item, const void *key, apr_size_t key_len,
                  void (*destroy)(struct fp_item *item))
{
    atomic_init(&item->references, 1);
    item->visited = false;
    item->key = key;
    item->key_len = key_len;
    item->destroy = destroy;
}

void fp_item_release(struct fp_item *item)
{
    /* All use by other threads is over before the last one destroys. */
    if (atomic_fetch_sub_explicit(&item->references, 1, memory_order_acq_rel) == 1)
        item->destroy(item);
}

/* ---- under the mutex ---- */

static struct fp_item *find(const struct fp_table *t, const void *key, apr_size_t len)
{
    return apr_hash_get(t->hash, key, (apr_ssize_t)len);
}

static void drop(struct fp_table *t, struct fp_item *item)
{
    if (t->hand == item)
        t->hand = TAILQ_PREV(item, queue, link);
    TAILQ_REMOVE(&t->queue, item, link);
    apr_hash_set(t->hash, item->key, (apr_ssize_t)item->key_len, NULL);
    t->count--;
    fp_item_release(item);
}

static void drop_one(struct fp_table *t)
{
    struct fp_item *item = t->hand != NULL ? t->hand : TAILQ_LAST(&t->queue, queue);

    while (item != NULL && item->visited) {
        item->visited = false;
        item = TAILQ_PREV(item, queue, link);
        if (item == NULL)
            item = TAILQ_LAST(&t->queue, queue);
    }
    t->hand = item;
    if (item != NULL)
        drop(t, item);
}

/* ---- for everybody ---- */

struct fp_item *fp_table_get(struct fp_table *t, const void *key, apr_size_t key_len)
{
    struct fp_item *item;

    pthread_mutex_lock(&t->mutex);
    item = find(t, key, key_len);
    if (item != NULL) {
        item->visited = true;
        atomic_fetch_add_explicit(&item->references, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&t->mutex);
    return item;
}

void fp_table_put(struct fp_table *t, struct fp_item *item)
{
    struct fp_item *old;

    pthread_mutex_lock(&t->mutex);
    old = find(t, item->key, item->key_len);
    if (old != NULL)
        drop(t, old);
    while (t->count > 0 && t->count >= t->limit)
        drop_one(t);
    if (t->limit > 0) {
        atomic_fetch_add_explicit(&item->references, 1, memory_order_relaxed);
        apr_hash_set(t->hash, item->key, (apr_ssize_t)item->key_len, item);
        TAILQ_INSERT_HEAD(&t->queue, item, link);
        t->count++;
    }
    pthread_mutex_unlock(&t->mutex);
}

void fp_table_drop(struct fp_table *t, struct fp_item *item)
{
    pthread_mutex_lock(&t->mutex);
    if (find(t, item->key, item->key_len) == item)
        drop(t, item);
    pthread_mutex_unlock(&t->mutex);
}

void fp_table_drop_if(struct fp_table *t, bool (*over)(const struct fp_item *item))
{
    struct fp_item *item, *next;

    pthread_mutex_lock(&t->mutex);
    for (item = TAILQ_FIRST(&t->queue); item != NULL; item = next) {
        next = TAILQ_NEXT(item, link);
        if (over(item))
            drop(t, item);
    }
    pthread_mutex_unlock(&t->mutex);
}

static apr_status_t end(void *data)
{
    struct fp_table *t = data;

    pthread_mutex_lock(&t->mutex);
    t->limit = 0;
    while (!TAILQ_EMPTY(&t->queue))
        drop(t, TAILQ_FIRST(&t->queue));
    pthread_mutex_unlock(&t->mutex);
    return APR_SUCCESS;
}

struct fp_table *fp_table_create(apr_pool_t *p, int limit)
{
    struct fp_table *t = apr_pcalloc(p, sizeof(*t));

    pthread_mutex_init(&t->mutex, NULL);
    TAILQ_INIT(&t->queue);
    t->hash = apr_hash_make(p);
    t->limit = limit;
    apr_pool_cleanup_register(p, t, end, apr_pool_cleanup_null);
    return t;
}
