/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents in the place of descriptors: for which files they are asked for, how much
 * there may be of them, and which leases end when one comes or goes.
 */
#include "config.h"
#include "cache/cache.h"

#include "hash_kit.h"
#include "common/lease_table.h"
#include "common/packet.h"
#include "cache_kit.h"

#define TTL      100
#define FILE_MAX 6000u /* two pages of the smallest size */

static struct fp_cache *cache;
static struct fp_lease_table *lease_table;
static struct fp_answer answer;
static size_t page;
static int fds_at_rest;
static uint64_t now;

static void allow(uint32_t file_max, size_t bytes)
{
    const struct fp_cache_content content = { file_max, bytes };

    fp_cache_set_content(cache, &content);
}

static void setup(void)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, TTL, TTL };
    struct fp_cache_deps deps = { .now_ms = kit_clock, .checked = true };

    unit_init_hash();
    page = (size_t)sysconf(_SC_PAGESIZE);
    fds_at_rest = unit_open_fds();
    now = 1000;
    lease_table = deps.lease_table = fp_lease_table_create(100);
    cache = fp_cache_create(&limits, &deps);
    ck_assert_ptr_nonnull(cache);
    allow(FILE_MAX, 1 << 20);
}

static void teardown(void)
{
    fp_cache_clear(cache);
    ck_assert_uint_eq(fp_cache_counts(cache).content_files, 0);
    ck_assert_uint_eq(fp_cache_counts(cache).content_bytes, 0);
    fp_cache_destroy(&cache);
    fp_lease_table_destroy(&lease_table);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

/* A walk that brings the file's content, or its descriptor. */
static void walked(const char *path, const char *what, uint64_t size, bool content)
{
    struct fp_step *last;

    kit_answer(&answer, path, what);
    last = &answer.steps[answer.n_steps - 1];
    last->self.size = last->target.size = size;
    answer.content = answer.local = content;
    kit_insert(cache, path, now, &answer);
    ck_assert_int_eq(answer.fd, -1);
}

static bool known(const char *path)
{
    return kit_lookup(cache, path, now, &answer);
}

static void assert_known(const char *path, bool content)
{
    ck_assert(known(path));
    ck_assert_int_ne(answer.fd, -1);
    ck_assert_int_eq(answer.content, content);
    ck_assert_int_eq(answer.local, content);
}

static void assert_contents(size_t files, size_t pages)
{
    ck_assert_uint_eq(fp_cache_counts(cache).content_files, files);
    ck_assert_uint_eq(fp_cache_counts(cache).content_bytes, pages * page);
}

static uint32_t wanted(const char *path, bool is_known)
{
    return fp_cache_content_max(cache, path, strlen(path), is_known);
}

static bool find_known(const char *path)
{
    struct fp_meta m;

    return fp_cache_find_known(cache, path, strlen(path), &m);
}

START_TEST(content_is_kept_as_a_file_is)
{
    walked("/a/f", "ddf", 10, true);
    assert_known("/a/f", true);
    ck_assert_int_eq(kit_version_of(answer.fd), '0');
    assert_contents(1, 1);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 1);
    walked("/a/g", "ddf", page, true);
    walked("/a/h", "ddL", page + 1, true);
    walked("/a/i", "ddf", 10, false);
    assert_known("/a/i", false);
    assert_contents(3, 4);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 4);
}
END_TEST

START_TEST(content_that_goes_is_accounted)
{
    walked("/a/f", "ddf", 10, true);
    walked("/a/f", "ddf", 10, true);
    assert_contents(1, 1);
    walked("/a/f", "ddf1", 10, false);
    assert_known("/a/f", false);
    assert_contents(0, 0);
    walked("/a/f", "ddf2", 10, true);
    walked("/a/f", "dda", 0, false);
    assert_contents(0, 0);
    walked("/a/f", "ddf3", 10, true);
    ck_assert_uint_eq(fp_cache_forget(cache, "/a/f", 4, false), 1);
    assert_contents(0, 0);
}
END_TEST

