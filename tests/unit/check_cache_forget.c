/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgetting on request: the path, all below it, and what else would answer for
 * it.
 */
#include "config.h"
#include "cache/cache.h"

#include "cache_known_kit.h"

#define NAMES 1 /* the number of the list that questions name */

static size_t forget(const char *path, bool tree)
{
    return fp_cache_forget(cache, path, strlen(path), tree);
}

static size_t entries(void)
{
    const struct fp_cache_counts n = fp_cache_counts(cache);

    return n.files + n.directories + n.negatives;
}

static void fill(void)
{
    walked("/a/b/f", now, "dddf");
    walked("/a/b/g", now, "dddf");
    walked("/a/b/no", now, "ddda");
    walked("/a/c", now, "ddL");
    walked("/ab/f", now, "ddf");
    ck_assert_uint_eq(entries(), 9);
    ck_assert_int_eq(cached_fds(), 4);
}

/* ---- the path itself ---- */

START_TEST(file)
{
    fill();
    ck_assert_uint_eq(forget("/a/b/f", false), 1);
    assert_each(known, "!/a/b/f /a/b/g /a/b/no");
    ck_assert_int_eq(cached_fds(), 3);
    ck_assert_uint_eq(entries(), 8);
}
END_TEST

START_TEST(absent_name)
{
    fill();
    ck_assert_uint_eq(forget("/a/b/no", false), 1);
    assert_each(known, "!/a/b/no !/a/b/no/more /a/b/f");
}
END_TEST

START_TEST(what_is_not_known)
{
    fill();
    ck_assert_uint_eq(forget("/a/b/other", false), 0);
    ck_assert_uint_eq(forget("/a/b/other", true), 0);
    ck_assert_uint_eq(forget("/x/y/z", true), 0);
    ck_assert_uint_eq(entries(), 9);
    ck_assert(known("/a/b/f"));
}
END_TEST

START_TEST(empty_cache)
{
    ck_assert_uint_eq(forget("/", false), 0);
    ck_assert_uint_eq(forget("/", true), 0);
    ck_assert_uint_eq(forget("/a/b", true), 0);
}
END_TEST

/* What is below it is not answered before it was looked at again. */
START_TEST(directory_with_something_below)
{
    struct fp_cache_base base;

    fill();
    kit_answer(&answer, "/a/b", "ddd");
    answer.fd = kit_file('p');
    kit_insert(cache, "/a/b", now, &answer);
    ck_assert(fp_cache_find_base(cache, "/a/b/f", 6, 0, now, &base));
    ck_assert_uint_eq(forget("/a/b", false), 1);
    assert_each(known, "!/a/b !/a/b/f");
    ck_assert(!fp_cache_find_base(cache, "/a/b/f", 6, 0, now, &base));
    ck_assert_int_eq(cached_fds(), 4);
    ck_assert(known("/a/c"));
    /* Once is enough. */
    ck_assert_uint_eq(forget("/a/b", false), 0);
    walked("/a/b/f", now, "dddf1");
    assert_each(known, "/a/b /a/b/f");
    ck_assert_int_eq(kit_version_of(answer.fd), '1');
}
END_TEST

START_TEST(forgotten_is_known_again)
{
    fill();
    forget("/a/b/f", false);
    walked("/a/b/f", now, "dddf2");
    ck_assert(known("/a/b/f"));
    ck_assert_int_eq(kit_version_of(answer.fd), '2');
}
END_TEST

/* A file that something else was below. */
START_TEST(file_with_a_dead_child)
{
    walked("/a/x/f", now, "dddf");
    walked("/a/x", now, "ddf1");
    ck_assert_uint_eq(forget("/a/x", false), 1);
    ck_assert(!known("/a/x"));
    walked("/a/x", now, "ddf2");
    ck_assert(known("/a/x"));
    ck_assert_int_eq(kit_version_of(answer.fd), '2');
}
END_TEST

/* ---- and everything below ---- */

START_TEST(tree)
{
    fill();
    ck_assert_uint_eq(forget("/a/b", true), 4);
    assert_each(known, "!/a/b !/a/b/f !/a/b/no /a /a/c /ab/f");
    ck_assert_int_eq(cached_fds(), 2);
    ck_assert_uint_eq(entries(), 5);
}
END_TEST

START_TEST(tree_ends_at_a_component)
{
    fill();
    ck_assert_uint_eq(forget("/a", true), 6);
    assert_each(known, "/ab/f /");
    ck_assert_uint_eq(entries(), 3);
}
END_TEST

START_TEST(everything)
{
    fill();
    ck_assert_uint_eq(forget("/", true), 9);
    ck_assert_uint_eq(entries(), 0);
    ck_assert_int_eq(cached_fds(), 0);
    fill();
    ck_assert(known("/a/b/f"));
}
END_TEST

