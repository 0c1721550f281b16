/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames between the daemon and its workers: tasks, and the answers that only workers give.
 */
#include "config.h"
#include "wire/task.h"

#include "unit.h"
#include "wire/walk_result.h"

#define SOME_FD 77 /* no decoder touches it */

static uint8_t buf[FP_MAX_FRAME];
static struct fp_writer w;
static struct fp_answer in, out;
static struct fp_walk_result result, result_out;

static void setup(void)
{
    memset(&in, 0, sizeof(in));
    fp_answer_init(&in, FP_OK);
    fp_walk_result_init(&result);
}

/* ---- tasks ---- */

static void encode(const struct fp_task *t)
{
    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_task_encode(&w, 9, t), FP_OK);
}

/* In memory of just that size, so that reading on is noticed. */
static fp_status decode(size_t n, struct fp_task *t)
{
    uint8_t *exact = malloc(n);
    struct fp_frame f;
    fp_status st;

    for (size_t i = 0; i < 4; i++)
        buf[i] = (uint8_t)(n >> (8 * (3 - i)));
    memcpy(exact, buf, n);
    ck_assert_int_eq((int)fp_frame_parse(&f, exact, n), FP_OK);
    ck_assert_uint_eq(f.type, FP_FRAME_TASK);
    ck_assert_uint_eq(f.id, 9);
    st = fp_task_decode(&f.body, t);
    if (st == FP_OK)
        ck_assert(fp_path_is_normal(t->lookup.path, t->lookup.path_len));
    free(exact);
    ck_assert(st == FP_OK || st == FP_PROTOCOL);
    return st;
}

static struct fp_task task(const char *path, size_t base_len)
{
    const struct fp_task t = {
        .lookup = { 250, path, strlen(path), false, false, false },
        .names = { 1, { { ".htaccess", 9 } } },
        .base_len = base_len,
    };

    return t;
}

START_TEST(task_comes_through)
{
    struct fp_task t = task("/srv/www/file", 8), got;

    t.has_known = t.looks_only = _i == 1;
    t.content_max = 0x12345678;
    t.base_links = FP_MAX_LINKS;
    t.known =
        (struct fp_meta){ .mode = S_IFREG | 0644, .ino = 5, .size = INT64_MAX, .mtime = { -5, 999999999 } };
    encode(&t);
    ck_assert_int_eq((int)decode(w.len, &got), FP_OK);
    ck_assert_uint_eq(got.base_len, 8);
    ck_assert_uint_eq(got.content_max, 0x12345678);
    ck_assert_uint_eq(got.base_links, FP_MAX_LINKS);
    ck_assert_uint_eq(got.lookup.deadline_ms, 250);
    ck_assert_uint_eq(got.lookup.path_len, 13);
    ck_assert_uint_eq(got.names.n, 1);
    ck_assert_int_eq(got.has_known, t.has_known);
    ck_assert_int_eq(got.looks_only, t.looks_only);
    if (t.has_known)
        ck_assert(fp_meta_equal(&got.known, &t.known));
}
END_TEST

START_TEST(short_task_is_refused)
{
    struct fp_task t = task("/srv/www/file", 8), got;

    t.has_known = _i == 1;
    encode(&t);
    for (size_t n = FP_FRAME_HEADER; n < w.len; n++)
        ck_assert_int_eq((int)decode(n, &got), FP_PROTOCOL);
    buf[w.len] = 0;
    ck_assert_int_eq((int)decode(w.len + 1, &got), FP_PROTOCOL);
}
END_TEST

