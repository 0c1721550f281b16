/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/worker_pool.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/turn.h"
#include "privsep/monitor.h"
#include "privsep/spawner.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/task.h"
#include "wire/walk_result.h"
#include "wire/wire.h"
#include "workers/mount_queues.h"
#include "workers/whereabouts.h"

#define ENDED_A_TURN     64  /* walks that wait, where no worker is left */
#define DYING_S          0.1 /* a killed worker that lives on for so long hangs */
#define RESPAWN_SECONDS  1.0 /* after a worker could not be made */
#define BIRTH_SECONDS    2.0 /* the spawner answers sooner, or it hangs, or was stopped */
#define LATE_BIRTHS      3u  /* so many times that long; then another one takes its place */

struct job {
    struct fp_waiting waiting; /* first: a job is what waits */
    fp_worker_done *done;      /* NULL: it was answered, and the worker closes the file */
    void *ctx;
    uint64_t began_ms;
    uint64_t there_ms;          /* when it began at the mount that it waits for */
    const struct fp_task *task; /* until it is answered */
    int base;
};

struct worker {
    struct fp_worker_pool *pool;
    pid_t pid;
    int sock;        /* -1: none at present */
    struct job *job; /* NULL: idle */
    uint64_t id;     /* of the job's frame, and of its answer's */
    ev_io readable;
    ev_timer deadline;
};

/* A worker that was killed and is not dead yet. */
struct dying {
    LIST_ENTRY(dying) link;
    struct fp_worker_pool *pool;
    struct fp_mount_queue *queue; /* its limit counts this worker; NULL: no more */
    int sock;                     /* its other end closes when it dies */
    ev_io closed;
};

struct fp_worker_pool {
    struct ev_loop *loop;
    struct fp_worker_pool_settings settings;
    struct fp_spawner spawner;
    ev_io born;
    ev_timer respawn;
    unsigned missing;  /* to be asked for once the spawner can again */
    unsigned expected; /* asked for, and neither made nor refused yet */
    ev_timer birth;    /* while some are expected */
    unsigned late;     /* how often it ran out since the spawner last answered */
    bool barren;       /* the last attempt to make a worker failed */
    ev_timer hopeless; /* ends walks that wait in vain, in a turn of its own */
    struct fp_mount_queues queues;
    LIST_HEAD(, dying) dying;
    struct fp_worker_pool_counts counts;
    uint64_t last_id;
    struct fp_answer answer; /* the last one of a worker, until it is passed on */
    struct fp_walk_result result;
    struct worker workers[];
};

static void fail(struct job *j, fp_status why)
{
    if (j->done != NULL)
        j->done(j->ctx, why, NULL, NULL, j->began_ms);
    free(j);
}

/* Nobody could do a walk, and it is unknown when that ends. */
static bool is_deserted(const struct fp_worker_pool *pool)
{
    return pool->barren && pool->counts.alive == 0;
}

static void end_hopeless_after(struct fp_worker_pool *pool, double seconds)
{
    if (seconds > 0. && ev_is_active(&pool->hopeless))
        return;
    ev_timer_stop(pool->loop, &pool->hopeless);
    ev_timer_set(&pool->hopeless, seconds, 0.);
    ev_timer_start(pool->loop, &pool->hopeless);
}

/* Walks do not wait where nobody can do them: stock is faster.  They would wait for other workers, or for killed
 * ones to die, nobody knows how long. */
static void on_hopeless(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_worker_pool *pool = timer->data;
    const bool deserted = is_deserted(pool);

    fp_turn_work(FP_WORK_WORKER);
    (void)loop;
    (void)events;
    for (int n = 0; n < ENDED_A_TURN; n++) {
        struct fp_waiting *w = fp_mount_queues_cancel_hopeless(&pool->queues, deserted);

        if (w == NULL)
            return;
        fail((struct job *)w, deserted ? FP_FAILED : FP_UNAVAILABLE);
    }
    end_hopeless_after(pool, 0.);
}

/* The owner of a walk may be submitting it just now, so its end comes later. */
static void end_if_deserted(struct fp_worker_pool *pool)
{
    if (is_deserted(pool))
        end_hopeless_after(pool, 0.);
}

/* n workers could not be made. */
static void try_again_later(struct fp_worker_pool *pool, unsigned n)
{
    pool->missing += n;
    pool->barren = true;
    ev_timer_again(pool->loop, &pool->respawn);
    end_if_deserted(pool);
}

