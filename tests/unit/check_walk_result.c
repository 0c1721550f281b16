/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk's results beside its answer, on their way from a worker to the daemon.
 */
#include "config.h"
#include "wire/walk_result.h"

#include "unit.h"
#include "wire/task.h"

static uint8_t buf[FP_MAX_FRAME];
static struct fp_writer w;
#define EFFORT 14 /* bytes */

static struct fp_walk_result in, out;

static void setup(void)
{
    memset(&in, 0xa5, sizeof(in));
    memset(&out, 0x5a, sizeof(out));
    fp_walk_result_init(&in);
}

static struct fp_watch_key key(uint8_t len, uint8_t first)
{
    struct fp_watch_key k = { .len = len };

    for (uint8_t i = 0; i < len; i++)
        k.bytes[i] = (uint8_t)(first + i);
    return k;
}

static void encode(unsigned n_steps)
{
    in.n_steps = n_steps;
    fp_writer_init(&w, buf, sizeof(buf));
    fp_put_walk_result(&w, &in);
    ck_assert(!w.bad);
}

/* In memory of just that size, so that reading on is noticed. */
static fp_status decode(size_t n, unsigned n_steps)
{
    uint8_t *exact = malloc(n > 0 ? n : 1);
    struct fp_reader r;
    fp_status st;

    ck_assert_ptr_nonnull(exact);
    memcpy(exact, buf, n);
    memset(&out, 0x5a, sizeof(out));
    fp_reader_init(&r, exact, n);
    st = fp_get_walk_result(&r, &out, n_steps);
    free(exact);
    ck_assert(st == FP_OK || st == FP_PROTOCOL);
    /* Any received result can be used without harm. */
    ck_assert_uint_le(out.n_traversed, FP_MAX_TRAVERSED);
    ck_assert_uint_le(out.names_len, sizeof(out.names));
    for (unsigned i = 0; i < out.n_traversed; i++) {
        ck_assert_uint_lt(out.traversed[i].step, out.n_steps);
        ck_assert_uint_le(out.traversed[i].watch.len, FP_MAX_WATCH_KEY);
        ck_assert_uint_le((size_t)out.traversed[i].at + out.traversed[i].len, out.names_len);
    }
    for (unsigned i = 0; st == FP_OK && i < n_steps; i++)
        ck_assert_uint_le(out.step_watches[i].watch.len, FP_MAX_WATCH_KEY);
    return st;
}

static void assert_same_key(const struct fp_watch_key *a, const struct fp_watch_key *b)
{
    ck_assert_uint_eq(a->len, b->len);
    ck_assert_mem_eq(a->bytes, b->bytes, a->len);
    ck_assert_uint_eq(a->dev, b->dev);
    ck_assert_uint_eq(a->ino, b->ino);
}

static void assert_comes_through(unsigned n_steps)
{
    encode(n_steps);
    ck_assert_int_eq((int)decode(w.len, n_steps), FP_OK);
    for (unsigned i = 0; i < n_steps; i++) {
        ck_assert_uint_eq(in.step_watches[i].mount, out.step_watches[i].mount);
        ck_assert_int_eq((int)in.step_watches[i].verdict, (int)out.step_watches[i].verdict);
        ck_assert_uint_eq(in.step_watches[i].links, out.step_watches[i].links);
        assert_same_key(&in.step_watches[i].watch, &out.step_watches[i].watch);
    }
    ck_assert_uint_eq(in.unwatched, out.unwatched);
    ck_assert_uint_eq(in.effort.us, out.effort.us);
    ck_assert_uint_eq(in.effort.longest_us, out.effort.longest_us);
    ck_assert_uint_eq(in.effort.calls, out.effort.calls);
    ck_assert_int_eq((int)in.effort.call, (int)out.effort.call);
    ck_assert_uint_eq(in.n_traversed, out.n_traversed);
    ck_assert_uint_eq(in.names_len, out.names_len);
    for (unsigned i = 0; i < in.n_traversed; i++) {
        const struct fp_traversed_name *a = &in.traversed[i], *b = &out.traversed[i];

        ck_assert_uint_eq(a->step, b->step);
        ck_assert_uint_eq(a->len, b->len);
        ck_assert_mem_eq(in.names + a->at, out.names + b->at, a->len);
        assert_same_key(&a->watch, &b->watch);
    }
}

