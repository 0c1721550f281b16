/* SPDX-License-Identifier: Apache-2.0 */
/* The cache where watching ends: with a mount, with a directory's watch, or for want of watches. */
#include "config.h"
#include "cache/cache.h"

#include "cache_watch_kit.h"
#include "wire/packet.h"

/* ---- the end of watching ---- */

START_TEST(nothing_below_is_told_any_more)
{
    walked("/a/f", "ddf");
    walked("/b/f", "ddf");
    lose_watch("/a");
    assert_each(known, "!/a/f !/a /b/f");
    /* Its content may have changed, although it is the same itself. */
    walked("/a", "dd");
    assert_each(known, "/a !/a/f");
    walked("/a/f", "ddf");
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
}
END_TEST

/* Entries below are not counted: they are valid again with the entry that lost its watch. */
START_TEST(how_many_the_end_of_a_watch_concerns)
{
    const struct fp_watch_key t = key_of("/t", 2);

    walked("/a/f", "ddf");
    walk("/l/f", "dlf");
    ck_assert(fp_walk_result_add(&result, 1, &t, "current", 7));
    insert("/l/f");
    ck_assert_uint_eq(lose_watch("/c"), 0);
    ck_assert_uint_eq(lose_watch("/a"), 1);
    ck_assert_uint_eq(lose_watch("/a"), 0);
    ck_assert_uint_eq(lose_watch("/t"), 1);
    ck_assert_uint_eq(lose_watch("/a/f"), 1);
}
END_TEST

static void remount(const char *point, uint32_t mount)
{
    fp_cache_change_ops.remounted(cache, &(struct fp_remount){ point, mount }, 1);
}

/* Nor is a walk under way elsewhere: with many mounts nothing would ever be kept. */
START_TEST(a_mount_elsewhere_concerns_nothing)
{
    const uint64_t began = kit_now_ms;

    walked("/a/f", "ddf");
    walk("/b/f", "ddf");
    kit_now_ms++;
    for (unsigned i = 0; i < 1000; i++)
        remount("/home/u/mnt", 9);
    kit_now_ms++;
    insert_as("/b/f", began);
    assert_each(known, "/a/f /b/f");
}
END_TEST

/* What is watched hears by its watch that its file system has gone. */
START_TEST(a_mount_that_is_gone_again_concerns_what_is_not_watched)
{
    walk_unwatched("/m/f", "ddf");
    insert("/m/f");
    walked("/a/f", "ddf");
    ck_assert_uint_ge(fp_cache_change_ops.remounted(cache, NULL, 0), 1);
    assert_each(known, "/a/f !/m/f");
}
END_TEST

/* Its number may be another mount's by now. */
START_TEST(what_was_seen_of_a_mount_that_is_newer_than_the_walk)
{
    const uint64_t began = kit_now_ms;

    walk("/a/f", "ddf");
    kit_now_ms++;
    validity[1].mounted_ms = kit_now_ms;
    insert_as("/a/f", began);
    ck_assert(!known("/a/f"));
    walk("/a/f", "ddf");
    kit_now_ms++;
    insert("/a/f");
    ck_assert(known("/a/f"));
}
END_TEST

/* A mount that is gone when its walk ends is unknown, so the entries seen there are not watched. */
START_TEST(what_was_seen_of_a_mount_that_went_is_not_valid)
{
    const uint64_t began = kit_now_ms;

    walk_unwatched("/m/f", "ddf");
    kit_now_ms++;
    remount(_i == 0 ? "/m" : "/", 0);
    kit_now_ms++;
    insert_as("/m/f", began);
    ck_assert(!known("/m/f"));
    walk_unwatched("/m/f", "ddf");
    insert("/m/f");
    ck_assert(known("/m/f"));
}
END_TEST

static void walk_on(const char *path, const char *what, uint32_t mount)
{
    walk(path, what);
    validity[1].mount = validity[2].mount = mount;
    if (answer.fd == -1)
        answer.fd = kit_file('0');
    insert(path);
}

/* Else the file system would stay in use until somebody asks for them. */
START_TEST(what_is_open_on_a_mount_that_went_is_closed)
{
    walk_on("/m/file", "ddf", 7);
    walk_on("/m/changed", "ddf", 7);
    walk_on("/m/dir", "ddd", 7);
    walk_on("/n/file", "ddf", 8);
    walk_on("/n/dir", "ddd", 8);
    change("/m", "changed", false);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 3);
    ck_assert_uint_eq(fp_cache_counts(cache).open_dirs, 2);
    remount("/m", 7);
    kit_now_ms++;
    ck_assert_uint_eq(fp_cache_counts(cache).files, 1);
    ck_assert_uint_eq(fp_cache_counts(cache).open_dirs, 1);
    assert_each(known, "!/m/file !/m/changed !/m/dir /n/file /n/dir");
    walked("/m/file", "ddf");
    assert_each(known, "/m/file !/m/dir");
}
END_TEST

/* Nothing reports events there, except that another file system is mounted there now. */
START_TEST(what_is_not_watched_goes_with_its_mount)
{
    walk_unwatched("/m/f", "ddf");
    insert("/m/f");
    walk_unwatched("/n/f", "ddf");
    insert("/n/f");
    ck_assert_uint_eq(invalidate("/m"), 2);
    assert_each(known, "!/m/f !/m /n/f");
}
END_TEST

