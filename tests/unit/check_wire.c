/* SPDX-License-Identifier: Apache-2.0 */
/* Fields, frames, and those that open and end a connection. */
#include "config.h"
#include "wire/wire.h"

#include "wire_kit.h"

/* ---- fields ---- */

START_TEST(integers_are_big_endian)
{
    static const uint8_t expected[] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                        0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32 };
    struct fp_reader r;

    fp_put_u8(&w, 0x01);
    fp_put_u16(&w, 0x2345);
    fp_put_u32(&w, 0x6789abcd);
    fp_put_u64(&w, 0xeffedcba98765432);
    ck_assert(!w.bad);
    ck_assert_uint_eq(w.len, sizeof(expected));
    ck_assert_mem_eq(buf, expected, sizeof(expected));
    fp_reader_init(&r, buf, w.len);
    ck_assert_uint_eq(fp_get_u8(&r), 0x01);
    ck_assert_uint_eq(fp_get_u16(&r), 0x2345);
    ck_assert_uint_eq(fp_get_u32(&r), 0x6789abcd);
    ck_assert_uint_eq(fp_get_u64(&r), 0xeffedcba98765432);
    ck_assert(fp_reader_done(&r));
}
END_TEST

START_TEST(writer_stays_within_its_memory)
{
    struct fp_writer small;

    fp_writer_init(&small, buf, 6);
    fp_put_u32(&small, 1);
    fp_put_u32(&small, 2);
    ck_assert(small.bad);
    ck_assert_uint_eq(small.len, 4);
    /* A field that would fit is not written any more either. */
    fp_put_u8(&small, 3);
    fp_put_bytes(&small, "x", 1);
    ck_assert_uint_eq(small.len, 4);
    ck_assert_uint_eq(buf[4], 0xee);
    ck_assert_uint_eq(buf[6], 0xee);
    ck_assert_int_eq((int)fp_frame_end(&small), FP_PROTOCOL);
}
END_TEST

START_TEST(writer_refuses_sizes_that_wrap)
{
    fp_put_u32(&w, 1);
    fp_put_bytes(&w, buf, SIZE_MAX);
    ck_assert(w.bad);
    ck_assert_uint_eq(w.len, 4);
}
END_TEST

START_TEST(writer_can_be_filled_to_the_last_byte)
{
    struct fp_writer small;

    fp_writer_init(&small, buf, 4);
    fp_put_u32(&small, 7);
    fp_put_bytes(&small, NULL, 0);
    ck_assert(!small.bad);
}
END_TEST

START_TEST(reader_gives_zero_after_the_end)
{
    static const uint8_t bytes[] = { 1, 2, 3 };
    struct fp_reader r;

    fp_reader_init(&r, bytes, sizeof(bytes));
    ck_assert_uint_eq(fp_get_u32(&r), 0);
    ck_assert(r.bad);
    /* The bytes that are there are not given any more. */
    ck_assert_uint_eq(fp_get_u8(&r), 0);
    ck_assert_uint_eq(fp_get_u64(&r), 0);
    ck_assert_ptr_null(fp_get_bytes(&r, 1));
    ck_assert(!fp_reader_done(&r));
}
END_TEST

START_TEST(reader_refuses_sizes_that_wrap)
{
    struct fp_reader r;

    fp_reader_init(&r, buf, 8);
    ck_assert_ptr_null(fp_get_bytes(&r, SIZE_MAX));
    ck_assert(r.bad);
}
END_TEST

START_TEST(reader_is_done_only_at_the_end)
{
    struct fp_reader r;

    fp_reader_init(&r, buf, 2);
    ck_assert(!fp_reader_done(&r));
    fp_get_u8(&r);
    ck_assert(!fp_reader_done(&r));
    ck_assert_ptr_eq(fp_get_bytes(&r, 1), buf + 1);
    ck_assert(fp_reader_done(&r));
}
END_TEST

/* ---- frames ---- */

static fp_status decode_hello(struct fp_frame *f)
{
    struct fp_hello h;

    return fp_hello_decode(&f->body, &h);
}

static fp_status decode_welcome(struct fp_frame *f)
{
    struct fp_welcome h;

    return fp_welcome_decode(&f->body, &h);
}

static fp_status decode_error(struct fp_frame *f)
{
    fp_status said;

    return fp_error_decode(&f->body, &said);
}

static fp_status decode_done(struct fp_frame *f)
{
    struct fp_reply d;
    const uint8_t *begin = f->body.pos, *end = f->body.end;
    fp_status st = fp_reply_decode(&f->body, &d);

    if (st != FP_OK)
        return st;
    ck_assert((const uint8_t *)d.text >= begin);
    ck_assert((const uint8_t *)d.text + d.text_len <= end);
    return FP_OK;
}