static void ask_for_one(struct fp_worker_pool *pool)
{
    if (fp_spawner_ask(&pool->spawner) != FP_OK) {
        try_again_later(pool, 1);
        return;
    }
    pool->expected++;
    if (!ev_is_active(&pool->birth))
        ev_timer_again(pool->loop, &pool->birth);
}

/* The spawner has answered for that many. */
static void expect_fewer(struct fp_worker_pool *pool, unsigned n)
{
    pool->expected -= n <= pool->expected ? n : pool->expected;
    pool->late = 0;
    if (pool->expected == 0)
        ev_timer_stop(pool->loop, &pool->birth);
    else
        ev_timer_again(pool->loop, &pool->birth);
}

static void run_queue(struct fp_worker_pool *pool);

/* The killed worker counts no longer against its mount's limit. */
static void discharge(struct dying *g)
{
    if (g->queue != NULL)
        fp_mount_queues_dead(&g->pool->queues, g->queue);
    g->queue = NULL;
}

static void bury(struct dying *g)
{
    discharge(g);
    ev_io_stop(g->pool->loop, &g->closed);
    LIST_REMOVE(g, link);
    fp_close(&g->sock);
    free(g);
}

static void on_dead(struct ev_loop *loop, ev_io *w, int events)
{
    struct dying *g = w->data;
    struct fp_worker_pool *pool = g->pool;

    fp_turn_work(FP_WORK_WORKER);
    (void)loop;
    (void)events;
    bury(g);
    run_queue(pool);
}

/* Takes the socket of a worker that was killed over its job. */
static void watch_dying(struct worker *p, struct job *j)
{
    struct fp_worker_pool *pool = p->pool;
    struct dying *g = fp_memory_take_zeroed(1, sizeof(*g));

    if (g == NULL) {
        fp_mount_queues_left(&pool->queues, &j->waiting);
        return;
    }
    g->pool = pool;
    g->queue = fp_mount_queues_dying(&pool->queues, &j->waiting);
    g->sock = p->sock;
    p->sock = -1;
    ev_io_init(&g->closed, on_dead, g->sock, EV_READ);
    g->closed.data = g;
    ev_io_start(pool->loop, &g->closed);
    LIST_INSERT_HEAD(&pool->dying, g, link);
    end_hopeless_after(pool, DYING_S);
}

void fp_worker_pool_absolve(struct fp_worker_pool *pool, uint32_t mount)
{
    struct dying *g;

    LIST_FOREACH(g, &pool->dying, link) {
        if (g->queue != NULL && fp_mount_queue_mount(g->queue) == mount)
            discharge(g);
    }
    run_queue(pool);
}

static void lose(struct worker *p, fp_status why)
{
    struct fp_worker_pool *pool = p->pool;
    struct job *j = p->job;

    ev_io_stop(pool->loop, &p->readable);
    ev_timer_stop(pool->loop, &p->deadline);
    fp_spawner_kill(&pool->spawner, p->pid);
    if (j != NULL)
        watch_dying(p, j);
    fp_close(&p->sock);
    p->job = NULL;
    pool->counts.alive--;
    ask_for_one(pool);
    if (j != NULL) {
        pool->counts.running--;
        fail(j, why);
    }
}

static fp_status send_job(struct worker *p, const struct job *j)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_writer w;
    fp_status st;

    fp_writer_init(&w, buf, sizeof(buf));
    p->id = ++p->pool->last_id;
    st = fp_task_encode(&w, p->id, j->task);
    return st == FP_OK ? fp_send_packet(p->sock, buf, w.len, j->base) : st;
}

static void start(struct worker *p, struct job *j)
{
    struct fp_worker_pool *pool = p->pool;

    p->job = j;
    j->began_ms = j->there_ms = fp_now_ms();
    pool->counts.running++;
    pool->counts.walks++;
    ev_timer_set(&p->deadline,
                 (j->waiting.probe ? pool->settings.probe_timeout_ms : pool->settings.timeout_ms) / 1e3, 0.);
    ev_timer_start(pool->loop, &p->deadline);
    if (send_job(p, j) == FP_OK)
        return;
    /* The worker has died unnoticed: another one gets the job. */
    p->job = NULL;
    pool->counts.running--;
    pool->counts.deaths++;
    lose(p, FP_FAILED);
    fp_mount_queues_put_back(&pool->queues, &j->waiting);
    end_if_deserted(pool);
}

