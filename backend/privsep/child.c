/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "privsep/child.h"

#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/priv.h"
#include "wire/packet.h"

pid_t fp_child_fork(int *sock_r)
{
    int ends[2];
    pid_t pid;

    *sock_r = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == -1)
        return -1;
    pid = fork();
    fp_close(&ends[pid == 0 ? 0 : 1]);
    if (pid == -1)
        fp_close(&ends[0]);
    *sock_r = ends[pid == 0 ? 1 : 0];
    return pid;
}

static void close_between(int first, int last)
{
    if (first <= last)
        fp_close_all((unsigned)first, (unsigned)last);
}

void fp_child_ignore_signals(void)
{
    static const int ours[] = { SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGPIPE };
    sigset_t none;

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        signal(ours[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void fp_child_begin(const char *name, int sock, int inotify, bool lent_log)
{
    const int low = inotify < sock ? inotify : sock, high = inotify < sock ? sock : inotify;

    prctl(PR_SET_NAME, name);
    fp_priv_close_memory();
    if (lent_log)
        fp_lead_to_null(STDERR_FILENO);
    close_between(3, low - 1);
    close_between(low > 2 ? low + 1 : 3, high - 1);
    fp_close_all((unsigned)(high > 2 ? high + 1 : 3), ~0u);
    signal(SIGCHLD, SIG_DFL);
    fp_child_ignore_signals();
}
