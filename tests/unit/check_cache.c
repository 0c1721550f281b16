/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache.h"

#include "cache_kit.h"
#include "keyed_hash.h"
#include "proto/fdio.h"

#define TTL 100

static struct fp_cache *cache;
static struct fp_answer answer;
static int fds_at_rest;
static uint64_t now;           /* the time that lookups give */

static void start(size_t files, size_t directories, size_t absent)
{
    const struct fp_cache_limits limits = { files, 3, directories, absent, SIZE_MAX, TTL, TTL };

    fp_cache_destroy(&cache);
    cache = kit_cache(&limits);
    ck_assert_ptr_nonnull(cache);
}

static void setup(void)
{
    ck_assert_int_eq(fp_keyed_hash_init(), 0);
    fds_at_rest = unit_open_fds();
    now = 1000;
    start(100, 100, 100);
}

static void teardown(void)
{
    fp_cache_destroy(&cache);
    ck_assert_ptr_null(cache);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

static int cached_fds(void)
{
    return unit_open_fds() - fds_at_rest;
}

/* A walk of path that began at ms found that. */
static void walked(const char *path, uint64_t ms, const char *what)
{
    struct fp_answer a;

    kit_answer(&a, path, what);
    kit_insert(cache, path, ms, &a);
    ck_assert_int_eq(a.fd, -1);
}

static bool known(const char *path)
{
    memset(&answer, 0xa5, sizeof(answer));
    return kit_lookup(cache, path, now, &answer);
}

/* The cache knows the path, and just that of it. */
static void assert_known(const char *path, const char *what)
{
    struct fp_answer expected;

    kit_answer(&expected, path, what);
    ck_assert_msg(known(path), "%s is not known", path);
    ck_assert_int_eq((int)answer.status, FP_OK);
    ck_assert_int_eq((int)answer.source, FP_SOURCE_CACHE);
    ck_assert_uint_eq(answer.n_steps, expected.n_steps);
    for (unsigned i = 0; i < expected.n_steps; i++)
        ck_assert_msg(kit_same_step(&answer.steps[i], &expected.steps[i]),
                      "%s, step %u", path, i);
    ck_assert_int_eq(answer.fd != -1, expected.fd != -1);
    if (expected.fd != -1)
        ck_assert_int_eq(kit_version_of(answer.fd), kit_version_of(expected.fd));
    fp_close(&expected.fd);
}

static void assert_unknown(const char *path)
{
    ck_assert_msg(!known(path), "%s is known", path);
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_uint_eq(answer.n_steps, 0);
}

static const char *numbered(const char *prefix, int i)
{
    static char rooms[4][64];
    static unsigned turn;
    char *room = rooms[turn++ % 4];

    snprintf(room, sizeof(rooms[0]), "%s%d", prefix, i);
    return room;
}

/* ---- knowing ---- */

START_TEST(nothing_is_known_at_first)
{
    assert_unknown("/");
    assert_unknown("/a");
    assert_unknown("/a/b/c");
    ck_assert_uint_eq(fp_cache_counts(cache).misses, 3);
    ck_assert_uint_eq(fp_cache_counts(cache).hits, 0);
}
END_TEST

START_TEST(what_a_walk_found_is_known)
{
    walked("/a/b/f", now, "dddf7");
    assert_known("/a/b/f", "dddf7");
    assert_known("/a/b", "ddd");
    assert_known("/a", "dd");
    assert_known("/", "d");
    assert_unknown("/a/b/g");
    assert_unknown("/b");
    ck_assert_uint_eq(fp_cache_counts(cache).hits, 4);
    ck_assert_uint_eq(fp_cache_counts(cache).misses, 2);
    ck_assert_uint_eq(fp_cache_counts(cache).inserts, 1);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 1);
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 3);
    ck_assert_int_eq(cached_fds(), 1);
}
END_TEST

