/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stock httpd's calls, computed from answers. An integration test compares them with a trace
 * (test_explain.py); this one has the cases that a trace does not reach.
 */
#include "config.h"
#include "ctl/ctl_stock.h"

#include "cache_kit.h"

static struct fp_answer answer;
static char told[2048]; /* "stat /a/b;" for each call */
static const char *asked;
static struct fp_names names = { .n = 2, .list = { { ".one", 4 }, { ".two", 4 } } };
static struct ctl_stock settings = { .names = &names, .root = "/r", .htaccess = true };

static void on_call(void *ctx, const struct ctl_call *c)
{
    const size_t used = strlen(told);

    ck_assert_ptr_null(ctx);
    snprintf(told + used, sizeof(told) - used, "%s %.*s%s%.*s;", c->call, (int)c->len, asked,
             c->name_len > 0 ? "/" : "", (int)c->name_len, c->name_len > 0 ? c->name : "");
}

/* Both access files are absent, until a test makes them. */
static void found(const char *path, const char *what)
{
    asked = path;
    kit_answer(&answer, path, what);
    answer.n_names = 2;
    for (unsigned i = 0; i < answer.n_steps; i++)
        answer.steps[i].access[0].status = answer.steps[i].access[1].status = FP_ABSENT;
}

static enum ctl_end walk(void)
{
    const struct ctl_walk w = { .path = asked, .len = strlen(asked), .answer = &answer };
    enum ctl_end end;

    told[0] = '\0';
    end = ctl_stock_walk(&settings, &w, on_call, NULL);
    if (answer.fd != -1)
        close(answer.fd);
    answer.fd = -1;
    return end;
}

START_TEST(each_name_of_access_files)
{
    found("/r/d", "ddd");
    ck_assert_int_eq((int)walk(), CTL_END_DIRECTORY);
    ck_assert_str_eq(told, "stat /r/d;open /r/.one;open /r/.two;open /r/d/.one;open /r/d/.two;");
    answer.steps[1].access[0].status = FP_OK;
    ck_assert_int_eq((int)walk(), CTL_END_DIRECTORY);
    ck_assert_str_eq(told, "stat /r/d;open /r/.one;open /r/d/.one;open /r/d/.two;");
}
END_TEST

START_TEST(an_access_file_that_may_not_be_read)
{
    found("/r/d", "ddd");
    answer.steps[1].access[0].status = FP_DENIED;
    ck_assert_int_eq((int)walk(), CTL_END_FORBIDDEN);
    ck_assert_str_eq(told, "stat /r/d;open /r/.one;");
}
END_TEST

/* The daemon keeps a limited number of lists of names. What stands behind the answer's is of another one. */
START_TEST(an_answer_without_names)
{
    found("/r/d", "ddd");
    answer.n_names = 0;
    answer.steps[1].access[0].status = FP_OK;
    answer.steps[2].access[0].status = FP_DENIED;
    ck_assert_int_eq((int)walk(), CTL_END_DIRECTORY);
    ck_assert_str_eq(told, "stat /r/d;open /r/.one;open /r/.two;open /r/d/.one;open /r/d/.two;");
}
END_TEST

START_TEST(outside_the_root)
{
    found("/rest/f", "ddf");
    ck_assert_int_eq((int)walk(), CTL_END_FILE);
    ck_assert_str_eq(told, "stat /rest/f;");
}
END_TEST

START_TEST(a_component_that_may_not_be_passed)
{
    found("/x/y", "dx");
    ck_assert_int_eq((int)walk(), CTL_END_FORBIDDEN);
    ck_assert_str_eq(told, "stat /x/y;lstat /x;");
}
END_TEST

START_TEST(links_of_other_owners)
{
    struct ctl_stock saved = settings;

    settings.htaccess = false;
    settings.links = CTL_LINKS_OWNER;
    found("/r/l", "ddl");
    ck_assert_int_eq((int)walk(), CTL_END_DIRECTORY);
    ck_assert_str_eq(told, "stat /r/l;lstat /r/l;stat /r/l;");
    answer.steps[2].target.uid = 7;
    ck_assert_int_eq((int)walk(), CTL_END_FORBIDDEN);
    settings = saved;
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ctl_stock");
    TCase *t = unit_add_case(s, "walks", NULL, NULL, 0);

    tcase_add_test(t, each_name_of_access_files);
    tcase_add_test(t, an_access_file_that_may_not_be_read);
    tcase_add_test(t, an_answer_without_names);
    tcase_add_test(t, outside_the_root);
    tcase_add_test(t, a_component_that_may_not_be_passed);
    tcase_add_test(t, links_of_other_owners);
    return unit_run(s);
}
