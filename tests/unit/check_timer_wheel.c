/* SPDX-License-Identifier: Apache-2.0 */
/* The timers that expire, and when: never early, and hardly late. */
#include "config.h"
#include "cache/timer_wheel.h"

#include "unit.h"

#define TICK  FP_TIMER_TICK_MS
#define ROUND ((uint64_t)FP_TIMER_BUCKETS * TICK)
#define START 1000003u /* not at a tick's border */
#define MANY  20000

static struct fp_timer_wheel wheel;
static struct fp_timer things[MANY];

static void setup(void)
{
    memset(things, 0, sizeof(things));
    fp_timer_wheel_init(&wheel, START);
}

static void teardown(void)
{
}

/* The number of timers due by then. */
static unsigned take_all(uint64_t now_ms)
{
    unsigned n = 0;

    while (fp_timer_take(&wheel, now_ms) != NULL)
        n++;
    return n;
}

static void assert_none(uint64_t now_ms)
{
    ck_assert_ptr_null(fp_timer_take(&wheel, now_ms));
}

static void assert_one(uint64_t now_ms, const struct fp_timer *expected)
{
    ck_assert_ptr_eq(fp_timer_take(&wheel, now_ms), expected);
    ck_assert_uint_eq(expected->tick, 0);
    assert_none(now_ms);
}

/* The time when a caller that looks each millisecond takes it. */
static uint64_t taken_at(const struct fp_timer *d, uint64_t from_ms)
{
    while (fp_timer_take(&wheel, from_ms) != d)
        from_ms++;
    return from_ms;
}

START_TEST(nothing_is_due)
{
    assert_none(0);
    assert_none(START);
    assert_none(START + 3 * ROUND);
    fp_timer_clear(&wheel, &things[0]);
    assert_none(START + 4 * ROUND);
}
END_TEST

/* At every distance, in every phase of a tick. */
START_TEST(never_early_and_a_tick_late_at_most)
{
    static const uint64_t distances[] = { 2 * TICK,  100,   999,       ROUND - TICK,
                                          ROUND - 1, ROUND, ROUND + 1, 2 * ROUND + 77,
                                          5 * ROUND };
    uint64_t now = START;

    for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
        for (unsigned phase = 0; phase < 2 * TICK; phase += 3) {
            const uint64_t at = now + distances[i] + phase;

            assert_none(now);
            fp_timer_set(&wheel, &things[0], at);
            now = taken_at(&things[0], now);
            ck_assert_uint_ge(now, at);
            ck_assert_uint_le(now, at + TICK);
        }
    }
}
END_TEST

/* A timer that is due at once, or earlier, waits for the spokes not gone through yet. */
START_TEST(past_and_present_come_soon)
{
    static const uint64_t before[] = { 0, 1, TICK, 1000, ROUND / 2, START };

    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        const uint64_t now = START + i * 1000;
        uint64_t taken;

        assert_none(now);
        fp_timer_set(&wheel, &things[0], now - before[i]);
        taken = taken_at(&things[0], now);
        ck_assert_uint_ge(taken, now);
        ck_assert_uint_le(taken, now + 2 * TICK);
    }
}
END_TEST

START_TEST(set_again)
{
    fp_timer_set(&wheel, &things[0], START + 100);
    fp_timer_set(&wheel, &things[0], START + 500);
    assert_none(START + 100 + TICK);
    assert_one(START + 500 + TICK, &things[0]);
    fp_timer_set(&wheel, &things[0], START + 2000);
    fp_timer_set(&wheel, &things[0], START + 1000);
    assert_one(START + 1000 + TICK, &things[0]);
    assert_none(START + 2000 + TICK);
}
END_TEST

START_TEST(cleared)
{
    for (int i = 0; i < 3; i++)
        fp_timer_set(&wheel, &things[i], START + 100);
    fp_timer_clear(&wheel, &things[1]);
    fp_timer_clear(&wheel, &things[1]);
    ck_assert_uint_eq(things[1].tick, 0);
    ck_assert_uint_eq(take_all(START + 200), 2);
    ck_assert_uint_eq(things[0].tick, 0);
    ck_assert_uint_eq(things[2].tick, 0);
}
END_TEST

/* Each one of those that would come next. */
START_TEST(cleared_while_the_others_are_taken)
{
    for (int which = 0; which < 5; which++) {
        const uint64_t at = START + 1000 * (uint64_t)(which + 1);
        struct fp_timer *first;
        unsigned n;

        for (int i = 0; i < 5; i++)
            fp_timer_set(&wheel, &things[i], at);
        first = fp_timer_take(&wheel, at + TICK);
        ck_assert_ptr_nonnull(first);
        fp_timer_clear(&wheel, &things[which]);
        n = take_all(at + TICK);
        ck_assert_uint_eq(n, first == &things[which] ? 4 : 3);
    }
}
END_TEST

START_TEST(all_cleared_while_they_are_taken)
{
    for (int i = 0; i < 5; i++)
        fp_timer_set(&wheel, &things[i], START + 100);
    ck_assert_ptr_nonnull(fp_timer_take(&wheel, START + 200));
    for (int i = 0; i < 5; i++)
        fp_timer_clear(&wheel, &things[i]);
    assert_none(START + 200);
    fp_timer_set(&wheel, &things[3], START + 300);
    assert_one(START + 300 + TICK, &things[3]);
}
END_TEST