START_TEST(only_what_is_watched_is_doubted)
{
    walk("/w/f", "ddf");
    validity[0].traits.verdict = FP_TTL_UNWATCHED;
    insert("/w/f");
    walk_unwatched("/u/f", "ddf");
    insert("/u/f");
    ck_assert(known("/w/f"));
    ck_assert_uint_eq(invalidate("/elsewhere"), 0);
    ck_assert_uint_eq(invalidate("/w/g"), 0);
    ck_assert_uint_eq(invalidate("/wider"), 0);
    ck_assert(known("/w/f"));
    ck_assert_uint_eq(invalidate("/w"), 2);
    assert_each(known, "!/w/f !/w /u/f");
    ck_assert_uint_eq(invalidate("/w"), 0);
    ck_assert_uint_eq(invalidate(NULL), 0);
    ck_assert(known("/u/f"));
}
END_TEST

/* Their targets do not show in their path. */
START_TEST(links_are_doubted_everywhere)
{
    walked("/l/f", "dlf");
    walked("/a/f", "ddf");
    ck_assert_uint_eq(invalidate("/mnt"), 2); /* the link and what lies below */
    assert_each(known, "!/l/f /a/f");
    ck_assert_uint_eq(invalidate(NULL), 3);
    ck_assert(!known("/a/f"));
}
END_TEST

START_TEST(watches_are_given_up)
{
    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 4);
    ck_assert_uint_eq(forgotten, 0);
    /* Seen again, as another thing with another key. */
    kit_now_ms++;
    walk("/a/f", "ddf1");
    result.step_watches[2].watch = key_of("/new", 4);
    insert("/a/f");
    ck_assert_uint_eq(forgotten, 1);
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 4);
    kit_now_ms++;
    walked("/a/f", "ddf1");
    ck_assert_uint_eq(forgotten, 2);
    fp_cache_clear(cache);
    ck_assert_uint_eq(forgotten, 6);
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 0);
}
END_TEST

/* The same directory, but what its descriptor leads to lies beneath the mount. */
START_TEST(a_directory_that_is_mounted_over_itself)
{
    struct fp_cache_base base;

    walk("/a", "dd");
    answer.fd = kit_file('a');
    insert("/a");
    ck_assert(fp_cache_find_base(cache, "/a/f", 4, 2, kit_now_ms, &base));
    kit_now_ms++;
    remount("/a", 2);
    kit_now_ms++;
    walk("/a/b/f", "dddf");
    for (unsigned i = 1; i < answer.n_steps; i++)
        validity[i].mount = result.step_watches[i].mount = 2;
    insert("/a/b/f");
    ck_assert(known("/a/b/f"));
    ck_assert(!fp_cache_find_base(cache, "/a/f", 4, 2, kit_now_ms, &base));
}
END_TEST

/* ---- watches that nobody needs ---- */

/* No entry took what the walk had watched, unless another one needs it. */
START_TEST(watches_of_a_failed_walk_are_given_up)
{
    walked("/a/f", "ddf");
    walk("/a/g", "ddf");
    ck_assert(fp_walk_result_add(&result, 2, &(struct fp_watch_key){ .len = 3, .bytes = { 1, 2, 3 } }, "x", 1));
    result.n_steps = 3;
    fp_close(&answer.fd);
    fp_cache_release_watches(cache, &result);
    ck_assert_uint_eq(forgotten, 2);
    ck_assert(known("/a/f"));
    /* A walk that relied on one finds out. */
    insert("/a/g");
    ck_assert(!known("/a/g"));
}
END_TEST

/* The system has no more: what is not in use gives up its own, and what is in use does not. */
START_TEST(watches_for_what_is_in_use)
{
    const struct fp_cache_limits limits = { 1000, 1000, 1000, 1000, SIZE_MAX, WATCHED_TTL };
    char path[32];

    start(&limits, SLOTS);
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof(path), "/f%d", i);
        walked(path, i % 2 == 0 ? "df" : "da");
    }
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 26);
    for (int round = 0; round < 10; round++) {
        ck_assert(known("/f0"));
        fp_cache_evict_watched(cache, 2);
    }
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 6);
    ck_assert_uint_eq(fp_cache_counts(cache).negatives, 25);
    ck_assert(known("/f0"));
    fp_cache_evict_watched(cache, 0);
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 6);
    fp_cache_evict_watched(cache, 100);
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 1);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_unwatched");
    TCase *t = unit_add_case(s, "end", setup, teardown, 0);

    tcase_add_test(t, nothing_below_is_told_any_more);
    tcase_add_test(t, how_many_the_end_of_a_watch_concerns);
    tcase_add_loop_test(t, what_was_seen_of_a_mount_that_went_is_not_valid, 0, 2);
    tcase_add_test(t, a_mount_elsewhere_concerns_nothing);
    tcase_add_test(t, a_mount_that_is_gone_again_concerns_what_is_not_watched);
    tcase_add_test(t, what_was_seen_of_a_mount_that_is_newer_than_the_walk);
    tcase_add_test(t, what_is_open_on_a_mount_that_went_is_closed);
    tcase_add_test(t, what_is_not_watched_goes_with_its_mount);
    tcase_add_test(t, only_what_is_watched_is_doubted);
    tcase_add_test(t, links_are_doubted_everywhere);
    tcase_add_test(t, watches_are_given_up);
    tcase_add_test(t, a_directory_that_is_mounted_over_itself);
    tcase_add_test(t, watches_of_a_failed_walk_are_given_up);
    tcase_add_test(t, watches_for_what_is_in_use);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
