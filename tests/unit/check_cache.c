/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/cache.h"

#include "cache_known_kit.h"

/* ---- knowing ---- */

START_TEST(nothing_is_known_at_first)
{
    assert_unknown("/ /a /a/b/c");
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
    assert_unknown("/a/b/g /b");
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
    assert_unknown("/a /abc /ab/ff /no /no/x");
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
    assert_unknown("/a/f /a/no /a /");
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

/* An entry keeps the TTL under which it was inserted. */
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
    ck_assert_uint_eq(fp_cache_counts(cache).negatives, 1);
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
    assert_unknown("/a/b/c/f /a/b/no /a/b");
    assert_known("/z/f", "ddf");
}
END_TEST

START_TEST(replaced_root_kills_everything)
{
    walked("/a/f", now, "ddf");
    walked("/", now + 1, "d1");
    assert_unknown("/a/f /a");
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
    assert_unknown("/a/b/f /a/b");
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
    assert_unknown("/a/b/f /a/no");
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

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache");
    TCase *t = unit_add_case(s, "knowing", setup, teardown, 0);

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
    t = unit_add_case(s, "changes", setup, teardown, 0);
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
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
