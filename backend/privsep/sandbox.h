/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters of system calls (seccomp): each kind of process has a list of the calls that it may
 * make.  Any other call fails with ENOSYS, as on a kernel that lacks it, and appears in the
 * kernel's audit log.  So a C library that tries a newer call first goes on.
 *
 * A filter sees numbers, not paths: the rights to files are those of the daemon's user.  The
 * monitor and the spawner, which open, fork and connect for the others, have no filter.
 */
#ifndef FP_SANDBOX_H
#define FP_SANDBOX_H

struct fp_sandbox;

enum fp_sandbox_kind {
    FP_SANDBOX_DAEMON, /* serves descriptors that it has: opens no path, runs and forks
                             nothing; its only new sockets are datagrams to this machine's
                             log and service manager */
    FP_SANDBOX_WORKER, /* walks, opens for reading and watches; no sockets of its own */
    FP_SANDBOX_CLOSER  /* closes */
};

/* Returns NULL with errno: ENOSYS in a build without seccomp, or the kernel's own. */
struct fp_sandbox *fp_sandbox_create(enum fp_sandbox_kind kind);
void fp_sandbox_destroy(struct fp_sandbox **s);

/* Filters this process and those that it forks, for good.  PR_SET_NO_NEW_PRIVS must be set.
 * 0, or -1 with errno. */
int fp_sandbox_enter(const struct fp_sandbox *s);

#endif
