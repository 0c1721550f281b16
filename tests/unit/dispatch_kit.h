/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world for the dispatch. The cache is real. Connections, workers, reports of changes and the
 * clock are played here, so that a walk ends and time passes when the test wants it. For one source
 * file of a program, linked with --wrap=clock_gettime: it defines the functions that the dispatch
 * calls.
 */
#ifndef FP_DISPATCH_KIT_H
#define FP_DISPATCH_KIT_H

#include <ev.h>

#include "admin/control.h"
#include "base/clock.h"
#include "cache/cache.h"
#include "cache_kit.h"
#include "changes/coherence.h"
#include "changes/mounts.h"
#include "hash_kit.h"
#include "ipc/connection.h"
#include "lookup/dispatch.h"
#include "lookup/observe.h"
#include "lookup/router.h"
#include "played_clock.h"
#include "shared/lease_table.h"
#include "shared/tables.h"
#include "wire/packet.h"
#include "wire/task.h"
#include "wire/walk_result.h"
#include "workers/worker_pool.h"

#define TTL_MS   60000
#define MAX_JOBS 64
#define MOUNT_MS 1 /* a mount may be silent for so long */

static struct fp_dispatch *dispatch;
static struct fp_router router;
static struct fp_observer observer;

/* ---- connections ---- */

struct fp_connection {
    void *slot;
    bool answered, passed;
    fp_status status; /* of the answer */
    enum fp_source source;
    bool leasable;
    unsigned n_steps;
    uint64_t last_ino; /* of the answer's last step; 0: it was not there */
};

/* Sees each answer; NULL: nothing more than what the connection keeps. */
static void (*on_answer)(struct fp_connection *conn, const struct fp_answer *a);

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
    conn->leasable = a->leasable;
    conn->n_steps = a->n_steps;
    conn->last_ino = last != NULL && last->status == FP_OK ? last->self.ino : 0;
    if (on_answer != NULL)
        on_answer(conn, a);
}

void fp_connection_pass(struct fp_connection *conn)
{
    ck_assert(!conn->answered);
    conn->passed = true;
}

void fp_connection_refuse(struct fp_connection *conn, uint64_t id, fp_status why)
{
    struct fp_answer a;

    fp_answer_init(&a, why);
    fp_connection_answer(conn, id, &a);
}

void fp_connection_reply(struct fp_connection *conn, uint64_t id, const struct fp_reply *done)
{
    ck_assert_uint_eq(id, 1);
    ck_assert_int_eq((int)done->status, FP_OK);
    conn->answered = true;
}

void fp_control_answer(const struct fp_control_deps *parts, const struct fp_control *asked,
                       struct fp_reply *done)
{
    ck_assert_ptr_null(parts);
    memset(done, 0, sizeof(*done));
    if (asked->op == FP_CONTROL_PURGE)
        done->count = fp_dispatch_forget(dispatch, asked->path, asked->path_len, false);
    else
        done->next = asked->from;
}

/* ---- reports to operators ---- */

static unsigned observed, last_waited;

void fp_observe_walk(struct fp_observer *o, const struct fp_observed *w)
{
    (void)o;
    observed++;
    last_waited = w->waited;
}

/* ---- nothing is watched; something else is mounted at /m ---- */

enum { ROOT_MOUNT = 1, OTHER_MOUNT = 2 };

/* The settings for "/", and for everything below. */
static uint32_t root_ttl_ms = TTL_MS, ttl_ms = TTL_MS, stale_ms;
static bool from_root;   /* the walk that ends */
static bool all_watched; /* and all that it finds */
static bool all_remote;  /* a server has it */

void fp_coherence_catch_up(struct fp_coherence *f)
{
    (void)f;
}

void fp_coherence_validity(struct fp_coherence *f, const struct fp_walk_result *result, size_t n,
                           struct fp_validity *trust)
{
    (void)f;
    (void)result;
    for (size_t i = 0; i < n; i++)
        trust[i] = from_root && i == 0
                       ? (struct fp_validity){ .mount = ROOT_MOUNT, .ttl_ms = root_ttl_ms }
                       : (struct fp_validity){ .mount = OTHER_MOUNT, .ttl_ms = ttl_ms, .stale_ms = stale_ms };
    for (size_t i = 0; i < n; i++) {
        trust[i].traits.remote = all_remote;
        trust[i].traits.verdict = all_watched ? FP_REPORTED : FP_TTL_UNWATCHED;
    }
}

static inline bool is_below_m(const char *path, size_t len)
{
    return len >= 2 && memcmp(path, "/m", 2) == 0 && (len == 2 || path[2] == '/');
}

static const struct fp_mount mounts[] = { { .id = ROOT_MOUNT, .point = "/", .traits = { .local = true } },
                                          { .id = OTHER_MOUNT, .point = "/m" } };
static bool mounts_are_unknown;

