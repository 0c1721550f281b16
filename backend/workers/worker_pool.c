/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/worker_pool.h"

#include <ev.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "common/answer.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/packet.h"
#include "common/task.h"
#include "common/walk_result.h"
#include "common/wire.h"
#include "privsep/monitor.h"
#include "privsep/spawner.h"
#include "workers/mount_queues.h"

#define SPARE_PER_HELPER 4    /* queued walks that are no load yet */
#define RESPAWN_SECONDS 1.0   /* after a helper could not be made */

struct job {
    struct fp_waiting waiting;    /* first: a job is what waits */
    fp_worker_done *done;
    void *ctx;
    uint64_t began_ms;
    const struct fp_task *task;
    int base;
};

struct helper {
    struct fp_worker_pool *pool;
    pid_t pid;
    int sock;                 /* -1: none at present */
    struct job *job;          /* NULL: idle */
    uint64_t id;              /* of the job's frame, and of its answer's */
    ev_io readable;
    ev_timer deadline;
};

/* A helper that was killed and is not dead yet. */
struct dying {
    LIST_ENTRY(dying) link;
    struct fp_worker_pool *pool;
    struct fp_mount_queue *lane;     /* whose limit it counts against; NULL: no more */
    int sock;                 /* its other end closes when it dies */
    ev_io closed;
};

struct fp_worker_pool {
    struct ev_loop *loop;
    struct fp_worker_pool_settings settings;
    struct fp_spawner spawner;
    ev_io born;
    ev_timer respawn;
    unsigned missing;         /* to be asked for once the spawner can again */
    struct fp_mount_queues lanes;
    LIST_HEAD(, dying) dying;
    struct fp_worker_pool_counts counts;
    uint64_t last_id;
    struct helper helpers[];
};

static void finish(struct job *j, struct fp_answer *a, const struct fp_walk_result *trail)
{
    j->done(j->ctx, a, trail, j->began_ms);
    fp_close(&a->fd);
    free(j);
}

static void fail(struct job *j, fp_status why)
{
    struct fp_answer a;

    fp_answer_init(&a, why);
    finish(j, &a, NULL);
}

static void ask_for_one(struct fp_worker_pool *h)
{
    if (fp_spawner_ask(&h->spawner) == FP_OK)
        return;
    h->missing++;
    ev_timer_again(h->loop, &h->respawn);
}

static void run_queue(struct fp_worker_pool *h);

/* It counts no longer against its mount's limit. */
static void discharge(struct dying *g)
{
    if (g->lane != NULL)
        fp_mount_queues_dead(&g->pool->lanes, g->lane);
    g->lane = NULL;
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
    struct fp_worker_pool *h = g->pool;

    (void)loop;
    (void)events;
    bury(g);
    run_queue(h);
}

/* Takes the socket of a helper that was killed over its job. */
static void watch_dying(struct helper *p, struct job *j)
{
    struct fp_worker_pool *h = p->pool;
    struct dying *g = calloc(1, sizeof(*g));

    if (g == NULL) {
        fp_mount_queues_left(&h->lanes, &j->waiting);
        return;
    }
    g->pool = h;
    g->lane = fp_mount_queues_dying(&h->lanes, &j->waiting);
    g->sock = p->sock;
    p->sock = -1;
    ev_io_init(&g->closed, on_dead, g->sock, EV_READ);
    g->closed.data = g;
    ev_io_start(h->loop, &g->closed);
    LIST_INSERT_HEAD(&h->dying, g, link);
}

void fp_worker_pool_absolve(struct fp_worker_pool *h, uint32_t mount)
{
    struct dying *g;

    LIST_FOREACH(g, &h->dying, link) {
        if (g->lane != NULL && fp_mount_queue_mount(g->lane) == mount)
            discharge(g);
    }
    run_queue(h);
}

static void lose(struct helper *p, fp_status why)
{
    struct fp_worker_pool *h = p->pool;
    struct job *j = p->job;

    ev_io_stop(h->loop, &p->readable);
    ev_timer_stop(h->loop, &p->deadline);
    fp_spawner_kill(&h->spawner, p->pid);
    if (j != NULL)
        watch_dying(p, j);
    fp_close(&p->sock);
    p->job = NULL;
    h->counts.alive--;
    ask_for_one(h);
    if (j != NULL) {
        h->counts.running--;
        fail(j, why);
    }
}

