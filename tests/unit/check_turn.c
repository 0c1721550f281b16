/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of the loop: the pieces of work that count as long; and want of memory. */
#include "config.h"
#include "base/turn.h"

#include <time.h>

#include "base/memory.h"
#include "unit.h"

static uint64_t wall_us = 1000000, cpu_us = 500000;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    const uint64_t us = clock == CLOCK_MONOTONIC ? wall_us : cpu_us;

    if (clock != CLOCK_MONOTONIC && clock != CLOCK_THREAD_CPUTIME_ID)
        return __real_clock_gettime(clock, ts);
    *ts = (struct timespec){ .tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000 };
    return 0;
}

/* Work for so long, and as long a wait for the processor. */
static void spend(uint64_t work_us, uint64_t wait_us)
{
    cpu_us += work_us;
    wall_us += work_us + wait_us;
}

START_TEST(long_pieces)
{
    fp_turn_work(FP_WORK_QUESTION);
    spend(100000, 0);
    fp_turn_end();
    ck_assert_uint_eq(fp_turn_long_pieces(), 0); /* no turn had begun */
    fp_turn_begin();
    fp_turn_work(FP_WORK_EVENTS);
    spend(FP_TURN_BUDGET_US, 0);
    ck_assert_int_eq((int)fp_turn_work(FP_WORK_QUESTION), FP_WORK_EVENTS);
    spend(FP_TURN_BUDGET_US + 1, 0);
    fp_turn_work(FP_WORK_RESULT);
    spend(10, 0);
    fp_turn_end();
    ck_assert_uint_eq(fp_turn_long_pieces(), 1);
    /* The loop's wait between turns counts for no turn. */
    spend(0, 100000);
    fp_turn_begin();
    spend(10, 0);
    fp_turn_end();
    ck_assert_uint_eq(fp_turn_long_pieces(), 1);
}
END_TEST

/* A machine that lets the daemon wait makes no piece long. */
START_TEST(waiting_is_not_work)
{
    fp_turn_begin();
    for (int i = 0; i < 100; i++) {
        fp_turn_work(FP_WORK_QUESTION);
        spend(10, 20000);
    }
    fp_turn_end();
    ck_assert_uint_eq(fp_turn_long_pieces(), 0);
}
END_TEST

/* Many short pieces take long together, and none of them is long. */
START_TEST(many_short_pieces)
{
    fp_turn_begin();
    for (int i = 0; i < 1000; i++) {
        fp_turn_work(FP_WORK_QUESTION);
        spend(20, 0);
    }
    /* One that waits, after them: their time is not taken for its own. */
    fp_turn_work(FP_WORK_TIMER);
    spend(100, 50000);
    fp_turn_end();
    ck_assert_uint_eq(fp_turn_long_pieces(), 0);
}
END_TEST

/* AddressSanitizer asks for it. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

START_TEST(no_memory)
{
    void *p = fp_memory_take(100);

    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq(fp_memory_failures(), 0);
    ck_assert_ptr_null(fp_memory_resize(p, SIZE_MAX / 4));
    ck_assert_ptr_null(fp_memory_take(SIZE_MAX / 4));
    ck_assert_ptr_null(fp_memory_take_zeroed(SIZE_MAX / 8, 2));
    ck_assert_uint_eq(fp_memory_failures(), 3);
    free(p);
    fp_memory_give_back();
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("turn");
    TCase *t = unit_add_case(s, "turn", NULL, NULL, 0);

    tcase_add_test(t, long_pieces);
    tcase_add_test(t, waiting_is_not_work);
    tcase_add_test(t, many_short_pieces);
    tcase_add_test(t, no_memory);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
