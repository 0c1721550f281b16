/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A monotonic clock that goes on when the test lets it.  For one source file of a program, linked with
 * --wrap=clock_gettime.
 */
#ifndef FP_PLAYED_CLOCK_H
#define FP_PLAYED_CLOCK_H

#include <stdint.h>
#include <time.h>

static uint64_t played_ms = 1000000;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, ts);
    *ts = (struct timespec){ .tv_sec = (time_t)(played_ms / 1000),
                             .tv_nsec = (long)(played_ms % 1000) * 1000000 };
    return 0;
}

static inline void let_pass(unsigned ms)
{
    played_ms += ms;
}

#endif