const struct fp_mount *fp_mounts_of_path(const struct fp_mounts *m, const char *path, size_t len)
{
    (void)m;
    return mounts_are_unknown ? NULL : &mounts[is_below_m(path, len)];
}

const struct fp_mount *fp_mounts_find(const struct fp_mounts *m, uint32_t id)
{
    (void)m;
    return mounts_are_unknown ? NULL : &mounts[id == OTHER_MOUNT];
}

/* The refreshes at each heartbeat. */
static bool (*beat)(void *ctx);
static void *beat_ctx;

void fp_coherence_set_beat(struct fp_coherence *f, bool (*on_beat)(void *ctx), void *ctx)
{
    (void)f;
    beat = on_beat;
    beat_ctx = ctx;
}

struct fp_coherence_counts fp_coherence_counts(const struct fp_coherence *f)
{
    (void)f;
    return (struct fp_coherence_counts){ .events = 0 };
}

/* ---- workers ---- */

static struct job {
    uint32_t mount;
    const struct fp_task *task;
    fp_worker_done *done;
    void *ctx;
    uint64_t began_ms;
} jobs[MAX_JOBS];
static unsigned n_jobs;
static unsigned n_running; /* the first of them are with a worker, others wait */
static unsigned n_probes;
static bool have_spare = true;
static fp_status all_places_hang; /* FP_UNAVAILABLE: killed workers have all places of OTHER_MOUNT */
static const char *the_roots[2]; /* none, unless a test sets the first */

fp_status fp_worker_pool_submit(struct fp_worker_pool *pool, uint32_t mount, const struct fp_task *t,
                                int base, fp_worker_done *done, void *ctx)
{
    (void)pool;
    (void)base;
    if (mount == OTHER_MOUNT && all_places_hang != FP_OK)
        return all_places_hang;
    ck_assert_uint_lt(n_jobs, MAX_JOBS);
    jobs[n_jobs++] = (struct job){ mount, t, done, ctx, fp_now_ms() };
    return FP_OK;
}

fp_status fp_worker_pool_probe(struct fp_worker_pool *pool, uint32_t mount, const struct fp_task *t,
                               fp_worker_done *done, void *ctx)
{
    n_probes++;
    return fp_worker_pool_submit(pool, mount, t, -1, done, ctx);
}

static inline struct job take_job(unsigned i)
{
    struct job job = jobs[i];

    memmove(&jobs[i], &jobs[i + 1], (--n_jobs - i) * sizeof(jobs[0]));
    return job;
}

static inline void end_without(const struct job *job, fp_status why)
{
    job->done(job->ctx, why, NULL, NULL, job->began_ms);
}

