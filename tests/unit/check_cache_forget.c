/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purges: of the path, of all below it, and of other entries that would answer for it.
 */
#include "config.h"
#include "cache/cache.h"

#include "cache/cache_entry.h"
#include "cache_known_kit.h"


#define AT_ONCE 64 /* visits after each purge */

static size_t forget(const char *path, bool tree)
{
    const size_t n = fp_cache_forget(cache, path, strlen(path), tree);

    fp_cache_evict_purged(cache, AT_ONCE);
    return n;
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

/* Entries below it do not answer before a new look. */
START_TEST(directory_with_something_below)
{
    struct fp_cache_base base;

    fill();
    kit_answer(&answer, "/a/b", "ddd");
    answer.fd = kit_file('p');
    kit_insert(cache, "/a/b", now, &answer);
    ck_assert(fp_cache_find_base(cache, "/a/b/f", 6, 4, now, &base));
    ck_assert_uint_eq(forget("/a/b", false), 1);
    assert_each(known, "!/a/b !/a/b/f");
    ck_assert(!fp_cache_find_base(cache, "/a/b/f", 6, 4, now, &base));
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

/* A file that once had an entry below it. */
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

/* Chains of directories, each evicted only after the entries below it. */
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
            fp_cache_evict_files(cache, 2);
        if (i % 5 == 0) {
            path[i % 2 == 0 ? 2 : 4] = '\0';
            forget(path, i % 3 != 0);
            if (i % 3 != 0)
                ck_assert_uint_eq(forget(path, true), 0);
            ck_assert(!known(path));
            if (i % 2 == 0)
                fp_cache_evict_purged(cache, 3);
        }
    }
    forget("/", true);
    while (fp_cache_evict_purged(cache, 7))
        ;
    ck_assert_uint_eq(entries(), 0);
    ck_assert_int_eq(cached_fds(), 0);
}
END_TEST

/* ---- large trees, which go a few entries at a time ---- */

#define MANY 1000

static uint64_t visits(void)
{
    return fp_cache_counts(cache).visits;
}

/* MANY files of version 1 below /t, and as many beside it. */
static void make_large_trees(void)
{
    char path[64];

    start(3 * MANY, 3 * MANY, 3 * MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/t/%d/f%d", i % 10, i);
        walked(path, now, "dddf1");
        snprintf(path, sizeof(path), "/u/%d/f%d", i % 10, i);
        walked(path, now, "dddf1");
    }
}

/* From the purge on no answer comes from the tree, and the purge itself visits few of its entries. */
START_TEST(large_tree_is_purged_at_once)
{
    uint64_t before;
    char path[64];

    make_large_trees();
    before = visits();
    ck_assert_uint_eq(forget("/t", true), 1 + 10 + MANY);
    ck_assert_uint_le(visits() - before, AT_ONCE);
    ck_assert_uint_gt(entries(), 1 + 11 + MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/t/%d/f%d", i % 10, i);
        ck_assert(!known(path));
        path[1] = 'u';
        ck_assert(known(path));
    }
    ck_assert_uint_eq(forget("/t", true), 0);
}
END_TEST

/* It costs visits of purged entries, and none of others, however deep the tree is. */
START_TEST(purge_visits_what_is_purged)
{
    uint64_t before;

    make_large_trees();
    before = visits();
    forget("/t", true);
    while (fp_cache_evict_purged(cache, 10)) {
        ck_assert_uint_le(visits() - before, 10 + AT_ONCE + MANY + 11);
    }
    ck_assert_uint_le(visits() - before, MANY + 11);
    ck_assert_uint_eq(entries(), 1 + 11 + MANY);
    ck_assert_int_eq(cached_fds(), MANY);
    before = visits();
    ck_assert_uint_eq(forget("/u/3/f13", true), 1);
    ck_assert_uint_le(visits() - before, 1);
}
END_TEST

/* A walk that comes to a purged entry before the entry is gone finds nothing of it. No descriptor,
 * content or metadata is left, although the file looks as before. */