/* A worker without a job: one that lives, or the place of one that does not.  NULL: none. */
static struct worker *find_idle(struct fp_worker_pool *pool, bool alive)
{
    for (unsigned i = 0; i < pool->settings.workers; i++) {
        if ((pool->workers[i].sock != -1) == alive && pool->workers[i].job == NULL)
            return &pool->workers[i];
    }
    return NULL;
}

bool fp_worker_pool_spare(const struct fp_worker_pool *pool, uint32_t mount, unsigned each)
{
    return fp_mount_queues_waiting(&pool->queues, mount) < each * (size_t)pool->counts.alive;
}

static void run_queue(struct fp_worker_pool *pool)
{
    struct fp_waiting *next;
    struct worker *p;

    while ((p = find_idle(pool, true)) != NULL && (next = fp_mount_queues_take(&pool->queues)) != NULL)
        start(p, (struct job *)next);
}

/* True for a CLOSED frame; id: of that number, NULL: of any. */
static bool is_closed(const uint8_t *buf, size_t len, const uint64_t *id)
{
    struct fp_frame f;

    return fp_frame_parse(&f, buf, len) == FP_OK && f.type == FP_FRAME_CLOSED && fp_reader_done(&f.body)
           && (id == NULL || f.id == *id);
}

static fp_status read_closed(const struct worker *p)
{
    uint8_t buf[FP_FRAME_HEADER];
    size_t len = 0;
    fp_status st = fp_recv_packet(p->sock, buf, sizeof(buf), &len, NULL);

    if (st != FP_OK)
        return st;
    return is_closed(buf, len, &p->id) ? FP_OK : FP_PROTOCOL;
}

/* Reads the answer to p's job.  FP_OK, or why this worker is of no more use. */
static fp_status read_answer(const struct worker *p)
{
    struct fp_answer *a = &p->pool->answer;
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_frame f;
    size_t len = 0;
    int fd = -1;
    fp_status st = fp_recv_packet(p->sock, buf, sizeof(buf), &len, &fd);

    if (st == FP_LOSTFD && p->job != NULL) {
        fp_answer_init(a, FP_BUSY);
        fp_walk_result_init(&p->pool->result);
        return FP_OK;
    }
    if (st != FP_OK)
        return st;
    /* A CLOSED may come after an answer whose descriptor was lost. */
    if (is_closed(buf, len, NULL) && fd == -1)
        return FP_AGAIN;
    if (p->job == NULL || fp_frame_parse(&f, buf, len) != FP_OK || f.type != FP_FRAME_ANSWER || f.id != p->id
        || fp_result_decode(&f.body, p->job->task, fd, a, &p->pool->result) != FP_OK
        || !fp_answer_is_sealed(a)) {
        fp_close_file(&fd, p->job != NULL ? fp_mount_queue_mount(p->job->waiting.queue) : 0);
        return FP_PROTOCOL;
    }
    return FP_OK;
}

/* p's job is done, and gone. */
static void end_job(struct worker *p)
{
    struct fp_worker_pool *pool = p->pool;
    struct job *j = p->job;

    ev_timer_stop(pool->loop, &p->deadline);
    fp_mount_queues_left(&pool->queues, &j->waiting);
    p->job = NULL;
    pool->counts.running--;
    run_queue(pool);
    free(j);
}

/* For messages: the path that the job's worker looks at, or words in its place. */
static const char *path_of(const struct job *j, int *len_r)
{
    const char *path = j == NULL ? "nothing" : j->done == NULL ? "a file that it closed" : NULL;

    *len_r = path != NULL ? (int)strlen(path) : (int)j->task->lookup.path_len;
    return path != NULL ? path : j->task->lookup.path;
}

/* The worker has ended, or what it says cannot be read. */
static void replace(struct worker *p, fp_status why)
{
    int len;
    const char *path = path_of(p->job, &len);

    p->pool->counts.deaths++;
    fp_log(FP_LOG_WARNING, 20, "worker %d is gone (%s) while it looked at %.*s: replacing it", (int)p->pid,
           fp_status_text(why), len, path);
    lose(p, FP_FAILED);
}

