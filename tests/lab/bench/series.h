/* SPDX-License-Identifier: Apache-2.0
 *
 * A time series: how requests fared by the interval in which they were intended to start.
 */
#ifndef BENCH_SERIES_H
#define BENCH_SERIES_H

#include <stdbool.h>
#include <stdint.h>

struct bench_series;

/* NULL after an error, which was printed. */
struct bench_series *bench_series_create(const char *file, double interval_s);

/* A request intended to start so long after the measurement's begin. */
struct bench_series_event {
    uint64_t start_ns;
    uint64_t latency_ns;
    bool answered;
    bool failed;
};

void bench_series_add(struct bench_series *series, const struct bench_series_event *event);

/* Writes the file; NULL is left alone. 0, or -1 after an error, which was printed. */
int bench_series_close(struct bench_series **series);

#endif
