/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watches that report too many changes, and the time for which they are left out.
 */
#include "config.h"
#include "changes/noise.h"

#include "unit.h"

#define BEGIN_MS 1000000u
#define DEV      7u

static struct fp_noise_list *list;
static struct fp_noise *noise;
static uint64_t now_ms;

static size_t concerned; /* entries, by each event */

static void setup(void)
{
    list = fp_noise_list_create();
    ck_assert_ptr_nonnull(list);
    noise = fp_noise_create(list);
    ck_assert_ptr_nonnull(noise);
    now_ms = BEGIN_MS;
    concerned = 1;
}

static void teardown(void)
{
    fp_noise_destroy(&noise);
    ck_assert_ptr_null(noise);
}

/* The results of n events: at most one of them is a report. */
static enum fp_left_out events(int wd, bool names, unsigned n)
{
    enum fp_left_out found = FP_LEFT_OUT_NOT;

    for (unsigned i = 0; i < n; i++) {
        const enum fp_left_out what = fp_noise_count(noise, wd, names, concerned, now_ms);

        ck_assert(what == FP_LEFT_OUT_NOT || found == FP_LEFT_OUT_NOT);
        if (what != FP_LEFT_OUT_NOT)
            found = what;
    }
    return found;
}

static struct fp_noise_end leave_out_of(uint32_t uid, uint64_t ino)
{
    return fp_noise_leave_out(noise, &(struct fp_noise_object){ DEV, ino, uid }, FP_LEFT_OUT_WHOLLY, now_ms);
}

/* Of root's. */
static uint32_t leave_out(uint64_t ino, enum fp_left_out what)
{
    return fp_noise_leave_out(noise, &(struct fp_noise_object){ DEV, ino, 0 }, what, now_ms).ms;
}

static enum fp_left_out left_out_of(uint32_t uid, uint64_t ino)
{
    return fp_noise_list_find(list, &(struct fp_noise_object){ DEV, ino, uid });
}

static void assert_left_out(uint64_t ino, enum fp_left_out what)
{
    const struct fp_noise_object elsewhere = { DEV + 1, ino, 0 };

    ck_assert_int_eq((int)left_out_of(0, ino), (int)what);
    ck_assert_int_eq((int)fp_noise_list_find(list, &elsewhere), (int)FP_LEFT_OUT_NOT);
}

static void later(uint32_t ms)
{
    now_ms += ms;
    fp_noise_expire(noise, now_ms);
}

/* ---- counting ---- */

START_TEST(too_many_in_a_window)
{
    ck_assert_int_eq((int)events(1, false, FP_NOISE_MANY), (int)FP_LEFT_OUT_NOT);
    now_ms += FP_NOISE_WINDOW_MS;
    ck_assert_int_eq((int)events(1, false, FP_NOISE_MANY), (int)FP_LEFT_OUT_NOT);
    ck_assert_int_eq((int)events(1, false, 1), (int)FP_LEFT_OUT_ATTRIBUTES);
}
END_TEST

/* Reported once in a window, and again if it goes on. */
START_TEST(names_are_told_apart)
{
    ck_assert_int_eq((int)events(1, true, FP_NOISE_MANY), (int)FP_LEFT_OUT_NOT);
    ck_assert_int_eq((int)events(1, true, FP_NOISE_MANY), (int)FP_LEFT_OUT_WHOLLY);
    now_ms += FP_NOISE_WINDOW_MS;
    ck_assert_int_eq((int)events(1, true, 2 * FP_NOISE_MANY), (int)FP_LEFT_OUT_WHOLLY);
    ck_assert_int_eq((int)events(2, true, FP_NOISE_FEW), (int)FP_LEFT_OUT_NOT);
    ck_assert_int_eq((int)events(2, false, FP_NOISE_FEW), (int)FP_LEFT_OUT_NOT);
}
END_TEST

START_TEST(events_that_concern_many_entries)
{
    concerned = FP_NOISE_VISITS / 10;
    for (unsigned turn = 0; turn < 2; turn++) {
        ck_assert_int_eq((int)events(1, true, 10), (int)FP_LEFT_OUT_NOT);
        ck_assert_int_eq((int)events(1, true, 1), (int)FP_LEFT_OUT_LINKED);
    }
    ck_assert_int_eq((int)events(1, false, 10), (int)FP_LEFT_OUT_NOT);
    now_ms += FP_NOISE_WINDOW_MS;
    ck_assert_int_eq((int)events(1, true, 10), (int)FP_LEFT_OUT_NOT);
    concerned = 1;
    ck_assert_int_eq((int)events(1, true, FP_NOISE_MANY - 10), (int)FP_LEFT_OUT_LINKED);
    ck_assert_int_eq((int)events(1, true, 1), (int)FP_LEFT_OUT_WHOLLY);
}
END_TEST