static fp_status send_job(struct helper *p, const struct job *j)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_writer w;
    fp_status st;

    fp_writer_init(&w, buf, sizeof(buf));
    p->id = ++p->pool->last_id;
    st = fp_task_encode(&w, p->id, j->task);
    return st == FP_OK ? fp_send_packet(p->sock, buf, w.len, j->base) : st;
}

static void start(struct helper *p, struct job *j)
{
    struct fp_worker_pool *h = p->pool;

    p->job = j;
    j->began_ms = fp_now_ms();
    h->counts.running++;
    h->counts.walks++;
    ev_timer_set(&p->deadline, h->settings.timeout_ms / 1e3, 0.);
    ev_timer_start(h->loop, &p->deadline);
    if (send_job(p, j) == FP_OK)
        return;
    /* It is dead and we did not know: another one gets the job. */
    p->job = NULL;
    h->counts.running--;
    h->counts.deaths++;
    lose(p, FP_FAILED);
    fp_mount_queues_put_back(&h->lanes, &j->waiting);
}

static struct helper *idle_helper(struct fp_worker_pool *h)
{
    for (unsigned i = 0; i < h->settings.helpers; i++) {
        if (h->helpers[i].sock != -1 && h->helpers[i].job == NULL)
            return &h->helpers[i];
    }
    return NULL;
}

bool fp_worker_pool_spare(const struct fp_worker_pool *h)
{
    return h->lanes.waiting < SPARE_PER_HELPER * (size_t)h->counts.alive;
}

static void run_queue(struct fp_worker_pool *h)
{
    struct fp_waiting *next;
    struct helper *p;

    while ((p = idle_helper(h)) != NULL && (next = fp_mount_queues_take(&h->lanes)) != NULL)
        start(p, (struct job *)next);
}

/* The answer to p's job.  FP_OK, or why this helper is of no more use. */
static fp_status read_answer(struct helper *p, struct fp_answer *a, struct fp_walk_result *trail)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_frame f;
    size_t len = 0;
    int fd = -1;
    fp_status st = fp_recv_packet(p->sock, buf, sizeof(buf), &len, &fd);

    if (st == FP_LOSTFD && p->job != NULL) {
        fp_answer_init(a, FP_BUSY);
        fp_walk_result_init(trail);
        return FP_OK;
    }
    if (st != FP_OK)
        return st;
    if (p->job == NULL || fp_frame_parse(&f, buf, len) != FP_OK
        || f.type != FP_FRAME_ANSWER || f.id != p->id
        || fp_result_decode(&f.body, p->job->task, fd, a, trail) != FP_OK
        || !fp_answer_is_sealed(a)) {
        fp_close(&fd);
        return FP_PROTOCOL;
    }
    return FP_OK;
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct helper *p = w->data;
    struct fp_worker_pool *h = p->pool;
    static struct fp_answer a;
    static struct fp_walk_result trail;
    fp_status st = read_answer(p, &a, &trail);
    struct job *j = p->job;

    (void)events;
    if (st == FP_AGAIN)
        return;
    if (st != FP_OK) {
        h->counts.deaths++;
        fp_log(FP_LOG_WARNING, 20, "helper %d is gone (%s) while it looked at %.*s: "
               "replacing it", (int)p->pid, fp_status_text(st),
               j != NULL ? (int)j->task->lookup.path_len : 7,
               j != NULL ? j->task->lookup.path : "nothing");
        lose(p, FP_FAILED);
        return;
    }
    ev_timer_stop(loop, &p->deadline);
    p->job = NULL;
    h->counts.running--;
    fp_mount_queues_left(&h->lanes, &j->waiting);
    /* The helper goes on before the answer is passed out. */
    run_queue(h);
    finish(j, &a, &trail);
}

void fp_worker_pool_hear(struct fp_worker_pool *h)
{
    for (unsigned i = 0; i < h->settings.helpers; i++) {
        if (h->helpers[i].sock != -1 && h->helpers[i].job != NULL)
            on_readable(h->loop, &h->helpers[i].readable, 0);
    }
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    struct helper *p = w->data;
    const uint64_t late = p->id;

    (void)events;
    /* It may have answered in time, and the whole daemon rested. */
    on_readable(loop, &p->readable, 0);
    if (p->job == NULL || p->id != late)
        return;
    p->pool->counts.timeouts++;
    fp_log(FP_LOG_WARNING, 21, "the file system did not answer for %.*s within %u ms: "
           "killing helper %d; is its mount dead?", (int)p->job->task->lookup.path_len,
           p->job->task->lookup.path, p->pool->settings.timeout_ms, (int)p->pid);
    lose(p, FP_TIMEOUT);
}

