/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents in the place of descriptors. The tests show which files get one, the fate of a file
 * whose content moves or goes, and the leases that end then.
 */
#include "config.h"
#include "cache/cache.h"

#include "base/clock.h"
#include "cache/timer_wheel.h"
#include "cache_kit.h"
#include "changes/coherence.h"
#include "hash_kit.h"
#include "lease_kit.h"
#include "shared/lease_table.h"
#include "wire/packet.h"
#include "wire/server_clock.h"
#include "wire/walk_result.h"

#define TTL        100
#define LONG_TTL   600000
#define FILE_MAX   6000u
#define REMOTE_MAX 20000u

static struct fp_cache *cache;
static struct fp_lease_table *lease_table;
static struct fp_answer answer;
static uint64_t last_place;
static int fds_at_rest;
static uint64_t now;

static void allow(uint32_t file_max)
{
    const struct fp_cache_content content = { .file_max = file_max };

    fp_cache_set_content(cache, &content);
}

static void setup(void)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, TTL };
    struct fp_cache_deps deps = { .now_ms = kit_clock, .verify = cache_verify };

    unit_init_hash();
    fds_at_rest = unit_open_fds();
    now = 1000;
    lease_table = deps.lease_table = fp_lease_table_create(100);
    cache = fp_cache_create(&limits, &deps);
    ck_assert_ptr_nonnull(cache);
    allow(FILE_MAX);
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
    answer.content = content;
    if (content) {
        fp_close(&answer.fd);
        answer.content_at = ++last_place;
    }
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
    ck_assert_int_eq(answer.fd == -1, content);
    ck_assert_int_eq(answer.content, content);
    ck_assert(answer.local || !content);
}

static void assert_contents(size_t files, size_t bytes)
{
    ck_assert_uint_eq(fp_cache_counts(cache).content_files, files);
    ck_assert_uint_eq(fp_cache_counts(cache).content_bytes, bytes);
}

static uint32_t wanted(const char *path, bool is_known)
{
    return fp_cache_content_max(cache, path, strlen(path), is_known, fp_now_ms());
}

static bool find_known(const char *path)
{
    struct fp_meta m;

    return fp_cache_find_known(cache, path, strlen(path), true, &m);
}

START_TEST(content_is_kept_as_a_file_is)
{
    walked("/a/f", "ddf", 10, true);
    assert_known("/a/f", true);
    ck_assert_uint_eq(answer.content_at, last_place);
    assert_contents(1, 10);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 1);
    ck_assert_uint_eq(fp_cache_counts(cache).directories, 2);
    walked("/a/g", "ddf", 4096, true);
    walked("/a/h", "ddL", 4097, true);
    walked("/a/i", "ddf", 10, false);
    assert_known("/a/i", false);
    assert_contents(3, 10 + 4096 + 4097);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 4);
}
END_TEST

