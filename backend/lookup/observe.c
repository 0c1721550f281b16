/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/observe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/latency.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "changes/mounts.h"
#include "lookup/mount_health.h"
#include "wire/answer.h"
#include "wire/walk_result.h"
#include "wire/wire.h"

#define UNKNOWN "(unknown)"
#define SHOWN   1024     /* bytes of an escaped path */
#define SLOW_US 1000000u /* and more is logged */

static bool is_mounted(void *ctx, const char *point)
{
    const struct fp_observer *o = ctx;
    const size_t len = strlen(point);
    const struct fp_mount *m = point[0] == '/' ? fp_mounts_of_path(o->mounts, point, len) : NULL;

    return point[0] != '/' || (m != NULL && strlen(m->point) == len);
}

int fp_observer_init(struct fp_observer *o, const struct fp_mounts *mounts)
{
    o->mounts = mounts;
    o->health = NULL;
    o->latency = fp_latency_create(is_mounted, o);
    return o->latency != NULL ? 0 : -1;
}

void fp_observer_clear(struct fp_observer *o)
{
    fp_latency_destroy(&o->latency);
}

/* A worker measures its own walks; for a worker that was killed only the time is known. */
static struct fp_effort effort_of(const struct fp_observed *w, uint64_t now_ms)
{
    const uint64_t ms = now_ms - w->began_ms;
    const uint32_t us = ms < UINT32_MAX / 1000 ? (uint32_t)ms * 1000 : UINT32_MAX;

    if (w->result != NULL)
        return w->result->effort;
    return (struct fp_effort){ .us = us, .call = FP_CALL_NONE };
}

/* The path comes last: if the line is too long, it is the path that is cut. */
static void log_slow(const struct fp_observed *w, const char *point, const struct fp_effort *e)
{
    char shown[SHOWN], path[SHOWN];

    fp_text_escape(shown, sizeof(shown), point, strlen(point));
    fp_text_escape(path, sizeof(path), w->lookup->path, w->lookup->path_len);
    if (e->call == FP_CALL_NONE)
        fp_log(FP_LOG_WARNING, 46,
               "slow lookup: %" PRIu32 " ms and no answer from the file system at %s; %u waited for %s",
               e->us / 1000, shown, w->waited, path);
    else
        fp_log(FP_LOG_WARNING, 46,
               "slow lookup: %" PRIu32 " ms, %" PRIu32 " ms of them in one %s, on the file system at %s; %u waited "
               "for %s",
               e->us / 1000, e->longest_us / 1000, fp_call_text(e->call), shown, w->waited, path);
}

void fp_observe_walk(struct fp_observer *o, const struct fp_observed *w)
{
    const uint64_t now_ms = fp_now_ms();
    struct fp_effort effort;
    const struct fp_mount *m;
    const char *point;

    /* A walk that never began took no time. */
    if (o == NULL || w->began_ms == 0)
        return;
    m = fp_mounts_find(o->mounts, fp_mount_health_end_of(w->mount, w->answer, w->result));
    point = m != NULL ? m->point : UNKNOWN;
    effort = effort_of(w, now_ms);
    fp_latency_add(o->latency, point, &effort, now_ms);
    if (effort.us >= SLOW_US)
        log_slow(w, point, &effort);
}

size_t fp_observer_mount_line(void *ctx, uint32_t n, char *buf, size_t size)
{
    struct fp_observer *o = ctx;
    char point[FP_MAX_PATH + 1], type[64];
    const struct fp_mount *m;

    if (n >= fp_mounts_count(o->mounts))
        return 0;
    m = fp_mounts_at(o->mounts, n);
    fp_text_escape(point, sizeof(point), m->point, strlen(m->point));
    fp_text_escape(type, sizeof(type), m->type, strlen(m->type));
    return (size_t)snprintf(buf, size,
                            "%s %s %s ttl_ms=%u negative_ttl_ms=%u stale_if_error_ms=%u calls_per_minute=%" PRIu64
                            "%s\n",
                            point, type, fp_verdict_text(m->traits.verdict),
                            fp_verdict_ms(m->traits.verdict, m->ttl_ms, m->ttl_ms),
                            fp_verdict_ms(m->traits.verdict, m->negative_ttl_ms, m->negative_ttl_ms),
                            m->stale_if_error_ms, fp_latency_calls(o->latency, m->point, fp_now_ms()),
                            o->health != NULL && fp_mount_health_is_out(o->health, m->id) ? " out-of-service" : "");
}
