/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a question: answered from the cache, joined to a walk that
 * is under way, or given to a helper.  The only place that sees connections,
 * cache and helpers together.  All functions run on the loop.
 */
#ifndef FP_DISPATCH_H
#define FP_DISPATCH_H

#include <stddef.h>
#include <stdint.h>

struct ev_loop;
struct fp_cache;
struct fp_dispatch;
struct fp_helpers;
struct fp_connection_ops;

struct fp_dispatch_counts {
    uint64_t hits, misses, joined, refreshed, unanswered;
    size_t inflight;
};

/* cache and helpers stay the caller's and must outlive it.  NULL: no memory. */
struct fp_dispatch *fp_dispatch_create(struct ev_loop *loop, struct fp_cache *cache,
                                       struct fp_helpers *helpers);
/* After the helpers and all connections are gone. */
void fp_dispatch_destroy(struct fp_dispatch **d);

/* What connections are created with; their ctx is the fp_dispatch. */
extern const struct fp_connection_ops fp_dispatch_ops;

struct fp_dispatch_counts fp_dispatch_counts(const struct fp_dispatch *d);

#endif
