/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "fleet/fleet_link.h"

#include <ev.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/turn.h"
#include "conf/conf_fleet.h"
#include "privsep/monitor.h"
#include "wire/packet.h"

#define ANSWER_SECONDS 15. /* longer than any command of the daemon blocks */
#define FIRST_PAUSE    0.1 /* seconds before the second attempt, doubled for each */
#define LONGEST_PAUSE  30.
#define PASSWORD_HANGS "the file system of password_file does not answer"
#define MAX_WORDS      10
#define MAX_WHY        200
#define READ_SIZE      16384        /* bytes at a time */
#define MAX_ANSWER     (128u << 10) /* bytes: nine entries with the two longest texts, and more */
#define MAX_ELEMENTS   1024         /* of an array */

struct fp_fleet_link {
    struct ev_loop *loop;
    const struct fp_fleet_settings *settings;
    const struct fp_monitor *monitor;
    const struct fp_fleet_link_ops *ops;
    void *ctx;
    redisContext *redis; /* NULL between attempts */
    ev_io readable, writable;
    ev_io password; /* the pipe that is to bring it; -1: none */
    ev_timer deadline; /* of the password, and of the oldest command without an answer */
    ev_timer retry;    /* until the next attempt */
    double pause;         /* before the next attempt */
    uint64_t ready_since; /* in ms */
    unsigned greetings; /* commands of the greeting without an answer */
    size_t asked;       /* all commands without an answer */
    size_t incomplete;  /* bytes read since the last answer */
    bool ready;
    bool refused; /* Redis answered with an error */
};

/* ---- the end of a connection ---- */

static void close_password(struct fp_fleet_link *l)
{
    ev_io_stop(l->loop, &l->password);
    fp_close(&l->password.fd);
}

static void disconnect(struct fp_fleet_link *l)
{
    ev_io_stop(l->loop, &l->readable);
    ev_io_stop(l->loop, &l->writable);
    ev_timer_stop(l->loop, &l->deadline);
    close_password(l);
    if (l->redis != NULL)
        redisFree(l->redis);
    l->redis = NULL;
    l->ready = l->refused = false;
    l->greetings = 0;
    l->asked = l->incomplete = 0;
}

/* Between half of the pause and all of it, so that a fleet does not come back as one. */
static double jittered(double pause)
{
    uint16_t n = 0;

    if (getrandom(&n, sizeof(n), GRND_NONBLOCK) != sizeof(n))
        n = UINT16_MAX;
    return pause * (0.5 + 0.5 * n / UINT16_MAX);
}

/* True if the connection was good for longer than the pause that would follow.  So a server that closes each
 * connection at once, or gives wrong answers, is asked ever more rarely. */
static bool has_held(const struct fp_fleet_link *l)
{
    return l->ready && (double)(fp_now_ms() - l->ready_since) > l->pause * 1e3;
}

static void lose(struct fp_fleet_link *l, const char *why)
{
    const bool refused = l->refused;
    char text[MAX_WHY];

    if (has_held(l))
        l->pause = FIRST_PAUSE;
    /* why may lie in the connection that is freed now. */
    snprintf(text, sizeof(text), "%s", why);
    disconnect(l);
    ev_timer_set(&l->retry, jittered(l->pause), 0.);
    ev_timer_start(l->loop, &l->retry);
    l->pause = l->pause * 2 < LONGEST_PAUSE ? l->pause * 2 : LONGEST_PAUSE;
    l->ops->lost(l->ctx, text, refused);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_fleet_link *l = timer->data;

    fp_turn_work(FP_WORK_FLEET);
    (void)loop;
    (void)events;
    lose(l, l->password.fd != -1 ? PASSWORD_HANGS : "it does not answer");
}

/* ---- asking ---- */

static void ask(struct fp_fleet_link *l, const struct fp_fleet_word *words, size_t n)
{
    const char *argv[MAX_WORDS];
    size_t lens[MAX_WORDS];

    for (size_t i = 0; i < n; i++) {
        argv[i] = words[i].text;
        lens[i] = words[i].len;
    }
    l->asked++;
    if (!ev_is_active(&l->deadline))
        ev_timer_again(l->loop, &l->deadline);
    /* If memory runs out, the deadline ends the connection. */
    if (redisAppendCommandArgv(l->redis, (int)n, argv, lens) == REDIS_OK)
        ev_io_start(l->loop, &l->writable);
}

