/* SPDX-License-Identifier: Apache-2.0 */
/* The table of docs/design/coherence.md, "How long a step is valid": a row here for each of its rows. */
#include "config.h"
#include "base/verdict.h"

#include "unit.h"

enum { WATCHED_MS = 600000, TTL_MS = 3000, SHORT_MS = 500 };

static const struct {
    enum fp_verdict verdict;
    bool reported;
    uint32_t ms, short_ms; /* with either TTL */
    const char *text, *reason;
} rows[] = {
    { FP_REPORTED, true, WATCHED_MS, WATCHED_MS, "inotify", "reported" },
    { FP_REPORTED_OTHERS, true, TTL_MS, SHORT_MS, "inotify+ttl", "others" },
    { FP_REPORTED_NOISE, true, 2000, SHORT_MS, "inotify+ttl", "noise" },
    { FP_REPORTED_NAMES, true, 2000, SHORT_MS, "inotify+ttl", "names" },
    { FP_REPORTED_LIMIT, true, 2000, SHORT_MS, "inotify+ttl", "limit" },
    { FP_TTL_UNREPORTED, false, TTL_MS, SHORT_MS, "ttl", "unreported" },
    { FP_TTL_UNWATCHED, false, TTL_MS, SHORT_MS, "ttl", "unwatched" },
    { FP_EACH_REQUEST, false, 0, 0, "ttl", "unseen" },
};

START_TEST(each_row_of_the_table)
{
    const enum fp_verdict v = rows[_i].verdict;

    ck_assert_int_eq((int)v, _i);
    ck_assert_int_eq(fp_verdict_is_reported(v), rows[_i].reported);
    ck_assert_uint_eq(fp_verdict_ms(v, WATCHED_MS, TTL_MS), rows[_i].ms);
    ck_assert_uint_eq(fp_verdict_ms(v, WATCHED_MS, SHORT_MS), rows[_i].short_ms);
    ck_assert_str_eq(fp_verdict_text(v), rows[_i].text);
    ck_assert_str_eq(fp_verdict_reason(v), rows[_i].reason);
}
END_TEST

/* What is missing for now is reported by another watch, unless something else is missing there, too. */
START_TEST(two_that_hold)
{
    static const enum fp_verdict both[][3] = {
        { FP_REPORTED, FP_REPORTED_OTHERS, FP_REPORTED_OTHERS },
        { FP_REPORTED_OTHERS, FP_REPORTED_NOISE, FP_REPORTED_NOISE },
        { FP_REPORTED_OTHERS, FP_TTL_UNREPORTED, FP_TTL_UNREPORTED },
        { FP_REPORTED_NOISE, FP_REPORTED_NOISE, FP_REPORTED_NOISE },
        { FP_REPORTED_NOISE, FP_REPORTED_NAMES, FP_REPORTED_NAMES },
        { FP_REPORTED_NOISE, FP_REPORTED_LIMIT, FP_EACH_REQUEST },
        { FP_REPORTED_NOISE, FP_TTL_UNREPORTED, FP_EACH_REQUEST },
        { FP_REPORTED_NAMES, FP_REPORTED_LIMIT, FP_EACH_REQUEST },
        { FP_REPORTED_NAMES, FP_TTL_UNREPORTED, FP_EACH_REQUEST },
        { FP_REPORTED_LIMIT, FP_REPORTED_LIMIT, FP_REPORTED_LIMIT },
        { FP_REPORTED_LIMIT, FP_TTL_UNWATCHED, FP_EACH_REQUEST },
        { FP_TTL_UNREPORTED, FP_TTL_UNWATCHED, FP_TTL_UNWATCHED },
    };

    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        ck_assert_int_eq((int)fp_verdict_both(both[i][0], both[i][1]), (int)both[i][2]);
        ck_assert_int_eq((int)fp_verdict_both(both[i][1], both[i][0]), (int)both[i][2]);
    }
}
END_TEST

/* The order in which they are found does not count, and nothing that is added makes anything valid for longer. */
START_TEST(any_that_hold)
{
    for (int a = 0; a < FP_VERDICTS; a++) {
        for (int b = 0; b < FP_VERDICTS; b++) {
            const enum fp_verdict both = fp_verdict_both((enum fp_verdict)a, (enum fp_verdict)b);

            ck_assert_uint_le(fp_verdict_ms(both, WATCHED_MS, TTL_MS),
                              fp_verdict_ms((enum fp_verdict)a, WATCHED_MS, TTL_MS));
            ck_assert(!fp_verdict_is_reported(both) || fp_verdict_is_reported((enum fp_verdict)a));
            for (int c = 0; c < FP_VERDICTS; c++)
                ck_assert_int_eq((int)fp_verdict_both(both, (enum fp_verdict)c),
                                 (int)fp_verdict_both((enum fp_verdict)a, fp_verdict_both((enum fp_verdict)b,
                                                                                          (enum fp_verdict)c)));
        }
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("verdict");
    TCase *t = unit_add_case(s, "verdict", NULL, NULL, 20);

    tcase_add_loop_test(t, each_row_of_the_table, 0, FP_VERDICTS);
    tcase_add_test(t, two_that_hold);
    tcase_add_test(t, any_that_hold);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
