/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries in use, and only those, are refreshed before their TTL ends.
 */
#include "config.h"
#include "cache/cache.h"

#include "cache_refresh_kit.h"

/* ---- reports ---- */

START_TEST(what_was_asked_for)
{
    walked("/a/f", "ddf");
    ck_assert(known("/a/f"));
    for (uint64_t ms = seen_ms; ms < seen_ms + TTL / 2; ms += 7)
        ck_assert_str_eq(told_at(ms), "");
    ck_assert_str_eq(told_soon(eighths(4)), "/ /a /a/f");
    ck_assert_str_eq(told_at(eighths(4) + 1), "");
    /* A looked-at entry is done with; the others are reported once more. */
    walked("/a", "dd");
    ck_assert_str_eq(told_soon(eighths(5) + 2 * TICK), "/a/f");
    walked("/a/f", "ddf");
    for (uint64_t ms = kit_now_ms; ms < seen_ms + 3 * TTL; ms += 7)
        ck_assert_str_eq(told_at(ms), "");
}
END_TEST

/* By its mark alone, and all entries above it. */
START_TEST(what_a_lease_was_used_for)
{
    walked("/a/b/f", "dddf");
    walked("/a/g", "ddf");
    use_lease_of("/a/b/f");
    ck_assert_str_eq(told_at(seen_ms + TTL / 2 - 1), "");
    ck_assert_str_eq(told_soon(eighths(4)), "/ /a /a/b /a/b/f");
}
END_TEST

START_TEST(a_directory_that_is_the_end_of_a_lease)
{
    walked("/a/f", "ddf");
    use_lease_of("/a");
    ck_assert_str_eq(told_soon(eighths(4)), "/ /a");
}
END_TEST

START_TEST(absent_names_and_links)
{
    walked("/a/no/x", "dda");
    walked("/l/f", "dlf");
    use_lease_of("/a/no/x");
    use_lease_of("/l/f");
    ck_assert_str_eq(told_soon(eighths(4)), "/ /a /a/no /l /l/f");
}
END_TEST

/* Neither a walk nor an answer to a waiting client is a use. */
START_TEST(what_is_not_used_lapses)
{
    struct kit_lease l;

    walked("/a/f", "ddf");
    l = take_lease("/a/f");
    for (uint64_t ms = seen_ms; ms < seen_ms + 3 * TTL; ms += 5)
        ck_assert_str_eq(told_at(ms), "");
    kit_now_ms = seen_ms + TTL - 1;
    ck_assert(fp_cache_lookup(cache, "/a/f", 4, FP_ASK_INSERTED, kit_now_ms, &answer));
    ck_assert(!holds_at(&l, seen_ms + TTL));
    kit_now_ms = seen_ms + TTL;
    ck_assert(!known("/a/f"));
}
END_TEST

/* There is a look in each eighth of the second half. */
START_TEST(use_in_the_last_part_of_its_life)
{
    for (unsigned part = 4; part < 7; part++) {
        struct kit_lease l;

        kit_now_ms = seen_ms = 10000 * part;
        walked("/a/f", "ddf");
        l = take_lease("/a/f");
        for (uint64_t ms = seen_ms; ms <= eighths(part) + 2 * TICK; ms += TICK)
            ck_assert_str_eq(told_at(ms), "");
        use(&l);
        ck_assert_str_eq(told_soon(eighths(part + 1) + TICK), "/ /a /a/f");
        ck_assert(known("/a/f"));
    }
}
END_TEST

/* No walk has looked: reported again, a few times, and then no more. */
START_TEST(returned_until_a_walk_looks)
{
    unsigned n = 0;

    walked("/f", "df");
    ck_assert(known("/f"));
    for (uint64_t ms = seen_ms; ms < seen_ms + 5 * TTL; ms += TICK) {
        const char *told = told_at(ms);

        ck_assert(*told == '\0' || ms < seen_ms + TTL);
        n += strstr(told, "/f") != NULL;
    }
    ck_assert_uint_ge(n, 3);
    ck_assert_uint_le(n, 4);
}
END_TEST

