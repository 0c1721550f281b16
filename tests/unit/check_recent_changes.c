/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/recent_changes.h"

#include "unit.h"

#define PLACES (FP_RECENT_SETS * FP_RECENT_WAYS)

static struct fp_recent_changes recent;

static void setup(void)
{
    recent = (struct fp_recent_changes){ 0 };
}

/* Spread as a keyed hash is. */
static uint64_t hash_of(unsigned number)
{
    uint64_t state = number;

    return unit_random(&state);
}

START_TEST(when_it_changed)
{
    ck_assert(!fp_recent_changes_has(&recent, 7, 1));
    fp_recent_changes_note(&recent, 7, 1000);
    ck_assert(fp_recent_changes_has(&recent, 7, 999));
    ck_assert(fp_recent_changes_has(&recent, 7, 1000));
    ck_assert(!fp_recent_changes_has(&recent, 7, 1001));
    fp_recent_changes_note(&recent, 7, 1200);
    ck_assert(fp_recent_changes_has(&recent, 7, 1200));
    ck_assert(!fp_recent_changes_has(&recent, 7, 1201));
}
END_TEST

/* Not even those that share a set. */
START_TEST(others_did_not)
{
    for (unsigned i = 1; i <= FP_RECENT_WAYS; i++)
        fp_recent_changes_note(&recent, i * FP_RECENT_SETS, 1000);
    ck_assert(!fp_recent_changes_has(&recent, 0, 1));
    ck_assert(!fp_recent_changes_has(&recent, (FP_RECENT_WAYS + 1) * FP_RECENT_SETS, 1));
    ck_assert(!fp_recent_changes_has(&recent, FP_RECENT_SETS + 1, 1));
    ck_assert(!fp_recent_changes_has(&recent, FP_RECENT_SETS + (UINT64_C(1) << 32), 1));
}
END_TEST

/* If something of a time was forgotten, the answer for every hash of that time is "perhaps". */
START_TEST(what_is_forgotten_may_have_been_anything)
{
    for (unsigned i = 0; i <= FP_RECENT_WAYS; i++)
        fp_recent_changes_note(&recent, i * FP_RECENT_SETS, 1000 + i);
    ck_assert(fp_recent_changes_has(&recent, 0, 1000));
    ck_assert(fp_recent_changes_has(&recent, 99 * FP_RECENT_SETS, 1000));
    ck_assert(!fp_recent_changes_has(&recent, 99 * FP_RECENT_SETS, 1001));
    ck_assert(!fp_recent_changes_has(&recent, 1, 1));
}
END_TEST

/* A log on a watched file system: as many changes as there are requests, of the same names. */
START_TEST(what_changes_all_the_time_drives_nothing_out)
{
    fp_recent_changes_note(&recent, FP_RECENT_SETS, 1);
    for (unsigned i = 0; i < 100000; i++)
        fp_recent_changes_note(&recent, (2 + i % 4) * FP_RECENT_SETS, 1000 + i);
    ck_assert(fp_recent_changes_has(&recent, FP_RECENT_SETS, 1));
    ck_assert(!fp_recent_changes_has(&recent, FP_RECENT_SETS, 2));
    ck_assert(!fp_recent_changes_has(&recent, 9 * FP_RECENT_SETS, 1));
}
END_TEST

/* A third of the places leaves room in nearly every set: a walk of that long is kept. */
START_TEST(many_other_changes_are_told_apart)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < PLACES / 3; i++)
        fp_recent_changes_note(&recent, hash_of(i), 1000 + i);
    for (unsigned i = 0; i < PLACES; i++)
        wrong += fp_recent_changes_has(&recent, hash_of(PLACES + i), 1000);
    ck_assert_uint_lt(wrong, PLACES / 50);
}
END_TEST

/* However many there are, none is missed. */
START_TEST(never_misses_a_change)
{
    enum { N = 4000 };
    static uint64_t last[N];
    uint64_t seed = 5 + (uint64_t)_i, now = 1;

    memset(last, 0, sizeof(last));
    for (unsigned round = 0; round < 200000; round++) {
        const unsigned i = (unsigned)(unit_random(&seed) % N);
        const uint64_t many = unit_random(&seed);

        now += unit_random(&seed) % 4 == 0;
        fp_recent_changes_note(&recent, hash_of(i), now);
        last[i] = now;
        fp_recent_changes_note(&recent, many, now);
        ck_assert(fp_recent_changes_has(&recent, hash_of((i + 1) % N), last[(i + 1) % N]));
    }
    for (unsigned i = 0; i < N; i++)
        ck_assert(last[i] == 0 || fp_recent_changes_has(&recent, hash_of(i), last[i]));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("recent_changes");
    TCase *t = unit_add_case(s, "changes", setup, NULL, 60);

    tcase_add_test(t, when_it_changed);
    tcase_add_test(t, others_did_not);
    tcase_add_test(t, what_is_forgotten_may_have_been_anything);
    tcase_add_test(t, what_changes_all_the_time_drives_nothing_out);
    tcase_add_test(t, many_other_changes_are_told_apart);
    tcase_add_loop_test(t, never_misses_a_change, 0, 3);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
