/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/answer.h"

#include <sys/mman.h>

#include "proto/wire.h"
#include "unit.h"

#define SOME_FD 77   /* neither encoder nor decoder touch it */

/* Where the fields of an ANSWER are, in its frame. */
enum { AT_STATUS = FP_FRAME_HEADER, AT_SOURCE, AT_FLAGS, AT_N_NAMES, AT_N_STEPS, AT_STEPS };
enum { LOCAL = 2, AGAIN = 8 };   /* of the flags */
enum { META_SIZE = 88, META_SIZE_AT = 36, META_NSEC_AT = 60 };

static uint8_t buf[FP_MAX_FRAME];
static struct fp_writer w;
static struct fp_answer in, out;

static void setup(void)
{
    memset(&in, 0, sizeof(in));
    fp_answer_init(&in, FP_OK);
    fp_writer_init(&w, buf, sizeof(buf));
}

static struct fp_meta meta(uint32_t mode)
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
    };

    return m;
}

/* ---- building an answer step by step; every component is one letter ---- */

static struct fp_step *add(fp_status status, uint32_t mode)
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

static void add_dir(void) { add(FP_OK, S_IFDIR | 0755); }
static void add_file(void) { add(FP_OK, S_IFREG | 0644); }

static struct fp_step *add_link(fp_status status, uint32_t mode)
{
    struct fp_step *s = add(FP_OK, S_IFLNK | 0777);

    s->target_status = status;
    s->target = meta(mode);
    return s;
}

static size_t path_len(void)
{
    return in.n_steps == 0 ? 9 : in.steps[in.n_steps - 1].end;
}

static void encode(void)
{
    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_answer_encode(&w, 99, &in), FP_OK);
}

/* In memory of just that size, so that reading on is noticed. */
static fp_status decode(size_t n, size_t len, int fd)
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

static void assert_refused(size_t len, int fd)
{
    encode();
    ck_assert_int_eq((int)decode(w.len, len, fd), FP_PROTOCOL);
}

/* ---- comparing ---- */

static void assert_same_meta(const struct fp_meta *a, const struct fp_meta *b)
{
    ck_assert_uint_eq(a->mode, b->mode);
    ck_assert_uint_eq(a->uid, b->uid);
    ck_assert_uint_eq(a->gid, b->gid);
    ck_assert_uint_eq(a->dev, b->dev);
    ck_assert_uint_eq(a->ino, b->ino);
    ck_assert_uint_eq(a->nlink, b->nlink);
    ck_assert_uint_eq(a->size, b->size);
    ck_assert_uint_eq(a->blocks, b->blocks);
    ck_assert_int_eq(a->atime.sec, b->atime.sec);
    ck_assert_uint_eq(a->atime.nsec, b->atime.nsec);
    ck_assert_int_eq(a->mtime.sec, b->mtime.sec);
    ck_assert_uint_eq(a->mtime.nsec, b->mtime.nsec);
    ck_assert_int_eq(a->ctime.sec, b->ctime.sec);
    ck_assert_uint_eq(a->ctime.nsec, b->ctime.nsec);
}

static void assert_same_step(const struct fp_step *a, const struct fp_step *b)
{
    ck_assert_uint_eq(a->slot, b->slot);
    ck_assert_uint_eq(a->generation, b->generation);
    ck_assert_uint_eq(a->end, b->end);
    ck_assert_int_eq((int)a->status, (int)b->status);
    if (a->status != FP_OK)
        return;
    assert_same_meta(&a->self, &b->self);
    if (!S_ISLNK(a->self.mode))
        return;
    ck_assert_int_eq((int)a->target_status, (int)b->target_status);
    if (a->target_status == FP_OK)
        assert_same_meta(&a->target, &b->target);
}

static void assert_same_access(const struct fp_access *a, const struct fp_access *b)
{
    ck_assert_int_eq((int)a->status, (int)b->status);
    if (a->status != FP_OK)
        return;
    ck_assert_uint_eq(a->mode, b->mode);
    ck_assert_uint_eq(a->dev, b->dev);
    ck_assert_uint_eq(a->ino, b->ino);
    ck_assert_uint_eq(a->size, b->size);
    ck_assert_int_eq(a->mtime.sec, b->mtime.sec);
    ck_assert_uint_eq(a->ctime.nsec, b->ctime.nsec);
}

