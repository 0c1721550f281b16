/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "fleet/fleet.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/turn.h"
#include "conf/conf_fleet.h"
#include "fleet/fleet_link.h"
#include "fleet/fleet_message.h"
#include "fleet/fleet_queue.h"

#define MAX_QUEUE     1024   /* messages that wait for Redis */
#define MAX_SENT      64     /* messages that Redis has not stored yet */
#define TICK_SECONDS  0.01   /* a path is sent once in it ... */
#define TICK_MESSAGES 10u    /* ... and so many messages are */
#define REST_SECONDS  0.01   /* between two reads of the stream; after a full one, */
#define SHORT_SECONDS 0.001  /* which has eight messages to obey, the next one comes sooner */
#define READ_ENTRIES  9      /* the last entry seen, and those after it */
#define READ_COUNT    "9"
#define MAX_FAILED    2u     /* connections lost in a row while the daemon read on from the same entry */
#define BLOCK_MS      "5000" /* then the daemon checks that the last entry is still there */
/* Limits of a second; above them one "everything" replaces the rest, at most one a second too. */
#define SECOND_MS   1000u
#define MAX_PATHS   1000u
#define MAX_TREES   20u
#define KEY_SIZE    96
#define NUMBER_SIZE 24

struct fp_fleet {
    struct ev_loop *loop;
    const struct fp_fleet_settings *settings;
    const struct fp_monitor *monitor;
    fp_fleet_forget *forget;
    void *ctx;
    struct fp_fleet_link *reads, *writes; /* reads blocks until others send */
    struct fp_fleet_queue *queue;
    ev_timer tick, rest, everything;
    char sender[FP_FLEET_SENDER + 1];
    char key[KEY_SIZE];                /* of the stream */
    char maxlen[NUMBER_SIZE];          /* of the stream, in entries */
    char last[FP_MAX_STREAM_ID + 1];   /* entry seen; "": join again */
    unsigned skip;                     /* answers that only end a wait */
    unsigned failed;                   /* connections lost before a read was good */
    bool unread;                       /* connected, and no read was good yet */
    uint64_t second_ms, everything_ms; /* start of the counted second; the last time */
    unsigned paths, trees;             /* of the messages of this second */
    uint64_t postponed;                /* messages that "everything" is to obey */
    bool reads_logged, writes_logged;  /* that the connection is lost */
    struct fp_fleet_counts counts;
};

static struct fp_fleet_word word(const char *text)
{
    return (struct fp_fleet_word){ text, strlen(text) };
}

/* Sends XADD of one message. */
static void store(struct fp_fleet *f, struct fp_fleet_link *link, struct fp_fleet_message *m)
{
    char text[FP_MAX_FLEET_MESSAGE];
    size_t len;

    m->sender = f->sender;
    len = fp_fleet_message_write(text, m);
    const struct fp_fleet_word words[] = {
        word("XADD"),    word(f->key), word("MAXLEN"),         word("~"),
        word(f->maxlen), word("*"),    word(FP_FLEET_VERSION), { text, len },
    };
    fp_fleet_link_ask(link, words, sizeof(words) / sizeof(words[0]));
}

/* ---- obeying ---- */

static void forget_everything(struct fp_fleet *f)
{
    ev_timer_stop(f->loop, &f->everything);
    f->everything_ms = fp_now_ms();
    for (const char *const *root = f->settings->roots; *root != NULL; root++)
        f->forget(f->ctx, *root, strlen(*root), true);
    f->counts.obeyed += f->postponed;
    f->postponed = 0;
}

static void on_everything(struct ev_loop *loop, ev_timer *timer, int events)
{
    fp_turn_work(FP_WORK_FLEET);
    (void)loop;
    (void)events;
    forget_everything(timer->data);
}

/* Forgets everything now, or a second after the last time. */
static void forget_everything_soon(struct fp_fleet *f)
{
    const uint64_t past = fp_now_ms() - f->everything_ms;

    if (ev_is_active(&f->everything))
        return;
    if (past >= SECOND_MS) {
        forget_everything(f);
        return;
    }
    ev_timer_set(&f->everything, (double)(SECOND_MS - past) / 1e3, 0.);
    ev_timer_start(f->loop, &f->everything);
}