/* Passes the answer out.  The worker goes on before that, unless it still has to close the file. */
static void pass_answer(struct worker *p)
{
    struct fp_worker_pool *pool = p->pool;
    struct fp_answer *a = &pool->answer;
    const struct job j = *p->job;
    const uint32_t mount = fp_mount_queue_mount(j.waiting.queue);

    p->job->done = NULL;
    if (!fp_result_is_closed_later(a))
        end_job(p);
    j.done(j.ctx, a->status, a->status == FP_OK ? a : NULL, &pool->result, j.began_ms);
    fp_close_file(&a->fd, mount);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct worker *p = w->data;
    const bool closing = p->job != NULL && p->job->done == NULL;
    const fp_status st = closing ? read_closed(p) : read_answer(p);

    fp_turn_work(FP_WORK_RESULT);
    (void)loop;
    (void)events;
    if (st == FP_AGAIN)
        return;
    if (st != FP_OK)
        replace(p, st);
    else if (closing)
        end_job(p);
    else
        pass_answer(p);
}

void fp_worker_pool_hear(struct fp_worker_pool *pool)
{
    for (unsigned i = 0; i < pool->settings.workers; i++) {
        if (pool->workers[i].sock != -1 && pool->workers[i].job != NULL)
            on_readable(pool->loop, &pool->workers[i].readable, 0);
    }
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    struct worker *p = w->data;
    const uint64_t late = p->id;
    const char *path;
    int path_len;

    fp_turn_work(FP_WORK_WORKER);
    (void)events;
    /* The worker may have answered in time, and closed the file, while the whole daemon rested. */
    on_readable(loop, &p->readable, 0);
    if (p->job != NULL && p->job->done == NULL && p->id == late)
        on_readable(loop, &p->readable, 0);
    if (p->job == NULL || p->id != late)
        return;
    path = path_of(p->job, &path_len);
    p->pool->counts.timeouts++;
    fp_log(FP_LOG_WARNING, 21,
           "the file system did not answer for %.*s within %u ms: "
           "killing worker %d; is its mount dead?",
           path_len, path, (unsigned)(fp_now_ms() - p->job->began_ms), (int)p->pid);
    lose(p, FP_TIMEOUT);
}

static void enlist(struct fp_worker_pool *pool, pid_t pid, int sock)
{
    struct worker *p = find_idle(pool, false);

    if (p == NULL) {
        fp_close(&sock);
        fp_spawner_kill(&pool->spawner, pid);
        return;
    }
    p->pid = pid;
    p->sock = sock;
    ev_io_set(&p->readable, sock, EV_READ);
    ev_io_start(pool->loop, &p->readable);
    pool->barren = false;
    pool->counts.alive++;
    run_queue(pool);
}

static bool start_spawner(struct fp_worker_pool *pool)
{
    pool->spawner.sock = fp_monitor_ask(pool->settings.monitor, FP_MONITOR_SPAWNER);
    if (pool->spawner.sock == -1) {
        fp_log(FP_LOG_ERROR, 22, "cannot start the process that makes workers: %m: trying again");
        return false;
    }
    ev_io_set(&pool->born, pool->spawner.sock, EV_READ);
    ev_io_start(pool->loop, &pool->born);
    return true;
}

/* Asks for the workers that are missing. */
static void make_missing(struct fp_worker_pool *pool)
{
    unsigned n = pool->missing;

    pool->missing = 0;
    if (pool->spawner.sock == -1 && !start_spawner(pool)) {
        try_again_later(pool, n);
        return;
    }
    while (n-- > 0)
        ask_for_one(pool);
}

/* Without its parent every worker is dead as well, or will
 * be: the monitor kills the parent before it starts another. */
static void restart_spawner(struct fp_worker_pool *pool, const char *why)
{
    fp_log(FP_LOG_ERROR, 22, "the process that makes workers %s: starting another", why);
    ev_io_stop(pool->loop, &pool->born);
    fp_close(&pool->spawner.sock);
    for (unsigned i = 0; i < pool->settings.workers; i++) {
        if (pool->workers[i].sock != -1)
            lose(&pool->workers[i], FP_FAILED);
    }
    pool->missing = 0;
    expect_fewer(pool, pool->expected);
    try_again_later(pool, pool->settings.workers);
}

/* As long as a worker lives walks go on.  The spawner of a busy machine
 * may be slow: so walks end at first, and it is replaced later. */