/* A caller that sets again each timer that it took comes to an end. */
START_TEST(set_while_they_are_taken)
{
    const uint64_t now = START + 200;
    const struct fp_timer *d;
    unsigned n = 0;

    for (int i = 0; i < 10; i++)
        fp_timer_set(&wheel, &things[i], START + 100);
    while ((d = fp_timer_take(&wheel, now)) != NULL) {
        ck_assert_uint_lt(++n, 100);
        fp_timer_set(&wheel, &things[d - things], n % 2 == 0 ? 0 : now);
    }
    ck_assert_uint_ge(n, 10);
    ck_assert_uint_eq(take_all(now + 3 * TICK), 10);
}
END_TEST

/* In the spoke under way, but a round later. */
START_TEST(set_for_the_next_round_while_they_are_taken)
{
    const uint64_t at = START + 100;
    const struct fp_timer *d;
    unsigned n = 0;

    for (int i = 0; i < 10; i++)
        fp_timer_set(&wheel, &things[i], at);
    for (; (d = fp_timer_take(&wheel, at + TICK)) != NULL; n++)
        fp_timer_set(&wheel, &things[d - things], at + ROUND);
    ck_assert_uint_eq(n, 10);
    ck_assert_uint_eq(take_all(at + ROUND - 1), 0);
    ck_assert_uint_eq(take_all(at + ROUND + TICK), 10);
}
END_TEST

START_TEST(later_rounds)
{
    for (int i = 0; i < 8; i++)
        fp_timer_set(&wheel, &things[i], START + 100 + (uint64_t)i * ROUND);
    for (int i = 0; i < 8; i++) {
        const uint64_t at = START + 100 + (uint64_t)i * ROUND;

        for (uint64_t ms = i == 0 ? START : at - ROUND + 2 * TICK; ms < at; ms += 500)
            assert_none(ms);
        assert_one(at + TICK, &things[i]);
    }
}
END_TEST

/* No look for many rounds: all due timers are found, and no others. */
START_TEST(long_rest)
{
    const uint64_t end = START + 20 * ROUND + 5;
    uint64_t seed = 1;
    unsigned due = 0;

    for (int i = 0; i < 5000; i++) {
        const uint64_t at = START + unit_random(&seed) % (40 * ROUND);

        fp_timer_set(&wheel, &things[i], at);
        due += at + TICK <= end;
    }
    ck_assert_uint_ge(take_all(end), due);
    for (int i = 0; i < 5000; i++)
        ck_assert(things[i].tick == 0 || things[i].tick * TICK > end);
    /* A rest of years, as after a machine has slept. */
    take_all(end + 1000000000000u);
    for (int i = 0; i < 5000; i++)
        ck_assert_uint_eq(things[i].tick, 0);
    fp_timer_set(&wheel, &things[0], end + 1000000000000u + 100);
    assert_one(end + 1000000000000u + 100 + TICK, &things[0]);
}
END_TEST

/* Against a plain list of times, with all operations in any order. */
START_TEST(very_many)
{
    static uint64_t at[MANY]; /* 0: not set */
    uint64_t now = START, seed = 4711 + (uint64_t)_i;
    unsigned taken = 0, early = 0, late = 0;

    memset(at, 0, sizeof(at));
    for (int step = 0; step < 300; step++) {
        const struct fp_timer *d;

        for (int i = 0; i < 500; i++) {
            const size_t k = unit_random(&seed) % MANY;

            if (unit_random(&seed) % 4 == 0) {
                fp_timer_clear(&wheel, &things[k]);
                at[k] = 0;
            } else {
                at[k] = now + unit_random(&seed) % (unit_random(&seed) % 8 == 0 ? 3 * ROUND : 2000);
                fp_timer_set(&wheel, &things[k], at[k]);
            }
        }
        now += unit_random(&seed) % 200;
        for (; (d = fp_timer_take(&wheel, now)) != NULL; taken++) {
            early += at[d - things] == 0 || at[d - things] > now;
            at[d - things] = 0;
        }
        for (size_t k = 0; k < MANY; k++)
            late += at[k] != 0 && at[k] + 2 * TICK <= now;
    }
    ck_assert_uint_eq(early, 0);
    ck_assert_uint_eq(late, 0);
    ck_assert_uint_gt(taken, 10000);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("due");
    TCase *t = unit_add_case(s, "when", setup, teardown, 30);

    tcase_add_test(t, nothing_is_due);
    tcase_add_test(t, never_early_and_a_tick_late_at_most);
    tcase_add_test(t, past_and_present_come_soon);
    tcase_add_test(t, set_again);
    tcase_add_test(t, later_rounds);
    tcase_add_test(t, long_rest);
    t = unit_add_case(s, "taking", setup, teardown, 30);
    tcase_add_test(t, cleared);
    tcase_add_test(t, cleared_while_the_others_are_taken);
    tcase_add_test(t, all_cleared_while_they_are_taken);
    tcase_add_test(t, set_while_they_are_taken);
    tcase_add_test(t, set_for_the_next_round_while_they_are_taken);
    tcase_add_loop_test(t, very_many, 0, 5);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
