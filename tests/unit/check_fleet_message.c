/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "fleet/fleet_message.h"

#include "base/path.h"
#include "unit.h"

#define SENDER  "0123456789abcdef"
#define MADE_UP 200000

/* In a buffer of exactly its size, so that reading beyond it is noticed. */
static bool reads(const char *text, size_t len, struct fp_fleet_message *m)
{
    char *room = malloc(len > 0 ? len : 1);
    bool good;

    ck_assert_ptr_nonnull(room);
    memcpy(room, text, len);
    good = fp_fleet_message_read(room, len, m);
    /* It points into the text: compared with where that was. */
    if (good && m->path != NULL)
        m->path = text + (m->path - room);
    free(room);
    return good;
}

static bool is_good(const char *text)
{
    struct fp_fleet_message m;

    return reads(text, strlen(text), &m);
}

START_TEST(written_is_read)
{
    static const char path[] = "/srv/www/a b\n.html";
    char room[FP_MAX_FLEET_MESSAGE];

    for (int op = FP_FLEET_PATH; op <= FP_FLEET_JOIN; op++) {
        const bool with = op <= FP_FLEET_TREE;
        const struct fp_fleet_message m = { (enum fp_fleet_op)op, SENDER, with ? path : NULL,
                                            with ? strlen(path) : 0 };
        struct fp_fleet_message got;
        size_t len = fp_fleet_message_write(room, &m);

        ck_assert(fp_fleet_message_read(room, len, &got));
        ck_assert_int_eq((int)got.op, op);
        ck_assert_mem_eq(got.sender, SENDER, FP_FLEET_SENDER);
        ck_assert_uint_eq(got.path_len, m.path_len);
        ck_assert(!with || memcmp(got.path, path, got.path_len) == 0);
        ck_assert(with || got.path == NULL);
    }
}
END_TEST

START_TEST(longest_path)
{
    char path[FP_MAX_PATH + 1], room[FP_MAX_FLEET_MESSAGE + 1];
    struct fp_fleet_message m = { FP_FLEET_TREE, SENDER, path, FP_MAX_PATH }, got;
    size_t len;

    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 100 == 0 ? '/' : 'x';
    len = fp_fleet_message_write(room, &m);
    ck_assert_uint_eq(len, FP_MAX_FLEET_MESSAGE);
    ck_assert(reads(room, len, &got));
    room[len] = 'x';
    ck_assert(!reads(room, len + 1, &got));
}
END_TEST

START_TEST(what_is_no_message)
{
    static const char *const bad[] = { "",
                                       "x",
                                       "0123456789ABCDEF all",
                                       "0123456789abcde all",
                                       "0123456789abcdeg all",
                                       " 0123456789abcdef all" };
    static const char *const bad_after_sender[] = {
        "",          " ",          " path",    " path ", " path relative", " path /a/../b", " path /a//b",
        " path /a/", " tree /./a", " tree",    " all ",  " all /",         " join /",       " All",
        "  all",     " path  /a",  " link /a", "0 all"
    };
    struct fp_fleet_message m;
    char text[64];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!is_good(bad[i]), "%s", bad[i]);
    for (size_t i = 0; i < sizeof(bad_after_sender) / sizeof(bad_after_sender[0]); i++) {
        snprintf(text, sizeof(text), SENDER "%s", bad_after_sender[i]);
        ck_assert_msg(!is_good(text), "%s", text);
    }
    ck_assert(!reads(SENDER " path /a\0b", sizeof(SENDER " path /a\0b") - 1, &m));
    ck_assert(is_good(SENDER " path /"));
    ck_assert(is_good(SENDER " all"));
}
END_TEST

/* Good messages with bytes changed, put in and cut off: an accepted path is in normal form and
 * within the text. */
START_TEST(damaged_messages)
{
    static const char *const good[] = { SENDER " path /srv/www/x", SENDER " tree /srv", SENDER " all",
                                        SENDER " join" };
    uint64_t state = 42;
    size_t accepted = 0;

    for (int i = 0; i < MADE_UP; i++) {
        const char *from = good[unit_random(&state) % 4];
        char text[64];
        size_t len = strlen(from);
        struct fp_fleet_message m;

        memcpy(text, from, len);
        for (uint64_t n = unit_random(&state) % 3; n > 0; n--)
            text[unit_random(&state) % len] = (char)unit_random(&state);
        len -= unit_random(&state) % 4 == 0 ? unit_random(&state) % len : 0;
        if (!reads(text, len, &m))
            continue;
        accepted++;
        ck_assert(m.path == NULL || fp_path_is_normal(m.path, m.path_len));
        ck_assert(m.path == NULL || m.path + m.path_len == text + len);
    }
    ck_assert_uint_gt(accepted, 0);
    ck_assert_uint_lt(accepted, MADE_UP);
}
END_TEST

START_TEST(roots)
{
    static const char *const list[] = { "/srv/www", "/data", NULL };

    ck_assert(fp_path_is_below_any("/srv/www", 8, list));
    ck_assert(fp_path_is_below_any("/srv/www/a", 10, list));
    ck_assert(fp_path_is_below_any("/data/x", 7, list));
    ck_assert(!fp_path_is_below_any("/srv/www2", 9, list));
    ck_assert(!fp_path_is_below_any("/srv", 4, list));
    ck_assert(!fp_path_is_below_any("/", 1, list));
}
END_TEST

START_TEST(ids)
{
    static const char digits_21[] = "111111111111111111111-1", digits_21_behind[] = "1-111111111111111111111";
    static const char *const bad[] = {
        "", "-", "1", "1-", "-1", "1-1-1", "1-x", "+", "$", digits_21, digits_21_behind
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!fp_fleet_is_id(bad[i], strlen(bad[i])), "%s", bad[i]);
    ck_assert(fp_fleet_is_id("0-1", 3));
    ck_assert(fp_fleet_is_id("18446744073709551615-18446744073709551615", FP_MAX_STREAM_ID));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fleet_message");
    TCase *t = unit_add_case(s, "message", NULL, NULL, 0);

    tcase_add_test(t, written_is_read);
    tcase_add_test(t, longest_path);
    tcase_add_test(t, what_is_no_message);
    tcase_add_test(t, damaged_messages);
    tcase_add_test(t, roots);
    tcase_add_test(t, ids);
    return unit_run(s);
}
