/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/coherence.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/turn.h"
#include "changes/mounts.h"
#include "changes/noise.h"
#include "changes/watch.h"
#include "shared/lease_table.h"
#include "wire/walk_result.h"

#define BEAT_SECONDS 0.015 /* a third of FP_HEARTBEAT_MS */
#define IDLE_MS      2000u /* without any use of a lease; then the beat stops */
#define MOST_MOUNTS  64 /* changes with which one look at all entries compares each */
#define MAX_VISITED  100000u /* entries that the events of one turn may concern: some 40 ms */

struct fp_coherence {
    struct ev_loop *loop;
    struct fp_coherence_deps deps;
    uint64_t caught_up_ms, used_ms;
    ev_io inotify, remounts, mounts, spoilt;
    ev_timer beat;
    struct fp_coherence_counts counts;
    size_t visited;                            /* entries that the events of this turn concerned */
    struct fp_noise *noise;                    /* NULL: nothing is left out */
    bool (*on_beat)(void *ctx); /* NULL: nothing */
    void *on_beat_ctx;
};

/* ---- events ---- */

static void report_noise(const struct fp_watched *w, enum fp_left_out what, uint32_t ms)
{
    char path[FP_MAX_PATH + 1];

    fp_text_escape(path, sizeof(path), w->path, w->len);
    fp_log(
        FP_LOG_WARNING, 47,
        "%s%s reports more changes than can be watched (%u a second, %u where there are many): "
        "%s not watched for %u s, and each request looks; move files that are written all the time out of "
        "the served directories, or set watch = \"ttl\" for a mount of its own",
        w->itself ? "" : "something on the way to ", path, FP_NOISE_MANY, FP_NOISE_FEW,
        what == FP_LEFT_OUT_WHOLLY ? "it is" : "attributes there are", ms / 1000);
}

static void report_end(const struct fp_watched *w, enum fp_left_out what, struct fp_noise_end end)
{
    if (end.ms == 0)
        fp_log(FP_LOG_WARNING, 49,
               "more directories and files than can be left out (%u at a time) report more changes than can be "
               "watched: the hits of all become questions while these changes go on",
               FP_NOISE_PLACES);
    else if (!end.owner)
        report_noise(w, what, end.ms);
    else if (!end.before)
        fp_log(FP_LOG_WARNING, 49,
               "user %u owns more than %u directories and files that report more changes than can be watched, or "
               "all %u places are taken: nothing that this user owns is watched for %u s, and each request "
               "looks at it",
               w->uid, FP_NOISE_OWN, FP_NOISE_PLACES, end.ms / 1000);
}

/* Ends the watch, and invalidates all that depends on it, so that its events do not cost everybody. */
static void leave_out(struct fp_coherence *f, const struct fp_watch_key *key, enum fp_left_out what)
{
    struct fp_watched w;
    struct fp_noise_end end;

    if (f->deps.ops->find(f->deps.ctx, key, &w)) {
        end = fp_noise_leave_out(f->noise, &(struct fp_noise_object){ w.dev, w.ino, w.uid }, what, fp_now_ms());
        report_end(&w, what, end);
        if (end.ms == 0)
            return;
        f->counts.left_out++;
    }
    f->deps.ops->unwatched(f->deps.ctx, key);
    fp_watch_forget(f->deps.watch, key);
}

static void count_noise(struct fp_coherence *f, const struct fp_watch_key *key, bool replaced, size_t entries)
{
    enum fp_left_out what;
    int wd;

    if (f->noise == NULL || key->len == 0)
        return;
    memcpy(&wd, key->bytes, sizeof(wd));
    what = fp_noise_count(f->noise, wd, replaced, entries, fp_now_ms());
    if (what == FP_LEFT_OUT_LINKED)
        f->deps.ops->crowded(f->deps.ctx, key);
    else if (what != FP_LEFT_OUT_NOT)
        leave_out(f, key, what);
}

static void on_changed(void *ctx, const struct fp_watch_key *key, const char *name, size_t len, bool replaced)
{
    struct fp_coherence *f = ctx;
    size_t visited = 0;

    f->counts.events++;
    if (f->visited <= MAX_VISITED)
        visited = f->deps.ops->changed(f->deps.ctx, key, name, len, replaced);
    f->visited += visited;
    count_noise(f, key, replaced, visited);
}