static void on_late_birth(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_worker_pool *pool = timer->data;

    fp_turn_work(FP_WORK_WORKER);
    (void)loop;
    (void)events;
    if (pool->counts.alive > 0)
        return;
    pool->barren = true;
    end_if_deserted(pool);
    if (++pool->late == LATE_BIRTHS)
        restart_spawner(pool, "does not answer");
}

static void on_born(struct ev_loop *loop, ev_io *w, int events)
{
    struct fp_worker_pool *pool = w->data;
    pid_t pid;
    int sock;
    fp_status st;

    fp_turn_work(FP_WORK_WORKER);
    (void)loop;
    (void)events;
    st = fp_spawner_read(&pool->spawner, &pid, &sock);
    if (st == FP_OK) {
        expect_fewer(pool, 1);
        enlist(pool, pid, sock);
    } else if (st == FP_BUSY || st == FP_LOSTFD) {
        expect_fewer(pool, 1);
        fp_log(FP_LOG_ERROR, 23,
               "a worker could not be started (%s): trying again; raise "
               "the limits on processes and descriptors",
               st == FP_LOSTFD ? fp_status_text(st) : "no process, descriptor or memory for it");
        try_again_later(pool, 1);
    } else if (st != FP_AGAIN) {
        restart_spawner(pool, "is gone");
    }
}

static void on_respawn(struct ev_loop *loop, ev_timer *w, int events)
{
    fp_turn_work(FP_WORK_WORKER);
    (void)events;
    ev_timer_stop(loop, w);
    make_missing(w->data);
}

struct fp_worker_pool *fp_worker_pool_create(struct ev_loop *loop,
                                             const struct fp_worker_pool_settings *settings)
{
    size_t n = settings->workers;
    struct fp_worker_pool *pool = fp_memory_take_zeroed(1, sizeof(*pool) + n * sizeof(pool->workers[0]));

    if (pool == NULL)
        return NULL;
    pool->loop = loop;
    pool->settings = *settings;
    fp_mount_queues_init(&pool->queues, &settings->limits);
    ev_init(&pool->born, on_born);
    ev_init(&pool->respawn, on_respawn);
    ev_init(&pool->birth, on_late_birth);
    ev_init(&pool->hopeless, on_hopeless);
    pool->respawn.repeat = RESPAWN_SECONDS;
    pool->birth.repeat = BIRTH_SECONDS;
    pool->born.data = pool->respawn.data = pool->birth.data = pool->hopeless.data = pool;
    for (struct worker *p = pool->workers; p < pool->workers + n; p++) {
        p->pool = pool;
        p->sock = -1;
        ev_init(&p->readable, on_readable);
        ev_init(&p->deadline, on_deadline);
        p->readable.data = p->deadline.data = p;
    }
    pool->spawner.sock = -1;
    pool->missing = settings->workers;
    make_missing(pool);
    return pool;
}

void fp_worker_pool_destroy(struct fp_worker_pool **pp)
{
    struct fp_worker_pool *pool = *pp;
    struct fp_waiting *w;
    struct dying *g;

    if (pool == NULL)
        return;
    ev_io_stop(pool->loop, &pool->born);
    ev_timer_stop(pool->loop, &pool->respawn);
    ev_timer_stop(pool->loop, &pool->birth);
    ev_timer_stop(pool->loop, &pool->hopeless);
    fp_spawner_stop(&pool->spawner);
    for (struct worker *p = pool->workers; p < pool->workers + pool->settings.workers; p++) {
        ev_io_stop(pool->loop, &p->readable);
        ev_timer_stop(pool->loop, &p->deadline);
        fp_close(&p->sock);
        if (p->job != NULL)
            fp_mount_queues_left(&pool->queues, &p->job->waiting);
        free(p->job);
    }
    while ((g = LIST_FIRST(&pool->dying)) != NULL)
        bury(g);
    /* No worker is at work now, so each queue has a walk that may begin. */
    while ((w = fp_mount_queues_take(&pool->queues)) != NULL) {
        fp_mount_queues_left(&pool->queues, w);
        free(w);
    }
    free(pool);
    *pp = NULL;
}

void fp_worker_pool_set(struct fp_worker_pool *pool, const struct fp_worker_pool_settings *settings)
{
    pool->settings.timeout_ms = settings->timeout_ms;
    pool->settings.probe_timeout_ms = settings->probe_timeout_ms;
    pool->queues.limits = settings->limits;
    run_queue(pool);
}

