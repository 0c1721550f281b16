/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of a file server that lags behind this machine's, or is ahead of it. */
#include "config.h"
#include "wire/server_clock.h"

#include <time.h>
#include <unistd.h>

#include "unit.h"

#define DEV 77u

/* That many milliseconds before now, by this machine's clock. */
static struct fp_time before(int64_t ms)
{
    struct timespec now;
    int64_t at_ms;

    clock_gettime(CLOCK_REALTIME, &now);
    at_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - ms;
    return (struct fp_time){ at_ms / 1000, (uint32_t)(at_ms % 1000 * 1000000) };
}

static bool has_settled(uint64_t dev, int64_t before_ms)
{
    const struct fp_time t = before(before_ms);

    return fp_server_clock_has_settled(dev, &t);
}

/* Nothing tells yet that the server's clock has gone on: it may lag by a year. */
START_TEST(the_first_file)
{
    const struct fp_time t = before(31536000000);

    ck_assert(!fp_server_clock_has_settled(DEV, &t));
    ck_assert(!fp_server_clock_has_settled(DEV, &t));
    usleep(FP_SETTLED_MS * 1000 + 50000);
    ck_assert(fp_server_clock_has_settled(DEV, &t));
}
END_TEST

/* The server has told a later time. */
START_TEST(files_of_before)
{
    ck_assert(!has_settled(DEV + 1, 100000));
    ck_assert(has_settled(DEV + 1, 100000 + FP_SETTLED_MS + 1000));
    ck_assert(!has_settled(DEV + 1, 50000));
    ck_assert(has_settled(DEV + 1, 100000));
    /* It is another server's. */
    ck_assert(!has_settled(DEV + 2, 100000));
}
END_TEST

START_TEST(a_time_that_is_noted)
{
    const struct fp_time t = before(10000);

    fp_server_clock_note(DEV + 3, &t);
    ck_assert(has_settled(DEV + 3, 20000));
    ck_assert(!has_settled(DEV + 3, 11000));
}
END_TEST

/* A server ahead of this machine, or times before 1970, say nothing against this machine's clock. */
START_TEST(a_server_that_is_ahead)
{
    const struct fp_time t = before(-31536000000), ancient = { -100000, 0 };

    fp_server_clock_note(DEV + 4, &t);
    ck_assert(!has_settled(DEV + 4, FP_SETTLED_MS - 500));
    ck_assert(has_settled(DEV + 4, FP_SETTLED_MS + 500));
    ck_assert(fp_server_clock_has_settled(DEV + 4, &ancient));
    ck_assert(!fp_server_clock_has_settled(DEV + 5, &ancient));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("server_clock");
    TCase *t = unit_add_case(s, "clocks", NULL, NULL, 0);

    tcase_add_test(t, the_first_file);
    tcase_add_test(t, files_of_before);
    tcase_add_test(t, a_time_that_is_noted);
    tcase_add_test(t, a_server_that_is_ahead);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