static void on_gone(void *ctx, const struct fp_watch_key *key)
{
    struct fp_coherence *f = ctx;

    f->deps.ops->unwatched(f->deps.ctx, key);
}

static void look_at_all(struct fp_coherence *f)
{
    f->counts.losses++;
    f->deps.ops->lost(f->deps.ctx);
}

static void on_lost(void *ctx)
{
    look_at_all(ctx);
    fp_log(FP_LOG_WARNING, 41,
           "events were lost, because the queue was full: everything watched is looked at again; if this is "
           "logged often, raise fs.inotify.max_queued_events, "
           "or set watch = \"ttl\" for busy mounts");
}

static bool is_needed(void *ctx, const struct fp_watch_key *key)
{
    const struct fp_coherence *f = ctx;

    return f->deps.ops->is_needed(f->deps.ctx, key);
}

static const struct fp_watch_ops ops = { on_changed, on_gone, on_lost, is_needed };

/* Processes the waiting events. Many links may lead to a directory, and each of its events concerns all of
 * them. Beyond a bound, one look at everything costs less than the remaining events. */
static void drain(struct fp_coherence *f)
{
    f->visited = 0;
    fp_watch_drain(f->deps.watch, &ops, f);
    if (f->visited <= MAX_VISITED)
        return;
    look_at_all(f);
    fp_log(FP_LOG_WARNING, 48,
           "simultaneous changes concern more than %u entries, so everything watched is looked at again: "
           "many links lead to a directory that changes often",
           MAX_VISITED);
}

/* The first of the mounts that came or went. */
struct remounts {
    struct fp_remount list[MOST_MOUNTS];
    size_t n;
};

static void take_mount(void *ctx, const struct fp_mount *m)
{
    struct remounts *r = ctx;

    if (r->n < MOST_MOUNTS)
        r->list[r->n++] = (struct fp_remount){ m->point, m->id };
}

static void on_mounts_changed(struct fp_coherence *f)
{
    struct remounts r = { .n = 0 };
    size_t n;

    f->counts.losses++;
    if (fp_mounts_changes(f->deps.mounts, take_mount, &r) > MOST_MOUNTS)
        r = (struct remounts){ { { "/", 0 } }, 1 };
    n = f->deps.ops->remounted(f->deps.ctx, r.list, r.n);
    if (n > 0)
        fp_log(FP_LOG_INFO, 40, "something was mounted or unmounted at %s%s: %zu entries are looked at again",
               r.n > 0 ? r.list[0].point : "a place unknown", r.n > 1 ? " and elsewhere" : "", n);
}

/* Takes in every event that is there when it is called. */
static void catch_up(struct fp_coherence *f)
{
    const uint64_t now = fp_now_ms();
    const bool mounts = fp_mounts_changed(f->deps.mounts);
    enum fp_work before;

    /* A client that finds the table busy asks: it is busy only for changes that concern somebody. */
    if (mounts || fp_watch_is_pending(f->deps.watch)) {
        before = fp_turn_work(FP_WORK_EVENTS);
        fp_lease_table_set_busy(f->deps.lease_table);
        if (mounts)
            on_mounts_changed(f);
        fp_watch_drain_remounts(f->deps.watch);
        if (fp_mounts_changed(f->deps.mounts))
            on_mounts_changed(f);
        drain(f);
        fp_lease_table_clear_busy(f->deps.lease_table);
        fp_turn_work(before);
    }
    fp_lease_table_heartbeat(f->deps.lease_table, now);
    f->caught_up_ms = now;
    if (f->noise != NULL)
        fp_noise_expire(f->noise, now);
}

static void on_event(struct ev_loop *loop, ev_io *w, int events)
{
    fp_turn_work(FP_WORK_EVENTS);
    (void)loop;
    (void)events;
    catch_up(w->data);
}

static void on_spoilt(struct ev_loop *loop, ev_io *w, int events)
{
    const struct fp_coherence *f = w->data;

    fp_turn_work(FP_WORK_CONNECTION);
    (void)loop;
    (void)events;
    fp_watch_empty_pipe(f->deps.watch);
}

