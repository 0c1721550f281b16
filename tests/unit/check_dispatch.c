/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of walks under way when their path has to be forgotten.  The
 * dispatch and the cache are real; connections and helpers are played here, so
 * that a walk ends when the test says so.
 */
#include "config.h"
#include "dispatch.h"

#include <ev.h>

#include "cache.h"
#include "cache_kit.h"
#include "connection.h"
#include "control.h"
#include "helper.h"
#include "keyed_hash.h"
#include "proto/clock.h"
#include "proto/fdio.h"
#include "task.h"

#define TTL_MS   60000
#define MAX_JOBS 16

/* ---- connections ---- */

struct fp_connection {
    void *slot;
    bool answered;
    fp_status status;            /* of the answer */
    enum fp_source source;
    uint32_t good_for_ms;
    unsigned n_steps;
    uint64_t last_ino;           /* of the answer's last step; 0: it was not there */
};

void **fp_connection_slot(struct fp_connection *conn)
{
    return &conn->slot;
}

void fp_connection_answer(struct fp_connection *conn, uint64_t id, const struct fp_answer *a)
{
    const struct fp_step *last = a->n_steps > 0 ? &a->steps[a->n_steps - 1] : NULL;

    ck_assert_uint_eq(id, 1);
    ck_assert(!conn->answered);
    conn->answered = true;
    conn->status = a->status;
    conn->source = a->source;
    conn->good_for_ms = a->good_for_ms;
    conn->n_steps = a->n_steps;
    conn->last_ino = last != NULL && last->status == FP_OK ? last->self.ino : 0;
}

void fp_connection_done(struct fp_connection *conn, uint64_t id, const struct fp_done *done)
{
    ck_assert_uint_eq(id, 1);
    ck_assert_int_eq((int)done->status, FP_OK);
    conn->answered = true;
}

void fp_control_purge(struct fp_dispatch *d, const struct fp_control *question,
                      struct fp_done *done)
{
    memset(done, 0, sizeof(*done));
    done->count = fp_dispatch_forget(d, question->path, question->path_len, false);
}

void fp_control_report(const struct fp_report_source *source, uint32_t from,
                       struct fp_done *done)
{
    (void)source;
    memset(done, 0, sizeof(*done));
    done->next = from;
}

/* ---- helpers ---- */

static struct job {
    const struct fp_task *task;
    fp_helper_done *done;
    void *ctx;
    uint64_t began_ms;
} jobs[MAX_JOBS];
static unsigned n_jobs;

fp_status fp_helpers_submit(struct fp_helpers *h, const struct fp_task *t, int base,
                            fp_helper_done *done, void *ctx)
{
    (void)h;
    (void)base;
    ck_assert_uint_lt(n_jobs, MAX_JOBS);
    jobs[n_jobs++] = (struct job){ t, done, ctx, fp_now_ms() };
    return FP_OK;
}

bool fp_helpers_spare(const struct fp_helpers *h)
{
    (void)h;
    return true;
}

static bool is_path(const struct fp_lookup *l, const char *path)
{
    return l->path_len == strlen(path) && memcmp(l->path, path, l->path_len) == 0;
}

/* The oldest walk of that path ends, having found what (cache_kit.h; the whole
 * path, whatever it began at). */
static void finish(const char *path, const char *what)
{
    struct fp_answer a;
    unsigned i = 0, skip = 0;
    struct job job;

    while (i < n_jobs && !is_path(&jobs[i].task->lookup, path))
        i++;
    ck_assert_msg(i < n_jobs, "no walk of %s", path);
    job = jobs[i];
    memmove(&jobs[i], &jobs[i + 1], (--n_jobs - i) * sizeof(jobs[0]));
    kit_answer(&a, path, what);
    a.source = FP_SOURCE_HELPER;
    /* From a base: its own steps are not told. */
    while (skip < a.n_steps && a.steps[skip].end <= job.task->base_len)
        skip++;
    a.n_steps -= skip;
    memmove(a.steps, a.steps + skip, a.n_steps * sizeof(a.steps[0]));
    if (a.fd == -1 && fp_step_leads_on(&a.steps[a.n_steps - 1]))
        a.fd = kit_file('p');
    job.done(job.ctx, &a, job.began_ms);
    fp_close(&a.fd);
}

