/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/breaker.h"

#include "unit.h"

#define TIMEOUT_MS 2000
#define T0         100000u
#define MOUNT      7

static struct fp_breaker *b;

static void setup(void)
{
    b = fp_breaker_create(TIMEOUT_MS);
    ck_assert_ptr_nonnull(b);
}

static void teardown(void)
{
    fp_breaker_destroy(&b);
    ck_assert_ptr_null(b);
}

static void walk(uint64_t now)
{
    fp_breaker_enter(b, MOUNT);
    fp_breaker_asked(b, MOUNT, now);
}

/* A walk that began at t and got no reply. */
static void open_at(uint64_t t)
{
    walk(t);
    ck_assert(fp_breaker_check(b, MOUNT, t, t + TIMEOUT_MS));
}

START_TEST(silence_opens)
{
    walk(T0);
    ck_assert(!fp_breaker_check(b, MOUNT, T0, T0 + TIMEOUT_MS - 1));
    ck_assert(!fp_breaker_is_open(b, MOUNT));
    ck_assert(fp_breaker_check(b, MOUNT, T0, T0 + TIMEOUT_MS));
    ck_assert_uint_eq(fp_breaker_silence(b, MOUNT), TIMEOUT_MS);
    ck_assert(fp_breaker_is_open(b, MOUNT));
    /* Once. */
    ck_assert(!fp_breaker_check(b, MOUNT, T0, T0 + 2 * TIMEOUT_MS));
    ck_assert_uint_eq(fp_breaker_counts(b).opened, 1);
    ck_assert_uint_eq(fp_breaker_counts(b).open, 1);
    ck_assert(!fp_breaker_is_open(b, MOUNT + 1));
}
END_TEST

START_TEST(waiting_for_a_worker_is_no_silence)
{
    walk(T0);
    ck_assert(!fp_breaker_check(b, MOUNT, 0, T0 + 10 * TIMEOUT_MS));
    ck_assert(!fp_breaker_check(b, MOUNT, T0 + 10 * TIMEOUT_MS, T0 + 10 * TIMEOUT_MS + 1));
}
END_TEST

START_TEST(answers_to_others_count)
{
    walk(T0);
    walk(T0 + 1);
    ck_assert_uint_eq(fp_breaker_answered(b, MOUNT, false, T0 + 1500), 0);
    /* The first one hangs, and nobody asks. */
    ck_assert(!fp_breaker_check(b, MOUNT, T0, T0 + 10 * TIMEOUT_MS));
    fp_breaker_asked(b, MOUNT, T0 + 20000);
    ck_assert(!fp_breaker_check(b, MOUNT, T0, T0 + 20000 + TIMEOUT_MS - 1));
    ck_assert(fp_breaker_check(b, MOUNT, T0, T0 + 20000 + TIMEOUT_MS));
}
END_TEST

START_TEST(what_waits_is_asked_after_an_answer)
{
    walk(T0);
    fp_breaker_answered(b, MOUNT, true, T0 + 100);
    ck_assert(!fp_breaker_check(b, MOUNT, T0, T0 + 100 + TIMEOUT_MS - 1));
    ck_assert(fp_breaker_check(b, MOUNT, T0, T0 + 100 + TIMEOUT_MS));
}
END_TEST

START_TEST(killed_workers_count)
{
    walk(T0);
    ck_assert(fp_breaker_given_up(b, MOUNT, T0, T0 + TIMEOUT_MS));
    ck_assert(!fp_breaker_given_up(b, MOUNT, T0, T0 + TIMEOUT_MS + 1));
    ck_assert(fp_breaker_is_open(b, MOUNT));
}
END_TEST

