/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that the status page tells, gathered at once: the module's counters and
 * the daemon's own.
 */
#ifndef FP_SNAPSHOT_H
#define FP_SNAPSHOT_H

#include <httpd.h>

#include "common/errors.h"
#include "status/counters.h"

struct fp_snapshot_host {
    const char *name;
    apr_uint64_t counts[FP_COUNTS];
};

/* One of the daemon's counters. */
struct fp_figure {
    const char *name;                /* [a-z0-9_]+ */
    apr_uint64_t value;
};

struct fp_snapshot {
    const apr_array_header_t *hosts; /* of struct fp_snapshot_host */
    struct fp_snapshot_host total;
    struct fp_usage held;
    unsigned children;
    const char *socket;
    fp_status daemon;                /* FP_OK, or why it told nothing */
    apr_array_header_t *from_daemon; /* of struct fp_figure */
};

/*
 * post_config, once settings are finished: makes the counters.  socket: the daemon's.
 * counted_as returns where a server's number among the counters is stored; NULL: it is not
 * counted.
 */
void fp_snapshot_init(apr_pool_t *pconf, server_rec *s, const char *socket,
                      unsigned *(*counted_as)(const server_rec *s));

/* The module's; the daemon is not asked. */
void fp_snapshot_count(request_rec *r, struct fp_snapshot *f);

/* The daemon's; waits for it a second at most. */
void fp_snapshot_ask(request_rec *r, struct fp_snapshot *f);

/* From one outcome to another, both counted. */
apr_uint64_t fp_snapshot_sum(const struct fp_snapshot_host *h, enum fp_count from,
                            enum fp_count to);

/* Why the daemon did not answer, for people. */
const char *fp_snapshot_daemon_problem(const struct fp_snapshot *f);

#endif