/* ---- the test's world ---- */

static struct ev_loop *loop;
static struct fp_cache *cache;
static struct fp_dispatch *dispatch;
static struct fp_connection early, other, late;
static int fds_at_rest;

static void setup(void)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, TTL_MS };

    ck_assert_int_eq(fp_keyed_hash_init(), 0);
    loop = ev_loop_new(EVFLAG_AUTO);
    ck_assert_ptr_nonnull(loop);
    fds_at_rest = unit_open_fds();
    cache = fp_cache_create(&limits);
    dispatch = fp_dispatch_create(loop, cache, NULL);
    ck_assert_ptr_nonnull(dispatch);
}

static void teardown(void)
{
    fp_dispatch_destroy(&dispatch);
    fp_cache_destroy(&cache);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
    ev_loop_destroy(loop);
}

static void question(struct fp_connection *conn, const char *path, const struct fp_names *names)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_lookup l = { .deadline_ms = 1000, .path = path, .path_len = strlen(path) };
    struct fp_writer w;
    struct fp_frame f;

    if (names != NULL)
        l.names = *names;
    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_lookup_encode(&w, 1, &l), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    memset(conn, 0, sizeof(*conn));
    ck_assert_int_eq((int)fp_dispatch_ops.question(dispatch, conn, &f), FP_OK);
}

static void ask(struct fp_connection *conn, const char *path)
{
    question(conn, path, NULL);
}

static void forget(const char *path, bool tree)
{
    fp_dispatch_forget(dispatch, path, strlen(path), tree);
}

static uint64_t ino_of(const char *path, char version)
{
    return kit_number(path, strlen(path), version);
}

/* "/" and "/a" are known and open: walks to what lies in them begin there. */
static void know_a(void)
{
    ask(&early, "/a");
    finish("/", "d");
    finish("/a", "dd");
    ck_assert(early.answered);
    ck_assert_uint_eq(n_jobs, 0);
}

/* ---- tests ---- */

START_TEST(walk_from_the_root)
{
    ask(&early, "/a");
    forget("/a", false);
    /* It waits for the walk to "/", and looks after the purge. */
    finish("/", "d");
    finish("/a", "dd");
    ck_assert_uint_gt(early.good_for_ms, 0);
    forget("/", true);
    ask(&early, "/");
    forget("/", true);
    ask(&late, "/");
    ck_assert_uint_eq(n_jobs, 2);
    finish("/", "d");
    ck_assert(early.answered);
    ck_assert_uint_eq(early.good_for_ms, 0);
    ck_assert(!late.answered);
    finish("/", "d1");
    ck_assert_uint_eq(late.last_ino, ino_of("/", '1'));
    ck_assert_uint_gt(late.good_for_ms, 0);
    ask(&other, "/");
    ck_assert_int_eq((int)other.source, FP_SOURCE_CACHE);
    ck_assert_uint_eq(other.last_ino, ino_of("/", '1'));
}
END_TEST

/* It is made once more, from "/", and whoever waits for it waits for that. */
START_TEST(walk_from_a_base)
{
    know_a();
    ask(&early, "/a/f");
    forget("/a/f", false);
    ask(&late, "/a/f");
    ck_assert_uint_eq(n_jobs, 2);
    finish("/a/f", "ddf");
    ck_assert(!early.answered);
    ck_assert(!late.answered);
    finish("/a/f", "ddf1");
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '1'));
    ck_assert(!early.answered);
    finish("/a/f", "ddf1");
    ck_assert_uint_eq(early.last_ino, ino_of("/a/f", '1'));
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

START_TEST(walk_of_what_lies_below)
{
    know_a();
    ask(&early, "/a/f");
    forget("/a", true);
    ask(&late, "/a/f");
    ask(&other, "/a");
    finish("/a/f", "ddf");
    ck_assert(!early.answered);
    finish("/a", "dd1");
    ck_assert_uint_eq(other.last_ino, ino_of("/a", '1'));
    finish("/a/f", "dd1f1");
    finish("/a/f", "dd1f1");
    ck_assert_uint_eq(early.last_ino, ino_of("/a/f", '1'));
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '1'));
}
END_TEST

