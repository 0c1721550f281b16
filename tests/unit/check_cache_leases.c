/* SPDX-License-Identifier: Apache-2.0 */
/* The leases that a reported change ends, and the entries that leases keep. */
#include "config.h"
#include "cache/cache.h"

#include "cache/cache_entry.h"
#include "cache_watch_kit.h"

/* ---- leases ---- */

START_TEST(lease_of_a_file)
{
    struct kit_lease l, other;

    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    l = take_lease("/a/f");
    other = take_lease("/a/g");
    ck_assert(holds(&l));
    change("/a", "new", true);
    change("/", "b", true);
    ck_assert(holds(&l));
    change("/a", "f", false);
    ck_assert(!holds(&l));
    ck_assert(holds(&other));
    walked("/a/f", "ddf");
    ck_assert(!holds(&l));
    l = take_lease("/a/f");
    change("/a", "", false);
    ck_assert(!holds(&l));
    ck_assert(!holds(&other));
}
END_TEST

/* After one change each client asks once: nothing ends again. */
START_TEST(lease_taken_after_the_change_holds)
{
    struct kit_lease l;

    walked("/a/f", "ddf");
    for (int i = 0; i < 10; i++) {
        change("/a", "f", false);
        ck_assert(!known("/a/f"));
        walked("/a/f", "ddf");
        l = take_lease("/a/f");
        ck_assert(holds(&l));
        walked("/a/f", "ddf");
        ck_assert(holds(&l));
    }
}
END_TEST

START_TEST(lease_of_a_directory)
{
    struct kit_lease dir, file;

    walked("/a/f", "ddf");
    dir = take_lease("/a");
    file = take_lease("/a/f");
    change("/a", "f2", true);
    ck_assert(!holds(&dir));
    ck_assert(holds(&file));
    walked("/a", "dd");
    dir = take_lease("/a");
    change("/", "a", false);
    ck_assert(!holds(&dir));
    ck_assert(!holds(&file));
}
END_TEST

/* Only its times: paths that pass it do not notice. */
START_TEST(walk_that_finds_a_directorys_times_changed)
{
    struct kit_lease dir, file;

    walked("/a/f", "ddf");
    dir = take_lease("/a");
    file = take_lease("/a/f");
    kit_now_ms++;
    walk("/a", "dd");
    answer.steps[1].self.mtime.sec++;
    answer.steps[1].self.ctime.sec++;
    answer.steps[1].self.size++;
    insert("/a");
    ck_assert(!holds(&dir));
    ck_assert(holds(&file));
}
END_TEST

START_TEST(walk_that_finds_nothing_changed)
{
    struct kit_lease l, dir, no;

    walked("/a/f", "ddf");
    walked("/a/no", "dda");
    l = take_lease("/a/f");
    dir = take_lease("/a");
    no = take_lease("/a/no");
    kit_now_ms++;
    walked("/a/f", "ddf");
    walked("/a/no", "dda");
    ck_assert(holds(&l));
    ck_assert(holds(&dir));
    ck_assert(holds(&no));
}
END_TEST

START_TEST(walk_that_finds_something_changed)
{
    struct kit_lease file, dir, no, access;

    walked_with_names("/a/f", "ddf");
    walked_with_names("/a/no", "dda");
    file = take_lease("/a/f");
    dir = take_lease("/a");
    no = take_lease("/a/no");
    kit_now_ms++;
    walk("/a/f", "ddf");
    look_for_names();
    switch (_i) {
    case 0: answer.steps[2].self.size++; break;
    case 1: answer.steps[2].self.mtime.nsec++; break;
    case 2: answer.steps[2].self.mode ^= 0111; break;
    case 3: answer.steps[2].self.ino++; break;
    case 4: answer.steps[1].self.mode ^= 0011; break;
    case 5: answer.steps[1].self.ino++; break;
    case 6: answer.steps[1].access[0].status = FP_OK; break;
    case 7: answer.steps[1].access[1].status = FP_DENIED; break;
    case 8: answer.steps[0].self.uid++; break;
    }
    insert_as("/a/f", kit_now_ms);
    ck_assert(!holds(&file));
    ck_assert_int_eq(holds(&dir), _i < 4);
    ck_assert_int_eq(holds(&no), _i < 4);
    if (_i != 6)
        return;
    ck_assert(known_with_names("/a/f"));
    access = take_lease("/a/f");
    kit_now_ms++;
    walk("/a/f", "ddf");
    look_for_names();
    answer.steps[1].access[0] = (struct fp_access){ .status = FP_OK, .size = 1 };
    insert_as("/a/f", kit_now_ms);
    ck_assert(!holds(&access));
}
END_TEST

START_TEST(what_was_absent_is_there)
{
    struct kit_lease l, below;

    walked("/a/no", "dda");
    l = take_lease("/a/no");
    below = take_lease("/a/no/x");
    change("/a", "other", true);
    ck_assert(holds(&l));
    change("/a", "no", true);
    ck_assert(!holds(&l));
    ck_assert(!holds(&below));
    /* And without a report. */
    walked("/a/no", "dda");
    l = take_lease("/a/no");
    kit_now_ms++;
    walked("/a/no", "ddf");
    ck_assert(!holds(&l));
}
END_TEST

