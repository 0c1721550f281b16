/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions, answers of workers, changes, purges, timers and other limits in any order, against
 * the dispatch and its cache.  Each piece (fuzz.h) is one of them.  Connections, workers and what
 * tells of changes are played (dispatch_kit.h); the cache checks itself after each operation.
 *
 * The file system is a number, its version: all that a walk finds has the version of when the
 * walk began.  So what an answer is made of shows how old it is.
 */
#include "config.h"
#include "fuzz_check.h"

#include "base/log.h"
#include "dispatch_kit.h"

#define CLIENTS      6
#define MAX_VERSIONS 60
#define MAX_PURGES   64
#define MAX_INFLIGHT 12 /* walks: with two probes fewer than MAX_JOBS */
#define DEPTH        5
#define MAX_ROUNDS   1000 /* until all is answered */

enum {
    ASK,
    FRESH,
    FINISH,
    GIVE_UP,
    CHANGE,
    EVENT,
    PURGE,
    LEAVE,
    PASS,
    TIMERS,
    BEAT,
    EVICT_FILES,
    LIMITS,
    PLACE,
    OPERATIONS
};

static struct client {
    struct fp_connection conn; /* first: one pointer serves for both */
    char path[2 * DEPTH + 1];
    bool asking, fresh;
    unsigned version, purges; /* when it asked */
} clients[CLIENTS];

/* Since when each version has been there. */
static uint64_t since_ms[MAX_VERSIONS];
static unsigned version;

static struct purge {
    char path[2 * DEPTH + 1];
    size_t len;
    bool tree;
    unsigned version;
} purges[MAX_PURGES];
static unsigned n_purges;

/* ---- timers: all that run are over at once, when the input says so ---- */

static ev_timer *again;

void __wrap_ev_timer_start(struct ev_loop *l, ev_timer *w);
void __real_ev_timer_start(struct ev_loop *l, ev_timer *w);
void __wrap_ev_timer_again(struct ev_loop *l, ev_timer *w);
void __real_ev_timer_again(struct ev_loop *l, ev_timer *w);

void __wrap_ev_timer_start(struct ev_loop *l, ev_timer *w)
{
    w->at = -1;
    __real_ev_timer_start(l, w);
}

void __wrap_ev_timer_again(struct ev_loop *l, ev_timer *w)
{
    again = w;
    __real_ev_timer_again(l, w);
}

static void let_timers_end(void)
{
    if (again != NULL && ev_is_active(again))
        ev_feed_event(loop, again, EV_TIMER);
    ev_run(loop, EVRUN_NOWAIT);
}

/* ---- what must hold ---- */

static unsigned version_at(uint64_t ms)
{
    unsigned v = version;

    while (v > 0 && since_ms[v] > ms)
        v--;
    return v;
}

static bool concerns(const struct purge *p, const char *path, size_t len)
{
    return p->tree ? fp_path_is_below(path, len, p->path) : p->len == len && memcmp(p->path, path, len) == 0;
}

/* No answer is made of an entry that was purged before the question. The same goes for one that changed
 * before it, where it asks for what is true now and the file system answers. */
static void check_answer(struct fp_connection *conn, const struct fp_answer *a)
{
    const struct client *c = (const struct client *)conn;

    FUZZ_MUST(c->asking && a->n_steps <= DEPTH + 1);
    for (unsigned i = 0; i < a->n_steps; i++) {
        const struct fp_step *s = &a->steps[i];
        const unsigned seen = (unsigned)s->self.ctime.sec;

        FUZZ_MUST(s->end <= strlen(c->path));
        if (s->status != FP_OK)
            continue;
        FUZZ_MUST(s->self.ino == kit_number(c->path, s->end, (char)('0' + seen)));
        FUZZ_MUST(!c->fresh || seen >= c->version || a->source == FP_SOURCE_STALE);
        for (unsigned k = 0; k < c->purges; k++)
            FUZZ_MUST(!concerns(&purges[k], c->path, s->end) || seen >= purges[k].version);
    }
}

/* ---- operations ---- */

/* Each byte is a name of few; below "/m" is another file system. */
static size_t make_path(char *path, const struct fuzz_piece *p, size_t skip)
{
    size_t len = 0;

    for (size_t i = skip; i < p->size && i < skip + DEPTH; i++) {
        path[len++] = '/';
        path[len++] = "mabc"[p->bytes[i] % 4];
    }
    if (len == 0)
        path[len++] = '/';
    path[len] = '\0';
    return len;
}

static const struct fp_names names = { 1, { { ".htaccess", 9 } } };