static fp_status put(struct fp_worker_pool *pool, uint32_t mount, const struct job *job, bool probe)
{
    struct job *j = fp_memory_take(sizeof(*j));
    fp_status st;

    if (j == NULL)
        return FP_NOMEM;
    *j = *job;
    st = FP_BUSY;
    if (probe || !is_deserted(pool))
        st = fp_mount_queues_put(&pool->queues, mount, &j->waiting, probe);
    if (st == FP_OK) {
        run_queue(pool);
        return FP_OK;
    }
    free(j);
    return st;
}

fp_status fp_worker_pool_submit(struct fp_worker_pool *pool, uint32_t mount, const struct fp_task *t,
                                int base, fp_worker_done *done, void *ctx)
{
    return put(pool, mount, &(struct job){ .done = done, .ctx = ctx, .task = t, .base = base }, false);
}

fp_status fp_worker_pool_probe(struct fp_worker_pool *pool, uint32_t mount, const struct fp_task *t,
                               fp_worker_done *done, void *ctx)
{
    return put(pool, mount, &(struct job){ .done = done, .ctx = ctx, .task = t, .base = -1 }, true);
}

void fp_worker_pool_cancel(struct fp_worker_pool *pool, uint32_t mount, fp_status why)
{
    struct fp_waiting *w;

    while ((w = fp_mount_queues_cancel(&pool->queues, mount)) != NULL)
        fail((struct job *)w, why);
}

struct fp_mount_usage fp_mount_usage(const struct fp_worker_pool *pool, uint32_t mount)
{
    struct fp_mount_usage at = { .waiting = fp_mount_queues_waiting(&pool->queues, mount) };
    const struct dying *g;

    for (unsigned i = 0; i < pool->settings.workers; i++) {
        const struct job *j = pool->workers[i].job;

        if (j != NULL && fp_mount_queue_mount(j->waiting.queue) == mount
            && (at.oldest_ms == 0 || j->there_ms < at.oldest_ms))
            at.oldest_ms = j->there_ms;
    }
    LIST_FOREACH(g, &pool->dying, link)
        at.hung += g->queue != NULL && fp_mount_queue_mount(g->queue) == mount;
    return at;
}

void fp_worker_pool_track(struct fp_worker_pool *pool, fp_worker_strayed *strayed, void *strayed_ctx)
{
    for (unsigned i = 0; i < pool->settings.workers; i++) {
        const struct worker *p = &pool->workers[i];
        struct job *j = p->job;
        uint32_t from, to;

        if (j == NULL || j->waiting.probe)
            continue;
        from = fp_mount_queue_mount(j->waiting.queue);
        to = fp_whereabouts_of(pool->settings.whereabouts, p->pid);
        /* Nobody waits for a job that was answered, and its ctx is gone. */
        if (to == 0 || to == from || j->done == NULL || !strayed(strayed_ctx, j->ctx, from, to))
            continue;
        /* Without memory for that the walk goes on to take a place of the other mount. */
        if (fp_mount_queues_move(&pool->queues, &j->waiting, to) == FP_OK)
            j->there_ms = fp_now_ms();
    }
    run_queue(pool);
}

/* The worker whose walk came last to the mount; NULL: no walk but a probe is there. */
static struct worker *last_at(struct fp_worker_pool *pool, uint32_t mount)
{
    struct worker *last = NULL;

    for (unsigned i = 0; i < pool->settings.workers; i++) {
        struct worker *p = &pool->workers[i];

        if (p->job != NULL && !p->job->waiting.probe && fp_mount_queue_mount(p->job->waiting.queue) == mount
            && (last == NULL || p->job->there_ms >= last->job->there_ms))
            last = p;
    }
    return last;
}

void fp_worker_pool_make_room(struct fp_worker_pool *pool, uint32_t mount, bool out)
{
    struct worker *p;

    do {
        const bool starved = pool->queues.waiting > 0 && find_idle(pool, true) == NULL;
        const bool crowded = fp_mount_queues_crowded(&pool->queues, mount);

        p = (starved && crowded) || (out && (starved || crowded)) ? last_at(pool, mount) : NULL;
        if (p != NULL)
            lose(p, out ? FP_UNAVAILABLE : FP_BUSY);
    } while (p != NULL && !out);
}

struct fp_worker_pool_counts fp_worker_pool_counts(const struct fp_worker_pool *pool)
{
    struct fp_worker_pool_counts counts = pool->counts;

    counts.queued = pool->queues.waiting;
    return counts;
}