START_TEST(a_link_leads_elsewhere)
{
    struct kit_lease l;

    walked("/l/f", "dlf");
    l = take_lease("/l/f");
    kit_now_ms++;
    walk("/l", "dl");
    answer.steps[1].target.ino++;
    insert("/l");
    ck_assert(!holds(&l));
}
END_TEST

START_TEST(what_goes_ends_its_leases)
{
    struct kit_lease f, g, dir;

    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    f = take_lease("/a/f");
    g = take_lease("/a/g");
    dir = take_lease("/a");
    switch (_i) {
    case 0: fp_cache_clear(cache); break;
    case 1: invalidate(NULL); break;
    case 2: lose_watch("/a"); break;
    case 3: fp_cache_forget(cache, "/a", 2, true); break;
    }
    ck_assert(!holds(&f));
    ck_assert(!holds(&g));
    ck_assert(!holds(&dir));
}
END_TEST

/* Their metadata are right without the descriptor. A question about the file needs a walk, which
 * changes nothing. */
START_TEST(leases_go_on_when_a_file_is_closed)
{
    struct kit_lease f;

    walked("/a/f", "ddf");
    f = take_lease("/a/f");
    ck_assert_uint_eq(fp_cache_evict_files(cache, 10), 1);
    ck_assert_uint_eq(fp_cache_counts(cache).closed, 1);
    ck_assert(holds(&f));
    ck_assert(!known("/a/f"));
    kit_now_ms++;
    walked("/a/f", "ddf");
    ck_assert(known("/a/f"));
    ck_assert(holds(&f));
    ck_assert_uint_eq(fp_cache_evict_files(cache, 10), 1);
    change("/a", "f", true);
    ck_assert(!holds(&f));
}
END_TEST

/* Slots pass from entry to entry; no lease goes along. */
START_TEST(slots_are_given_back)
{
    struct kit_lease old = { .n = 0 };
    char path[32];

    for (int i = 0; i < 10 * SLOTS; i++) {
        snprintf(path, sizeof(path), "/f%d", i);
        kit_now_ms++;
        walked(path, "df");
        ck_assert(i == 0 || known(path));
        if (i > 0)
            ck_assert(!holds(&old));
        old = take_lease(path);
        ck_assert_uint_eq(fp_cache_evict(cache, 1), 1);
    }
}
END_TEST

START_TEST(no_slot_left)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, WATCHED_TTL };

    start(&limits, 3);
    walked("/a/f", "ddf");
    take_lease("/a/f");
    walked("/a/g", "ddf");
    ck_assert(known("/a/g"));
    ck_assert(!answer.leasable);
    ck_assert_uint_eq(answer.steps[2].slot, FP_NO_SLOT);
    ck_assert(known("/a"));
    ck_assert(!answer.leasable);
    take_lease("/a/f");
}
END_TEST

START_TEST(no_leases_at_all)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, WATCHED_TTL };
    struct fp_cache *without = kit_cache(&limits);

    kit_answer(&answer, "/a/f", "ddf");
    kit_insert(without, "/a/f", kit_now_ms, &answer);
    ck_assert(kit_lookup(without, "/a/f", kit_now_ms, &answer));
    ck_assert(!answer.leasable);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(answer.steps[i].slot, FP_NO_SLOT);
    fp_cache_destroy(&without);
}
END_TEST

/* ---- kept entries ---- */

START_TEST(use_of_a_lease_keeps_an_entry)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 3, SIZE_MAX, WATCHED_TTL };
    struct kit_lease l;
    char path[32];

    start(&limits, SLOTS);
    walked("/used", "da");
    l = take_lease("/used");
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "/once%d", i);
        fp_lease_view_reference(view, l.slots[l.n - 1]);
        kit_now_ms++;
        walked(path, "da");
        ck_assert(holds(&l));
    }
    /* Nobody uses it any more, but others are in use. */
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "/again%d", i);
        kit_now_ms++;
        walked(path, "da");
        ck_assert(known(path));
    }
    ck_assert(!holds(&l));
}
END_TEST

/* Children that mark everything as used all the time: an eviction still visits few entries. */
START_TEST(marks_do_not_make_evictions_long)
{
    const struct fp_cache_limits limits = { 10, 10, 10, 1000, SIZE_MAX, WATCHED_TTL };
    const uint32_t slots = 2000;
    struct fp_cache_counts before, after;
    char path[32];

    start(&limits, slots);
    for (int i = 0; i < 1200; i++) {
        for (uint32_t slot = 1; slot <= slots; slot++)
            fp_lease_view_reference(view, slot);
        snprintf(path, sizeof(path), "/none%d", i);
        before = fp_cache_counts(cache);
        walked(path, "da");
        after = fp_cache_counts(cache);
        ck_assert_uint_le(after.visits - before.visits,
                          (FP_SIEVE_VISITS + 2) * (after.evictions - before.evictions));
    }
    ck_assert_uint_eq(after.negatives, 1000);
    ck_assert_uint_gt(after.evictions, 0);
}
END_TEST

