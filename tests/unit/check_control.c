/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/control.h"

#include "base/clock.h"
#include "base/log.h"
#include "cache/cache.h"
#include "changes/mounts.h"
#include "changes/mounts.h"
#include "unit.h"

/* ---- a purge only notes the path ---- */

static char forgotten[FP_MAX_PATH + 1];
static bool with_tree;

static size_t forget(void *ctx, const char *path, size_t len, bool tree)
{
    ck_assert_ptr_eq(ctx, forgotten);
    memcpy(forgotten, path, len);
    forgotten[len] = '\0';
    with_tree = tree;
    return 42;
}

/* ---- the cache knows "/" and "/a b", the second on another mount ---- */

struct fp_cache_snapshot fp_cache_snapshot(const struct fp_cache *c, const char *path, size_t len, uint64_t now_ms)
{
    struct fp_cache_snapshot v = { .state = FP_CACHE_UNKNOWN, .verdict = FP_TTL_UNWATCHED };

    ck_assert_ptr_null(c);
    if (len == 1)
        v = (struct fp_cache_snapshot){ .state = FP_CACHE_KNOWN,
                                    .expires_ms = now_ms + 60000,
                                    .mount = 1,
                                    .leased = true };
    else if (memcmp(path, "/a b", len) == 0)
        v = (struct fp_cache_snapshot){ .state = FP_CACHE_EXPIRED,
                                    .verdict = FP_TTL_UNREPORTED,
                                    .expires_ms = 1,
                                    .mount = 2,
                                    .content = true };
    return v;
}

const struct fp_mount *fp_mounts_find(const struct fp_mounts *m, uint32_t id)
{
    static const struct fp_mount mounts[] = { { .point = "/" }, { .point = "/a b" } };

    ck_assert_ptr_null(m);
    return id != 0 ? &mounts[id - 1] : NULL;
}

/* The fleet gets the very same path, once it is purged here. */
static void tell(void *ctx, const char *path, size_t len, bool tree)
{
    ck_assert_ptr_eq(ctx, forgotten);
    ck_assert_uint_eq(strlen(forgotten), len);
    ck_assert_mem_eq(forgotten, path, len);
    ck_assert_int_eq(with_tree, tree);
}

static void setup(void)
{
    /* A purge is logged, which would only fill the output. */
    ck_assert_int_eq(fp_log_open("stderr", FP_LOG_ERROR), 0);
}

static void purge(enum fp_scope scope, const char *path)
{
    const struct fp_control question = {
        .op = FP_CONTROL_PURGE, .scope = scope, .path = path, .path_len = path != NULL ? strlen(path) : 0
    };
    const struct fp_control_deps deps = { .forget = forget, .purged = tell, .ctx = forgotten };
    struct fp_reply reply;

    fp_control_answer(&deps, &question, &reply);
    ck_assert_int_eq((int)reply.status, FP_OK);
    ck_assert_uint_eq(reply.count, 42);
    ck_assert_uint_eq(reply.next, 0);
    ck_assert_uint_eq(reply.text_len, 0);
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
    size_t len; /* of each, its end included */
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

static void report(struct fp_report_source source, uint32_t from, struct fp_reply *reply)
{
    const struct fp_control question = { .op = FP_CONTROL_REPORT, .what = FP_REPORT_STATS, .from = from };
    const struct fp_control_deps deps = { .reports = { [FP_REPORT_STATS] = source } };

    fp_control_answer(&deps, &question, reply);
}

/* Reads a report to its end as a client does; returns the number of its parts. */
static unsigned read_all(struct lines *lines)
{
    const struct fp_report_source source = { line, lines };
    struct fp_reply reply;
    uint32_t from = 0, n = 0;
    unsigned parts = 0;

    do {
        report(source, from, &reply);
        parts++;
        ck_assert_int_eq((int)reply.status, FP_OK);
        ck_assert_uint_le(reply.text_len, FP_MAX_REPORT);
        ck_assert_uint_eq(reply.text_len % lines->len, 0);
        ck_assert(reply.next == 0 || reply.next > from);
        for (size_t at = 0; at < reply.text_len; at += lines->len, n++)
            ck_assert_int_eq(atoi(reply.text + at), (int)n);
        from = reply.next;
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
    struct fp_reply reply;

    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        report(source, from[i], &reply);
        ck_assert_int_eq((int)reply.status, FP_OK);
        ck_assert_uint_eq(reply.text_len, 0);
    }
}
END_TEST

START_TEST(no_such_report)
{
    struct fp_reply reply;

    report((struct fp_report_source){ NULL, NULL }, 0, &reply);
    ck_assert_int_eq((int)reply.status, FP_FAILED);
    ck_assert_uint_eq(reply.text_len, 0);
    ck_assert_uint_eq(reply.next, 0);
}
END_TEST

/* ---- known entries, and the log ---- */

START_TEST(every_component_is_explained)
{
    const struct fp_control_deps deps = { .cache = NULL };
    const struct fp_control question = {
        .op = FP_CONTROL_EXPLAIN, .path = "/a b/c", .path_len = 6
    };
    struct fp_reply reply;
    unsigned left;
    char text[512];

    fp_control_answer(&deps, &question, &reply);
    ck_assert_int_eq((int)reply.status, FP_OK);
    ck_assert_uint_lt(reply.text_len, sizeof(text));
    memcpy(text, reply.text, reply.text_len);
    text[reply.text_len] = '\0';
    ck_assert_int_eq(sscanf(text, "1 known inotify reported %u", &left), 1);
    ck_assert(left > 0 && left <= 60000);
    ck_assert_ptr_nonnull(strstr(text, " lease - /\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n4 expired ttl unreported 0 - content /a\\040b\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n6 unknown ttl unwatched 0 - - ?\n"));
}
END_TEST

START_TEST(a_path_of_many_components_is_cut)
{
    static char path[FP_MAX_PATH];
    const struct fp_control_deps deps = { .cache = NULL };
    const struct fp_control question = { .op = FP_CONTROL_EXPLAIN,
                                         .path = path,
                                         .path_len = sizeof(path) - 1 };
    struct fp_reply reply;

    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 == 0 ? '/' : 'x';
    fp_control_answer(&deps, &question, &reply);
    ck_assert_uint_le(reply.text_len, FP_MAX_REPORT);
    ck_assert_int_eq(reply.text[reply.text_len - 1], '\n');
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
    t = unit_add_case(s, "operator", setup, NULL, 0);
    tcase_add_test(t, every_component_is_explained);
    tcase_add_test(t, a_path_of_many_components_is_cut);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
