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

/* A mount that walks are meant for, or of which something else is worth remembering. */
struct mount {
    LIST_ENTRY(mount) link;
    uint32_t id;  /* as in statx(2)'s stx_mnt_id; 0: unknown, and never out of service */
    size_t walks; /* that have entered */
    struct fp_breaker breaker;
};

struct probe {
    LIST_ENTRY(probe) link;
    struct fp_mount_health *health;
    struct mount *mount; /* which is remembered while it is probed */
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
    LIST_HEAD(, mount) mounts;
    struct fp_mount_health_counts counts;
    ev_timer check;
    uint64_t losses; /* of the table of mounts, seen last */
    LIST_HEAD(, probe) probes;
    struct detour detours[FP_MAX_DETOURS];
    unsigned next_detour; /* the one to be replaced */
};

/* NULL: nothing is remembered. */
static struct mount *find(const struct fp_mount_health *health, uint32_t id)
{
    struct mount *m;

    LIST_FOREACH(m, &health->mounts, link) {
        if (m->id == id)
            return m;
    }
    return NULL;
}

bool fp_mount_health_is_out(const struct fp_mount_health *health, uint32_t mount)
{
    const struct mount *m = find(health, mount);

    return m != NULL && m->breaker.open;
}

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
    if (health->counts.out == 0)
        return NULL;
    for (const struct detour *each = health->detours; each < health->detours + FP_MAX_DETOURS; each++) {
        if (each->path != NULL && fp_path_is_below(path, len, each->path) && fp_now_ms() < each->expires_ms
            && fp_mount_health_is_out(health, each->mount))
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
    at.out = fp_mount_health_is_out(health, at.mount);
    return at;
}

/* ---- out of service, and back ---- */

static const char *name_of(const struct fp_mount_health *health, uint32_t mount)
{
    const struct fp_mount *m = fp_mounts_find(health->deps.mounts, mount);

    return m != NULL ? m->point : "(unmounted)";
}

static void on_opened(struct fp_mount_health *health, const struct mount *m)
{
    const uint32_t mount = m->id;

    health->counts.opened++;
    health->counts.out++;
    fp_log(FP_LOG_WARNING, 44,
           "the file system at %s does not answer, for %" PRIu64 " ms now: out of service, its "
           "requests are answered from stale entries (stale_if_error_ms) or left to httpd until "
           "it does; check its server, or unmount it (umount -l)",
           name_of(health, mount), m->breaker.silence_ms);
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
    const uint64_t now = fp_now_ms();
    struct mount *m = find(health, mount);
    const uint64_t since = m != NULL ? fp_breaker_answered(&m->breaker, at.waiting > 0, now) : 0;

    if (since == 0)
        return;
    health->counts.out--;
    fp_log(FP_LOG_WARNING, 45,
           "the file system at %s answers again, after %" PRIu64 " ms out of "
           "service",
           name_of(health, mount), now - since);
}

void fp_mount_health_heard(struct fp_mount_health *health, uint32_t mount, fp_status st,
                           const struct fp_answer *a, const struct fp_walk_result *result, uint64_t began_ms)
{
    const uint64_t now = fp_now_ms();
    struct mount *m = st == FP_TIMEOUT && mount != 0 ? find(health, mount) : NULL;

    if (m != NULL && fp_breaker_given_up(&m->breaker, health->timeout_ms, began_ms, now))
        on_opened(health, m);
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

    fp_mount_health_heard(p->health, p->mount->id, st, a, result, began_ms);
    /* An automount's own place, which a worker only looks at: it did not
     * wait there. A path outside the roots is refused without a look. */
    if (st == FP_REFUSED && fp_path_is_within(p->path, p->task.lookup.path_len, p->health->deps.roots))
        answered(p->health, p->mount->id);
    fp_breaker_probed(&p->mount->breaker, fp_now_ms());
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

static bool send_probe(struct fp_mount_health *health, struct mount *mount, const char *path)
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
    if (fp_worker_pool_probe(health->deps.workers, mount->id, &p->task, on_probed, p) == FP_OK)
        return true;
    end_probe(p);
    return false;
}

/* ---- the timer ---- */

