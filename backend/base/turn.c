/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/turn.h"

#include <inttypes.h>
#include <stdbool.h>
#include <time.h>

#include "base/log.h"

#define BUDGET_NS ((uint64_t)FP_TURN_BUDGET_US * 1000)
#define SAMPLE_NS 1000000u /* the longest time from a look at the processor's clock to a piece's beginning */

static const char *const names[] = {
#define NAME(id, name) #name,
    FP_WORK_TABLE(NAME)
};

static struct {
    bool is_on;
    enum fp_work work;
    uint64_t piece_ns;                /* when it began */
    uint64_t sampled_ns, sampled_cpu; /* the last look at the processor's time */
    uint64_t long_pieces;
} now;

static uint64_t read_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The processor's clock is a call into the kernel, the clock on the wall is not. */
static void sample(uint64_t ns)
{
    now.sampled_ns = ns;
    now.sampled_cpu = read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Weighs a piece that took long by the clock on the wall. */
static void weigh(uint64_t wall)
{
    const uint64_t cpu = read_ns(CLOCK_THREAD_CPUTIME_ID) - now.sampled_cpu;
    const uint64_t took = cpu < wall ? cpu : wall;

    if (took <= BUDGET_NS)
        return;
    now.long_pieces++;
    fp_log(FP_LOG_INFO, 90, "the loop was busy with one piece of work (%s) for %" PRIu64 " us",
           names[now.work], took / 1000);
}

static void end_piece(uint64_t ns)
{
    if (ns - now.piece_ns > BUDGET_NS)
        weigh(ns - now.piece_ns);
    if (ns - now.sampled_ns > SAMPLE_NS)
        sample(ns);
    now.piece_ns = ns;
}

void fp_turn_begin(void)
{
    const uint64_t ns = read_ns(CLOCK_MONOTONIC);

    sample(ns);
    now.piece_ns = ns;
    now.work = FP_WORK_OTHER;
    now.is_on = true;
}

void fp_turn_end(void)
{
    if (now.is_on)
        end_piece(read_ns(CLOCK_MONOTONIC));
    now.is_on = false;
}

enum fp_work fp_turn_work(enum fp_work work)
{
    const enum fp_work before = now.work;

    if (now.is_on)
        end_piece(read_ns(CLOCK_MONOTONIC));
    now.work = work;
    return before;
}

uint64_t fp_turn_long_pieces(void)
{
    return now.long_pieces;
}
