/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports (control.h) of the daemon as a whole: its counters, under the names that operators
 * see (stats_table.h), and its version, identity and limits.
 */
#ifndef FP_STATS_H
#define FP_STATS_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/report.h"

struct fp_conf;

#define FP_STATS_FIELD(name, field, type, help) field, /* for collect() */

struct fp_stats {
    /* Writes all counters, in the order of the table. */
    void (*collect)(void *ctx, uint64_t values[FP_STATS]);
    void *ctx;
    uint64_t snapshot[FP_STATS]; /* taken with the first line of a report */
};

/* Logs one line of counters, "name=value" each. */
void fp_stats_log(struct fp_stats *s);

/* Writes the same as a report, a line "name value" for each; ctx is a struct fp_stats. */
size_t fp_stats_line(void *ctx, uint32_t n, char *buf, size_t size);

/* The daemon's memory in bytes; statm is /proc/self/statm, kept open.  0: unknown. */
uint64_t fp_stats_resident_bytes(int statm);

/*
 * How many events are ready each time that the loop wakes up: near one where work
 * comes evenly, many where it comes in bursts.  And the loop's turns (turn.h).
 */
struct fp_wakeups {
    ev_check check;
    ev_prepare prepare;
    uint64_t wakeups, ready;
};

/* Counts from now on, as long as the loop runs; w must live as long. */
void fp_wakeups_count(struct fp_wakeups *w, struct ev_loop *loop);

/* Facts about the daemon itself. */
struct fp_about {
    const struct fp_conf *conf; /* as it was started */
    const char *file;           /* where that was read */
    size_t descriptors;         /* that the process may hold */
    size_t max_connections;     /* of these, at most for connections */
    uint64_t began_ms;          /* clock.h */
    bool seccomp;               /* filters of system calls hold */
    bool prompt;                /* it runs as soon as an event comes */
    bool supervised;            /* httpd started it */
};

/* A report, "KEY VALUE" a line; ctx is a struct fp_about. */
size_t fp_about_line(void *ctx, uint32_t n, char *buf, size_t size);

#endif