START_TEST(every_kind_is_known)
{
    static const struct { const char *path, *what; } rows[] = {
        { "/", "d" }, { "/f", "df" }, { "/u", "du" }, { "/a", "da" }, { "/x", "dx" },
        { "/l", "dl" }, { "/L", "dL" }, { "/b", "db" }, { "/k/f", "dlf" },
        { "/k/m/n", "dllL" },
    };
    const size_t n = sizeof(rows) / sizeof(rows[0]);

    for (size_t i = 0; i < n; i++)
        walked(rows[i].path, now, rows[i].what);
    for (size_t i = 0; i < n; i++)
        assert_known(rows[i].path, rows[i].what);
}
END_TEST

START_TEST(a_name_is_not_its_prefix)
{
    walked("/ab/f", now, "ddf");
    walked("/n", now, "da");
    assert_unknown("/a");
    assert_unknown("/abc");
    assert_unknown("/ab/ff");
    assert_unknown("/no");
    assert_unknown("/no/x");
}
END_TEST

START_TEST(longest_and_deepest_path)
{
    static char path[4096], what[2 * FP_MAX_STEPS];

    /* 63 components of 64 bytes below "/". */
    for (size_t i = 0; i < 63; i++) {
        memset(path + 65 * i, 'n', 65);
        path[65 * i] = '/';
    }
    path[4095] = '\0';
    memset(what, 'd', FP_MAX_STEPS);
    what[FP_MAX_STEPS - 1] = 'f';
    walked(path, now, what);
    assert_known(path, what);
}
END_TEST

START_TEST(no_answer_is_not_kept)
{
    static const fp_status reasons[] = { FP_TIMEOUT, FP_BUSY, FP_REFUSED, FP_TOODEEP };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        fp_answer_init(&answer, reasons[i]);
        answer.fd = kit_file('0');
        kit_insert(cache, "/a", now, &answer);
        ck_assert_int_eq(answer.fd, -1);
        assert_unknown("/a");
    }
    fp_answer_init(&answer, FP_OK);
    kit_insert(cache, "/a", now, &answer);
    assert_unknown("/a");
    ck_assert_int_eq(cached_fds(), 0);
}
END_TEST

START_TEST(descriptor_is_lent)
{
    walked("/f", now, "df3");
    ck_assert(known("/f"));
    ck_assert_int_eq(kit_version_of(answer.fd), '3');
    ck_assert(known("/f"));
    ck_assert_int_eq(cached_fds(), 1);
    fp_cache_destroy(&cache);
    ck_assert_int_eq(cached_fds(), 0);
}
END_TEST

START_TEST(a_local_file_is_known_as_one)
{
    kit_answer(&answer, "/a/f", "ddf");
    answer.local = true;
    kit_insert(cache, "/a/f", now, &answer);
    ck_assert(known("/a/f"));
    ck_assert(answer.local);
    ck_assert(known("/a/f/x"));
    ck_assert(!answer.local);
    ck_assert(known("/a"));
    ck_assert(!answer.local);
    walked("/a/f", now, "ddf");
    ck_assert(known("/a/f"));
    ck_assert(!answer.local);
}
END_TEST

/* ---- time ---- */

START_TEST(time_to_live)
{
    walked("/a/f", now, "ddf");
    walked("/a/no", now, "dda");
    now += TTL - 1;
    assert_known("/a/f", "ddf");
    assert_known("/a/no", "dda");
    now += 1;
    assert_unknown("/a/f");
    assert_unknown("/a/no");
    assert_unknown("/a");
    assert_unknown("/");
}
END_TEST

START_TEST(looking_does_not_prolong)
{
    walked("/f", now, "df");
    for (int i = 0; i < TTL; i++, now++)
        ck_assert(known("/f"));
    assert_unknown("/f");
}
END_TEST

