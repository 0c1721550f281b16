/* SPDX-License-Identifier: Apache-2.0
 *
 * A histogram of durations with a bounded relative error: values below 2^8 ns are exact,
 * larger ones fall into 128 steps per power of two (error below 0.8 %). Least, greatest,
 * sum and count are exact.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

struct bench_histogram;

/* NULL when there is no memory. */
struct bench_histogram *bench_histogram_create(void);
void bench_histogram_destroy(struct bench_histogram **histogram);

void bench_histogram_add(struct bench_histogram *histogram, uint64_t ns);

uint64_t bench_histogram_count(const struct bench_histogram *histogram);

/* All four are 0 for an empty histogram. */
uint64_t bench_histogram_min(const struct bench_histogram *histogram);
uint64_t bench_histogram_max(const struct bench_histogram *histogram);
double bench_histogram_mean(const struct bench_histogram *histogram);

/*
 * The smallest value that at least `percent` of the values (0 to 100) do not exceed (nearest rank). It is
 * rounded up to the end of its step, but never above the greatest value.
 */
uint64_t bench_histogram_percentile(const struct bench_histogram *histogram, double percent);

#endif
