/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/breaker.h"

#include "unit.h"

#define TIMEOUT_MS 2000
#define T0         100000u

static struct fp_breaker b;

static void setup(void)
{
    b = (struct fp_breaker){ .open = false };
}

/* A walk that began at t and got no reply. */
static void open_at(uint64_t t)
{
    fp_breaker_asked(&b, t);
    ck_assert(fp_breaker_check(&b, TIMEOUT_MS, t, t + TIMEOUT_MS));
}

START_TEST(silence_opens)
{
    fp_breaker_asked(&b, T0);
    ck_assert(!fp_breaker_check(&b, TIMEOUT_MS, T0, T0 + TIMEOUT_MS - 1));
    ck_assert(!b.open);
    ck_assert(fp_breaker_check(&b, TIMEOUT_MS, T0, T0 + TIMEOUT_MS));
    ck_assert_uint_eq(b.silence_ms, TIMEOUT_MS);
    ck_assert(b.open);
    /* Once. */
    ck_assert(!fp_breaker_check(&b, TIMEOUT_MS, T0, T0 + 2 * TIMEOUT_MS));
}
END_TEST

START_TEST(waiting_for_a_worker_is_no_silence)
{
    fp_breaker_asked(&b, T0);
    ck_assert(!fp_breaker_check(&b, TIMEOUT_MS, 0, T0 + 10 * TIMEOUT_MS));
    ck_assert(!fp_breaker_check(&b, TIMEOUT_MS, T0 + 10 * TIMEOUT_MS, T0 + 10 * TIMEOUT_MS + 1));
}
END_TEST

START_TEST(answers_to_others_count)
{
    fp_breaker_asked(&b, T0);
    fp_breaker_asked(&b, T0 + 1);
    ck_assert_uint_eq(fp_breaker_answered(&b, false, T0 + 1500), 0);
    /* The first one hangs, and nobody asks. */
    ck_assert(!fp_breaker_check(&b, TIMEOUT_MS, T0, T0 + 10 * TIMEOUT_MS));
    fp_breaker_asked(&b, T0 + 20000);
    ck_assert(!fp_breaker_check(&b, TIMEOUT_MS, T0, T0 + 20000 + TIMEOUT_MS - 1));
    ck_assert(fp_breaker_check(&b, TIMEOUT_MS, T0, T0 + 20000 + TIMEOUT_MS));
}
END_TEST

START_TEST(what_waits_is_asked_after_an_answer)
{
    fp_breaker_asked(&b, T0);
    fp_breaker_answered(&b, true, T0 + 100);
    ck_assert(!fp_breaker_check(&b, TIMEOUT_MS, T0, T0 + 100 + TIMEOUT_MS - 1));
    ck_assert(fp_breaker_check(&b, TIMEOUT_MS, T0, T0 + 100 + TIMEOUT_MS));
}
END_TEST

START_TEST(killed_workers_count)
{
    fp_breaker_asked(&b, T0);
    ck_assert(fp_breaker_given_up(&b, TIMEOUT_MS, T0, T0 + TIMEOUT_MS));
    ck_assert(!fp_breaker_given_up(&b, TIMEOUT_MS, T0, T0 + TIMEOUT_MS + 1));
    ck_assert(b.open);
}
END_TEST

/* A worker may be killed long before: the mount has its own time. */
START_TEST(killed_workers_in_a_row_count)
{
    for (unsigned ms = 0; ms + 500 < TIMEOUT_MS; ms += 500) {
        fp_breaker_asked(&b, T0 + ms);
        ck_assert(!fp_breaker_given_up(&b, TIMEOUT_MS, T0 + ms, T0 + ms + 500));
    }
    ck_assert(fp_breaker_given_up(&b, TIMEOUT_MS, T0 + 1500, T0 + TIMEOUT_MS));
    ck_assert_uint_eq(b.silence_ms, TIMEOUT_MS);
}
END_TEST

START_TEST(killed_workers_far_apart_do_not)
{
    for (unsigned i = 0; i < 10; i++) {
        const uint64_t t = T0 + i * 2u * TIMEOUT_MS;

        fp_breaker_asked(&b, t);
        ck_assert(!fp_breaker_given_up(&b, TIMEOUT_MS, t, t + 10));
        ck_assert(!fp_breaker_given_up(&b, TIMEOUT_MS, t, t + 20));
    }
    /* One that answers ends the row. */
    fp_breaker_asked(&b, T0 + 100 * TIMEOUT_MS);
    ck_assert(!fp_breaker_given_up(&b, TIMEOUT_MS, T0 + 100 * TIMEOUT_MS, T0 + 100 * TIMEOUT_MS + 10));
    fp_breaker_answered(&b, false, T0 + 100 * TIMEOUT_MS + 500);
    ck_assert(!fp_breaker_given_up(&b, TIMEOUT_MS, T0 + 101 * TIMEOUT_MS - 20, T0 + 101 * TIMEOUT_MS));
}
END_TEST

