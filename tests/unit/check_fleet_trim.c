/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "fleet/fleet_trim.h"

#include "fleet/fleet_message.h"
#include "unit.h"

#define ROOM (1 << 16)

static struct fp_fleet_trim trim;
static char kept[ROOM];
static size_t kept_len;

static void setup(void)
{
    memset(&trim, 0, sizeof(trim));
    kept_len = 0;
}

static bool keep(void *ctx, const char *bytes, size_t len)
{
    (void)ctx;
    ck_assert_uint_le(kept_len + len, sizeof(kept) - 1);
    memcpy(kept + kept_len, bytes, len);
    kept_len += len;
    kept[kept_len] = '\0';
    return true;
}

/* In pieces of so many bytes. */
static const char *feed(const char *text, size_t len, size_t piece)
{
    const char *why = NULL;

    setup();
    for (size_t n; why == NULL && len > 0; text += n, len -= n) {
        n = len < piece ? len : piece;
        why = fp_fleet_trim(&trim, text, n, keep, NULL);
    }
    return why;
}

/* However it comes. */
static void assert_kept(const char *text, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        ck_assert_ptr_null(feed(text, strlen(text), piece));
        ck_assert_str_eq(kept, expected);
        ck_assert_uint_eq(trim.depth, 0);
        ck_assert_uint_eq(trim.out, 0);
    }
}

static void assert_as_it_is(const char *text)
{
    assert_kept(text, text);
}

START_TEST(what_fits_stays_as_it_is)
{
    assert_as_it_is("+PONG\r\n-ERR no\r\n:5\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n$3\r\n1-1\r\n");
    assert_as_it_is("*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$3\r\nfp1\r\n$4\r\nt\r\nt\r\n");
    assert_as_it_is("*1\r\n*2\r\n$1\r\nk\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n");
}
END_TEST

START_TEST(too_many_fields_become_none)
{
    assert_kept("*2\r\n*2\r\n$3\r\n1-1\r\n*4\r\n$1\r\na\r\n$1\r\nb\r\n:5\r\n*0\r\n"
                "*2\r\n$3\r\n2-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n",
                "*2\r\n*2\r\n$3\r\n1-1\r\n*0\r\n*2\r\n$3\r\n2-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n");
    /* With arrays among them. */
    assert_kept("*1\r\n*3\r\n*2\r\n*1\r\n:1\r\n*0\r\n$-1\r\n*2\r\n:1\r\n$2\r\n\r\n\r\n+OK\r\n",
                "*1\r\n*0\r\n+OK\r\n");
}
END_TEST

START_TEST(long_texts_become_empty)
{
    static char text[4 * FP_MAX_FLEET_MESSAGE], expected[2 * FP_MAX_FLEET_MESSAGE];
    static char value[2 * FP_MAX_FLEET_MESSAGE];

    memset(value, '\n', sizeof(value));
    for (size_t len = FP_MAX_FLEET_MESSAGE; len <= FP_MAX_FLEET_MESSAGE + 1; len++) {
        const bool fits = len == FP_MAX_FLEET_MESSAGE;
        const int n =
            snprintf(text, sizeof(text), "*2\r\n$3\r\n1-1\r\n*2\r\n$3\r\nfp1\r\n$%zu\r\n%.*s\r\n+OK\r\n", len,
                     (int)len, value);

        snprintf(expected, sizeof(expected), "*2\r\n$3\r\n1-1\r\n*2\r\n$3\r\nfp1\r\n$%zu\r\n%.*s\r\n+OK\r\n",
                 fits ? len : 0, fits ? (int)len : 0, value);
        for (size_t piece = 1; piece < (size_t)n; piece += 1 + piece / 2) {
            ck_assert_ptr_null(feed(text, (size_t)n, piece));
            ck_assert_str_eq(kept, expected);
        }
    }
}
END_TEST

START_TEST(no_answers)
{
    static const char *const wrong[] = {
        "HTTP/1.0 200 OK\r\n",
        "\r\n",
        "\n",
        "$x\r\n",
        "$\r\n",
        "$-2\r\n",
        "*1 \r\n",
        "$99999999999999999999\r\n",
        "*130\r\n",
        "*-2\r\n",
        "+OK\n",
        "%2\r\n",
        "!3\r\n",
        "*1\r\n*99999999\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
    };
    static char line[FP_FLEET_TRIM_LINE + 2];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_msg(feed(wrong[i], strlen(wrong[i]), 100) != NULL, "taken: %s", wrong[i]);
        ck_assert_ptr_nonnull(feed(wrong[i], strlen(wrong[i]), 1));
    }
    memset(line, '+', sizeof(line));
    ck_assert_ptr_nonnull(feed(line, sizeof(line), sizeof(line)));
    ck_assert_ptr_nonnull(feed("\0\r\n", 3, 3));
}
END_TEST

/* Arrays in arrays that are left out, without end. */
START_TEST(elements_are_bounded)
{
    static const char more[] = "*9999999\r\n";

    ck_assert_ptr_null(feed("*2\r\n*3\r\n", 8, 8));
    ck_assert_ptr_null(fp_fleet_trim(&trim, more, sizeof(more) - 1, keep, NULL));
    ck_assert_ptr_nonnull(fp_fleet_trim(&trim, more, sizeof(more) - 1, keep, NULL));
}
END_TEST

static bool refuse(void *ctx, const char *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    return false;
}

START_TEST(what_cannot_be_kept)
{
    static const char *const texts[] = { "+OK\r\n", "$1\r\na\r\n", "*1\r\n", "$9999\r\n" };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        setup();
        ck_assert_ptr_nonnull(fp_fleet_trim(&trim, texts[i], strlen(texts[i]), refuse, NULL));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fleet_trim");
    TCase *t = unit_add_case(s, "trim", setup, NULL, 30);

    tcase_add_test(t, what_fits_stays_as_it_is);
    tcase_add_test(t, too_many_fields_become_none);
    tcase_add_test(t, long_texts_become_empty);
    tcase_add_test(t, no_answers);
    tcase_add_test(t, elements_are_bounded);
    tcase_add_test(t, what_cannot_be_kept);
    return unit_run(s);
}
