/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in place of an answer, which are refused. */
#include "config.h"
#include "wire/answer.h"

#include <sys/mman.h>

#include "answer_kit.h"

START_TEST(short_frame_is_refused)
{
    build(shapes[_i]);
    encode();
    for (size_t n = FP_FRAME_HEADER; n < w.len; n++)
        ck_assert_int_eq((int)decode(n, path_len(), in.fd), FP_PROTOCOL);
}
END_TEST

START_TEST(trailing_bytes_are_refused)
{
    build(shapes[_i]);
    encode();
    for (size_t more = 1; more <= META_SIZE + 3; more++) {
        memset(buf + w.len, 0, more);
        ck_assert_int_eq((int)decode(w.len + more, path_len(), in.fd), FP_PROTOCOL);
    }
}
END_TEST

START_TEST(too_many_steps)
{
    const size_t step = 2 + 1 + META_SIZE;
    size_t len;

    build("d");
    while (in.n_steps < FP_MAX_STEPS)
        add(FP_OK, S_IFDIR | 0755);
    encode();
    len = w.len;
    /* One more, and as many as the count can express. */
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
        build("ddf+h");
        encode();
        buf[AT_N_STEPS] = (uint8_t)n;
        ck_assert_int_eq((int)decode(w.len, 4, SOME_FD), n == 3 ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

START_TEST(steps_must_grow)
{
    build("dddf");
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
        build("d");
        in.steps[0].end = wrong[i];
        assert_refused(wrong[i], -1);
        assert_refused(1, -1);
    }
}
END_TEST

START_TEST(last_step_must_not_be_longer_than_the_path)
{
    build("ddf+h");
    encode();
    for (size_t len = 0; len < 4; len++)
        ck_assert_int_eq((int)decode(w.len, len, SOME_FD), FP_PROTOCOL);
    build("da");
    assert_refused(1, -1);
}
END_TEST

START_TEST(walk_must_not_end_at_a_directory)
{
    build("dd");
    assert_refused(4, -1);
    build("dD");
    assert_refused(4, -1);
}
END_TEST

START_TEST(nothing_follows_what_leads_nowhere)
{
    build("daf");
    assert_refused(4, -1);
    build("dff");
    assert_refused(4, -1);
    build("dAd");
    assert_refused(4, -1);
    build("dFa");
    assert_refused(4, -1);
}
END_TEST

START_TEST(descriptor_where_none_belongs)
{
    static const char *const without[] = { "d", "dp", "da", "ddx", "di", "dA", "dO" };

    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        build(without[i]);
        in.fd = SOME_FD;
        assert_refused(path_len(), SOME_FD);
    }
    build("dD");
    in.fd = SOME_FD;
    assert_refused(2, SOME_FD);
}
END_TEST

START_TEST(descriptor_of_a_part_of_the_path)
{
    build("ddf+h");
    encode();
    ck_assert_int_eq((int)decode(w.len, 4, SOME_FD), FP_OK);
    ck_assert_int_eq((int)decode(w.len, 6, SOME_FD), FP_PROTOCOL);
}
END_TEST

START_TEST(descriptor_must_be_announced_and_come)
{
    build("ddf+h");
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
    build("ddfhc");
    in.local = false;
    assert_refused(4, -1);
    in.local = true;
    in.steps[2].self.size = 0;
    assert_refused(4, -1);
    in.steps[2].self.size = 1;
    encode();
    ck_assert_int_eq((int)decode(w.len, 4, -1), FP_OK);
    /* A descriptor beside it; its place missing; a file that is not the whole path. */
    ck_assert_int_eq((int)decode(w.len, 4, SOME_FD), FP_PROTOCOL);
    buf[AT_FLAGS] |= 1;
    ck_assert_int_eq((int)decode(w.len, 4, SOME_FD), FP_PROTOCOL);
    encode();
    ck_assert_int_eq((int)decode(w.len - 8, 4, -1), FP_PROTOCOL);
    ck_assert_int_eq((int)decode(w.len, 6, -1), FP_PROTOCOL);
    in.steps[2].self.mode = S_IFIFO;
    assert_refused(4, -1);
    build("");
    in.status = FP_TIMEOUT;
    in.content = true;
    assert_refused(4, -1);
}
END_TEST