START_TEST(killed_workers_of_a_mount_that_answers_do_not)
{
    fp_breaker_asked(&b, T0);
    fp_breaker_answered(&b, false, T0 + 40);
    ck_assert(!fp_breaker_given_up(&b, TIMEOUT_MS, T0, T0 + 50));
}
END_TEST

START_TEST(an_answer_ends_it)
{
    open_at(T0);
    ck_assert_uint_eq(fp_breaker_answered(&b, false, T0 + 9000), T0 + TIMEOUT_MS);
    ck_assert(!b.open);
    ck_assert_uint_eq(fp_breaker_answered(&b, false, T0 + 9001), 0);
}
END_TEST

/* A probe that takes no time; returns how long after now it was due. */
static uint64_t next_probe(uint64_t *now)
{
    uint64_t began = *now;

    while (!fp_breaker_probe(&b, *now))
        (*now)++;
    ck_assert(!fp_breaker_probe(&b, *now + 1000000));
    fp_breaker_probed(&b, *now);
    return *now - began;
}

START_TEST(probes_are_ever_rarer)
{
    static const uint64_t due[] = { 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
    uint64_t now = T0 + TIMEOUT_MS;

    ck_assert(!fp_breaker_probe(&b, now));
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
    fp_breaker_answered(&b, false, now);
    ck_assert(!fp_breaker_is_at_rest(&b, TIMEOUT_MS, now));
    open_at(now);
    now += TIMEOUT_MS;
    ck_assert_uint_eq(next_probe(&now), 2000);
    fp_breaker_answered(&b, false, now);
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
    fp_breaker_hurry(&b);
    ck_assert_uint_eq(next_probe(&now), 0);
}
END_TEST

START_TEST(probe_when_a_hung_worker_got_out)
{
    uint64_t now = T0 + TIMEOUT_MS;

    open_at(T0);
    fp_breaker_hung(&b, 1);
    fp_breaker_hung(&b, 2);
    fp_breaker_hung(&b, 2);
    ck_assert_uint_eq(next_probe(&now), 1000);
    fp_breaker_hung(&b, 1);
    ck_assert_uint_eq(next_probe(&now), 0);
    ck_assert_uint_eq(next_probe(&now), 4000);
}
END_TEST

START_TEST(another_mount_with_the_same_number)
{
    open_at(T0);
    ck_assert(fp_breaker_reset(&b));
    ck_assert(!fp_breaker_reset(&b));
    ck_assert(!b.open);
    ck_assert(!fp_breaker_check(&b, TIMEOUT_MS, T0, T0 + 10 * TIMEOUT_MS));
}
END_TEST

START_TEST(nothing_is_remembered_for_ever)
{
    ck_assert(fp_breaker_is_at_rest(&b, TIMEOUT_MS, T0));
    open_at(T0);
    ck_assert(!fp_breaker_is_at_rest(&b, TIMEOUT_MS, T0 + 1000000));
    fp_breaker_answered(&b, false, T0 + 5000);
    ck_assert(!fp_breaker_is_at_rest(&b, TIMEOUT_MS, T0 + 34999));
    ck_assert(fp_breaker_is_at_rest(&b, TIMEOUT_MS, T0 + 35000));
    ck_assert(!fp_breaker_given_up(&b, TIMEOUT_MS, T0 + 35000, T0 + 35001));
    ck_assert(!fp_breaker_is_at_rest(&b, TIMEOUT_MS, T0 + 35001 + TIMEOUT_MS));
    ck_assert(fp_breaker_is_at_rest(&b, TIMEOUT_MS, T0 + 35002 + TIMEOUT_MS));
}
END_TEST

START_TEST(new_timeout)
{
    fp_breaker_asked(&b, T0);
    ck_assert(!fp_breaker_check(&b, 100, T0, T0 + 99));
    ck_assert(fp_breaker_check(&b, 100, T0, T0 + 100));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("breaker");
    TCase *t = unit_add_case(s, "breaker", setup, NULL, 0);

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
    tcase_add_test(t, nothing_is_remembered_for_ever);
    tcase_add_test(t, new_timeout);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