START_TEST(told_again_after_half_of_the_next_life)
{
    walked("/f", "df");
    for (unsigned i = 0; i < 5; i++) {
        const uint64_t from = kit_now_ms;

        ck_assert(known("/f"));
        for (uint64_t ms = from; ms < from + TTL / 2; ms += 9)
            ck_assert_str_eq(told_at(ms), "");
        ck_assert_str_eq(told_soon(from + TTL / 2 + TICK), "/ /f");
        walked("/f", "df");
    }
}
END_TEST

START_TEST(what_changed_is_not_told)
{
    walked("/a/f", "ddf");
    walked("/g", "df");
    assert_each(known, "/a/f /g");
    fp_cache_forget(cache, "/a", 2, true);
    ck_assert_str_eq(told_soon(eighths(4)), "/ /g");
    fp_cache_clear(cache);
    ck_assert_str_eq(told_at(eighths(5) + TICK), "");
    ck_assert_str_eq(told_at(eighths(8) + TICK), "");
}
END_TEST

/* A directory knows the access files itself; the directory above reports all else. */
START_TEST(with_the_list_of_names)
{
    static const struct fp_names names = { 1, { { ".htaccess", 9 } } };
    unsigned n = 0;

    fp_cache_set_names(cache, &names);
    kit_answer(&answer, "/a/f", "ddf");
    answer.n_names = 1;
    for (unsigned i = 0; i < 3; i++)
        answer.steps[i].access[0].status = FP_ABSENT;
    fp_cache_insert(cache, "/a/f", 4, NULL, kit_now_ms, kit_unwatched(true), &answer);
    ck_assert(fp_cache_lookup(cache, "/a/f", 4, FP_ASK_ANY, kit_now_ms, &answer));
    for (unsigned i = 0; i < 4; i++) {
        while (fp_cache_take_refresh(cache, eighths(4) + i * TICK, &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &due))
            n++;
    }
    ck_assert_uint_eq(n, 3);
}
END_TEST

/* ---- ahead of questions ---- */

/* Walks to absent names in "/" that a client waits for, a tick between each and the next. */
static void walked_in_turn(unsigned n)
{
    char path[32];

    for (unsigned i = 0; i < n; i++, kit_now_ms += TICK) {
        snprintf(path, sizeof(path), "/no%02u", i);
        walked(path, "da");
    }
}

static void ask_in_turn(unsigned n)
{
    char path[32];

    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "/no%02u", i);
        known(path);
    }
}

static void let_all_expire(void)
{
    kit_now_ms += 2 * TTL;
    while (fp_cache_take_refresh(cache, kit_now_ms, &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &due))
        ;
}

/* Known by then, in that order. */
static void asked_twice(unsigned n)
{
    walked_in_turn(n);
    let_all_expire();
    ask_in_turn(n);
    walked_in_turn(n);
}

/* One after another they expire one after another: all of them are looked at for the first question. */
START_TEST(what_was_asked_for_together)
{
    asked_twice(4);
    for (unsigned i = 0; i < 3; i++) {
        let_all_expire();
        ck_assert(!known("/no00"));
        ck_assert_str_eq(told_soon(kit_now_ms), "/no01 /no02 /no03");
        walked_in_turn(4);
        ask_in_turn(4);
    }
}
END_TEST

static bool no_room(const void *ctx, uint32_t mount)
{
    (void)ctx;
    (void)mount;
    return false;
}

/* A slow mount's looks wait, and none is lost. */
START_TEST(what_has_no_room_keeps_its_turn)
{
    asked_twice(4);
    let_all_expire();
    ck_assert(!known("/no00"));
    for (unsigned i = 0; i < 3; i++)
        ck_assert(!fp_cache_take_refresh(cache, kit_now_ms + i * TICK, &(unsigned){ FP_CACHE_LOOKS }, no_room, NULL, &due));
    ck_assert_str_eq(told_soon(kit_now_ms + 3 * TICK), "/no01 /no02 /no03");
}
END_TEST

