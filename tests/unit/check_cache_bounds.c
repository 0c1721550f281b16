/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the cache, and the entries evicted at each. */
#include "config.h"
#include "cache/cache.h"

#include <signal.h>

#include "cache_known_kit.h"
#include "privsep/closer.h"

static const char *numbered(const char *prefix, int i)
{
    static char bufs[4][64];
    static unsigned turn;
    char *buf = bufs[turn++ % 4];

    snprintf(buf, sizeof(bufs[0]), "%s%d", prefix, i);
    return buf;
}

START_TEST(files_are_bounded_with_their_descriptors)
{
    start(4, 100, 100);
    for (int i = 0; i < 50; i++) {
        walked(numbered("/f", i), now, "df");
        ck_assert_uint_le(fp_cache_counts(cache).files, 4);
        ck_assert_int_eq(cached_fds(), (int)fp_cache_counts(cache).files);
    }
    ck_assert_uint_eq(fp_cache_counts(cache).files, 4);
    /* The others are known without descriptors: no entry is gone. */
    ck_assert_uint_eq(fp_cache_counts(cache).closed, 46);
    ck_assert_uint_eq(fp_cache_counts(cache).evictions, 0);
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 1 + 46);
}
END_TEST

/* Closers that are stopped: as if no file system answered. */
START_TEST(descriptors_that_wait_to_be_closed_take_places_of_files)
{
    pid_t pids[FP_CLOSERS];

    start(8, 100, 100);
    for (int i = 0; i < 8; i++)
        walked(numbered("/f", i), now, "df");
    ck_assert_int_eq(fp_closer_start(256, NULL, NULL, NULL, pids), 0);
    for (int i = 0; i < FP_CLOSERS; i++) {
        ck_assert_int_eq(kill(pids[i], SIGSTOP), 0);
        ck_assert_int_eq(waitpid(pids[i], NULL, WUNTRACED), pids[i]);
    }
    for (int i = 0; i < 3; i++) {
        int fd = open("/", O_PATH | O_CLOEXEC);

        fp_close_file(&fd, 1);
    }
    ck_assert_uint_eq(fp_closer_waiting(), 3);
    walked("/absent", now, "da");
    ck_assert_uint_eq(fp_cache_counts(cache).files, 5);
    for (int i = 0; i < FP_CLOSERS; i++)
        kill(pids[i], SIGCONT);
    while (fp_closer_waiting() > 0)
        usleep(1000);
    fp_closer_stop();
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
    ck_assert_uint_eq(fp_cache_counts(cache).negatives, 4);
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
    /* The entries above the latest one: an answer about it needs them. */
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 6);
    assert_known("/a/b/c/d/e/no", "dddddda");
    walked("/no", now, "da");
    ck_assert_uint_le(fp_cache_counts(cache).directories, 1);
    ck_assert_uint_le(fp_cache_counts(cache).files, 1);
    ck_assert_uint_le(fp_cache_counts(cache).negatives, 1);
    ck_assert_int_eq(cached_fds(), (int)fp_cache_counts(cache).files);
}
END_TEST

/* A scan of files evicts no absent name, and a scan of absent names no file. */
START_TEST(scan_of_one_kind_evicts_none_of_the_other)
{
    const char *kept = _i == 0 ? "/a/f" : "/a/no", *kept_as = _i == 0 ? "ddf" : "dda";
    const char *scanned = _i == 0 ? "/a/no" : "/a/f", *scanned_as = _i == 0 ? "dda" : "ddf";

    start(_i == 0 ? 20 : 10, 100, _i == 0 ? 10 : 20);
    for (int i = 0; i < 20; i++)
        walked(numbered(kept, i), now, kept_as);
    for (int i = 0; i < 2000; i++)
        walked(numbered(scanned, i), now, scanned_as);
    for (int i = 0; i < 20; i++)
        assert_known(numbered(kept, i), kept_as);
}
END_TEST

START_TEST(what_was_asked_for_stays)
{
    start(4, 100, 100);
    for (int i = 0; i < 4; i++)
        walked(numbered("/f", i), now, "df");
    assert_each(known, "/f0 /f2");
    walked("/f4", now, "df");
    walked("/f5", now, "df");
    assert_known("/f0", "df");
    assert_known("/f2", "df");
    assert_unknown("/f1 /f3");
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
    const struct fp_cache_limits smaller = { 3, 100, 5, 2, SIZE_MAX, TTL };

    for (int i = 0; i < 20; i++) {
        walked(numbered("/f", i), now, "df");
        walked(numbered("/d", i), now, "dd");
        walked(numbered("/n", i), now, "da");
    }
    fp_cache_set_limits(cache, &smaller);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 3);
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 5);
    ck_assert_uint_eq(fp_cache_counts(cache).negatives, 2);
    ck_assert_int_eq(cached_fds(), 3);
}
END_TEST

START_TEST(descriptors_can_be_given_back)
{
    for (int i = 0; i < 10; i++)
        walked(numbered("/a/f", i), now, "ddf");
    ck_assert_uint_eq(fp_cache_evict_files(cache, 0), 0);
    ck_assert_uint_eq(fp_cache_evict_files(cache, 3), 3);
    ck_assert_int_eq(cached_fds(), 7);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 7);
    ck_assert_uint_eq(fp_cache_evict_files(cache, 100), 7);
    ck_assert_int_eq(cached_fds(), 0);
    ck_assert_uint_eq(fp_cache_evict_files(cache, 1), 0);
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
    ck_assert_uint_eq(fp_cache_counts(cache).negatives, 0);
    assert_unknown("/a/b/f /");
    fp_cache_clear(cache);
    walked("/a/b/f", now, "dddf2");
    assert_known("/a/b/f", "dddf2");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_bounds");
    TCase *t = unit_add_case(s, "bounds", setup, teardown, 30);

    tcase_add_test(t, files_are_bounded_with_their_descriptors);
    tcase_add_test(t, descriptors_that_wait_to_be_closed_take_places_of_files);
    tcase_add_test(t, directories_are_bounded);
    tcase_add_test(t, absent_names_are_bounded);
    tcase_add_test(t, directories_with_files_are_bounded_too);
    tcase_add_test(t, a_path_deeper_than_the_limit);
    tcase_add_loop_test(t, scan_of_one_kind_evicts_none_of_the_other, 0, 2);
    tcase_add_test(t, what_was_asked_for_stays);
    tcase_add_test(t, scan_does_not_evict_what_is_asked_for);
    tcase_add_test(t, smaller_limits_hold_at_once);
    tcase_add_test(t, descriptors_can_be_given_back);
    tcase_add_test(t, everything_can_be_forgotten);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
