/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/mount_health.h"

#include <ev.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "changes/coherence.h"
#include "common/answer.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/task.h"
#include "common/walk_result.h"
#include "common/wire.h"
#include "lookup/breaker.h"
#include "workers/worker_pool.h"

#define CHECK_SECONDS 0.05      /* while anything is asked or out of service */

struct probe {
    LIST_ENTRY(probe) link;
    struct fp_mount_health *guard;
    uint32_t mount;
    struct fp_task task;          /* its path is that below */
    char path[];
};

struct fp_mount_health {
    struct ev_loop *loop;
    struct fp_mount_health_deps parts;
    uint32_t timeout_ms;
    struct fp_breaker *breaker;
    ev_timer check;
    uint64_t losses;              /* of the table of mounts, seen last */
    LIST_HEAD(, probe) probes;
};

bool fp_mount_health_is_failure(const struct fp_answer *a)
{
    const struct fp_step *last;

    if (a->status != FP_OK)
        return true;
    last = &a->steps[a->n_steps - 1];
    return last->status == FP_IOERROR
        || (last->status == FP_OK && last->target_status == FP_IOERROR);
}

/* ---- out of service, and back ---- */

static const char *name_of(const struct fp_mount_health *g, uint32_t mount)
{
    const char *point = fp_coherence_mount_point(g->parts.fresh, mount);

    return point != NULL ? point : "(unmounted)";
}

static void trip(struct fp_mount_health *g, uint32_t mount)
{
    fp_log(FP_LOG_WARNING, 44, "the file system at %s does not answer: out of service, its "
           "requests are answered from what is known (stale_if_error_ms) or left to httpd until "
           "it does; see to its server, or unmount it (umount -l)", name_of(g, mount));
    fp_worker_pool_cancel(g->parts.helpers, mount, FP_UNAVAILABLE);
    g->parts.tripped(g->parts.ctx, mount);
}

uint32_t fp_mount_health_mount_told(uint32_t mount, const struct fp_answer *a,
                             const struct fp_walk_result *trail)
{
    const unsigned last = a->n_steps - 1;

    if (trail == NULL || a->n_steps == 0)
        return mount;
    return a->steps[last].status == FP_OK && trail->step_watches[last].mount != 0
        ? trail->step_watches[last].mount : mount;
}

static void answered(struct fp_mount_health *g, uint32_t mount)
{
    const struct fp_mount_usage at = fp_mount_usage(g->parts.helpers, mount);
    uint64_t now = fp_now_ms();
    uint64_t since = fp_breaker_answered(g->breaker, mount, at.waiting > 0, now);

    if (since == 0)
        return;
    fp_log(FP_LOG_WARNING, 45, "the file system at %s answers again, after %" PRIu64 " ms out of "
           "service", name_of(g, mount), now - since);
    fp_worker_pool_absolve(g->parts.helpers, mount);
}

void fp_mount_health_heard(struct fp_mount_health *g, uint32_t mount, const struct fp_answer *a,
                    const struct fp_walk_result *trail, uint64_t began_ms)
{
    uint64_t now = fp_now_ms();

    if (a->status == FP_TIMEOUT && fp_breaker_given_up(g->breaker, mount, began_ms, now))
        trip(g, mount);
    if (a->status != FP_OK || a->n_steps == 0 || trail == NULL)
        return;
    /* An error that took so long says that somebody gave up waiting. */
    if (!fp_mount_health_is_failure(a) || now < began_ms + g->timeout_ms)
        answered(g, fp_mount_health_mount_told(mount, a, trail));
}

/* ---- probes ---- */

static void end_probe(struct probe *p)
{
    LIST_REMOVE(p, link);
    free(p);
}

static void on_probed(void *ctx, struct fp_answer *a, const struct fp_walk_result *trail,
                      uint64_t began_ms)
{
    struct probe *p = ctx;

    fp_mount_health_heard(p->guard, p->mount, a, trail, began_ms);
    fp_breaker_probed(p->guard->breaker, p->mount, fp_now_ms());
    end_probe(p);
}

/* Helpers refuse to walk to a mount point that no root contains. */
static const char *probe_path(const struct fp_mount_health *g, const char *point)
{
    const char *const *roots = g->parts.roots;
    const char *below = NULL;

    for (size_t i = 0; roots != NULL && roots[i] != NULL; i++) {
        if (fp_path_is_below(point, strlen(point), roots[i]))
            return point;
        if (below == NULL && fp_path_is_below(roots[i], strlen(roots[i]), point))
            below = roots[i];
    }
    return below != NULL ? below : point;
}