START_TEST(walk_of_something_else)
{
    know_a();
    ask(&early, "/a/f");
    forget("/a/g", true);
    forget("/ab", true);
    forget("/a/f/x", false);
    ask(&late, "/a/f");
    ck_assert_uint_eq(n_jobs, 1);
}
END_TEST

/* Two walks end at a name above the forgotten path. */
START_TEST(absence_above)
{
    know_a();
    ask(&early, "/a/new");
    forget("/a/new/f", false);
    finish("/a/new", "dda");
    /* It has to look again. */
    ck_assert(!early.answered);
    finish("/a/new", "ddd");
    ck_assert_uint_eq(early.last_ino, ino_of("/a/new", '0'));
}
END_TEST

START_TEST(absence_above_found_by_a_walk_to_its_neighbour)
{
    ask(&early, "/a");
    finish("/", "d");
    ask(&other, "/b/c/f");        /* waits for a walk to /b/c, which is from "/" */
    forget("/b/c/g", false);
    finish("/b/c", "da");
    ask(&late, "/b/c/g");
    ck_assert(!late.answered);
}
END_TEST

START_TEST(presence_above_is_kept)
{
    ask(&other, "/b/c/f");
    forget("/b/c/g", false);
    finish("/b/c", "ddd");
    ask(&late, "/b/c");
    ck_assert_int_eq((int)late.source, FP_SOURCE_CACHE);
    finish("/b/c/f", "dddf");
    ck_assert(other.answered);
}
END_TEST

/* A directory's walk tells of its access files. */
START_TEST(access_file_of_a_directory_under_way)
{
    const struct fp_names names = { 1, { { ".htaccess", 9 } } };

    question(&early, "/", &names);
    forget("/.htaccess", false);
    question(&late, "/", &names);
    ck_assert_uint_eq(n_jobs, 2);
    forget("/other", false);
    question(&other, "/", &names);
    ck_assert_uint_eq(n_jobs, 2);
}
END_TEST

START_TEST(asker_leaves)
{
    ask(&early, "/");
    forget("/", true);
    fp_dispatch_ops.closed(dispatch, &early);
    finish("/", "d");
    ck_assert(!early.answered);
    ask(&late, "/");
    ck_assert(!late.answered);
}
END_TEST

/* Walks that nobody may join are freed at the end as others are. */
START_TEST(end_while_walks_are_under_way)
{
    know_a();
    ask(&early, "/a/f");
    forget("/a/f", false);
    ask(&late, "/a/f");
    fp_dispatch_ops.closed(dispatch, &early);
    fp_dispatch_ops.closed(dispatch, &late);
}
END_TEST

START_TEST(forgotten_twice)
{
    ask(&early, "/");
    forget("/", true);
    forget("/", true);
    ask(&late, "/");
    forget("/", true);
    finish("/", "d");
    finish("/", "d1");
    ck_assert_uint_eq(early.good_for_ms, 0);
    ck_assert_uint_eq(late.good_for_ms, 0);
    ask(&other, "/");
    ck_assert(!other.answered);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("dispatch");
    TCase *t = unit_add_case(s, "forgetting", setup, teardown, 0);

    tcase_add_test(t, walk_from_the_root);
    tcase_add_test(t, walk_from_a_base);
    tcase_add_test(t, walk_of_what_lies_below);
    tcase_add_test(t, walk_of_something_else);
    tcase_add_test(t, absence_above);
    tcase_add_test(t, absence_above_found_by_a_walk_to_its_neighbour);
    tcase_add_test(t, presence_above_is_kept);
    tcase_add_test(t, access_file_of_a_directory_under_way);
    tcase_add_test(t, asker_leaves);
    tcase_add_test(t, end_while_walks_are_under_way);
    tcase_add_test(t, forgotten_twice);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