static void assert_round_trip(void)
{
    encode();
    ck_assert_int_eq((int)decode(w.len, path_len(), in.fd), FP_OK);
    ck_assert_int_eq((int)out.status, (int)in.status);
    ck_assert_int_eq((int)out.source, (int)in.source);
    ck_assert_int_eq(out.local, in.local);
    ck_assert_int_eq(out.again, in.again);
    ck_assert_int_eq(out.content, in.content);
    ck_assert_uint_eq(out.n_steps, in.n_steps);
    ck_assert_uint_eq(out.n_names, in.n_names);
    for (unsigned i = 0; i < in.n_steps; i++) {
        assert_same_step(&in.steps[i], &out.steps[i]);
        for (unsigned k = 0; k < in.n_names && fp_step_leads_on(&in.steps[i]); k++)
            assert_same_access(&in.steps[i].access[k], &out.steps[i].access[k]);
    }
}

/* ---- every shape that an answer can have ---- */

static void shape_root(void) { add_dir(); }

static void shape_file(void)
{
    add_dir();
    add_dir();
    add_file();
    in.fd = SOME_FD;
    in.local = true;
}

static void shape_file_on_a_network(void)
{
    shape_file();
    in.local = false;
    in.again = true;
    in.source = FP_SOURCE_CACHE;
}

static void shape_content(void)
{
    shape_file();
    in.content = true;
}

static void shape_content_behind_a_link(void)
{
    add_dir();
    add_link(FP_OK, S_IFREG | 0600);
    in.fd = SOME_FD;
    in.content = in.local = true;
}

static void shape_unreadable_file(void)
{
    add_dir();
    add_file();
}

static void shape_fifo(void)
{
    add_dir();
    add(FP_OK, S_IFIFO | 0644);
}

static void shape_absent(void)
{
    add_dir();
    add(FP_ABSENT, 0);
}

static void shape_denied(void)
{
    add_dir();
    add_dir();
    add(FP_DENIED, 0);
}

static void shape_io_error(void)
{
    add_dir();
    add(FP_IOERROR, 0);
}

static void shape_link_to_file(void)
{
    add_dir();
    add_link(FP_OK, S_IFREG | 0600);
    in.fd = SOME_FD;
}

static void shape_links_above(void)
{
    add_dir();
    add_link(FP_OK, S_IFDIR | 0755);
    add_link(FP_OK, S_IFDIR | 0755);
    add_file();
    in.fd = SOME_FD;
}

static void shape_dangling_link(void)
{
    add_dir();
    add_link(FP_ABSENT, 0);
}

static void shape_looping_link(void)
{
    add_dir();
    add_link(FP_LOOP, 0);
}

/* Only what leads on has access files. */
static void shape_access_files(void)
{
    shape_links_above();
    in.n_names = FP_MAX_NAMES;
    for (unsigned i = 0; i < in.n_steps; i++)
        for (unsigned k = 0; k < FP_MAX_NAMES; k++)
            in.steps[i].access[k] = (struct fp_access){
                k % 2 == 0 ? FP_OK : (fp_status)(FP_ABSENT + i), S_IFREG | 0600, 1, 20 + i,
                300 + k, { -7, 0 }, { 8, 999999999 } };
}

static void shape_most_steps(void)
{
    add_dir();
    while (in.n_steps < FP_MAX_STEPS - 1)
        add_link(FP_OK, S_IFDIR | 0755);
    add_link(FP_OK, S_IFREG | 0644);
    in.fd = SOME_FD;
}

static void (*const shapes[])(void) = {
    shape_root, shape_file, shape_file_on_a_network, shape_unreadable_file, shape_fifo,
    shape_absent, shape_denied, shape_io_error, shape_link_to_file, shape_links_above,
    shape_dangling_link, shape_looping_link, shape_access_files, shape_most_steps,
    shape_content, shape_content_behind_a_link,
};
#define SHAPES ((int)(sizeof(shapes) / sizeof(shapes[0])))

START_TEST(shape_comes_through)
{
    shapes[_i]();
    assert_round_trip();
}
END_TEST

START_TEST(short_frame_is_refused)
{
    shapes[_i]();
    encode();
    for (size_t n = FP_FRAME_HEADER; n < w.len; n++)
        ck_assert_int_eq((int)decode(n, path_len(), in.fd), FP_PROTOCOL);
}
END_TEST

