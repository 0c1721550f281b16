/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/restore.h"

#include <ev.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/turn.h"
#include "cache/cache.h"
#include "lookup/mount_health.h"
#include "lookup/walks.h"
#include "lookup/warm_list.h"
#include "workers/worker_pool.h"

#define TURN_SECONDS 0.002
#define TURN_PATHS   32  /* looked at in a turn: some 16,000 a second, which no disk bears */
#define TURN_WALKS   32  /* begun in a turn, about: a path's directories have walks of their own */
#define QUEUED       4   /* for each worker at most */
#define MOST_WALKS   256 /* under way, questions' own included; their directories' walks among them */

struct fp_restore {
    struct fp_restore_deps deps;
    struct fp_warm_reader reader;
    char *text; /* NULL: done */
    size_t walks, left_out;
    bool is_read;
    uint64_t last; /* when all was read: the number of walks that had begun */
    uint64_t began_ms;
    ev_timer timer;
};

static bool is_known(const struct fp_restore *r, const struct fp_lookup *l)
{
    const struct fp_cache_snapshot v = fp_cache_snapshot(r->deps.cache, l->path, l->path_len, fp_now_ms());

    return v.state == FP_CACHE_KNOWN;
}

static void restore(struct fp_restore *r, const struct fp_lookup *l)
{
    const struct fp_expected at = fp_mount_health_expect(r->deps.health, l->path, l->path_len);
    fp_status why;

    if (!fp_path_is_within(l->path, l->path_len, r->deps.roots) || at.out) {
        r->left_out++;
        return;
    }
    if (is_known(r, l) || fp_walk_find(r->deps.walks, l) != NULL)
        return;
    if (fp_walk_start(r->deps.walks, l, &at, FP_WALK_RESTART, &why) != NULL
        || (why == FP_BUSY && fp_walk_start(r->deps.walks, l, &at, FP_WALK_QUESTION, &why) != NULL))
        r->walks++;
    else
        r->left_out++;
}

static bool has_room(const struct fp_restore *r)
{
    const struct fp_walks *ws = r->deps.walks;
    const struct fp_worker_pool_counts workers = fp_worker_pool_counts(r->deps.workers);

    return workers.queued < QUEUED * (size_t)workers.alive && fp_walks_have_room(ws)
           && fp_walks_counts(ws).inflight < MOST_WALKS;
}

static void finish(struct fp_restore *r)
{
    fp_log(
        FP_LOG_INFO, 13,
        "the paths in use before the restart: %zu looked up again in %llu ms, %zu left out (outside roots, their "
        "file system does not answer, or too many walks)",
        r->walks, (unsigned long long)(fp_now_ms() - r->began_ms), r->left_out);
    ev_timer_stop(r->deps.loop, &r->timer);
    free(r->text);
    r->text = NULL;
}

static void on_turn(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_restore *r = timer->data;
    const struct fp_walks *ws = r->deps.walks;
    const uint64_t enough = fp_walks_counts(ws).begun + TURN_WALKS;
    struct fp_lookup l;

    fp_turn_work(FP_WORK_TIMER);
    (void)loop;
    (void)events;
    for (unsigned n = 0; n < TURN_PATHS && !r->is_read && has_room(r); n++) {
        if (fp_walks_counts(ws).begun >= enough)
            break;
        if (fp_warm_next(&r->reader, &l)) {
            restore(r, &l);
            continue;
        }
        r->is_read = true;
        r->last = fp_walks_counts(ws).begun;
    }
    if (r->is_read && fp_walks_have_ended(r->deps.walks, r->last))
        finish(r);
}

struct fp_restore *fp_restore_create(const struct fp_restore_deps *deps, char *text,
                                     const struct fp_warm_reader *reader)
{
    struct fp_restore *r = fp_memory_take_zeroed(1, sizeof(*r));

    if (r == NULL) {
        free(text);
        return NULL;
    }
    r->deps = *deps;
    r->text = text;
    r->reader = *reader;
    r->began_ms = fp_now_ms();
    ev_timer_init(&r->timer, on_turn, 0, TURN_SECONDS);
    r->timer.data = r;
    ev_timer_start(deps->loop, &r->timer);
    return r;
}

bool fp_restore_is_under_way(const struct fp_restore *r)
{
    return r != NULL && r->text != NULL;
}

void fp_restore_destroy(struct fp_restore **rp)
{
    struct fp_restore *r = *rp;

    *rp = NULL;
    if (r == NULL)
        return;
    ev_timer_stop(r->deps.loop, &r->timer);
    free(r->text);
    free(r);
}
