/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/cache.h"

#include "cache_known_kit.h"

/* ---- knowledge ---- */

START_TEST(nothing_is_known_at_first)
{
    assert_unknown("/ /a /a/b/c");
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
    ck_assert_uint_eq(fp_cache_counts(cache).files, 1);
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 3);
    ck_assert_int_eq(cached_fds(), 1);
}
END_TEST

START_TEST(every_kind_is_known)
{
    static const struct {
        const char *path, *what;
    } rows[] = { { "/", "d" },   { "/f", "df" }, { "/u", "du" }, { "/a", "da" },    { "/x", "dx" },
                 { "/l", "dl" }, { "/L", "dL" }, { "/b", "db" }, { "/k/f", "dlf" }, { "/k/m/n", "dllL" } };
    const size_t n = sizeof(rows) / sizeof(rows[0]);

    for (size_t i = 0; i < n; i++)
        walked(rows[i].path, now, rows[i].what);
    for (size_t i = 0; i < n; i++)
        assert_known(rows[i].path, rows[i].what);
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
    kit_insert(cache, "/a/f", now, &answer);
    ck_assert(known("/a/f"));
    ck_assert(answer.local);
    ck_assert(known("/a/f/x"));
    ck_assert(!answer.local);
    ck_assert(known("/a"));
    ck_assert(!answer.local);
    kit_answer(&answer, "/a/f", "ddf");
    fp_cache_insert(cache, "/a/f", 4, NULL, now, kit_unwatched(false), &answer);
    ck_assert(known("/a/f"));
    ck_assert(!answer.local);
}
END_TEST

/* ---- time ---- */

START_TEST(looking_does_not_prolong)
{
    walked("/f", now, "df");
    for (int i = 0; i < TTL; i++, now++)
        ck_assert(known("/f"));
    assert_unknown("/f");
}
END_TEST

/* An entry keeps the TTL under which it was inserted. */
START_TEST(shorter_time_to_live_holds_for_what_comes)
{
    walked("/f", now, "df");
    now += 10;
    kit_ttl_ms = 10;
    walked("/a/g", now, "ddf");
    now += 10;
    assert_unknown("/a/g");
    assert_unknown("/f"); /* it was "/" that the second walk saw */
    walked("/", now, "d");
    assert_known("/f", "df");
}
END_TEST

/* ---- absent names ---- */

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

/* ---- changed entries ---- */

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