/* A lease that was used before it ended is a use, as a question is. */
START_TEST(what_leases_were_used_for_together)
{
    walked_in_turn(4);
    use_lease_of("/no02");
    let_all_expire();
    ck_assert(!known("/no00"));
    ck_assert_str_eq(told_soon(kit_now_ms), "/no02");
}
END_TEST

/* Of a path that was in use before a restart, nobody has made use in this daemon. */
START_TEST(what_was_in_use_before_a_restart)
{
    walked_in_turn(4);
    fp_cache_note_in_use(cache, "/no02", strlen("/no02"));
    fp_cache_note_in_use(cache, "/unknown", strlen("/unknown"));
    for (unsigned i = 0; i < 2; i++) {
        let_all_expire();
        ck_assert(!known("/no00"));
        ck_assert_str_eq(told_soon(kit_now_ms), i == 0 ? "/no02" : "");
        walked_in_turn(4);
    }
}
END_TEST

/* A question for "/no01" among others. Returns whether it was looked at for the one before. */
static bool is_ahead(void)
{
    bool ahead;

    let_all_expire();
    known("/no00");
    ahead = strcmp(told_soon(kit_now_ms), "/no01") == 0;
    known("/no01");
    walked_in_turn(2);
    return ahead;
}

/* At random, each question comes when the look ahead has expired as well: they become rare. Once there is a use, they
 * are what they were. */
START_TEST(looks_ahead_in_vain)
{
    static const bool expected[] = { 0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 };

    walked_in_turn(2);
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ck_assert_msg(is_ahead() == expected[i], "at %u", i);
}
END_TEST

/* Paths that nobody came back to are looked at for questions alone, and the rest once for each use. */
START_TEST(no_look_ahead_without_a_use)
{
    walked_in_turn(4);
    let_all_expire();
    ck_assert(!known("/no00"));
    ck_assert_str_eq(told_soon(kit_now_ms), "");
    ask_in_turn(4);
    for (unsigned i = 0; i < 3; i++) {
        walked_in_turn(4);
        let_all_expire();
        ck_assert(!known("/no00"));
        ck_assert_str_eq(told_soon(kit_now_ms), i == 0 ? "/no01 /no02 /no03" : "");
    }
}
END_TEST

/* At random: a file server answers one look for each question. */
START_TEST(no_look_ahead_in_another_order)
{
    enum { PATHS = 37 };
    char path[32];

    walked_in_turn(PATHS);
    for (unsigned i = 1; i < 2 * PATHS; i++) {
        snprintf(path, sizeof(path), "/no%02u", i * (i < PATHS ? 11 : 23) % PATHS);
        let_all_expire();
        ck_assert(!known(path));
        ck_assert_str_eq(told_soon(kit_now_ms), "");
        walked(path, "da");
    }
}
END_TEST

/* Those before it were asked for before, and are again if they are needed; what a report ended needs a question. */
START_TEST(only_what_expired_behind_it)
{
    asked_twice(5);
    let_all_expire();
    fp_cache_forget(cache, "/no03", 5, false);
    ck_assert(!known("/no01"));
    ck_assert_str_eq(told_soon(kit_now_ms), "/no02 /no04");
}
END_TEST

/* A page that takes longer than the TTL: what it has passed expires again, and is for the next page. */
START_TEST(what_is_passed_is_left_alone)
{
    asked_twice(3);
    let_all_expire();
    ck_assert(!known("/no02"));
    ck_assert_str_eq(told_soon(kit_now_ms), "");
    kit_now_ms += 5 * TICK;
    ck_assert(!known("/no00"));
    ck_assert_str_eq(told_soon(kit_now_ms), "/no01");
}
END_TEST