/* Chains of directories, each evicted only after what is below it. */
START_TEST(deep_tree)
{
    for (int i = 0; i < 40; i++) {
        char path[64];

        snprintf(path, sizeof(path), "/t/%d/1/2/3/4/f%d", i % 4, i);
        walked(path, now, "dddddddf");
    }
    /* "/", "t", four chains of five, the files */
    ck_assert_uint_eq(entries(), 1 + 1 + 4 * 5 + 40);
    ck_assert_uint_eq(forget("/t", true), 1 + 4 * 5 + 40);
    ck_assert_uint_eq(entries(), 1);
    ck_assert_int_eq(cached_fds(), 0);
}
END_TEST

/* Any order of walks, and evictions in between: nothing is left, nothing leaks. */
START_TEST(random_trees)
{
    uint64_t seed = 11;

    for (int i = 0; i < 3000; i++) {
        const char *const whats[] = { "dddf", "ddda", "dda", "ddf", "dddL" };
        char path[32];

        snprintf(path, sizeof(path), "/%u/%u/%u", (unsigned)(unit_random(&seed) % 4),
                 (unsigned)(unit_random(&seed) % 4), (unsigned)(unit_random(&seed) % 6));
        walked(path, now, whats[unit_random(&seed) % 5]);
        if (i % 7 == 0)
            fp_cache_shed_files(cache, 2);
        if (i % 5 == 0) {
            path[i % 2 == 0 ? 2 : 4] = '\0';
            forget(path, i % 3 != 0);
            if (i % 3 != 0)
                ck_assert_uint_eq(forget(path, true), 0);
            ck_assert(!known(path));
        }
    }
    forget("/", true);
    ck_assert_uint_eq(entries(), 0);
    ck_assert_int_eq(cached_fds(), 0);
}
END_TEST

/* ---- what would answer for it ---- */

/* The directory above was absent; now it may be there, and the file in it. */
START_TEST(absent_name_above)
{
    walked("/a/new", now, "dda");
    ck_assert(known("/a/new/f"));
    forget("/a/new/f", false);
    assert_each(known, "!/a/new/f /a");
    walked("/a/new", now, "dda");
    forget("/a/new/x/y/z", true);
    ck_assert(!known("/a/new/x/y/z"));
}
END_TEST

START_TEST(file_above)
{
    walked("/a/f", now, "ddf");
    ck_assert(known("/a/f/x"));
    forget("/a/f/x", true);
    ck_assert(!known("/a/f/x"));
    ck_assert_int_eq(cached_fds(), 0);
}
END_TEST

/* A walk that looked for an access file in each directory. */
static void walked_with_access(const char *path, const char *what)
{
    kit_answer(&answer, path, what);
    answer.n_names = 1;
    for (unsigned i = 0; i < answer.n_steps; i++)
        answer.steps[i].access[0].status = FP_ABSENT;
    fp_cache_insert(cache, path, strlen(path), NAMES, NULL, now, NULL, &answer);
}

static bool known_with_access(const char *path)
{
    return fp_cache_lookup(cache, path, strlen(path), NAMES, now, &answer);
}

START_TEST(access_file_of_the_directory)
{
    walked_with_access("/a/b/f", "dddf");
    walked_with_access("/a/c/f", "dddf");
    ck_assert(known_with_access("/a/b/f"));
    ck_assert_uint_eq(forget("/a/b/.htaccess", false), 0);
    assert_each(known_with_access, "!/a/b/f /a/c/f");
    /* Questions about no access files are not concerned. */
    ck_assert(known("/a/b/f"));
    walked_with_access("/a/b", "ddd");
    ck_assert(known_with_access("/a/b/f"));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_forget");
    TCase *t = unit_add_case(s, "path", setup, teardown, 0);

    tcase_add_test(t, file);
    tcase_add_test(t, absent_name);
    tcase_add_test(t, what_is_not_known);
    tcase_add_test(t, empty_cache);
    tcase_add_test(t, directory_with_something_below);
    tcase_add_test(t, forgotten_is_known_again);
    tcase_add_test(t, file_with_a_dead_child);
    t = unit_add_case(s, "tree", setup, teardown, 20);
    tcase_add_test(t, tree);
    tcase_add_test(t, tree_ends_at_a_component);
    tcase_add_test(t, everything);
    tcase_add_test(t, deep_tree);
    tcase_add_test(t, random_trees);
    t = unit_add_case(s, "above", setup, teardown, 0);
    tcase_add_test(t, absent_name_above);
    tcase_add_test(t, file_above);
    tcase_add_test(t, access_file_of_the_directory);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
