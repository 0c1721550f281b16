/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire.h"

#include "unit.h"

static uint8_t buf[FP_MAX_FRAME + 64];
static struct fp_writer w;

static void setup(void)
{
    memset(buf, 0xee, sizeof(buf));
    fp_writer_init(&w, buf, FP_MAX_FRAME);
}

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
    /* What would fit is not written any more either. */
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

typedef fp_status decoder(struct fp_frame *f);

static fp_status decode_hello(struct fp_frame *f)
{
    struct fp_hello h;

    return fp_hello_decode(&f->body, &h);
}

static fp_status decode_welcome(struct fp_frame *f)
{
    uint16_t version;

    return fp_welcome_decode(&f->body, &version);
}

static fp_status decode_lookup(struct fp_frame *f)
{
    struct fp_lookup l;
    const uint8_t *begin = f->body.pos, *end = f->body.end;
    fp_status st = fp_lookup_decode(&f->body, &l);

    if (st != FP_OK)
        return st;
    ck_assert((const uint8_t *)l.path >= begin);
    ck_assert((const uint8_t *)l.path + l.path_len <= end);
    ck_assert(fp_path_is_normal(l.path, l.path_len));
    return FP_OK;
}

static fp_status decode_error(struct fp_frame *f)
{
    fp_status said;

    return fp_error_decode(&f->body, &said);
}

static fp_status decode_control(struct fp_frame *f)
{
    struct fp_control c;
    const uint8_t *begin = f->body.pos, *end = f->body.end;
    fp_status st = fp_control_decode(&f->body, &c);

    if (st != FP_OK || c.path == NULL)
        return st;
    ck_assert((const uint8_t *)c.path >= begin);
    ck_assert((const uint8_t *)c.path + c.path_len <= end);
    ck_assert(fp_path_is_normal(c.path, c.path_len));
    return FP_OK;
}

static fp_status decode_done(struct fp_frame *f)
{
    struct fp_done d;
    const uint8_t *begin = f->body.pos, *end = f->body.end;
    fp_status st = fp_done_decode(&f->body, &d);

    if (st != FP_OK)
        return st;
    ck_assert((const uint8_t *)d.text >= begin);
    ck_assert((const uint8_t *)d.text + d.text_len <= end);
    return FP_OK;
}

static decoder *const decoders[] = { decode_hello, decode_welcome, decode_lookup,
                                     decode_error, decode_control, decode_control,
                                     decode_done };
#define KINDS ((int)(sizeof(decoders) / sizeof(decoders[0])))

static void encode(int kind)
{
    static const struct fp_hello hello = { 1, 3 };
    static const struct fp_lookup lookup = { 1500, "/srv/www/index.html", 19,
        { 2, { { ".htaccess", 9 }, { ".acl", 4 } } } };
    static const struct fp_control purge = { .op = FP_CONTROL_PURGE, .scope = FP_SCOPE_TREE,
                                             .path = "/srv/www", .path_len = 8 };
    static const struct fp_control report = { .op = FP_CONTROL_REPORT, .what = FP_REPORT_STATS,
                                              .from = 7 };
    static const struct fp_done done = { FP_OK, 258, 3, "a 1\nb 2\n", 8 };
    fp_status st = FP_PROTOCOL;

    fp_writer_init(&w, buf, FP_MAX_FRAME);
    switch (kind) {
    case 0: st = fp_hello_encode(&w, &hello); break;
    case 1: st = fp_welcome_encode(&w, 1); break;
    case 2: st = fp_lookup_encode(&w, 42, &lookup); break;
    case 3: st = fp_error_encode(&w, 0, FP_VERSION, "no common version"); break;
    case 4: st = fp_control_encode(&w, 42, &purge); break;
    case 5: st = fp_control_encode(&w, 42, &report); break;
    case 6: st = fp_done_encode(&w, 42, &done); break;
    }
    ck_assert_int_eq((int)st, FP_OK);
}

