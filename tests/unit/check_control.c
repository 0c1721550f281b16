/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "control.h"

#include "dispatch.h"
#include "log.h"
#include "unit.h"

/* ---- the dispatch, which only notes what it was told to forget ---- */

static char forgotten[FP_MAX_PATH + 1];
static bool with_tree;

size_t fp_dispatch_forget(struct fp_dispatch *d, const char *path, size_t len, bool tree)
{
    ck_assert_ptr_null(d);
    memcpy(forgotten, path, len);
    forgotten[len] = '\0';
    with_tree = tree;
    return 42;
}

static void setup(void)
{
    /* A purge is logged; nobody wants to read that here. */
    ck_assert_int_eq(fp_log_open("stderr", FP_LOG_ERROR), 0);
}

static void purge(enum fp_scope scope, const char *path)
{
    const struct fp_control question = { .op = FP_CONTROL_PURGE, .scope = scope, .path = path,
                                         .path_len = path != NULL ? strlen(path) : 0 };
    struct fp_done done;

    fp_control_purge(NULL, &question, &done);
    ck_assert_int_eq((int)done.status, FP_OK);
    ck_assert_uint_eq(done.count, 42);
    ck_assert_uint_eq(done.next, 0);
    ck_assert_uint_eq(done.text_len, 0);
}

START_TEST(scopes)
{
    purge(FP_SCOPE_PATH, "/a/b");
    ck_assert_str_eq(forgotten, "/a/b");
    ck_assert(!with_tree);
    purge(FP_SCOPE_TREE, "/a");
    ck_assert_str_eq(forgotten, "/a");
    ck_assert(with_tree);
    purge(FP_SCOPE_ALL, NULL);
    ck_assert_str_eq(forgotten, "/");
    ck_assert(with_tree);
}
END_TEST

/* ---- reports ---- */

struct lines {
    uint32_t n;
    size_t len;        /* of each, its end included */
};

/* "0000000007xxxx": the line's number, and so many bytes more. */
static size_t line(void *ctx, uint32_t n, char *room, size_t size)
{
    const struct lines *lines = ctx;

    ck_assert_uint_ge(size, FP_REPORT_LINE);
    if (n >= lines->n)
        return 0;
    memset(room, 'x', lines->len);
    snprintf(room, size, "%010u", (unsigned)n);
    room[10] = 'x';
    room[lines->len - 1] = '\n';
    return lines->len;
}

/* Reads a report to its end as a client does; how many parts it took. */
static unsigned read_all(struct lines *lines)
{
    const struct fp_report_source source = { line, lines };
    struct fp_done done;
    uint32_t from = 0, n = 0;
    unsigned parts = 0;

    do {
        fp_control_report(&source, from, &done);
        parts++;
        ck_assert_int_eq((int)done.status, FP_OK);
        ck_assert_uint_le(done.text_len, FP_MAX_REPORT);
        ck_assert_uint_eq(done.text_len % lines->len, 0);
        ck_assert(done.next == 0 || done.next > from);
        for (size_t at = 0; at < done.text_len; at += lines->len, n++)
            ck_assert_int_eq(atoi(done.text + at), (int)n);
        from = done.next;
    } while (from != 0);
    ck_assert_uint_eq(n, lines->n);
    return parts;
}

START_TEST(short_report_is_one_part)
{
    struct lines lines = { 0, 20 };

    for (; lines.n < 20; lines.n++)
        ck_assert_uint_eq(read_all(&lines), 1);
}
END_TEST

START_TEST(long_report_comes_in_parts)
{
    struct lines lines = { 5000, 100 };
    struct lines longest = { 30, FP_REPORT_LINE };

    ck_assert_uint_gt(read_all(&lines), 5000 * 100 / FP_MAX_REPORT);
    ck_assert_uint_ge(read_all(&longest), 10);
}
END_TEST

START_TEST(beyond_the_end)
{
    struct lines lines = { 3, 20 };
    const struct fp_report_source source = { line, &lines };
    static const uint32_t from[] = { 3, 4, UINT32_MAX - 1, UINT32_MAX };
    struct fp_done done;

    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        fp_control_report(&source, from[i], &done);
        ck_assert_int_eq((int)done.status, FP_OK);
        ck_assert_uint_eq(done.text_len, 0);
    }
}
END_TEST

START_TEST(no_such_report)
{
    const struct fp_report_source source = { NULL, NULL };
    struct fp_done done;

    fp_control_report(&source, 0, &done);
    ck_assert_int_eq((int)done.status, FP_FAILED);
    ck_assert_uint_eq(done.text_len, 0);
    ck_assert_uint_eq(done.next, 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("control");
    TCase *t = unit_add_case(s, "purge", setup, NULL, 0);

    tcase_add_test(t, scopes);
    t = unit_add_case(s, "report", setup, NULL, 0);
    tcase_add_test(t, short_report_is_one_part);
    tcase_add_test(t, long_report_comes_in_parts);
    tcase_add_test(t, beyond_the_end);
    tcase_add_test(t, no_such_report);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
