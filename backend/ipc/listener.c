/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ipc/listener.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/turn.h"
#include "ipc/connection.h"
#include "privsep/monitor.h"
#include "wire/packet.h"
#include "wire/socket_path.h"

#define MOST_GROUPS   1024 /* of a process; with more no client is accepted */
#define PAUSE_SECONDS 0.1  /* of accepting, after descriptors ran out */
#define AGAIN_SECONDS 1.   /* between two attempts to make the socket again */
#define FOR_ROOT      2    /* connections of root above the limit: Apache's user may hold all others */

struct fp_listener {
    struct ev_loop *loop;
    struct fp_listener_settings settings;
    int sock, lock;
    ev_io acceptable;
    ev_timer pause;
    ev_stat path;                        /* of the socket */
    struct stat made;                    /* what was there when it was ours */
    bool hidden;                         /* we may not look there now */
    ev_timer again;                      /* while there is nothing, or it is hidden */
    struct fp_connections connections;
    struct fp_listener_counts counts;
    gid_t groups[MOST_GROUPS]; /* ours, n_groups of them */
    size_t n_groups;
};

/* ---- connections ---- */

static bool is_among(gid_t group, const gid_t *groups, size_t n)
{
    size_t at = 0;

    while (at < n && groups[at] != group)
        at++;
    return at < n;
}

/* True if the peer has our groups and no others.  By a group of ours alone we would open more than it may.
 * A file that it may read by one of its own we would call unreadable. */
static bool has_our_groups(const struct fp_listener *l, int sock, pid_t peer)
{
    gid_t theirs[MOST_GROUPS];
    socklen_t len = sizeof(theirs);
    size_t n;

    if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, theirs, &len) == -1)
        return errno == ENOPROTOOPT; /* before Linux 4.13 the kernel does not say */
    n = len / sizeof(theirs[0]);
    for (size_t i = 0; i < l->n_groups; i++) {
        if (!is_among(l->groups[i], theirs, n) && l->groups[i] != l->settings.gid) {
            fp_log(FP_LOG_WARNING, 10,
                   "refusing process %d: this daemon is in group %u and it is "
                   "not; start the daemon with no groups but those of Apache's children",
                   (int)peer, (unsigned)l->groups[i]);
            return false;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_among(theirs[i], l->groups, l->n_groups) && theirs[i] != l->settings.gid) {
            fp_log(FP_LOG_WARNING, 10,
                   "refusing process %d: it is in group %u and this daemon is "
                   "not; start the daemon again, with the groups of Apache's children",
                   (int)peer, (unsigned)theirs[i]);
            return false;
        }
    }
    return true;
}

/*
 * True for the very identity that we have: for another we would open files
 * with rights that it lacks.  Root could take our identity on anyway.
 */
static bool is_welcome(const struct fp_listener *l, int sock, bool *root_r)
{
    const struct fp_listener_settings *s = &l->settings;
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1)
        return false;
    *root_r = peer.uid == 0;
    if (*root_r)
        return true;
    if (peer.uid == s->uid && peer.gid == s->gid)
        return has_our_groups(l, sock, peer.pid);
    fp_log(FP_LOG_WARNING, 10,
           "refusing process %d: it runs as uid %u gid %u, this daemon "
           "answers uid %u gid %u only; set user and group to those of Apache's children",
           (int)peer.pid, (unsigned)peer.uid, (unsigned)peer.gid, (unsigned)s->uid, (unsigned)s->gid);
    return false;
}

static bool has_room(struct fp_listener *l, bool root)
{
    const size_t most = l->settings.max_connections;

    if (l->connections.n < most + (root ? FOR_ROOT : 0))
        return true;
    fp_log(FP_LOG_WARNING, 12,
           "there are %zu connections already: a new one replaces the "
           "longest-idle one, or is refused; raise max_connections, of which the limit on descriptors allows "
           "a quarter of itself",
           most);
    if (!fp_connections_displace(&l->connections, root))
        return false;
    l->counts.displaced++;
    return true;
}