START_TEST(use_of_a_directorys_lease_keeps_it)
{
    const struct fp_cache_limits limits = { 10, 10, 4, 100, SIZE_MAX, WATCHED_TTL };
    struct kit_lease l;
    char path[32];

    start(&limits, SLOTS);
    walked("/used", "dd");
    l = take_lease("/used");
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof(path), "/once%d", i);
        fp_lease_view_reference(view, l.slots[l.n - 1]);
        walked(path, "dd");
        ck_assert(holds(&l));
    }
}
END_TEST

START_TEST(memory_is_bounded)
{
    struct fp_cache_limits limits = { 1000, 10, 1000, 1000, SIZE_MAX, WATCHED_TTL };
    size_t of_ten;
    char path[32];

    start(&limits, SLOTS);
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "/a/f%02d", i);
        walked(path, "ddf");
    }
    of_ten = fp_cache_counts(cache).bytes;
    ck_assert_uint_gt(of_ten, 10 * sizeof(struct fp_meta));
    /* Seen again they take no more. */
    walked("/a/f00", "ddf");
    ck_assert_uint_eq(fp_cache_counts(cache).bytes, of_ten);
    limits.bytes = of_ten;
    fp_cache_set_limits(cache, &limits);
    for (int i = 10; i < 99; i++) {
        snprintf(path, sizeof(path), "/a/f%02d", i);
        kit_now_ms++; /* the given-up watches were unused before */
        walked(path, i % 2 == 0 ? "ddf" : "ddL");
        ck_assert(known(path));
        ck_assert_uint_le(fp_cache_counts(cache).bytes, of_ten);
    }
    limits.bytes = of_ten / 2;
    fp_cache_set_limits(cache, &limits);
    ck_assert_uint_le(fp_cache_counts(cache).bytes, of_ten / 2);
    limits.bytes = 1;
    fp_cache_set_limits(cache, &limits);
    ck_assert_uint_eq(fp_cache_counts(cache).bytes, 0);
    /* The latest entry can be answered, whatever room it takes. */
    kit_now_ms++;
    walked("/a/f", "ddf");
    ck_assert(known("/a/f"));
}
END_TEST

/* Everything that takes memory is given back, whatever it was exchanged for. */
START_TEST(memory_is_counted_right)
{
    static const char *const whats[] = { "ddf", "ddL", "dda", "ddd", "dlf", "ddb", "ddu", "df" };
    uint64_t seed = 5;

    for (int i = 0; i < 2000; i++) {
        const char *what = whats[unit_random(&seed) % 8];
        const char *path = unit_random(&seed) % 2 == 0 ? "/a/f" : "/b/f";

        kit_now_ms++;
        walk(path, what);
        if (i == 1000) {
            fp_cache_forget(cache, "/", 1, true);
            look_for_names();
        }
        if (unit_random(&seed) % 4 == 0)
            fp_walk_result_add(&result, answer.n_steps - 1, &result.step_watches[0].watch, "name", 4);
        if (unit_random(&seed) % 4 == 0)
            result.step_watches[answer.n_steps - 1].watch.len = 0;
        insert_as(path, kit_now_ms);
        if (unit_random(&seed) % 16 == 0)
            change("/a", "f", true);
        if (unit_random(&seed) % 64 == 0)
            fp_cache_clear(cache);
    }
    fp_cache_clear(cache);
    ck_assert_uint_eq(fp_cache_counts(cache).bytes, 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_leases");
    TCase *t = unit_add_case(s, "leases", setup, teardown, 0);

    tcase_add_test(t, lease_of_a_file);
    tcase_add_test(t, lease_taken_after_the_change_holds);
    tcase_add_test(t, lease_of_a_directory);
    tcase_add_test(t, walk_that_finds_a_directorys_times_changed);
    tcase_add_test(t, walk_that_finds_nothing_changed);
    tcase_add_loop_test(t, walk_that_finds_something_changed, 0, 9);
    tcase_add_test(t, what_was_absent_is_there);
    tcase_add_test(t, a_link_leads_elsewhere);
    tcase_add_loop_test(t, what_goes_ends_its_leases, 0, 4);
    tcase_add_test(t, leases_go_on_when_a_file_is_closed);
    tcase_add_test(t, slots_are_given_back);
    tcase_add_test(t, no_slot_left);
    tcase_add_test(t, no_leases_at_all);
    t = unit_add_case(s, "bounds", setup, teardown, 0);
    tcase_add_test(t, use_of_a_lease_keeps_an_entry);
    tcase_add_test(t, marks_do_not_make_evictions_long);
    tcase_add_test(t, use_of_a_directorys_lease_keeps_it);
    tcase_add_test(t, memory_is_bounded);
    tcase_add_test(t, memory_is_counted_right);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