void fp_fleet_link_ask(struct fp_fleet_link *l, const struct fp_fleet_word *words, size_t n)
{
    if (l->ready)
        ask(l, words, n);
}

static void authenticate(struct fp_fleet_link *l, const char *password, size_t len)
{
    const char *user = l->settings->user;
    const bool named = user[0] != '\0';
    struct fp_fleet_word words[3] = { { "AUTH", 4 }, { user, strlen(user) } };

    words[named ? 2 : 1] = (struct fp_fleet_word){ password, len };
    ask(l, words, named ? 3 : 2);
}

/* After AUTH, if there is a password: sends SELECT where it is needed.  Without both a PING, so that ready
 * means that Redis has answered. */
static void greet(struct fp_fleet_link *l)
{
    const struct fp_fleet_word ping = { "PING", 4 };
    char db[16];
    int n = snprintf(db, sizeof(db), "%u", l->settings->db);
    const struct fp_fleet_word select[] = { { "SELECT", 6 }, { db, (size_t)n } };

    if (l->settings->db != 0)
        ask(l, select, 2);
    if (l->asked == 0)
        ask(l, &ping, 1);
    l->greetings = (unsigned)l->asked;
}

/* The password is the first line. */
static void on_password(struct ev_loop *loop, ev_io *w, int events)
{
    struct fp_fleet_link *l = w->data;
    char text[FP_MAX_PASSWORD];
    const ssize_t n = read(w->fd, text, sizeof(text) - 1);
    size_t len;

    fp_turn_work(FP_WORK_FLEET);
    (void)events;
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return;
    close_password(l);
    ev_timer_stop(loop, &l->deadline);
    text[n > 0 ? n : 0] = '\0';
    len = strcspn(text, "\r\n");
    if (len == 0) {
        lose(l, "cannot read a password from password_file as the daemon's user");
        return;
    }
    authenticate(l, text, len);
    explicit_bzero(text, sizeof(text));
    greet(l);
}

/* At each attempt, so that a new password needs no reload. */
static void ask_password(struct fp_fleet_link *l)
{
    const int fd = fp_monitor_ask(l->monitor, FP_MONITOR_PASSWORD);

    if (fd == -1) {
        lose(l, errno == EBUSY ? PASSWORD_HANGS : strerror(errno));
        return;
    }
    ev_io_set(&l->password, fd, EV_READ);
    ev_io_start(l->loop, &l->password);
    ev_timer_again(l->loop, &l->deadline);
}

/* ---- answers ---- */

static bool take_answer(struct fp_fleet_link *l, const redisReply *reply)
{
    l->asked--;
    l->incomplete = 0;
    if (l->asked > 0)
        ev_timer_again(l->loop, &l->deadline);
    else
        ev_timer_stop(l->loop, &l->deadline);
    if (l->greetings == 0)
        return l->ops->answer(l->ctx, reply);
    if (--l->greetings == 0) {
        l->ready = true;
        l->ready_since = fp_now_ms();
        l->ops->ready(l->ctx);
    }
    return true;
}

/* Returns NULL, or why the connection is lost; buf has MAX_WHY bytes. */
static const char *take_reply(struct fp_fleet_link *l, const redisReply *reply, char *buf)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        l->refused = true;
        snprintf(buf, MAX_WHY, "%.*s", MAX_WHY - 1, reply->str);
        return buf;
    }
    if (l->asked == 0)
        return "an answer to no question";
    return take_answer(l, reply) ? NULL : "an answer that does not fit the question";
}

static void take_replies(struct fp_fleet_link *l)
{
    char buf[MAX_WHY];
    const char *why = NULL;
    void *reply = NULL;

    while (why == NULL) {
        if (redisGetReplyFromReader(l->redis, &reply) != REDIS_OK)
            why = l->redis->errstr;
        else if (reply == NULL)
            return;
        else
            why = take_reply(l, reply, buf);
        if (reply != NULL)
            freeReplyObject(reply);
    }
    lose(l, why);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct fp_fleet_link *l = w->data;
    char bytes[READ_SIZE];
    const ssize_t n = recv(l->redis->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    fp_turn_work(FP_WORK_FLEET);
    (void)loop;
    (void)events;
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        lose(l, n == 0 ? "Redis closed the connection" : strerror(errno));
        return;
    }
    l->incomplete += (size_t)n;
    if (l->incomplete <= MAX_ANSWER && redisReaderFeed(l->redis->reader, bytes, (size_t)n) == REDIS_OK)
        take_replies(l);
    else
        lose(l, "an answer is too long");
}