static void on_pause_over(struct ev_loop *loop, ev_timer *w, int events)
{
    struct fp_listener *l = w->data;

    (void)events;
    ev_io_start(loop, &l->acceptable);
}

static void on_acceptable(struct ev_loop *loop, ev_io *w, int events)
{
    struct fp_listener *l = w->data;
    int sock = accept4(l->sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    bool root;

    fp_turn_work(FP_WORK_CONNECTION);
    (void)events;
    if (sock == -1) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            fp_log(FP_LOG_ERROR, 11,
                   "cannot accept a connection: %m; raise the limit on "
                   "descriptors (LimitNOFILE=, ulimit -n)");
            l->settings.out_of_descriptors(l->settings.clients.ctx);
            ev_io_stop(loop, &l->acceptable);
            ev_timer_set(&l->pause, PAUSE_SECONDS, 0.);
            ev_timer_start(loop, &l->pause);
        }
        return;
    }
    if (is_welcome(l, sock, &root) && has_room(l, root)) {
        l->counts.accepted += fp_connection_create(l->loop, sock, root, &l->settings.clients, &l->connections) != NULL;
        return;
    }
    l->counts.refused++;
    fp_close(&sock);
}

/* ---- the socket's path ---- */

static bool learn_groups(struct fp_listener *l)
{
    int n = getgroups(MOST_GROUPS, l->groups);

    if (n == -1)
        fp_log(FP_LOG_ERROR, 8, "cannot learn our groups: %m; start the daemon with fewer");
    else
        l->n_groups = (size_t)n;
    return n != -1;
}

/* Takes this lock in place of the one that is held, if there is one. */
static bool use_lock(struct fp_listener *l, int lock)
{
    if (lock == -1) {
        fp_socket_path_report_lock(l->settings.path, errno);
        return false;
    }
    fp_socket_path_sign_lock(l->settings.path, lock);
    fp_close(&l->lock);
    l->lock = lock;
    return true;
}

/* Notes the file that the socket is.  Any other file there is not ours. */
static bool remember_place(struct fp_listener *l)
{
    return lstat(l->settings.path, &l->made) == 0;
}

/* ---- a socket that was removed, or replaced ---- */

/* Makes the socket again; connections stay as they are. */
static bool listen_again(struct fp_listener *l)
{
    int sock;

    if (!fp_socket_path_check(l->settings.path, l->settings.uid, l->settings.gid))
        return false;
    /* If the directory was emptied the lock is gone, too: the next daemon would make another one. */
    if (!fp_socket_path_has_lock(l->settings.path, l->lock)
        && !use_lock(l, fp_monitor_ask(l->settings.monitor, FP_MONITOR_LOCK)))
        return false;
    sock = fp_monitor_ask(l->settings.monitor, FP_MONITOR_SOCKET);
    if (sock == -1) {
        fp_log(FP_LOG_ERROR, 5, "cannot listen on %s: %m", l->settings.path);
        return false;
    }
    ev_io_stop(l->loop, &l->acceptable);
    fp_close(&l->sock);
    l->sock = sock;
    ev_io_set(&l->acceptable, sock, EV_READ);
    ev_io_start(l->loop, &l->acceptable);
    /* Without this look a socket that is removed at once would seem unchanged. */
    ev_stat_stat(l->loop, &l->path);
    remember_place(l);
    fp_log(FP_LOG_WARNING, 5, "the socket %s was removed: made again", l->settings.path);
    return true;
}

/* Only root can have removed a socket that root made, and only root makes one that those clients trust. */
static void report_loss(const struct fp_listener *l, bool replaced)
{
    fp_log(
        FP_LOG_ERROR, 5,
        "the socket %s %s: this daemon keeps the connections that it has and gets no more; have it made again: "
        "systemctl restart flashpached.socket, or apachectl graceful (FlashpacheDaemon auto), or start this "
        "daemon again",
        l->settings.path, replaced ? "was replaced by another process's" : "was removed");
}

