/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "setup/admission.h"

#include <apr_general.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define CHILDREN 4
#define EACH     5
#define MANY     2000000 /* paths, thirty times as many as there are entries */

static apr_pool_t *pool;

static void setup(void)
{
    ck_assert_int_eq(apr_initialize(), APR_SUCCESS);
    ck_assert_int_eq(apr_pool_create(&pool, NULL), APR_SUCCESS);
}

static void teardown(void)
{
    apr_pool_destroy(pool);
}

static unsigned add(const char *path)
{
    return fp_admission_count(path, strlen(path));
}

START_TEST(no_memory)
{
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(add("/srv/a"), 0);
}
END_TEST

START_TEST(each_path_has_its_own)
{
    fp_admission_init(pool);
    for (unsigned i = 1; i <= 10; i++) {
        ck_assert_uint_eq(add("/srv/a"), i);
        ck_assert_uint_eq(add("/srv/b"), i);
    }
    ck_assert_uint_eq(add("/srv/ab"), 1);
}
END_TEST

START_TEST(the_largest_comes_before_0)
{
    fp_admission_init(pool);
    for (unsigned i = 1; i <= FP_ADMISSION_MOST; i++)
        ck_assert_uint_eq(add("/srv/a"), i);
    ck_assert_uint_eq(add("/srv/a"), 0);
    ck_assert_uint_eq(add("/srv/a"), 1);
}
END_TEST

START_TEST(children_share_them)
{
    int status;

    fp_admission_init(pool);
    for (int child = 0; child < CHILDREN; child++) {
        const pid_t pid = fork();

        ck_assert_int_ne(pid, -1);
        if (pid == 0) {
            for (int i = 0; i < EACH; i++)
                add("/srv/a");
            _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    }
    ck_assert_uint_eq(add("/srv/a"), CHILDREN * EACH + 1);
}
END_TEST

START_TEST(others_take_an_entry_over)
{
    unsigned again = 0, forgotten = 0;
    char path[32];

    fp_admission_init(pool);
    for (int i = 0; i < 2 * MANY; i++) {
        snprintf(path, sizeof(path), "/srv/%d", i % MANY);
        again += add(path) > 1;
    }
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "/srv/%d", i);
        forgotten += add(path) == 1;
    }
    /* Two paths may have the same entry and the same bits of their hashes. */
    ck_assert_uint_lt(again, MANY / 1000);
    ck_assert_uint_ge(forgotten, 98);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("admission");
    TCase *t = unit_add_case(s, "counts", setup, teardown, 30);

    tcase_add_test(t, no_memory);
    tcase_add_test(t, each_path_has_its_own);
    tcase_add_test(t, the_largest_comes_before_0);
    tcase_add_test(t, children_share_them);
    tcase_add_test(t, others_take_an_entry_over);
    return unit_run(s);
}