START_TEST(a_walk_prolongs_only_what_it_saw)
{
    walked("/a/f", now, "ddf");
    walked("/a/g", now + 50, "ddf");
    now += TTL + 20;
    assert_unknown("/a/f");
    assert_known("/a/g", "ddf");
    assert_known("/a", "dd");
}
END_TEST

START_TEST(walking_again_prolongs)
{
    walked("/a/f", now, "ddf1");
    walked("/a/f", now + 90, "ddf1");
    now += TTL + 50;
    assert_known("/a/f", "ddf1");
    ck_assert_int_eq(cached_fds(), 1);
}
END_TEST

/* What is known stays, for as long as it was believed. */
START_TEST(shorter_time_to_live_holds_for_what_comes)
{
    const struct fp_cache_limits limits = { 100, 100, 100, 100, SIZE_MAX, 10, 10 };

    walked("/f", now, "df");
    now += 10;
    fp_cache_set_limits(cache, &limits);
    walked("/a/g", now, "ddf");
    now += 10;
    assert_unknown("/a/g");
    assert_unknown("/f");      /* it was "/" that the second walk saw */
    walked("/", now, "d");
    assert_known("/f", "df");
}
END_TEST

/* ---- what is not there ---- */

START_TEST(nothing_is_below_an_absent_name)
{
    walked("/a/no", now, "dda");
    assert_known("/a/no", "dda");
    assert_known("/a/no/x", "dda");
    assert_known("/a/no/x/y/z", "dda");
    assert_unknown("/a/nox");
}
END_TEST

START_TEST(nothing_is_below_what_is_no_directory)
{
    walked("/f", now, "df");
    walked("/u", now, "du");
    walked("/x", now, "dx");
    walked("/b", now, "db");
    walked("/L", now, "dL");
    /* The same steps; but the descriptor is not that of the path. */
    assert_known("/f/x", "du");
    ck_assert_int_eq(answer.fd, -1);
    assert_known("/u/x/y", "du");
    assert_known("/x/x", "dx");
    assert_known("/b/x", "db");
    ck_assert(known("/L/x"));
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_uint_eq(answer.n_steps, 2);
}
END_TEST

START_TEST(a_walk_that_ended_above_answers_for_all_below)
{
    walked("/no/x/y", now, "da");
    assert_known("/no", "da");
    assert_known("/no/z", "da");
    ck_assert_uint_eq(fp_cache_counts(cache).absent, 1);
}
END_TEST

START_TEST(absent_name_appears)
{
    walked("/a", now, "da");
    walked("/a/f", now + 1, "ddf");
    assert_known("/a/f", "ddf");
    assert_known("/a", "dd");
    assert_unknown("/a/g");
}
END_TEST

START_TEST(directory_disappears_and_comes_back)
{
    walked("/a/f", now, "ddf");
    walked("/a", now + 1, "da");
    assert_known("/a/f", "da");
    walked("/a/g", now + 2, "ddf");
    assert_known("/a/g", "ddf");
    assert_unknown("/a/f");
}
END_TEST

/* ---- what becomes another thing ---- */

START_TEST(file_is_replaced)
{
    walked("/a/f", now, "ddf1");
    walked("/a/f", now + 1, "ddf2");
    assert_known("/a/f", "ddf2");
    ck_assert_int_eq(cached_fds(), 1);
    walked("/a/f", now + 2, "ddu");
    assert_known("/a/f", "ddu");
    ck_assert_int_eq(cached_fds(), 0);
    walked("/a/f", now + 3, "dda");
    assert_known("/a/f", "dda");
    walked("/a/f", now + 4, "ddd");
    assert_known("/a/f", "ddd");
    assert_unknown("/a/f/x");
}
END_TEST

START_TEST(replaced_directory_kills_what_is_below)
{
    walked("/a/b/c/f", now, "ddddf");
    walked("/a/b/no", now, "ddda");
    walked("/z/f", now, "ddf");
    walked("/a/g", now + 1, "dd1f");
    assert_known("/a/g", "dd1f");
    assert_unknown("/a/b/c/f");
    assert_unknown("/a/b/no");
    assert_unknown("/a/b");
    assert_known("/z/f", "ddf");
}
END_TEST