/* errno says why. */
static void report_hidden(const struct fp_listener *l)
{
    fp_log(FP_LOG_ERROR, 5,
           "the socket %s cannot be looked at (%m): this daemon keeps the connections that it has, and new "
           "children of the same user cannot connect; let uid %u pass all directories above it",
           l->settings.path, (unsigned)l->settings.uid);
}

/* Looks at what the path leads to, and deals with it.  False: it has to be looked at again. */
static bool settle(struct fp_listener *l)
{
    struct stat now;
    const bool there = lstat(l->settings.path, &now) == 0;

    if (!there && errno != ENOENT && errno != ENOTDIR) {
        if (!l->hidden)
            report_hidden(l);
        l->hidden = true;
        return false;
    }
    /* It may have been hidden from the start on. */
    if (there && l->hidden && l->made.st_nlink == 0)
        l->made = now;
    l->hidden = false;
    if (there && fp_socket_path_same(&now, &l->made))
        return true;
    if (!there && l->settings.own)
        return listen_again(l);
    report_loss(l, there);
    return true;
}

static void on_again(struct ev_loop *loop, ev_timer *w, int events)
{
    fp_turn_work(FP_WORK_CONNECTION);
    (void)events;
    if (settle(w->data))
        ev_timer_stop(loop, w);
}

static void on_moved(struct ev_loop *loop, ev_stat *w, int events)
{
    struct fp_listener *l = w->data;

    fp_turn_work(FP_WORK_CONNECTION);
    (void)events;
    if (!ev_is_active(&l->again) && !settle(l))
        ev_timer_again(loop, &l->again);
}

struct fp_listener *fp_listener_create(struct ev_loop *loop, const struct fp_listener_settings *settings)
{
    struct fp_listener *l = fp_memory_take_zeroed(1, sizeof(*l));

    if (l == NULL)
        return NULL;
    l->loop = loop;
    l->settings = *settings;
    l->sock = settings->sock;
    l->lock = settings->lock;
    fp_connections_init(&l->connections);
    ev_init(&l->acceptable, on_acceptable);
    ev_init(&l->pause, on_pause_over);
    ev_init(&l->again, on_again);
    l->again.repeat = AGAIN_SECONDS;
    ev_stat_init(&l->path, on_moved, settings->path, AGAIN_SECONDS);
    l->acceptable.data = l->pause.data = l->again.data = l->path.data = l;
    if (!learn_groups(l)) {
        fp_listener_destroy(&l);
        return NULL;
    }
    ev_io_set(&l->acceptable, l->sock, EV_READ);
    ev_io_start(loop, &l->acceptable);
    if (!remember_place(l) && !settle(l))
        ev_timer_again(loop, &l->again);
    ev_stat_start(loop, &l->path);
    return l;
}

void fp_listener_destroy(struct fp_listener **lp)
{
    struct fp_listener *l = *lp;

    if (l == NULL)
        return;
    ev_io_stop(l->loop, &l->acceptable);
    ev_timer_stop(l->loop, &l->pause);
    ev_timer_stop(l->loop, &l->again);
    ev_stat_stop(l->loop, &l->path);
    fp_connections_end(&l->connections);
    /* If the directory was emptied the socket is another daemon's by now. */
    if (l->settings.own && fp_socket_path_has_lock(l->settings.path, l->lock))
        fp_monitor_ask(l->settings.monitor, FP_MONITOR_END_SOCKET);
    fp_close(&l->sock);
    /* The lock's file stays: removing it would let two daemons lock two files. */
    fp_close(&l->lock);
    free(l);
    *lp = NULL;
}

struct fp_listener_counts fp_listener_counts(const struct fp_listener *l)
{
    struct fp_listener_counts counts = l->counts;

    counts.open = l->connections.n;
    return counts;
}
