/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/mount_queues.h"

#include <stdlib.h>

#include "base/keyed_table.h"

struct fp_mount_queue {
    TAILQ_ENTRY(fp_mount_queue) link;
    UT_hash_handle hh;
    TAILQ_HEAD(, fp_waiting) waiting;
    uint32_t mount;
    bool local;
    size_t n_waiting;
    unsigned working, dying; /* workers */
};

void fp_mount_queues_init(struct fp_mount_queues *q, const struct fp_mount_limits *limits)
{
    *q = (struct fp_mount_queues){ .limits = *limits };
    TAILQ_INIT(&q->all);
}

FP_HASH_DIAGNOSTICS_OFF
static struct fp_mount_queue *find(const struct fp_mount_queues *q, uint32_t mount)
{
    struct fp_mount_queue *queue;

    HASH_FIND(hh, q->by_mount, &mount, sizeof(mount), queue);
    return queue;
}

static struct fp_mount_queue *find_or_make(struct fp_mount_queues *q, uint32_t mount)
{
    struct fp_mount_queue *queue = find(q, mount);

    if (queue != NULL)
        return queue;
    queue = fp_memory_take_zeroed(1, sizeof(*queue));
    if (queue == NULL)
        return NULL;
    queue->mount = mount;
    HASH_ADD(hh, q->by_mount, mount, sizeof(mount), queue);
    if (queue->hh.tbl == NULL) {
        free(queue);
        return NULL;
    }
    queue->local = q->limits.is_local == NULL || q->limits.is_local(q->limits.ctx, mount);
    TAILQ_INIT(&queue->waiting);
    TAILQ_INSERT_TAIL(&q->all, queue, link);
    return queue;
}

static void drop_if_empty(struct fp_mount_queues *q, struct fp_mount_queue *queue)
{
    if (queue->n_waiting > 0 || queue->working > 0 || queue->dying > 0)
        return;
    HASH_DEL(q->by_mount, queue);
    TAILQ_REMOVE(&q->all, queue, link);
    free(queue);
}
FP_HASH_DIAGNOSTICS_ON

/* So many workers are at the mount from now on. */
static void set_working(struct fp_mount_queues *q, struct fp_mount_queue *queue, unsigned working)
{
    q->shared -= queue->working > 1 ? queue->working - 1 : 0;
    q->shared += working > 1 ? working - 1 : 0;
    if (!queue->local)
        q->not_local += working - queue->working;
    queue->working = working;
}

static void insert(struct fp_mount_queues *q, struct fp_waiting *w, bool first)
{
    if (first)
        TAILQ_INSERT_HEAD(&w->queue->waiting, w, link);
    else
        TAILQ_INSERT_TAIL(&w->queue->waiting, w, link);
    w->queue->n_waiting++;
    q->waiting++;
}

static void take_out(struct fp_mount_queues *q, struct fp_waiting *w)
{
    TAILQ_REMOVE(&w->queue->waiting, w, link);
    w->queue->n_waiting--;
    q->waiting--;
}

/* Killed workers that hang have all places. */
static bool is_taken(const struct fp_mount_queues *q, const struct fp_mount_queue *queue)
{
    return queue->dying >= q->limits.workers;
}

fp_status fp_mount_queues_put(struct fp_mount_queues *q, uint32_t mount, struct fp_waiting *w, bool probe)
{
    const struct fp_mount_queue *known = find(q, mount);

    /* Nobody knows how long those workers take to die. */
    if (!probe && known != NULL && is_taken(q, known))
        return FP_UNAVAILABLE;
    if (!probe
        && (q->waiting >= q->limits.waiting || (known != NULL && known->n_waiting >= (q->limits.waiting + 1) / 2)))
        return FP_BUSY;
    w->queue = find_or_make(q, mount);
    w->probe = probe;
    if (w->queue == NULL)
        return FP_NOMEM;
    insert(q, w, probe);
    return FP_OK;
}

/* True if the mount may have that many more workers: one of its own, and those that all share. Some are left for
 * local file systems. */
static bool has_room(const struct fp_mount_queues *q, const struct fp_mount_queue *queue, unsigned more)
{
    return (queue->working + more <= 1 || q->shared + more < q->limits.workers)
           && (queue->local || q->not_local + more <= q->limits.not_local);
}

