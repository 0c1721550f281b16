/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of walks under way when their path has to be forgotten, and when
 * their mount stops answering; and what is looked at again.  The dispatch and the cache are real; connections,
 * helpers and what tells of changes are played here, so that a walk ends when the
 * test says so.
 */
#include "config.h"
#include "dispatch.h"

#include <ev.h>

#include "cache.h"
#include "cache_kit.h"
#include "connection.h"
#include "control.h"
#include "due.h"
#include "fresh.h"
#include "helper.h"
#include "keyed_hash.h"
#include "observe.h"
#include "proto/clock.h"
#include "proto/fdio.h"
#include "proto/slots.h"
#include "task.h"
#include "trail.h"

#define TTL_MS   60000
#define MAX_JOBS 16

static struct fp_dispatch *dispatch;

/* ---- connections ---- */

struct fp_connection {
    void *slot;
    bool answered;
    fp_status status;            /* of the answer */
    enum fp_source source;
    bool again;
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
    conn->again = a->again;
    conn->n_steps = a->n_steps;
    conn->last_ino = last != NULL && last->status == FP_OK ? last->self.ino : 0;
}

void fp_connection_done(struct fp_connection *conn, uint64_t id, const struct fp_done *done)
{
    ck_assert_uint_eq(id, 1);
    ck_assert_int_eq((int)done->status, FP_OK);
    conn->answered = true;
}

void fp_control_answer(const struct fp_control_parts *parts, const struct fp_control *asked,
                       struct fp_done *done)
{
    ck_assert_ptr_null(parts);
    memset(done, 0, sizeof(*done));
    if (asked->op == FP_CONTROL_PURGE)
        done->count = fp_dispatch_forget(dispatch, asked->path, asked->path_len, false);
    else
        done->next = asked->from;
}

/* ---- what operators are told of ---- */

static unsigned observed, last_waited;

void fp_observe_use(struct fp_observer *o, const char *path, size_t len)
{
    (void)o;
    (void)path;
    (void)len;
}

void fp_observe_walk(struct fp_observer *o, const struct fp_observed *w)
{
    (void)o;
    observed++;
    last_waited = w->waited;
}

/* ---- nothing is watched; something else is mounted at /m ---- */

enum { ROOT_MOUNT = 1, OTHER_MOUNT = 2 };

/* What is told of "/", and of what lies below. */
static uint32_t root_ttl_ms = TTL_MS, ttl_ms = TTL_MS, stale_ms;
static bool from_root;      /* the walk that ends */

void fp_fresh_ask(struct fp_fresh *f)
{
    (void)f;
}

void fp_fresh_trust(struct fp_fresh *f, const struct fp_trail *trail, size_t n,
                    struct fp_trust *trust)
{
    (void)f;
    (void)trail;
    for (size_t i = 0; i < n; i++)
        trust[i] = from_root && i == 0
            ? (struct fp_trust){ .mount = ROOT_MOUNT, .ttl_ms = root_ttl_ms }
            : (struct fp_trust){ .mount = OTHER_MOUNT, .ttl_ms = ttl_ms, .stale_ms = stale_ms };
}

static bool is_below_m(const char *path, size_t len)
{
    return len >= 2 && memcmp(path, "/m", 2) == 0 && (len == 2 || path[2] == '/');
}

uint32_t fp_fresh_mount_of(const struct fp_fresh *f, const char *path, size_t len,
                           size_t *known_r)
{
    (void)f;
    *known_r = is_below_m(path, len) ? 2 : 1;
    return is_below_m(path, len) ? OTHER_MOUNT : ROOT_MOUNT;
}

const char *fp_fresh_mount_point(const struct fp_fresh *f, uint32_t mount)
{
    (void)f;
    return mount == OTHER_MOUNT ? "/m" : "/";
}

void fp_fresh_set_service(struct fp_fresh *f, bool (*is_out)(void *ctx, uint32_t mount),
                          void *ctx)
{
    (void)f;
    (void)is_out;
    (void)ctx;
}

