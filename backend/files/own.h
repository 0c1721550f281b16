/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to the daemon for a process that has none: the library's that php-fpm is started with.
 * A process that may yet become another user (root's privileges, a saved user id, a capability) is
 * answered nothing. A process never waits for the daemon but for the moment of connecting.
 */
#ifndef FP_FILES_OWN_H
#define FP_FILES_OWN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "files/answers.h"

/* The counts of a process are in a sealed memfd of this name, for whoever may look at its descriptors. */
#define FP_FILES_COUNTS "flashpache-calls"
struct fp_files_counts {
    atomic_ulong of[FP_FILES_RESULTS];
};

/*
 * Paths at and below the roots, a list with colons in between, are asked about at that socket. Both
 * are copied. elsewhere: the operator vouches that the daemon sees the same files there, although
 * other mounts may differ. False: there is no root that is a path in normal form. To be called once,
 * while there is one thread.
 */
bool fp_files_begin_own(const char *roots, const char *socket, bool elsewhere);

/* Of this process, those of the process that it was forked from included. */
const struct fp_files_counts *fp_files_own_counts(void);

#endif
