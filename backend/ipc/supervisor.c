/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ipc/supervisor.h"

#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "wire/packet.h"

#define MAX_NOTE 16 /* bytes beside a descriptor; none means anything */

static int channel = -1;
static ev_io readable;

bool fp_supervisor_take(void)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    channel = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    fp_lead_to_null(STDIN_FILENO);
    if (getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1) {
        fp_log(FP_LOG_ERROR, 8,
               "--supervised is for httpd, whose socket is standard input: %m; "
               "start flashpached without it");
        return false;
    }
    /* The socket may have other holders than the supervisor (processes that it forked), so its end
     * alone does not mean that the supervisor died.  A parent that died before this call is not ours
     * any more. */
    return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == peer.pid;
}

bool fp_supervisor_take_socket(int *sock_r, int *lock_r)
{
    enum { SOCK = STDERR_FILENO + 1, LOCK };

    *sock_r = SOCK;
    *lock_r = LOCK;
    fp_close_all(LOCK + 1, ~0u);
    if (fcntl(SOCK, F_SETFD, FD_CLOEXEC) == 0 && fcntl(LOCK, F_SETFD, FD_CLOEXEC) == 0)
        return true;
    fp_log(FP_LOG_ERROR, 5, "--passed is for httpd, whose socket and lock are descriptors 3 and 4: %m");
    return false;
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    char note[MAX_NOTE];
    size_t len;
    int log;
    fp_status st = fp_recv_packet(w->fd, note, sizeof(note), &len, &log);

    (void)events;
    if (st == FP_OK && log != -1)
        dup2(log, STDERR_FILENO);
    if (st == FP_OK || st == FP_AGAIN || st == FP_LOSTFD) {
        fp_close(&log);
        return;
    }
    fp_log(FP_LOG_INFO, 1, "ending: the process that started this daemon has gone");
    ev_break(loop, EVBREAK_ALL);
}

void fp_supervisor_watch(struct ev_loop *loop)
{
    ev_io_init(&readable, on_readable, channel, EV_READ);
    ev_io_start(loop, &readable);
}