static bool may_forget(struct fp_fleet *f, bool tree)
{
    const uint64_t now = fp_now_ms();

    if (now - f->second_ms >= SECOND_MS) {
        f->second_ms = now;
        f->paths = f->trees = 0;
    }
    return tree ? f->trees++ < MAX_TREES : f->paths++ < MAX_PATHS;
}

static void obey(struct fp_fleet *f, const struct fp_fleet_message *m)
{
    if (m->op == FP_FLEET_ALL || !may_forget(f, m->op == FP_FLEET_TREE)) {
        f->postponed++;
        forget_everything_soon(f);
        return;
    }
    f->forget(f->ctx, m->path, m->path_len, m->op == FP_FLEET_TREE);
    f->counts.obeyed++;
}

static void drop(struct fp_fleet *f, const char *id, const char *why)
{
    f->counts.dropped++;
    fp_log(FP_LOG_WARNING, 62, "fleet: entry %s of the stream %s is ignored: %s", id, f->key, why);
}

static void take_message(struct fp_fleet *f, const char *id, const char *text, size_t len)
{
    struct fp_fleet_message m;

    if (!fp_fleet_message_read(text, len, &m)) {
        drop(f, id, "it is not a message of this version");
        return;
    }
    if (memcmp(m.sender, f->sender, FP_FLEET_SENDER) == 0)
        return;
    f->counts.received++;
    if (m.op == FP_FLEET_JOIN)
        return;
    if (m.path != NULL && !fp_path_is_below_any(m.path, m.path_len, f->settings->roots)) {
        drop(f, id, "its path is not in the fleet's roots");
        return;
    }
    obey(f, &m);
}

/* ---- reading ---- */

static bool is_text(const redisReply *r)
{
    return r->type == REDIS_REPLY_STRING;
}

static bool keep_last(struct fp_fleet *f, const redisReply *id)
{
    if (!is_text(id) || !fp_fleet_is_id(id->str, (size_t)id->len))
        return false;
    memcpy(f->last, id->str, (size_t)id->len);
    f->last[id->len] = '\0';
    return true;
}

/* The id of an entry; NULL: this is none. */
static const redisReply *entry_id(const redisReply *entry)
{
    if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2
        || entry->element[1]->type != REDIS_REPLY_ARRAY || !is_text(entry->element[0]))
        return NULL;
    return entry->element[0];
}

static bool take_entry(struct fp_fleet *f, const redisReply *entry)
{
    const redisReply *id = entry_id(entry), *fields;

    if (id == NULL || !keep_last(f, id))
        return false;
    fields = entry->element[1];
    if (fields->elements == 2 && is_text(fields->element[0]) && is_text(fields->element[1])
        && strcmp(fields->element[0]->str, FP_FLEET_VERSION) == 0)
        take_message(f, f->last, fields->element[1]->str, (size_t)fields->element[1]->len);
    else
        drop(f, f->last, "it is not a message of this version");
    return true;
}

/* Subscribes from a new entry of this daemon on. */
static void join(struct fp_fleet *f)
{
    struct fp_fleet_message m = { .op = FP_FLEET_JOIN };

    f->last[0] = '\0';
    store(f, f->reads, &m);
}

/* Reads from the last entry on; with wait, once there is a newer one. */
static void read_stream(struct fp_fleet *f, bool wait)
{
    const struct fp_fleet_word block[] = {
        word("XREAD"),  word("COUNT"),   word("1"),    word("BLOCK"),
        word(BLOCK_MS), word("STREAMS"), word(f->key), word(f->last),
    };
    const struct fp_fleet_word read[] = {
        word("XRANGE"), word(f->key),  word(f->last),
        word("+"),      word("COUNT"), word(READ_COUNT),
    };

    f->skip = wait;
    if (wait)
        fp_fleet_link_ask(f->reads, block, sizeof(block) / sizeof(block[0]));
    fp_fleet_link_ask(f->reads, read, sizeof(read) / sizeof(read[0]));
}

