/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "privsep/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "conf/conf.h"
#include "conf/conf_fleet.h"
#include "privsep/child.h"
#include "privsep/spawner.h"
#include "wire/packet.h"
#include "wire/socket_path.h"

#define READERS 2 /* processes that read the password: the fleet has two connections */

/* The state of the monitor's process. */
struct state {
    const struct fp_monitor_settings *settings;
    const struct fp_conf *conf; /* the current one */
    struct fp_conf *reread;     /* owns conf after a reload; NULL */
    pid_t spawner;              /* the last one, until it is killed; 0: none */
    pid_t readers[READERS];     /* of the password, the oldest first; 0: none */
};

#define DONE (-2) /* the result of a task without a descriptor */

static void reap(struct state *s)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (pid == s->spawner)
            s->spawner = 0;
        for (int i = 0; i < READERS; i++) {
            if (pid == s->readers[i])
                s->readers[i] = 0;
        }
    }
}

/* ---- the tasks: each returns a descriptor, DONE, or -1 with errno ---- */

static int reread(struct state *s)
{
    const struct fp_monitor_settings *settings = s->settings;
    int fd = open(settings->file, O_RDONLY | O_CLOEXEC);
    struct fp_conf *c;

    if (fd == -1)
        return -1;
    c = fp_conf_load(settings->file, settings->overrides, settings->n_overrides);
    if (c == NULL) {
        fp_close(&fd);
        errno = EINVAL;
        return -1;
    }
    fp_conf_destroy(&s->reread);
    s->conf = s->reread = c;
    return fd;
}

static int open_log(struct state *s)
{
    return fp_log_open_file(s->conf->log);
}

/* In a process of its own: writes the beginning of the file into the pipe, or nothing: it cannot be read. */
static void send_password(const struct state *s, int pipe)
{
    char text[FP_MAX_PASSWORD];
    ssize_t n;
    int fd;

    fp_child_begin("fp-password", pipe, -1, s->settings->job->lent_log);
    fd = fp_open_now(s->conf->fleet->password_file);
    n = fd != -1 ? read(fd, text, sizeof(text)) : 0;
    if (n > 0)
        n = write(pipe, text, (size_t)n);
    _exit(n > 0 ? 0 : 1);
}

/* The place of one more reader; -1: all of them hang.  Then the oldest is killed, and its place is free for
 * a later attempt, unless it hangs in the kernel. */
static int find_reader(struct state *s)
{
    int n = 0;

    reap(s);
    for (int i = 0; i < READERS; i++) {
        const pid_t reader = s->readers[i];

        s->readers[i] = 0;
        if (reader != 0)
            s->readers[n++] = reader;
    }
    if (n < READERS)
        return n;
    kill(s->readers[0], SIGKILL);
    return -1;
}

/* The file system may not answer, and the daemon waits for us: so another process waits for the file. */
static int read_password(struct state *s)
{
    const int at = find_reader(s);
    int ends[2];
    pid_t pid;

    errno = s->conf->fleet == NULL ? ENOENT : EBUSY;
    if (s->conf->fleet == NULL || at == -1 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) == -1)
        return -1;
    pid = fork();
    if (pid == 0)
        send_password(s, ends[1]);
    fp_close(&ends[1]);
    if (pid == -1)
        fp_close(&ends[0]);
    else
        s->readers[at] = pid;
    return ends[0];
}

static int connect_redis(struct state *s)
{
    if (s->conf->fleet != NULL)
        return s->settings->connect_fleet(s->conf->fleet);
    errno = ENOENT;
    return -1;
}

/* The last one may hang, or somebody may have stopped it; its workers die with it.  The daemon waits for us,
 * and so nobody waits for a process that hangs in the kernel: it is reaped before the next start. */
static void end_spawner(struct state *s)
{
    if (s->spawner > 0)
        kill(s->spawner, SIGKILL);
    for (int i = 0; i < 100 && s->spawner > 0 && waitpid(s->spawner, NULL, WNOHANG) == 0; i++)
        usleep(1000);
    s->spawner = 0;
    reap(s);
}