/* In memory of just that size, so that reading on is noticed. */
static fp_status parse_and_decode(decoder *decode, const uint8_t *p, size_t n)
{
    uint8_t *exact = malloc(n > 0 ? n : 1);
    struct fp_frame f;
    fp_status st;

    ck_assert_ptr_nonnull(exact);
    memcpy(exact, p, n);
    st = fp_frame_parse(&f, exact, n);
    if (st == FP_OK)
        st = decode(&f);
    free(exact);
    ck_assert(st == FP_OK || st == FP_PROTOCOL);
    return st;
}

static void set_length(size_t n)
{
    for (size_t i = 0; i < 4; i++)
        buf[i] = (uint8_t)(n >> (8 * (3 - i)));
}

START_TEST(frames_are_as_specified)
{
    static const uint8_t hello[] = { 0, 0, 0, 24, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                     'F', 'P', 'C', 'H', 0, 1, 0, 3 };
    static const uint8_t welcome[] = { 0, 0, 0, 22, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                       'F', 'P', 'C', 'H', 0, 1 };
    static const uint8_t lookup[] = { 0, 0, 0, 57, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 42,
                                      0, 0, 5, 220, 0, 19, '/', 's', 'r', 'v', '/' };
    static const uint8_t names[] = { 2, 9, '.', 'h', 't', 'a', 'c', 'c', 'e', 's', 's',
                                     4, '.', 'a', 'c', 'l' };
    static const uint8_t error[] = { 0, 0, 0, 35, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                     21, 17, 'n', 'o', ' ' };
    static const uint8_t purge[] = { 0, 0, 0, 28, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 42,
                                     1, 2, 0, 8, '/', 's', 'r', 'v', '/', 'w', 'w', 'w' };
    static const uint8_t report[] = { 0, 0, 0, 22, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 42,
                                      2, 2, 0, 0, 0, 7 };
    static const uint8_t done[] = { 0, 0, 0, 39, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 42,
                                    0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3, 0, 8,
                                    'a', ' ', '1', '\n', 'b', ' ', '2', '\n' };

    encode(0);
    ck_assert_uint_eq(w.len, 24);
    ck_assert_mem_eq(buf, hello, sizeof(hello));
    encode(1);
    ck_assert_uint_eq(w.len, 22);
    ck_assert_mem_eq(buf, welcome, sizeof(welcome));
    encode(2);
    ck_assert_uint_eq(w.len, 57);
    ck_assert_mem_eq(buf, lookup, sizeof(lookup));
    ck_assert_mem_eq(buf + 41, names, sizeof(names));
    encode(3);
    ck_assert_uint_eq(w.len, 35);
    ck_assert_mem_eq(buf, error, sizeof(error));
    encode(4);
    ck_assert_uint_eq(w.len, sizeof(purge));
    ck_assert_mem_eq(buf, purge, sizeof(purge));
    encode(5);
    ck_assert_uint_eq(w.len, sizeof(report));
    ck_assert_mem_eq(buf, report, sizeof(report));
    encode(6);
    ck_assert_uint_eq(w.len, sizeof(done));
    ck_assert_mem_eq(buf, done, sizeof(done));
}
END_TEST

START_TEST(whole_frame_is_taken)
{
    encode(_i);
    ck_assert_int_eq((int)parse_and_decode(decoders[_i], buf, w.len), FP_OK);
}
END_TEST

START_TEST(short_packet_is_refused)
{
    encode(_i);
    for (size_t n = 0; n < w.len; n++)
        ck_assert_int_eq((int)parse_and_decode(decoders[_i], buf, n), FP_PROTOCOL);
}
END_TEST

/* The length says the truth, the fields do not. */
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
    const size_t wrong[] = { 0, 1, FP_FRAME_HEADER, w.len - 1, w.len + 1, 0x80000000u,
                             0xffffffffu };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        set_length(wrong[i]);
        ck_assert_int_eq((int)parse_and_decode(decoders[_i], buf, w.len), FP_PROTOCOL);
    }
}
END_TEST