static void on_rested(struct ev_loop *loop, ev_timer *timer, int events)
{
    fp_turn_work(FP_WORK_FLEET);
    (void)loop;
    (void)events;
    read_stream(timer->data, true);
}

/* Reads again after a rest, since the read was good. */
static void read_again(struct fp_fleet *f, double rest_s)
{
    f->failed = 0;
    f->unread = false;
    if (!f->counts.connected) {
        fp_log(FP_LOG_INFO, 60, "fleet: connected to %s, stream %s", f->settings->url, f->key);
        f->counts.connected = 1;
        f->reads_logged = false;
    }
    ev_timer_set(&f->rest, rest_s, 0.);
    ev_timer_start(f->loop, &f->rest);
}

/* True if the entries begin with the last one that was read: none in between was trimmed. */
static bool follows_last(const struct fp_fleet *f, const redisReply *entries)
{
    const redisReply *first = entries->elements > 0 ? entry_id(entries->element[0]) : NULL;

    return first != NULL && strcmp(first->str, f->last) == 0;
}

static void note_trimmed(struct fp_fleet *f)
{
    f->counts.lost++;
    fp_log(FP_LOG_WARNING, 63,
           "fleet: entry %s is not in the stream %s any more: everything "
           "in the fleet's roots is forgotten; if this is logged often, raise stream_max",
           f->last, f->key);
}

static bool on_read(void *ctx, const redisReply *r)
{
    struct fp_fleet *f = ctx;

    if (f->last[0] == '\0') {
        if (!keep_last(f, r))
            return false;
        forget_everything_soon(f);
        read_again(f, REST_SECONDS);
        return true;
    }
    if (f->skip > 0) {
        f->skip--;
        return true;
    }
    if (r->type != REDIS_REPLY_ARRAY)
        return false;
    if (!follows_last(f, r)) {
        note_trimmed(f);
        join(f);
        return true;
    }
    for (size_t i = 1; i < r->elements; i++) {
        if (!take_entry(f, r->element[i]))
            return false;
    }
    read_again(f, r->elements < READ_ENTRIES ? REST_SECONDS : SHORT_SECONDS);
    return true;
}

/* Gives the place up: the entries behind the last one cannot be read. */
static void give_up_place(struct fp_fleet *f)
{
    f->failed = 0;
    f->counts.dropped++;
    f->counts.lost++;
    fp_log(FP_LOG_WARNING, 64,
           "fleet: nothing after entry %s of the stream %s can be read: everything in the fleet's roots is "
           "forgotten, and the daemon continues with new entries",
           f->last, f->key);
    join(f);
}

static void on_reads(void *ctx)
{
    struct fp_fleet *f = ctx;

    f->unread = true;
    if (f->last[0] == '\0')
        join(f);
    else if (f->failed >= MAX_FAILED)
        give_up_place(f);
    else
        read_stream(f, false);
}

static void report_lost(const struct fp_fleet *f, bool *logged, const char *why, const char *effect)
{
    if (!*logged)
        fp_log(FP_LOG_WARNING, 61, "fleet: no connection to %s: %s; until there is one, %s", f->settings->url, why,
               effect);
    *logged = true;
}

static void on_reads_lost(void *ctx, const char *why, bool refused)
{
    struct fp_fleet *f = ctx;

    /* An error of Redis (that it is loading, say) is no reason to give the place up. */
    f->failed += f->unread && !refused;
    f->unread = false;
    ev_timer_stop(f->loop, &f->rest);
    f->counts.connected = 0;
    report_lost(f, &f->reads_logged, why, "other machines' changes are seen only after the TTL");
}

/* ---- writing ---- */

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_fleet *f = timer->data;
    struct fp_fleet_message m;

    fp_turn_work(FP_WORK_FLEET);
    (void)events;
    for (unsigned i = 0;
         i < TICK_MESSAGES && fp_fleet_queue_sent(f->queue) < MAX_SENT && fp_fleet_queue_send(f->queue, &m);
         i++)
        store(f, f->writes, &m);
    if (fp_fleet_queue_waiting(f->queue) == 0)
        ev_timer_stop(loop, timer);
}

