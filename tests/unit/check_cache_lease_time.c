/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long leases hold while their entries are refreshed, and over another lease table.
 */
#include "config.h"
#include "cache/cache.h"

#include "cache_refresh_kit.h"

/* ---- how long leases hold ---- */

START_TEST(no_longer_than_it_is_valid)
{
    struct kit_lease l;

    walked("/a/f", "ddf");
    l = take_lease("/a/f");
    for (uint64_t ms = seen_ms; ms < seen_ms + 2 * TTL; ms++) {
        const bool valid = fp_cache_lookup(cache, "/a/f", 4, FP_ASK_INSERTED, ms, &answer);

        ck_assert(valid || !holds_at(&l, ms));
        ck_assert(!valid || holds_at(&l, ms) || ms + FP_SLOT_TICK_MS > seen_ms + TTL);
    }
}
END_TEST

START_TEST(a_walk_that_finds_nothing_changed_extends_them)
{
    struct kit_lease file, dir, no;

    walked("/a/f", "ddf");
    walked("/a/no", "dda");
    file = take_lease("/a/f");
    dir = take_lease("/a");
    no = take_lease("/a/no");
    for (int i = 0; i < 10; i++) {
        kit_now_ms += TTL - 2 * FP_SLOT_TICK_MS;
        ck_assert(holds_at(&file, kit_now_ms));
        walked("/a/f", "ddf");
        ck_assert(holds_at(&file, kit_now_ms + TTL - FP_SLOT_TICK_MS));
        ck_assert(!holds_at(&file, kit_now_ms + TTL));
        ck_assert(holds_at(&dir, kit_now_ms + TTL - FP_SLOT_TICK_MS));
        /* No walk has looked at that. */
        ck_assert(!holds_at(&no, kit_now_ms + 2 * FP_SLOT_TICK_MS));
        for (unsigned k = 0; k < file.n; k++)
            ck_assert_uint_eq(fp_lease_table_generation(lease_table, file.slots[k]), file.generations[k]);
    }
}
END_TEST

/* Also one that had run out meanwhile. */
START_TEST(they_begin_again_where_nothing_changed)
{
    struct kit_lease l;

    walked("/f", "df");
    l = take_lease("/f");
    kit_now_ms += 10 * TTL;
    ck_assert(!holds_at(&l, kit_now_ms));
    walked("/f", "df");
    ck_assert(holds_at(&l, kit_now_ms));
    kit_now_ms += 10 * TTL;
    walked("/f", "df1");
    ck_assert(!holds_at(&l, kit_now_ms));
}
END_TEST

START_TEST(a_walk_that_finds_a_change_ends_them)
{
    struct kit_lease f, g;

    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    f = take_lease("/a/f");
    g = take_lease("/a/g");
    kit_now_ms += TTL / 2;
    walked("/a/f", "ddf1");
    ck_assert(!holds_at(&f, kit_now_ms));
    ck_assert(holds_at(&g, kit_now_ms));
    f = take_lease("/a/f");
    ck_assert(holds_at(&f, kit_now_ms + TTL - FP_SLOT_TICK_MS));
    /* The other file's time has not been moved on. */
    ck_assert(!holds_at(&g, seen_ms + TTL));
}
END_TEST

/* A walk that began earlier than another one ended does not take time away. */
START_TEST(an_older_walk_changes_nothing)
{
    struct kit_lease l;

    kit_now_ms += 500;
    walked("/f", "df");
    l = take_lease("/f");
    kit_now_ms -= 300;
    walked("/f", "df");
    kit_now_ms += 300;
    ck_assert(holds_at(&l, kit_now_ms + TTL - FP_SLOT_TICK_MS));
}
END_TEST

/* ---- slots ---- */

START_TEST(every_entry_has_a_slot)
{
    static const char *const paths[] = { "/a/b/f", "/a/no", "/a/b", "/", "/l" };
    bool taken[SLOTS + 1] = { false };

    walked("/a/b/f", "dddf");
    walked("/a/no", "dda");
    walked("/l", "dl");
    for (size_t i = 0; i < 5; i++)
        take_lease(paths[i]);
    for (size_t i = 0; i < 5; i++) {
        const struct kit_lease l = take_lease(paths[i]);

        ck_assert(holds_at(&l, kit_now_ms));
        ck_assert(holds_at(&l, seen_ms + TTL - FP_SLOT_TICK_MS));
        ck_assert(!holds_at(&l, seen_ms + TTL));
        /* No two of them end in the same. */
        ck_assert(!taken[l.slots[l.n - 1]]);
        taken[l.slots[l.n - 1]] = true;
    }
}
END_TEST

/* An evicted entry gives its slot back, once. */
START_TEST(slots_are_given_back)
{
    bool seen[SLOTS + 1] = { false };
    uint32_t slot;
    unsigned n = 0;

    walked("/a/b/f", "dddf");
    take_lease("/a/b");
    fp_cache_clear(cache);
    for (; (slot = fp_lease_table_take(lease_table)) != FP_NO_SLOT; n++) {
        ck_assert(!seen[slot]);
        seen[slot] = true;
    }
    ck_assert_uint_eq(n, SLOTS);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_lease_time");
    TCase *t = unit_add_case(s, "time", setup, teardown, 0);

    tcase_add_test(t, no_longer_than_it_is_valid);
    tcase_add_test(t, a_walk_that_finds_nothing_changed_extends_them);
    tcase_add_test(t, they_begin_again_where_nothing_changed);
    tcase_add_test(t, a_walk_that_finds_a_change_ends_them);
    tcase_add_test(t, an_older_walk_changes_nothing);
    t = unit_add_case(s, "tables", setup, teardown, 0);
    tcase_add_test(t, every_entry_has_a_slot);
    tcase_add_test(t, slots_are_given_back);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