/* An inotify key, with the object. */
static struct fp_watch_key key_of_object(uint64_t dev, uint64_t ino)
{
    struct fp_watch_key k = key(4, 1);

    k.dev = dev;
    k.ino = ino;
    return k;
}

/* Three steps, two names passed at the second. */
static void shape_usual(void)
{
    const struct fp_watch_key k = key_of_object(3, UINT64_MAX);

    in.step_watches[0] = (struct fp_step_watch){
        .mount = 21, .verdict = FP_REPORTED_NAMES, .watch = key_of_object(UINT64_MAX, 4)
    };
    in.step_watches[1] = (struct fp_step_watch){
        .mount = 22, .verdict = FP_TTL_UNREPORTED, .links = 7, .watch = key(4, 9)
    };
    in.step_watches[2] = (struct fp_step_watch){ .mount = UINT32_MAX, .verdict = FP_EACH_REQUEST };
    in.unwatched = 3;
    in.effort = (struct fp_effort){ UINT32_MAX, 77, 3, FP_CALL_READLINK };
    ck_assert(fp_walk_result_add(&in, 1, &k, "releases", 8));
    ck_assert(fp_walk_result_add(&in, 1, &in.step_watches[1].watch, "42", 2));
}

/* Everything that fits. */
static void shape_full(void)
{
    static const char letters[FP_MAX_TRAVERSED_BYTES] = { 'n' };
    struct fp_watch_key k = key(FP_MAX_WATCH_KEY, 100);

    for (unsigned i = 0; i < FP_MAX_STEPS; i++)
        in.step_watches[i] = (struct fp_step_watch){
            .mount = i, .verdict = FP_EACH_REQUEST, .links = FP_MAX_LINKS, .watch = k
        };
    for (unsigned i = 0; i < FP_MAX_TRAVERSED; i++) {
        k.bytes[0] = (uint8_t)(100 + i);
        ck_assert(fp_walk_result_add(&in, FP_MAX_STEPS - 1, &k, letters,
                                     FP_MAX_TRAVERSED_BYTES / FP_MAX_TRAVERSED));
    }
    ck_assert_uint_eq(in.names_len, FP_MAX_TRAVERSED_BYTES);
}

/* ---- filling one ---- */

START_TEST(begins_empty)
{
    ck_assert_uint_eq(in.n_traversed, 0);
    ck_assert_uint_eq(in.names_len, 0);
    for (unsigned i = 0; i < FP_MAX_STEPS; i++) {
        ck_assert_uint_eq(in.step_watches[i].mount, 0);
        ck_assert_int_eq((int)in.step_watches[i].verdict, (int)FP_REPORTED);
        ck_assert_uint_eq(in.step_watches[i].watch.len, 0);
    }
}
END_TEST

START_TEST(names_that_fit)
{
    static const char name[FP_MAX_NAME + 1] = { 'x' };
    const struct fp_watch_key k = key(4, 1);

    ck_assert(fp_walk_result_add(&in, 0, &k, name, FP_MAX_NAME));
    ck_assert(!fp_walk_result_add(&in, 0, &k, name, FP_MAX_NAME + 1));
    ck_assert_uint_eq(in.n_traversed, 1);
    ck_assert_uint_eq(in.names_len, FP_MAX_NAME);
}
END_TEST

START_TEST(each_name_once)
{
    const struct fp_watch_key k = key(4, 1), other = key(4, 2), shorter = key(3, 1);

    for (int i = 0; i < 2; i++) {
        ck_assert(fp_walk_result_add(&in, 0, &k, "x", 1));
        ck_assert(fp_walk_result_add(&in, 1, &k, "x", 1));
        ck_assert(fp_walk_result_add(&in, 0, &k, "y", 1));
        ck_assert(fp_walk_result_add(&in, 0, &k, "xy", 2));
        ck_assert(fp_walk_result_add(&in, 0, &other, "x", 1));
        ck_assert(fp_walk_result_add(&in, 0, &shorter, "x", 1));
        ck_assert_uint_eq(in.n_traversed, 6);
        ck_assert_uint_eq(in.names_len, 7);
    }
}
END_TEST