/* A content is asked for unless it is there, or there is no room for one. */
START_TEST(content_is_wanted_once)
{
    ck_assert_uint_eq(wanted("/a/f", false), FILE_MAX);
    walked("/a/f", "ddf", 10, false);
    ck_assert_uint_eq(wanted("/a/f", true), FILE_MAX);
    walked("/a/f", "ddf", 10, true);
    ck_assert_uint_eq(wanted("/a/f", true), 0);
    ck_assert_uint_eq(wanted("/a/f", false), FILE_MAX); /* it is opened anyway */
    allow(0, 1 << 20);
    ck_assert_uint_eq(wanted("/a/g", false), 0);
}
END_TEST

START_TEST(no_content_is_wanted_beyond_the_budget)
{
    const size_t most = (FILE_MAX + page - 1) / page;

    allow(FILE_MAX, most * page);
    ck_assert_uint_eq(wanted("/a/g", false), FILE_MAX);
    walked("/a/f", "ddf", 10, true);
    ck_assert_uint_eq(wanted("/a/g", false), 0);
    ck_assert_uint_eq(wanted("/a/f", false), FILE_MAX); /* in the place of its own */
    ck_assert_uint_eq(fp_cache_forget(cache, "/a/f", 4, false), 1);
    ck_assert_uint_eq(wanted("/a/g", false), FILE_MAX);
}
END_TEST

/* Walks that were allowed to bring one before another took the room. */
START_TEST(content_that_finds_no_room)
{
    allow(FILE_MAX, page);
    walked("/a/f", "ddf", 10, true);
    walked("/a/g", "ddf", 10, true);
    ck_assert(!known("/a/g"));
    assert_known("/a/f", true);
    assert_contents(1, 1);
    walked("/a/g", "ddf", 10, false);
    assert_known("/a/g", false);
    /* What is open stays open. */
    walked("/a/g", "ddf", 10, true);
    assert_known("/a/g", false);
    walked("/a/g", "ddf1", 10, true);
    ck_assert(!known("/a/g"));
    assert_contents(1, 1);
}
END_TEST

static uint32_t generation_of(const char *path)
{
    ck_assert(known(path));
    return answer.steps[answer.n_steps - 1].generation;
}

START_TEST(leases_end_once_when_a_content_comes)
{
    uint32_t before;

    walked("/a/f", "ddf", 10, false);
    before = generation_of("/a/f");
    walked("/a/f", "ddf", 10, false);
    ck_assert_uint_eq(generation_of("/a/f"), before);
    walked("/a/f", "ddf", 10, true);
    ck_assert_uint_ne(generation_of("/a/f"), before);
    before = generation_of("/a/f");
    walked("/a/f", "ddf", 10, true);
    ck_assert_uint_eq(generation_of("/a/f"), before);
}
END_TEST

START_TEST(unchanged_content_stays)
{
    walked("/a/f", "ddf", 10, true);
    now += TTL / 2;
    ck_assert(find_known("/a/f"));
    kit_answer(&answer, "/a/f", "ddf");
    answer.steps[2].self.size = 10;
    fp_close(&answer.fd);
    answer.unchanged = true;
    kit_insert(cache, "/a/f", now, &answer);
    now += TTL / 2 + 1;
    assert_known("/a/f", true);
    assert_contents(1, 1);
}
END_TEST

/* No longer allowed, they are opened at the next look. */
START_TEST(content_that_is_no_longer_allowed)
{
    walked("/a/f", "ddf", 10, true);
    walked("/a/g", "ddf", 10, false);
    allow(0, 0);
    ck_assert(!find_known("/a/f"));
    ck_assert(find_known("/a/g"));
    assert_known("/a/f", true);
    walked("/a/f", "ddf", 10, false);
    assert_known("/a/f", false);
    assert_contents(0, 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_content");
    TCase *t = unit_add_case(s, "content", setup, teardown, 0);

    tcase_add_test(t, content_is_kept_as_a_file_is);
    tcase_add_test(t, content_that_goes_is_accounted);
    tcase_add_test(t, content_is_wanted_once);
    tcase_add_test(t, no_content_is_wanted_beyond_the_budget);
    tcase_add_test(t, content_that_finds_no_room);
    tcase_add_test(t, leases_end_once_when_a_content_comes);
    tcase_add_test(t, unchanged_content_stays);
    tcase_add_test(t, content_that_is_no_longer_allowed);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