static decoder *const decoders[] = { decode_hello,   decode_welcome, decode_lookup, decode_error,
                                     decode_control, decode_control, decode_done };
#define KINDS ((int)(sizeof(decoders) / sizeof(decoders[0])))

static void encode(int kind)
{
    static const struct fp_hello hello = { 1, 7, { 2, { { ".htaccess", 9 }, { ".acl", 4 } } } };
    static const struct fp_welcome welcome = { 1,
                                               { 258, 2, 3, 4, 5, 6, 7 },
                                               { 2, { { ".htaccess", 9 }, { ".acl", 4 } } } };
    static const struct fp_lookup lookup = {
        1500, "/srv/www/index.html", 19, true, false, false
    };
    static const struct fp_control purge = {
        .op = FP_CONTROL_PURGE, .scope = FP_SCOPE_TREE, .path = "/srv/www", .path_len = 8
    };
    static const struct fp_control report = { .op = FP_CONTROL_REPORT, .what = FP_REPORT_STATS, .from = 7 };
    static const struct fp_reply done = { FP_OK, 258, 3, "a 1\nb 2\n", 8 };
    fp_status st = FP_PROTOCOL;

    fp_writer_init(&w, buf, FP_MAX_FRAME);
    switch (kind) {
    case 0: st = fp_hello_encode(&w, &hello); break;
    case 1: st = fp_welcome_encode(&w, &welcome); break;
    case 2: st = fp_lookup_encode(&w, 42, &lookup); break;
    case 3: st = fp_error_encode(&w, 0, FP_VERSION, "no common version"); break;
    case 4: st = fp_control_encode(&w, 42, &purge); break;
    case 5: st = fp_control_encode(&w, 42, &report); break;
    case 6: st = fp_reply_encode(&w, 42, &done); break;
    }
    ck_assert_int_eq((int)st, FP_OK);
}

START_TEST(frames_are_as_specified)
{
    static const uint8_t hello[] = { 0, 0, 0, 40, 1,   0,   0,   0,   0, 0, 0, 0,
                                     0, 0, 0, 0,  'F', 'P', 'C', 'H', 0, 1, 0, 7 };
    static const uint8_t welcome[] = { 0,   0,   0,   94,  2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                       'F', 'P', 'C', 'H', 0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0,
                                       0,   0,   0,   0,   0, 2, 0, 0, 0, 0, 0, 0, 0, 3 };
    static const uint8_t lookup[] = { 0, 0,  0, 42, 3, 0,   0, 0, 0,  0,   0,   0,   0,   0,
                                      0, 42, 0, 0,  5, 220, 1, 0, 19, '/', 's', 'r', 'v', '/' };
    static const uint8_t names[] = {
        2, 9, '.', 'h', 't', 'a', 'c', 'c', 'e', 's', 's', 4, '.', 'a', 'c', 'l'
    };
    static const uint8_t error[] = { 0, 0, 0, 35, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 21, 17, 'n', 'o', ' ' };
    static const uint8_t purge[] = { 0, 0,  0, 28, 7, 0, 0,   0,   0,   0,   0,   0,   0,   0,
                                     0, 42, 1, 2,  0, 8, '/', 's', 'r', 'v', '/', 'w', 'w', 'w' };
    static const uint8_t report[] = { 0, 0, 0, 22, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 42, 2, 2, 0, 0, 0, 7 };
    static const uint8_t done[] = { 0, 0, 0,  39, 8, 0,   0,   0,   0,    0,   0,   0,   0,
                                    0, 0, 42, 0,  0, 0,   0,   0,   0,    0,   1,   2,   0,
                                    0, 0, 3,  0,  8, 'a', ' ', '1', '\n', 'b', ' ', '2', '\n' };

    const struct {
        const uint8_t *bytes;
        size_t n, len;
    } frames[KINDS] = {
        { hello, sizeof(hello), 40 }, { welcome, sizeof(welcome), 94 }, { lookup, sizeof(lookup), 42 },
        { error, sizeof(error), 35 }, { purge, sizeof(purge), 28 },     { report, sizeof(report), 22 },
        { done, sizeof(done), 39 },
    };

    for (int kind = 0; kind < KINDS; kind++) {
        encode(kind);
        ck_assert_uint_eq(w.len, frames[kind].len);
        ck_assert_mem_eq(buf, frames[kind].bytes, frames[kind].n);
        if (kind < 2)
            ck_assert_mem_eq(buf + w.len - sizeof(names), names, sizeof(names));
    }
}
END_TEST