START_TEST(purged_entry_is_new_when_a_walk_comes)
{
    struct fp_meta m;

    make_large_trees();
    walked("/t/9/last", now, "dddf2");
    ck_assert(fp_cache_find_known(cache, "/t/0/f0", 7, true, &m));
    forget("/t", true);
    for (int i = 0; i < 2; i++) {
        const char *path = i == 0 ? "/t/0/f0" : "/t/1/f1";

        ck_assert(!fp_cache_find_known(cache, path, 7, true, &m));
        ck_assert(fp_cache_snapshot(cache, path, 7, now).state == FP_CACHE_UNKNOWN);
        kit_answer(&answer, path, "dddf1");
        close(answer.fd);
        answer.fd = -1;
        answer.unchanged = true;
        kit_insert(cache, path, now, &answer);
        ck_assert(!known(path));
        walked(path, now, "dddf1");
        ck_assert(known(path));
        ck_assert(!known("/t/9/last"));
    }
    while (fp_cache_evict_purged(cache, 10))
        ck_assert(known("/t/0/f0"));
    assert_each(known, "/t/0/f0 /t/1/f1 !/t/0/f10 !/t/9/last");
    ck_assert_uint_eq(entries(), 1 + 11 + MANY + 5);
}
END_TEST

/* Again, above and below, while the first is under way. */
START_TEST(purges_of_one_another)
{
    make_large_trees();
    ck_assert_uint_eq(forget("/t", true), 1 + 10 + MANY);
    fp_cache_evict_purged(cache, 300);
    for (int i = 0; i < 10; i++) {
        walked("/t/1/f1", now, "dddf1");
        walked("/t/2/f2", now, "dddf1");
        ck_assert_uint_eq(forget(i % 2 == 0 ? "/t" : "/t/1", true), i % 2 == 0 ? 5 : 2);
        assert_each(known, i % 2 == 0 ? "!/t/1/f1 !/t/2/f2" : "!/t/1/f1 /t/2/f2");
        if (i % 2 == 1)
            ck_assert_uint_le(forget("/t", true), 4);
        fp_cache_evict_purged(cache, 20);
    }
    ck_assert_uint_le(forget("/", true), 1 + 11 + MANY + 2);
    while (fp_cache_evict_purged(cache, 50))
        ;
    ck_assert_uint_eq(entries(), 0);
    ck_assert_int_eq(cached_fds(), 0);
}
END_TEST

/* Purged entries make room first. */
START_TEST(purged_entries_make_room)
{
    char path[64];

    make_large_trees();
    forget("/t", true);
    for (int i = 0; i < 3 * MANY / 2; i++) {
        snprintf(path, sizeof(path), "/v/f%d", i);
        walked(path, now, "ddf1");
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/u/%d/f%d", i % 10, i);
        ck_assert(known(path));
    }
}
END_TEST

/* Not all at once, where an entry of another kind needs room. */
START_TEST(purged_entries_make_room_a_few_at_a_time)
{
    const struct fp_cache_limits limits = { 3 * MANY, OPEN_DIRS, 3 * MANY, 10, SIZE_MAX, TTL };
    uint64_t before;
    char path[64];

    make_large_trees();
    fp_cache_set_limits(cache, &limits);
    forget("/t", true);
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof(path), "/v/none%d", i);
        before = visits();
        walked(path, now, "dda");
        ck_assert_uint_le(visits() - before, FP_MAKE_ROOM + FP_SIEVE_VISITS);
    }
    ck_assert_uint_eq(fp_cache_counts(cache).negatives, 10);
}
END_TEST

/* ---- other entries that would answer for it ---- */

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
    static const struct fp_names names = { 1, { { ".htaccess", 9 } } };

    fp_cache_set_names(cache, &names);
    kit_answer(&answer, path, what);
    answer.n_names = 1;
    for (unsigned i = 0; i < answer.n_steps; i++)
        answer.steps[i].access[0].status = FP_ABSENT;
    fp_cache_insert(cache, path, strlen(path), NULL, now, kit_unwatched(true), &answer);
}

static bool known_with_access(const char *path)
{
    return fp_cache_lookup(cache, path, strlen(path), FP_ASK_ANY, now, &answer);
}

START_TEST(access_file_of_the_directory)
{
    walked_with_access("/a/b/f", "dddf");
    walked_with_access("/a/c/f", "dddf");
    ck_assert(known_with_access("/a/b/f"));
    ck_assert_uint_eq(forget("/a/b/.htaccess", false), 0);
    assert_each(known_with_access, "!/a/b/f /a/c/f");
    /* Another name does not belong to the directory. */
    ck_assert_uint_eq(forget("/a/c/other", false), 0);
    ck_assert(known_with_access("/a/c/f"));
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
    t = unit_add_case(s, "large", setup, teardown, 60);
    tcase_add_test(t, large_tree_is_purged_at_once);
    tcase_add_test(t, purge_visits_what_is_purged);
    tcase_add_test(t, purged_entry_is_new_when_a_walk_comes);
    tcase_add_test(t, purges_of_one_another);
    tcase_add_test(t, purged_entries_make_room);
    tcase_add_test(t, purged_entries_make_room_a_few_at_a_time);
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
