/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/latency.h"

#include "shared/stats_table.h"
#include "unit.h"
#include "wire/walk_result.h"

static struct fp_latency *latency;
static char line[8192];
static const char *gone; /* a point at which nothing is mounted any more */

static bool is_mounted(void *ctx, const char *point)
{
    ck_assert_ptr_eq(ctx, line);
    return gone == NULL || strcmp(point, gone) != 0;
}

static void setup(void)
{
    gone = NULL;
    latency = fp_latency_create(is_mounted, line);
    ck_assert_ptr_nonnull(latency);
}

static void teardown(void)
{
    fp_latency_destroy(&latency);
    ck_assert_ptr_null(latency);
}

static void add(const char *point, uint32_t us)
{
    const struct fp_effort effort = { .us = us, .calls = 2 };

    fp_latency_add(latency, point, &effort, 0);
}

/* The report's line, without its end; "" where there is none. */
static const char *read_line(uint32_t n)
{
    size_t len = fp_latency_line(latency, n, line, sizeof(line));

    ck_assert(len == 0 || line[len - 1] == '\n');
    line[len > 0 ? len - 1 : 0] = '\0';
    return line;
}

static unsigned bucket(unsigned i)
{
    const char *at = strrchr(line, ' ') + 1;

    for (; i > 0; i--)
        at = strchr(at, ',') + 1;
    return (unsigned)strtoul(at, NULL, 10);
}

START_TEST(begins_empty)
{
    ck_assert_str_eq(read_line(0), "");
}
END_TEST

START_TEST(each_has_its_bucket)
{
    static const struct {
        uint32_t us;
        unsigned bucket;
    } samples[] = { { 0, 0 },
                    { 64, 0 },
                    { 65, 1 },
                    { 128, 1 },
                    { 129, 2 },
                    { 64u << 20, 20 },
                    { (64u << 20) + 1, 21 },
                    { UINT32_MAX, 21 } };
    unsigned expected[FP_LATENCY_BUCKETS] = { 0 };
    uint64_t sum = 0;
    char start[128];

    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        add("/", samples[i].us);
        expected[samples[i].bucket]++;
        sum += samples[i].us;
    }
    snprintf(start, sizeof(start), "/ 8 %llu %u ", (unsigned long long)sum, UINT32_MAX);
    ck_assert_ptr_eq(strstr(read_line(0), start), line);
    for (unsigned i = 0; i < FP_LATENCY_BUCKETS; i++)
        ck_assert_uint_eq(bucket(i), expected[i]);
    ck_assert_ptr_null(strchr(strrchr(line, ',') + 1, ','));
}
END_TEST

START_TEST(each_mount_has_its_line)
{
    add("/", 1);
    add("/a b", 2);
    add("/", 3);
    ck_assert_ptr_eq(strstr(read_line(0), "/ 2 4 3 "), line);
    ck_assert_ptr_eq(strstr(read_line(1), "/a\\040b 1 2 2 "), line);
    ck_assert_str_eq(read_line(2), "");
}
END_TEST

START_TEST(calls_of_a_minute)
{
    const struct fp_effort effort = { .us = 1, .calls = 5 };

    ck_assert_uint_eq(fp_latency_calls(latency, "/m", 0), 0);
    fp_latency_add(latency, "/m", &effort, 60000);
    fp_latency_add(latency, "/m", &effort, 119999);
    ck_assert_uint_eq(fp_latency_calls(latency, "/m", 119999), 0);
    ck_assert_uint_eq(fp_latency_calls(latency, "/m", 120000), 10);
    fp_latency_add(latency, "/m", &effort, 120001);
    ck_assert_uint_eq(fp_latency_calls(latency, "/m", 179999), 10);
    ck_assert_uint_eq(fp_latency_calls(latency, "/m", 180000), 5);
    ck_assert_uint_eq(fp_latency_calls(latency, "/m", 240000), 0);
    fp_latency_add(latency, "/m", &effort, 300000);
    ck_assert_uint_eq(fp_latency_calls(latency, "/m", 480000), 0);
    ck_assert_ptr_eq(strstr(read_line(0), "/m 4 4 1 20 "), line);
}
END_TEST

START_TEST(too_many_mounts_are_counted_as_one)
{
    char point[16];

    for (unsigned i = 0; i < FP_LATENCY_MOUNTS + 10; i++) {
        snprintf(point, sizeof(point), "/m%u", i);
        add(point, 1);
    }
    ck_assert_ptr_eq(strstr(read_line(FP_LATENCY_MOUNTS), "(others) 10 10 1 "), line);
    ck_assert_str_eq(read_line(FP_LATENCY_MOUNTS + 1), "");
    add("/m0", 1);
    ck_assert_ptr_eq(strstr(read_line(0), "/m0 2 2 1 "), line);
}
END_TEST

START_TEST(mount_that_is_gone_gives_way)
{
    char point[16];

    for (unsigned i = 0; i <= FP_LATENCY_MOUNTS; i++) {
        snprintf(point, sizeof(point), "/m%u", i);
        add(point, 1);
    }
    gone = "/m7";
    add(gone, 100);
    for (unsigned i = 0; i < FP_LATENCY_MOUNTS; i++)
        add("/new", 2);
    /* One look at each row finds it at the latest; what was counted there is not lost. */
    ck_assert_ptr_eq(strstr(read_line(7), "/new "), line);
    ck_assert_ptr_eq(strstr(read_line(FP_LATENCY_MOUNTS), "(others) "), line);
    ck_assert_uint_eq(bucket(1), 1);
    for (unsigned i = 0; i < FP_LATENCY_MOUNTS; i++) {
        if (i == 7)
            continue;
        snprintf(point, sizeof(point), "/m%u 1 1 1 ", i);
        ck_assert_ptr_eq(strstr(read_line(i), point), line);
    }
    ck_assert_str_eq(read_line(FP_LATENCY_MOUNTS + 1), "");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("latency");
    TCase *t = unit_add_case(s, "histograms", setup, teardown, 0);

    tcase_add_test(t, begins_empty);
    tcase_add_test(t, each_has_its_bucket);
    tcase_add_test(t, each_mount_has_its_line);
    tcase_add_test(t, calls_of_a_minute);
    tcase_add_test(t, too_many_mounts_are_counted_as_one);
    tcase_add_test(t, mount_that_is_gone_gives_way);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