START_TEST(replaced_root_kills_everything)
{
    walked("/a/f", now, "ddf");
    walked("/", now + 1, "d1");
    assert_unknown("/a/f");
    assert_unknown("/a");
}
END_TEST

static void change_directory(uint32_t mode, uint32_t uid, uint32_t gid)
{
    kit_answer(&answer, "/a", "dd");
    answer.steps[1].self.mode = mode;
    answer.steps[1].self.uid = uid;
    answer.steps[1].self.gid = gid;
    kit_insert(cache, "/a", now + 1, &answer);
}

START_TEST(other_rights_of_a_directory_kill_what_is_below)
{
    walked("/a/f", now, "ddf");
    change_directory(S_IFDIR | 0755, 0, 0);
    assert_known("/a/f", "ddf");
    change_directory(S_IFDIR | 0700, 0, 0);
    assert_unknown("/a/f");
    start(100, 100, 100);
    walked("/a/f", now, "ddf");
    change_directory(S_IFDIR | 0755, 1, 0);
    assert_unknown("/a/f");
    start(100, 100, 100);
    walked("/a/f", now, "ddf");
    change_directory(S_IFDIR | 0755, 0, 1);
    assert_unknown("/a/f");
}
END_TEST

START_TEST(directory_whose_times_change_keeps_what_is_below)
{
    walked("/a/f", now, "ddf");
    kit_answer(&answer, "/a", "dd");
    answer.steps[1].self.mtime.sec = answer.steps[1].self.ctime.sec = 77;
    answer.steps[1].self.nlink = 9;
    kit_insert(cache, "/a", now + 1, &answer);
    ck_assert(known("/a/f"));
    ck_assert_int_eq(answer.steps[1].self.mtime.sec, 77);
}
END_TEST

START_TEST(switched_link_kills_what_is_below)
{
    walked("/current/a/f", now, "dl1d1f");
    walked("/current/a/g", now, "dl1d1f");
    walked("/current/a/f", now + 1, "dl2d2f5");
    assert_known("/current/a/f", "dl2d2f5");
    assert_unknown("/current/a/g");
}
END_TEST

START_TEST(switched_back_link_stays_dead)
{
    walked("/current/f", now, "dl1f");
    walked("/current", now + 1, "dl2");
    assert_unknown("/current/f");
    walked("/current", now + 2, "dl1");
    assert_known("/current", "dl1");
    assert_unknown("/current/f");
    walked("/current/f", now + 3, "dl1f");
    assert_known("/current/f", "dl1f");
}
END_TEST

START_TEST(switched_back_directory_stays_dead)
{
    walked("/a/b/f", now, "dddf");
    walked("/a", now + 1, "dd1");
    walked("/a", now + 2, "dd");
    assert_known("/a", "dd");
    assert_unknown("/a/b/f");
    assert_unknown("/a/b");
    /* A directory in between comes to life without what was below it. */
    walked("/a/b", now + 3, "ddd");
    assert_known("/a/b", "ddd");
}
END_TEST

START_TEST(link_whose_target_was_replaced)
{
    walked("/l/f", now, "dlf");
    kit_answer(&answer, "/l", "dl");
    answer.steps[1].target.ino++;
    kit_insert(cache, "/l", now + 1, &answer);
    assert_unknown("/l/f");
}
END_TEST

START_TEST(link_that_leads_nowhere_for_a_while)
{
    walked("/l/f", now, "dlf");
    walked("/l", now + 1, "db");
    assert_known("/l/f", "db");
    walked("/l", now + 2, "dl");
    assert_known("/l", "dl");
    assert_unknown("/l/f");
}
END_TEST

