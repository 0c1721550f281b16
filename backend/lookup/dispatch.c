/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/dispatch.h"

#include <ev.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/turn.h"
#include "cache/cache.h"
#include "changes/coherence.h"
#include "ipc/connection.h"
#include "lookup/mount_health.h"
#include "lookup/observe.h"
#include "lookup/publish.h"
#include "lookup/questions.h"
#include "lookup/restore.h"
#include "lookup/walks.h"
#include "lookup/warm_list.h"
#include "wire/answer.h"
#include "workers/worker_pool.h"

/* Walks to its mount for which no client waits begin while fewer wait for each worker. Entries in use come first. */
#define REFRESHES 4
#define HINTS     1

/* Purged entries are evicted so much at a time, and the loop does other work in between. */
#define AT_ONCE         64  /* entries of a small tree */
#define EVICT_VISITS    512 /* in a turn at most, and so many that it ... */
#define EVICT_STEP      32
#define EVICT_US        2000u /* ... takes so long, about: contents have pages that go with them */
#define EVICT_SECONDS   0.001
#define GIVE_BACK_BYTES (4u << 20) /* of entries evicted, then their memory goes back to the system */
#define RELIEF          64         /* entries evicted when there was no memory */
#define IDLE_SECONDS    1.0        /* between two looks for directories that no walk began at */
#define IDLE_MOST       1024       /* of them closed at one */

struct fp_dispatch {
    struct ev_loop *loop;
    struct fp_cache *cache;
    struct fp_worker_pool *workers;
    struct fp_coherence *coherence;
    struct fp_mount_health *health;
    struct fp_walks *walks;
    struct fp_questions questions;
    struct fp_names names;         /* of access files, those that clients brought; point into text, */
    char names_text[FP_NAMES_TEXT];
    struct fp_names listed; /* and those that the next daemon shall look for */
    char listed_text[FP_NAMES_TEXT];
    struct fp_publisher publisher;
    struct fp_restore *restore; /* NULL: nothing was to be restored */
    struct fp_dispatch_settings settings;
    struct fp_dispatch_counts counts; /* less those of the questions, the walks and the health */
    struct fp_answer answer;          /* from the cache, while a question is answered */
    ev_timer evict;                   /* while there is something to evict, or memory to give back */
    ev_timer idle;                    /* while directories are open */
    size_t evicted;                   /* bytes of entries, since memory was given back, */
    size_t give_back_bytes;           /* and how many it may be */
    uint64_t memory_failures;         /* that were answered by evictions */
};

/* True if the mount has room for the refresh of an entry. */
static bool has_room(const void *ctx, uint32_t mount)
{
    const struct fp_dispatch *d = ctx;

    return fp_worker_pool_spare(d->workers, mount, REFRESHES);
}

/* Walks again to entries that are in use and about to expire, so that they never are a miss.  True if
 * walks are under way. */
static bool refresh(void *ctx)
{
    struct fp_dispatch *d = ctx;
    struct fp_cache_refresh next;
    unsigned looks = FP_CACHE_LOOKS;
    fp_status st;

    while (fp_walks_have_room(d->walks) && fp_cache_take_refresh(d->cache, fp_now_ms(), &looks, has_room, d, &next)) {
        const struct fp_lookup l = { .path = next.path, .path_len = next.len, .hint = true };
        struct fp_expected at;

        if (fp_walk_find(d->walks, &l) != NULL)
            continue;
        at = fp_mount_health_expect(d->health, l.path, l.path_len);
        d->counts.refreshed +=
            fp_walk_start(d->walks, &l, &at, next.lent ? FP_WALK_LOOK : FP_WALK_QUESTION, &st) != NULL;
    }
    return fp_walks_counts(d->walks).inflight > 0;
}

/* ---- memory ---- */

/* Gives memory back, the less often the longer it takes; the allocator's free pieces decide that. */
static void give_back(struct fp_dispatch *d)
{
    const uint64_t began_us = fp_now_us();

    fp_memory_give_back();
    d->evicted = 0;
    if (fp_now_us() - began_us > EVICT_US)
        d->give_back_bytes *= 4;
}

