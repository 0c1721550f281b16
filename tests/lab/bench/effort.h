/* SPDX-License-Identifier: Apache-2.0
 *
 * What the load generator needed itself: whether it was the limit, and not the server.
 */
#ifndef BENCH_EFFORT_H
#define BENCH_EFFORT_H

#include "histogram.h"

#include <stdbool.h>

struct bench_effort {
    /* The delay of requests sent late although a connection was free: the loop was busy or had no
     * processor. */
    struct bench_histogram *late_sends;
    double cpu;      /* processor time used, as a share of the time; valid after the end */
    double cpu_wait; /* time runnable without a processor; 0 where the kernel does not report it */
    uint64_t begin_ns;
    uint64_t cpu_begin_ns;
    uint64_t wait_begin_ns;
};

/* 0, or -1 when there is no memory. */
int bench_effort_open(struct bench_effort *effort);
void bench_effort_close(struct bench_effort *effort);

/* The measurement begins and ends. */
void bench_effort_begin(struct bench_effort *effort, uint64_t now_ns);
void bench_effort_end(struct bench_effort *effort, uint64_t now_ns);

/* Ways in which the client can be the limit. */
enum bench_limit {
    BENCH_LIMIT_CPU,        /* at work for nine tenths of the time */
    BENCH_LIMIT_CPU_WAIT,   /* at work or waiting for a processor for nine tenths of the time */
    BENCH_LIMIT_LATE_SENDS, /* one send in a hundred is over 1 ms late, and over a tenth of the
                               latency that only one request in a hundred exceeds */
    BENCH_LIMIT_COUNT
};

bool bench_effort_limited(const struct bench_effort *effort, const struct bench_histogram *latency,
                          enum bench_limit limit);

#endif
