/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/path.h"

#include "unit.h"

static char buf[FP_MAX_PATH + 1];

static const struct {
    const char *dir, *path, *expected;
} paths[] = {
    { "/w", "/", "/" },
    { "/w", "/a", "/a" },
    { "/w", "/a/b/", "/a/b" },
    { "/w", "//a///b//", "/a/b" },
    { "/w", "/./a/./b/.", "/a/b" },
    { "/w", "/a/../b", "/b" },
    { "/w", "/a/b/../../c", "/c" },
    { "/w", "/..", "/" },
    { "/w", "/../../a", "/a" },
    { "/w", "/a/..", "/" },
    { "/w", "/...", "/..." },
    { "/w", "/a/.b/..c", "/a/.b/..c" },
    { "/w", "a", "/w/a" },
    { "/w", "a/b/", "/w/a/b" },
    { "/w", ".", "/w" },
    { "/w", "./a", "/w/a" },
    { "/w/x", "..", "/w" },
    { "/w/x", "../../../a", "/a" },
    { "/", "a", "/a" },
    { "/", "..", "/" },
    { "/w", " ", "/w/ " },
    { "/w", "", NULL },
};

START_TEST(normalised)
{
    bool ok = fp_path_normalise(paths[_i].dir, paths[_i].path, buf);

    ck_assert_int_eq(ok, paths[_i].expected != NULL);
    if (!ok)
        return;
    ck_assert_str_eq(buf, paths[_i].expected);
    ck_assert(fp_path_is_normal(buf, strlen(buf)));
}
END_TEST

START_TEST(normalised_length_bound)
{
    static char path[FP_MAX_PATH + 2];

    memset(path, 'a', FP_MAX_PATH);
    path[0] = '/';
    ck_assert(fp_path_normalise("/", path, buf));
    ck_assert_uint_eq(strlen(buf), FP_MAX_PATH);
    ck_assert(fp_path_normalise("/", path + 1, buf));
    ck_assert_uint_eq(strlen(buf), FP_MAX_PATH);
    ck_assert(!fp_path_normalise("/w", path + 1, buf));
    path[FP_MAX_PATH] = 'a';
    ck_assert(!fp_path_normalise("/", path, buf));
    /* A component more where there is no buf for one. */
    memcpy(path + FP_MAX_PATH - 1, "/a", 2);
    ck_assert(!fp_path_normalise("/", path, buf));
    path[FP_MAX_PATH] = '\0';
    ck_assert(fp_path_normalise("/", path, buf));
}
END_TEST

START_TEST(name_length_bound)
{
    static char name[FP_MAX_NAME + 1];

    memset(name, 'n', sizeof(name));
    ck_assert(fp_name_is_single(name, FP_MAX_NAME));
    ck_assert(!fp_name_is_single(name, FP_MAX_NAME + 1));
}
END_TEST

START_TEST(path_length_bound)
{
    static char path[FP_MAX_PATH + 1];

    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 == 0 ? '/' : 'a';
    ck_assert(!fp_path_is_normal(path, FP_MAX_PATH)); /* ends with a slash */
    ck_assert(fp_path_is_normal(path, FP_MAX_PATH - 1));
    path[FP_MAX_PATH - 1] = 'b';
    ck_assert(fp_path_is_normal(path, FP_MAX_PATH));
    ck_assert(!fp_path_is_normal(path, FP_MAX_PATH + 1));
}
END_TEST

START_TEST(path_in_common)
{
    static const struct {
        const char *a, *b;
        size_t common;
    } pairs[] = {
        { "/", "/", 1 },         { "/", "/a", 1 },       { "/a", "/b", 1 },
        { "/a", "/a", 2 },       { "/a", "/ab", 1 },     { "/a/b", "/a", 2 },
        { "/a/b", "/a/c", 2 },   { "/a/b", "/a/bc", 2 }, { "/a/b/c", "/a/b/d/e", 4 },
        { "/a/b/c", "/a/b", 4 }, { "/ab/c", "/a/b", 1 },
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const char *a = pairs[i].a, *b = pairs[i].b;

        ck_assert_uint_eq(fp_path_common_len(a, strlen(a), b, strlen(b)), pairs[i].common);
        ck_assert_uint_eq(fp_path_common_len(b, strlen(b), a, strlen(a)), pairs[i].common);
    }
}
END_TEST

/* Down from "/" and up again. */
START_TEST(path_component_by_component)
{
    static const struct {
        const char *path;
        size_t ends[4];
    } rows[] = {
        { "/a", { 1, 2 } },
        { "/a/b", { 1, 2, 4 } },
        { "/abc/d/efgh", { 1, 4, 6, 11 } },
        { "/.../..x", { 1, 4, 8 } },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *path = rows[i].path;
        const size_t len = strlen(path), *end = rows[i].ends;

        for (; *end < len; end++) {
            ck_assert_uint_eq(fp_path_child_len(path, len, end[0]), end[1]);
            ck_assert_uint_eq(fp_path_parent_len(path, end[1]), end[0]);
        }
    }
    /* The rest is no part of the path. */
    ck_assert_uint_eq(fp_path_child_len("/ab/c", 2, 1), 2);
    ck_assert_uint_eq(fp_path_child_len("/a/b/c", 4, 2), 4);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("path");
    TCase *t = unit_add_case(s, "paths", NULL, NULL, 0);

    tcase_add_loop_test(t, normalised, 0, (int)(sizeof(paths) / sizeof(paths[0])));
    tcase_add_test(t, normalised_length_bound);
    tcase_add_test(t, name_length_bound);
    tcase_add_test(t, path_length_bound);
    tcase_add_test(t, path_in_common);
    tcase_add_test(t, path_component_by_component);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