static void put_question(const struct fuzz_piece *p, bool fresh)
{
    struct client *c = &clients[p->how / 16 % CLIENTS];

    if (c->asking && !c->conn.answered)
        return;
    make_path(c->path, p, 0);
    c->fresh = fresh;
    c->asking = true;
    c->version = version;
    c->purges = n_purges;
    if (p->how >= 240)
        fp_dispatch_add_names(dispatch, &names);
    ask_lookup(&c->conn, (struct fp_lookup){ .path = c->path, .fresh = fresh });
}

/* A walk's findings, from its base on: a letter of kit_step() for each component. */
static void find(struct fp_answer *a, const struct fp_task *t, const struct fuzz_piece *p, char at)
{
    const char *path = t->lookup.path;
    const size_t len = t->lookup.path_len;
    size_t n = 1;
    bool leads_on = true;

    fp_answer_init(a, FP_OK);
    for (size_t end = 1; leads_on && end <= len; end += end == 1 ? 1 : 2, n++) {
        const uint8_t byte = n < p->size ? p->bytes[n] : 0;
        const char kind = end == 1 ? 'd' : "ddlddafuLxb"[byte % 11];

        if (end <= t->base_len)
            continue;
        leads_on = kind == 'd' || kind == 'l';
        kit_step(&a->steps[a->n_steps++], path, end, kind, at);
        if (kind == 'f' || kind == 'L' || (end == len && leads_on))
            a->fd = kit_file(at);
    }
    /* A file lies at the end of the path or hides what is asked for: no descriptor then. */
    if (a->n_steps > 0 && a->steps[a->n_steps - 1].end < len)
        fp_close(&a->fd);
}

static void finish_walk(const struct fuzz_piece *p)
{
    static struct fp_walk_result result;
    struct fp_answer a;
    struct job job;
    char at;

    if (n_jobs == 0)
        return;
    job = take_job(p->size > 0 ? p->bytes[0] % n_jobs : 0);
    at = (char)('0' + version_at(job.began_ms));
    from_root = job.task->base_len == 0;
    fp_walk_result_init(&result);
    find(&a, job.task, p, at);
    for (unsigned i = 0; i < a.n_steps && all_watched; i++)
        result.step_watches[i].watch = (struct fp_watch_key){ .len = 2, .bytes = { 1, (uint8_t)(i % 8) } };
    a.source = FP_SOURCE_WORKER;
    job.done(job.ctx, FP_OK, &a, &result, job.began_ms);
    fp_close(&a.fd);
}

static void end_walk(const struct fuzz_piece *p)
{
    static const fp_status why[] = { FP_TIMEOUT, FP_BUSY, FP_UNAVAILABLE };
    struct job job;

    if (n_jobs == 0)
        return;
    job = take_job(p->size > 0 ? p->bytes[0] % n_jobs : 0);
    if (p->how >= 192)
        job.began_ms = 0; /* it never began */
    end_without(&job, why[p->how / 16 % 3]);
}

/* Everything is another from now on, and who watches is told. */
static void change(void)
{
    if (version + 1 < MAX_VERSIONS) {
        played_ms++;
        since_ms[++version] = played_ms;
        played_ms++;
    }
    fp_cache_change_ops.lost(cache);
}

/* Of something that may not have changed. */
static void tell(const struct fuzz_piece *p)
{
    const struct fp_watch_key key = { .len = 2, .bytes = { 1, p->size > 0 ? p->bytes[0] % 8 : 0 } };
    char path[2 * DEPTH + 1];

    make_path(path, p, 1);
    switch (p->how / 16 % 4) {
    case 0: fp_cache_change_ops.changed(cache, &key, path + 1, path[1] != '\0', p->how >= 128); break;
    case 1: fp_cache_change_ops.unwatched(cache, &key); break;
    case 2: fp_cache_change_ops.remounted(cache, &(struct fp_remount){ p->how >= 128 ? "/" : path, p->how }, 1); break;
    default: fp_cache_invalidate(cache, NULL);
    }
}

static void purge(const struct fuzz_piece *p)
{
    struct purge *made = &purges[n_purges];

    if (n_purges == MAX_PURGES)
        return;
    made->len = make_path(made->path, p, 0);
    made->tree = p->how >= 128;
    /* A walk that began in this very moment may have looked before it. */
    made->version = version;
    n_purges++;
    forget(made->path, made->tree);
}

static void leave(struct client *c)
{
    fp_router_ops.closed(&router, &c->conn);
    memset(c, 0, sizeof(*c));
}