/* What is looked at again at each beat. */
static bool (*beat)(void *ctx);
static void *beat_ctx;

void fp_fresh_set_beat(struct fp_fresh *f, bool (*on_beat)(void *ctx), void *ctx)
{
    (void)f;
    beat = on_beat;
    beat_ctx = ctx;
}

struct fp_fresh_counts fp_fresh_counts(const struct fp_fresh *f)
{
    (void)f;
    return (struct fp_fresh_counts){ .events = 0 };
}

/* ---- helpers ---- */

static struct job {
    uint32_t mount;
    const struct fp_task *task;
    fp_helper_done *done;
    void *ctx;
    uint64_t began_ms;
} jobs[MAX_JOBS];
static unsigned n_jobs;
static unsigned n_running = MAX_JOBS;   /* the first of them are with a helper, others wait */
static unsigned n_probes;
static bool have_spare = true;

fp_status fp_helpers_submit(struct fp_helpers *h, uint32_t mount, const struct fp_task *t,
                            int base, fp_helper_done *done, void *ctx)
{
    (void)h;
    (void)base;
    ck_assert_uint_lt(n_jobs, MAX_JOBS);
    jobs[n_jobs++] = (struct job){ mount, t, done, ctx, fp_now_ms() };
    return FP_OK;
}

fp_status fp_helpers_probe(struct fp_helpers *h, uint32_t mount, const struct fp_task *t,
                           fp_helper_done *done, void *ctx)
{
    n_probes++;
    return fp_helpers_submit(h, mount, t, -1, done, ctx);
}

static struct job take_job(unsigned i)
{
    struct job job = jobs[i];

    memmove(&jobs[i], &jobs[i + 1], (--n_jobs - i) * sizeof(jobs[0]));
    return job;
}

static void end_without(const struct job *job, fp_status why)
{
    struct fp_answer a;

    fp_answer_init(&a, why);
    job->done(job->ctx, &a, NULL, job->began_ms);
}

void fp_helpers_cancel(struct fp_helpers *h, uint32_t mount, fp_status why)
{
    unsigned i = n_running;

    (void)h;
    while (i < n_jobs) {
        struct job job;

        if (jobs[i].mount != mount) {
            i++;
            continue;
        }
        job = take_job(i);
        end_without(&job, why);
        i = n_running;
    }
}

struct fp_helpers_at fp_helpers_at(const struct fp_helpers *h, uint32_t mount)
{
    struct fp_helpers_at at = { .oldest_ms = 0 };

    (void)h;
    for (unsigned i = 0; i < n_running && i < n_jobs; i++) {
        if (jobs[i].mount == mount && at.oldest_ms == 0)
            at.oldest_ms = jobs[i].began_ms;
    }
    return at;
}

void fp_helpers_absolve(struct fp_helpers *h, uint32_t mount)
{
    (void)h;
    (void)mount;
}

bool fp_helpers_spare(const struct fp_helpers *h)
{
    (void)h;
    return have_spare;
}

static bool is_path(const struct fp_lookup *l, const char *path)
{
    return l->path_len == strlen(path) && memcmp(l->path, path, l->path_len) == 0;
}

/* The oldest walk of that path. */
static struct job take_walk(const char *path)
{
    unsigned i = 0;

    while (i < n_jobs && !is_path(&jobs[i].task->lookup, path))
        i++;
    ck_assert_msg(i < n_jobs, "no walk of %s", path);
    return take_job(i);
}

/* It was killed, for it hung. */
static void give_up(const char *path)
{
    const struct job job = take_walk(path);

    end_without(&job, FP_TIMEOUT);
}