static int start_spawner(struct state *s)
{
    struct fp_spawner spawner;

    end_spawner(s);
    if (fp_spawner_start(&spawner, s->settings->job) == -1)
        return -1;
    s->spawner = spawner.pid;
    return spawner.sock;
}

/* Socket and lock have the paths of the start: a reload does not change them. */
static int open_lock(struct state *s)
{
    return fp_socket_path_open_lock(s->settings->conf->socket);
}

static int listen_again(struct state *s)
{
    return fp_socket_path_listen(s->settings->conf->socket, s->settings->conf->gid);
}

static int end_socket(struct state *s)
{
    return unlink(s->settings->conf->socket) == 0 ? DONE : -1;
}

static int (*const tasks[])(struct state *s) = {
    [FP_MONITOR_CONFIGURATION] = reread,   [FP_MONITOR_LOG] = open_log,
    [FP_MONITOR_PASSWORD] = read_password, [FP_MONITOR_REDIS] = connect_redis,
    [FP_MONITOR_SPAWNER] = start_spawner,  [FP_MONITOR_LOCK] = open_lock,
    [FP_MONITOR_SOCKET] = listen_again,    [FP_MONITOR_END_SOCKET] = end_socket,
};
#define TASKS (sizeof(tasks) / sizeof(tasks[0]))

/* ---- its loop ---- */

static fp_status do_one(struct state *s, int sock)
{
    uint8_t task;
    size_t len;
    int32_t why;
    int stream, fd;
    fp_status st = fp_recv_packet(sock, &task, sizeof(task), &len, &stream);

    if (st != FP_OK)
        return st;
    if (stream != -1)
        dup2(stream, STDERR_FILENO);
    fp_close(&stream);
    if (task >= TASKS)
        return FP_PROTOCOL;
    fd = tasks[task](s);
    why = fd == -1 ? errno : 0;
    if (s->settings->job->lent_log)
        fp_lead_to_null(STDERR_FILENO);
    if (fd == DONE)
        fd = -1;
    st = fp_send_packet(sock, &why, sizeof(why), fd);
    if (st == FP_SYSTEM) {
        /* There may be no memory to pass the descriptor, say: the monitor goes on. */
        why = errno;
        st = fp_send_packet(sock, &why, sizeof(why), -1);
    }
    fp_close(&fd);
    return st;
}

int fp_monitor_start(struct fp_monitor *m, const struct fp_monitor_settings *settings)
{
    const pid_t pid = fp_child_fork(&m->sock);
    struct state s = { settings, settings->conf, NULL, 0, { 0 } };

    if (pid != 0)
        return pid == -1 ? -1 : 0;
    fp_child_begin("fp-monitor", m->sock, settings->job->inherited, settings->job->lent_log);
    while (do_one(&s, m->sock) == FP_OK)
        ;
    end_spawner(&s);
    for (int i = 0; i < READERS; i++) {
        if (s.readers[i] > 0)
            kill(s.readers[i], SIGKILL);
    }
    _exit(0);
}

void fp_monitor_stop(struct fp_monitor *m)
{
    fp_hang_up(&m->sock);
}

/* ---- in the daemon ---- */

int fp_monitor_ask(const struct fp_monitor *m, enum fp_monitor_task task)
{
    const uint8_t number = (uint8_t)task;
    int32_t why = EPIPE;
    size_t len = 0;
    int fd = -1;
    /* The monitor writes mistakes to the daemon's present standard error. */
    fp_status st = fp_send_packet(m->sock, &number, sizeof(number), STDERR_FILENO);

    if (st == FP_SYSTEM)
        return -1;
    if (st == FP_OK)
        st = fp_recv_packet(m->sock, &why, sizeof(why), &len, &fd);
    if (st == FP_LOSTFD)
        why = EMFILE;
    else if (st != FP_OK || len != sizeof(why))
        why = EPIPE;
    if (why == 0)
        return fd != -1 ? fd : 0;
    fp_close(&fd);
    errno = why;
    return -1;
}
