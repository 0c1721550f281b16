/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of all parts of the daemon, under the names that operators see.
 */
#ifndef FP_STATS_H
#define FP_STATS_H

#include <stddef.h>
#include <stdint.h>

struct fp_cache;
struct fp_dispatch;
struct fp_fleet;
struct fp_coherence;
struct fp_worker_pool;
struct fp_listener;
struct fp_wakeups;

/* Whose counters. */
struct fp_stats {
    const struct fp_cache *cache;
    const struct fp_dispatch *dispatch;
    const struct fp_coherence *fresh;
    const struct fp_worker_pool *helpers;
    const struct fp_listener *listener;
    struct fp_fleet *const *fleet;     /* it comes and goes with the configuration */
    const struct fp_wakeups *loop;
    int statm;                         /* /proc/self/statm, kept open; -1: unknown */
};

/* Logs one line of counters, "name=value" each. */
void fp_stats_log(const struct fp_stats *s);

/* The same as a report (control.h), a line "name value" for each; ctx is a struct fp_stats. */
size_t fp_stats_line(void *ctx, uint32_t n, char *room, size_t size);

#endif
