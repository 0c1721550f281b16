/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/condition.h"

#include "unit.h"

/* NULL: the condition stays as it is. */
static const struct {
    const char *written, *translated;
} lines[] = {
    { "%{REQUEST_FILENAME} !-f", "\"${flashpache-file:-f:%{REQUEST_FILENAME}}\" !-eq-f " },
    { "%{REQUEST_FILENAME} -d [OR]", "\"${flashpache-file:-d:%{REQUEST_FILENAME}}\" -eq-d [OR]" },
    { "  $1.gz\t -s\t[NC, nv]", "\"${flashpache-file:-s:$1.gz}\" -eq-s [NC, nv]" },
    { "/a -l", "\"${flashpache-file:-l:/a}\" -eq-l " },
    { "/a -L", "\"${flashpache-file:-L:/a}\" -eq-L " },
    { "/a -h", "\"${flashpache-file:-h:/a}\" -eq-h " },
    { "/a !-x", "\"${flashpache-file:-x:/a}\" !-eq-x " },
    /* quotes */
    { "\"/a b\" '!-f'[OR]", "\"${flashpache-file:-f:/a b}\" !-eq-f [OR]" },
    { "'/a b' \"-f\"", "\"${flashpache-file:-f:/a b}\" -eq-f " },
    { "/it's -f", "\"${flashpache-file:-f:/it's}\" -eq-f " },
    { "\"\" -f", "\"${flashpache-file:-f:}\" -eq-f " },
    { "'/a\"b' -f", NULL },
    { "/a\"b -f", NULL },
    { "\"/a -f", NULL },
    { "/a \"-f", NULL },
    /* escapes */
    { "/a\\ b -f", "\"${flashpache-file:-f:/a\\ b}\" -eq-f " },
    { "/a\\$1\\% -f", "\"${flashpache-file:-f:/a\\$1\\%}\" -eq-f " },
    { "/a\\\\b -f", "\"${flashpache-file:-f:/a\\\\b}\" -eq-f " },
    { "/a\\\\ -f", NULL },
    { "'/a\\' -f", NULL },
    { "\"/a\\\" -f", NULL },
    { "/a\\{1} -f", NULL },
    { "/{a\\} -f", NULL },
    { "${m:a\\|b} -f", NULL },
    { "/a\\' -f", NULL },
    /* maps */
    { "${lower:%1|/none} -f", "\"${flashpache-file:-f:${lower:%1|/none}}\" -eq-f " },
    { "${a:${b:$1|x}|y}z -d", "\"${flashpache-file:-d:${a:${b:$1|x}|y}z}\" -eq-d " },
    { "/a|b -f", NULL },
    { "/a}{b -f", NULL },
    { "/a{b -f", NULL },
    { "%{A -f", NULL },
    /* other tests */
    { "%{REQUEST_URI} !-F", NULL },
    { "%{REQUEST_URI} -U", NULL },
    { "%{REQUEST_URI} -z", NULL },
    { "%{REQUEST_URI} -ff", NULL },
    { "%{REQUEST_URI} -", NULL },
    { "%{REQUEST_URI} !", NULL },
    { "%{REQUEST_URI} \"\"", NULL },
    { "%{REQUEST_URI} !!-f", NULL },
    { "%{REQUEST_URI} ^/f$", NULL },
    { "%{TIME} -gt5", NULL },
    { "expr -f", NULL },
    { "EXPR !-f", NULL },
    { "\"expr\" -f", NULL },
    { "expr2 -f", "\"${flashpache-file:-f:expr2}\" -eq-f " },
    /* too few */
    { "", NULL },
    { "   ", NULL },
    { "-f", NULL },
    { "/a ", NULL },
};

START_TEST(translated)
{
    const char *written = lines[_i].written;
    char *buf = malloc(strlen(written) + FP_CONDITION_MORE);
    bool done = fp_condition_translate(written, buf);

    ck_assert_int_eq(done, lines[_i].translated != NULL);
    if (done)
        ck_assert_str_eq(buf, lines[_i].translated);
    free(buf);
}
END_TEST

/* A translation is not translated again, and has room. */
START_TEST(bounds)
{
    static char written[70000], buf[sizeof(written) + FP_CONDITION_MORE],
        again[sizeof(buf) + FP_CONDITION_MORE];

    memset(written, 'a', sizeof(written) - 1);
    strcpy(written + sizeof(written) - 5, " !-f");
    ck_assert(fp_condition_translate(written, buf));
    ck_assert_uint_lt(strlen(buf), strlen(written) + FP_CONDITION_MORE);
    ck_assert(!fp_condition_translate(buf, again));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("condition");
    TCase *t = unit_add_case(suite, "condition", NULL, NULL, 0);

    tcase_add_loop_test(t, translated, 0, (int)(sizeof(lines) / sizeof(lines[0])));
    tcase_add_test(t, bounds);
    return unit_run(suite);
}