START_TEST(content_that_goes_is_accounted)
{
    walked("/a/f", "ddf", 10, true);
    walked("/a/f", "ddf", 10, true);
    assert_contents(1, 10);
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

/* However many they are: no content takes a descriptor. */
START_TEST(contents_are_not_limited_by_descriptors)
{
    char path[32];

    for (int i = 0; i < 60; i++) {
        snprintf(path, sizeof(path), "/a/%d", i);
        walked(path, "ddf", 10, true);
    }
    fp_cache_set_limits(cache, &(struct fp_cache_limits){ 1, 10, 100, 100, SIZE_MAX, TTL });
    ck_assert_uint_eq(fp_cache_evict_files(cache, 100), 0);
    assert_contents(60, 600);
    assert_known("/a/0", true);
}
END_TEST

/* The cache asks for a content unless it has one. */
START_TEST(content_is_wanted_once)
{
    ck_assert_uint_eq(wanted("/a/f", false), FILE_MAX);
    walked("/a/f", "ddf", 10, false);
    ck_assert_uint_eq(wanted("/a/f", true), FILE_MAX);
    walked("/a/f", "ddf", 10, true);
    ck_assert_uint_eq(wanted("/a/f", true), 0);
    ck_assert_uint_eq(wanted("/a/f", false), FILE_MAX); /* it is opened anyway */
    allow(0);
    ck_assert_uint_eq(wanted("/a/g", false), 0);
}
END_TEST

static void allow_remote(size_t room)
{
    const struct fp_cache_content content = { FILE_MAX, REMOTE_MAX, room };

    fp_cache_set_content(cache, &content);
    /* The server's clock goes as ours. */
    fp_server_clock_learn(1, (int64_t)time(NULL) * 1000);
}

static uint32_t ttl_ms = TTL;
static int64_t changed_s; /* when the files of the next walks changed */
static bool as_content;   /* they bring it, */
static bool settled;      /* so that it can be kept */

/* A walk that brings a descriptor or a content, or unchanged: finds the file as it was. */
static void walked_there(const char *path, uint64_t size, bool remote, bool unchanged)
{
    struct fp_validity validity[FP_MAX_STEPS] = { { .mount = 1, .ttl_ms = ttl_ms, .traits.local = !remote } };
    struct fp_walk_result result;
    const struct fp_walk_meta meta = { &result, validity };

    fp_walk_result_init(&result);
    result.settled = settled;
    kit_answer(&answer, path, "ddf");
    answer.steps[2].self.size = size;
    answer.steps[2].self.ctime.sec = changed_s;
    if (unchanged || as_content)
        fp_close(&answer.fd);
    answer.unchanged = unchanged;
    answer.content = answer.local = as_content;
    answer.content_at = as_content ? ++last_place : 0;
    validity[1] = validity[2] = validity[0];
    validity[2].traits.remote = remote;
    fp_cache_insert(cache, path, strlen(path), NULL, now, &meta, &answer);
    ck_assert_int_eq(answer.fd != -1, remote && !unchanged && !as_content); /* it is not held */
    fp_close(&answer.fd);
}

static void walked_on_mount(const char *path, uint64_t size, bool remote)
{
    walked_there(path, size, remote, false);
}

/* Of a file on a remote mount, while there is room. */
START_TEST(larger_content_is_wanted_at_the_second_walk)
{
    allow_remote(REMOTE_MAX);
    ck_assert_uint_eq(wanted("/a/f", true), FILE_MAX);
    walked_on_mount("/a/f", REMOTE_MAX - 11, true);
    ck_assert_uint_eq(wanted("/a/f", true), REMOTE_MAX);
    ck_assert_uint_eq(wanted("/a/f", true), FILE_MAX);
    walked("/a/g", "ddf", 10, true);
    walked_on_mount("/a/f", REMOTE_MAX - 10, true);
    ck_assert_uint_eq(wanted("/a/f", true), REMOTE_MAX);
    ck_assert_uint_eq(wanted("/a/g", true), 0);
    walked("/a/h", "ddf", 1, true);
    walked_on_mount("/a/f", REMOTE_MAX - 9, true);
    ck_assert_uint_eq(wanted("/a/f", true), FILE_MAX);
    walked("/a/f", "ddf1", REMOTE_MAX - 11, true);
    ck_assert_uint_eq(wanted("/a/f", true), 0);
}
END_TEST

/* This counts whether it was kept or not: a mount that is too slow would read it for ever. */
START_TEST(larger_content_is_wanted_once_of_a_descriptor)
{
    allow_remote(REMOTE_MAX);
    walked_on_mount("/a/f", REMOTE_MAX, true);
    /* The server may have been away then. */
    for (uint64_t ms = fp_now_ms(), end = ms + 3 * 600000; ms < end; ms += 600000) {
        ck_assert_uint_eq(fp_cache_content_max(cache, "/a/f", 4, false, ms), REMOTE_MAX);
        ck_assert_uint_eq(fp_cache_content_max(cache, "/a/f", 4, false, ms + 599999), FILE_MAX);
    }
    for (unsigned turn = 0; turn < 2; turn++) {
        walked_on_mount("/a/f", REMOTE_MAX - 1 - turn, true);
        ck_assert_uint_eq(wanted("/a/f", true), REMOTE_MAX);
        ck_assert_uint_eq(wanted("/a/f", true), FILE_MAX);
        walked_there("/a/f", REMOTE_MAX - 1 - turn, true, true);
        ck_assert_uint_eq(wanted("/a/f", true), FILE_MAX);
    }
}
END_TEST

static bool find_known_unasked(const char *path)
{
    struct fp_meta m;

    return fp_cache_find_known(cache, path, strlen(path), false, &m);
}

/* A question needs a walk that opens it; a refresh does not open it again.
 * A request that needs its metadata alone has an answer. */
START_TEST(file_on_a_remote_mount_is_not_held)
{
    const int fds = unit_open_fds();

    walked_on_mount("/a/f", 10, true);
    ck_assert_int_eq(unit_open_fds(), fds);
    ck_assert(!known("/a/f"));
    ck_assert(!find_known("/a/f"));
    ck_assert(find_known_unasked("/a/f"));
    walked_there("/a/f", 10, true, true);
    ck_assert(!known("/a/f"));
    ck_assert(find_known_unasked("/a/f"));
    ck_assert(fp_cache_lookup(cache, "/a/f", 4, FP_ASK_INSERTED, now, &answer));
    ck_assert(fp_answer_is_unopened(&answer) && answer.leasable);
    walked("/a/f", "ddf", 10, true);
    assert_known("/a/f", true);
    walked_on_mount("/a/f", 11, true);
    ck_assert(!known("/a/f"));
    walked_on_mount("/a/f", 11, false);
    assert_known("/a/f", false);
}
END_TEST

/* Its content is of before the change, and only a question's walk opens it. */
START_TEST(changed_file_that_was_only_looked_at)
{
    as_content = settled = true;
    allow_remote(REMOTE_MAX);
    walked_on_mount("/a/f", 10, true);
    ck_assert(known("/a/f"));
    as_content = false;
    walked_there("/a/f", 11, true, true);
    ck_assert(!known("/a/f"));
    ck_assert(!fp_cache_lookup(cache, "/a/f", 4, FP_ASK_INSERTED, now, &answer));
    as_content = true;
    walked_on_mount("/a/f", 11, true);
    ck_assert(known("/a/f"));
    as_content = settled = false;
}
END_TEST

/* It serves those who wait: a second change need not show in the file's times. */
START_TEST(content_that_has_just_changed)
{
    as_content = true;
    allow_remote(REMOTE_MAX);
    for (unsigned turn = 0; turn < 2; turn++) {
        settled = false;
        walked_on_mount("/a/f", 10, true);
        ck_assert(!known("/a/f"));
        ck_assert(fp_cache_lookup(cache, "/a/f", 4, FP_ASK_INSERTED, now, &answer));
        ck_assert(fp_answer_is_unopened(&answer));
        assert_contents(0, 0);
        settled = true;
        walked_on_mount("/a/f", 10, true);
        assert_known("/a/f", true);
        assert_contents(1, 10);
    }
    as_content = settled = false;
}
END_TEST

/* Not yet: it would be read in vain. */
START_TEST(larger_content_that_has_just_changed)
{
    allow_remote(REMOTE_MAX);
    changed_s = time(NULL);
    walked_on_mount("/a/f", 10, true);
    ck_assert_uint_eq(wanted("/a/f", true), FILE_MAX);
    changed_s -= 10;
    walked_on_mount("/a/f", 10, true);
    ck_assert_uint_eq(wanted("/a/f", true), REMOTE_MAX);
    changed_s = 0;
}
END_TEST

/* The path of the next refresh within so many ms; "" for none. */
static const char *refreshed_within(uint64_t ms)
{
    static char path[64];
    struct fp_cache_refresh due;

    for (const uint64_t end = now + ms; now < end; now += FP_TIMER_TICK_MS) {
        if (fp_cache_take_refresh(cache, now, &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &due)) {
            snprintf(path, sizeof(path), "%.*s", (int)due.len, due.path);
            return path;
        }
    }
    return "";
}

/* It was too new to be read, and would be served from the file until half of its TTL is over. */
START_TEST(file_that_had_just_changed_is_read_soon)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, LONG_TTL };
    const uint64_t size = _i == 1 ? FILE_MAX + 1 : 10;

    fp_cache_set_limits(cache, &limits);
    now = fp_now_ms();
    ttl_ms = kit_ttl_ms = LONG_TTL;
    changed_s = _i == 2 ? time(NULL) - 10 : _i == 3 ? time(NULL) + 3600 : time(NULL);
    walked_there("/a/f", size, false, false);
    if (_i != 4)
        ck_assert(known("/a/f"));
    /* Not a large one, nor one that could be read, nor one of another clock, nor one that is not in use. */
    ck_assert_str_eq(refreshed_within(2 * FP_SETTLED_MS), _i == 0 ? "/a/f" : "");
    changed_s = 0;
    ttl_ms = TTL;
}
END_TEST