START_TEST(whole_frame_is_taken)
{
    encode(_i);
    assert_taken(decoders[_i], true);
}
END_TEST

START_TEST(short_packet_is_refused)
{
    encode(_i);
    for (size_t n = 0; n < w.len; n++)
        ck_assert_int_eq((int)parse_and_decode(decoders[_i], buf, n), FP_PROTOCOL);
}
END_TEST

/* The length is right, the fields are not. */
START_TEST(short_frame_is_refused)
{
    encode(_i);
    for (size_t n = 4; n < w.len; n++) {
        set_length(n);
        ck_assert_int_eq((int)parse_and_decode(decoders[_i], buf, n), FP_PROTOCOL);
    }
}
END_TEST

START_TEST(trailing_bytes_are_refused_but_in_hello)
{
    encode(_i);
    for (size_t more = 1; more <= 32; more++) {
        memset(buf + w.len, 0, more);
        set_length(w.len + more);
        ck_assert_int_eq((int)parse_and_decode(decoders[_i], buf, w.len + more),
                         _i == 0 ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

START_TEST(wrong_length_is_refused)
{
    encode(_i);
    const size_t wrong[] = { 0, 1, FP_FRAME_HEADER, w.len - 1, w.len + 1, 0x80000000u, 0xffffffffu };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        set_length(wrong[i]);
        assert_taken(decoders[_i], false);
    }
}
END_TEST

START_TEST(reserved_fields_must_be_zero)
{
    for (size_t at = 5; at <= 7; at++) {
        encode(_i);
        buf[at] = 1;
        assert_taken(decoders[_i], false);
        buf[at] = 0x80;
        assert_taken(decoders[_i], false);
    }
}
END_TEST

START_TEST(id_and_type_come_through)
{
    static const uint64_t ids[] = { 0, 1, 0x0123456789abcdef, UINT64_MAX };

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        struct fp_frame f;

        fp_writer_init(&w, buf, FP_MAX_FRAME);
        fp_frame_begin(&w, FP_FRAME_LOOKUP, ids[i]);
        ck_assert_int_eq((int)fp_frame_end(&w), FP_OK);
        ck_assert_uint_eq(w.len, FP_FRAME_HEADER);
        ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
        ck_assert_uint_eq(f.id, ids[i]);
        ck_assert_uint_eq(f.type, FP_FRAME_LOOKUP);
        ck_assert(fp_reader_done(&f.body));
    }
}
END_TEST

START_TEST(largest_frame)
{
    struct fp_frame f;

    fp_writer_init(&w, buf, sizeof(buf));
    fp_frame_begin(&w, FP_FRAME_ANSWER, 1);
    while (w.len < FP_MAX_FRAME)
        fp_put_u8(&w, 0);
    ck_assert_int_eq((int)fp_frame_end(&w), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    fp_put_u8(&w, 0);
    ck_assert_int_eq((int)fp_frame_end(&w), FP_PROTOCOL);
    set_length(w.len);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_PROTOCOL);
}
END_TEST

START_TEST(no_frame_without_a_header)
{
    ck_assert_int_eq((int)fp_frame_end(&w), FP_PROTOCOL);
    fp_put_u64(&w, 0);
    ck_assert_int_eq((int)fp_frame_end(&w), FP_PROTOCOL);
}
END_TEST

/* ---- HELLO and WELCOME ---- */

static fp_status hello_round_trip(struct fp_hello in, struct fp_hello *out)
{
    struct fp_frame f = parsed(fp_hello_encode(fresh(), &in));

    ck_assert_uint_eq(f.type, FP_FRAME_HELLO);
    return fp_hello_decode(&f.body, out);
}

START_TEST(hello_versions)
{
    struct fp_hello h;

    ck_assert_int_eq((int)hello_round_trip((struct fp_hello){ 1, 1, { .n = 0 } }, &h), FP_OK);
    ck_assert_uint_eq(h.version_min, 1);
    ck_assert_uint_eq(h.version_max, 1);
    ck_assert_int_eq((int)hello_round_trip((struct fp_hello){ 0, 65535, { .n = 0 } }, &h), FP_OK);
    ck_assert_uint_eq(h.version_min, 0);
    ck_assert_uint_eq(h.version_max, 65535);
    ck_assert_int_eq((int)hello_round_trip((struct fp_hello){ 2, 1, { .n = 0 } }, &h), FP_PROTOCOL);
}
END_TEST

START_TEST(magic_is_checked)
{
    for (int kind = 0; kind <= 1; kind++) {
        for (size_t i = 0; i < 4; i++) {
            encode(kind);
            buf[FP_FRAME_HEADER + i] ^= 1;
            assert_taken(decoders[kind], false);
        }
    }
}
END_TEST

START_TEST(welcome_version)
{
    static const uint16_t versions[] = { 0, 1, 2, 65535 };

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        const struct fp_welcome sent = { versions[i], { 1, 2, 3, 4, 5, 6, UINT64_MAX }, { .n = 0 } };
        struct fp_welcome got = { .version = 99 };
        struct fp_frame f = parsed(fp_welcome_encode(fresh(), &sent));

        ck_assert_uint_eq(f.type, FP_FRAME_WELCOME);
        ck_assert_int_eq((int)fp_welcome_decode(&f.body, &got), FP_OK);
        ck_assert_uint_eq(got.version, versions[i]);
        ck_assert_mem_eq(&got.sight, &sent.sight, sizeof(got.sight));
    }
}
END_TEST