static void set_limits(const struct fuzz_piece *p)
{
    const size_t n = 1 + p->how / 16 % 8;
    const struct fp_dispatch_settings settings = { .max_inflight = 4 + n,
                                                   .mount_timeout_ms = 50 + 50 * ((unsigned)p->size % 3) };

    fp_cache_set_limits(cache, &(struct fp_cache_limits){ n, 1 + n / 2, 4 + n, n, 1 << 20, 1000 });
    fp_dispatch_set(dispatch, &settings);
}

/* The file system that is found, and the workers. */
static void set_place(const struct fuzz_piece *p)
{
    ttl_ms = p->how & 16 ? 1 : TTL_MS;
    stale_ms = p->how & 32 ? 100 : 0;
    all_watched = (p->how & 64) != 0;
    have_spare = p->how < 128;
    n_running = (unsigned)p->size % 5;
}

static void run(const struct fuzz_piece *p)
{
    switch (p->how % 16 % OPERATIONS) {
    case ASK: put_question(p, false); break;
    case FRESH: put_question(p, true); break;
    case FINISH: finish_walk(p); break;
    case GIVE_UP: end_walk(p); break;
    case CHANGE: change(); break;
    case EVENT: tell(p); break;
    case PURGE: purge(p); break;
    case LEAVE: leave(&clients[p->how / 16 % CLIENTS]); break;
    case PASS: let_pass(1u << p->how / 16); break;
    case TIMERS: let_timers_end(); break;
    case BEAT: beat(beat_ctx); break;
    case EVICT_FILES: fp_cache_evict_files(cache, FP_EVICT_FILES); break;
    case LIMITS: set_limits(p); break;
    default: set_place(p);
    }
    FUZZ_MUST(cache_check(cache) == NULL);
}

/* ---- the world ---- */

static void begin(void)
{
    const struct fp_cache_limits limits = { 4, 3, 16, 8, 1 << 20, 1000 };
    const struct fp_cache_content content = { 16, 64, 4096 };
    const struct fp_dispatch_settings settings = { .max_inflight = MAX_INFLIGHT, .mount_timeout_ms = 100 };

    on_answer = check_answer;
    played_ms = 1000000;
    version = n_purges = n_jobs = n_probes = observed = 0;
    n_running = MAX_JOBS;
    ttl_ms = root_ttl_ms = TTL_MS;
    stale_ms = 0;
    all_watched = false;
    have_spare = true;
    again = NULL;
    memset(clients, 0, sizeof(clients));
    FUZZ_MUST(fp_tables_create(&tables, &(struct fp_tables_sizes){ 64, 1, 1 }));
    leases = tables.leases;
    cache = fp_cache_create(
        &limits, &(struct fp_cache_deps){ .lease_table = leases, .verify = cache_verify, .now_ms = fp_now_ms });
    FUZZ_MUST(cache != NULL);
    fp_cache_set_content(cache, &content);
    dispatch = fp_dispatch_create(loop, cache, NULL, NULL, NULL, &tables, &observer, &settings);
    FUZZ_MUST(dispatch != NULL);
    router.dispatch = dispatch;
}

/* Each question is answered at last, once (the kit sees to that), unless its client leaves. */
static void end(bool leaving)
{
    const struct fuzz_piece timeout = { .how = GIVE_UP }, file = { .how = FINISH };

    for (unsigned i = 0; leaving && i < CLIENTS; i++)
        leave(&clients[i]);
    for (int round = 0; n_jobs > 0 && round < MAX_ROUNDS; round++) {
        run(round % 2 == 0 ? &file : &timeout);
        let_pass(1);
    }
    let_timers_end();
    for (unsigned i = 0; i < CLIENTS; i++) {
        FUZZ_MUST(!clients[i].asking || clients[i].conn.answered);
        fp_router_ops.closed(&router, &clients[i].conn);
    }
    fp_dispatch_destroy(&dispatch);
    fp_cache_clear(cache);
    FUZZ_MUST(fp_cache_counts(cache).bytes == 0 && fp_cache_counts(cache).watches == 0);
    fp_cache_destroy(&cache);
    fp_tables_destroy(&tables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_piece p = { .how = 0 };
    struct fp_reader r;
    int before;

    if (loop == NULL) {
        unit_init_hash();
        loop = ev_loop_new(EVFLAG_AUTO);
        FUZZ_MUST(loop != NULL);
        ev_run(loop, EVRUN_NOWAIT);
        fp_log_open("stderr", FP_LOG_ERROR);
    }
    before = fuzz_free_fd();
    begin();
    fp_reader_init(&r, data, size);
    while (fuzz_next(&r, &p))
        run(&p);
    end(size % 2 == 1);
    FUZZ_MUST(fuzz_free_fd() == before);
    return 0;
}
