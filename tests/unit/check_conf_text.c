/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a configuration: conf_text.h. */
#include "config.h"
#include "conf/conf_text.h"

#include "changes/mounts.h"
#include "conf_kit.h"

/* No setting takes the place of another one. */
START_TEST(settings_given_twice)
{
    static const struct {
        const char *text, *word, *place;
    } wrong[] = {
        { "workers = 2\nttl_ms = 5\nworkers = 2\n", "workers is given twice", "conf:3" },
        { "roots = {\"/a\"}\nroots = {}\n", "roots is given twice", "conf:2" },
        { "roots = {\"/a\"}\nroots += {\"/b\"}\n", "roots is given twice", "conf:2" },
        { "roots = {\"/a\", # one\n\"/b\",\n\"/a\"}\n", "\"/a\" twice", "conf:3" },
        { "memory = 2M\nmemory = 2M\n", "memory is given twice", "conf:2" },
        { "mount \"/a\" { ttl_ms = 5\n ttl_ms = 6 }\n", "ttl_ms is given twice", "conf:2" },
        { "fleet { }\n", "needs", "conf:1" },
        { "workers = 2 mount \"/a\" { ttl_ms = 5 } fleet { name = \"a\" name = \"b\" }",
          "name is given twice", "conf:1" },
        { "fleet {\n# c\nroots = {\"/a\",\n\"/a\"} }\n", "\"/a\" twice", "conf:4" },
        { "fleet { url = \"unix:/r\" roots = {\"/a\"} }\nfleet { name = \"b\" }\n", "fleet is given twice",
          "conf:2" },
        { "fleet { url = \"unix:/r\" roots = {\"/a\"} }\nfleet|roots = {}\n", "no setting",
          "conf:2" },
        { "mount \"/a\" { }\nmount|ttl_ms = 5\n", "no setting", "conf:2" },
        { "\"workers\" = 2\n", "no quotes", "conf:1" },
        { "'work\\x65rs' = 2\n", "backslash", "conf:1" },
        { "${HOME} = 2\n", "no setting", "conf:1" },
        { "log = \"/${HOME}\\n\"\n", "backslash", "conf:1" },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_refused(wrong[i].text, NULL, wrong[i].word, wrong[i].place);
    assert_loaded("ttl_ms = 5\nmount \"/a\" { ttl_ms = 5 }\nmount \"/b\" { ttl_ms = 5 }\nworkers = 3\n",
                  NULL);
    ck_assert_uint_eq(conf->n_mounts, 2);
}
END_TEST

static const char *const numbers[] = { "workers", "ttl_ms", "stale_if_error_ms", "memory", "max_connections" };
#define NUMBERS ((int)(sizeof(numbers) / sizeof(numbers[0])))

START_TEST(numbers_are_decimal)
{
    static const char *const wrong[] = { "010",  "00",  "-01",   "0x10", "\" 5\"", "\"5 \"",
                                         "\"\"", "1e3", "10ms5", "-",    "\"+5\"" };
    char text[64];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(text, sizeof(text), "\n%s = %s\n", numbers[_i], wrong[i]);
        assert_refused(text, NULL, "not a decimal number", "conf:2");
    }
    snprintf(text, sizeof(text), "%s=010", numbers[_i]);
    assert_refused(NULL, text, numbers[_i], "not a decimal number");
    snprintf(text, sizeof(text), "%s=", numbers[_i]);
    assert_refused(NULL, text, numbers[_i], "not a decimal number");
    snprintf(text, sizeof(text), "mount \"/a\" { stale_if_error_ms = 010 }");
    assert_refused(text, NULL, "stale_if_error_ms", "not a decimal number");
    snprintf(text, sizeof(text), "fleet { stream_max = 010 }");
    assert_refused(text, NULL, "stream_max", "conf:1");
    assert_loaded("stale_if_error_ms = 0\nworkers = \"5\"\n", NULL);
    ck_assert_uint_eq(conf->workers, 5);
}
END_TEST

