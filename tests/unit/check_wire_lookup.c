/* SPDX-License-Identifier: Apache-2.0 */
/* LOOKUP, with its names and its path. */
#include "config.h"
#include "wire/wire.h"

#include "wire_kit.h"

static uint8_t raw_flags;

/* A LOOKUP without the encoder's own checks. */
static void raw_lookup(const char *path, size_t len, size_t said)
{
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    fp_frame_begin(&w, FP_FRAME_LOOKUP, 1);
    fp_put_u32(&w, 1000);
    fp_put_u8(&w, raw_flags);
    fp_put_u16(&w, (uint16_t)said);
    fp_put_bytes(&w, path, len);
    ck_assert_int_eq((int)fp_frame_end(&w), FP_OK);
}

START_TEST(lookup_round_trip)
{
    static char path[FP_MAX_PATH + 1];
    struct fp_lookup in = { .deadline_ms = UINT32_MAX, .path = path }, out;

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    for (in.path_len = 1; in.path_len <= FP_MAX_PATH; in.path_len += 89) {
        struct fp_frame f = parsed(fp_lookup_encode(fresh(), 7, &in));

        ck_assert_int_eq((int)fp_lookup_decode(&f.body, &out), FP_OK);
        ck_assert_uint_eq(out.deadline_ms, UINT32_MAX);
        ck_assert_int_eq(out.fresh, in.fresh);
        in.fresh = !in.fresh;
        ck_assert_uint_eq(out.path_len, in.path_len);
        ck_assert_mem_eq(out.path, path, in.path_len);
    }
}
END_TEST

START_TEST(lookup_with_flags)
{
    for (unsigned flags = 0; flags < 256; flags++) {
        raw_flags = (uint8_t)flags;
        raw_lookup("/etc", 4, 4);
        assert_taken(decode_lookup, flags <= 7);
    }
    raw_flags = 0;
}
END_TEST

START_TEST(lookup_of_an_overlong_path)
{
    static char path[FP_MAX_PATH + 2];
    struct fp_lookup l = { .deadline_ms = 1000, .path = path, .path_len = FP_MAX_PATH };

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    ck_assert_int_eq((int)fp_lookup_encode(&w, 1, &l), FP_OK);
    assert_taken(decode_lookup, true);
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    l.path_len = FP_MAX_PATH + 1;
    ck_assert_int_eq((int)fp_lookup_encode(&w, 1, &l), FP_PROTOCOL);
    raw_lookup(path, FP_MAX_PATH + 1, FP_MAX_PATH + 1);
    assert_taken(decode_lookup, false);
}
END_TEST

START_TEST(lookup_whose_path_is_longer_or_shorter_than_said)
{
    for (size_t said = 0; said < 12; said++) {
        raw_lookup("/etc/", 4, said);
        assert_taken(decode_lookup, said == 4);
    }
    raw_lookup("/etc", 4, 65535);
    assert_taken(decode_lookup, false);
}
END_TEST

static fp_status decode_hello(struct fp_frame *f)
{
    struct fp_hello h;

    return fp_hello_decode(&f->body, &h);
}

/* A HELLO with n equal names, and a count of `said`. */
static void raw_names(unsigned said, unsigned n, const char *name, size_t len)
{
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    fp_frame_begin(&w, FP_FRAME_HELLO, 0);
    fp_put_u32(&w, FP_WIRE_MAGIC);
    fp_put_u16(&w, FP_WIRE_VERSION);
    fp_put_u16(&w, FP_WIRE_VERSION);
    fp_put_u8(&w, (uint8_t)said);
    for (unsigned i = 0; i < n; i++) {
        fp_put_u8(&w, (uint8_t)len);
        fp_put_bytes(&w, name, len);
    }
    ck_assert_int_eq((int)fp_frame_end(&w), FP_OK);
}

START_TEST(names_come_through_in_order)
{
    static char longest[FP_MAX_NAME];
    struct fp_hello in = {
        FP_WIRE_VERSION,
        FP_WIRE_VERSION,
        { FP_MAX_NAMES, { { ".htaccess", 9 }, { "a", 1 }, { longest, sizeof(longest) }, { "...", 3 } } },
    };
    struct fp_hello out;
    struct fp_frame f;

    memset(longest, 'n', sizeof(longest));
    for (unsigned n = 0; n <= FP_MAX_NAMES; n++) {
        in.names.n = n;
        f = parsed(fp_hello_encode(fresh(), &in));
        ck_assert_int_eq((int)fp_hello_decode(&f.body, &out), FP_OK);
        ck_assert(fp_names_equal(&in.names, &out.names));
    }
}
END_TEST