/* It must be a proper part of the path that ends at a component. */
START_TEST(bases)
{
    static const struct {
        const char *path;
        size_t base;
        bool good;
    } rows[] = {
        { "/", 0, true },     { "/", 1, false },     { "/a", 0, true },        { "/a", 1, true },
        { "/a", 2, false },   { "/a", 3, false },    { "/a/b", 1, true },      { "/a/b", 2, true },
        { "/a/b", 3, false }, { "/a/b", 4, false },  { "/a/b", 65535, false }, { "/ab/c", 2, false },
        { "/ab/c", 3, true }, { "/ab/c", 4, false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct fp_task t = task(rows[i].path, rows[i].base);
        struct fp_task got;

        encode(&t);
        ck_assert_msg(decode(w.len, &got) == (rows[i].good ? FP_OK : FP_PROTOCOL), "%s, base of %zu",
                      rows[i].path, rows[i].base);
    }
}
END_TEST

/* The kernel follows no more, and "/" is reached without any. */
START_TEST(links_of_bases)
{
    static const struct {
        size_t base;
        uint8_t links;
        bool good;
    } rows[] = { { 8, 0, true },
                 { 8, FP_MAX_LINKS, true },
                 { 8, FP_MAX_LINKS + 1, false },
                 { 8, 255, false },
                 { 0, 0, true },
                 { 0, 1, false } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fp_task t = task("/srv/www/file", rows[i].base), got;

        t.base_links = rows[i].links;
        encode(&t);
        ck_assert_int_eq((int)decode(w.len, &got), rows[i].good ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

START_TEST(paths_of_tasks_are_checked)
{
    static const char *const wrong[] = { "", "a", "/a/", "//a", "/a/../b", "/./a" };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct fp_task t = task(wrong[i], 0);
        struct fp_task got;

        encode(&t);
        ck_assert_int_eq((int)decode(w.len, &got), FP_PROTOCOL);
    }
}
END_TEST

START_TEST(changed_tasks_are_harmless)
{
    uint64_t seed = 77;
    struct fp_task t = task("/srv/www/file", 8), got;

    for (int i = 0; i < 20000; i++) {
        t.has_known = i % 2 == 0;
        encode(&t);
        for (uint64_t k = unit_random(&seed) % 3; k < 3; k++)
            buf[FP_FRAME_HEADER + unit_random(&seed) % (w.len - FP_FRAME_HEADER)] =
                (uint8_t)(unit_random(&seed) >> 40);
        decode(w.len, &got);
    }
}
END_TEST

/* ---- answers to tasks ---- */

static struct fp_step *add(size_t end, fp_status status, uint32_t mode)
{
    struct fp_step *s = &in.steps[in.n_steps++];

    s->end = (uint16_t)end;
    s->status = status;
    s->self.mode = mode;
    return s;
}

static uint32_t content_max = UINT32_MAX;

/* To a task for a path of 9 bytes with a base of 4; or without one. */
static fp_status answer(size_t base_len, int fd, bool to_task)
{
    const struct fp_task t = { .lookup = { .path_len = 9 },
                               .base_len = base_len,
                               .content_max = content_max };
    struct fp_frame f;

    fp_writer_init(&w, buf, sizeof(buf));
    in.fd = fd;
    result.n_steps = in.n_steps;
    ck_assert_int_eq((int)(to_task ? fp_result_encode(&w, 9, &in, &result) : fp_answer_encode(&w, 9, &in)),
                     FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    if (to_task)
        return fp_result_decode(&f.body, &t, fd, &out, &result_out);
    return fp_answer_decode(&f.body, 9, fd, &out);
}

START_TEST(steps_begin_below_the_base)
{
    add(9, FP_OK, S_IFREG);
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_OK);
    ck_assert_int_eq(out.fd, SOME_FD);
    ck_assert_uint_eq(out.n_steps, 1);
    ck_assert_int_eq((int)answer(0, SOME_FD, true), FP_PROTOCOL);
    ck_assert_int_eq((int)answer(9, SOME_FD, true), FP_PROTOCOL);
    ck_assert_int_eq((int)answer(0, SOME_FD, false), FP_PROTOCOL);
    ck_assert_int_eq(out.fd, -1);
}
END_TEST

START_TEST(steps_do_not_repeat_the_base)
{
    add(1, FP_OK, S_IFDIR);
    add(4, FP_OK, S_IFDIR);
    add(9, FP_OK, S_IFREG);
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_PROTOCOL);
    ck_assert_int_eq((int)answer(0, SOME_FD, true), FP_OK);
}
END_TEST

START_TEST(absent_below_the_base)
{
    add(9, FP_ABSENT, 0);
    ck_assert_int_eq((int)answer(4, -1, true), FP_OK);
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_PROTOCOL);
    setup();
    add(6, FP_ABSENT, 0);
    ck_assert_int_eq((int)answer(4, -1, true), FP_OK);
    ck_assert_int_eq((int)answer(6, -1, true), FP_PROTOCOL);
}
END_TEST

/* For the start of other walks; the client does not get it. */
START_TEST(descriptor_of_a_directory)
{
    add(1, FP_OK, S_IFDIR);
    add(9, FP_OK, S_IFDIR);
    ck_assert_int_eq((int)answer(0, SOME_FD, true), FP_OK);
    ck_assert_int_eq(out.fd, SOME_FD);
    ck_assert_int_eq((int)answer(0, SOME_FD, false), FP_PROTOCOL);
    in.steps[1].self.mode = S_IFLNK;
    in.steps[1].target.mode = S_IFDIR;
    ck_assert_int_eq((int)answer(0, SOME_FD, true), FP_OK);
    in.steps[1].target.mode = S_IFIFO;
    ck_assert_int_eq((int)answer(0, SOME_FD, true), FP_PROTOCOL);
}
END_TEST

START_TEST(unchanged_file)
{
    add(9, FP_OK, S_IFREG);
    in.unchanged = true;
    ck_assert_int_eq((int)answer(4, -1, true), FP_OK);
    ck_assert(out.unchanged);
    setup();
    add(1, FP_OK, S_IFDIR);
    add(9, FP_OK, S_IFREG);
    in.unchanged = true;
    ck_assert_int_eq((int)answer(0, -1, false), FP_PROTOCOL);
}
END_TEST

/* Only the daemon grants leases. */
START_TEST(worker_that_grants_a_lease)
{
    add(9, FP_OK, S_IFREG);
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_OK);
    in.leasable = true;
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_PROTOCOL);
}
END_TEST