/* It ends, having found what (cache_kit.h; the whole path, whatever it began at). */
static void finish(const char *path, const char *what)
{
    static struct fp_trail trail;
    struct fp_answer a;
    unsigned skip = 0;
    struct job job = take_walk(path);

    from_root = job.task->base_len == 0;
    fp_trail_init(&trail);
    kit_answer(&a, path, what);
    a.source = FP_SOURCE_HELPER;
    /* From a base: its own steps are not told. */
    while (skip < a.n_steps && a.steps[skip].end <= job.task->base_len)
        skip++;
    a.n_steps -= skip;
    memmove(a.steps, a.steps + skip, a.n_steps * sizeof(a.steps[0]));
    if (a.fd == -1 && fp_step_leads_on(&a.steps[a.n_steps - 1]))
        a.fd = kit_file('p');
    job.done(job.ctx, &a, &trail, job.began_ms);
    fp_close(&a.fd);
}

/* ---- the test's world ---- */

static struct ev_loop *loop;
static struct fp_cache *cache;
static struct fp_slots *slots;
static struct fp_connection early, other, late;
static int fds_at_rest;

static void setup(void)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, TTL_MS, TTL_MS };
    const struct fp_dispatch_settings settings = { .max_inflight = 2 * MAX_JOBS,
                                                   .mount_timeout_ms = TTL_MS };

    ck_assert_int_eq(fp_keyed_hash_init(), 0);
    loop = ev_loop_new(EVFLAG_AUTO);
    ck_assert_ptr_nonnull(loop);
    fds_at_rest = unit_open_fds();
    slots = fp_slots_create(100);
    ck_assert_ptr_nonnull(slots);
    cache = fp_cache_create(&limits, &(struct fp_cache_means){ .slots = slots,
                                                               .now_ms = fp_now_ms });
    dispatch = fp_dispatch_create(loop, cache, NULL, NULL, &settings);
    ck_assert_ptr_nonnull(dispatch);
}

static void teardown(void)
{
    fp_dispatch_destroy(&dispatch);
    fp_cache_destroy(&cache);
    fp_slots_destroy(&slots);
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
    ck_assert(early.again);
    forget("/", true);
    ask(&early, "/");
    forget("/", true);
    ask(&late, "/");
    ck_assert_uint_eq(n_jobs, 2);
    finish("/", "d");
    ck_assert(early.answered);
    ck_assert(!early.again);
    ck_assert(!late.answered);
    finish("/", "d1");
    ck_assert_uint_eq(late.last_ino, ino_of("/", '1'));
    ck_assert(late.again);
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
    ck_assert(!early.again);
    ck_assert(!late.again);
    ask(&other, "/");
    ck_assert(!other.answered);
}
END_TEST

/* ---- looking again ---- */

/* Half of this is a moment in which a test may do what it does. */
#define LIFE_MS 2000

/* All that is known now is past the half of its life. */
static void until_half(void)
{
    unit_sleep_ms(LIFE_MS / 2 + 50);
}

/* What is above is due a moment after what was found to be in use. */
static void some_beats(void)
{
    for (int i = 0; i < 4; i++) {
        beat(beat_ctx);
        unit_sleep_ms(FP_DUE_TICK_MS + 1);
    }
}

static void know_af(void)
{
    root_ttl_ms = ttl_ms = LIFE_MS;
    ask(&early, "/a/f");
    finish("/a", "dd");
    finish("/a/f", "ddf");
    ck_assert(early.answered);
}

START_TEST(what_is_in_use_is_looked_at_again)
{
    know_af();
    ask(&early, "/a/f");
    ck_assert_int_eq((int)early.source, FP_SOURCE_CACHE);
    beat(beat_ctx);
    ck_assert_uint_eq(n_jobs, 0);
    until_half();
    some_beats();
    /* The one of "/a" waits for that of "/", which is not open. */
    ck_assert_uint_eq(n_jobs, 2);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 3);
    finish("/", "d");
    some_beats();
    ck_assert_uint_eq(n_jobs, 2);
    ck_assert_uint_ge(fp_dispatch_counts(dispatch).refreshed, 2);
    finish("/a", "dd");
    finish("/a/f", "ddf");
    until_half();
    /* It would be over by now. */
    ask(&late, "/a/f");
    ck_assert_int_eq((int)late.source, FP_SOURCE_CACHE);
    ck_assert(late.again);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).hits, 2);
}
END_TEST

