/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_json.h"

#include "unit.h"

static char *text;
static size_t size;
static struct ctl_json j;

static void begin(void)
{
    j = (struct ctl_json){ .to = open_memstream(&text, &size) };
    ck_assert_ptr_nonnull(j.to);
}

static void check(const char *expected)
{
    ck_assert_int_eq(fclose(j.to), 0);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(commas_stand_between_values)
{
    begin();
    ctl_json_begin(&j, NULL, '{');
    ctl_json_number(&j, "most", UINT64_MAX);
    ctl_json_begin(&j, "none", '[');
    ctl_json_end(&j, ']');
    ctl_json_begin(&j, "list", '[');
    ctl_json_begin(&j, NULL, '{');
    ctl_json_bool(&j, "yes", true);
    ctl_json_bool(&j, "no", false);
    ctl_json_end(&j, '}');
    ctl_json_null(&j, NULL);
    ctl_json_end(&j, ']');
    ctl_json_finish(&j, '}');
    check(
        "{\"most\": 18446744073709551615, \"none\": [], \"list\": [{\"yes\": true, \"no\": false}, null]}\n");
}
END_TEST

START_TEST(strings_are_escaped)
{
    begin();
    ctl_json_text(&j, NULL, "a \"b\" \\ \n\x1f\x7f \xc3\xa9");
    check("\"a \\\"b\\\" \\\\ \\u000a\\u001f\\u007f \\\\303\\\\251\"");
}
END_TEST

START_TEST(paths_are_those_of_reports)
{
    begin();
    ctl_json_path(&j, "path", "/a b\\\"\xff/more", 7);
    check("\"path\": \"/a\\\\040b\\\\134\\\"\\\\377\"");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("ctl_json");
    TCase *t = unit_add_case(s, "writing", NULL, NULL, 0);

    tcase_add_test(t, commas_stand_between_values);
    tcase_add_test(t, strings_are_escaped);
    tcase_add_test(t, paths_are_those_of_reports);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