/* Only a file has one. */
START_TEST(content_of_a_directory)
{
    add(9, FP_OK, S_IFREG);
    in.steps[0].self.size = 100;
    in.content = in.local = true;
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_OK);
    ck_assert(out.content);
    in.steps[0].self.mode = S_IFDIR;
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_PROTOCOL);
    in.content = false;
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_OK);
}
END_TEST

/* Of no other files than the daemon asked for, and never of more than settings allow. */
START_TEST(content_that_is_too_long)
{
    add(9, FP_OK, S_IFREG);
    in.content = in.local = true;
    in.steps[0].self.size = FP_CONTENT_MOST;
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_OK);
    in.steps[0].self.size++;
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_PROTOCOL);
    content_max = 1000;
    in.steps[0].self.size = 1000;
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_OK);
    in.steps[0].self.size++;
    ck_assert_int_eq((int)answer(4, SOME_FD, true), FP_PROTOCOL);
}
END_TEST

START_TEST(metadata_that_is_equal_or_not)
{
    const struct fp_meta m = { .mode = S_IFREG, .ino = 3, .size = 9, .mtime = { 5, 6 } };
    struct fp_meta other = m;

    other.atime.sec = 99;
    ck_assert(fp_meta_equal(&m, &other));
    for (int i = 0; i < 10; i++) {
        other = m;
        switch (i) {
        case 0: other.mode ^= 0100; break;
        case 1: other.uid++; break;
        case 2: other.gid++; break;
        case 3: other.dev++; break;
        case 4: other.ino++; break;
        case 5: other.size++; break;
        case 6: other.mtime.sec++; break;
        case 7: other.mtime.nsec++; break;
        case 8: other.ctime.sec++; break;
        case 9: other.ctime.nsec++; break;
        }
        ck_assert_msg(!fp_meta_equal(&m, &other), "field %d", i);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("task");
    TCase *t = tcase_create("tasks"), *answers = tcase_create("answers");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, task_comes_through, 0, 2);
    tcase_add_loop_test(t, short_task_is_refused, 0, 2);
    tcase_add_test(t, bases);
    tcase_add_test(t, links_of_bases);
    tcase_add_test(t, paths_of_tasks_are_checked);
    tcase_add_test(t, changed_tasks_are_harmless);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(answers, setup, NULL);
    tcase_add_test(answers, steps_begin_below_the_base);
    tcase_add_test(answers, steps_do_not_repeat_the_base);
    tcase_add_test(answers, absent_below_the_base);
    tcase_add_test(answers, descriptor_of_a_directory);
    tcase_add_test(answers, unchanged_file);
    tcase_add_test(answers, worker_that_grants_a_lease);
    tcase_add_test(answers, content_of_a_directory);
    tcase_add_test(answers, content_that_is_too_long);
    tcase_add_test(answers, metadata_that_is_equal_or_not);
    suite_add_tcase(s, answers);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
