/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of every possible shape: built, encoded and decoded.
 */
#ifndef FP_ANSWER_KIT_H
#define FP_ANSWER_KIT_H

#include "unit.h"
#include "wire/answer.h"
#include "wire/wire.h"

#define SOME_FD 77 /* neither encoder nor decoder touch it */

/* Where the fields of an ANSWER are, in its frame. */
enum { AT_STATUS = FP_FRAME_HEADER, AT_SOURCE, AT_FLAGS, AT_N_NAMES, AT_N_STEPS, AT_STEPS };
enum { LOCAL = 2, LEASABLE = 8, WATCHED = 32 }; /* of the flags */
enum { META_SIZE = 92, META_SIZE_AT = 36, META_NSEC_AT = 60 };

static uint8_t buf[FP_MAX_FRAME];
static struct fp_writer w;
static struct fp_answer in, out;

static inline void setup(void)
{
    memset(&in, 0, sizeof(in));
    fp_answer_init(&in, FP_OK);
    fp_writer_init(&w, buf, sizeof(buf));
}

static inline struct fp_meta meta(uint32_t mode)
{
    static uint64_t seed = 4711;
    struct fp_meta m = {
        .mode = mode,
        .uid = (uint32_t)unit_random(&seed),
        .gid = (uint32_t)unit_random(&seed),
        .dev = unit_random(&seed),
        .ino = unit_random(&seed),
        .nlink = unit_random(&seed),
        .size = unit_random(&seed) >> 1,
        .blocks = unit_random(&seed),
        .atime = { (int64_t)unit_random(&seed), 999999999 },
        .mtime = { (int64_t)unit_random(&seed), 0 },
        .ctime = { -1, 123456789 },
        .blksize = (uint32_t)unit_random(&seed),
    };

    return m;
}

/* ---- building an answer step by step; every component is one letter ---- */

static inline struct fp_step *add(fp_status status, uint32_t mode)
{
    struct fp_step *s = &in.steps[in.n_steps];

    s->end = (uint16_t)(in.n_steps == 0 ? 1 : 2 * in.n_steps);
    s->status = status;
    s->self = meta(mode);
    s->target_status = FP_OK;
    s->slot = 7 * (in.n_steps + 1);
    s->generation = UINT32_MAX - in.n_steps;
    in.n_steps++;
    return s;
}

static inline struct fp_step *add_link(fp_status status, uint32_t mode)
{
    struct fp_step *s = add(FP_OK, S_IFLNK | 0777);

    s->target_status = status;
    s->target = meta(mode);
    return s;
}

static inline size_t path_len(void)
{
    return in.n_steps == 0 ? 9 : in.steps[in.n_steps - 1].end;
}

static inline void encode(void)
{
    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_answer_encode(&w, 99, &in), FP_OK);
}

/* In memory of just that size, so that reading on is noticed. */
static inline fp_status decode(size_t n, size_t len, int fd)
{
    uint8_t *exact = malloc(n);
    struct fp_frame f;
    fp_status st;

    ck_assert_ptr_nonnull(exact);
    for (size_t i = 0; i < 4; i++)
        buf[i] = (uint8_t)(n >> (8 * (3 - i)));
    memcpy(exact, buf, n);
    memset(&out, 0xa5, sizeof(out));
    st = fp_frame_parse(&f, exact, n);
    ck_assert_int_eq((int)st, FP_OK);
    ck_assert_uint_eq(f.type, FP_FRAME_ANSWER);
    st = fp_answer_decode(&f.body, len, fd, &out);
    free(exact);
    ck_assert(st == FP_OK || st == FP_PROTOCOL);
    /* Refused, the descriptor stays the caller's and only the caller's. */
    ck_assert_int_eq(out.fd, st == FP_OK ? fd : -1);
    return st;
}

static inline void assert_refused(size_t len, int fd)
{
    encode();
    ck_assert_int_eq((int)decode(w.len, len, fd), FP_PROTOCOL);
}

/* ---- every shape that an answer can have ---- */

/* Only a directory has access files. */
static inline void add_access_files(void)
{
    in.n_names = FP_MAX_NAMES;
    for (unsigned i = 0; i < in.n_steps; i++)
        for (unsigned k = 0; k < FP_MAX_NAMES; k++)
            in.steps[i].access[k] = (struct fp_access){ k % 2 == 0 ? FP_OK : (fp_status)(FP_ABSENT + i),
                                                        S_IFREG | 0600,
                                                        1,
                                                        20 + i,
                                                        300 + k,
                                                        { -7, 0 },
                                                        { 8, 999999999 } };
}

/*
 * A new answer, one letter a step: a directory, file or pipe, absent, not permitted (x) or an I/O
 * error. In capitals it is a link to that, to nothing or in a loop (O). * is all the steps but one.
 * Further letters add a descriptor (+), of this machine (here), the content, a lease (s) or access
 * files (n).
 */
static inline void build(const char *steps)
{
    setup();
    for (; *steps != '\0'; steps++) {
        switch (*steps) {
        case 'd': add(FP_OK, S_IFDIR | 0755); break;
        case 'f': add(FP_OK, S_IFREG | 0644); break;
        case 'p': add(FP_OK, S_IFIFO | 0644); break;
        case 'a': add(FP_ABSENT, 0); break;
        case 'x': add(FP_DENIED, 0); break;
        case 'i': add(FP_IOERROR, 0); break;
        case 'D': add_link(FP_OK, S_IFDIR | 0755); break;
        case 'F': add_link(FP_OK, S_IFREG | 0600); break;
        case 'A': add_link(FP_ABSENT, 0); break;
        case 'O': add_link(FP_LOOP, 0); break;
        case '*':
            while (in.n_steps < FP_MAX_STEPS - 1)
                add_link(FP_OK, S_IFDIR | 0755);
            break;
        case '+': in.fd = SOME_FD; break;
        case 'h': in.local = true; break;
        case 'c':
            in.content = true;
            in.content_at = 0x123456789abcdef0;
            in.steps[in.n_steps - 1].self.size = in.steps[in.n_steps - 1].target.size = FP_CONTENT_MOST;
            break;
        case 's':
            in.leasable = true;
            in.source = FP_SOURCE_CACHE;
            break;
        case 'w': in.leasable = in.watched = true; break;
        case 'n': add_access_files(); break;
        default: ck_abort_msg("no letter of a shape: %c", *steps);
        }
    }
}

static const char *const shapes[] = { "d",  "ddf+h",  "ddf+s", "ddf+sw", "df",    "dp",
                                      "da", "ddx",    "di",    "dF+",    "dDDf+", "dA",
                                      "dO", "dDDf+n", "d*F+",  "ddfhc",  "dFhc" };
#define SHAPES ((int)(sizeof(shapes) / sizeof(shapes[0])))

#endif