static void evict_purged(struct fp_dispatch *d)
{
    const uint64_t began_us = fp_now_us();
    const size_t before = fp_cache_counts(d->cache).bytes;

    for (unsigned n = 0; n < EVICT_VISITS && fp_now_us() - began_us < EVICT_US; n += EVICT_STEP) {
        if (!fp_cache_evict_purged(d->cache, EVICT_STEP))
            break;
    }
    d->evicted += before - fp_cache_counts(d->cache).bytes;
}

/* Evicts, or gives memory back: each of them is a turn's work. */
static void on_evict(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_dispatch *d = timer->data;
    const bool more = fp_cache_counts(d->cache).purging > 0;

    fp_turn_work(FP_WORK_RECLAIM);
    (void)events;
    if (more && d->evicted < d->give_back_bytes) {
        evict_purged(d);
    } else if (d->evicted >= GIVE_BACK_BYTES / 4) {
        give_back(d);
    } else {
        d->give_back_bytes = GIVE_BACK_BYTES;
        ev_timer_stop(loop, timer);
    }
}

static void on_idle(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_dispatch *d = timer->data;

    fp_turn_work(FP_WORK_RECLAIM);
    (void)events;
    if (!fp_cache_close_idle_dirs(d->cache, IDLE_MOST, fp_now_ms()))
        ev_timer_stop(loop, timer);
}

/* Frees memory of the cache where some other part has none. */
static void relieve(struct fp_dispatch *d)
{
    if (d->memory_failures == fp_memory_failures())
        return;
    fp_cache_evict(d->cache, RELIEF);
    d->memory_failures = fp_memory_failures();
}

/* ---- mounts out of service ---- */

/*
 * The directories above the mount point are on living mounts.  They stay in the cache, for the
 * path, which lies at that place, has no answer otherwise.  Returns the walk that
 * looks; NULL: all above is known, or no walk could begin.
 */
static struct fp_walk *know_above(struct fp_dispatch *d, const struct fp_lookup *l, struct fp_expected at)
{
    struct fp_lookup above = *l;
    struct fp_walk *w;
    fp_status why;

    while (above.path_len > 1 && at.out) {
        above.path_len = at.from > 1 ? fp_path_parent_len(l->path, at.from) : 1;
        at = fp_mount_health_expect(d->health, above.path, above.path_len);
    }
    if (fp_cache_lookup(d->cache, above.path, above.path_len, FP_ASK_ANY, fp_now_ms(), &d->answer))
        return NULL;
    w = fp_walk_find(d->walks, &above);
    return w != NULL ? w : fp_walk_start(d->walks, &above, &at, FP_WALK_NEAREST, &why);
}

/* The path's walk waits for the walk above it, and then finds its mount out of service. */
static fp_status wait_for_above(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                                const struct fp_lookup *l, const struct fp_expected *at, struct fp_walk *above)
{
    struct fp_walk *w = fp_walk_find(d->walks, l);
    const bool joined = w != NULL;

    if (w == NULL)
        w = fp_walk_start_after(d->walks, l, at, above);
    return w != NULL ? fp_walk_wait(w, conn, id, l, joined) : FP_UNAVAILABLE;
}

static void answer_unavailable(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                               const struct fp_lookup *l, const struct fp_expected *at)
{
    struct fp_walk *above = know_above(d, l, *at);

    if (fp_question_answer_stale(&d->questions, conn, id, l))
        return;
    if (above == NULL || wait_for_above(d, conn, id, l, at, above) != FP_OK)
        fp_question_refuse(&d->questions, conn, id, FP_UNAVAILABLE);
}

static void on_opened(void *ctx, uint32_t mount)
{
    const struct fp_dispatch *d = ctx;

    fp_walks_fail_mount(d->walks, mount);
}

static void on_moved(void *ctx, void *walk, uint32_t mount)
{
    const struct fp_dispatch *d = ctx;

    fp_walks_moved(d->walks, walk, mount);
}

/* ---- questions ---- */