/* A storm over many directories is one as well. */
START_TEST(few_of_each_but_many_of_all)
{
    const int n = (int)(FP_NOISE_ALL / FP_NOISE_FEW);

    for (int wd = 1; wd <= n; wd++)
        ck_assert_int_eq((int)events(wd, false, FP_NOISE_FEW), (int)FP_LEFT_OUT_NOT);
    ck_assert_int_eq((int)events(n + 1, false, FP_NOISE_FEW), (int)FP_LEFT_OUT_NOT);
    ck_assert_int_eq((int)events(n + 1, false, 1), (int)FP_LEFT_OUT_ATTRIBUTES);
    ck_assert_int_eq((int)events(1, false, 1), (int)FP_LEFT_OUT_ATTRIBUTES);
    /* Other work with names in it makes no difference. */
    ck_assert_int_eq((int)events(n + 2, true, FP_NOISE_MANY), (int)FP_LEFT_OUT_NOT);
    ck_assert_int_eq((int)events(n + 2, true, 1), (int)FP_LEFT_OUT_WHOLLY);
}
END_TEST

/* Two watches of one set: the noisy one is found, the quiet one is not. */
START_TEST(watches_that_share_a_set)
{
    enum fp_left_out of_noisy = FP_LEFT_OUT_NOT;

    for (unsigned i = 0; i < FP_NOISE_ALL - 500; i++) {
        const enum fp_left_out what = events(1, false, 1);

        if (what != FP_LEFT_OUT_NOT)
            of_noisy = what;
        if (i % 10 == 0)
            ck_assert_int_eq((int)events(1 + 4096, false, 1), (int)FP_LEFT_OUT_NOT);
    }
    ck_assert_int_eq((int)of_noisy, (int)FP_LEFT_OUT_ATTRIBUTES);
}
END_TEST

/* Nor do watches of like noise hide each other. */
START_TEST(noisy_watches_that_share_a_set)
{
    unsigned found = 0;

    for (unsigned i = 0; i <= FP_NOISE_MANY; i++) {
        for (int watch = 0; watch < 4; watch++)
            found += events(1 + 4096 * watch, false, 1) != FP_LEFT_OUT_NOT;
    }
    ck_assert_uint_eq(found, 4);
}
END_TEST

/* ---- the time ---- */

START_TEST(left_out_for_a_while)
{
    ck_assert_uint_eq(leave_out(5, FP_LEFT_OUT_ATTRIBUTES), FP_NOISE_FIRST_MS);
    assert_left_out(5, FP_LEFT_OUT_ATTRIBUTES);
    assert_left_out(6, FP_LEFT_OUT_NOT);
    ck_assert_uint_eq(fp_noise_places(noise, now_ms), 1);
    later(FP_NOISE_FIRST_MS - 1);
    assert_left_out(5, FP_LEFT_OUT_ATTRIBUTES);
    later(1);
    assert_left_out(5, FP_LEFT_OUT_NOT);
    ck_assert_uint_eq(fp_noise_places(noise, now_ms), 0);
}
END_TEST

/* Longer each time that it goes on, and as at first after as long a rest. */
START_TEST(longer_if_it_goes_on)
{
    uint32_t ms = FP_NOISE_FIRST_MS;

    for (int i = 0; i < 10; i++) {
        ck_assert_uint_eq(leave_out(5, FP_LEFT_OUT_WHOLLY), ms);
        later(ms);
        assert_left_out(5, FP_LEFT_OUT_NOT);
        later(1);
        ms = ms < FP_NOISE_MOST_MS ? 2 * ms : ms;
    }
    ck_assert_uint_eq(ms, FP_NOISE_MOST_MS);
    later(FP_NOISE_MOST_MS);
    ck_assert_uint_eq(leave_out(5, FP_LEFT_OUT_WHOLLY), FP_NOISE_FIRST_MS);
}
END_TEST

/* A worker may have watched it once more meanwhile: that is no other storm. More is left out where
 * more is noisy, and never less. */
START_TEST(reported_again)
{
    leave_out(5, FP_LEFT_OUT_ATTRIBUTES);
    ck_assert_uint_eq(leave_out(5, FP_LEFT_OUT_WHOLLY), FP_NOISE_FIRST_MS);
    assert_left_out(5, FP_LEFT_OUT_WHOLLY);
    ck_assert_uint_eq(leave_out(5, FP_LEFT_OUT_ATTRIBUTES), FP_NOISE_FIRST_MS);
    assert_left_out(5, FP_LEFT_OUT_WHOLLY);
    ck_assert_uint_eq(fp_noise_places(noise, now_ms), 1);
}
END_TEST