/* Who waited for the walk has not come back. */
START_TEST(what_was_asked_for_once_is_not)
{
    know_af();
    until_half();
    some_beats();
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

START_TEST(looks_wait_for_a_helper_to_spare)
{
    know_af();
    ask(&early, "/a/f");
    until_half();
    have_spare = false;
    some_beats();
    ck_assert_uint_eq(n_jobs, 0);
    have_spare = true;
    some_beats();
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 3);
}
END_TEST

/* An asker that comes meanwhile joins that look, and gets what it finds. */
/* Those that wait for a directory's walk are told of with it. */
START_TEST(who_waits_is_observed)
{
    observed = 0;
    ask(&early, "/a/f");
    ask(&late, "/a/f");
    ask(&other, "/a");
    finish("/a", "dd");
    ck_assert_uint_eq(observed, 1);
    ck_assert_uint_eq(last_waited, 3);
    finish("/a/f", "ddf");
    ck_assert_uint_eq(observed, 2);
    ck_assert_uint_eq(last_waited, 2);
}
END_TEST

START_TEST(a_look_is_joined)
{
    know_af();
    ask(&early, "/a/f");
    until_half();
    beat(beat_ctx);
    forget("/a/f", false);
    ask(&late, "/a/f");
    ck_assert(!late.answered);
    finish("/a/f", "ddf");
    finish("/a/f", "ddf1");
    ck_assert(late.answered);
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '1'));
}
END_TEST

/* ---- mounts ---- */

/* So long what is seen with a ttl_ms of SHORT_MS is believed. */
#define SHORT_MS 50

static void until_old(void)
{
    usleep((SHORT_MS + 10) * 1000);
}

static void trip_m(void)
{
    usleep(2000);
    ask(&other, "/m/hung");
    give_up("/m/hung");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 1);
}

static void know_root(void)
{
    ask(&early, "/");
    finish("/", "d");
}

START_TEST(given_up)
{
    know_root();
    ask(&early, "/m/f");
    ask(&late, "/m/g");
    give_up("/m");
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
    ck_assert_int_eq((int)late.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(n_jobs, 0);
    ask(&other, "/m/h");
    ck_assert_int_eq((int)other.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).trips, 1);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).unavailable, 3);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 0);
    /* The others go on. */
    ask(&other, "/a");
    finish("/a", "dd");
    ck_assert(other.again);
}
END_TEST

/* What hangs is not waited for, what waits for it neither, nor for a helper. */
START_TEST(walks_of_a_mount_that_trips)
{
    know_root();
    ask(&early, "/m/d/f");            /* waits for the walk to /m/d */
    ask(&other, "/m");
    n_running = 2;
    ask(&late, "/m/e/f");
    give_up("/m");
    ck_assert_int_eq((int)other.status, FP_UNAVAILABLE);
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
    ck_assert_int_eq((int)late.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, n_jobs);
    /* One comes back: so has the mount. */
    finish("/m/d", "ddd");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 0);
    n_running = MAX_JOBS;
    ask(&early, "/m/d/f");
    finish("/m/d/f", "dddf");
    ck_assert_int_eq((int)early.status, FP_OK);
}
END_TEST

START_TEST(one_file_that_hangs)
{
    know_root();
    ask(&early, "/m/f");
    finish("/m", "dd");
    ask(&other, "/m/g");
    finish("/m/g", "ddf");
    give_up("/m/f");
    ck_assert_int_eq((int)early.status, FP_TIMEOUT);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 0);
}
END_TEST

static void know_mf(void)
{
    ask(&early, "/m/f");
    finish("/m", "dd");
    finish("/m/f", "ddf");
    ck_assert(early.answered);
}