static void on_writable(struct ev_loop *loop, ev_io *w, int events)
{
    struct fp_fleet_link *l = w->data;
    int done = 0;

    fp_turn_work(FP_WORK_FLEET);
    (void)events;
    if (redisBufferWrite(l->redis, &done) != REDIS_OK)
        lose(l, l->redis->errstr);
    else if (done)
        ev_io_stop(loop, w);
}

/* ---- a connection ---- */

int fp_fleet_connect(const struct fp_fleet_settings *s)
{
    redisContext *redis =
        s->path[0] != '\0' ? redisConnectUnixNonBlock(s->path) : redisConnectNonBlock(s->host, s->port);
    int why = errno, fd = -1;

    if (redis != NULL && redis->err == 0) {
        fd = fcntl(redis->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        why = errno;
    }
    if (redis != NULL)
        redisFree(redis);
    errno = why;
    return fd;
}

#if HIREDIS_MAJOR > 0
typedef size_t elements_of_array;
#else
typedef int elements_of_array;
#endif

static redisReplyObjectFunctions hiredis_own;

/* hiredis has room for as many elements as an array announces, and visits all of them when it frees them. */
static void *create_array(const redisReadTask *task, elements_of_array n)
{
    return n <= MAX_ELEMENTS ? hiredis_own.createArray(task, n) : NULL;
}

static void bound_arrays(redisReader *reader)
{
    static redisReplyObjectFunctions bounded;

    if (bounded.createArray == NULL) {
        bounded = hiredis_own = *reader->fn;
        bounded.createArray = create_array;
    }
    reader->fn = &bounded;
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_fleet_link *l = timer->data;
    int fd;

    fp_turn_work(FP_WORK_FLEET);
    (void)events;
    fd = fp_monitor_ask(l->monitor, FP_MONITOR_REDIS);
    l->redis = fd != -1 ? redisConnectFd(fd) : NULL;
    if (l->redis == NULL) {
        lose(l, strerror(errno));
        fp_close(&fd);
        return;
    }
    /* hiredis makes a connection from a descriptor a blocking one, which ours must not be. */
    l->redis->flags &= ~REDIS_BLOCK;
    bound_arrays(l->redis->reader);
    ev_io_set(&l->readable, l->redis->fd, EV_READ);
    ev_io_set(&l->writable, l->redis->fd, EV_WRITE);
    ev_io_start(loop, &l->readable);
    if (l->settings->password_file[0] != '\0')
        ask_password(l);
    else
        greet(l);
}

struct fp_fleet_link *fp_fleet_link_create(struct ev_loop *loop, const struct fp_fleet_settings *settings,
                                           const struct fp_monitor *monitor,
                                           const struct fp_fleet_link_ops *ops, void *ctx)
{
    struct fp_fleet_link *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return NULL;
    l->loop = loop;
    l->settings = settings;
    l->monitor = monitor;
    l->ops = ops;
    l->ctx = ctx;
    l->pause = FIRST_PAUSE;
    ev_init(&l->readable, on_readable);
    ev_init(&l->writable, on_writable);
    ev_init(&l->password, on_password);
    l->password.fd = -1;
    ev_init(&l->deadline, on_deadline);
    ev_timer_init(&l->retry, on_retry, 0., 0.);
    l->deadline.repeat = ANSWER_SECONDS;
    l->readable.data = l->writable.data = l->password.data = l->deadline.data = l->retry.data = l;
    ev_timer_start(loop, &l->retry);
    return l;
}

void fp_fleet_link_destroy(struct fp_fleet_link **lp)
{
    struct fp_fleet_link *l = *lp;

    *lp = NULL;
    if (l == NULL)
        return;
    disconnect(l);
    ev_timer_stop(l->loop, &l->retry);
    free(l);
}

bool fp_fleet_link_is_ready(const struct fp_fleet_link *l)
{
    return l->ready;
}
