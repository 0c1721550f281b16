/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "series.h"

#include "histogram.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each has a histogram. */
#define MAX_INTERVALS  100000u
#define FIRST_CAPACITY 64u

struct interval {
    uint64_t requests;
    uint64_t errors;
    struct bench_histogram *latency; /* NULL: nothing answered */
};

struct bench_series {
    FILE *file;
    double interval_s;
    struct interval *intervals;
    size_t count;
    size_t capacity;
    bool incomplete;
};

struct bench_series *bench_series_create(const char *file, double interval_s)
{
    struct bench_series *series = calloc(1, sizeof(*series));

    if (series == NULL) {
        (void)fputs("flashpache-bench: out of memory for --series\n", stderr);
        return NULL;
    }
    series->interval_s = interval_s;
    series->file = fopen(file, "we");
    if (series->file == NULL) {
        (void)fprintf(stderr, "flashpache-bench: cannot write %s: %s\n", file, strerror(errno));
        free(series);
        return NULL;
    }
    return series;
}

/* Makes room up to the index. */
static bool grow(struct bench_series *series, size_t index)
{
    size_t capacity = series->capacity == 0 ? FIRST_CAPACITY : series->capacity;
    struct interval *intervals;

    while (capacity <= index)
        capacity *= 2;
    if (capacity == series->capacity)
        return true;
    intervals = realloc(series->intervals, capacity * sizeof(*intervals));
    if (intervals == NULL)
        return false;
    memset(intervals + series->capacity, 0, (capacity - series->capacity) * sizeof(*intervals));
    series->intervals = intervals;
    series->capacity = capacity;
    return true;
}

static struct interval *interval_of(struct bench_series *series, uint64_t start_ns)
{
    double exact = (double)start_ns / 1e9 / series->interval_s;
    size_t index = exact < MAX_INTERVALS ? (size_t)exact : MAX_INTERVALS;

    if (index == MAX_INTERVALS || !grow(series, index))
        return NULL;
    if (index >= series->count)
        series->count = index + 1;
    return &series->intervals[index];
}

void bench_series_add(struct bench_series *series, const struct bench_series_event *event)
{
    struct interval *interval = interval_of(series, event->start_ns);

    if (interval != NULL && event->answered && interval->latency == NULL)
        interval->latency = bench_histogram_create();
    if (interval == NULL || (event->answered && interval->latency == NULL)) {
        series->incomplete = true;
        return;
    }
    interval->requests++;
    interval->errors += event->failed ? 1 : 0;
    if (event->answered)
        bench_histogram_add(interval->latency, event->latency_ns);
}

static void print_interval(const struct bench_series *series, size_t index)
{
    const struct interval *interval = &series->intervals[index];
    const struct bench_histogram *latency = interval->latency;
    uint64_t answered = latency == NULL ? 0 : bench_histogram_count(latency);

    (void)fprintf(series->file, "%.6g\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
                  (double)index * series->interval_s, interval->requests, answered, interval->errors);
    if (latency == NULL)
        (void)fputs("\tnan\tnan\tnan\tnan\n", series->file);
    else
        (void)fprintf(series->file, "\t%.6f\t%.6f\t%.6f\t%.6f\n", bench_histogram_mean(latency) / 1e6,
                      (double)bench_histogram_percentile(latency, 50) / 1e6,
                      (double)bench_histogram_percentile(latency, 99) / 1e6,
                      (double)bench_histogram_max(latency) / 1e6);
}

static int write_all(struct bench_series *series)
{
    int failed;

    (void)fputs("start_s\trequests\tanswered\terrors\tmean_ms\tp50_ms\tp99_ms\tmax_ms\n", series->file);
    for (size_t i = 0; i < series->count; i++)
        print_interval(series, i);
    failed = ferror(series->file);
    if (fclose(series->file) != 0 || failed) {
        (void)fputs("flashpache-bench: could not write the series (disk full?)\n", stderr);
        return -1;
    }
    if (series->incomplete) {
        (void)fprintf(stderr,
                      "flashpache-bench: the series lacks requests: out of memory, or more than "
                      "%u intervals\n",
                      MAX_INTERVALS);
        return -1;
    }
    return 0;
}

int bench_series_close(struct bench_series **series)
{
    int status;

    if (*series == NULL)
        return 0;
    status = write_all(*series);
    for (size_t i = 0; i < (*series)->count; i++)
        bench_histogram_destroy(&(*series)->intervals[i].latency);
    free((*series)->intervals);
    free(*series);
    *series = NULL;
    return status;
}