START_TEST(stale_where_it_is_allowed)
{
    know_root();
    ttl_ms = SHORT_MS;
    stale_ms = TTL_MS;
    know_mf();
    until_old();
    ask(&early, "/m/f");
    give_up("/m");
    ck_assert_int_eq((int)early.source, FP_SOURCE_STALE);
    ck_assert(!early.again);
    ask(&late, "/m/f");
    ck_assert_int_eq((int)late.source, FP_SOURCE_STALE);
    ck_assert_uint_eq(late.last_ino, ino_of("/m/f", '0'));
    ask(&other, "/m/unknown");
    ck_assert_int_eq((int)other.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* What is above the mount is looked at again first, for it is on another one. */
START_TEST(stale_below_what_lives)
{
    root_ttl_ms = ttl_ms = SHORT_MS;
    stale_ms = TTL_MS;
    know_root();
    know_mf();
    trip_m();
    until_old();
    ask(&early, "/m/f");
    ask(&late, "/m/f");
    ck_assert(!early.answered);
    ck_assert(!late.answered);
    finish("/", "d");
    ck_assert_int_eq((int)early.source, FP_SOURCE_STALE);
    ck_assert_int_eq((int)late.source, FP_SOURCE_STALE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 0);
}
END_TEST

START_TEST(stale_is_not_allowed)
{
    know_root();
    ttl_ms = SHORT_MS;
    know_mf();
    trip_m();
    until_old();
    ask(&early, "/m/f");
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
}
END_TEST

/* What is still believed is told, and not looked at again. */
START_TEST(hits_of_a_mount_out_of_service)
{
    know_root();
    ttl_ms = 2000;
    know_mf();
    trip_m();
    usleep(1100000);
    ask(&late, "/m/f");
    ck_assert_int_eq((int)late.source, FP_SOURCE_CACHE);
    beat(beat_ctx);
    ck_assert_uint_eq(n_jobs, 0);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 0);
}
END_TEST

/* By the timer alone: it trips, a probe goes out, and ends it. */
START_TEST(probe)
{
    const struct fp_dispatch_settings settings = { MAX_JOBS, 100, NULL };

    fp_dispatch_set(dispatch, &settings);
    know_root();
    ask(&early, "/m/f");
    while (n_probes == 0)
        ev_run(loop, EVRUN_ONCE);
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
    give_up("/m");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 1);
    finish("/m", "dd");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 0);
    ask(&late, "/m/f");
    ck_assert(!late.answered);
}
END_TEST

/* One mount may have half of all walks. */
START_TEST(half_is_left_for_others)
{
    const struct fp_dispatch_settings settings = { MAX_JOBS, 2000, NULL };
    static struct fp_connection many[MAX_JOBS];
    char path[16];

    fp_dispatch_set(dispatch, &settings);
    know_root();
    ask(&early, "/m");
    for (unsigned i = 0; i < MAX_JOBS - 1; i++) {
        snprintf(path, sizeof(path), "/m/%u", i);
        ask(&many[i], path);
    }
    ck_assert_int_eq((int)many[MAX_JOBS - 2].status, FP_BUSY);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, MAX_JOBS / 2);
    ask(&other, "/a");
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
    t = unit_add_case(s, "looking_again", setup, teardown, 20);
    tcase_add_test(t, what_is_in_use_is_looked_at_again);
    tcase_add_test(t, what_was_asked_for_once_is_not);
    tcase_add_test(t, looks_wait_for_a_helper_to_spare);
    tcase_add_test(t, a_look_is_joined);
    tcase_add_test(t, who_waits_is_observed);
    t = unit_add_case(s, "mounts", setup, teardown, 20);
    tcase_add_test(t, given_up);
    tcase_add_test(t, walks_of_a_mount_that_trips);
    tcase_add_test(t, one_file_that_hangs);
    tcase_add_test(t, stale_where_it_is_allowed);
    tcase_add_test(t, stale_below_what_lives);
    tcase_add_test(t, stale_is_not_allowed);
    tcase_add_test(t, hits_of_a_mount_out_of_service);
    tcase_add_test(t, probe);
    tcase_add_test(t, half_is_left_for_others);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