START_TEST(no_farther_ahead_than_one_question_may_look)
{
    unsigned n = 0;

    start(2 * FP_CACHE_LOOKS, 2 * FP_CACHE_LOOKS);
    asked_twice(2 * FP_CACHE_AHEAD);
    let_all_expire();
    ck_assert(!known("/no00"));
    for (unsigned i = 0; i < 3; i++) {
        while (fp_cache_take_refresh(cache, kit_now_ms + i * TICK, &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &due))
            n += due.len > 1;
    }
    ck_assert_uint_eq(n, FP_CACHE_AHEAD);
}
END_TEST

/* Not all at once, but all. */
START_TEST(very_many_that_are_not_used)
{
    unsigned calls = 0;
    char path[32];

    start(3 * FP_CACHE_LOOKS, SLOTS);
    for (unsigned i = 0; i < 2 * FP_CACHE_LOOKS; i++) {
        snprintf(path, sizeof(path), "/no%u", i);
        walked(path, "da");
    }
    ck_assert(known("/no0"));
    while (!fp_cache_take_refresh(cache, eighths(4), &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &due))
        ck_assert_uint_lt(++calls, 4);
    ck_assert_uint_ge(calls, 1);
}
END_TEST

/* Entries above may have a shorter TTL: their use must show. */
START_TEST(a_directory_that_lives_shorter)
{
    const uint32_t ttl_ms[] = { TTL, TTL / 4, 4 * TTL, 16 * TTL, 16 * TTL };
    unsigned looks[2] = { 0, 0 };
    struct kit_lease l;

    walked_with_lives("/m/n/d/f", "ddddf", ttl_ms);
    l = take_lease("/m/n/d/f");
    for (uint64_t ms = seen_ms; ms < seen_ms + 8 * TTL; ms += TICK) {
        kit_now_ms = ms;
        use(&l);
        while (fp_cache_take_refresh(cache, ms, &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &due)) {
            char path[16];

            snprintf(path, sizeof(path), "%.*s", (int)due.len, due.path);
            looks[due.len == 8]++;
            walked_with_lives(path, told_part("/m/n/d/f", "ddddf"), ttl_ms);
        }
    }
    /* And an entry with a longer TTL is not looked at for that. */
    ck_assert_uint_ge(looks[0], 32);
    ck_assert_uint_le(looks[1], 1);
}
END_TEST

/* A directory that was seen before its file, by any part of its life. If the file is not used,
 * nothing is looked at more than once for it. */
START_TEST(a_file_that_was_found_later)
{
    const bool used = _i == 0;

    for (uint64_t later = 0; later < TTL; later += TTL / 32) {
        unsigned looks = 0;
        struct kit_lease l;

        fp_cache_clear(cache);
        seen_ms = kit_now_ms;
        walked("/a", "dd");
        kit_now_ms += later;
        walked_below("/a/f", 'f');
        l = take_lease("/a/f");
        for (uint64_t ms = kit_now_ms; ms < seen_ms + 4 * TTL; ms += TICK) {
            kit_now_ms = ms;
            if (used)
                use(&l);
            looks += look_where_told("/a/f", "ddf");
        }
        ck_assert(used || looks <= (later <= TTL * 3 / 8 ? 0 : 2));
        ck_assert(used || !known("/a/f"));
    }
}
END_TEST

/* ---- eviction looks at the same marks ---- */

/* Whichever of the two comes first. */
START_TEST(a_mark_keeps_the_entry_and_is_told_of)
{
    start(3, SLOTS);
    walked("/f0", "df");
    walked("/f1", "df");
    walked("/f2", "df");
    use_lease_of("/f0");
    if (_i == 0)
        ck_assert_str_eq(told_soon(eighths(4)), "/ /f0");
    walked("/f3", "df");
    walked("/f4", "df");
    if (_i == 0)
        assert_each(known, "/f0 !/f1");
    ck_assert(fp_cache_lookup(cache, "/f0", 3, FP_ASK_INSERTED, kit_now_ms, &answer));
    if (_i == 1)
        ck_assert_str_eq(told_soon(eighths(4)), "/ /f0");
}
END_TEST