static void on_beat(struct ev_loop *loop, ev_timer *w, int events)
{
    struct fp_coherence *f = w->data;

    fp_turn_work(FP_WORK_TIMER);
    (void)events;
    catch_up(f);
    if ((f->on_beat != NULL && f->on_beat(f->on_beat_ctx)) || fp_lease_table_take_use(f->deps.lease_table))
        f->used_ms = f->caught_up_ms;
    else if (f->caught_up_ms >= f->used_ms + IDLE_MS)
        ev_timer_stop(loop, w);
}

void fp_coherence_catch_up(struct fp_coherence *f)
{
    uint64_t now = fp_now_ms();

    f->used_ms = now;
    if (!ev_is_active(&f->beat))
        ev_timer_again(f->loop, &f->beat);
    catch_up(f);
}

/* ---- validity ---- */

static void note_unwatched(struct fp_coherence *f, unsigned n)
{
    f->counts.watches_refused += n;
    fp_log(FP_LOG_WARNING, 42,
           "the system's limit on watches is reached: unwatched paths are looked at for each request; "
           "unused entries give up their watches, so if this is logged often, raise "
           "fs.inotify.max_user_watches");
}

static struct fp_validity validity_on(const struct fp_coherence *f, uint32_t mount)
{
    const struct fp_mount *m = fp_mounts_known(f->deps.mounts, mount);

    /* A worker may have seen the table before its last change. */
    return (struct fp_validity){ .mount = mount,
                                 .traits = m->traits,
                                 .mounted_ms = fp_mounts_came_ms(f->deps.mounts, mount),
                                 .ttl_ms = m->ttl_ms,
                                 .negative_ms = m->negative_ttl_ms,
                                 .stale_ms = m->stale_if_error_ms };
}

void fp_coherence_validity(struct fp_coherence *f, const struct fp_walk_result *result, size_t n,
                           struct fp_validity *validity)
{
    if (result->unwatched > 0)
        note_unwatched(f, result->unwatched);
    for (size_t i = 0; i < n; i++)
        validity[i] = validity_on(f, result->step_watches[i].mount);
}

/* ---- start and end ---- */

static void watch_fd(struct fp_coherence *f, ev_io *io, int fd,
                     void (*on_readable)(struct ev_loop *loop, ev_io *w, int events), int priority)
{
    ev_io_init(io, on_readable, fd, EV_READ);
    io->data = f;
    ev_set_priority(io, priority);
    if (fd != -1)
        ev_io_start(f->loop, io);
}

struct fp_coherence *fp_coherence_create(struct ev_loop *loop, const struct fp_coherence_deps *deps)
{
    struct fp_coherence *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    f->loop = loop;
    f->deps = *deps;
    if (deps->noise != NULL && (f->noise = fp_noise_create(deps->noise)) == NULL) {
        free(f);
        return NULL;
    }
    watch_fd(f, &f->inotify, deps->watch->inotify, on_event, EV_MAXPRI);
    watch_fd(f, &f->remounts, deps->watch->remounts, on_event, EV_MAXPRI);
    watch_fd(f, &f->mounts, fp_mounts_fd(deps->mounts), on_event, EV_MAXPRI);
    watch_fd(f, &f->spoilt, deps->watch->spoilt, on_spoilt, 0);
    ev_init(&f->beat, on_beat);
    f->beat.data = f;
    f->beat.repeat = BEAT_SECONDS;
    catch_up(f);
    return f;
}

void fp_coherence_destroy(struct fp_coherence **fp)
{
    struct fp_coherence *f = *fp;

    *fp = NULL;
    if (f == NULL)
        return;
    ev_io_stop(f->loop, &f->inotify);
    ev_io_stop(f->loop, &f->remounts);
    ev_io_stop(f->loop, &f->mounts);
    ev_io_stop(f->loop, &f->spoilt);
    ev_timer_stop(f->loop, &f->beat);
    fp_noise_destroy(&f->noise);
    free(f);
}

void fp_coherence_set_beat(struct fp_coherence *f, bool (*on_beat_done)(void *ctx), void *ctx)
{
    f->on_beat = on_beat_done;
    f->on_beat_ctx = ctx;
}

struct fp_coherence_counts fp_coherence_counts(const struct fp_coherence *f)
{
    struct fp_coherence_counts counts = f->counts;

    counts.noisy = f->noise != NULL ? fp_noise_places(f->noise, fp_now_ms()) : 0;
    return counts;
}
