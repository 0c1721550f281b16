/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/hot.h"

#include "base/clock.h"
#include "hash_kit.h"
#include "unit.h"

static struct fp_hot *hot;
static uint64_t now_ms;
static char line[8192];

static void setup(void)
{
    unit_init_hash();
    hot = fp_hot_create();
    ck_assert_ptr_nonnull(hot);
    now_ms = fp_now_ms();
}

static void teardown(void)
{
    fp_hot_destroy(&hot);
}

static void ask(const char *path, unsigned times)
{
    while (times-- > 0)
        fp_hot_asked(hot, path, strlen(path), now_ms);
}

/* The count in the report's line, and its path in *path_r; 0: there is none. */
static unsigned long count_of(uint32_t n, const char **path_r)
{
    size_t len = fp_hot_line(hot, n, line, sizeof(line));

    if (len == 0)
        return 0;
    line[len - 1] = '\0';
    *path_r = strchr(line, ' ') + 1;
    return strtoul(line, NULL, 10);
}

START_TEST(counts_are_about_right)
{
    const char *path;
    unsigned long n;

    ask("/hot", 8000);
    ask("/warm it", 800);
    n = count_of(0, &path);
    ck_assert_str_eq(path, "/hot");
    ck_assert(n > 7000 && n < 9000);
    n = count_of(1, &path);
    ck_assert_str_eq(path, "/warm\\040it");
    ck_assert(n > 400 && n < 1200);
    ck_assert_uint_eq(count_of(2, &path), 0);
}
END_TEST

/* Many paths with one request each do not drive out hot paths. */
START_TEST(a_scan_does_not_hide_what_is_hot)
{
    const char *path;
    char other[32];

    for (unsigned i = 0; i < 20000; i++) {
        snprintf(other, sizeof(other), "/once/%u", i);
        ask(other, 1);
        if (i % 10 == 0)
            ask("/hot", 1);
    }
    ck_assert_uint_gt(count_of(0, &path), 1000);
    ck_assert_str_eq(path, "/hot");
    ck_assert_uint_eq(count_of(FP_HOT_PATHS, &path), 0);
}
END_TEST

START_TEST(what_was_hot_is_forgotten)
{
    const char *path;
    unsigned long before;

    now_ms -= FP_HOT_HALF_MS;
    ask("/hot", 8000);
    before = count_of(0, &path);
    ck_assert(before > 3000 && before < 5000);
    teardown();
    setup();
    now_ms -= 70 * FP_HOT_HALF_MS;
    ask("/hot", 8000);
    ck_assert_uint_eq(count_of(0, &path), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("hot");
    TCase *t = unit_add_case(s, "paths", setup, teardown, 0);

    tcase_add_test(t, counts_are_about_right);
    tcase_add_test(t, a_scan_does_not_hide_what_is_hot);
    tcase_add_test(t, what_was_hot_is_forgotten);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