START_TEST(trailing_bytes_are_refused)
{
    shapes[_i]();
    encode();
    for (size_t more = 1; more <= META_SIZE + 3; more++) {
        memset(buf + w.len, 0, more);
        ck_assert_int_eq((int)decode(w.len + more, path_len(), in.fd), FP_PROTOCOL);
    }
}
END_TEST

START_TEST(every_outcome_of_a_step)
{
    for (int st = FP_ABSENT; st <= FP_IOERROR; st++) {
        setup();
        add_dir();
        add((fp_status)st, 0);
        assert_round_trip();
        setup();
        add_dir();
        add_link((fp_status)st, 0);
        assert_round_trip();
    }
}
END_TEST

START_TEST(every_reason_for_no_answer)
{
    for (int st = FP_TIMEOUT; st <= FP_FAILED; st++) {
        setup();
        in.status = (fp_status)st;
        assert_round_trip();
    }
    setup();
    in.status = FP_UNAVAILABLE;
    assert_round_trip();
}
END_TEST

START_TEST(shorter_than_the_path_where_no_walk_goes_on)
{
    static void (*const ends[])(void) = { shape_absent, shape_denied, shape_dangling_link,
                                          shape_unreadable_file, shape_fifo };

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        setup();
        ends[i]();
        encode();
        ck_assert_int_eq((int)decode(w.len, path_len() + 20, -1), FP_OK);
    }
}
END_TEST

START_TEST(extreme_values)
{
    add_dir();
    add_file();
    in.steps[1].self.size = INT64_MAX;
    in.steps[1].self.atime.sec = INT64_MIN;
    in.steps[1].self.mtime.sec = INT64_MAX;
    in.steps[1].self.ino = UINT64_MAX;
    in.steps[1].self.uid = UINT32_MAX;
    assert_round_trip();
    setup();
    add_dir();
    add_file();
    in.steps[1].end = FP_MAX_PATH;
    assert_round_trip();
}
END_TEST

START_TEST(answer_that_does_not_fit_is_not_sent)
{
    uint8_t small[FP_FRAME_HEADER + 40];
    struct fp_writer sw;

    shape_file();
    fp_writer_init(&sw, small, sizeof(small));
    ck_assert_int_eq((int)fp_answer_encode(&sw, 1, &in), FP_PROTOCOL);
}
END_TEST

START_TEST(init_holds_nothing)
{
    struct fp_answer a;

    memset(&a, 0xff, sizeof(a));
    fp_answer_init(&a, FP_BUSY);
    ck_assert_int_eq((int)a.status, FP_BUSY);
    ck_assert_uint_eq(a.n_steps, 0);
    ck_assert_int_eq(a.fd, -1);
    ck_assert(!a.local && !a.content);
}
END_TEST

START_TEST(target_of_a_step)
{
    struct fp_step *s;

    s = add(FP_OK, S_IFREG);
    ck_assert_ptr_eq(fp_step_target(s), &s->self);
    s = add(FP_ABSENT, S_IFREG);
    ck_assert_ptr_null(fp_step_target(s));
    s = add_link(FP_OK, S_IFDIR);
    ck_assert_ptr_eq(fp_step_target(s), &s->target);
    s = add_link(FP_LOOP, S_IFDIR);
    ck_assert_ptr_null(fp_step_target(s));
}
END_TEST

/* ---- what breaks the protocol ---- */

START_TEST(too_many_steps)
{
    const size_t step = 2 + 1 + META_SIZE;
    size_t len;

    add_dir();
    while (in.n_steps < FP_MAX_STEPS)
        add_dir();
    encode();
    len = w.len;
    /* One more, and as many as the count can say. */
    for (unsigned n = FP_MAX_STEPS + 1; n <= 255 && len + step <= sizeof(buf); n++) {
        memcpy(buf + len, buf + len - step, step);
        buf[len + 1] = (uint8_t)(2 * (n - 1));
        len += step;
        buf[AT_N_STEPS] = (uint8_t)n;
        ck_assert_int_eq((int)decode(len, 2 * (n - 1), -1), FP_PROTOCOL);
    }
    buf[AT_N_STEPS] = 255;
    ck_assert_int_eq((int)decode(len, 100, -1), FP_PROTOCOL);
}
END_TEST