static void walk(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id, const struct fp_lookup *l,
                 const struct fp_expected *at)
{
    struct fp_walk *w = fp_walk_find(d->walks, l);
    const bool joined = w != NULL;
    fp_status st = FP_OK;

    if (joined) {
        d->counts.joined++;
    } else {
        d->counts.misses++;
        w = fp_walk_start(d->walks, l, at, l->fresh ? FP_WALK_ROOT : FP_WALK_QUESTION, &st);
    }
    if (w != NULL)
        st = fp_walk_wait(w, conn, id, l, joined);
    /* A mount in service gets no walk, either, while closes of its files or killed workers hang. */
    if (st == FP_UNAVAILABLE && fp_question_answer_stale(&d->questions, conn, id, l))
        return;
    if (st != FP_OK)
        fp_question_refuse(&d->questions, conn, id, st);
}

static bool is_known(struct fp_dispatch *d, const struct fp_lookup *l)
{
    return fp_cache_lookup(d->cache, l->path, l->path_len, l->fresh ? FP_ASK_FRESH : FP_ASK_ANY, fp_now_ms(),
                           &d->answer);
}

void fp_dispatch_lookup(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                        const struct fp_lookup *l)
{
    struct fp_expected at;

    /* No answer has room for such a path, and the cost of its question must not depend on its length. */
    if (fp_path_depth(l->path, l->path_len) > FP_MAX_STEPS) {
        fp_question_refuse(&d->questions, conn, id, FP_TOODEEP);
        return;
    }
    relieve(d);
    fp_coherence_catch_up(d->coherence);
    if (!ev_is_active(&d->idle))
        ev_timer_again(d->loop, &d->idle);
    if (is_known(d, l)) {
        d->counts.hits++;
        fp_publish(&d->publisher, l->path, l->path_len, &d->answer);
        fp_connection_answer(conn, id, &d->answer);
        return;
    }
    at = fp_mount_health_expect(d->health, l->path, l->path_len);
    (at.out ? answer_unavailable : walk)(d, conn, id, l, &at);
}

void fp_dispatch_hint(struct fp_dispatch *d, const struct fp_lookup *l)
{
    struct fp_expected at;
    fp_status st;

    if (fp_path_depth(l->path, l->path_len) > FP_MAX_STEPS)
        return;
    relieve(d);
    fp_coherence_catch_up(d->coherence);
    if (is_known(d, l)) {
        /* The record of it may have given its place to others. */
        fp_publish(&d->publisher, l->path, l->path_len, &d->answer);
        return;
    }
    if (fp_walk_find(d->walks, l) != NULL)
        return;
    at = fp_mount_health_expect(d->health, l->path, l->path_len);
    if (fp_worker_pool_spare(d->workers, at.mount, HINTS) && fp_walks_have_room(d->walks) && !at.out
        && fp_walk_start(d->walks, l, &at, FP_WALK_QUESTION, &st) != NULL)
        d->counts.hinted++;
    else
        d->counts.hints_dropped++;
}

static size_t forget(struct fp_dispatch *d, const char *path, size_t len, bool tree)
{
    size_t n;

    fp_walks_mark_stale(d->walks, path, len);
    n = fp_cache_forget(d->cache, path, len, tree);
    if (tree && fp_cache_evict_purged(d->cache, AT_ONCE) && !ev_is_active(&d->evict))
        ev_timer_again(d->loop, &d->evict);
    return n;
}

size_t fp_dispatch_forget(struct fp_dispatch *d, const char *path, size_t len, bool tree)
{
    const size_t n = forget(d, path, len, tree);

    d->counts.purged += n;
    return n;
}

/* ---- access files ---- */

/* Appends the names to the daemon's list, if there is room for all. */
static void look_for(struct fp_dispatch *d, const struct fp_names *names)
{
    struct fp_names all = d->names;

    if (!fp_names_join(&all, names)) {
        fp_log(FP_LOG_WARNING, 92,
               "clients have brought more than %d names of access files: httpd looks for others itself; give "
               "all hosts the same AccessFileName, then restart flashpached",
               FP_MAX_NAMES);
        return;
    }
    if (all.n == d->names.n)
        return;
    fp_names_copy(&d->names, d->names_text, &all);
    forget(d, "/", 1, true);
}