/* All that a list lacks, or none. */
START_TEST(names_are_joined)
{
    const struct fp_names ab = { 2, { { "a", 1 }, { "b", 1 } } };
    const struct fp_names bcd = { 3, { { "b", 1 }, { "c", 1 }, { "d", 1 } } };
    const struct fp_names ae = { 2, { { "a", 1 }, { "e", 1 } } };
    struct fp_names all = { .n = 0 };

    ck_assert(fp_names_join(&all, &ab) && fp_names_join(&all, &ab) && fp_names_equal(&all, &ab));
    ck_assert(fp_names_join(&all, &bcd));
    ck_assert_uint_eq(all.n, 4);
    ck_assert_int_eq(fp_names_find(&all, "d", 1), 3);
    ck_assert(!fp_names_join(&all, &ae));
    ck_assert_uint_eq(all.n, 4);
    ck_assert(fp_names_join(&all, &ab));
}
END_TEST

START_TEST(names_that_are_equal_or_not)
{
    const struct fp_names none = { 0, { { NULL, 0 } } }, a = { 1, { { "a", 1 } } };
    const struct fp_names ab = { 2, { { "a", 1 }, { "b", 1 } } };
    const struct fp_names ba = { 2, { { "b", 1 }, { "a", 1 } } };
    const struct fp_names longer = { 1, { { "ab", 2 } } };

    ck_assert(fp_names_equal(&none, &none));
    ck_assert(fp_names_equal(&ab, &ab));
    ck_assert(!fp_names_equal(&none, &a));
    ck_assert(!fp_names_equal(&a, &ab));
    ck_assert(!fp_names_equal(&ab, &ba));
    ck_assert(!fp_names_equal(&a, &longer));
}
END_TEST

START_TEST(more_or_fewer_names_than_said)
{
    for (unsigned said = 0; said < 256; said++) {
        for (unsigned n = 0; n <= FP_MAX_NAMES + 1; n++) {
            raw_names(said, n, ".htaccess", 9);
            /* The rest is a later version's. */
            assert_taken(decode_hello, said <= n && said <= FP_MAX_NAMES);
        }
    }
}
END_TEST

START_TEST(names_that_are_no_names)
{
    static const struct {
        const char *name;
        size_t len;
        bool good;
    } names[] = {
        { ".htaccess", 9, true }, { "a", 1, true },     { "...", 3, true }, { ".a", 2, true },
        { " ", 1, true },         { "\xff", 1, true },  { "", 0, false },   { ".", 1, false },
        { "..", 2, false },       { "a/b", 3, false },  { "/", 1, false },  { "/a", 2, false },
        { "a/", 2, false },       { "../a", 4, false }, { "\0", 1, false }, { "a\0b", 3, false },
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert(fp_name_is_single(names[i].name, names[i].len) == names[i].good);
        raw_names(1, 1, names[i].name, names[i].len);
        assert_taken(decode_hello, names[i].good);
    }
}
END_TEST

START_TEST(path_table)
{
    ck_assert_msg(fp_path_is_normal(paths[_i].path, paths[_i].len) == paths[_i].good, "path %d: %s", _i,
                  paths[_i].path);
    raw_lookup(paths[_i].path, paths[_i].len, paths[_i].len);
    assert_taken(decode_lookup, paths[_i].good);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire_lookup");
    TCase *t = unit_add_case(s, "lookup", setup, NULL, 0);

    tcase_add_test(t, lookup_round_trip);
    tcase_add_test(t, lookup_with_flags);
    tcase_add_test(t, lookup_of_an_overlong_path);
    tcase_add_test(t, lookup_whose_path_is_longer_or_shorter_than_said);
    tcase_add_test(t, names_come_through_in_order);
    tcase_add_test(t, names_that_are_equal_or_not);
    tcase_add_test(t, names_are_joined);
    tcase_add_test(t, more_or_fewer_names_than_said);
    tcase_add_test(t, names_that_are_no_names);
    tcase_add_loop_test(t, path_table, 0, PATHS);
    return unit_run(s);
}
