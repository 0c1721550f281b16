/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache's facts and counters for operators.
 */
#include "config.h"
#include "cache/cache.h"

#include "cache_known_kit.h"

static enum fp_cache_state state(const char *path, uint64_t ms)
{
    return fp_cache_snapshot(cache, path, strlen(path), ms).state;
}

START_TEST(states)
{
    struct fp_cache_snapshot v;

    ck_assert_int_eq((int)state("/a/f", now), FP_CACHE_UNKNOWN);
    walked("/a/f", now, "ddf");
    ck_assert_int_eq((int)state("/a/f", now), FP_CACHE_KNOWN);
    ck_assert_int_eq((int)state("/a/f", now + TTL), FP_CACHE_EXPIRED);
    v = fp_cache_snapshot(cache, "/a/f", 4, now);
    ck_assert_uint_eq(v.expires_ms, now + TTL);
    ck_assert(v.open && !v.content && v.verdict == FP_TTL_UNWATCHED && !v.leased);
    /* Another directory bears the name: the file was seen below the other. */
    walked("/a", now, "dd1");
    ck_assert_int_eq((int)state("/a/f", now), FP_CACHE_DETACHED);
    fp_cache_forget(cache, "/a", 2, true);
    ck_assert_int_eq((int)state("/a/f", now), FP_CACHE_UNKNOWN);
}
END_TEST

START_TEST(a_snapshot_is_no_use)
{
    const struct fp_cache_counts before = fp_cache_counts(cache);

    walked("/f", now, "df");
    ck_assert_int_eq((int)state("/f", now + 1000000), FP_CACHE_EXPIRED);
    ck_assert_uint_eq(fp_cache_counts(cache).expired, before.expired);
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

/* ---- lists of paths ---- */

#define MANY 3000 /* more than the buckets that are looked at at once */

struct listed {
    unsigned n, most, unused_before_used;
    unsigned char times[MANY];
};

/* The number at the end of "/f17". */
static bool list(void *ctx, const char *path, size_t len)
{
    struct listed *l = ctx;
    const unsigned i = (unsigned)strtoul(path + 2, NULL, 10);

    (void)len;
    if (l->n == l->most)
        return false;
    l->n++;
    l->times[i]++;
    l->unused_before_used += i % 2 == 0 && l->n <= MANY / 2;
    return true;
}

static void know_many(char path[16])
{
    struct fp_answer a;

    start(MANY, MANY, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(path, 16, "/f%u", i);
        walked(path, now, "da");
        if (i % 2 == 1)
            kit_lookup(cache, path, now, &a);
    }
}

START_TEST(all_paths_are_listed_those_in_use_first)
{
    struct fp_cache_cursor at = { .bucket = 0 };
    struct listed l = { .most = MANY };
    char path[16];
    unsigned calls = 1;

    know_many(path);
    while (fp_cache_list_some(cache, &at, now, list, &l))
        calls++;
    ck_assert_uint_gt(calls, 2);
    ck_assert_uint_eq(l.n, MANY);
    ck_assert_uint_eq(l.unused_before_used, 0);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_uint_eq(l.times[i], 1);
}
END_TEST

START_TEST(a_full_list_ends)
{
    struct fp_cache_cursor at = { .bucket = 0 };
    struct listed l = { .most = 7 };
    char path[16];

    know_many(path);
    while (fp_cache_list_some(cache, &at, now, list, &l))
        ;
    ck_assert_uint_eq(l.n, 7);
}
END_TEST

/* Nobody asked for the file of late, but it was asked for once; the absent name is no use to anybody. */
START_TEST(an_expired_file_is_listed)
{
    struct fp_cache_cursor at = { .bucket = 0 };
    struct listed l = { .most = MANY };

    walked("/f1", now, "df");
    walked("/f2", now, "da");
    while (fp_cache_list_some(cache, &at, now + TTL, list, &l))
        ;
    ck_assert_uint_eq(l.times[1], 1);
    ck_assert_uint_eq(l.times[2], 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_view");
    TCase *t = unit_add_case(s, "snapshots", setup, teardown, 0);

    tcase_add_test(t, states);
    tcase_add_test(t, a_snapshot_is_no_use);
    tcase_add_test(t, what_has_expired_is_counted);
    tcase_add_test(t, what_is_found_changed_is_counted);
    tcase_add_test(t, all_paths_are_listed_those_in_use_first);
    tcase_add_test(t, a_full_list_ends);
    tcase_add_test(t, an_expired_file_is_listed);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