const struct fp_names *fp_dispatch_add_names(struct fp_dispatch *d, const struct fp_names *brought)
{
    struct fp_names listed = d->listed;

    look_for(d, brought);
    if (fp_names_join(&listed, brought))
        fp_names_copy(&d->listed, d->listed_text, &listed);
    return &d->names;
}

/* ---- over a restart ---- */

void fp_dispatch_restore(struct fp_dispatch *d, char *text, size_t len)
{
    const struct fp_restore_deps deps = { d->loop,    d->cache,  d->walks,
                                          d->workers, d->health, d->settings.roots };
    struct fp_warm_reader reader = { .text = text, .len = len };

    fp_warm_begin(&reader);
    look_for(d, &reader.names);
    d->restore = fp_restore_create(&deps, text, &reader);
}

bool fp_dispatch_is_restored(const struct fp_dispatch *d)
{
    return !fp_restore_is_under_way(d->restore);
}

bool fp_dispatch_list_some(struct fp_dispatch *d, struct fp_cache_cursor *at, struct fp_warm_text *text)
{
    /* Until a client has come, those of the list before. */
    text->names = d->listed.n > 0 ? &d->listed : &d->names;
    return fp_cache_list_some(d->cache, at, fp_now_ms(), fp_warm_add, text);
}

/* ---- start and end ---- */

struct fp_dispatch *fp_dispatch_create(struct ev_loop *loop, struct fp_cache *cache,
                                       struct fp_worker_pool *workers, struct fp_coherence *coherence,
                                       const struct fp_mounts *mounts, const struct fp_tables *tables,
                                       struct fp_observer *observer, const struct fp_dispatch_settings *settings)
{
    struct fp_dispatch *d = calloc(1, sizeof(*d));
    const struct fp_mount_health_deps health = {
        workers, coherence, mounts, cache, settings->roots, on_opened, on_moved, d
    };

    if (d == NULL)
        return NULL;
    d->loop = d->questions.loop = loop;
    ev_init(&d->evict, on_evict);
    d->evict.data = d;
    d->evict.repeat = EVICT_SECONDS;
    ev_init(&d->idle, on_idle);
    d->idle.data = d;
    d->idle.repeat = IDLE_SECONDS;
    d->give_back_bytes = GIVE_BACK_BYTES;
    d->cache = d->questions.cache = cache;
    fp_cache_set_names(cache, &d->names);
    d->workers = workers;
    d->coherence = coherence;
    d->settings = *settings;
    fp_publisher_init(&d->publisher, cache, tables);
    d->health = fp_mount_health_create(loop, &health, settings->mount_timeout_ms);
    if (d->health != NULL)
        d->walks = fp_walks_create(
            &(struct fp_walks_deps){ loop, cache, workers, coherence, d->health, &d->names, &d->publisher,
                                     &d->questions, observer },
            settings->max_inflight);
    if (d->walks == NULL) {
        fp_dispatch_destroy(&d);
        return NULL;
    }
    observer->health = d->health;
    fp_coherence_set_beat(coherence, refresh, d);
    return d;
}

void fp_dispatch_set(struct fp_dispatch *d, const struct fp_dispatch_settings *settings)
{
    d->settings = *settings;
    fp_walks_set_max(d->walks, settings->max_inflight);
    fp_mount_health_set(d->health, settings->mount_timeout_ms);
}

void fp_dispatch_destroy(struct fp_dispatch **dp)
{
    struct fp_dispatch *d = *dp;

    *dp = NULL;
    if (d == NULL)
        return;
    ev_timer_stop(d->loop, &d->evict);
    ev_timer_stop(d->loop, &d->idle);
    fp_restore_destroy(&d->restore);
    fp_walks_destroy(&d->walks);
    fp_mount_health_destroy(&d->health);
    free(d);
}

struct fp_dispatch_counts fp_dispatch_counts(const struct fp_dispatch *d)
{
    const struct fp_mount_health_counts mounts = fp_mount_health_counts(d->health);
    struct fp_dispatch_counts counts = d->counts;

    counts.stale = d->questions.counts.stale;
    counts.unanswered = d->questions.counts.unanswered;
    counts.inflight = fp_walks_counts(d->walks).inflight;
    counts.opened = mounts.opened;
    counts.out = mounts.out;
    return counts;
}