START_TEST(only_so_many_names)
{
    struct fp_watch_key k = key(4, 1);

    for (unsigned i = 0; i < FP_MAX_TRAVERSED; i++) {
        k = key(4, (uint8_t)(100 + i));
        ck_assert(fp_walk_result_add(&in, 0, &k, "x", 1));
    }
    ck_assert(fp_walk_result_add(&in, 0, &k, "x", 1)); /* it is there */
    ck_assert_int_eq((int)in.step_watches[0].verdict, (int)FP_REPORTED);
    ck_assert(!fp_walk_result_add(&in, 0, &k, "y", 1));
    ck_assert_int_eq((int)in.step_watches[0].verdict, (int)FP_EACH_REQUEST);
    ck_assert(!fp_walk_result_add(&in, 0, &k, "", 0));
    ck_assert_uint_eq(in.n_traversed, FP_MAX_TRAVERSED);
    ck_assert_uint_eq(in.names_len, FP_MAX_TRAVERSED);
}
END_TEST

START_TEST(only_so_many_bytes)
{
    static const char name[FP_MAX_NAME] = { 'x' };
    struct fp_watch_key k = key(4, 1);
    unsigned n = 0;

    while (fp_walk_result_add(&in, 0, &k, name, FP_MAX_NAME))
        k = key(4, (uint8_t)(1 + ++n));
    ck_assert_uint_eq(n, FP_MAX_TRAVERSED_BYTES / FP_MAX_NAME);
    ck_assert(fp_walk_result_add(&in, 0, &k, name, FP_MAX_TRAVERSED_BYTES % FP_MAX_NAME));
    ck_assert(!fp_walk_result_add(&in, 0, &k, name, 1));
    ck_assert_uint_eq(in.names_len, FP_MAX_TRAVERSED_BYTES);
}
END_TEST

/* ---- on the way ---- */

START_TEST(more_links_than_the_kernel_follows_are_refused)
{
    shape_usual();
    in.step_watches[2].links = FP_MAX_LINKS + 1;
    encode(3);
    ck_assert_int_eq((int)decode(w.len, 3), FP_PROTOCOL);
}
END_TEST

/* Their number; then mount and verdict. */
START_TEST(verdicts_that_are_not_known)
{
    encode(1);
    for (unsigned verdict = 0; verdict < 256; verdict++) {
        buf[5] = (uint8_t)verdict;
        ck_assert_int_eq((int)decode(w.len, 1), (int)(verdict < FP_VERDICTS ? FP_OK : FP_PROTOCOL));
    }
}
END_TEST

START_TEST(usual_result_comes_through)
{
    shape_usual();
    assert_comes_through(3);
}
END_TEST

START_TEST(empty_result_comes_through)
{
    assert_comes_through(0);
    assert_comes_through(1);
    assert_comes_through(FP_MAX_STEPS);
}
END_TEST

START_TEST(full_result_comes_through)
{
    shape_full();
    assert_comes_through(FP_MAX_STEPS);
}
END_TEST

START_TEST(result_of_any_other_length_is_refused)
{
    shape_usual();
    encode(3);
    for (size_t n = 0; n < w.len; n++)
        ck_assert_int_eq((int)decode(n, 3), FP_PROTOCOL);
    buf[w.len] = 0;
    ck_assert_int_eq((int)decode(w.len + 1, 3), FP_PROTOCOL);
    ck_assert_int_eq((int)decode(w.len, 4), FP_PROTOCOL);
}
END_TEST

