/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/mount_health.h"

#include <ev.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/turn.h"
#include "cache/cache.h"
#include "changes/coherence.h"
#include "changes/mounts.h"
#include "lookup/breaker.h"
#include "wire/answer.h"
#include "wire/task.h"
#include "wire/walk_result.h"
#include "wire/wire.h"
#include "workers/worker_pool.h"

#define CHECK_SECONDS 0.05 /* while anything is asked, or out of service */

struct probe {
    LIST_ENTRY(probe) link;
    struct fp_mount_health *health;
    uint32_t mount;
    struct fp_task task; /* its path is the one below */
    char path[];
};

struct detour {
    uint32_t mount;
    uint64_t expires_ms;
    char *path; /* NULL: free */
};

struct fp_mount_health {
    struct ev_loop *loop;
    struct fp_mount_health_deps deps;
    uint32_t timeout_ms;
    struct fp_breaker *breaker;
    ev_timer check;
    uint64_t losses; /* of the table of mounts, seen last */
    LIST_HEAD(, probe) probes;
    struct detour detours[FP_MAX_DETOURS];
    unsigned next_detour; /* the one to be replaced */
};

/* ---- where a path is expected ---- */

static void forget_detour(struct detour *each)
{
    free(each->path);
    each->path = NULL;
}

void fp_mount_health_note_detour(struct fp_mount_health *health, uint32_t mount, const char *path, size_t len)
{
    struct detour *each = &health->detours[health->next_detour];

    forget_detour(each);
    each->path = fp_memory_take_zeroed(1, len + 1);
    if (each->path == NULL)
        return;
    memcpy(each->path, path, len);
    each->mount = mount;
    each->expires_ms = fp_now_ms() + FP_DETOUR_MS;
    health->next_detour = (health->next_detour + 1) % FP_MAX_DETOURS;
}

void fp_mount_health_forget(struct fp_mount_health *health, const char *path, size_t len)
{
    for (struct detour *each = health->detours; each < health->detours + FP_MAX_DETOURS; each++) {
        if (each->path != NULL && fp_path_common_len(each->path, strlen(each->path), path, len) == len)
            forget_detour(each);
    }
}

/* NULL: the path leads to no mount that is out of service. */
static const struct detour *find_detour(const struct fp_mount_health *health, const char *path, size_t len)
{
    if (fp_breaker_counts(health->breaker).open == 0)
        return NULL;
    for (const struct detour *each = health->detours; each < health->detours + FP_MAX_DETOURS; each++) {
        if (each->path != NULL && fp_path_is_below(path, len, each->path) && fp_now_ms() < each->expires_ms
            && fp_breaker_is_open(health->breaker, each->mount))
            return each;
    }
    return NULL;
}

struct fp_expected fp_mount_health_expect(const struct fp_mount_health *health, const char *path, size_t len)
{
    const struct detour *detour = find_detour(health, path, len);
    struct fp_expected at = { .out = true };
    const struct fp_mount *by_path;
    uint32_t by_cache;

    if (detour != NULL) {
        at.mount = detour->mount;
        at.from = strlen(detour->path);
        return at;
    }
    by_cache = fp_cache_mount(health->deps.cache, path, len, &at.seen);
    by_path = fp_mounts_of_path(health->deps.mounts, path, len);
    if (by_path != NULL) {
        at.mount = by_path->id;
        at.from = strlen(by_path->point);
    }
    if (at.seen > at.from) {
        at.from = at.seen;
        if (fp_mounts_find(health->deps.mounts, by_cache) != NULL)
            at.mount = by_cache;
    }
    at.out = fp_breaker_is_open(health->breaker, at.mount);
    return at;
}

/* ---- out of service, and back ---- */

static const char *name_of(const struct fp_mount_health *health, uint32_t mount)
{
    const struct fp_mount *m = fp_mounts_find(health->deps.mounts, mount);

    return m != NULL ? m->point : "(unmounted)";
}

static void on_opened(struct fp_mount_health *health, uint32_t mount)
{
    fp_log(FP_LOG_WARNING, 44,
           "the file system at %s does not answer, for %" PRIu64 " ms now: out of service, its "
           "requests are answered from stale entries (stale_if_error_ms) or left to httpd until "
           "it does; check its server, or unmount it (umount -l)",
           name_of(health, mount), fp_breaker_silence(health->breaker, mount));
    fp_worker_pool_cancel(health->deps.workers, mount, FP_UNAVAILABLE);
    health->deps.opened(health->deps.ctx, mount);
}