void fp_worker_pool_cancel(struct fp_worker_pool *pool, uint32_t mount, fp_status why)
{
    unsigned i = n_running;

    (void)pool;
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

struct fp_mount_usage fp_mount_usage(const struct fp_worker_pool *pool, uint32_t mount)
{
    struct fp_mount_usage at = { .oldest_ms = 0 };

    (void)pool;
    for (unsigned i = 0; i < n_running && i < n_jobs; i++) {
        if (jobs[i].mount == mount && at.oldest_ms == 0)
            at.oldest_ms = jobs[i].began_ms;
    }
    return at;
}

static unsigned n_absolved;

void fp_worker_pool_absolve(struct fp_worker_pool *pool, uint32_t mount)
{
    (void)pool;
    (void)mount;
    n_absolved++;
}

/* The mount that a job's walk has reached, before the timer looks; 0: the one it was submitted for. */
static uint32_t strayed_to;

void fp_worker_pool_track(struct fp_worker_pool *pool, fp_worker_strayed *strayed, void *strayed_ctx)
{
    (void)pool;
    for (unsigned i = 0; strayed_to != 0 && i < n_jobs; i++) {
        if (jobs[i].mount != strayed_to && strayed(strayed_ctx, jobs[i].ctx, jobs[i].mount, strayed_to))
            jobs[i].mount = strayed_to;
    }
    strayed_to = 0;
}

static unsigned replaced;

void fp_worker_pool_make_room(struct fp_worker_pool *pool, uint32_t mount, bool out)
{
    (void)pool;
    (void)mount;
    replaced += out;
}

/* A walk ends when the test says so. */
void fp_worker_pool_hear(struct fp_worker_pool *pool)
{
    (void)pool;
}

static size_t n_queued; /* walks that wait for the only worker */

bool fp_worker_pool_spare(const struct fp_worker_pool *pool, uint32_t mount, unsigned each)
{
    (void)pool;
    (void)mount;
    return have_spare && n_queued < each;
}

struct fp_worker_pool_counts fp_worker_pool_counts(const struct fp_worker_pool *pool)
{
    (void)pool;
    return (struct fp_worker_pool_counts){ .alive = 1, .queued = n_queued };
}

static inline bool is_path(const struct fp_lookup *l, const char *path)
{
    return l->path_len == strlen(path) && memcmp(l->path, path, l->path_len) == 0;
}

/* The oldest walk of that path. */
static inline struct job take_walk(const char *path)
{
    unsigned i = 0;

    while (i < n_jobs && !is_path(&jobs[i].task->lookup, path))
        i++;
    ck_assert_msg(i < n_jobs, "no walk of %s", path);
    return take_job(i);
}

/* It was killed, for it hung. */
static inline void give_up(const char *path)
{
    const struct job job = take_walk(path);

    let_pass(MOUNT_MS);
    end_without(&job, FP_TIMEOUT);
}

/* It ends with the result `what` (cache_kit.h) for the whole path, whatever it began at. */
static inline void finish(const char *path, const char *what)
{
    static struct fp_walk_result result;
    struct fp_answer a;
    unsigned skip = 0;
    struct job job = take_walk(path);

    from_root = job.task->base_len == 0;
    fp_walk_result_init(&result);
    kit_answer(&a, path, what);
    a.source = FP_SOURCE_WORKER;
    /* It has found none of the access files. */
    a.n_names = job.task->names.n;
    for (unsigned i = 0; i < a.n_steps * a.n_names; i++)
        a.steps[i / a.n_names].access[i % a.n_names].status = FP_ABSENT;
    /* From a base: the base's own steps are not in the result. */
    while (skip < a.n_steps && a.steps[skip].end <= job.task->base_len)
        skip++;
    a.n_steps -= skip;
    memmove(a.steps, a.steps + skip, a.n_steps * sizeof(a.steps[0]));
    for (unsigned i = 0; i < a.n_steps && all_watched; i++)
        result.step_watches[i].watch = (struct fp_watch_key){ .len = 2, .bytes = { 1, (uint8_t)(skip + i) } };
    if (a.fd == -1 && fp_step_is_dir(&a.steps[a.n_steps - 1]))
        a.fd = kit_file('p');
    if (job.task->looks_only && !fp_step_is_dir(&a.steps[a.n_steps - 1])) {
        fp_close(&a.fd);
        a.unchanged = a.readable = true;
    }
    job.done(job.ctx, FP_OK, &a, &result, job.began_ms);
    fp_close(&a.fd);
}

/* ---- the test's world ---- */

static struct ev_loop *loop;
static struct fp_cache *cache;
static struct fp_tables tables;
static struct fp_lease_table *leases;
static struct fp_connection early __attribute__((unused)), other __attribute__((unused)),
    late __attribute__((unused));
static int fds_at_rest;

static inline void setup(void)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, TTL_MS };
    const struct fp_dispatch_settings settings = { .max_inflight = 2 * MAX_JOBS,
                                                   .mount_timeout_ms = MOUNT_MS,
                                                   .roots = the_roots };

    unit_init_hash();
    n_running = MAX_JOBS;
    loop = ev_loop_new(EVFLAG_AUTO);
    ck_assert_ptr_nonnull(loop);
    fds_at_rest = unit_open_fds();
    ck_assert(fp_tables_create(&tables, &(struct fp_tables_sizes){ 100, 1, 1 }));
    leases = tables.leases;
    cache = fp_cache_create(
        &limits, &(struct fp_cache_deps){ .lease_table = leases, .verify = cache_verify, .now_ms = fp_now_ms });
    dispatch = fp_dispatch_create(loop, cache, NULL, NULL, NULL, &tables, &observer, &settings);
    ck_assert_ptr_nonnull(dispatch);
    router.dispatch = dispatch;
}

static inline void teardown(void)
{
    fp_dispatch_destroy(&dispatch);
    fp_cache_destroy(&cache);
    fp_tables_destroy(&tables);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
    ev_loop_destroy(loop);
}

static inline void ask_lookup(struct fp_connection *conn, struct fp_lookup l)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_writer w;
    struct fp_frame f;

    l.deadline_ms = 1000;
    l.path_len = strlen(l.path);
    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_lookup_encode(&w, 1, &l), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    memset(conn, 0, sizeof(*conn));
    ck_assert_int_eq((int)fp_router_ops.question(&router, conn, &f), FP_OK);
}

static inline void ask(struct fp_connection *conn, const char *path)
{
    ask_lookup(conn, (struct fp_lookup){ .path = path });
}

/* Leaves a hint. */
static inline void name_path(struct fp_connection *conn, const char *path)
{
    ask_lookup(conn, (struct fp_lookup){ .path = path, .hint = true });
    ck_assert(conn->passed);
}

static inline void ask_fresh(struct fp_connection *conn, const char *path)
{
    ask_lookup(conn, (struct fp_lookup){ .path = path, .fresh = true });
}

static inline void forget(const char *path, bool tree)
{
    fp_dispatch_forget(dispatch, path, strlen(path), tree);
}

static inline uint64_t ino_of(const char *path, char version)
{
    return kit_number(path, strlen(path), version);
}

#endif
