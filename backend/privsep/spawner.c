/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "privsep/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privsep/child.h"
#include "wire/packet.h"
#include "wire/wire.h"

#define REAP_MS      20   /* between two attempts to reap killed children */
#define MAX_CHILDREN 1024 /* living and dying ones; settings allow 256 living */

enum { ASK = 'a', KILL = 'k', BORN = 'b' };

/* The state of the spawner's process. */
static struct {
    pid_t pid;
    bool dying;
} children[MAX_CHILDREN];
static size_t n_children;

static fp_status send_note(int sock, uint8_t what, pid_t pid, int fd)
{
    uint8_t buf[8];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    fp_put_u8(&w, what);
    fp_put_u32(&w, (uint32_t)pid);
    return fp_send_packet(sock, buf, w.len, fd);
}

static fp_status recv_note(int sock, uint8_t *what_r, pid_t *pid_r, int *fd_r)
{
    uint8_t buf[8];
    size_t len = 0;
    struct fp_reader r;
    fp_status st = fp_recv_packet(sock, buf, sizeof(buf), &len, fd_r);

    if (st != FP_OK && st != FP_LOSTFD)
        return st;
    fp_reader_init(&r, buf, len);
    *what_r = fp_get_u8(&r);
    *pid_r = (pid_t)fp_get_u32(&r);
    if (fp_reader_done(&r))
        return st;
    if (fd_r != NULL)
        fp_close(fd_r);
    return FP_PROTOCOL;
}

/* ---- the spawner ---- */

/* True if killed children are left. */
static bool reap(void)
{
    bool left = false;

    for (size_t i = 0; i < n_children;) {
        if (children[i].dying && waitpid(children[i].pid, NULL, WNOHANG) != 0) {
            children[i] = children[--n_children];
            continue;
        }
        left = left || children[i].dying;
        i++;
    }
    return left;
}

static void kill_child(pid_t pid)
{
    for (size_t i = 0; i < n_children; i++) {
        if (children[i].pid == pid) {
            kill(pid, SIGKILL);
            children[i].dying = true;
        }
    }
}

/* Forks a worker and sends the daemon its end of the socket. */
static fp_status spawn(int sock, const struct fp_worker_job *job)
{
    int end = -1;
    const pid_t pid = n_children < MAX_CHILDREN ? fp_child_fork(&end) : -1;
    fp_status st;

    if (pid == 0) {
        close(sock);
        job->run(end, job->ctx);
        _exit(1);
    }
    if (pid > 0) {
        children[n_children].pid = pid;
        children[n_children++].dying = false;
        fcntl(end, F_SETFL, O_NONBLOCK);
    }
    st = send_note(sock, BORN, pid > 0 ? pid : 0, end);
    if (st == FP_SYSTEM) {
        if (pid > 0)
            kill_child(pid);
        st = send_note(sock, BORN, 0, -1);
    }
    fp_close(&end);
    return st;
}

static void be_spawner(int sock, const struct fp_worker_job *job)
{
    struct pollfd p = { .fd = sock, .events = POLLIN };
    uint8_t what;
    pid_t pid;

    fp_child_begin("fp-spawner", sock, job->inherited, job->lent_log);
    /* Workers are not as urgent as the daemon's session (fp_priv_run_promptly). */
    setsid();
    while (recv_note(sock, &what, &pid, NULL) == FP_OK) {
        if (what == KILL)
            kill_child(pid);
        if (what == ASK && spawn(sock, job) != FP_OK)
            break;
        /* Reaps killed children until the daemon sends a note.  Waiting for one alone could take for ever:
         * it may hang in the kernel. */
        while (reap() && poll(&p, 1, REAP_MS) == 0)
            ;
    }
    for (size_t i = 0; i < n_children; i++)
        kill(children[i].pid, SIGKILL);
    _exit(0);
}

int fp_spawner_start(struct fp_spawner *s, const struct fp_worker_job *job)
{
    s->pid = fp_child_fork(&s->sock);
    if (s->pid == 0)
        be_spawner(s->sock, job);
    return s->pid == -1 ? -1 : fcntl(s->sock, F_SETFL, O_NONBLOCK);
}

fp_status fp_spawner_ask(const struct fp_spawner *s)
{
    return send_note(s->sock, ASK, 0, -1);
}

fp_status fp_spawner_kill(const struct fp_spawner *s, pid_t pid)
{
    return send_note(s->sock, KILL, pid, -1);
}

fp_status fp_spawner_read(const struct fp_spawner *s, pid_t *pid_r, int *sock_r)
{
    uint8_t what;
    fp_status st = recv_note(s->sock, &what, pid_r, sock_r);

    if (st == FP_OK && *pid_r == 0)
        return FP_BUSY;
    /* Nobody can reach that worker: it is killed to be reaped. */
    if (st == FP_LOSTFD)
        fp_spawner_kill(s, *pid_r);
    return st;
}

void fp_spawner_stop(struct fp_spawner *s)
{
    fp_hang_up(&s->sock);
}