START_TEST(reserved_fields_must_be_zero)
{
    for (size_t at = 5; at <= 7; at++) {
        encode(_i);
        buf[at] = 1;
        ck_assert_int_eq((int)parse_and_decode(decoders[_i], buf, w.len), FP_PROTOCOL);
        buf[at] = 0x80;
        ck_assert_int_eq((int)parse_and_decode(decoders[_i], buf, w.len), FP_PROTOCOL);
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
    struct fp_frame f;

    fp_writer_init(&w, buf, FP_MAX_FRAME);
    ck_assert_int_eq((int)fp_hello_encode(&w, &in), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    ck_assert_uint_eq(f.type, FP_FRAME_HELLO);
    return fp_hello_decode(&f.body, out);
}

START_TEST(hello_versions)
{
    struct fp_hello h;

    ck_assert_int_eq((int)hello_round_trip((struct fp_hello){ 1, 1 }, &h), FP_OK);
    ck_assert_uint_eq(h.version_min, 1);
    ck_assert_uint_eq(h.version_max, 1);
    ck_assert_int_eq((int)hello_round_trip((struct fp_hello){ 0, 65535 }, &h), FP_OK);
    ck_assert_uint_eq(h.version_min, 0);
    ck_assert_uint_eq(h.version_max, 65535);
    ck_assert_int_eq((int)hello_round_trip((struct fp_hello){ 2, 1 }, &h), FP_PROTOCOL);
}
END_TEST

START_TEST(magic_is_checked)
{
    for (int kind = 0; kind <= 1; kind++) {
        for (size_t i = 0; i < 4; i++) {
            encode(kind);
            buf[FP_FRAME_HEADER + i] ^= 1;
            ck_assert_int_eq((int)parse_and_decode(decoders[kind], buf, w.len),
                             FP_PROTOCOL);
        }
    }
}
END_TEST

START_TEST(welcome_version)
{
    static const uint16_t versions[] = { 0, 1, 2, 65535 };

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct fp_frame f;
        uint16_t version = 99;

        fp_writer_init(&w, buf, FP_MAX_FRAME);
        ck_assert_int_eq((int)fp_welcome_encode(&w, versions[i]), FP_OK);
        ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
        ck_assert_uint_eq(f.type, FP_FRAME_WELCOME);
        ck_assert_int_eq((int)fp_welcome_decode(&f.body, &version), FP_OK);
        ck_assert_uint_eq(version, versions[i]);
    }
}
END_TEST

/* ---- LOOKUP ---- */

/* A LOOKUP without the encoder's own checks. */
static void raw_lookup(const char *path, size_t len, size_t said)
{
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    fp_frame_begin(&w, FP_FRAME_LOOKUP, 1);
    fp_put_u32(&w, 1000);
    fp_put_u16(&w, (uint16_t)said);
    fp_put_bytes(&w, path, len);
    fp_put_u8(&w, 0);          /* no names */
    ck_assert_int_eq((int)fp_frame_end(&w), FP_OK);
}

START_TEST(lookup_round_trip)
{
    static char path[FP_MAX_PATH + 1];
    struct fp_lookup in = { .deadline_ms = UINT32_MAX, .path = path }, out;

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    for (in.path_len = 1; in.path_len <= FP_MAX_PATH; in.path_len += 89) {
        struct fp_frame f;

        fp_writer_init(&w, buf, FP_MAX_FRAME);
        ck_assert_int_eq((int)fp_lookup_encode(&w, 7, &in), FP_OK);
        ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
        ck_assert_int_eq((int)fp_lookup_decode(&f.body, &out), FP_OK);
        ck_assert_uint_eq(out.deadline_ms, UINT32_MAX);
        ck_assert_uint_eq(out.path_len, in.path_len);
        ck_assert_mem_eq(out.path, path, in.path_len);
    }
}
END_TEST

START_TEST(lookup_of_an_overlong_path)
{
    static char path[FP_MAX_PATH + 2];
    struct fp_lookup l = { .deadline_ms = 1000, .path = path,
                           .path_len = FP_MAX_PATH };

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    ck_assert_int_eq((int)fp_lookup_encode(&w, 1, &l), FP_OK);
    ck_assert_int_eq((int)parse_and_decode(decode_lookup, buf, w.len), FP_OK);
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    l.path_len = FP_MAX_PATH + 1;
    ck_assert_int_eq((int)fp_lookup_encode(&w, 1, &l), FP_PROTOCOL);
    raw_lookup(path, FP_MAX_PATH + 1, FP_MAX_PATH + 1);
    ck_assert_int_eq((int)parse_and_decode(decode_lookup, buf, w.len), FP_PROTOCOL);
}
END_TEST

START_TEST(lookup_whose_path_is_longer_or_shorter_than_said)
{
    for (size_t said = 0; said < 12; said++) {
        raw_lookup("/etc/", 4, said);
        ck_assert_int_eq((int)parse_and_decode(decode_lookup, buf, w.len),
                         said == 4 ? FP_OK : FP_PROTOCOL);
    }
    raw_lookup("/etc", 4, 65535);
    ck_assert_int_eq((int)parse_and_decode(decode_lookup, buf, w.len), FP_PROTOCOL);
}
END_TEST

/* A LOOKUP of "/" with n equal names, of which it says there are said. */
static void raw_names(unsigned said, unsigned n, const char *name, size_t len)
{
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    fp_frame_begin(&w, FP_FRAME_LOOKUP, 1);
    fp_put_u32(&w, 1000);
    fp_put_u16(&w, 1);
    fp_put_bytes(&w, "/", 1);
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
    struct fp_lookup in = { 1000, "/", 1, { FP_MAX_NAMES, {
        { ".htaccess", 9 }, { "a", 1 }, { longest, sizeof(longest) }, { "...", 3 } } } };
    struct fp_lookup out;
    struct fp_frame f;

    memset(longest, 'n', sizeof(longest));
    for (unsigned n = 0; n <= FP_MAX_NAMES; n++) {
        in.names.n = n;
        fp_writer_init(&w, buf, FP_MAX_FRAME);
        ck_assert_int_eq((int)fp_lookup_encode(&w, 1, &in), FP_OK);
        ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
        ck_assert_int_eq((int)fp_lookup_decode(&f.body, &out), FP_OK);
        ck_assert(fp_names_equal(&in.names, &out.names));
    }
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
            ck_assert_int_eq((int)parse_and_decode(decode_lookup, buf, w.len),
                             said == n && n <= FP_MAX_NAMES ? FP_OK : FP_PROTOCOL);
        }
    }
}
END_TEST

