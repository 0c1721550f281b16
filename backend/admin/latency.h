/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long workers' walks take, a histogram for each mount point, and how many calls they make there.  Bounded: walks
 * on the mounts above FP_LATENCY_MOUNTS are counted as one, "(others)".
 */
#ifndef FP_LATENCY_H
#define FP_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FP_LATENCY_MOUNTS 64

struct fp_latency;
struct fp_effort;

/*
 * is_mounted: true if a file system is still mounted at that point.  Where there is no room, a point at which
 * none is gives way, and its walks count as those of others.  Returns NULL if there is no memory.
 */
struct fp_latency *fp_latency_create(bool (*is_mounted)(void *ctx, const char *point), void *ctx);
void fp_latency_destroy(struct fp_latency **l);

/* Counts a walk that ended at now_ms on the file system mounted at that point. */
void fp_latency_add(struct fp_latency *l, const char *point, const struct fp_effort *effort, uint64_t now_ms);
/* How many calls the walks there made in the minute before that of now_ms. */
uint64_t fp_latency_calls(struct fp_latency *l, const char *point, uint64_t now_ms);

/*
 * A report (control.h), a line for each mount point that was walked on; ctx is a
 * struct fp_latency.  "POINT COUNT SUM_US LONGEST_US CALLS N,N,...": the point escaped as by
 * fp_text_escape(), then how many walks there were in each bucket.
 */
size_t fp_latency_line(void *ctx, uint32_t n, char *buf, size_t size);

#endif