START_TEST(file_takes_the_place_of_a_directory)
{
    walked("/a/b/f", now, "dddf");
    walked("/a/no", now, "dda");
    walked("/a", now + 1, "df");
    assert_known("/a", "df");
    assert_known("/a/b/f", "du");
    assert_known("/a/no", "du");
    walked("/a", now + 2, "dd");
    assert_known("/a", "dd");
    assert_unknown("/a/b/f");
    assert_unknown("/a/no");
}
END_TEST

/* ---- walks that overlap ---- */

START_TEST(older_walk_does_not_replace_the_later)
{
    walked("/a/f", now + 20, "ddf2");
    walked("/a/f", now + 10, "ddf1");
    assert_known("/a/f", "ddf2");
    ck_assert_int_eq(cached_fds(), 1);
    walked("/a/f", now + 15, "dda");
    assert_known("/a/f", "ddf2");
}
END_TEST

START_TEST(older_walk_adds_nothing_below_another_directory)
{
    walked("/a", now + 20, "dd2");
    walked("/a/f", now + 10, "dd1f");
    assert_unknown("/a/f");
    assert_known("/a", "dd2");
    ck_assert_int_eq(cached_fds(), 0);
}
END_TEST

START_TEST(older_walk_adds_nothing_below_an_absent_name)
{
    walked("/a", now + 20, "da");
    walked("/a/f", now + 10, "ddf");
    assert_known("/a/f", "da");
    ck_assert_int_eq(cached_fds(), 0);
}
END_TEST

/* Or a slow walk would never be known as long as faster ones pass it. */
START_TEST(walk_that_others_passed_is_kept)
{
    walked("/fast/f", now + 20, "ddf");
    walked("/slow/f", now + 10, "ddf");
    assert_known("/slow/f", "ddf");
    assert_known("/fast/f", "ddf");
    walked("/fast/g", now + 30, "ddf");
    walked("/fast/h", now + 25, "ddf");
    assert_known("/fast/h", "ddf");
    /* It is as old as it is. */
    now += 10 + TTL;
    assert_unknown("/slow/f");
    assert_known("/fast/f", "ddf");
}
END_TEST

START_TEST(walk_of_the_same_moment_replaces)
{
    walked("/f", now, "df1");
    walked("/f", now, "df2");
    assert_known("/f", "df2");
}
END_TEST

/* ---- bounds ---- */

START_TEST(files_are_bounded_with_their_descriptors)
{
    start(4, 100, 100);
    for (int i = 0; i < 50; i++) {
        walked(numbered("/f", i), now, "df");
        ck_assert_uint_le(fp_cache_counts(cache).files, 4);
        ck_assert_int_eq(cached_fds(), (int)fp_cache_counts(cache).files);
    }
    ck_assert_uint_eq(fp_cache_counts(cache).files, 4);
    ck_assert_uint_eq(fp_cache_counts(cache).evictions, 46);
}
END_TEST

START_TEST(directories_are_bounded)
{
    start(100, 4, 100);
    for (int i = 0; i < 50; i++)
        walked(numbered("/d", i), now, i % 3 == 0 ? "dl" : i % 3 == 1 ? "dd" : "du");
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 4);
    assert_known("/", "d");
}
END_TEST

START_TEST(absent_names_are_bounded)
{
    start(100, 100, 4);
    for (int i = 0; i < 50; i++)
        walked(numbered("/n", i), now, i % 2 == 0 ? "da" : "dx");
    ck_assert_uint_eq(fp_cache_counts(cache).absent, 4);
}
END_TEST

START_TEST(directories_with_files_are_bounded_too)
{
    char path[64];

    start(100, 4, 100);
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof(path), "/d%d/f", i);
        walked(path, now, "ddf");
        ck_assert_uint_le(fp_cache_counts(cache).directories, 4);
    }
    ck_assert_int_eq(cached_fds(), (int)fp_cache_counts(cache).files);
}
END_TEST