START_TEST(names_that_are_no_names)
{
    static const struct { const char *name; size_t len; bool good; } names[] = {
        { ".htaccess", 9, true }, { "a", 1, true }, { "...", 3, true }, { ".a", 2, true },
        { " ", 1, true }, { "\xff", 1, true }, { "", 0, false }, { ".", 1, false },
        { "..", 2, false }, { "a/b", 3, false }, { "/", 1, false }, { "/a", 2, false },
        { "a/", 2, false }, { "../a", 4, false }, { "\0", 1, false }, { "a\0b", 3, false },
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert(fp_name_is_single(names[i].name, names[i].len) == names[i].good);
        raw_names(1, 1, names[i].name, names[i].len);
        ck_assert_int_eq((int)parse_and_decode(decode_lookup, buf, w.len),
                         names[i].good ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

START_TEST(name_length_bound)
{
    static char name[FP_MAX_NAME + 1];

    memset(name, 'n', sizeof(name));
    ck_assert(fp_name_is_single(name, FP_MAX_NAME));
    ck_assert(!fp_name_is_single(name, FP_MAX_NAME + 1));
}
END_TEST

static const struct { const char *path; size_t len; bool good; } paths[] = {
    { "/", 1, true },
    { "/a", 2, true },
    { "/a/b", 4, true },
    { "/a.b/c..d", 9, true },
    { "/.a", 3, true },
    { "/..a", 4, true },
    { "/a.", 3, true },
    { "/a..", 4, true },
    { "/...", 4, true },
    { "/.../....", 9, true },
    { "/.htaccess", 10, true },
    { "/ ", 2, true },
    { "/a b", 4, true },
    { "/a\nb", 4, true },
    { "/\xff\xfe", 3, true },
    { "/a\\b", 4, true },
    { "/~/*", 4, true },
    { "", 0, false },
    { "a", 1, false },
    { "a/b", 3, false },
    { "./a", 3, false },
    { "../a", 4, false },
    { ".", 1, false },
    { "//", 2, false },
    { "///", 3, false },
    { "//a", 3, false },
    { "/a/", 3, false },
    { "/a//b", 5, false },
    { "/a/b//", 6, false },
    { "/.", 2, false },
    { "/./", 3, false },
    { "/..", 3, false },
    { "/../", 4, false },
    { "/a/.", 4, false },
    { "/a/..", 5, false },
    { "/a/./b", 6, false },
    { "/a/../b", 7, false },
    { "/./a", 4, false },
    { "/../etc", 7, false },
    { "/\0", 2, false },
    { "/a\0b", 4, false },
    { "/a\0", 3, false },
    { "/a/\0/b", 6, false },
    { "\0", 1, false },
    { "/a/b\0/..", 8, false },
};
#define PATHS ((int)(sizeof(paths) / sizeof(paths[0])))

START_TEST(path_table)
{
    ck_assert_msg(fp_path_is_normal(paths[_i].path, paths[_i].len) == paths[_i].good,
                  "path %d: %s", _i, paths[_i].path);
    raw_lookup(paths[_i].path, paths[_i].len, paths[_i].len);
    ck_assert_int_eq((int)parse_and_decode(decode_lookup, buf, w.len),
                     paths[_i].good ? FP_OK : FP_PROTOCOL);
}
END_TEST

START_TEST(path_length_bound)
{
    static char path[FP_MAX_PATH + 1];

    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 == 0 ? '/' : 'a';
    ck_assert(!fp_path_is_normal(path, FP_MAX_PATH));   /* ends with a slash */
    ck_assert(fp_path_is_normal(path, FP_MAX_PATH - 1));
    path[FP_MAX_PATH - 1] = 'b';
    ck_assert(fp_path_is_normal(path, FP_MAX_PATH));
    ck_assert(!fp_path_is_normal(path, FP_MAX_PATH + 1));
}
END_TEST

START_TEST(path_in_common)
{
    static const struct { const char *a, *b; size_t common; } pairs[] = {
        { "/", "/", 1 }, { "/", "/a", 1 }, { "/a", "/b", 1 }, { "/a", "/a", 2 },
        { "/a", "/ab", 1 }, { "/a/b", "/a", 2 }, { "/a/b", "/a/c", 2 },
        { "/a/b", "/a/bc", 2 }, { "/a/b/c", "/a/b/d/e", 4 }, { "/a/b/c", "/a/b", 4 },
        { "/ab/c", "/a/b", 1 },
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const char *a = pairs[i].a, *b = pairs[i].b;

        ck_assert_uint_eq(fp_path_common_len(a, strlen(a), b, strlen(b)), pairs[i].common);
        ck_assert_uint_eq(fp_path_common_len(b, strlen(b), a, strlen(a)), pairs[i].common);
    }
}
END_TEST

/* ---- CONTROL and DONE ---- */

/* A PURGE without the encoder's own checks. */
static void raw_purge(unsigned op, unsigned scope, const char *path, size_t len, size_t said)
{
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    fp_frame_begin(&w, FP_FRAME_CONTROL, 1);
    fp_put_u8(&w, (uint8_t)op);
    fp_put_u8(&w, (uint8_t)scope);
    fp_put_u16(&w, (uint16_t)said);
    fp_put_bytes(&w, path, len);
    ck_assert_int_eq((int)fp_frame_end(&w), FP_OK);
}

START_TEST(purge_round_trip)
{
    static char path[FP_MAX_PATH + 1];
    struct fp_control in = { .op = FP_CONTROL_PURGE, .path = path }, out;

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    for (in.path_len = 1; in.path_len <= FP_MAX_PATH; in.path_len += 89) {
        struct fp_frame f;

        in.scope = in.path_len % 2 == 0 ? FP_SCOPE_PATH : FP_SCOPE_TREE;
        fp_writer_init(&w, buf, FP_MAX_FRAME);
        ck_assert_int_eq((int)fp_control_encode(&w, 7, &in), FP_OK);
        ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
        ck_assert_uint_eq(f.type, FP_FRAME_CONTROL);
        ck_assert_int_eq((int)fp_control_decode(&f.body, &out), FP_OK);
        ck_assert_int_eq((int)out.op, FP_CONTROL_PURGE);
        ck_assert_int_eq((int)out.scope, (int)in.scope);
        ck_assert_uint_eq(out.path_len, in.path_len);
        ck_assert_mem_eq(out.path, path, in.path_len);
    }
    in.path_len = FP_MAX_PATH + 1;
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    ck_assert_int_eq((int)fp_control_encode(&w, 7, &in), FP_PROTOCOL);
    raw_purge(1, 1, path, FP_MAX_PATH + 1, FP_MAX_PATH + 1);
    ck_assert_int_eq((int)parse_and_decode(decode_control, buf, w.len), FP_PROTOCOL);
}
END_TEST

START_TEST(purge_path_table)
{
    for (unsigned scope = FP_SCOPE_PATH; scope <= FP_SCOPE_TREE; scope++) {
        raw_purge(1, scope, paths[_i].path, paths[_i].len, paths[_i].len);
        ck_assert_int_eq((int)parse_and_decode(decode_control, buf, w.len),
                         paths[_i].good ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

START_TEST(operation_and_scope_are_checked)
{
    for (unsigned v = 0; v < 256; v++) {
        raw_purge(1, v, "/a", 2, 2);
        ck_assert_int_eq((int)parse_and_decode(decode_control, buf, w.len),
                         v == FP_SCOPE_PATH || v == FP_SCOPE_TREE ? FP_OK : FP_PROTOCOL);
        raw_purge(1, v, "", 0, 0);
        ck_assert_int_eq((int)parse_and_decode(decode_control, buf, w.len),
                         v == FP_SCOPE_ALL ? FP_OK : FP_PROTOCOL);
        raw_purge(v, 1, "/a", 2, 2);
        /* As a REPORT of number 1 these are six bytes: from is that many. */
        ck_assert_int_eq((int)parse_and_decode(decode_control, buf, w.len),
                         v == FP_CONTROL_PURGE || v == FP_CONTROL_REPORT ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

START_TEST(purge_whose_path_is_longer_or_shorter_than_said)
{
    for (size_t said = 0; said < 12; said++) {
        raw_purge(1, 2, "/etc", 4, said);
        ck_assert_int_eq((int)parse_and_decode(decode_control, buf, w.len),
                         said == 4 ? FP_OK : FP_PROTOCOL);
    }
    raw_purge(1, 2, "/etc", 4, 65535);
    ck_assert_int_eq((int)parse_and_decode(decode_control, buf, w.len), FP_PROTOCOL);
}
END_TEST

START_TEST(level_round_trip)
{
    for (unsigned level = 0; level < 256; level++) {
        const struct fp_control in = { .op = FP_CONTROL_LOG, .level = level };
        struct fp_control out;
        struct fp_frame f;

        fp_writer_init(&w, buf, FP_MAX_FRAME);
        ck_assert_int_eq((int)fp_control_encode(&w, 7, &in), FP_OK);
        ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
        ck_assert_int_eq((int)fp_control_decode(&f.body, &out),
                         (int)(level < FP_LOG_LEVELS ? FP_OK : FP_PROTOCOL));
        ck_assert(level >= FP_LOG_LEVELS || out.level == level);
    }
}
END_TEST

START_TEST(explain_round_trip)
{
    const struct fp_control in = { .op = FP_CONTROL_EXPLAIN, .path = "/a/b", .path_len = 4,
                                   .names = { .n = 2, .list = { { ".htaccess", 9 },
                                                                { ".acl", 4 } } } };
    struct fp_control out;
    struct fp_frame f;

    fp_writer_init(&w, buf, FP_MAX_FRAME);
    ck_assert_int_eq((int)fp_control_encode(&w, 7, &in), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    ck_assert_int_eq((int)fp_control_decode(&f.body, &out), FP_OK);
    ck_assert_int_eq((int)out.op, FP_CONTROL_EXPLAIN);
    ck_assert_uint_eq(out.path_len, 4);
    ck_assert_mem_eq(out.path, "/a/b", 4);
    ck_assert(fp_names_equal(&in.names, &out.names));
    for (size_t n = FP_FRAME_HEADER; n < w.len; n++) {
        set_length(n);
        ck_assert_int_eq((int)parse_and_decode(decode_control, buf, n), FP_PROTOCOL);
    }
}
END_TEST

START_TEST(report_round_trip)
{
    static const uint32_t from[] = { 0, 1, 0x01020304, UINT32_MAX };

    for (unsigned what = 0; what < 256; what++) {
        const struct fp_control in = { .op = FP_CONTROL_REPORT, .what = (enum fp_report)what,
                                       .from = from[what % 4] };
        struct fp_control out;
        struct fp_frame f;

        fp_writer_init(&w, buf, FP_MAX_FRAME);
        ck_assert_int_eq((int)fp_control_encode(&w, 7, &in), FP_OK);
        ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
        if (what == 0 || what > FP_REPORTS) {
            ck_assert_int_eq((int)fp_control_decode(&f.body, &out), FP_PROTOCOL);
            continue;
        }
        ck_assert_int_eq((int)fp_control_decode(&f.body, &out), FP_OK);
        ck_assert_int_eq((int)out.op, FP_CONTROL_REPORT);
        ck_assert_int_eq((int)out.what, (int)what);
        ck_assert_uint_eq(out.from, in.from);
        ck_assert_ptr_null(out.path);
    }
}
END_TEST

static fp_status done_round_trip(const struct fp_done *in, struct fp_done *out)
{
    struct fp_frame f;

    fp_writer_init(&w, buf, FP_MAX_FRAME);
    ck_assert_int_eq((int)fp_done_encode(&w, 3, in), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    ck_assert_uint_eq(f.type, FP_FRAME_DONE);
    ck_assert_uint_eq(f.id, 3);
    return fp_done_decode(&f.body, out);
}

START_TEST(done_round_trips)
{
    static char text[FP_MAX_REPORT + 1];
    static const size_t lengths[] = { 0, 1, 2, FP_MAX_REPORT };
    struct fp_done in = { FP_OK, UINT64_MAX, UINT32_MAX, text, 0 }, out;

    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        in.text_len = lengths[i];
        if (in.text_len > 0)
            text[in.text_len - 1] = '\n';
        ck_assert_int_eq((int)done_round_trip(&in, &out), FP_OK);
        ck_assert_int_eq((int)out.status, FP_OK);
        ck_assert_uint_eq(out.count, UINT64_MAX);
        ck_assert_uint_eq(out.next, UINT32_MAX);
        ck_assert_uint_eq(out.text_len, in.text_len);
        ck_assert_mem_eq(out.text, text, in.text_len);
    }
    /* The longest text fills the frame. */
    ck_assert_uint_eq(w.len, FP_MAX_FRAME);
    in.text_len++;
    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_done_encode(&w, 3, &in), FP_PROTOCOL);
}
END_TEST

START_TEST(done_has_whole_lines)
{
    static const struct { const char *text; size_t len; bool good; } texts[] = {
        { "", 0, true }, { "\n", 1, true }, { "a\n", 2, true }, { "a\nb\n", 4, true },
        { "\xc3\xa4\n", 3, true }, { "a", 1, false }, { "a\nb", 3, false },
        { "\0\n", 2, false }, { "a\0b\n", 4, false },
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct fp_done in = { FP_OK, 0, 0, texts[i].text, texts[i].len };
        struct fp_done out;

        ck_assert_int_eq((int)done_round_trip(&in, &out),
                         texts[i].good ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

/* A reason comes alone. */
START_TEST(done_status)
{
    for (int st = 0; st < 256; st++) {
        const bool reason = (st >= 16 && st <= 20) || st == 23;
        struct fp_done in = { (fp_status)st, 0, 0, NULL, 0 }, out;

        ck_assert_int_eq((int)done_round_trip(&in, &out),
                         st == 0 || reason ? FP_OK : FP_PROTOCOL);
        in.count = 1;
        ck_assert_int_eq((int)done_round_trip(&in, &out), st == 0 ? FP_OK : FP_PROTOCOL);
        in.count = 0;
        in.next = 1;
        ck_assert_int_eq((int)done_round_trip(&in, &out), st == 0 ? FP_OK : FP_PROTOCOL);
        in.next = 0;
        in.text = "\n";
        in.text_len = 1;
        ck_assert_int_eq((int)done_round_trip(&in, &out), st == 0 ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

/* ---- ERROR ---- */

START_TEST(error_round_trip)
{
    static char text[FP_MAX_TEXT + 10];
    static const size_t lengths[] = { 0, 1, FP_MAX_TEXT, FP_MAX_TEXT + 1,
                                      FP_MAX_TEXT + 9 };

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const size_t sent = lengths[i] < FP_MAX_TEXT ? lengths[i] : FP_MAX_TEXT;
        struct fp_frame f;
        fp_status said;

        memset(text, 'x', sizeof(text));
        text[lengths[i]] = '\0';
        fp_writer_init(&w, buf, FP_MAX_FRAME);
        ck_assert_int_eq((int)fp_error_encode(&w, 3, FP_FAILED, text), FP_OK);
        ck_assert_uint_eq(w.len, FP_FRAME_HEADER + 2 + sent);
        ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
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

static void add_frame_tests(Suite *s)
{
    TCase *t = tcase_create("frames");

    tcase_add_checked_fixture(t, setup, NULL);
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
    suite_add_tcase(s, t);
}

static Suite *make_suite(void)
{
    Suite *s = suite_create("wire");
    TCase *fields = tcase_create("fields");
    TCase *lookup = tcase_create("lookup");
    TCase *hostile = tcase_create("hostile");
    TCase *control = tcase_create("control");

    tcase_add_checked_fixture(fields, setup, NULL);
    tcase_add_test(fields, integers_are_big_endian);
    tcase_add_test(fields, writer_stays_within_its_memory);
    tcase_add_test(fields, writer_refuses_sizes_that_wrap);
    tcase_add_test(fields, writer_can_be_filled_to_the_last_byte);
    tcase_add_test(fields, reader_gives_zero_after_the_end);
    tcase_add_test(fields, reader_refuses_sizes_that_wrap);
    tcase_add_test(fields, reader_is_done_only_at_the_end);
    suite_add_tcase(s, fields);
    add_frame_tests(s);
    tcase_add_checked_fixture(lookup, setup, NULL);
    tcase_add_test(lookup, lookup_round_trip);
    tcase_add_test(lookup, lookup_of_an_overlong_path);
    tcase_add_test(lookup, lookup_whose_path_is_longer_or_shorter_than_said);
    tcase_add_test(lookup, names_come_through_in_order);
    tcase_add_test(lookup, names_that_are_equal_or_not);
    tcase_add_test(lookup, more_or_fewer_names_than_said);
    tcase_add_test(lookup, names_that_are_no_names);
    tcase_add_test(lookup, name_length_bound);
    tcase_add_loop_test(lookup, path_table, 0, PATHS);
    tcase_add_test(lookup, path_length_bound);
    tcase_add_test(lookup, path_in_common);
    suite_add_tcase(s, lookup);
    tcase_add_checked_fixture(control, setup, NULL);
    tcase_add_test(control, purge_round_trip);
    tcase_add_loop_test(control, purge_path_table, 0, PATHS);
    tcase_add_test(control, operation_and_scope_are_checked);
    tcase_add_test(control, purge_whose_path_is_longer_or_shorter_than_said);
    tcase_add_test(control, level_round_trip);
    tcase_add_test(control, explain_round_trip);
    tcase_add_test(control, report_round_trip);
    tcase_add_test(control, done_round_trips);
    tcase_add_test(control, done_has_whole_lines);
    tcase_add_test(control, done_status);
    suite_add_tcase(s, control);
    tcase_add_checked_fixture(hostile, setup, NULL);
    tcase_set_timeout(hostile, 60);
    tcase_add_test(hostile, random_bytes_are_harmless);
    tcase_add_test(hostile, changed_frames_are_harmless);
    suite_add_tcase(s, hostile);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
