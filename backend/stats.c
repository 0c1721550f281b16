/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cache.h"
#include "dispatch.h"
#include "fresh.h"
#include "helper.h"
#include "listener.h"
#include "log.h"

#define LINE_SIZE 2048

struct values {
    struct fp_cache_counts cache;
    struct fp_dispatch_counts dispatch;
    struct fp_fresh_counts fresh;
    struct fp_helpers_counts helpers;
    struct fp_listener_counts listener;
};

#define ROW(name, field) { name, offsetof(struct values, field), \
                           sizeof(((struct values *)NULL)->field) }

static const struct { const char *name; size_t at, size; } rows[] = {
    ROW("hits", dispatch.hits),
    ROW("misses", dispatch.misses),
    ROW("joined", dispatch.joined),
    ROW("refreshed", dispatch.refreshed),
    ROW("stale", dispatch.stale),
    ROW("unanswered", dispatch.unanswered),
    ROW("unavailable", dispatch.unavailable),
    ROW("trips", dispatch.trips),
    ROW("out_of_service", dispatch.out),
    ROW("inflight", dispatch.inflight),
    ROW("files", cache.files),
    ROW("directories", cache.directories),
    ROW("places", cache.places),
    ROW("absent", cache.absent),
    ROW("bytes", cache.bytes),
    ROW("content_files", cache.content_files),
    ROW("content_bytes", cache.content_bytes),
    ROW("watches", cache.watches),
    ROW("events", fresh.events),
    ROW("changes", cache.changes),
    ROW("losses", fresh.losses),
    ROW("evictions", cache.evictions),
    ROW("walks", helpers.walks),
    ROW("timeouts", helpers.timeouts),
    ROW("deaths", helpers.deaths),
    ROW("helpers", helpers.alive),
    ROW("running", helpers.running),
    ROW("queued", helpers.queued),
    ROW("connections", listener.open),
    ROW("accepted", listener.accepted),
    ROW("refused", listener.refused),
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void collect(const struct fp_stats *s, struct values *v)
{
    v->cache = fp_cache_counts(s->cache);
    v->dispatch = fp_dispatch_counts(s->dispatch);
    v->fresh = fp_fresh_counts(s->fresh);
    v->helpers = fp_helpers_counts(s->helpers);
    v->listener = fp_listener_counts(s->listener);
}

/* A counter is of 32 or 64 bits. */
static uint64_t value_of(const struct values *v, size_t row)
{
    const char *p = (const char *)v + rows[row].at;
    uint64_t wide;
    uint32_t narrow;

    if (rows[row].size == sizeof(narrow)) {
        memcpy(&narrow, p, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, p, sizeof(wide));
    return wide;
}

void fp_stats_log(const struct fp_stats *s)
{
    char line[LINE_SIZE];
    struct values v;
    size_t len = 0;

    collect(s, &v);
    for (size_t i = 0; i < ROWS && len < sizeof(line); i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s=%" PRIu64,
                                i > 0 ? " " : "", rows[i].name, value_of(&v, i));
    fp_log(FP_LOG_INFO, 6, "%s", line);
}

size_t fp_stats_line(void *ctx, uint32_t n, char *room, size_t size)
{
    struct values v;

    if (n >= ROWS)
        return 0;
    collect(ctx, &v);
    return (size_t)snprintf(room, size, "%s %" PRIu64 "\n", rows[n].name, value_of(&v, n));
}