static void begin_ticking(void *ctx)
{
    struct fp_fleet *f = ctx;

    if (fp_fleet_link_is_ready(f->writes) && fp_fleet_queue_waiting(f->queue) > 0 && !ev_is_active(&f->tick))
        ev_timer_again(f->loop, &f->tick);
}

static bool on_stored(void *ctx, const redisReply *r)
{
    struct fp_fleet *f = ctx;

    if (!is_text(r) || fp_fleet_queue_sent(f->queue) == 0)
        return false;
    fp_fleet_queue_stored(f->queue);
    f->counts.published++;
    f->writes_logged = false;
    return true;
}

static void on_writes_lost(void *ctx, const char *why, bool refused)
{
    struct fp_fleet *f = ctx;

    (void)refused;
    ev_timer_stop(f->loop, &f->tick);
    fp_fleet_queue_resend(f->queue);
    report_lost(f, &f->writes_logged, why, "other machines are not told of changes made here");
}

void fp_fleet_publish(struct fp_fleet *f, const char *path, size_t len, bool tree)
{
    if (f == NULL)
        return;
    if (fp_path_is_below_any(path, len, f->settings->roots)) {
        fp_fleet_queue_add(f->queue, tree ? FP_FLEET_TREE : FP_FLEET_PATH, path, len);
    } else if (tree) {
        for (const char *const *root = f->settings->roots; *root != NULL; root++) {
            const size_t n = strlen(*root);

            if (fp_path_common_len(path, len, *root, n) == len)
                fp_fleet_queue_add(f->queue, FP_FLEET_TREE, *root, n);
        }
    }
    begin_ticking(f);
}

/* ---- start and end ---- */

static bool create_parts(struct fp_fleet *f)
{
    static const struct fp_fleet_link_ops read_ops = { on_reads, on_read, on_reads_lost };
    static const struct fp_fleet_link_ops write_ops = { begin_ticking, on_stored, on_writes_lost };
    uint64_t number;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return false;
    snprintf(f->sender, sizeof(f->sender), "%016" PRIx64, number);
    f->queue = fp_fleet_queue_create(MAX_QUEUE);
    f->reads = fp_fleet_link_create(f->loop, f->settings, f->monitor, &read_ops, f);
    f->writes = fp_fleet_link_create(f->loop, f->settings, f->monitor, &write_ops, f);
    return f->queue != NULL && f->reads != NULL && f->writes != NULL;
}

struct fp_fleet *fp_fleet_create(struct ev_loop *loop, const struct fp_fleet_settings *settings,
                                 const struct fp_monitor *monitor, fp_fleet_forget *forget, void *ctx)
{
    struct fp_fleet *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    f->loop = loop;
    f->settings = settings;
    f->monitor = monitor;
    f->forget = forget;
    f->ctx = ctx;
    snprintf(f->key, sizeof(f->key), "flashpache:%s", settings->name);
    snprintf(f->maxlen, sizeof(f->maxlen), "%ld", settings->stream_max);
    ev_timer_init(&f->tick, on_tick, 0., TICK_SECONDS);
    ev_init(&f->rest, on_rested);
    ev_init(&f->everything, on_everything);
    f->tick.data = f->rest.data = f->everything.data = f;
    if (!create_parts(f))
        fp_fleet_destroy(&f);
    return f;
}

void fp_fleet_destroy(struct fp_fleet **fp)
{
    struct fp_fleet *f = *fp;

    *fp = NULL;
    if (f == NULL)
        return;
    ev_timer_stop(f->loop, &f->tick);
    ev_timer_stop(f->loop, &f->rest);
    ev_timer_stop(f->loop, &f->everything);
    fp_fleet_link_destroy(&f->reads);
    fp_fleet_link_destroy(&f->writes);
    fp_fleet_queue_destroy(&f->queue);
    free(f);
}

struct fp_fleet_counts fp_fleet_counts(const struct fp_fleet *f)
{
    struct fp_fleet_counts counts = { 0 };

    if (f == NULL)
        return counts;
    counts = f->counts;
    counts.member = 1;
    counts.sending = fp_fleet_link_is_ready(f->writes);
    return counts;
}
