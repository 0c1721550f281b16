/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_path.h"

#include "common/wire.h"
#include "unit.h"

static char room[FP_MAX_PATH + 1];

static const struct { const char *dir, *path, *expected; } paths[] = {
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

START_TEST(path_table)
{
    bool ok = ctl_path_normalise(paths[_i].dir, paths[_i].path, room);

    ck_assert_int_eq(ok, paths[_i].expected != NULL);
    if (!ok)
        return;
    ck_assert_str_eq(room, paths[_i].expected);
    ck_assert(fp_path_is_normal(room, strlen(room)));
}
END_TEST

START_TEST(length_bound)
{
    static char path[FP_MAX_PATH + 2];

    memset(path, 'a', FP_MAX_PATH);
    path[0] = '/';
    ck_assert(ctl_path_normalise("/", path, room));
    ck_assert_uint_eq(strlen(room), FP_MAX_PATH);
    ck_assert(ctl_path_normalise("/", path + 1, room));
    ck_assert_uint_eq(strlen(room), FP_MAX_PATH);
    ck_assert(!ctl_path_normalise("/w", path + 1, room));
    path[FP_MAX_PATH] = 'a';
    ck_assert(!ctl_path_normalise("/", path, room));
    /* A component more where there is no room for one. */
    memcpy(path + FP_MAX_PATH - 1, "/a", 2);
    ck_assert(!ctl_path_normalise("/", path, room));
    path[FP_MAX_PATH] = '\0';
    ck_assert(ctl_path_normalise("/", path, room));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("ctl_path");
    TCase *t = unit_add_case(s, "paths", NULL, NULL, 0);

    tcase_add_loop_test(t, path_table, 0, (int)(sizeof(paths) / sizeof(paths[0])));
    tcase_add_test(t, length_bound);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