START_TEST(a_path_deeper_than_the_limit)
{
    start(1, 1, 1);
    walked("/a/b/c/d/e/f", now, "ddddddf");
    walked("/a/b/c/d/e/no", now, "dddddda");
    /* Those above what was seen last: it is to be told from here. */
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 6);
    assert_known("/a/b/c/d/e/no", "dddddda");
    walked("/no", now, "da");
    ck_assert_uint_le(fp_cache_counts(cache).directories, 1);
    ck_assert_uint_le(fp_cache_counts(cache).files, 1);
    ck_assert_uint_le(fp_cache_counts(cache).absent, 1);
    ck_assert_int_eq(cached_fds(), (int)fp_cache_counts(cache).files);
}
END_TEST

START_TEST(scan_of_absent_names_evicts_no_file)
{
    start(20, 100, 10);
    for (int i = 0; i < 20; i++)
        walked(numbered("/a/f", i), now, "ddf");
    for (int i = 0; i < 2000; i++)
        walked(numbered("/a/no", i), now, "dda");
    for (int i = 0; i < 20; i++)
        assert_known(numbered("/a/f", i), "ddf");
}
END_TEST

START_TEST(scan_of_files_evicts_no_absent_name)
{
    start(10, 100, 20);
    for (int i = 0; i < 20; i++)
        walked(numbered("/a/no", i), now, "dda");
    for (int i = 0; i < 500; i++)
        walked(numbered("/a/f", i), now, "ddf");
    for (int i = 0; i < 20; i++)
        assert_known(numbered("/a/no", i), "dda");
}
END_TEST

START_TEST(what_was_asked_for_stays)
{
    start(4, 100, 100);
    for (int i = 0; i < 4; i++)
        walked(numbered("/f", i), now, "df");
    ck_assert(known("/f0"));
    ck_assert(known("/f2"));
    walked("/f4", now, "df");
    walked("/f5", now, "df");
    assert_known("/f0", "df");
    assert_known("/f2", "df");
    assert_unknown("/f1");
    assert_unknown("/f3");
}
END_TEST

START_TEST(scan_does_not_evict_what_is_asked_for)
{
    start(10, 100, 100);
    for (int i = 0; i < 5; i++)
        walked(numbered("/popular", i), now, "df");
    for (int i = 0; i < 1000; i++) {
        walked(numbered("/once", i), now, "df");
        ck_assert_msg(known(numbered("/popular", i % 5)), "after %d", i);
    }
}
END_TEST

START_TEST(smaller_limits_hold_at_once)
{
    const struct fp_cache_limits smaller = { 3, 100, 5, 2, SIZE_MAX, TTL, TTL };

    for (int i = 0; i < 20; i++) {
        walked(numbered("/f", i), now, "df");
        walked(numbered("/d", i), now, "dd");
        walked(numbered("/n", i), now, "da");
    }
    fp_cache_set_limits(cache, &smaller);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 3);
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 5);
    ck_assert_uint_eq(fp_cache_counts(cache).absent, 2);
    ck_assert_int_eq(cached_fds(), 3);
}
END_TEST

START_TEST(descriptors_can_be_given_back)
{
    for (int i = 0; i < 10; i++)
        walked(numbered("/a/f", i), now, "ddf");
    ck_assert_uint_eq(fp_cache_shed_files(cache, 0), 0);
    ck_assert_uint_eq(fp_cache_shed_files(cache, 3), 3);
    ck_assert_int_eq(cached_fds(), 7);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 7);
    ck_assert_uint_eq(fp_cache_shed_files(cache, 100), 7);
    ck_assert_int_eq(cached_fds(), 0);
    ck_assert_uint_eq(fp_cache_shed_files(cache, 1), 0);
    assert_unknown("/a/f3");
    assert_known("/a", "dd");
    walked("/a/f3", now, "ddf");
    assert_known("/a/f3", "ddf");
}
END_TEST