uint32_t fp_mount_health_end_of(uint32_t mount, const struct fp_answer *a,
                                const struct fp_walk_result *result)
{
    const unsigned last = a != NULL ? a->n_steps - 1 : 0;

    return a != NULL && a->steps[last].status == FP_OK && result->step_watches[last].mount != 0
               ? result->step_watches[last].mount
               : mount;
}

static void answered(struct fp_mount_health *health, uint32_t mount)
{
    const struct fp_mount_usage at = fp_mount_usage(health->deps.workers, mount);
    uint64_t now = fp_now_ms();
    uint64_t since = fp_breaker_answered(health->breaker, mount, at.waiting > 0, now);

    if (since == 0)
        return;
    fp_log(FP_LOG_WARNING, 45,
           "the file system at %s answers again, after %" PRIu64 " ms out of "
           "service",
           name_of(health, mount), now - since);
}

void fp_mount_health_heard(struct fp_mount_health *health, uint32_t mount, fp_status st,
                           const struct fp_answer *a, const struct fp_walk_result *result, uint64_t began_ms)
{
    uint64_t now = fp_now_ms();

    if (st == FP_TIMEOUT && fp_breaker_given_up(health->breaker, mount, began_ms, now))
        on_opened(health, mount);
    if (st != FP_OK)
        return;
    /* An error after so long a time means that a client of the file system gave up waiting. */
    if (!fp_answer_is_failure(a) || now < began_ms + health->timeout_ms)
        answered(health, fp_mount_health_end_of(mount, a, result));
}

/*
 * A local file system that a walk passes on its way is not the one that hangs.  The kernel may ask the server
 * of a mount when its mount point is opened, before a worker knows that it is there.
 */
static bool on_strayed(void *ctx, void *walk, uint32_t from, uint32_t to)
{
    const struct fp_mount_health *health = ctx;
    const struct fp_mount *there = fp_mounts_find(health->deps.mounts, to);
    const struct fp_mount *expected = fp_mounts_find(health->deps.mounts, from);

    if (there == NULL || (there->traits.local && expected != NULL && !expected->traits.local))
        return false;
    health->deps.moved(health->deps.ctx, walk, to);
    return true;
}

/* ---- probes ---- */

static void end_probe(struct probe *p)
{
    LIST_REMOVE(p, link);
    free(p);
}

static void on_probed(void *ctx, fp_status st, struct fp_answer *a, const struct fp_walk_result *result,
                      uint64_t began_ms)
{
    struct probe *p = ctx;

    fp_mount_health_heard(p->health, p->mount, st, a, result, began_ms);
    /* An automount's own place, which a worker only looks at: it did not
     * wait there. A path outside the roots is refused without a look. */
    if (st == FP_REFUSED && fp_path_is_within(p->path, p->task.lookup.path_len, p->health->deps.roots))
        answered(p->health, p->mount);
    fp_breaker_probed(p->health->breaker, p->mount, fp_now_ms());
    end_probe(p);
}

/* Workers refuse to walk to a mount point that no root contains. */
static const char *probe_path(const struct fp_mount_health *health, const char *point)
{
    const char *const *roots = health->deps.roots;
    const char *below = NULL;

    for (size_t i = 0; roots != NULL && roots[i] != NULL; i++) {
        if (fp_path_is_below(point, strlen(point), roots[i]))
            return point;
        if (below == NULL && fp_path_is_below(roots[i], strlen(roots[i]), point))
            below = roots[i];
    }
    return below != NULL ? below : point;
}

static bool send_probe(struct fp_mount_health *health, uint32_t mount, const char *path)
{
    size_t len = strlen(path);
    struct probe *p = len <= FP_MAX_PATH ? fp_memory_take_zeroed(1, sizeof(*p) + len) : NULL;

    if (p == NULL)
        return false;
    p->health = health;
    p->mount = mount;
    memcpy(p->path, path, len);
    p->task.lookup.path = p->path;
    p->task.lookup.path_len = len;
    LIST_INSERT_HEAD(&health->probes, p, link);
    if (fp_worker_pool_probe(health->deps.workers, mount, &p->task, on_probed, p) == FP_OK)
        return true;
    end_probe(p);
    return false;
}

