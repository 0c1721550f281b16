/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "effort.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#define BUSY_SHARE   0.9
#define LATE_PERCENT 99
#define LATE_NS      1000000
#define LATE_SHARE   0.1

int bench_effort_open(struct bench_effort *effort)
{
    *effort = (struct bench_effort){ .late_sends = bench_histogram_create() };
    return effort->late_sends == NULL ? -1 : 0;
}

void bench_effort_close(struct bench_effort *effort)
{
    bench_histogram_destroy(&effort->late_sends);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* The second number of the file, in ns. */
static uint64_t wait_ns(void)
{
    FILE *file = fopen("/proc/self/schedstat", "re");
    uint64_t ran;
    uint64_t waited = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
        waited = 0;
    (void)fclose(file);
    return waited;
}

void bench_effort_begin(struct bench_effort *effort, uint64_t now_ns)
{
    effort->begin_ns = now_ns;
    effort->cpu_begin_ns = cpu_ns();
    effort->wait_begin_ns = wait_ns();
}

void bench_effort_end(struct bench_effort *effort, uint64_t now_ns)
{
    double elapsed = (double)(now_ns - effort->begin_ns);

    if (effort->begin_ns == 0 || elapsed <= 0)
        return;
    effort->cpu = (double)(cpu_ns() - effort->cpu_begin_ns) / elapsed;
    effort->cpu_wait = (double)(wait_ns() - effort->wait_begin_ns) / elapsed;
}

static bool sends_late(const struct bench_effort *effort, const struct bench_histogram *latency)
{
    uint64_t late = bench_histogram_percentile(effort->late_sends, LATE_PERCENT);

    return late > LATE_NS
           && (double)late > LATE_SHARE * (double)bench_histogram_percentile(latency, LATE_PERCENT);
}

bool bench_effort_limited(const struct bench_effort *effort, const struct bench_histogram *latency,
                          enum bench_limit limit)
{
    switch (limit) {
    case BENCH_LIMIT_CPU: return effort->cpu > BUSY_SHARE;
    case BENCH_LIMIT_CPU_WAIT:
        return effort->cpu <= BUSY_SHARE && effort->cpu + effort->cpu_wait > BUSY_SHARE;
    case BENCH_LIMIT_LATE_SENDS: return sends_late(effort, latency);
    case BENCH_LIMIT_COUNT: break;
    }
    return false;
}