START_TEST(content_that_is_sealed_or_not)
{
    build("ddf+h");
    in.content = true;
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
    build("d");
    in.status = FP_TIMEOUT;
    assert_refused(1, -1);
}
END_TEST

START_TEST(answer_must_have_steps)
{
    assert_refused(9, -1);
    assert_refused(0, -1);
}
END_TEST

/* docs/protocol.md: 16 to 20 and 23 stand in an ANSWER. */
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
        build("da");
        in.steps[1].status = (fp_status)st;
        assert_refused(2, -1);
        build("d");
        add_link((fp_status)st, 0);
        assert_refused(2, -1);
    }
}
END_TEST

/* A watched answer is leasable, too. */
static bool is_allowed(unsigned flags)
{
    return (flags & ~(unsigned)(LOCAL | LEASABLE | WATCHED)) == 0
           && (flags & (LEASABLE | WATCHED)) != WATCHED;
}

START_TEST(unknown_sources_and_flags)
{
    for (int v = 0; v < 256; v++) {
        build("d");
        encode();
        buf[AT_SOURCE] = (uint8_t)v;
        ck_assert_int_eq((int)decode(w.len, 1, -1),
                         v == FP_SOURCE_CACHE || v == FP_SOURCE_WORKER || v == FP_SOURCE_STALE ? FP_OK
                                                                                               : FP_PROTOCOL);
        buf[AT_SOURCE] = FP_SOURCE_CACHE;
        buf[AT_FLAGS] = (uint8_t)v;
        ck_assert_int_eq((int)decode(w.len, 1, -1), is_allowed((unsigned)v) ? FP_OK : FP_PROTOCOL);
        ck_assert_int_eq(out.leasable, (v & LEASABLE) != 0);
        ck_assert_int_eq(out.watched, (v & WATCHED) != 0);
    }
}
END_TEST

START_TEST(sizes_and_times_out_of_range)
{
    static const int offsets[] = { META_NSEC_AT, META_NSEC_AT + 12, META_NSEC_AT + 24 };
    const size_t self = AT_STEPS + 3;

    build("d");
    in.steps[0].self.size = (uint64_t)INT64_MAX + 1;
    assert_refused(1, -1);
    in.steps[0].self.size = UINT64_MAX;
    assert_refused(1, -1);
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        static const uint8_t second[] = { 0x3b, 0x9a, 0xca, 0x00 };

        build("d");
        encode();
        memcpy(buf + self + offsets[i], second, sizeof(second));
        ck_assert_int_eq((int)decode(w.len, 1, -1), FP_PROTOCOL);
        memset(buf + self + offsets[i], 0xff, 4);
        ck_assert_int_eq((int)decode(w.len, 1, -1), FP_PROTOCOL);
    }
    build("d");
    add_link(FP_OK, S_IFREG)->target.size = (uint64_t)INT64_MAX + 1;
    assert_refused(2, -1);
}
END_TEST

/* ---- hostile bytes ---- */

/* An accepted answer must be usable without another check. */
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

    build(shapes[_i]);
    for (int i = 0; i < 2000; i++) {
        size_t n;

        encode();
        for (uint64_t k = unit_random(&seed) % 3; k < 3; k++) {
            size_t at = AT_STATUS + unit_random(&seed) % (w.len - AT_STATUS);

            buf[at] = (uint8_t)(unit_random(&seed) >> 40);
        }
        n = i % 4 == 0 ? FP_FRAME_HEADER + unit_random(&seed) % (w.len - FP_FRAME_HEADER) : w.len;
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

int main(void)
{
    Suite *s = suite_create("answer_refusals");
    TCase *t = unit_add_case(s, "refusals", setup, NULL, 0);

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
    t = unit_add_case(s, "hostile", setup, NULL, 60);
    tcase_add_loop_test(t, changed_answers_are_harmless, 0, SHAPES);
    tcase_add_test(t, random_bytes_are_harmless);
    return unit_run(s);
}
