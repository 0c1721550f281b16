/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/latency.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "shared/stats_table.h"
#include "wire/walk_result.h"
#include "wire/wire.h"

#define OTHERS    "(others)"
#define MINUTE_MS 60000u

struct row {
    char *point;
    uint64_t count, sum_us, calls;
    uint32_t longest_us;
    uint64_t buckets[FP_LATENCY_BUCKETS];
    uint64_t minute, calls_before; /* the minute of the last call, and the calls by its beginning */
    uint64_t calls_of_minute;      /* those of the minute before */
};

struct fp_latency {
    bool (*is_mounted)(void *ctx, const char *point);
    void *ctx;
    size_t n;
    size_t hand; /* the row that is looked at next for its mount being gone */
    struct row rows[FP_LATENCY_MOUNTS + 1]; /* the last: all others */
};

struct fp_latency *fp_latency_create(bool (*is_mounted)(void *ctx, const char *point), void *ctx)
{
    struct fp_latency *l = calloc(1, sizeof(*l));

    if (l != NULL) {
        l->is_mounted = is_mounted;
        l->ctx = ctx;
    }
    return l;
}

void fp_latency_destroy(struct fp_latency **lp)
{
    struct fp_latency *l = *lp;

    *lp = NULL;
    for (size_t i = 0; l != NULL && i < l->n; i++)
        free(l->rows[i].point);
    free(l);
}

static void add_up(struct row *to, const struct row *from)
{
    to->count += from->count;
    to->sum_us += from->sum_us;
    to->calls += from->calls;
    if (from->longest_us > to->longest_us)
        to->longest_us = from->longest_us;
    for (size_t i = 0; i < FP_LATENCY_BUCKETS; i++)
        to->buckets[i] += from->buckets[i];
}

/* The row of the point where there is no room: that of a mount which is gone, or the one of all others.  One
 * row is looked at each time, as each walk on one of too many mounts comes here. */
static struct row *make_room(struct fp_latency *l, const char *point)
{
    struct row *others = &l->rows[FP_LATENCY_MOUNTS], *r = &l->rows[l->hand];
    char *copy;

    l->hand = (l->hand + 1) % FP_LATENCY_MOUNTS;
    if (l->is_mounted(l->ctx, r->point))
        return others;
    copy = strdup(point);
    if (copy == NULL) {
        fp_memory_is_out();
        return others;
    }
    add_up(others, r);
    free(r->point);
    *r = (struct row){ .point = copy };
    return r;
}

/* NULL if there is none yet. */
static struct row *find(struct fp_latency *l, const char *point)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->rows[i].point, point) == 0)
            return &l->rows[i];
    }
    return NULL;
}

/* Returns NULL if there is no memory. */
static struct row *row_of(struct fp_latency *l, const char *point)
{
    struct row *r = find(l, point);

    if (r != NULL)
        return r;
    if (l->n > FP_LATENCY_MOUNTS)
        return make_room(l, point);
    l->rows[l->n].point = strdup(l->n < FP_LATENCY_MOUNTS ? point : OTHERS);
    if (l->rows[l->n].point == NULL)
        fp_memory_is_out();
    return l->rows[l->n].point != NULL ? &l->rows[l->n++] : NULL;
}

/* Begins the count of another minute. */
static void turn_minute(struct row *r, uint64_t now_ms)
{
    const uint64_t minute = now_ms / MINUTE_MS;

    if (minute == r->minute)
        return;
    r->calls_of_minute = minute == r->minute + 1 ? r->calls - r->calls_before : 0;
    r->calls_before = r->calls;
    r->minute = minute;
}

void fp_latency_add(struct fp_latency *l, const char *point, const struct fp_effort *effort, uint64_t now_ms)
{
    struct row *r = row_of(l, point);
    const uint32_t us = effort->us;
    unsigned bucket = 0;

    if (r == NULL)
        return;
    turn_minute(r, now_ms);
    r->calls += effort->calls;
    r->count++;
    r->sum_us += us;
    if (us > r->longest_us)
        r->longest_us = us;
    while (bucket < FP_LATENCY_BUCKETS - 1 && us > FP_LATENCY_FIRST_US << bucket)
        bucket++;
    r->buckets[bucket]++;
}

uint64_t fp_latency_calls(struct fp_latency *l, const char *point, uint64_t now_ms)
{
    struct row *r = find(l, point);

    if (r == NULL)
        return 0;
    turn_minute(r, now_ms);
    return r->calls_of_minute;
}

size_t fp_latency_line(void *ctx, uint32_t n, char *buf, size_t size)
{
    const struct fp_latency *l = ctx;
    const struct row *r = &l->rows[n];
    char point[FP_MAX_PATH + 1];
    size_t len;

    if (n >= l->n)
        return 0;
    fp_text_escape(point, sizeof(point), r->point, strlen(r->point));
    len = (size_t)snprintf(buf, size, "%s %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " ", point, r->count,
                           r->sum_us, r->longest_us, r->calls);
    for (unsigned i = 0; i < FP_LATENCY_BUCKETS; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s%" PRIu64, i > 0 ? "," : "", r->buckets[i]);
    buf[len++] = '\n';
    return len;
}
