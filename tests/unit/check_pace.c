/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a path is asked about, by what calls and questions took. */
#include "config.h"
#include "files/pace.h"

#include <string.h>

#include "unit.h"

enum { LOCAL_US = 5, QUICK_US = 1000, SLOW_US = 10000 };

static struct fp_pace *pace_of(const char *path)
{
    return fp_pace_of(path, strlen(path), false);
}

/* Pages of so many paths, with two calls on each that is not asked about. Returns how many were asked about. */
static unsigned pages(struct fp_pace *pace, unsigned paths, uint64_t call_us, uint64_t question_us, bool useful)
{
    unsigned asked = 0;

    for (unsigned i = 0; i < paths; i++) {
        if (fp_pace_asks(pace)) {
            fp_pace_asked(pace, question_us, useful);
            asked++;
        } else {
            fp_pace_called(pace, call_us, false);
            fp_pace_called(pace, call_us, true);
        }
    }
    return asked;
}

START_TEST(the_first_call_is_ones_own)
{
    ck_assert(!fp_pace_asks(pace_of("/srv/www/a")));
}
END_TEST

START_TEST(calls_on_a_local_disk_are_never_questions)
{
    ck_assert_uint_eq(pages(pace_of("/srv/www/a"), 100000, LOCAL_US, LOCAL_US, true), 0);
}
END_TEST

/* The other way is tried rarely. */
START_TEST(the_quicker_way_is_taken)
{
    struct fp_pace *pace = pace_of("/srv/www/a");

    pages(pace, 1000, SLOW_US, QUICK_US, true);
    ck_assert_uint_gt(pages(pace, 1000, SLOW_US, QUICK_US, true), 980);
    pages(pace, 1000, QUICK_US, SLOW_US, true);
    ck_assert_uint_lt(pages(pace, 1000, QUICK_US, SLOW_US, true), 20);
    pages(pace, 1000, SLOW_US, QUICK_US, true);
    ck_assert_uint_gt(pages(pace, 1000, SLOW_US, QUICK_US, true), 980);
}
END_TEST

/* A question replaces both calls on its path. */
START_TEST(all_calls_on_a_path_count)
{
    struct fp_pace *pace = pace_of("/srv/www/a");

    pages(pace, 1000, SLOW_US, SLOW_US * 3 / 2, true);
    ck_assert_uint_gt(pages(pace, 1000, SLOW_US, SLOW_US * 3 / 2, true), 900);
}
END_TEST

START_TEST(useless_answers_end_the_questions)
{
    struct fp_pace *pace = pace_of("/srv/www/a");

    pages(pace, 1000, SLOW_US, QUICK_US, true);
    ck_assert_uint_lt(pages(pace, 1000, SLOW_US, QUICK_US, false), 12);
}
END_TEST

START_TEST(parts_of_the_tree)
{
    ck_assert_ptr_eq(pace_of("/srv/www/site/a"), pace_of("/srv/www/site/b/c"));
    ck_assert_ptr_ne(pace_of("/srv/www/site/a"), pace_of("/mnt/nfs/site/a"));
    ck_assert_ptr_nonnull(pace_of("/"));
}
END_TEST

/* A file server is asked at each opening, where the kernel knows names and attributes. */
START_TEST(kinds_of_calls)
{
    struct fp_pace *looks = fp_pace_of("/srv/www/a", 10, false), *opens = fp_pace_of("/srv/www/a", 10, true);

    ck_assert(!fp_pace_is_quick(looks) && !fp_pace_is_quick(opens));
    pages(looks, 100, LOCAL_US, SLOW_US, true);
    ck_assert(fp_pace_is_quick(looks) && !fp_pace_is_quick(opens));
}
END_TEST

/* Also on a slow machine. */
START_TEST(far_quicker_than_a_question)
{
    struct fp_pace *pace = pace_of("/srv/www/a");

    pages(pace, 1000, SLOW_US, SLOW_US, true);
    ck_assert(!fp_pace_is_quick(pace));
    for (unsigned i = 0; i < 100; i++)
        fp_pace_called(pace, SLOW_US / 20, false);
    ck_assert(fp_pace_is_quick(pace));
}
END_TEST

/* The kernel's memory is empty after a while, and full again after a page. */
START_TEST(slow_now_and_then)
{
    struct fp_pace *pace = pace_of("/srv/www/a");

    pages(pace, 100, LOCAL_US, SLOW_US, true);
    ck_assert(fp_pace_is_quick(pace));
    fp_pace_called(pace, SLOW_US, false);
    ck_assert(!fp_pace_is_quick(pace));
    pages(pace, 100, LOCAL_US, SLOW_US, true);
    ck_assert(fp_pace_is_quick(pace));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("pace");
    TCase *t = unit_add_case(s, "pace", NULL, NULL, 20);

    tcase_add_test(t, the_first_call_is_ones_own);
    tcase_add_test(t, calls_on_a_local_disk_are_never_questions);
    tcase_add_test(t, the_quicker_way_is_taken);
    tcase_add_test(t, all_calls_on_a_path_count);
    tcase_add_test(t, useless_answers_end_the_questions);
    tcase_add_test(t, parts_of_the_tree);
    tcase_add_test(t, kinds_of_calls);
    tcase_add_test(t, far_quicker_than_a_question);
    tcase_add_test(t, slow_now_and_then);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
