/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator may ask of the daemon (a CONTROL frame): to forget, to tell about
 * itself and what it knows of a path, to log more.  All functions run on the loop.
 */
#ifndef FP_CONTROL_H
#define FP_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire.h"

#define FP_REPORT_LINE 8192   /* bytes, the most that one line of a report may have */

struct fp_cache;
struct fp_dispatch;
struct fp_coherence;

/*
 * Lines of a report, by number from 0.  line() writes one, with its line end and
 * not terminated, into room for size bytes, FP_REPORT_LINE at least, and returns
 * its length; 0: there are no more.  NULL: there is no such report.
 */
struct fp_report_source {
    size_t (*line)(void *ctx, uint32_t n, char *room, size_t size);
    void *ctx;
};

/* Whom it asks. */
struct fp_control_deps {
    struct fp_dispatch *dispatch;
    const struct fp_cache *cache;
    const struct fp_coherence *fresh;
    /* Told of what was forgotten, after it was; NULL: nobody. */
    void (*purged)(void *ctx, const char *path, size_t len, bool tree);
    void *purged_ctx;
    struct fp_report_source reports[FP_REPORTS + 1];   /* by enum fp_report */
};

/* Does what a decoded CONTROL says; done->text is good until the next call. */
void fp_control_answer(const struct fp_control_deps *parts, const struct fp_control *question,
                       struct fp_reply *done);

/* Forgets what a decoded PURGE says, and logs it. */
void fp_control_purge(const struct fp_control_deps *parts, const struct fp_control *question,
                      struct fp_reply *done);

/*
 * As many lines from that number on as one answer can hold, at least one if there
 * is one.  done->text is good until the next call.  A report that changes while
 * it is read in parts may miss a line or tell it twice.
 */
void fp_control_report(const struct fp_report_source *source, uint32_t from,
                       struct fp_reply *done);

#endif