START_TEST(everything_can_be_forgotten)
{
    walked("/a/b/f", now, "dddf");
    walked("/l/no", now, "dla");
    fp_cache_clear(cache);
    ck_assert_int_eq(cached_fds(), 0);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 0);
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 0);
    ck_assert_uint_eq(fp_cache_counts(cache).absent, 0);
    assert_unknown("/a/b/f");
    assert_unknown("/");
    fp_cache_clear(cache);
    walked("/a/b/f", now, "dddf2");
    assert_known("/a/b/f", "dddf2");
}
END_TEST

static void add_change_tests(Suite *s)
{
    TCase *t = tcase_create("changes");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, file_is_replaced);
    tcase_add_test(t, replaced_directory_kills_what_is_below);
    tcase_add_test(t, replaced_root_kills_everything);
    tcase_add_test(t, other_rights_of_a_directory_kill_what_is_below);
    tcase_add_test(t, directory_whose_times_change_keeps_what_is_below);
    tcase_add_test(t, switched_link_kills_what_is_below);
    tcase_add_test(t, switched_back_link_stays_dead);
    tcase_add_test(t, switched_back_directory_stays_dead);
    tcase_add_test(t, link_whose_target_was_replaced);
    tcase_add_test(t, link_that_leads_nowhere_for_a_while);
    tcase_add_test(t, file_takes_the_place_of_a_directory);
    tcase_add_test(t, older_walk_does_not_replace_the_later);
    tcase_add_test(t, older_walk_adds_nothing_below_another_directory);
    tcase_add_test(t, older_walk_adds_nothing_below_an_absent_name);
    tcase_add_test(t, walk_that_others_passed_is_kept);
    tcase_add_test(t, walk_of_the_same_moment_replaces);
    suite_add_tcase(s, t);
}

static void add_bound_tests(Suite *s)
{
    TCase *t = tcase_create("bounds");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 30);
    tcase_add_test(t, files_are_bounded_with_their_descriptors);
    tcase_add_test(t, directories_are_bounded);
    tcase_add_test(t, absent_names_are_bounded);
    tcase_add_test(t, directories_with_files_are_bounded_too);
    tcase_add_test(t, a_path_deeper_than_the_limit);
    tcase_add_test(t, scan_of_absent_names_evicts_no_file);
    tcase_add_test(t, scan_of_files_evicts_no_absent_name);
    tcase_add_test(t, what_was_asked_for_stays);
    tcase_add_test(t, scan_does_not_evict_what_is_asked_for);
    tcase_add_test(t, smaller_limits_hold_at_once);
    tcase_add_test(t, descriptors_can_be_given_back);
    tcase_add_test(t, everything_can_be_forgotten);
    suite_add_tcase(s, t);
}

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache");
    TCase *t = tcase_create("knowing");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nothing_is_known_at_first);
    tcase_add_test(t, what_a_walk_found_is_known);
    tcase_add_test(t, every_kind_is_known);
    tcase_add_test(t, a_name_is_not_its_prefix);
    tcase_add_test(t, longest_and_deepest_path);
    tcase_add_test(t, no_answer_is_not_kept);
    tcase_add_test(t, descriptor_is_lent);
    tcase_add_test(t, a_local_file_is_known_as_one);
    tcase_add_test(t, time_to_live);
    tcase_add_test(t, looking_does_not_prolong);
    tcase_add_test(t, a_walk_prolongs_only_what_it_saw);
    tcase_add_test(t, walking_again_prolongs);
    tcase_add_test(t, shorter_time_to_live_holds_for_what_comes);
    tcase_add_test(t, nothing_is_below_an_absent_name);
    tcase_add_test(t, nothing_is_below_what_is_no_directory);
    tcase_add_test(t, a_walk_that_ended_above_answers_for_all_below);
    tcase_add_test(t, absent_name_appears);
    tcase_add_test(t, directory_disappears_and_comes_back);
    suite_add_tcase(s, t);
    add_change_tests(s);
    add_bound_tests(s);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
