/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "fleet/fleet_queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/keyed_table.h"
#include "base/memory.h"

struct item {
    UT_hash_handle hh; /* while it waits */
    TAILQ_ENTRY(item) link;
    size_t key_len;
    char key[]; /* op in one byte, then the path */
};

TAILQ_HEAD(items, item);

struct fp_fleet_queue {
    struct items waiting, sent;
    struct item *by_key; /* those that wait */
    struct item *all;    /* the "everything" that waits; NULL: none */
    size_t n_waiting, n_sent, max;
};

FP_HASH_DIAGNOSTICS_OFF
static bool is_waiting(const struct fp_fleet_queue *q, const struct item *it)
{
    struct item *found;

    HASH_FIND(hh, q->by_key, it->key, it->key_len, found);
    return found != NULL;
}

static bool put(struct fp_fleet_queue *q, struct item *it)
{
    HASH_ADD_KEYPTR(hh, q->by_key, it->key, it->key_len, it);
    if (it->hh.tbl == NULL)
        return false;
    if (it->key[0] == FP_FLEET_ALL)
        q->all = it;
    q->n_waiting++;
    return true;
}

static void take(struct fp_fleet_queue *q, struct item *it)
{
    HASH_DEL(q->by_key, it);
    TAILQ_REMOVE(&q->waiting, it, link);
    if (it == q->all)
        q->all = NULL;
    q->n_waiting--;
}
FP_HASH_DIAGNOSTICS_ON

static void drop_waiting(struct fp_fleet_queue *q)
{
    struct item *it;

    while ((it = TAILQ_FIRST(&q->waiting)) != NULL) {
        take(q, it);
        free(it);
    }
}

struct fp_fleet_queue *fp_fleet_queue_create(size_t max)
{
    struct fp_fleet_queue *q = fp_memory_take_zeroed(1, sizeof(*q));

    if (q == NULL)
        return NULL;
    TAILQ_INIT(&q->waiting);
    TAILQ_INIT(&q->sent);
    q->max = max;
    return q;
}

void fp_fleet_queue_destroy(struct fp_fleet_queue **qp)
{
    struct fp_fleet_queue *q = *qp;

    *qp = NULL;
    if (q == NULL)
        return;
    fp_fleet_queue_resend(q);
    drop_waiting(q);
    free(q);
}

static struct item *create(enum fp_fleet_op op, const char *path, size_t len)
{
    struct item *it = fp_memory_take_zeroed(1, sizeof(*it) + 1 + len);

    if (it == NULL)
        return NULL;
    it->key_len = 1 + len;
    it->key[0] = (char)op;
    if (len > 0)
        memcpy(it->key + 1, path, len);
    return it;
}

void fp_fleet_queue_add(struct fp_fleet_queue *q, enum fp_fleet_op op, const char *path, size_t len)
{
    const bool full = op == FP_FLEET_ALL || q->n_waiting >= q->max;
    struct item *it;

    if (q->all != NULL)
        return;
    it = full ? create(FP_FLEET_ALL, NULL, 0) : create(op, path, len);
    if (it == NULL)
        return;
    if (full)
        drop_waiting(q);
    if (!is_waiting(q, it) && put(q, it))
        TAILQ_INSERT_TAIL(&q->waiting, it, link);
    else
        free(it);
}

bool fp_fleet_queue_send(struct fp_fleet_queue *q, struct fp_fleet_message *m)
{
    struct item *it = TAILQ_FIRST(&q->waiting);

    if (it == NULL)
        return false;
    take(q, it);
    TAILQ_INSERT_TAIL(&q->sent, it, link);
    q->n_sent++;
    memset(m, 0, sizeof(*m));
    m->op = (enum fp_fleet_op)it->key[0];
    if (it->key_len > 1) {
        m->path = it->key + 1;
        m->path_len = it->key_len - 1;
    }
    return true;
}

void fp_fleet_queue_stored(struct fp_fleet_queue *q)
{
    struct item *it = TAILQ_FIRST(&q->sent);

    if (it == NULL)
        return;
    TAILQ_REMOVE(&q->sent, it, link);
    q->n_sent--;
    free(it);
}

void fp_fleet_queue_resend(struct fp_fleet_queue *q)
{
    struct item *it;

    while ((it = TAILQ_LAST(&q->sent, items)) != NULL) {
        TAILQ_REMOVE(&q->sent, it, link);
        q->n_sent--;
        if (q->all == NULL && !is_waiting(q, it) && put(q, it))
            TAILQ_INSERT_HEAD(&q->waiting, it, link);
        else
            free(it);
    }
}

size_t fp_fleet_queue_waiting(const struct fp_fleet_queue *q)
{
    return q->n_waiting;
}

size_t fp_fleet_queue_sent(const struct fp_fleet_queue *q)
{
    return q->n_sent;
}
