/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/stats.h"

#include <inttypes.h>

#include "unit.h"

static unsigned collected;

/* Each counter is its place in the table, and more each time. */
static void collect(void *ctx, uint64_t values[FP_STATS])
{
    ck_assert_ptr_eq(ctx, &collected);
    collected++;
    for (size_t i = 0; i < FP_STATS; i++)
        values[i] = 1000 * (uint64_t)collected + i;
}

/* A report is of one moment, however many lines it has. */
START_TEST(a_report_is_one_snapshot)
{
    struct fp_stats stats = { .collect = collect, .ctx = &collected };
    char line[128], name[64];
    uint64_t value;

    for (unsigned time = 1; time <= 2; time++) {
        for (uint32_t n = 0; n < FP_STATS; n++) {
            size_t len = fp_stats_line(&stats, n, line, sizeof(line));

            ck_assert_uint_eq(len, strlen(line));
            ck_assert_int_eq(line[len - 1], '\n');
            ck_assert_int_eq(sscanf(line, "%63s %" SCNu64, name, &value), 2);
            ck_assert_uint_eq(value, 1000 * time + n);
        }
        ck_assert_uint_eq(fp_stats_line(&stats, FP_STATS, line, sizeof(line)), 0);
        ck_assert_uint_eq(collected, time);
    }
}
END_TEST

START_TEST(memory_of_a_process)
{
    int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ne(statm, -1);
    ck_assert_uint_gt(fp_stats_resident_bytes(statm), 4096);
    close(statm);
    ck_assert_uint_eq(fp_stats_resident_bytes(-1), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("stats");
    TCase *t = unit_add_case(s, "report", NULL, NULL, 0);

    tcase_add_test(t, a_report_is_one_snapshot);
    tcase_add_test(t, memory_of_a_process);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
