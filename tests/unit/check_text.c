/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/text.h"

#include <sys/mman.h>

#include "unit.h"

static const struct {
    const char *from, *expected;
} texts[] = {
    { "", "" },
    { "/srv/www/index.html", "/srv/www/index.html" },
    { "/with blank\tand\nends", "/with\\040blank\\011and\\012ends" },
    { "/back\\slash", "/back\\134slash" },
    { "/\303\244\377\177", "/\\303\\244\\377\\177" },
    { "/\"quoted\"", "/\"quoted\"" },
};

START_TEST(text_table)
{
    char room[128];

    fp_text_escape(room, sizeof(room), texts[_i].from, strlen(texts[_i].from));
    ck_assert_str_eq(room, texts[_i].expected);
}
END_TEST

START_TEST(times)
{
    static const struct {
        const char *text;
        int ms;
    } table[] = { { "500ms", 500 }, { "1MS", 1 },     { "2", 2000 },      { "2s", 2000 },    { "60", 60000 },
                  { "1min", 60000 }, { "1mi", 60000 }, { "60000ms", 60000 }, { "60001ms", -1 }, { "61", -1 },
                  { "2min", -1 },   { "0", -1 },      { "-3", -1 },       { "soon", -1 },    { "", -1 },
                  { "ms", -1 },     { "10ms5", -1 },  { "2sheep", -1 },   { "12parsecs", -1 }, { "1h", -1 },
                  { "99999999999999999999", -1 }, { "+5", -1 }, { " 5s", -1 } };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        ck_assert_int_eq(fp_text_ms(table[i].text, 60000), table[i].ms);
}
END_TEST

START_TEST(lines)
{
    static const char text[] = "one\n\nlonger line\nend";
    const char *at = text, *const end = text + sizeof(text) - 1;
    char buf[7];

    ck_assert_str_eq(fp_text_line(buf, sizeof(buf), &at, end), "one\n");
    ck_assert_str_eq(fp_text_line(buf, sizeof(buf), &at, end), "\n");
    ck_assert_str_eq(fp_text_line(buf, sizeof(buf), &at, end), "longer");
    ck_assert_str_eq(fp_text_line(buf, sizeof(buf), &at, end), " line\n");
    ck_assert_str_eq(fp_text_line(buf, sizeof(buf), &at, end), "end");
    ck_assert_ptr_null(fp_text_line(buf, sizeof(buf), &at, end));
}
END_TEST

START_TEST(never_more_than_there_is_room_for)
{
    for (size_t size = 1; size < 40; size++) {
        char *room = malloc(size);

        ck_assert_ptr_nonnull(room);
        fp_text_escape(room, size, "/a b\nc/a b\nc/a b\nc", 18);
        ck_assert_uint_lt(strlen(room), size);
        free(room);
    }
}
END_TEST

START_TEST(disarmed)
{
    static const struct {
        const char *from, *expected;
    } of[] = {
        { "", "" },
        { "/a b/\303\244", "/a b/\303\244" }, /* an a with two dots */
        { "/\033[2J\r\n\t\177", "/?[2J????" },
        { "/\302\2332J\302\200\302\237\302\240", "/??2J????\302\240" },
        { "/\302", "/\302" },
    };

    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        char text[64];

        strcpy(text, of[i].from);
        fp_text_disarm(text);
        ck_assert_str_eq(text, of[i].expected);
    }
}
END_TEST

/* However long it is; at the most, and a byte more. */
START_TEST(read_whole)
{
    static const size_t sizes[] = { 0, 1, 65534, 65535, 65536, 200000 };
    const size_t size = sizes[_i];
    int fd = memfd_create("text", MFD_CLOEXEC);
    char *bytes = malloc(size + 1), *text;
    size_t len;

    memset(bytes, 'a', size);
    bytes[size] = '\0';
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    text = fp_text_read(fd, size, &len);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(len, size);
    ck_assert_str_eq(text, bytes);
    free(text);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    if (size > 0) {
        ck_assert_ptr_null(fp_text_read(fd, size - 1, &len));
        ck_assert_int_eq(errno, EFBIG);
    }
    close(fd);
    ck_assert_ptr_null(fp_text_read(fd, size, &len));
    ck_assert_int_eq(errno, EBADF);
    free(bytes);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("text");
    TCase *t = unit_add_case(s, "escaping", NULL, NULL, 0);

    tcase_add_loop_test(t, text_table, 0, (int)(sizeof(texts) / sizeof(texts[0])));
    tcase_add_test(t, disarmed);
    tcase_add_loop_test(t, read_whole, 0, 6);
    tcase_add_test(t, times);
    tcase_add_test(t, lines);
    tcase_add_test(t, never_more_than_there_is_room_for);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
