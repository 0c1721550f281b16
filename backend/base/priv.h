/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Becomes the user that Apache's children run as, with that user's groups and
 * nothing more.
 */
#ifndef FP_PRIV_H
#define FP_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Becomes that user, from root; another user drops capabilities only.  Every set of capabilities is empty
 * afterwards, and stays so.  0, or -1 with errno. */
int fp_priv_drop(const char *user, uid_t uid, gid_t gid);

/* Empties the capability bounding set.  Without CAP_SETPCAP it stays as it is. */
void fp_priv_empty_bounding_set(void);

/* Lets the process run as soon as it has something to do, by nice -10 and a slice of 0.1
 * ms.  Its session gets that nice value, too, if it leads one.  Its children inherit only
 * the session's: a process for which all clients wait must not wait for its children.
 * False with errno: it has no right to that nice value, and gets only the slice. */
bool fp_priv_run_promptly(void);

/* Closes the memory of this process, and of those that it forks, to others of its user.  They cannot
 * trace it, nor read or take its open files (ptrace(2), PTRACE_MODE_ATTACH).  An exec or a change of
 * credentials may open it again.  Where fs.suid_dumpable says so root alone gets core dumps of it. */
void fp_priv_close_memory(void);

/* True where another process of its user may trace this one. */
bool fp_priv_is_exposed(void);

/* True if this process may read files and pass directories whose permissions say no: CAP_DAC_OVERRIDE or
 * CAP_DAC_READ_SEARCH is effective. */
bool fp_priv_passes_permissions(void);

/* Raises the soft limit on descriptors to the hard one; returns the limit. */
size_t fp_priv_raise_descriptors(void);

#endif
