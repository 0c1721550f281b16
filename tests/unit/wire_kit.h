/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer to write frames into, and functions that read them.
 */
#ifndef FP_WIRE_KIT_H
#define FP_WIRE_KIT_H

#include "unit.h"
#include "wire/wire.h"

static uint8_t buf[FP_MAX_FRAME + 64];
static struct fp_writer w;

static inline void setup(void)
{
    memset(buf, 0xee, sizeof(buf));
    fp_writer_init(&w, buf, FP_MAX_FRAME);
}

/* The writer, at the beginning of the buffer. */
static inline struct fp_writer *fresh(void)
{
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    return &w;
}

/* The frame that was encoded with fresh(). */
static inline struct fp_frame parsed(fp_status encoded)
{
    struct fp_frame f;

    ck_assert_int_eq((int)encoded, FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    return f;
}

/* ---- decoding ---- */

typedef fp_status decoder(struct fp_frame *f);

static inline fp_status decode_lookup(struct fp_frame *f)
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

static inline fp_status decode_control(struct fp_frame *f)
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

/* In memory of just that size, so that reading on is noticed. */
static inline fp_status parse_and_decode(decoder *decode, const uint8_t *p, size_t n)
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

/* The frame in buf is taken, or refused as one that breaks the protocol. */
static inline void assert_taken(decoder *decode, bool good)
{
    ck_assert_int_eq((int)parse_and_decode(decode, buf, w.len), good ? FP_OK : FP_PROTOCOL);
}

static inline void set_length(size_t n)
{
    for (size_t i = 0; i < 4; i++)
        buf[i] = (uint8_t)(n >> (8 * (3 - i)));
}

/* ---- paths, in normal form or not ---- */

static const struct {
    const char *path;
    size_t len;
    bool good;
} paths[] = {
    { "/", 1, true },          { "/a", 2, true },        { "/a/b", 4, true },        { "/a.b/c..d", 9, true },
    { "/.a", 3, true },        { "/..a", 4, true },      { "/a.", 3, true },         { "/a..", 4, true },
    { "/...", 4, true },       { "/.../....", 9, true }, { "/.htaccess", 10, true }, { "/ ", 2, true },
    { "/a b", 4, true },       { "/a\nb", 4, true },     { "/\xff\xfe", 3, true },   { "/a\\b", 4, true },
    { "/~/*", 4, true },       { "", 0, false },         { "a", 1, false },          { "a/b", 3, false },
    { "./a", 3, false },       { "../a", 4, false },     { ".", 1, false },          { "//", 2, false },
    { "///", 3, false },       { "//a", 3, false },      { "/a/", 3, false },        { "/a//b", 5, false },
    { "/a/b//", 6, false },    { "/.", 2, false },       { "/./", 3, false },        { "/..", 3, false },
    { "/../", 4, false },      { "/a/.", 4, false },     { "/a/..", 5, false },      { "/a/./b", 6, false },
    { "/a/../b", 7, false },   { "/./a", 4, false },     { "/../etc", 7, false },    { "/\0", 2, false },
    { "/a\0b", 4, false },     { "/a\0", 3, false },     { "/a/\0/b", 6, false },    { "\0", 1, false },
    { "/a/b\0/..", 8, false },
};
#define PATHS ((int)(sizeof(paths) / sizeof(paths[0])))

#endif
