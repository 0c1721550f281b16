/* SPDX-License-Identifier: Apache-2.0 */
/* Size classes: the syntax of sizes, the priority of a remainder, and the bounds. */
#include "config.h"
#include "unit.h"
#include "srpt/schedule_class.h"

#define K 1024

START_TEST(a_size_has_a_unit_or_none)
{
    int64_t bytes = 0;

    ck_assert(fp_bytes_parse("500", &bytes));
    ck_assert_int_eq(bytes, 500);
    ck_assert(fp_bytes_parse("20K", &bytes));
    ck_assert_int_eq(bytes, 20 * K);
    ck_assert(fp_bytes_parse("3m", &bytes));
    ck_assert_int_eq(bytes, 3 * K * K);
}
END_TEST

START_TEST(what_is_no_size)
{
    static const char *const wrong[] = { "",           "K",   "0",   "0K", "-1",   "+1",
                                         " 1",         "1 K", "1KB", "1G", "1.5K", "99999999999999999999",
                                         "1000000000M" };
    int64_t bytes = 7;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(!fp_bytes_parse(wrong[i], &bytes), "\"%s\" was taken", wrong[i]);
    ck_assert_int_eq(bytes, 7);
}
END_TEST

/* The table of the paper. */
START_TEST(usual_classes)
{
    static const struct {
        int64_t remaining;
        int priority;
    } rows[] = {
        { -1, 1 },         { 0, 1 },         { 1, 1 },          { 1 * K, 1 },     { 1 * K + 1, 2 },
        { 2 * K, 2 },      { 2 * K + 1, 3 }, { 5 * K, 3 },      { 5 * K + 1, 4 }, { 20 * K, 4 },
        { 20 * K + 1, 5 }, { 50 * K, 5 },    { 50 * K + 1, 6 }, { INT64_MAX, 6 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_int_eq(fp_classes_priority(&fp_usual_classes, rows[i].remaining), rows[i].priority);
}
END_TEST

START_TEST(a_large_response_passes_each_bound_once)
{
    static const int64_t expected[] = { 50 * K, 20 * K, 5 * K, 2 * K, 1 * K };
    int64_t remaining = 2000 * K;

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        int64_t bound = fp_classes_next_bound(&fp_usual_classes, remaining);

        ck_assert_int_eq(bound, expected[i]);
        /* At the bound the class is another one, a byte before it is not. */
        ck_assert_int_eq(fp_classes_priority(&fp_usual_classes, bound + 1),
                         fp_classes_priority(&fp_usual_classes, remaining));
        ck_assert_int_lt(fp_classes_priority(&fp_usual_classes, bound),
                         fp_classes_priority(&fp_usual_classes, remaining));
        remaining = bound;
    }
    ck_assert_int_eq(fp_classes_next_bound(&fp_usual_classes, remaining), -1);
    ck_assert_int_eq(fp_classes_next_bound(&fp_usual_classes, 0), -1);
}
END_TEST

START_TEST(the_first_priority_is_kept_free_where_it_can_be)
{
    struct fp_classes classes = { .n_bounds = 1, .bounds = { 10 * K } };

    ck_assert_int_eq(fp_classes_priority(&classes, 10 * K), 1);
    ck_assert_int_eq(fp_classes_priority(&classes, 10 * K + 1), 2);
    classes = (struct fp_classes){ FP_MAX_BOUNDS, { 1, 2, 3, 4, 5, 6 } };
    ck_assert_int_eq(fp_classes_priority(&classes, 1), 0);
    ck_assert_int_eq(fp_classes_priority(&classes, 7), FP_MAX_PRIORITY);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *t = unit_add_case(suite, "classes", NULL, NULL, 0);

    tcase_add_test(t, a_size_has_a_unit_or_none);
    tcase_add_test(t, what_is_no_size);
    tcase_add_test(t, usual_classes);
    tcase_add_test(t, a_large_response_passes_each_bound_once);
    tcase_add_test(t, the_first_priority_is_kept_free_where_it_can_be);
    return unit_run(suite);
}