static struct helper *vacant(struct fp_worker_pool *h)
{
    for (unsigned i = 0; i < h->settings.helpers; i++) {
        if (h->helpers[i].sock == -1)
            return &h->helpers[i];
    }
    return NULL;
}

static void enlist(struct fp_worker_pool *h, pid_t pid, int sock)
{
    struct helper *p = vacant(h);

    if (p == NULL) {
        fp_close(&sock);
        fp_spawner_kill(&h->spawner, pid);
        return;
    }
    p->pid = pid;
    p->sock = sock;
    p->job = NULL;
    ev_io_set(&p->readable, sock, EV_READ);
    ev_io_start(h->loop, &p->readable);
    h->counts.alive++;
    run_queue(h);
}

static void lose_all(struct fp_worker_pool *h, fp_status why)
{
    for (unsigned i = 0; i < h->settings.helpers; i++) {
        if (h->helpers[i].sock != -1)
            lose(&h->helpers[i], why);
    }
}

static bool start_spawner(struct fp_worker_pool *h)
{
    h->spawner.sock = fp_monitor_ask(h->settings.monitor, FP_MONITOR_SPAWNER);
    if (h->spawner.sock == -1)
        return false;
    ev_io_set(&h->born, h->spawner.sock, EV_READ);
    ev_io_start(h->loop, &h->born);
    return true;
}

/* Without its parent every helper is dead as well. */
static void restart_spawner(struct fp_worker_pool *h)
{
    fp_log(FP_LOG_ERROR, 22, "the process that makes helpers is gone: starting another");
    ev_io_stop(h->loop, &h->born);
    fp_spawner_stop(&h->spawner);
    lose_all(h, FP_FAILED);
    h->missing = h->settings.helpers;
    ev_timer_again(h->loop, &h->respawn);
}

static void on_born(struct ev_loop *loop, ev_io *w, int events)
{
    struct fp_worker_pool *h = w->data;
    pid_t pid;
    int sock;
    fp_status st;

    (void)events;
    st = fp_spawner_read(&h->spawner, &pid, &sock);
    if (st == FP_OK) {
        enlist(h, pid, sock);
    } else if (st == FP_BUSY || st == FP_LOSTFD) {
        fp_log(FP_LOG_ERROR, 23, "a helper could not be started (%s): trying again; raise "
               "the limits on processes and descriptors", fp_status_text(st));
        h->missing++;
        ev_timer_again(loop, &h->respawn);
    } else if (st != FP_AGAIN) {
        restart_spawner(h);
    }
}

static void on_respawn(struct ev_loop *loop, ev_timer *w, int events)
{
    struct fp_worker_pool *h = w->data;
    unsigned n = h->missing;

    (void)events;
    ev_timer_stop(loop, w);
    h->missing = 0;
    if (h->spawner.sock == -1 && !start_spawner(h)) {
        h->missing = n;
        ev_timer_again(loop, w);
        return;
    }
    while (n-- > 0)
        ask_for_one(h);
}

static void init_helper(struct fp_worker_pool *h, struct helper *p)
{
    p->pool = h;
    p->sock = -1;
    ev_init(&p->readable, on_readable);
    ev_init(&p->deadline, on_deadline);
    p->readable.data = p;
    p->deadline.data = p;
}