START_TEST(larger_content_is_not_wanted_elsewhere)
{
    allow_remote(REMOTE_MAX);
    walked_on_mount("/a/f", 10, false);
    ck_assert_uint_eq(wanted("/a/f", true), FILE_MAX);
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

/* It is to be read again; the file's entry stays, and leases on it go on. */
START_TEST(content_that_was_overwritten)
{
    uint32_t before;

    walked("/a/f", "ddf", 10, true);
    before = generation_of("/a/f");
    fp_cache_drop_content(cache, "/a/f", 4, last_place + 1);
    fp_cache_drop_content(cache, "/a/g", 4, last_place);
    assert_known("/a/f", true);
    fp_cache_drop_content(cache, "/a/f", 4, last_place);
    assert_contents(0, 0);
    ck_assert(!known("/a/f"));
    ck_assert(!find_known("/a/f"));
    ck_assert_uint_eq(wanted("/a/f", false), FILE_MAX);
    walked("/a/f", "ddf", 10, true);
    ck_assert_uint_eq(generation_of("/a/f"), before);
}
END_TEST

START_TEST(content_that_moves)
{
    walked("/a/f", "ddf", 10, true);
    ck_assert(!fp_cache_move_content(cache, "/a/f", 4, last_place + 1, 500));
    ck_assert(!fp_cache_move_content(cache, "/a/g", 4, last_place, 500));
    ck_assert(fp_cache_move_content(cache, "/a/f", 4, last_place, 500));
    assert_known("/a/f", true);
    ck_assert_uint_eq(answer.content_at, 500);
}
END_TEST

static bool is_used(const char *path, uint64_t at)
{
    return fp_cache_content_is_used(cache, path, strlen(path), at, now);
}

/* By leases, while it is valid. */
START_TEST(content_that_is_used)
{
    struct fp_lease_view *view = unit_view(lease_table);
    uint32_t slot;

    walked("/a/f", "ddf", 10, true);
    ck_assert(!is_used("/a/f", last_place));
    ck_assert(known("/a/f"));
    slot = answer.steps[2].slot;
    for (int i = 0; i < 2; i++) {
        fp_lease_view_reference(view, slot);
        ck_assert(!is_used("/a/f", last_place + 1));
        ck_assert(!is_used("/a/g", last_place));
        ck_assert(is_used("/a/f", last_place));
        ck_assert(!is_used("/a/f", last_place));
    }
    fp_lease_view_reference(view, slot);
    now += TTL;
    ck_assert(!is_used("/a/f", last_place));
    fp_lease_view_release(&view);
}
END_TEST

START_TEST(room_for_larger_content)
{
    allow_remote(REMOTE_MAX);
    walked("/a/f", "ddf", 10, true);
    ck_assert(fp_cache_has_content_room(cache, REMOTE_MAX - 10));
    ck_assert(!fp_cache_has_content_room(cache, REMOTE_MAX - 9));
    walked("/a/g", "ddf", REMOTE_MAX, true);
    ck_assert(fp_cache_has_content_room(cache, FILE_MAX));
    ck_assert(!fp_cache_has_content_room(cache, FILE_MAX + 1));
}
END_TEST

/* Beyond the room of larger contents only small ones stay, however much they are used. */
START_TEST(larger_content_gives_way)
{
    struct fp_lease_view *view = unit_view(lease_table);
    const size_t size = FILE_MAX + 1;
    uint64_t large, small;

    walked("/a/f", "ddf", size, true);
    large = last_place;
    walked("/a/g", "ddf", FILE_MAX, true);
    small = last_place;
    for (size_t room = size + FILE_MAX; room >= size + FILE_MAX - 1; room--) {
        allow_remote(room);
        ck_assert(known("/a/f"));
        fp_lease_view_reference(view, answer.steps[2].slot);
        ck_assert(known("/a/g"));
        fp_lease_view_reference(view, answer.steps[2].slot);
        ck_assert_int_eq(is_used("/a/f", large), room >= size + FILE_MAX);
        ck_assert(is_used("/a/g", small));
    }
    fp_lease_view_release(&view);
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
    assert_contents(1, 10);
}
END_TEST

/* No longer allowed, they are opened at the next look. */
START_TEST(content_that_is_no_longer_allowed)
{
    walked("/a/f", "ddf", 10, true);
    walked("/a/g", "ddf", 10, false);
    allow(0);
    ck_assert(!find_known("/a/f"));
    ck_assert(find_known("/a/g"));
    assert_known("/a/f", true);
    walked("/a/f", "ddf", 10, false);
    assert_known("/a/f", false);
    assert_contents(0, 0);
}
END_TEST

/* As after writes through a mapping: the bytes may be others under the same times. */
START_TEST(content_of_before_a_change)
{
    walked("/a/f", "ddf", 10, true);
    fp_cache_invalidate(cache, "/a/f");
    ck_assert(!known("/a/f"));
    walked("/a/f/x", "ddf", 10, false);
    ck_assert(!known("/a/f"));
    walked("/a/f", "ddf", 10, true);
    walked("/a/f/x", "ddf", 10, false);
    assert_known("/a/f", true);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_content");
    TCase *t = unit_add_case(s, "content", setup, teardown, 0);

    tcase_add_test(t, content_is_kept_as_a_file_is);
    tcase_add_test(t, content_that_goes_is_accounted);
    tcase_add_test(t, content_is_wanted_once);
    tcase_add_test(t, contents_are_not_limited_by_descriptors);
    tcase_add_test(t, content_that_was_overwritten);
    tcase_add_test(t, content_that_moves);
    tcase_add_test(t, content_that_is_used);
    tcase_add_test(t, larger_content_is_wanted_at_the_second_walk);
    tcase_add_test(t, larger_content_is_wanted_once_of_a_descriptor);
    tcase_add_test(t, file_on_a_remote_mount_is_not_held);
    tcase_add_test(t, changed_file_that_was_only_looked_at);
    tcase_add_test(t, larger_content_that_has_just_changed);
    tcase_add_test(t, content_that_has_just_changed);
    tcase_add_loop_test(t, file_that_had_just_changed_is_read_soon, 0, 5);
    tcase_add_test(t, larger_content_is_not_wanted_elsewhere);
    tcase_add_test(t, leases_end_once_when_a_content_comes);
    tcase_add_test(t, room_for_larger_content);
    tcase_add_test(t, larger_content_gives_way);
    tcase_add_test(t, unchanged_content_stays);
    tcase_add_test(t, content_that_is_no_longer_allowed);
    tcase_add_test(t, content_of_before_a_change);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
