/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters of system calls (seccomp): each kind of process has a list of those that it may
 * make.  Any other fails with ENOSYS, as on a kernel that lacks it, and the kernel's audit log
 * has it: a C library that tries a newer call first goes on, and nothing ends.
 *
 * What a filter does not do: it sees numbers, not paths, so the rights to files are those of
 * the daemon's user; and it does not hold for the monitor and the spawner, which open, fork
 * and connect for the others.
 */
#ifndef FP_SANDBOX_H
#define FP_SANDBOX_H

struct fp_sandbox;

enum fp_sandbox_kind {
    FP_SANDBOX_DAEMON,    /* serves descriptors that it has: opens no path, runs and forks
                             nothing; its only new sockets are datagrams to this machine's
                             log and service manager */
    FP_SANDBOX_WORKER     /* looks, opens for reading and watches; no sockets of its own */
};

/* NULL with errno: ENOSYS in a build without seccomp, or what the kernel says. */
struct fp_sandbox *fp_sandbox_create(enum fp_sandbox_kind kind);
void fp_sandbox_destroy(struct fp_sandbox **s);

/* From now on, and for what is forked from here; there is no way out.  No new privileges must
 * be to be had (PR_SET_NO_NEW_PRIVS).  0, or -1 with errno. */
int fp_sandbox_enter(const struct fp_sandbox *s);

#endif