static bool may_begin(const struct fp_mount_queues *q, const struct fp_mount_queue *queue)
{
    const struct fp_waiting *w = TAILQ_FIRST(&queue->waiting);

    return w != NULL && has_room(q, queue, 1)
           && queue->working + queue->dying < q->limits.workers + (w->probe ? 1 : 0);
}

struct fp_waiting *fp_mount_queues_take(struct fp_mount_queues *q)
{
    struct fp_waiting *w;
    struct fp_mount_queue *queue = TAILQ_FIRST(&q->all);

    while (queue != NULL && !may_begin(q, queue))
        queue = TAILQ_NEXT(queue, link);
    if (queue == NULL)
        return NULL;
    TAILQ_REMOVE(&q->all, queue, link);
    TAILQ_INSERT_TAIL(&q->all, queue, link);
    w = TAILQ_FIRST(&queue->waiting);
    take_out(q, w);
    set_working(q, queue, queue->working + 1);
    return w;
}

void fp_mount_queues_put_back(struct fp_mount_queues *q, struct fp_waiting *w)
{
    set_working(q, w->queue, w->queue->working - 1);
    insert(q, w, true);
}

static struct fp_waiting *cancel(struct fp_mount_queues *q, struct fp_waiting *w)
{
    struct fp_mount_queue *queue = w->queue;

    take_out(q, w);
    w->queue = NULL;
    drop_if_empty(q, queue);
    return w;
}

struct fp_waiting *fp_mount_queues_cancel(struct fp_mount_queues *q, uint32_t mount)
{
    const struct fp_mount_queue *queue = find(q, mount);
    struct fp_waiting *w = queue != NULL ? TAILQ_FIRST(&queue->waiting) : NULL;

    return w != NULL ? cancel(q, w) : NULL;
}

/* The first walk that waits and is no probe; NULL if there is none. */
static struct fp_waiting *first_walk(const struct fp_mount_queue *queue)
{
    struct fp_waiting *w;

    TAILQ_FOREACH(w, &queue->waiting, link) {
        if (!w->probe)
            break;
    }
    return w;
}

struct fp_waiting *fp_mount_queues_cancel_hopeless(struct fp_mount_queues *q, bool all)
{
    const struct fp_mount_queue *queue;

    TAILQ_FOREACH(queue, &q->all, link) {
        if ((all || is_taken(q, queue)) && first_walk(queue) != NULL)
            return cancel(q, first_walk(queue));
    }
    return NULL;
}

size_t fp_mount_queues_waiting(const struct fp_mount_queues *q, uint32_t mount)
{
    const struct fp_mount_queue *queue = find(q, mount);

    return queue != NULL ? queue->n_waiting : 0;
}

fp_status fp_mount_queues_move(struct fp_mount_queues *q, struct fp_waiting *w, uint32_t mount)
{
    struct fp_mount_queue *to = find_or_make(q, mount), *from = w->queue;

    if (to == NULL)
        return FP_NOMEM;
    set_working(q, to, to->working + 1);
    set_working(q, from, from->working - 1);
    w->queue = to;
    drop_if_empty(q, from);
    return FP_OK;
}

bool fp_mount_queues_crowded(const struct fp_mount_queues *q, uint32_t mount)
{
    const struct fp_mount_queue *queue = find(q, mount);

    return queue != NULL && !has_room(q, queue, 0);
}

void fp_mount_queues_left(struct fp_mount_queues *q, struct fp_waiting *w)
{
    struct fp_mount_queue *queue = w->queue;

    w->queue = NULL;
    set_working(q, queue, queue->working - 1);
    drop_if_empty(q, queue);
}

struct fp_mount_queue *fp_mount_queues_dying(struct fp_mount_queues *q, struct fp_waiting *w)
{
    struct fp_mount_queue *queue = w->queue;

    queue->dying++;
    fp_mount_queues_left(q, w);
    return queue;
}

void fp_mount_queues_dead(struct fp_mount_queues *q, struct fp_mount_queue *queue)
{
    queue->dying--;
    drop_if_empty(q, queue);
}

uint32_t fp_mount_queue_mount(const struct fp_mount_queue *queue)
{
    return queue->mount;
}
