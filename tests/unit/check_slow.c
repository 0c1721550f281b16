/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/slow.h"

#include <stdarg.h>

#include "base/clock.h"
#include "base/log.h"
#include "unit.h"

#define KEPT 16 /* as slow.c keeps */

static struct fp_slow *slow;
static uint64_t now_ms;
static char line[8192];

/* ---- the log, of which the last line is kept ---- */

static char logged[4096];
static unsigned n_logged;

void fp_log(enum fp_log_level level, int id, const char *format, ...)
{
    va_list ap;

    ck_assert_int_eq((int)level, FP_LOG_WARNING);
    ck_assert_int_eq(id, 46);
    va_start(ap, format);
    vsnprintf(logged, sizeof(logged), format, ap);
    va_end(ap);
    n_logged++;
}

static void setup(void)
{
    slow = fp_slow_create();
    ck_assert_ptr_nonnull(slow);
    now_ms = fp_now_ms();
    n_logged = 0;
}

static void teardown(void)
{
    fp_slow_destroy(&slow);
}

static void add(const char *path, uint32_t us, enum fp_call call)
{
    fp_slow_add(slow, &(struct fp_slow_lookup){ path, strlen(path), "/m", { us, us / 2, 1, call }, 3, now_ms });
}

/* The path in the report's line; "" where there is none. */
static const char *path_of(uint32_t n)
{
    size_t len = fp_slow_line(slow, n, line, sizeof(line));

    if (len == 0)
        return "";
    line[len - 1] = '\0';
    return strrchr(line, ' ') + 1;
}

START_TEST(only_what_takes_long_is_logged)
{
    add("/fast", 999999, FP_CALL_STAT);
    ck_assert_uint_eq(n_logged, 0);
    add("/a b", 1000000, FP_CALL_STAT);
    ck_assert_uint_eq(n_logged, 1);
    ck_assert_str_eq(logged, "slow lookup: 1000 ms, 500 ms of them in one stat, on the file system at "
                             "/m; 3 waited for /a\\040b");
    add("/hung", 2000000, FP_CALL_NONE);
    ck_assert_str_eq(logged, "slow lookup: 2000 ms and no answer from the file system at /m; "
                             "3 waited for /hung");
}
END_TEST

START_TEST(the_longest_come_first)
{
    add("/b", 200, FP_CALL_OPEN);
    add("/c", 100, FP_CALL_OPEN);
    add("/a", 300, FP_CALL_READ);
    ck_assert_str_eq(path_of(0), "/a");
    ck_assert_ptr_nonnull(strstr(line, " 300 read 150 3 /m /a"));
    ck_assert_str_eq(path_of(1), "/b");
    ck_assert_str_eq(path_of(2), "/c");
    ck_assert_str_eq(path_of(3), "");
}
END_TEST

START_TEST(the_shortest_go)
{
    char path[16];

    for (unsigned i = 0; i < 3 * KEPT; i++) {
        snprintf(path, sizeof(path), "/%u", i);
        add(path, i * 7 % (3 * KEPT), FP_CALL_OPEN);
    }
    for (unsigned i = 0; i < KEPT; i++) {
        path_of(i);
        ck_assert_uint_eq(strtoul(strchr(line, ' ') + 1, NULL, 10), 3 * KEPT - 1 - i);
    }
    ck_assert_str_eq(path_of(KEPT), "");
}
END_TEST

START_TEST(a_minute_later_they_are_gone)
{
    now_ms -= 60000;
    add("/old", 5000, FP_CALL_OPEN);
    ck_assert_str_eq(path_of(0), "");
    now_ms += 60000;
    add("/new", 1, FP_CALL_OPEN);
    ck_assert_str_eq(path_of(0), "/new");
    ck_assert_str_eq(path_of(1), "");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("slow");
    TCase *t = unit_add_case(s, "lookups", setup, teardown, 0);

    tcase_add_test(t, only_what_takes_long_is_logged);
    tcase_add_test(t, the_longest_come_first);
    tcase_add_test(t, the_shortest_go);
    tcase_add_test(t, a_minute_later_they_are_gone);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