START_TEST(characters_that_mean_nothing)
{
    static const char *const wrong[] = { "workers = 5 *\n", "workers = *5\n", "workers = +5\n",
                                         "workers + = 5\n", "log = /a*b\n",   "workers = 5\x01\n",
                                         "workers = 5\x7f", "\xc0 * \n" };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_refused(wrong[i], NULL, "conf:1", NULL);
    assert_refused("workers = 5 /* no end\nroots = {\"/srv\"}\n", NULL, "conf:1", "never ends");
    assert_refused("\nlog = \"/a\nworkers = 5\n", NULL, "conf:2", "never ends");
    assert_refused("\nlog = '/a\\'\nworkers = 5\n", NULL, "conf:2", "never ends");
}
END_TEST

/* Bytes behind a NUL would not be read. */
START_TEST(nul_byte)
{
    static const char text[] = "workers = 5\n\0roots = {\"/srv\"}\n";
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char *overrides[] = { user_setting };

    ck_assert_int_eq(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    ck_assert(!load_as_is(file, overrides, 1));
    ck_assert_ptr_nonnull(strstr(said, "conf:2: a byte of value 0"));
}
END_TEST

/* Lines are those of the file, whatever comments there are and wherever. */
START_TEST(comments)
{
    assert_refused("# one\n// two\n/* three\nfour */ # five\nworkers = 0\n", NULL, "conf:5", "out of range");
    assert_refused("mount \"/a\" { # one\n/* two\n*/\nttl_ms = 0\n}\n", NULL, "conf:4", "out of range");
    assert_refused("fleet { # one\n\n# three\nstream_max = 0\n}\n", NULL, "conf:4", "out of range");
    assert_loaded("roots = { # the sites\n \"/a\", // one\n /* not \"/x\", */ \"/b#c\"\n # end\n}\n"
                  "log = '/var/log/a#b' # \"\n"
                  "watch /* = */ = \"ttl\"\r\n"
                  "socket = \"/run/\\\"#x\"// \"\n"
                  "ttl_ms = 5# five\n"
                  "max_connections = 7 /* \n\"*/ # */\n",
                  NULL);
    ck_assert_str_eq(conf->roots[0], "/a");
    ck_assert_str_eq(conf->roots[1], "/b#c");
    ck_assert_ptr_null(conf->roots[2]);
    ck_assert_str_eq(conf->log, "/var/log/a#b");
    ck_assert_str_eq(conf->socket, "/run/\"#x");
    ck_assert_int_eq(conf->watch, FP_BY_TTL);
    ck_assert_uint_eq(conf->ttl_ms, 5);
}
END_TEST

/* The command line's roots are instead of the file's; more of them add up. */
START_TEST(roots_of_the_command_line)
{
    char *overrides[] = { user_setting, strdup("roots=/c"), strdup("roots=/d") };

    unit_write_file(file, "roots = {\"/a\", \"/b\"}\n");
    ck_assert(load_as_is(file, overrides, 3));
    ck_assert_str_eq(conf->roots[0], "/c");
    ck_assert_str_eq(conf->roots[1], "/d");
    ck_assert_ptr_null(conf->roots[2]);
    free(overrides[2]);
    overrides[2] = overrides[1];
    ck_assert(!load_as_is(file, overrides, 3));
    ck_assert_ptr_nonnull(strstr(said, "\"/c\" twice"));
    free(overrides[1]);
}
END_TEST

START_TEST(files_that_are_too_large)
{
    char *overrides[] = { user_setting };
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_eq(ftruncate(fd, FP_MAX_CONF_TEXT + 1), 0);
    close(fd);
    ck_assert(!load_as_is(file, overrides, 1));
    ck_assert_ptr_nonnull(strstr(said, strerror(EFBIG)));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conf_text");
    TCase *t = unit_add_case(s, "refused", setup, teardown, 30);

    tcase_add_test(t, settings_given_twice);
    tcase_add_loop_test(t, numbers_are_decimal, 0, NUMBERS);
    tcase_add_test(t, characters_that_mean_nothing);
    tcase_add_test(t, nul_byte);
    tcase_add_test(t, comments);
    tcase_add_test(t, roots_of_the_command_line);
    tcase_add_test(t, files_that_are_too_large);
    return unit_run(s);
}