START_TEST(no_more_places)
{
    for (uint64_t ino = 1; ino <= FP_NOISE_PLACES; ino++)
        ck_assert_uint_eq(leave_out(ino, FP_LEFT_OUT_WHOLLY), FP_NOISE_FIRST_MS);
    ck_assert_uint_eq(leave_out(FP_NOISE_PLACES + 1, FP_LEFT_OUT_WHOLLY), 0);
    assert_left_out(FP_NOISE_PLACES, FP_LEFT_OUT_WHOLLY);
    assert_left_out(FP_NOISE_PLACES + 1, FP_LEFT_OUT_NOT);
    later(2 * FP_NOISE_FIRST_MS);
    ck_assert_uint_eq(fp_noise_places(noise, now_ms), 0);
    ck_assert_uint_eq(leave_out(FP_NOISE_PLACES + 1, FP_LEFT_OUT_WHOLLY), FP_NOISE_FIRST_MS);
}
END_TEST

/* All that he owns is left out instead, in one place: he takes no more from others. */
START_TEST(one_owner_has_many)
{
    struct fp_noise_end end;

    for (uint64_t ino = 1; ino <= FP_NOISE_OWN; ino++)
        ck_assert(!leave_out_of(1000, ino).owner);
    ck_assert_int_eq((int)left_out_of(1000, FP_NOISE_OWN + 2), (int)FP_LEFT_OUT_NOT);
    end = leave_out_of(1000, FP_NOISE_OWN + 1);
    ck_assert(end.owner && !end.before);
    ck_assert_uint_eq(end.ms, FP_NOISE_FIRST_MS);
    ck_assert_uint_eq(fp_noise_places(noise, now_ms), 1);
    ck_assert_int_eq((int)left_out_of(1000, FP_NOISE_OWN + 2), (int)FP_LEFT_OUT_WHOLLY);
    ck_assert_int_eq((int)left_out_of(1001, FP_NOISE_OWN + 2), (int)FP_LEFT_OUT_NOT);
    end = leave_out_of(1000, FP_NOISE_OWN + 3);
    ck_assert(end.owner && end.before);
    ck_assert(!leave_out_of(1001, 1).owner);
    later(FP_NOISE_FIRST_MS);
    ck_assert_int_eq((int)left_out_of(1000, FP_NOISE_OWN + 2), (int)FP_LEFT_OUT_NOT);
    ck_assert(!leave_out_of(1000, 1).owner);
}
END_TEST

/* Not at once, but each for as long as places are remembered. */
START_TEST(one_owner_has_many_in_turn)
{
    for (uint64_t ino = 1; ino <= FP_NOISE_OWN; ino++) {
        ck_assert(!leave_out_of(1000, ino).owner);
        if (ino % 64 == 0)
            later(FP_NOISE_FIRST_MS / 4);
    }
    later(FP_NOISE_FIRST_MS / 2);
    ck_assert(leave_out_of(1000, FP_NOISE_OWN + 1).owner);
}
END_TEST

/* Several owners together: the next one's own things are left out. */
START_TEST(owners_take_all_places)
{
    for (uint64_t ino = 0; ino < FP_NOISE_PLACES; ino++)
        ck_assert(!leave_out_of(1000 + (uint32_t)(ino / FP_NOISE_OWN), ino).owner);
    ck_assert(leave_out_of(2000, FP_NOISE_PLACES).owner);
    ck_assert_int_eq((int)left_out_of(2000, FP_NOISE_PLACES + 1), (int)FP_LEFT_OUT_WHOLLY);
    ck_assert_uint_eq(leave_out(FP_NOISE_PLACES + 1, FP_LEFT_OUT_WHOLLY), 0);
    for (uint32_t uid = 2001; uid < 2000 + FP_NOISE_OWNERS; uid++)
        ck_assert(leave_out_of(uid, uid).owner);
    ck_assert_uint_eq(leave_out_of(3000, 3000).ms, 0);
}
END_TEST

/* Nothing happens: a reader of the number sees that their time is over. */
START_TEST(expired_while_nothing_happens)
{
    leave_out(5, FP_LEFT_OUT_WHOLLY);
    ck_assert_uint_eq(fp_noise_places(noise, now_ms + FP_NOISE_FIRST_MS - 1), 1);
    ck_assert_uint_eq(fp_noise_places(noise, now_ms + FP_NOISE_FIRST_MS), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("noise");
    TCase *t = unit_add_case(s, "counting", setup, teardown, 0);

    tcase_add_test(t, too_many_in_a_window);
    tcase_add_test(t, names_are_told_apart);
    tcase_add_test(t, events_that_concern_many_entries);
    tcase_add_test(t, few_of_each_but_many_of_all);
    tcase_add_test(t, watches_that_share_a_set);
    tcase_add_test(t, noisy_watches_that_share_a_set);
    t = unit_add_case(s, "places", setup, teardown, 0);
    tcase_add_test(t, left_out_for_a_while);
    tcase_add_test(t, longer_if_it_goes_on);
    tcase_add_test(t, reported_again);
    tcase_add_test(t, no_more_places);
    tcase_add_test(t, one_owner_has_many);
    tcase_add_test(t, one_owner_has_many_in_turn);
    tcase_add_test(t, owners_take_all_places);
    tcase_add_test(t, expired_while_nothing_happens);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
