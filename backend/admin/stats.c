/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admin/wakeups.h"
#include "cache/cache.h"
#include "changes/coherence.h"
#include "common/log.h"
#include "common/stats_table.h"
#include "fleet/fleet.h"
#include "ipc/listener.h"
#include "lookup/dispatch.h"
#include "workers/worker_pool.h"

#define LINE_SIZE 2048

struct values {
    struct fp_cache_counts cache;
    struct fp_dispatch_counts dispatch;
    struct fp_fleet_counts fleet;
    struct fp_coherence_counts fresh;
    struct fp_worker_pool_counts helpers;
    struct fp_listener_counts listener;
    struct fp_wakeups loop;
    uint64_t resident_bytes;     /* read only when it is told: by value_of() */
};

#define ROW(name, field, type, help) { #name, offsetof(struct values, field), \
                                       sizeof(((struct values *)NULL)->field) },

static const struct { const char *name; size_t at, size; } rows[] = { FP_STATS_TABLE(ROW) };
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* 0: unknown. */
static uint64_t resident_bytes(int statm)
{
    unsigned long total, resident;
    char text[128];
    ssize_t n = pread(statm, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%lu %lu", &total, &resident) != 2)
        return 0;
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void collect(const struct fp_stats *s, struct values *v)
{
    v->cache = fp_cache_counts(s->cache);
    v->dispatch = fp_dispatch_counts(s->dispatch);
    v->fleet = fp_fleet_counts(*s->fleet);
    v->fresh = fp_coherence_counts(s->fresh);
    v->helpers = fp_worker_pool_counts(s->helpers);
    v->listener = fp_listener_counts(s->listener);
    v->loop = *s->loop;
}

/* A counter is of 32 or 64 bits. */
static uint64_t value_of(const struct values *v, size_t row, int statm)
{
    const char *p = (const char *)v + rows[row].at;
    uint64_t wide;
    uint32_t narrow;

    if (rows[row].at == offsetof(struct values, resident_bytes))
        return resident_bytes(statm);
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
                                i > 0 ? " " : "", rows[i].name, value_of(&v, i, s->statm));
    fp_log(FP_LOG_INFO, 6, "%s", line);
}

size_t fp_stats_line(void *ctx, uint32_t n, char *room, size_t size)
{
    const struct fp_stats *s = ctx;
    struct values v;

    if (n >= ROWS)
        return 0;
    collect(s, &v);
    return (size_t)snprintf(room, size, "%s %" PRIu64 "\n", rows[n].name,
                            value_of(&v, n, s->statm));
}