static void look_after(struct fp_mount_health *health, struct mount *m)
{
    const struct fp_mount *mounted = fp_mounts_find(health->deps.mounts, m->id);
    const struct fp_mount_usage at = fp_mount_usage(health->deps.workers, m->id);
    const uint64_t now = fp_now_ms();

    if (m->id == 0)
        return;
    if (mounted == NULL) {
        if (fp_breaker_reset(&m->breaker)) {
            health->counts.out--;
            fp_log(FP_LOG_WARNING, 45, "a file system that was out of service was unmounted");
        }
        fp_worker_pool_absolve(health->deps.workers, m->id);
        return;
    }
    if (fp_breaker_check(&m->breaker, health->timeout_ms, at.oldest_ms, now))
        on_opened(health, m);
    fp_worker_pool_make_room(health->deps.workers, m->id, m->breaker.open);
    fp_breaker_hung(&m->breaker, at.hung);
    if (fp_breaker_probe(&m->breaker, now) && !send_probe(health, m, probe_path(health, mounted->point)))
        fp_breaker_probed(&m->breaker, now);
}

static void hurry(struct fp_mount_health *health)
{
    struct mount *m;

    LIST_FOREACH(m, &health->mounts, link)
        fp_breaker_hurry(&m->breaker);
}

/* Forgets mounts that are not worth remembering. */
static void sweep(struct fp_mount_health *health)
{
    struct mount *m, *next;

    for (m = LIST_FIRST(&health->mounts); m != NULL; m = next) {
        next = LIST_NEXT(m, link);
        if (m->walks > 0 || !fp_breaker_is_at_rest(&m->breaker, health->timeout_ms, fp_now_ms()))
            continue;
        LIST_REMOVE(m, link);
        free(m);
    }
}

static void on_check(struct ev_loop *loop, ev_timer *w, int events)
{
    struct fp_mount_health *health = w->data;
    const uint64_t losses = fp_coherence_counts(health->deps.coherence).losses;
    struct mount *m;

    fp_turn_work(FP_WORK_TIMER);
    (void)events;
    fp_worker_pool_hear(health->deps.workers);
    fp_worker_pool_track(health->deps.workers, on_strayed, health);
    /* Something may have been mounted over it. */
    if (losses != health->losses)
        hurry(health);
    health->losses = losses;
    LIST_FOREACH(m, &health->mounts, link)
        look_after(health, m);
    sweep(health);
    if (LIST_EMPTY(&health->mounts))
        ev_timer_stop(loop, w);
}

/* ---- what is asked ---- */

size_t fp_mount_health_enter(struct fp_mount_health *health, uint32_t mount)
{
    struct mount *m = find(health, mount);

    if (m == NULL) {
        m = fp_memory_take_zeroed(1, sizeof(*m));
        if (m == NULL)
            return 0;
        m->id = mount;
        LIST_INSERT_HEAD(&health->mounts, m, link);
    }
    if (!ev_is_active(&health->check))
        ev_timer_again(health->loop, &health->check);
    return ++m->walks;
}

void fp_mount_health_leave(struct fp_mount_health *health, uint32_t mount)
{
    struct mount *m = find(health, mount);

    if (m != NULL && m->walks > 0)
        m->walks--;
}

void fp_mount_health_asked(struct fp_mount_health *health, uint32_t mount)
{
    struct mount *m = find(health, mount);

    if (m != NULL)
        fp_breaker_asked(&m->breaker, fp_now_ms());
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
    ev_init(&health->check, on_check);
    health->check.repeat = CHECK_SECONDS;
    health->check.data = health;
    return health;
}

void fp_mount_health_destroy(struct fp_mount_health **hp)
{
    struct fp_mount_health *health = *hp;
    struct mount *m;

    *hp = NULL;
    if (health == NULL)
        return;
    ev_timer_stop(health->loop, &health->check);
    while (!LIST_EMPTY(&health->probes))
        end_probe(LIST_FIRST(&health->probes));
    for (size_t i = 0; i < FP_MAX_DETOURS; i++)
        forget_detour(&health->detours[i]);
    while ((m = LIST_FIRST(&health->mounts)) != NULL) {
        LIST_REMOVE(m, link);
        free(m);
    }
    free(health);
}

void fp_mount_health_set(struct fp_mount_health *health, uint32_t timeout_ms)
{
    health->timeout_ms = timeout_ms;
    /* Another timeout may be why a mount is out of service. */
    hurry(health);
}

struct fp_mount_health_counts fp_mount_health_counts(const struct fp_mount_health *health)
{
    return health->counts;
}
