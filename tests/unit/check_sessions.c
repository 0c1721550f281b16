/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "../lab/bench/args.h"
#include "../lab/bench/sessions.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

#define USERS 1000

static struct bench_args args;
static struct bench_sessions *sessions;
static int users[USERS];

static void setup(void)
{
    args = (struct bench_args){
        .connections = USERS, .sessions = 1, .session_requests = 4, .think_s = 1, .seed = 3
    };
    sessions = bench_sessions_create(&args);
    ck_assert_ptr_nonnull(sessions);
}

static void teardown(void)
{
    bench_sessions_destroy(&sessions);
    ck_assert_ptr_null(sessions);
}

START_TEST(nobody_is_never_due)
{
    ck_assert_uint_eq(bench_sessions_due(sessions), UINT64_MAX);
}
END_TEST

/* All think from the same moment on: they come out in order, each once, after 1 s on average. */
START_TEST(thinkers_come_in_the_order_of_their_time)
{
    const uint64_t begin = 5000000000;
    uint64_t last = begin;
    double sum = 0;

    for (int i = 0; i < USERS; i++)
        bench_sessions_think(sessions, &users[i], begin);
    for (int i = 0; i < USERS; i++) {
        uint64_t due = bench_sessions_due(sessions);
        int *user = bench_sessions_take(sessions);

        ck_assert_uint_ge(due, last);
        ck_assert_int_eq((*user)++, 0);
        last = due;
        sum += (double)(due - begin);
    }
    ck_assert_uint_eq(bench_sessions_due(sessions), UINT64_MAX);
    ck_assert_double_le(fabs(sum / USERS / 1e9 - 1), 0.15);
}
END_TEST

START_TEST(order_holds_while_some_come_and_go)
{
    uint64_t now = 0;

    for (int i = 0; i < USERS / 2; i++)
        bench_sessions_think(sessions, &users[i], now);
    for (int i = 0; i < 10 * USERS; i++) {
        uint64_t due = bench_sessions_due(sessions);

        ck_assert_uint_ge(due, now);
        now = due;
        bench_sessions_think(sessions, bench_sessions_take(sessions), now);
    }
}
END_TEST

START_TEST(fixed_lengths)
{
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(bench_sessions_length(sessions), 4);
}
END_TEST

START_TEST(geometric_lengths)
{
    const int count = 100000;
    double sum = 0;
    int ones = 0;

    args.geometric_sessions = true;
    for (int i = 0; i < count; i++) {
        uint64_t length = bench_sessions_length(sessions);

        ck_assert_uint_ge(length, 1);
        ones += length == 1 ? 1 : 0;
        sum += (double)length;
    }
    ck_assert_double_le(fabs(sum / count - 4), 0.1);
    ck_assert_double_le(fabs((double)ones / count - 0.25), 0.01);
}
END_TEST

static Suite *sessions_suite(void)
{
    Suite *suite = suite_create("sessions");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, nobody_is_never_due);
    tcase_add_test(tests, thinkers_come_in_the_order_of_their_time);
    tcase_add_test(tests, order_holds_while_some_come_and_go);
    tcase_add_test(tests, fixed_lengths);
    tcase_add_test(tests, geometric_lengths);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(sessions_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
