/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/mount_queues.h"

#include <stdlib.h>

struct fp_mount_queue {
    TAILQ_ENTRY(fp_mount_queue) link;
    TAILQ_HEAD(, fp_waiting) waiting;
    uint32_t mount;
    size_t n_waiting;
    unsigned working, dying;     /* helpers */
};

void fp_mount_queues_init(struct fp_mount_queues *l, unsigned helpers, size_t max_waiting)
{
    TAILQ_INIT(&l->all);
    l->waiting = 0;
    fp_mount_queues_set(l, helpers, max_waiting);
}

void fp_mount_queues_set(struct fp_mount_queues *l, unsigned helpers, size_t max_waiting)
{
    l->helpers = helpers;
    l->max_waiting = max_waiting;
}

static struct fp_mount_queue *find(const struct fp_mount_queues *l, uint32_t mount)
{
    struct fp_mount_queue *lane;

    TAILQ_FOREACH(lane, &l->all, link) {
        if (lane->mount == mount)
            return lane;
    }
    return NULL;
}

static struct fp_mount_queue *find_or_make(struct fp_mount_queues *l, uint32_t mount)
{
    struct fp_mount_queue *lane = find(l, mount);

    if (lane != NULL)
        return lane;
    lane = calloc(1, sizeof(*lane));
    if (lane == NULL)
        return NULL;
    lane->mount = mount;
    TAILQ_INIT(&lane->waiting);
    TAILQ_INSERT_TAIL(&l->all, lane, link);
    return lane;
}

static void drop_if_empty(struct fp_mount_queues *l, struct fp_mount_queue *lane)
{
    if (lane->n_waiting > 0 || lane->working > 0 || lane->dying > 0)
        return;
    TAILQ_REMOVE(&l->all, lane, link);
    free(lane);
}

static void insert(struct fp_mount_queues *l, struct fp_waiting *w, bool first)
{
    if (first)
        TAILQ_INSERT_HEAD(&w->lane->waiting, w, link);
    else
        TAILQ_INSERT_TAIL(&w->lane->waiting, w, link);
    w->lane->n_waiting++;
    l->waiting++;
}

static void take_out(struct fp_mount_queues *l, struct fp_waiting *w)
{
    TAILQ_REMOVE(&w->lane->waiting, w, link);
    w->lane->n_waiting--;
    l->waiting--;
}

fp_status fp_mount_queues_put(struct fp_mount_queues *l, uint32_t mount, struct fp_waiting *w)
{
    if (l->waiting >= l->max_waiting || fp_mount_queues_waiting(l, mount) >= (l->max_waiting + 1) / 2)
        return FP_BUSY;
    w->lane = find_or_make(l, mount);
    w->probe = false;
    if (w->lane == NULL)
        return FP_NOMEM;
    insert(l, w, false);
    return FP_OK;
}

fp_status fp_mount_queues_put_probe(struct fp_mount_queues *l, uint32_t mount, struct fp_waiting *w)
{
    w->lane = find_or_make(l, mount);
    w->probe = true;
    if (w->lane == NULL)
        return FP_NOMEM;
    insert(l, w, true);
    return FP_OK;
}

static bool may_begin(const struct fp_mount_queues *l, const struct fp_mount_queue *lane)
{
    const struct fp_waiting *w = TAILQ_FIRST(&lane->waiting);

    return w != NULL && lane->working < l->helpers
        && lane->working + lane->dying < l->helpers + (w->probe ? 1 : 0);
}

struct fp_waiting *fp_mount_queues_take(struct fp_mount_queues *l)
{
    struct fp_waiting *w;
    struct fp_mount_queue *lane;

    TAILQ_FOREACH(lane, &l->all, link) {
        if (may_begin(l, lane))
            break;
    }
    if (lane == NULL)
        return NULL;
    TAILQ_REMOVE(&l->all, lane, link);
    TAILQ_INSERT_TAIL(&l->all, lane, link);
    w = TAILQ_FIRST(&lane->waiting);
    take_out(l, w);
    lane->working++;
    return w;
}

void fp_mount_queues_put_back(struct fp_mount_queues *l, struct fp_waiting *w)
{
    w->lane->working--;
    insert(l, w, true);
}

struct fp_waiting *fp_mount_queues_cancel(struct fp_mount_queues *l, uint32_t mount)
{
    struct fp_mount_queue *lane = find(l, mount);
    struct fp_waiting *w = lane != NULL ? TAILQ_FIRST(&lane->waiting) : NULL;

    if (w == NULL)
        return NULL;
    take_out(l, w);
    w->lane = NULL;
    drop_if_empty(l, lane);
    return w;
}

size_t fp_mount_queues_waiting(const struct fp_mount_queues *l, uint32_t mount)
{
    const struct fp_mount_queue *lane = find(l, mount);

    return lane != NULL ? lane->n_waiting : 0;
}

void fp_mount_queues_left(struct fp_mount_queues *l, struct fp_waiting *w)
{
    struct fp_mount_queue *lane = w->lane;

    w->lane = NULL;
    lane->working--;
    drop_if_empty(l, lane);
}

struct fp_mount_queue *fp_mount_queues_dying(struct fp_mount_queues *l, struct fp_waiting *w)
{
    struct fp_mount_queue *lane = w->lane;

    lane->dying++;
    fp_mount_queues_left(l, w);
    return lane;
}

void fp_mount_queues_dead(struct fp_mount_queues *l, struct fp_mount_queue *lane)
{
    lane->dying--;
    drop_if_empty(l, lane);
}

uint32_t fp_mount_queue_mount(const struct fp_mount_queue *lane)
{
    return lane->mount;
}
