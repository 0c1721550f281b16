/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/latency.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/stats_table.h"
#include "common/text.h"
#include "common/wire.h"

#define OTHERS "(others)"

struct row {
    char *point;
    uint64_t count, sum_us;
    uint32_t longest_us;
    uint64_t buckets[FP_LATENCY_BUCKETS];
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

/* Returns NULL if there is no memory. */
static struct row *row_of(struct fp_latency *l, const char *point)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->rows[i].point, point) == 0)
            return &l->rows[i];
    }
    if (l->n > FP_LATENCY_MOUNTS)
        return make_room(l, point);
    l->rows[l->n].point = strdup(l->n < FP_LATENCY_MOUNTS ? point : OTHERS);
    if (l->rows[l->n].point == NULL)
        fp_memory_is_out();
    return l->rows[l->n].point != NULL ? &l->rows[l->n++] : NULL;
}

void fp_latency_add(struct fp_latency *l, const char *point, uint32_t us)
{
    struct row *r = row_of(l, point);
    unsigned bucket = 0;

    if (r == NULL)
        return;
    r->count++;
    r->sum_us += us;
    if (us > r->longest_us)
        r->longest_us = us;
    while (bucket < FP_LATENCY_BUCKETS - 1 && us > FP_LATENCY_FIRST_US << bucket)
        bucket++;
    r->buckets[bucket]++;
}

size_t fp_latency_line(void *ctx, uint32_t n, char *buf, size_t size)
{
    const struct fp_latency *l = ctx;
    char point[FP_MAX_PATH + 1];
    size_t len;

    if (n >= l->n)
        return 0;
    fp_text_escape(point, sizeof(point), l->rows[n].point, strlen(l->rows[n].point));
    len = (size_t)snprintf(buf, size, "%s %" PRIu64 " %" PRIu64 " %" PRIu32 " ", point, l->rows[n].count,
                           l->rows[n].sum_us, l->rows[n].longest_us);
    for (unsigned i = 0; i < FP_LATENCY_BUCKETS; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s%" PRIu64, i > 0 ? "," : "", l->rows[n].buckets[i]);
    buf[len++] = '\n';
    return len;
}
