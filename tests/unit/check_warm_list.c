/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/warm_list.h"

#include "unit.h"
#include "wire/answer.h"

static const struct fp_names none = { .n = 0 };
static struct fp_warm_text t;
static char *whole; /* the text that was written */

static void setup(void)
{
    t = (struct fp_warm_text){ .names = &none };
}

static void teardown(void)
{
    fp_warm_drop(&t);
    free(whole);
    whole = NULL;
}

static const char *written(void)
{
    free(whole);
    whole = malloc(t.len);
    ck_assert_ptr_nonnull(whole);
    ck_assert_int_eq(pread(fileno(t.file), whole, t.len, 0), (ssize_t)t.len);
    return whole;
}

static struct fp_names two(const char *first, const char *second)
{
    return (struct fp_names){ 2, { { first, strlen(first) }, { second, strlen(second) } } };
}

static bool add(const char *path)
{
    return fp_warm_add(&t, path, strlen(path));
}

static const char *wrong_with(const char *text, unsigned *line_r)
{
    struct fp_warm_reader r = { .text = text, .len = strlen(text) };
    const char *wrong = fp_warm_check(&r);

    ck_assert_uint_eq(r.at, 0);
    *line_r = r.line;
    return wrong;
}

static void assert_wrong(const char *text, const char *why, unsigned line)
{
    unsigned found;

    ck_assert_pstr_eq(wrong_with(text, &found), why);
    ck_assert_uint_eq(found, line);
}

static void assert_next(struct fp_warm_reader *r, const char *path)
{
    struct fp_lookup l;

    ck_assert(fp_warm_next(r, &l));
    ck_assert_uint_eq(l.path_len, strlen(path));
    ck_assert_mem_eq(l.path, path, l.path_len);
    ck_assert(!l.fresh);
}

START_TEST(a_list_is_read_as_it_was_written)
{
    const struct fp_names names = two(".htaccess", "an odd\tname");
    struct fp_warm_reader r;
    struct fp_lookup l;

    t.names = &names;
    ck_assert(add("/srv/a b"));
    ck_assert(add("/srv/\xff"));
    ck_assert(add("/names/end 1"));
    ck_assert(add("/"));
    ck_assert(fp_warm_end(&t));
    ck_assert_uint_eq(t.paths, 4);

    r = (struct fp_warm_reader){ .text = written(), .len = t.len };
    ck_assert_ptr_null(fp_warm_check(&r));
    fp_warm_begin(&r);
    ck_assert(fp_names_equal(&r.names, &names));
    assert_next(&r, "/srv/a b");
    assert_next(&r, "/srv/\xff");
    assert_next(&r, "/names/end 1");
    assert_next(&r, "/");
    ck_assert(!fp_warm_next(&r, &l));
}
END_TEST

START_TEST(what_has_a_line_end_is_left_out)
{
    const struct fp_names names = two("a", "b\nc");

    t.names = &names;
    ck_assert(add("/a\nend 0"));
    ck_assert(add("/b"));
    ck_assert(fp_warm_end(&t));
    ck_assert_uint_eq(t.len, strlen("flashpached paths 2\nnames/a\n/b\nend 1\n"));
    ck_assert_mem_eq(written(), "flashpached paths 2\nnames/a\n/b\nend 1\n", t.len);
}
END_TEST

/* By their number, or by their bytes: the text is whole in both cases. */
START_TEST(a_list_has_an_end)
{
    const size_t len = _i == 0 ? 20 : 4000;
    struct fp_warm_reader r;
    struct fp_lookup l;
    size_t n = 0;
    char path[4096];

    memset(path, 'x', sizeof(path));
    for (size_t i = 0; i < len; i += 200)
        path[i] = '/';
    while (fp_warm_add(&t, path, len))
        n++;
    ck_assert(fp_warm_end(&t));
    ck_assert_uint_eq(n, t.paths);
    ck_assert_uint_le(t.len, FP_WARM_BYTES);
    if (_i == 0)
        ck_assert_uint_eq(n, FP_WARM_PATHS);
    else
        ck_assert_uint_gt(t.len + len, FP_WARM_BYTES - 40);

    r = (struct fp_warm_reader){ .text = written(), .len = t.len };
    ck_assert_ptr_null(fp_warm_check(&r));
    fp_warm_begin(&r);
    while (fp_warm_next(&r, &l))
        n--;
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(garbage_is_refused)
{
    const char *head = "it does not begin with \"flashpached paths 2\"", *last = "its last line is missing";
    const char *count = "its number of paths is not the one that it gives", *path = "that is not a path in normal form";
    const char *name = "its second line has not the names of access files";

    assert_wrong("", head, 0);
    assert_wrong("flashpached paths 2", head, 0);
    assert_wrong("flashpached paths 1\nnames\nend 0\n", head, 1);
    assert_wrong("flashpached paths 2\n", name, 1);
    assert_wrong("flashpached paths 2\n/a\nend 1\n", name, 2);
    assert_wrong("flashpached paths 2\nnamesake\n/a\nend 1\n", name, 2);
    assert_wrong("flashpached paths 2\nnames\n", last, 2);
    assert_wrong("flashpached paths 2\nnames\n/a\n/b", last, 3);
    assert_wrong("flashpached paths 2\nnames\n/a\nend 2\n", count, 4);
    assert_wrong("flashpached paths 2\nnames\n/a\nend 01\n", count, 4);
    assert_wrong("flashpached paths 2\nnames\n/a\nend 1\n\n", count, 4);
    assert_wrong("flashpached paths 2\nnames\n/a\nend 1\n/b\nend 2\n", count, 4);
    assert_wrong("flashpached paths 2\nnames\n/a/../b\nend 1\n", path, 3);
    assert_wrong("flashpached paths 2\nnames\n\nend 0\n", path, 3);
    assert_wrong("flashpached paths 2\nnames\nrelative\nend 1\n", path, 3);
    assert_wrong("flashpached paths 2\nnames\nnames\n/a\nend 1\n", path, 3);
    assert_wrong("flashpached paths 2\nnames//\n/a\nend 1\n", name, 2);
    assert_wrong("flashpached paths 2\nnames/..\n/a\nend 1\n", name, 2);
    assert_wrong("flashpached paths 2\nnames/a/a\n/a\nend 1\n", name, 2);
    assert_wrong("flashpached paths 2\nnames/a/b/c/d/e\n/a\nend 1\n", name, 2);
}
END_TEST

START_TEST(a_path_too_deep_is_refused)
{
    char text[64 + 2 * FP_MAX_STEPS] = "flashpached paths 2\nnames\n";

    for (unsigned i = 0; i < FP_MAX_STEPS; i++)
        strcat(text, "/a");
    strcat(text, "\nend 1\n");
    assert_wrong(text, "that is not a path in normal form", 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("warm_list");
    TCase *c = unit_add_case(s, "warm_list", setup, teardown, 30);

    tcase_add_test(c, a_list_is_read_as_it_was_written);
    tcase_add_test(c, what_has_a_line_end_is_left_out);
    tcase_add_loop_test(c, a_list_has_an_end, 0, 2);
    tcase_add_test(c, garbage_is_refused);
    tcase_add_test(c, a_path_too_deep_is_refused);
    return unit_run(s);
}
