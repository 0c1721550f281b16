/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator's requests (CONTROL frames): to forget a path, to report on the daemon and on
 * the state of a path, to log more.  All functions run on the loop.
 */
#ifndef FP_CONTROL_H
#define FP_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

#define FP_REPORT_LINE 8192 /* bytes, the most that one line of a report may have */

struct fp_cache;
struct fp_mounts;

/*
 * Lines of a report, by number from 0.  line() writes one, with its line end and
 * not terminated, into buf of size bytes, FP_REPORT_LINE at least.  It returns
 * the line's length; 0: there are no more.  NULL: there is no such report.
 */
struct fp_report_source {
    size_t (*line)(void *ctx, uint32_t n, char *buf, size_t size);
    void *ctx;
};

/* All of them are the caller's. */
struct fp_control_deps {
    const struct fp_cache *cache;
    const struct fp_mounts *mounts;
    /* Forgets the path, or with tree the path and everything below it, and returns how many
     * entries there were. */
    size_t (*forget)(void *ctx, const char *path, size_t len, bool tree);
    /* Called with the same arguments after forget; NULL: nothing more is to do. */
    void (*purged)(void *ctx, const char *path, size_t len, bool tree);
    void *ctx;                                       /* of both */
    struct fp_report_source reports[FP_REPORTS + 1]; /* by enum fp_report */
};

/*
 * Does what a decoded CONTROL says; reply->text is good until the next call.  A report that
 * changes while it is read in parts may miss a line or repeat it.
 */
void fp_control_answer(const struct fp_control_deps *deps, const struct fp_control *question,
                       struct fp_reply *reply);

#endif