/* ---- the timer ---- */

static void look_after(void *ctx, uint32_t mount)
{
    struct fp_mount_health *health = ctx;
    const struct fp_mount *m = fp_mounts_find(health->deps.mounts, mount);
    const struct fp_mount_usage at = fp_mount_usage(health->deps.workers, mount);
    uint64_t now = fp_now_ms();

    if (mount == 0)
        return;
    if (m == NULL) {
        if (fp_breaker_reset(health->breaker, mount))
            fp_log(FP_LOG_WARNING, 45, "a file system that was out of service was unmounted");
        fp_worker_pool_absolve(health->deps.workers, mount);
        return;
    }
    if (fp_breaker_check(health->breaker, mount, at.oldest_ms, now))
        on_opened(health, mount);
    fp_worker_pool_make_room(health->deps.workers, mount, fp_breaker_is_open(health->breaker, mount));
    fp_breaker_hung(health->breaker, mount, at.hung);
    if (fp_breaker_probe(health->breaker, mount, now)
        && !send_probe(health, mount, probe_path(health, m->point)))
        fp_breaker_probed(health->breaker, mount, now);
}

static void on_check(struct ev_loop *loop, ev_timer *w, int events)
{
    struct fp_mount_health *health = w->data;
    uint64_t losses = fp_coherence_counts(health->deps.coherence).losses;

    fp_turn_work(FP_WORK_TIMER);
    (void)events;
    fp_worker_pool_hear(health->deps.workers);
    fp_worker_pool_track(health->deps.workers, on_strayed, health);
    /* Something may have been mounted over it. */
    if (losses != health->losses)
        fp_breaker_hurry(health->breaker);
    health->losses = losses;
    fp_breaker_each(health->breaker, look_after, health);
    if (!fp_breaker_sweep(health->breaker, fp_now_ms()))
        ev_timer_stop(loop, w);
}

/* ---- what is asked ---- */

size_t fp_mount_health_enter(struct fp_mount_health *health, uint32_t mount)
{
    fp_breaker_enter(health->breaker, mount);
    if (!ev_is_active(&health->check))
        ev_timer_again(health->loop, &health->check);
    return fp_breaker_walks(health->breaker, mount);
}

void fp_mount_health_leave(struct fp_mount_health *health, uint32_t mount)
{
    fp_breaker_leave(health->breaker, mount);
}

void fp_mount_health_asked(struct fp_mount_health *health, uint32_t mount)
{
    fp_breaker_asked(health->breaker, mount, fp_now_ms());
}

bool fp_mount_health_is_out(const struct fp_mount_health *health, uint32_t mount)
{
    return fp_breaker_is_open(health->breaker, mount);
}

/* ---- start and end ---- */

struct fp_mount_health *fp_mount_health_create(struct ev_loop *loop, const struct fp_mount_health_deps *deps,
                                               uint32_t timeout_ms)
{
    struct fp_mount_health *health = fp_memory_take_zeroed(1, sizeof(*health));

    if (health == NULL)
        return NULL;
    health->loop = loop;
    health->deps = *deps;
    health->timeout_ms = timeout_ms;
    health->breaker = fp_breaker_create(timeout_ms);
    if (health->breaker == NULL) {
        free(health);
        return NULL;
    }
    ev_init(&health->check, on_check);
    health->check.repeat = CHECK_SECONDS;
    health->check.data = health;
    return health;
}

void fp_mount_health_destroy(struct fp_mount_health **hp)
{
    struct fp_mount_health *health = *hp;

    *hp = NULL;
    if (health == NULL)
        return;
    ev_timer_stop(health->loop, &health->check);
    while (!LIST_EMPTY(&health->probes))
        end_probe(LIST_FIRST(&health->probes));
    for (size_t i = 0; i < FP_MAX_DETOURS; i++)
        forget_detour(&health->detours[i]);
    fp_breaker_destroy(&health->breaker);
    free(health);
}

void fp_mount_health_set(struct fp_mount_health *health, uint32_t timeout_ms)
{
    health->timeout_ms = timeout_ms;
    fp_breaker_set(health->breaker, timeout_ms);
    /* Another timeout may be why a mount is out of service. */
    fp_breaker_hurry(health->breaker);
}

struct fp_breaker_counts fp_mount_health_counts(const struct fp_mount_health *health)
{
    return fp_breaker_counts(health->breaker);
}