/* A worker may be killed long before: the mount has its own time. */
START_TEST(killed_workers_in_a_row_count)
{
    for (unsigned ms = 0; ms + 500 < TIMEOUT_MS; ms += 500) {
        walk(T0 + ms);
        ck_assert(!fp_breaker_given_up(b, MOUNT, T0 + ms, T0 + ms + 500));
    }
    ck_assert(fp_breaker_given_up(b, MOUNT, T0 + 1500, T0 + TIMEOUT_MS));
    ck_assert_uint_eq(fp_breaker_silence(b, MOUNT), TIMEOUT_MS);
}
END_TEST

START_TEST(killed_workers_far_apart_do_not)
{
    for (unsigned i = 0; i < 10; i++) {
        const uint64_t t = T0 + i * 2u * TIMEOUT_MS;

        walk(t);
        ck_assert(!fp_breaker_given_up(b, MOUNT, t, t + 10));
        ck_assert(!fp_breaker_given_up(b, MOUNT, t, t + 20));
    }
    /* One that answers ends the row. */
    walk(T0 + 100 * TIMEOUT_MS);
    ck_assert(!fp_breaker_given_up(b, MOUNT, T0 + 100 * TIMEOUT_MS, T0 + 100 * TIMEOUT_MS + 10));
    fp_breaker_answered(b, MOUNT, false, T0 + 100 * TIMEOUT_MS + 500);
    ck_assert(!fp_breaker_given_up(b, MOUNT, T0 + 101 * TIMEOUT_MS - 20, T0 + 101 * TIMEOUT_MS));
}
END_TEST

START_TEST(killed_workers_of_a_mount_that_answers_do_not)
{
    walk(T0);
    fp_breaker_answered(b, MOUNT, false, T0 + 40);
    ck_assert(!fp_breaker_given_up(b, MOUNT, T0, T0 + 50));
}
END_TEST

START_TEST(an_answer_ends_it)
{
    open_at(T0);
    ck_assert_uint_eq(fp_breaker_answered(b, MOUNT, false, T0 + 9000), T0 + TIMEOUT_MS);
    ck_assert(!fp_breaker_is_open(b, MOUNT));
    ck_assert_uint_eq(fp_breaker_answered(b, MOUNT, false, T0 + 9001), 0);
    ck_assert_uint_eq(fp_breaker_counts(b).open, 0);
}
END_TEST

/* A probe that takes no time; returns how long after now it was due. */
static uint64_t next_probe(uint64_t *now)
{
    uint64_t began = *now;

    while (!fp_breaker_probe(b, MOUNT, *now))
        (*now)++;
    ck_assert(!fp_breaker_probe(b, MOUNT, *now + 1000000));
    fp_breaker_probed(b, MOUNT, *now);
    return *now - began;
}

START_TEST(probes_are_ever_rarer)
{
    static const uint64_t due[] = { 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
    uint64_t now = T0 + TIMEOUT_MS;

    ck_assert(!fp_breaker_probe(b, MOUNT, now));
    open_at(T0);
    for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++)
        ck_assert_uint_eq(next_probe(&now), due[i]);
}
END_TEST

START_TEST(a_mount_that_opens_again_goes_on_doubling)
{
    uint64_t now = T0 + TIMEOUT_MS;

    open_at(T0);
    ck_assert_uint_eq(next_probe(&now), 1000);
    fp_breaker_answered(b, MOUNT, false, now);
    fp_breaker_leave(b, MOUNT);
    ck_assert(fp_breaker_sweep(b, now));
    open_at(now);
    now += TIMEOUT_MS;
    ck_assert_uint_eq(next_probe(&now), 2000);
    fp_breaker_answered(b, MOUNT, false, now);
    now += 30000;
    open_at(now);
    now += TIMEOUT_MS;
    ck_assert_uint_eq(next_probe(&now), 1000);
}
END_TEST

START_TEST(probe_when_something_was_mounted)
{
    uint64_t now = T0 + TIMEOUT_MS;

    open_at(T0);
    fp_breaker_hurry(b);
    ck_assert_uint_eq(next_probe(&now), 0);
}
END_TEST