START_TEST(full_result_of_any_other_length_is_refused)
{
    shape_full();
    encode(FP_MAX_STEPS);
    for (size_t n = 0; n < w.len; n++)
        ck_assert_int_eq((int)decode(n, FP_MAX_STEPS), FP_PROTOCOL);
    buf[w.len] = 0;
    ck_assert_int_eq((int)decode(w.len + 1, FP_MAX_STEPS), FP_PROTOCOL);
}
END_TEST

/* Their number; then mount, verdict, links, length of the key, key. */
START_TEST(keys_longer_than_there_are)
{
    for (unsigned len = FP_MAX_WATCH_KEY + 1; len < 256; len++) {
        setup();
        encode(1);
        buf[7] = (uint8_t)len;
        memset(buf + 8, 0, 512);
        ck_assert_int_eq((int)decode(8 + len + 1, 1), FP_PROTOCOL);
    }
}
END_TEST

/* At the end: whether a content had settled, two times, how many calls, and which one took longest. */
START_TEST(calls_that_are_not_known)
{
    encode(1);
    for (unsigned call = 0; call < 256; call++) {
        buf[w.len - 1] = (uint8_t)call;
        ck_assert_int_eq((int)decode(w.len, 1), (int)(call < FP_CALLS ? FP_OK : FP_PROTOCOL));
    }
}
END_TEST

START_TEST(names_passed_at_no_step)
{
    const struct fp_watch_key k = key(4, 2);
    size_t at_step;

    ck_assert(fp_walk_result_add(&in, 1, &k, "x", 1));
    encode(2);
    at_step = w.len - EFFORT - 2 - (1 + 4 + 20) - 1; /* the name, the key, the number */
    ck_assert_uint_eq(buf[at_step], 1);
    ck_assert_int_eq((int)decode(w.len, 2), FP_OK);
    for (unsigned step = 2; step < 256; step++) {
        buf[at_step] = (uint8_t)step;
        ck_assert_int_eq((int)decode(w.len, 2), FP_PROTOCOL);
    }
}
END_TEST

START_TEST(more_names_than_there_is_room_for)
{
    uint8_t *p = buf;

    *p++ = 255;
    for (int i = 0; i < 255; i++) {
        *p++ = 0;                /* step */
        *p++ = 0;                /* no key */
        *p++ = i < 16 ? 255 : 0; /* name */
        memset(p, 'x', p[-1]);
        p += p[-1];
    }
    /* One step, which is nowhere, goes before it. */
    memmove(buf + 8, buf, (size_t)(p - buf));
    memset(buf, 0, 8);
    buf[0] = 1;
    ck_assert_int_eq((int)decode((size_t)(p - buf) + 8, 1), FP_PROTOCOL);
}
END_TEST

START_TEST(garbage_is_harmless)
{
    uint64_t seed = 4242;

    for (int i = 0; i < 20000; i++) {
        const unsigned n_steps = (unsigned)(unit_random(&seed) % (FP_MAX_STEPS + 1));
        const size_t n = unit_random(&seed) % 2048;

        unit_random_bytes(&seed, buf, n);
        decode(n, n_steps);
    }
}
END_TEST

START_TEST(changed_results_are_harmless)
{
    uint64_t seed = 77;

    for (int i = 0; i < 20000; i++) {
        setup();
        shape_usual();
        encode(3);
        for (uint64_t k = 1 + unit_random(&seed) % 3; k > 0; k--)
            buf[unit_random(&seed) % w.len] = (uint8_t)(unit_random(&seed) >> 40);
        decode(w.len, 3);
    }
}
END_TEST

/* ---- behind an answer ---- */

static void fill_step(struct fp_step *s, size_t end, uint32_t target)
{
    static const struct fp_access there = { .status = FP_OK, .mode = S_IFREG | 0644 };

    memset(s, 0, sizeof(*s));
    s->end = (uint16_t)end;
    s->self.mode = S_IFLNK | 0777;
    s->target.mode = target;
    for (unsigned i = 0; i < FP_MAX_NAMES; i++)
        s->access[i] = there;
}