/* ---- ERROR ---- */

START_TEST(error_round_trip)
{
    static char text[FP_MAX_TEXT + 10];
    static const size_t lengths[] = { 0, 1, FP_MAX_TEXT, FP_MAX_TEXT + 1, FP_MAX_TEXT + 9 };

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const size_t sent = lengths[i] < FP_MAX_TEXT ? lengths[i] : FP_MAX_TEXT;
        struct fp_frame f;
        fp_status said;

        memset(text, 'x', sizeof(text));
        text[lengths[i]] = '\0';
        f = parsed(fp_error_encode(fresh(), 3, FP_FAILED, text));
        ck_assert_uint_eq(w.len, FP_FRAME_HEADER + 2 + sent);
        ck_assert_uint_eq(f.type, FP_FRAME_ERROR);
        ck_assert_uint_eq(f.id, 3);
        ck_assert_int_eq((int)fp_error_decode(&f.body, &said), FP_OK);
        ck_assert_int_eq((int)said, FP_FAILED);
    }
}
END_TEST

/* ---- hostile bytes ---- */

START_TEST(random_bytes_are_harmless)
{
    uint64_t seed = 20261121;

    for (int i = 0; i < 20000; i++) {
        size_t n = (size_t)(unit_random(&seed) % 80);

        unit_random_bytes(&seed, buf, n);
        if (n >= FP_FRAME_HEADER && i % 2 == 0) {
            memset(buf, 0, 8);
            set_length(n);
        }
        for (int k = 0; k < KINDS; k++)
            parse_and_decode(decoders[k], buf, n);
    }
}
END_TEST

START_TEST(changed_frames_are_harmless)
{
    uint64_t seed = 7;

    for (int i = 0; i < 20000; i++) {
        encode(i % KINDS);
        for (uint64_t k = unit_random(&seed) % 3; k < 3; k++)
            buf[unit_random(&seed) % w.len] = (uint8_t)(unit_random(&seed) >> 40);
        parse_and_decode(decoders[i % KINDS], buf, w.len);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire");
    TCase *t = unit_add_case(s, "fields", setup, NULL, 0);

    tcase_add_test(t, integers_are_big_endian);
    tcase_add_test(t, writer_stays_within_its_memory);
    tcase_add_test(t, writer_refuses_sizes_that_wrap);
    tcase_add_test(t, writer_can_be_filled_to_the_last_byte);
    tcase_add_test(t, reader_gives_zero_after_the_end);
    tcase_add_test(t, reader_refuses_sizes_that_wrap);
    tcase_add_test(t, reader_is_done_only_at_the_end);
    t = unit_add_case(s, "frames", setup, NULL, 0);
    tcase_add_test(t, frames_are_as_specified);
    tcase_add_loop_test(t, whole_frame_is_taken, 0, KINDS);
    tcase_add_loop_test(t, short_packet_is_refused, 0, KINDS);
    tcase_add_loop_test(t, short_frame_is_refused, 0, KINDS);
    tcase_add_loop_test(t, trailing_bytes_are_refused_but_in_hello, 0, KINDS);
    tcase_add_loop_test(t, wrong_length_is_refused, 0, KINDS);
    tcase_add_loop_test(t, reserved_fields_must_be_zero, 0, KINDS);
    tcase_add_test(t, id_and_type_come_through);
    tcase_add_test(t, largest_frame);
    tcase_add_test(t, no_frame_without_a_header);
    tcase_add_test(t, hello_versions);
    tcase_add_test(t, magic_is_checked);
    tcase_add_test(t, welcome_version);
    tcase_add_test(t, error_round_trip);
    t = unit_add_case(s, "hostile", setup, NULL, 60);
    tcase_add_test(t, random_bytes_are_harmless);
    tcase_add_test(t, changed_frames_are_harmless);
    return unit_run(s);
}
