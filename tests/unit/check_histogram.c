/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "../lab/bench/histogram.h"

#include <check.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

static struct bench_histogram *histogram;

static void setup(void)
{
    histogram = bench_histogram_create();
    ck_assert_ptr_nonnull(histogram);
}

static void teardown(void)
{
    bench_histogram_destroy(&histogram);
    ck_assert_ptr_null(histogram);
}

static void check_near(uint64_t found, double expected)
{
    ck_assert_double_le(fabs((double)found - expected), expected * 0.008 + 0.5);
}

START_TEST(empty_is_zero)
{
    ck_assert_uint_eq(bench_histogram_count(histogram), 0);
    ck_assert_uint_eq(bench_histogram_min(histogram), 0);
    ck_assert_uint_eq(bench_histogram_max(histogram), 0);
    ck_assert_double_eq(bench_histogram_mean(histogram), 0.0);
    ck_assert_uint_eq(bench_histogram_percentile(histogram, 99), 0);
}
END_TEST

START_TEST(one_value_is_every_percentile)
{
    bench_histogram_add(histogram, 123456789);
    ck_assert_uint_eq(bench_histogram_percentile(histogram, 0), 123456789);
    ck_assert_uint_eq(bench_histogram_percentile(histogram, 50), 123456789);
    ck_assert_uint_eq(bench_histogram_percentile(histogram, 100), 123456789);
}
END_TEST

START_TEST(small_values_are_exact)
{
    for (uint64_t value = 1; value <= 200; value++)
        bench_histogram_add(histogram, value);
    ck_assert_uint_eq(bench_histogram_percentile(histogram, 50), 100);
    ck_assert_uint_eq(bench_histogram_percentile(histogram, 99.5), 199);
    ck_assert_uint_eq(bench_histogram_percentile(histogram, 100), 200);
    ck_assert_double_eq(bench_histogram_mean(histogram), 100.5);
}
END_TEST

START_TEST(nearest_rank)
{
    for (uint64_t value = 1; value <= 1000; value++)
        bench_histogram_add(histogram, value * 1000);
    check_near(bench_histogram_percentile(histogram, 50), 500e3);
    check_near(bench_histogram_percentile(histogram, 90), 900e3);
    check_near(bench_histogram_percentile(histogram, 99), 990e3);
    check_near(bench_histogram_percentile(histogram, 99.9), 999e3);
    ck_assert_uint_eq(bench_histogram_max(histogram), 1000000);
    ck_assert_uint_eq(bench_histogram_min(histogram), 1000);
}
END_TEST

START_TEST(outlier_shows_in_the_last_percentile_only)
{
    for (int i = 0; i < 999; i++)
        bench_histogram_add(histogram, 1000000);
    bench_histogram_add(histogram, UINT64_C(5000000000));
    check_near(bench_histogram_percentile(histogram, 99.9), 1e6);
    ck_assert_uint_eq(bench_histogram_percentile(histogram, 100), UINT64_C(5000000000));
}
END_TEST

START_TEST(error_is_bounded_everywhere)
{
    static const uint64_t offsets[] = { 0, 1, 2 };

    for (unsigned bit = 1; bit < 64; bit++) {
        for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
            uint64_t value = (UINT64_C(1) << bit) - 1 + offsets[i];
            struct bench_histogram *h = bench_histogram_create();

            ck_assert_ptr_nonnull(h);
            bench_histogram_add(h, value);
            bench_histogram_add(h, UINT64_MAX);
            ck_assert_uint_ge(bench_histogram_percentile(h, 50), value);
            check_near(bench_histogram_percentile(h, 50), (double)value);
            bench_histogram_destroy(&h);
        }
    }
}
END_TEST

static Suite *histogram_suite(void)
{
    Suite *suite = suite_create("histogram");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, empty_is_zero);
    tcase_add_test(tests, one_value_is_every_percentile);
    tcase_add_test(tests, small_values_are_exact);
    tcase_add_test(tests, nearest_rank);
    tcase_add_test(tests, outlier_shows_in_the_last_percentile_only);
    tcase_add_test(tests, error_is_bounded_everywhere);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(histogram_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