/* The longest result: links to directories all the way, every name there. */
START_TEST(largest_result_fits_a_frame)
{
    static struct fp_answer a, got;
    static struct fp_walk_result result;
    struct fp_task t = { .lookup = { .path_len = FP_MAX_PATH }, .names = { .n = FP_MAX_NAMES } };
    struct fp_frame f;

    fp_answer_init(&a, FP_OK);
    a.n_names = FP_MAX_NAMES;
    for (a.n_steps = 0; a.n_steps < FP_MAX_STEPS; a.n_steps++)
        fill_step(&a.steps[a.n_steps], 1 + a.n_steps, S_IFDIR | 0755);
    a.steps[FP_MAX_STEPS - 1].end = FP_MAX_PATH;
    a.fd = 77; /* no decoder touches it */
    shape_full();
    in.n_steps = a.n_steps;
    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_result_encode(&w, 1, &a, &in), FP_OK);
    ck_assert_uint_le(w.len, FP_MAX_FRAME);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    ck_assert_int_eq((int)fp_result_decode(&f.body, &t, 77, &got, &result), FP_OK);
    ck_assert_uint_eq(got.n_steps, FP_MAX_STEPS);
    ck_assert_uint_eq(result.n_traversed, FP_MAX_TRAVERSED);
    ck_assert_uint_eq(result.names_len, FP_MAX_TRAVERSED_BYTES);
}
END_TEST

START_TEST(answer_without_its_result)
{
    static struct fp_answer a, got;
    const struct fp_task t = { .lookup = { .path_len = 1 } };
    struct fp_frame f;

    fp_answer_init(&a, FP_OK);
    fill_step(&a.steps[a.n_steps++], 1, S_IFDIR | 0755);
    a.fd = 77;
    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_answer_encode(&w, 1, &a), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    ck_assert_int_eq((int)fp_result_decode(&f.body, &t, 77, &got, &out), FP_PROTOCOL);
}
END_TEST

/* An answer with other names than those that were looked for is invalid. */
START_TEST(result_with_other_names)
{
    static struct fp_answer a, got;
    struct fp_task t = { .lookup = { .path_len = 1 } };
    struct fp_frame f;

    fp_answer_init(&a, FP_OK);
    fill_step(&a.steps[a.n_steps++], 1, S_IFDIR | 0755);
    a.n_names = 2;
    in.n_steps = a.n_steps;
    for (t.names.n = 0; t.names.n <= FP_MAX_NAMES; t.names.n++) {
        fp_writer_init(&w, buf, sizeof(buf));
        ck_assert_int_eq((int)fp_result_encode(&w, 1, &a, &in), FP_OK);
        ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
        ck_assert_int_eq((int)fp_result_decode(&f.body, &t, -1, &got, &out),
                         t.names.n == 2 ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("result");
    TCase *t = unit_add_case(s, "filling", setup, NULL, 0);

    tcase_add_test(t, begins_empty);
    tcase_add_test(t, names_that_fit);
    tcase_add_test(t, each_name_once);
    tcase_add_test(t, only_so_many_names);
    tcase_add_test(t, only_so_many_bytes);
    t = unit_add_case(s, "coding", setup, NULL, 30);
    tcase_add_test(t, verdicts_that_are_not_known);
    tcase_add_test(t, usual_result_comes_through);
    tcase_add_test(t, empty_result_comes_through);
    tcase_add_test(t, more_links_than_the_kernel_follows_are_refused);
    tcase_add_test(t, full_result_comes_through);
    tcase_add_test(t, result_of_any_other_length_is_refused);
    tcase_add_test(t, full_result_of_any_other_length_is_refused);
    tcase_add_test(t, keys_longer_than_there_are);
    tcase_add_test(t, calls_that_are_not_known);
    tcase_add_test(t, names_passed_at_no_step);
    tcase_add_test(t, more_names_than_there_is_room_for);
    tcase_add_test(t, garbage_is_harmless);
    tcase_add_test(t, changed_results_are_harmless);
    t = unit_add_case(s, "results", setup, NULL, 0);
    tcase_add_test(t, largest_result_fits_a_frame);
    tcase_add_test(t, answer_without_its_result);
    tcase_add_test(t, result_with_other_names);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
