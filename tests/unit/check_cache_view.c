/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache's facts and counters for operators.
 */
#include "config.h"
#include "cache/cache.h"

#include "cache_known_kit.h"

static enum fp_cache_state state(const char *path, uint64_t ms)
{
    return fp_cache_view(cache, path, strlen(path), 0, ms).state;
}

START_TEST(states)
{
    struct fp_cache_view v;

    ck_assert_int_eq((int)state("/a/f", now), FP_VIEW_UNKNOWN);
    walked("/a/f", now, "ddf");
    ck_assert_int_eq((int)state("/a/f", now), FP_VIEW_KNOWN);
    ck_assert_int_eq((int)state("/a/f", now + TTL), FP_VIEW_EXPIRED);
    v = fp_cache_view(cache, "/a/f", 4, 0, now);
    ck_assert_uint_eq(v.expires_ms, now + TTL);
    ck_assert(v.open && !v.content && !v.watched && !v.leased && !v.names);
    /* Another directory bears the name: the file was seen below the other. */
    walked("/a", now, "dd1");
    ck_assert_int_eq((int)state("/a/f", now), FP_VIEW_DETACHED);
    fp_cache_forget(cache, "/a", 2, true);
    ck_assert_int_eq((int)state("/a/f", now), FP_VIEW_UNKNOWN);
}
END_TEST

START_TEST(a_view_is_no_use)
{
    const struct fp_cache_counts before = fp_cache_counts(cache);

    walked("/f", now, "df");
    state("/f", now);
    state("/g", now);
    ck_assert_uint_eq(fp_cache_counts(cache).hits, before.hits);
    ck_assert_uint_eq(fp_cache_counts(cache).misses, before.misses);
}
END_TEST

START_TEST(what_has_expired_is_counted)
{
    struct fp_answer a;

    walked("/f", now, "df");
    ck_assert(kit_lookup(cache, "/f", now, &a));
    ck_assert(!kit_lookup(cache, "/g", now, &a));
    ck_assert_uint_eq(fp_cache_counts(cache).expired, 0);
    ck_assert(!kit_lookup(cache, "/f", now + TTL, &a));
    ck_assert_uint_eq(fp_cache_counts(cache).expired, 1);
}
END_TEST

START_TEST(what_is_found_changed_is_counted)
{
    walked("/f", now, "df");
    walked("/f", now, "df");
    ck_assert_uint_eq(fp_cache_counts(cache).differing, 0);
    walked("/f", now, "df1");
    ck_assert_uint_eq(fp_cache_counts(cache).differing, 1);
    walked("/f", now, "da");
    ck_assert_uint_eq(fp_cache_counts(cache).differing, 2);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_view");
    TCase *t = unit_add_case(s, "views", setup, teardown, 0);

    tcase_add_test(t, states);
    tcase_add_test(t, a_view_is_no_use);
    tcase_add_test(t, what_has_expired_is_counted);
    tcase_add_test(t, what_is_found_changed_is_counted);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