static bool send_probe(struct fp_mount_health *g, uint32_t mount, const char *path)
{
    size_t len = strlen(path);
    struct probe *p = len <= FP_MAX_PATH ? calloc(1, sizeof(*p) + len) : NULL;

    if (p == NULL)
        return false;
    p->guard = g;
    p->mount = mount;
    memcpy(p->path, path, len);
    p->task.lookup.path = p->path;
    p->task.lookup.path_len = len;
    LIST_INSERT_HEAD(&g->probes, p, link);
    if (fp_worker_pool_probe(g->parts.helpers, mount, &p->task, on_probed, p) == FP_OK)
        return true;
    end_probe(p);
    return false;
}

/* ---- the timer ---- */

static void look_after(void *ctx, uint32_t mount)
{
    struct fp_mount_health *g = ctx;
    const char *point = fp_coherence_mount_point(g->parts.fresh, mount);
    const struct fp_mount_usage at = fp_mount_usage(g->parts.helpers, mount);
    uint64_t now = fp_now_ms();

    if (mount == 0)
        return;
    if (point == NULL) {
        if (fp_breaker_reset(g->breaker, mount))
            fp_log(FP_LOG_WARNING, 45, "a file system that was out of service was unmounted");
        fp_worker_pool_absolve(g->parts.helpers, mount);
        return;
    }
    if (fp_breaker_check(g->breaker, mount, at.oldest_ms, now))
        trip(g, mount);
    fp_breaker_hung(g->breaker, mount, at.hung);
    if (fp_breaker_probe(g->breaker, mount, now)
        && !send_probe(g, mount, probe_path(g, point)))
        fp_breaker_probed(g->breaker, mount, now);
}

static void on_check(struct ev_loop *loop, ev_timer *w, int events)
{
    struct fp_mount_health *g = w->data;
    uint64_t losses = fp_coherence_counts(g->parts.fresh).losses;

    (void)events;
    fp_worker_pool_hear(g->parts.helpers);
    /* Something may have been mounted over it. */
    if (losses != g->losses)
        fp_breaker_hurry(g->breaker);
    g->losses = losses;
    fp_breaker_each(g->breaker, look_after, g);
    if (!fp_breaker_sweep(g->breaker, fp_now_ms()))
        ev_timer_stop(loop, w);
}

/* ---- what is asked ---- */

size_t fp_mount_health_enter(struct fp_mount_health *g, uint32_t mount)
{
    fp_breaker_enter(g->breaker, mount);
    if (!ev_is_active(&g->check))
        ev_timer_again(g->loop, &g->check);
    return fp_breaker_walks(g->breaker, mount);
}

void fp_mount_health_leave(struct fp_mount_health *g, uint32_t mount)
{
    fp_breaker_leave(g->breaker, mount);
}

void fp_mount_health_asked(struct fp_mount_health *g, uint32_t mount)
{
    fp_breaker_asked(g->breaker, mount, fp_now_ms());
}

bool fp_mount_health_is_out(void *ctx, uint32_t mount)
{
    const struct fp_mount_health *g = ctx;

    return fp_breaker_is_open(g->breaker, mount);
}

/* ---- start and end ---- */

struct fp_mount_health *fp_mount_health_create(struct ev_loop *loop, const struct fp_mount_health_deps *parts,
                                 uint32_t timeout_ms)
{
    struct fp_mount_health *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return NULL;
    g->loop = loop;
    g->parts = *parts;
    g->timeout_ms = timeout_ms;
    g->breaker = fp_breaker_create(timeout_ms);
    if (g->breaker == NULL) {
        free(g);
        return NULL;
    }
    ev_init(&g->check, on_check);
    g->check.repeat = CHECK_SECONDS;
    g->check.data = g;
    return g;
}

void fp_mount_health_destroy(struct fp_mount_health **gp)
{
    struct fp_mount_health *g = *gp;

    *gp = NULL;
    if (g == NULL)
        return;
    ev_timer_stop(g->loop, &g->check);
    while (!LIST_EMPTY(&g->probes))
        end_probe(LIST_FIRST(&g->probes));
    fp_breaker_destroy(&g->breaker);
    free(g);
}

void fp_mount_health_set(struct fp_mount_health *g, uint32_t timeout_ms)
{
    g->timeout_ms = timeout_ms;
    fp_breaker_set(g->breaker, timeout_ms);
}

struct fp_breaker_counts fp_mount_health_counts(const struct fp_mount_health *g)
{
    return fp_breaker_counts(g->breaker);
}
