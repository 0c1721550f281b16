/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of every shape come through. */
#include "config.h"
#include "wire/answer.h"

#include "answer_kit.h"

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
    ck_assert_uint_eq(a->blksize, b->blksize);
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
    ck_assert_int_eq(out.leasable, in.leasable);
    ck_assert_int_eq(out.watched, in.watched);
    ck_assert_int_eq(out.content, in.content);
    ck_assert_uint_eq(out.content_at, in.content_at);
    ck_assert_uint_eq(out.n_steps, in.n_steps);
    ck_assert_uint_eq(out.n_names, in.n_names);
    for (unsigned i = 0; i < in.n_steps; i++) {
        assert_same_step(&in.steps[i], &out.steps[i]);
        for (unsigned k = 0; k < in.n_names && fp_step_is_dir(&in.steps[i]); k++)
            assert_same_access(&in.steps[i].access[k], &out.steps[i].access[k]);
    }
}

/* ---- tests ---- */

START_TEST(shape_comes_through)
{
    build(shapes[_i]);
    assert_round_trip();
}
END_TEST

START_TEST(every_outcome_of_a_step)
{
    for (int st = FP_ABSENT; st <= FP_IOERROR; st++) {
        build("d");
        add((fp_status)st, 0);
        assert_round_trip();
        build("d");
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
    static const char *const ends[] = { "da", "ddx", "dA", "df", "dp" };

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        build(ends[i]);
        encode();
        ck_assert_int_eq((int)decode(w.len, path_len() + 20, -1), FP_OK);
    }
}
END_TEST

START_TEST(extreme_values)
{
    build("df");
    in.steps[1].self.size = INT64_MAX;
    in.steps[1].self.atime.sec = INT64_MIN;
    in.steps[1].self.mtime.sec = INT64_MAX;
    in.steps[1].self.ino = UINT64_MAX;
    in.steps[1].self.uid = UINT32_MAX;
    assert_round_trip();
    build("df");
    in.steps[1].end = FP_MAX_PATH;
    assert_round_trip();
}
END_TEST

START_TEST(answer_that_does_not_fit_is_not_sent)
{
    uint8_t small[FP_FRAME_HEADER + 40];
    struct fp_writer sw;

    build("ddf+h");
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

int main(void)
{
    Suite *s = suite_create("answer");
    TCase *t = unit_add_case(s, "round_trip", setup, NULL, 0);

    tcase_add_loop_test(t, shape_comes_through, 0, SHAPES);
    tcase_add_test(t, every_outcome_of_a_step);
    tcase_add_test(t, every_reason_for_no_answer);
    tcase_add_test(t, shorter_than_the_path_where_no_walk_goes_on);
    tcase_add_test(t, extreme_values);
    tcase_add_test(t, answer_that_does_not_fit_is_not_sent);
    tcase_add_test(t, init_holds_nothing);
    tcase_add_test(t, target_of_a_step);
    return unit_run(s);
}