START_TEST(fewer_or_more_steps_than_said)
{
    for (int n = 0; n < 256; n++) {
        setup();
        shape_file();
        encode();
        buf[AT_N_STEPS] = (uint8_t)n;
        ck_assert_int_eq((int)decode(w.len, 4, SOME_FD), n == 3 ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

START_TEST(steps_must_grow)
{
    add_dir();
    add_dir();
    add_dir();
    add_file();
    in.steps[2].end = in.steps[1].end;
    assert_refused(6, -1);
    in.steps[2].end = 1;
    assert_refused(6, -1);
    in.steps[2].end = 0;
    assert_refused(6, -1);
    in.steps[2].end = 6;
    assert_refused(6, -1);
    in.steps[2].end = 5;
    in.steps[3].end = 4;
    assert_refused(4, -1);
}
END_TEST

START_TEST(first_step_must_be_the_root)
{
    static const uint16_t wrong[] = { 0, 2, 4, 65535 };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        setup();
        add_dir();
        in.steps[0].end = wrong[i];
        assert_refused(wrong[i], -1);
        assert_refused(1, -1);
    }
}
END_TEST

START_TEST(last_step_must_not_be_longer_than_the_path)
{
    shape_file();
    encode();
    for (size_t len = 0; len < 4; len++)
        ck_assert_int_eq((int)decode(w.len, len, SOME_FD), FP_PROTOCOL);
    setup();
    shape_absent();
    assert_refused(1, -1);
}
END_TEST

START_TEST(walk_must_not_end_at_a_directory)
{
    add_dir();
    add_dir();
    assert_refused(4, -1);
    setup();
    add_dir();
    add_link(FP_OK, S_IFDIR);
    assert_refused(4, -1);
}
END_TEST

START_TEST(nothing_follows_what_leads_nowhere)
{
    add_dir();
    add(FP_ABSENT, 0);
    add_file();
    assert_refused(4, -1);
    setup();
    add_dir();
    add_file();
    add_file();
    assert_refused(4, -1);
    setup();
    add_dir();
    add_link(FP_ABSENT, 0);
    add_dir();
    assert_refused(4, -1);
    setup();
    add_dir();
    add_link(FP_OK, S_IFREG);
    add(FP_ABSENT, 0);
    assert_refused(4, -1);
}
END_TEST

START_TEST(descriptor_where_none_belongs)
{
    static void (*const without[])(void) = {
        shape_root, shape_fifo, shape_absent, shape_denied, shape_io_error,
        shape_dangling_link, shape_looping_link,
    };

    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        setup();
        without[i]();
        in.fd = SOME_FD;
        assert_refused(path_len(), SOME_FD);
    }
    setup();
    add_dir();
    add_link(FP_OK, S_IFDIR);
    in.fd = SOME_FD;
    assert_refused(2, SOME_FD);
}
END_TEST

START_TEST(descriptor_of_a_part_of_the_path)
{
    shape_file();
    encode();
    ck_assert_int_eq((int)decode(w.len, 4, SOME_FD), FP_OK);
    ck_assert_int_eq((int)decode(w.len, 6, SOME_FD), FP_PROTOCOL);
}
END_TEST

START_TEST(descriptor_must_be_announced_and_come)
{
    shape_file();
    encode();
    ck_assert_int_eq((int)decode(w.len, 4, -1), FP_PROTOCOL);
    in.fd = -1;
    encode();
    ck_assert_int_eq((int)decode(w.len, 4, SOME_FD), FP_PROTOCOL);
    ck_assert_int_eq((int)decode(w.len, 4, -1), FP_OK);
}
END_TEST

/* It is a local file's place holder, and never empty. */
START_TEST(content_that_cannot_be)
{
    shape_content();
    in.local = false;
    assert_refused(4, SOME_FD);
    in.local = true;
    in.steps[2].self.size = 0;
    assert_refused(4, SOME_FD);
    in.steps[2].self.size = 1;
    encode();
    ck_assert_int_eq((int)decode(w.len, 4, SOME_FD), FP_OK);
    buf[AT_FLAGS] &= (uint8_t)~1u;
    ck_assert_int_eq((int)decode(w.len, 4, -1), FP_PROTOCOL);
    in.steps[2].self.mode = S_IFIFO;
    assert_refused(4, SOME_FD);
}
END_TEST

START_TEST(content_that_is_sealed_or_not)
{
    setup();
    shape_content();
    in.steps[2].self.size = 3;
    in.fd = memfd_create("content", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(write(in.fd, "abc", 3), 3);
    ck_assert(!fp_answer_is_sealed(&in));
    ck_assert_int_eq(fcntl(in.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    ck_assert(fp_answer_is_sealed(&in));
    in.steps[2].self.size = 4;
    ck_assert(!fp_answer_is_sealed(&in));
    in.content = false;
    ck_assert(fp_answer_is_sealed(&in));
    close(in.fd);
}
END_TEST

START_TEST(no_answer_brings_nothing)
{
    in.status = FP_BUSY;
    in.fd = SOME_FD;
    assert_refused(9, SOME_FD);
    setup();
    in.status = FP_TIMEOUT;
    add_dir();
    assert_refused(1, -1);
}
END_TEST

START_TEST(answer_must_have_steps)
{
    assert_refused(9, -1);
    assert_refused(0, -1);
}
END_TEST

/* PROTOCOL.md: 16 to 20 and 23 stand in an ANSWER. */
START_TEST(statuses_that_no_answer_has)
{
    for (int st = 1; st < 256; st++) {
        if ((st >= FP_TIMEOUT && st <= FP_FAILED) || st == FP_UNAVAILABLE)
            continue;
        setup();
        encode();
        buf[AT_STATUS] = (uint8_t)st;
        ck_assert_msg(decode(w.len, 9, -1) == FP_PROTOCOL, "status %d", st);
    }
}
END_TEST

START_TEST(statuses_that_no_step_has)
{
    for (int st = FP_IOERROR + 1; st < 256; st++) {
        setup();
        shape_absent();
        in.steps[1].status = (fp_status)st;
        assert_refused(2, -1);
        setup();
        add_dir();
        add_link((fp_status)st, 0);
        assert_refused(2, -1);
    }
}
END_TEST

START_TEST(unknown_sources_and_flags)
{
    for (int v = 0; v < 256; v++) {
        setup();
        shape_root();
        encode();
        buf[AT_SOURCE] = (uint8_t)v;
        ck_assert_int_eq((int)decode(w.len, 1, -1),
                         v == FP_SOURCE_CACHE || v == FP_SOURCE_HELPER
                         || v == FP_SOURCE_STALE ? FP_OK : FP_PROTOCOL);
        buf[AT_SOURCE] = FP_SOURCE_CACHE;
        buf[AT_FLAGS] = (uint8_t)v;
        ck_assert_int_eq((int)decode(w.len, 1, -1),
                         (v & ~(LOCAL | AGAIN)) == 0 ? FP_OK : FP_PROTOCOL);
        ck_assert_int_eq(out.again, (v & AGAIN) != 0);
    }
}
END_TEST

START_TEST(sizes_and_times_out_of_range)
{
    static const int offsets[] = { META_NSEC_AT, META_NSEC_AT + 12, META_NSEC_AT + 24 };
    const size_t self = AT_STEPS + 3;

    add_dir();
    in.steps[0].self.size = (uint64_t)INT64_MAX + 1;
    assert_refused(1, -1);
    in.steps[0].self.size = UINT64_MAX;
    assert_refused(1, -1);
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        static const uint8_t second[] = { 0x3b, 0x9a, 0xca, 0x00 };

        setup();
        add_dir();
        encode();
        memcpy(buf + self + offsets[i], second, sizeof(second));
        ck_assert_int_eq((int)decode(w.len, 1, -1), FP_PROTOCOL);
        memset(buf + self + offsets[i], 0xff, 4);
        ck_assert_int_eq((int)decode(w.len, 1, -1), FP_PROTOCOL);
    }
    setup();
    add_dir();
    add_link(FP_OK, S_IFREG)->target.size = (uint64_t)INT64_MAX + 1;
    assert_refused(2, -1);
}
END_TEST

/* ---- hostile bytes ---- */

/* What is taken must be usable without looking again. */
static void assert_sound(size_t len, int fd)
{
    ck_assert_uint_le(out.n_steps, FP_MAX_STEPS);
    if (out.status != FP_OK) {
        ck_assert_uint_eq(out.n_steps, 0);
        return;
    }
    ck_assert_uint_ge(out.n_steps, 1);
    for (unsigned i = 0; i < out.n_steps; i++) {
        const struct fp_meta *m = fp_step_target(&out.steps[i]);

        ck_assert_uint_le(out.steps[i].end, len);
        ck_assert(m == NULL || m->size <= INT64_MAX);
        if (i + 1 < out.n_steps)
            ck_assert(m != NULL && S_ISDIR(m->mode));
        if (fd != -1 && i + 1 == out.n_steps)
            ck_assert(m != NULL && S_ISREG(m->mode));
    }
}

START_TEST(changed_answers_are_harmless)
{
    uint64_t seed = 31337 + (uint64_t)_i;

    shapes[_i]();
    for (int i = 0; i < 2000; i++) {
        size_t n;

        encode();
        for (uint64_t k = unit_random(&seed) % 3; k < 3; k++) {
            size_t at = AT_STATUS + unit_random(&seed) % (w.len - AT_STATUS);

            buf[at] = (uint8_t)(unit_random(&seed) >> 40);
        }
        n = i % 4 == 0 ? FP_FRAME_HEADER + unit_random(&seed) % (w.len - FP_FRAME_HEADER)
                       : w.len;
        if (decode(n, path_len(), in.fd) == FP_OK)
            assert_sound(path_len(), in.fd);
    }
}
END_TEST

START_TEST(random_bytes_are_harmless)
{
    uint64_t seed = 99;

    for (int i = 0; i < 20000; i++) {
        size_t n = FP_FRAME_HEADER + unit_random(&seed) % 400;
        const int fd = i % 2 == 0 ? -1 : SOME_FD;

        encode();
        unit_random_bytes(&seed, buf + AT_STATUS, n - AT_STATUS);
        if (n > AT_N_STEPS && i % 3 != 0) {
            buf[AT_STATUS] = 0;
            buf[AT_SOURCE] = 1;
            buf[AT_FLAGS] = fd != -1;
            buf[AT_N_STEPS] %= 5;
        }
        if (decode(n, 9, fd) == FP_OK)
            assert_sound(9, fd);
    }
}
END_TEST

static void add_hostile_tests(Suite *s)
{
    TCase *t = tcase_create("hostile");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, changed_answers_are_harmless, 0, SHAPES);
    tcase_add_test(t, random_bytes_are_harmless);
    suite_add_tcase(s, t);
}

static void add_refusal_tests(Suite *s)
{
    TCase *t = tcase_create("refusals");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_loop_test(t, short_frame_is_refused, 0, SHAPES);
    tcase_add_loop_test(t, trailing_bytes_are_refused, 0, SHAPES);
    tcase_add_test(t, too_many_steps);
    tcase_add_test(t, fewer_or_more_steps_than_said);
    tcase_add_test(t, steps_must_grow);
    tcase_add_test(t, first_step_must_be_the_root);
    tcase_add_test(t, last_step_must_not_be_longer_than_the_path);
    tcase_add_test(t, walk_must_not_end_at_a_directory);
    tcase_add_test(t, nothing_follows_what_leads_nowhere);
    tcase_add_test(t, descriptor_where_none_belongs);
    tcase_add_test(t, descriptor_of_a_part_of_the_path);
    tcase_add_test(t, descriptor_must_be_announced_and_come);
    tcase_add_test(t, content_that_cannot_be);
    tcase_add_test(t, content_that_is_sealed_or_not);
    tcase_add_test(t, no_answer_brings_nothing);
    tcase_add_test(t, answer_must_have_steps);
    tcase_add_test(t, statuses_that_no_answer_has);
    tcase_add_test(t, statuses_that_no_step_has);
    tcase_add_test(t, unknown_sources_and_flags);
    tcase_add_test(t, sizes_and_times_out_of_range);
    suite_add_tcase(s, t);
}

static Suite *make_suite(void)
{
    Suite *s = suite_create("answer");
    TCase *t = tcase_create("round_trip");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_loop_test(t, shape_comes_through, 0, SHAPES);
    tcase_add_test(t, every_outcome_of_a_step);
    tcase_add_test(t, every_reason_for_no_answer);
    tcase_add_test(t, shorter_than_the_path_where_no_walk_goes_on);
    tcase_add_test(t, extreme_values);
    tcase_add_test(t, answer_that_does_not_fit_is_not_sent);
    tcase_add_test(t, init_holds_nothing);
    tcase_add_test(t, target_of_a_step);
    suite_add_tcase(s, t);
    add_refusal_tests(s);
    add_hostile_tests(s);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