struct fp_worker_pool *fp_worker_pool_create(struct ev_loop *loop,
                                     const struct fp_worker_pool_settings *settings)
{
    size_t n = settings->helpers;
    struct fp_worker_pool *h = calloc(1, sizeof(*h) + n * sizeof(h->helpers[0]));

    if (h == NULL)
        return NULL;
    h->loop = loop;
    h->settings = *settings;
    fp_mount_queues_init(&h->lanes, settings->mount_helpers, settings->max_queue);
    ev_init(&h->born, on_born);
    ev_init(&h->respawn, on_respawn);
    h->respawn.repeat = RESPAWN_SECONDS;
    h->born.data = h->respawn.data = h;
    for (size_t i = 0; i < n; i++)
        init_helper(h, &h->helpers[i]);
    if (!start_spawner(h)) {
        fp_log(FP_LOG_ERROR, 22, "cannot start the process that makes helpers: %m");
        free(h);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        ask_for_one(h);
    return h;
}

static void drop_helper(struct fp_worker_pool *h, struct helper *p)
{
    ev_io_stop(h->loop, &p->readable);
    ev_timer_stop(h->loop, &p->deadline);
    fp_close(&p->sock);
    if (p->job != NULL)
        fp_mount_queues_left(&h->lanes, &p->job->waiting);
    free(p->job);
}

/* While nobody is at work: then each lane has one that may begin. */
static void drop_waiting(struct fp_worker_pool *h)
{
    struct fp_waiting *w;

    while ((w = fp_mount_queues_take(&h->lanes)) != NULL) {
        fp_mount_queues_left(&h->lanes, w);
        free(w);
    }
}

void fp_worker_pool_destroy(struct fp_worker_pool **hp)
{
    struct fp_worker_pool *h = *hp;
    struct dying *g;

    if (h == NULL)
        return;
    ev_io_stop(h->loop, &h->born);
    ev_timer_stop(h->loop, &h->respawn);
    fp_spawner_stop(&h->spawner);
    for (unsigned i = 0; i < h->settings.helpers; i++)
        drop_helper(h, &h->helpers[i]);
    while ((g = LIST_FIRST(&h->dying)) != NULL)
        bury(g);
    drop_waiting(h);
    free(h);
    *hp = NULL;
}

void fp_worker_pool_set(struct fp_worker_pool *h, const struct fp_worker_pool_settings *settings)
{
    h->settings.timeout_ms = settings->timeout_ms;
    fp_mount_queues_set(&h->lanes, settings->mount_helpers, settings->max_queue);
    run_queue(h);
}

static struct job *create_job(const struct fp_task *t, int base, fp_worker_done *done, void *ctx)
{
    struct job *j = calloc(1, sizeof(*j));

    if (j == NULL)
        return NULL;
    j->done = done;
    j->ctx = ctx;
    j->task = t;
    j->base = base;
    return j;
}

/* The job is in its lane, or could not be put there. */
static fp_status run_or_refuse(struct fp_worker_pool *h, struct job *j, fp_status st)
{
    if (st == FP_OK) {
        run_queue(h);
        return FP_OK;
    }
    if (st == FP_BUSY)
        h->counts.refused++;
    free(j);
    return st;
}

fp_status fp_worker_pool_submit(struct fp_worker_pool *h, uint32_t mount, const struct fp_task *t,
                            int base, fp_worker_done *done, void *ctx)
{
    struct job *j = create_job(t, base, done, ctx);

    if (j == NULL)
        return FP_NOMEM;
    return run_or_refuse(h, j, fp_mount_queues_put(&h->lanes, mount, &j->waiting));
}

fp_status fp_worker_pool_probe(struct fp_worker_pool *h, uint32_t mount, const struct fp_task *t,
                           fp_worker_done *done, void *ctx)
{
    struct job *j = create_job(t, -1, done, ctx);

    if (j == NULL)
        return FP_NOMEM;
    return run_or_refuse(h, j, fp_mount_queues_put_probe(&h->lanes, mount, &j->waiting));
}

void fp_worker_pool_cancel(struct fp_worker_pool *h, uint32_t mount, fp_status why)
{
    struct fp_waiting *w;

    while ((w = fp_mount_queues_cancel(&h->lanes, mount)) != NULL)
        fail((struct job *)w, why);
}

struct fp_mount_usage fp_mount_usage(const struct fp_worker_pool *h, uint32_t mount)
{
    struct fp_mount_usage at = { .waiting = fp_mount_queues_waiting(&h->lanes, mount) };
    const struct dying *g;

    for (unsigned i = 0; i < h->settings.helpers; i++) {
        const struct job *j = h->helpers[i].job;

        if (j != NULL && fp_mount_queue_mount(j->waiting.lane) == mount
            && (at.oldest_ms == 0 || j->began_ms < at.oldest_ms))
            at.oldest_ms = j->began_ms;
    }
    LIST_FOREACH(g, &h->dying, link)
        at.hung += g->lane != NULL && fp_mount_queue_mount(g->lane) == mount;
    return at;
}

struct fp_worker_pool_counts fp_worker_pool_counts(const struct fp_worker_pool *h)
{
    struct fp_worker_pool_counts counts = h->counts;

    counts.queued = h->lanes.waiting;
    return counts;
}