/* Without a report of its kind the change may concern the right to pass the directory. */
START_TEST(directory_whose_change_time_changes)
{
    walked("/a/f", now, "ddf");
    kit_answer(&answer, "/a", "dd");
    answer.steps[1].self.nlink = 9;
    kit_insert(cache, "/a", now + 1, &answer);
    ck_assert(known("/a/f"));
    kit_answer(&answer, "/a", "dd");
    answer.steps[1].self.mtime.sec = answer.steps[1].self.ctime.sec = 77;
    kit_insert(cache, "/a", now + 2, &answer);
    assert_unknown("/a/f");
    ck_assert(known("/a"));
    ck_assert_int_eq(answer.steps[1].self.mtime.sec, 77);
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

/* ---- stories ---- */

/*
 * Walks, and the knowledge after them, in that order: "1:/a/f=ddf2" a walk of "/a/f" that began in
 * 1 ms found "ddf2" (cache_kit.h); "/a/f=ddf2" it is known and exactly that; "!/a/f" it is unknown;
 * "#1" so many files are open; "+99" so many ms go by (the TTL is 100).
 */
static const struct story {
    const char *name, *steps;
} stories[] = {
    { "time to live", "0:/a/f=ddf 0:/a/no=dda +99 /a/f=ddf /a/no=dda +1 !/a/f !/a/no !/a !/" },
    { "a walk prolongs only what it saw", "0:/a/f=ddf 50:/a/g=ddf +120 !/a/f /a/g=ddf /a=dd" },
    { "walking again prolongs", "0:/a/f=ddf1 90:/a/f=ddf1 +150 /a/f=ddf1 #1" },
    /* A directory in between becomes valid again without the entries below it. */
    { "switched back directory stays dead",
      "0:/a/b/f=dddf 1:/a=dd1 2:/a=dd /a=dd !/a/b/f !/a/b 3:/a/b=ddd /a/b=ddd" },
    /* Otherwise a slow walk would never be known while faster ones pass it. It is as old as it is. */
    { "walk that others passed is kept",
      "20:/fast/f=ddf 10:/slow/f=ddf /slow/f=ddf /fast/f=ddf 30:/fast/g=ddf 25:/fast/h=ddf "
      "/fast/h=ddf +110 !/slow/f /fast/f=ddf" },
    { "a name is not its prefix", "0:/ab/f=ddf 0:/n=da !/a !/abc !/ab/ff !/no !/no/x" },
    { "nothing is below an absent name", "0:/a/no=dda /a/no=dda /a/no/x=dda /a/no/x/y/z=dda !/a/nox" },
    { "absent name appears", "0:/a=da 1:/a/f=ddf /a/f=ddf /a=dd !/a/g" },
    { "directory disappears and comes back", "0:/a/f=ddf 1:/a=da /a/f=da 2:/a/g=ddf /a/g=ddf !/a/f" },
    { "file is replaced",
      "0:/a/f=ddf1 1:/a/f=ddf2 /a/f=ddf2 #1 2:/a/f=ddu /a/f=ddu #0 3:/a/f=dda /a/f=dda 4:/a/f=ddd "
      "/a/f=ddd !/a/f/x" },
    { "replaced directory kills what is below",
      "0:/a/b/c/f=ddddf 0:/a/b/no=ddda 0:/z/f=ddf 1:/a/g=dd1f /a/g=dd1f !/a/b/c/f !/a/b/no !/a/b "
      "/z/f=ddf" },
    { "replaced root kills everything", "0:/a/f=ddf 1:/=d1 !/a/f !/a" },
    { "switched link kills what is below",
      "0:/current/a/f=dl1d1f 0:/current/a/g=dl1d1f 1:/current/a/f=dl2d2f5 /current/a/f=dl2d2f5 "
      "!/current/a/g" },
    { "switched back link stays dead",
      "0:/current/f=dl1f 1:/current=dl2 !/current/f 2:/current=dl1 /current=dl1 !/current/f "
      "3:/current/f=dl1f /current/f=dl1f" },
    { "link that leads nowhere for a while", "0:/l/f=dlf 1:/l=db /l/f=db 2:/l=dl /l=dl !/l/f" },
    { "file takes the place of a directory",
      "0:/a/b/f=dddf 0:/a/no=dda 1:/a=df /a=df /a/b/f=du /a/no=du 2:/a=dd /a=dd !/a/b/f !/a/no" },
    { "older walk does not replace the later",
      "20:/a/f=ddf2 10:/a/f=ddf1 /a/f=ddf2 #1 15:/a/f=dda /a/f=ddf2" },
    { "older walk adds nothing below another directory", "20:/a=dd2 10:/a/f=dd1f !/a/f /a=dd2 #0" },
    { "older walk adds nothing below an absent name", "20:/a=da 10:/a/f=ddf /a/f=da #0" },
    { "walk of the same moment replaces", "0:/f=df1 0:/f=df2 /f=df2" },
};

static void play(const char *name, char *step)
{
    char *what = step, *path = strsep(&what, "="),
         *ms = strchr(path, ':') != NULL ? strsep(&path, ":") : NULL;

    if (ms != NULL) {
        walked(path, now + (uint64_t)atoi(ms), what);
    } else if (*path == '+') {
        now += (uint64_t)atoi(path);
    } else if (*path == '#') {
        ck_assert_msg(cached_fds() == atoi(path + 1), "%s: %d, not %s", name, cached_fds(), path);
    } else if (*path == '!') {
        ck_assert_msg(unknown(path + 1), "%s: %s", name, path);
    } else {
        ck_assert_msg(known(path), "%s: %s is not known", name, path);
        assert_known(path, what);
    }
}

START_TEST(as_the_story_goes)
{
    char copy[512], *rest = copy, *step;

    ck_assert_int_lt(snprintf(copy, sizeof(copy), "%s", stories[_i].steps), (int)sizeof(copy));
    while ((step = strsep(&rest, " ")) != NULL)
        play(stories[_i].name, step);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache");
    TCase *t = unit_add_case(s, "knowing", setup, teardown, 0);

    tcase_add_test(t, nothing_is_known_at_first);
    tcase_add_test(t, what_a_walk_found_is_known);
    tcase_add_test(t, every_kind_is_known);
    tcase_add_test(t, longest_and_deepest_path);
    tcase_add_test(t, no_answer_is_not_kept);
    tcase_add_test(t, descriptor_is_lent);
    tcase_add_test(t, a_local_file_is_known_as_one);
    tcase_add_test(t, looking_does_not_prolong);
    tcase_add_test(t, shorter_time_to_live_holds_for_what_comes);
    tcase_add_test(t, nothing_is_below_what_is_no_directory);
    tcase_add_test(t, a_walk_that_ended_above_answers_for_all_below);
    t = unit_add_case(s, "changes", setup, teardown, 0);
    tcase_add_test(t, other_rights_of_a_directory_kill_what_is_below);
    tcase_add_test(t, directory_whose_change_time_changes);
    tcase_add_test(t, link_whose_target_was_replaced);
    t = unit_add_case(s, "stories", setup, teardown, 0);
    tcase_add_loop_test(t, as_the_story_goes, 0, sizeof(stories) / sizeof(stories[0]));
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