START_TEST(probe_when_a_hung_worker_got_out)
{
    uint64_t now = T0 + TIMEOUT_MS;

    open_at(T0);
    fp_breaker_hung(b, MOUNT, 1);
    fp_breaker_hung(b, MOUNT, 2);
    fp_breaker_hung(b, MOUNT, 2);
    ck_assert_uint_eq(next_probe(&now), 1000);
    fp_breaker_hung(b, MOUNT, 1);
    ck_assert_uint_eq(next_probe(&now), 0);
    ck_assert_uint_eq(next_probe(&now), 4000);
}
END_TEST

START_TEST(another_mount_with_the_same_number)
{
    open_at(T0);
    ck_assert(fp_breaker_reset(b, MOUNT));
    ck_assert(!fp_breaker_reset(b, MOUNT));
    ck_assert(!fp_breaker_is_open(b, MOUNT));
    ck_assert(!fp_breaker_check(b, MOUNT, T0, T0 + 10 * TIMEOUT_MS));
    ck_assert_uint_eq(fp_breaker_counts(b).open, 0);
    ck_assert_uint_eq(fp_breaker_walks(b, MOUNT), 1);
}
END_TEST

START_TEST(unknown_mounts_never_open)
{
    fp_breaker_enter(b, 0);
    fp_breaker_asked(b, 0, T0);
    ck_assert(!fp_breaker_check(b, 0, T0, T0 + 10 * TIMEOUT_MS));
    ck_assert(!fp_breaker_given_up(b, 0, T0, T0 + 10 * TIMEOUT_MS));
    ck_assert_uint_eq(fp_breaker_walks(b, 0), 1);
}
END_TEST

static void count(void *ctx, uint32_t mount)
{
    (void)mount;
    ++*(unsigned *)ctx;
}

START_TEST(nothing_is_remembered_for_ever)
{
    unsigned n = 0;

    open_at(T0);
    fp_breaker_enter(b, MOUNT + 1);
    ck_assert(fp_breaker_sweep(b, T0));
    fp_breaker_each(b, count, &n);
    ck_assert_uint_eq(n, 2);
    fp_breaker_leave(b, MOUNT);
    fp_breaker_leave(b, MOUNT + 1);
    fp_breaker_leave(b, MOUNT + 2);
    fp_breaker_answered(b, MOUNT, false, T0 + 5000);
    ck_assert(fp_breaker_sweep(b, T0 + 5000));
    ck_assert(!fp_breaker_sweep(b, T0 + 35000));
    ck_assert_uint_eq(fp_breaker_walks(b, MOUNT), 0);
}
END_TEST

START_TEST(new_timeout)
{
    walk(T0);
    fp_breaker_set(b, 100);
    ck_assert(!fp_breaker_check(b, MOUNT, T0, T0 + 99));
    ck_assert(fp_breaker_check(b, MOUNT, T0, T0 + 100));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("breaker");
    TCase *t = unit_add_case(s, "breaker", setup, teardown, 0);

    tcase_add_test(t, silence_opens);
    tcase_add_test(t, waiting_for_a_worker_is_no_silence);
    tcase_add_test(t, answers_to_others_count);
    tcase_add_test(t, what_waits_is_asked_after_an_answer);
    tcase_add_test(t, killed_workers_count);
    tcase_add_test(t, killed_workers_in_a_row_count);
    tcase_add_test(t, killed_workers_far_apart_do_not);
    tcase_add_test(t, killed_workers_of_a_mount_that_answers_do_not);
    tcase_add_test(t, an_answer_ends_it);
    tcase_add_test(t, probes_are_ever_rarer);
    tcase_add_test(t, a_mount_that_opens_again_goes_on_doubling);
    tcase_add_test(t, probe_when_something_was_mounted);
    tcase_add_test(t, probe_when_a_hung_worker_got_out);
    tcase_add_test(t, another_mount_with_the_same_number);
    tcase_add_test(t, unknown_mounts_never_open);
    tcase_add_test(t, nothing_is_remembered_for_ever);
    tcase_add_test(t, new_timeout);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
