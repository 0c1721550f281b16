/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's answers when a file system does not answer: stale answers, and the mount in question. */
#include "config.h"
#include "cache/cache.h"

#include "cache_watch_kit.h"

/* ---- stale answers ---- */

START_TEST(stale_answers)
{
    const uint64_t seen = kit_now_ms;

    walk_unwatched("/a/f", "ddf");
    insert("/a/f");
    ck_assert(known_at("/a/f", seen + TTL - 1));
    ck_assert(!known_at("/a/f", seen + TTL));
    for (uint64_t ms = TTL - 1; ms < TTL + STALE; ms += 10) {
        ck_assert(known_stale("/a/f", seen + ms));
        ck_assert_int_eq((int)answer.source, FP_SOURCE_STALE);
        ck_assert(!answer.leasable);
        ck_assert_uint_eq(answer.n_steps, 3);
        ck_assert_int_ne(answer.fd, -1);
    }
    ck_assert(known_stale("/a/f", seen + TTL + STALE - 1));
    ck_assert(!known_stale("/a/f", seen + TTL + STALE));
    ck_assert(!known_stale("/a/g", seen));
}
END_TEST

START_TEST(stale_answers_of_what_is_watched)
{
    const uint64_t seen = kit_now_ms;

    walked("/a/f", "ddf");
    ck_assert(!known_at("/a/f", seen + WATCHED_TTL));
    ck_assert(known_stale("/a/f", seen + WATCHED_TTL));
    ck_assert(!known_stale("/a/f", seen + WATCHED_TTL + STALE));
}
END_TEST

START_TEST(where_no_stale_answers_are_allowed)
{
    const uint64_t seen = kit_now_ms;

    walk("/a/f", "ddf");
    for (int i = 0; i < 3; i++) {
        validity[i].traits.verdict = FP_TTL_UNWATCHED;
        validity[i].stale_ms = i == _i ? 0 : STALE;
    }
    insert("/a/f");
    ck_assert(known_stale("/a/f", seen + TTL - 1));
    ck_assert(!known_stale("/a/f", seen + TTL));
}
END_TEST

START_TEST(what_was_told_to_have_changed_is_never_stale)
{
    walked("/a/f", "ddf");
    switch (_i) {
    case 0: change("/a", "f", false); break;
    case 1: change("/a", "f", true); break;
    case 2: change("/a/f", "", false); break;
    case 3: change("/a", "", false); break;
    case 4: change("/", "a", true); break;
    case 5: invalidate(NULL); break;
    case 6: invalidate("/a"); break;
    case 7: lose_watch("/a"); break;
    }
    ck_assert(!known_stale("/a/f", kit_now_ms));
}
END_TEST

/* ---- mounts ---- */

START_TEST(mount_of_a_path)
{
    size_t len = 99;

    ck_assert_uint_eq(fp_cache_mount(cache, "/m/d/f", 6, &len), 0);
    ck_assert_uint_eq(len, 0);
    walk("/m/d/f", "dddf");
    validity[1].mount = validity[2].mount = validity[3].mount = 7;
    insert("/m/d/f");
    ck_assert_uint_eq(fp_cache_mount(cache, "/m/d/f", 6, &len), 7);
    ck_assert_uint_eq(len, 6);
    ck_assert_uint_eq(fp_cache_mount(cache, "/m/d/no/x", 9, &len), 7);
    ck_assert_uint_eq(len, 4);
    ck_assert_uint_eq(fp_cache_mount(cache, "/x", 2, &len), 1);
    ck_assert_uint_eq(len, 1);
    /* An absent name is where the directory is; and valid or not. */
    walk("/m/no", "dda");
    validity[1].mount = 7;
    insert("/m/no");
    ck_assert_uint_eq(fp_cache_mount(cache, "/m/no", 5, &len), 7);
    invalidate(NULL);
    ck_assert_uint_eq(fp_cache_mount(cache, "/m/d/f", 6, &len), 7);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_stale");
    TCase *t = unit_add_case(s, "stale", setup, teardown, 0);

    tcase_add_test(t, stale_answers);
    tcase_add_test(t, stale_answers_of_what_is_watched);
    tcase_add_loop_test(t, where_no_stale_answers_are_allowed, 0, 3);
    tcase_add_loop_test(t, what_was_told_to_have_changed_is_never_stale, 0, 8);
    t = unit_add_case(s, "mounts", setup, teardown, 0);
    tcase_add_test(t, mount_of_a_path);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