/* ---- altogether ---- */

#define HOT    5
#define COLD   20
#define ROUNDS 2000

/* Used in turn by leases only, and looked at when reported: never a question. */
START_TEST(what_is_used_never_becomes_a_miss)
{
    uint64_t seed = 99 + (uint64_t)_i;
    struct kit_lease hot[HOT];
    char path[32];
    unsigned looks = 0;

    for (int i = 0; i < HOT + COLD; i++) {
        snprintf(path, sizeof(path), "/d%d/f%d", i % 3, i);
        walked(path, "ddf");
        if (i < HOT)
            hot[i] = take_lease(path);
    }
    for (int round = 0; round < ROUNDS; round++) {
        kit_now_ms += 1 + unit_random(&seed) % (2 * TICK);
        for (int i = 0; i < HOT; i++) {
            if ((uint64_t)round % HOT == (uint64_t)i)
                use(&hot[i]);
        }
        while (fp_cache_take_refresh(cache, kit_now_ms, &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &due)) {
            snprintf(path, sizeof(path), "%.*s", (int)due.len, due.path);
            walked(path, strchr(path, 'f') != NULL ? "ddf" : due.len > 1 ? "dd" : "d");
            looks++;
        }
    }
    for (int i = HOT; i < HOT + COLD; i++) {
        snprintf(path, sizeof(path), "/d%d/f%d", i % 3, i);
        ck_assert(!known(path));
    }
    /* Nine entries, each about twice in its life. */
    ck_assert_uint_le(looks, 9 * (3 + 2 * (kit_now_ms - seen_ms) / TTL));
}
END_TEST

static void add_lease_tests(Suite *s)
{
    TCase *t = unit_add_case(s, "marks", setup, teardown, 0);

    tcase_add_loop_test(t, a_mark_keeps_the_entry_and_is_told_of, 0, 2);
    t = unit_add_case(s, "altogether", setup, teardown, 30);
    tcase_add_loop_test(t, what_is_used_never_becomes_a_miss, 0, 5);
}

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_due");
    TCase *t = unit_add_case(s, "told", setup, teardown, 20);

    tcase_add_test(t, what_was_asked_for);
    tcase_add_test(t, what_a_lease_was_used_for);
    tcase_add_test(t, a_directory_that_is_the_end_of_a_lease);
    tcase_add_test(t, absent_names_and_links);
    tcase_add_test(t, what_is_not_used_lapses);
    tcase_add_test(t, use_in_the_last_part_of_its_life);
    tcase_add_test(t, returned_until_a_walk_looks);
    tcase_add_test(t, told_again_after_half_of_the_next_life);
    tcase_add_test(t, what_changed_is_not_told);
    tcase_add_test(t, with_the_list_of_names);
    tcase_add_test(t, what_was_asked_for_together);
    tcase_add_test(t, what_leases_were_used_for_together);
    tcase_add_test(t, what_was_in_use_before_a_restart);
    tcase_add_test(t, what_has_no_room_keeps_its_turn);
    tcase_add_test(t, looks_ahead_in_vain);
    tcase_add_test(t, no_look_ahead_without_a_use);
    tcase_add_test(t, no_look_ahead_in_another_order);
    tcase_add_test(t, only_what_expired_behind_it);
    tcase_add_test(t, what_is_passed_is_left_alone);
    tcase_add_test(t, no_farther_ahead_than_one_question_may_look);
    tcase_add_test(t, very_many_that_are_not_used);
    tcase_add_test(t, a_directory_that_lives_shorter);
    tcase_add_loop_test(t, a_file_that_was_found_later, 0, 2);
    add_lease_tests(s);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
