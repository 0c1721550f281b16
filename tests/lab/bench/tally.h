/* SPDX-License-Identifier: Apache-2.0
 *
 * What was measured: latencies, statuses, failures.
 */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include "conn.h"
#include "effort.h"
#include "histogram.h"

#include <stdio.h>

struct bench_args;
struct bench_series;

#define BENCH_MAX_STATUS 1000

struct bench_tally {
    struct bench_histogram *latency;
    uint64_t answered; /* complete responses, right or wrong */
    uint64_t by_status[BENCH_MAX_STATUS];
    uint64_t unexpected[BENCH_MAX_STATUS]; /* of these the ones that failed by their status */
    uint64_t failures[BENCH_FAIL_COUNT];
    uint64_t warmup_failures;
    uint64_t unfinished; /* open loop: due, but the time was over */
    uint64_t late;       /* sent more than 1 ms after the intended start, for whatever reason */
    uint64_t sessions_started;
    uint64_t sessions_completed;
    uint64_t bytes;
    uint64_t connections;
    uint64_t retries;
    uint64_t start_ns; /* of the measurement, CLOCK_MONOTONIC */
    uint64_t end_ns;   /* last measured answer */
    struct bench_effort effort;
    const char *tls_protocol; /* or NULL */
    const char *tls_cipher;
    FILE *records;               /* or NULL */
    struct bench_series *series; /* or NULL */
};

/* One answered or failed request. */
struct bench_event {
    uint64_t start_ns; /* intended */
    uint64_t sent_ns;
    uint64_t end_ns;
    const char *path;
    size_t line;         /* of the list of paths */
    uint64_t connection; /* its number */
    uint64_t bytes;
    int status;  /* 0: no answer */
    bool failed; /* `failure` has the kind */
    enum bench_failure failure;
    bool warmup;
};

/* 0, or -1 after an error, which was printed. */
int bench_tally_open(struct bench_tally *tally, const struct bench_args *args);

/* 0, or -1 when records or series could not be written, which was printed. */
int bench_tally_close(struct bench_tally *tally);

void bench_tally_add(struct bench_tally *tally, const struct bench_event *event);

/* A request that was due, but was not answered when the time was over. */
void bench_tally_add_unfinished(struct bench_tally *tally, uint64_t start_ns);

/* Failures of all kinds, warm-up and unfinished ones included. */
uint64_t bench_tally_errors(const struct bench_tally *tally);

/* "connect", "closed", "malformed", "timeout", "body", "status". */
const char *bench_failure_name(enum bench_failure failure);

#endif
