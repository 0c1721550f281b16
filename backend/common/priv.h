/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Becoming the user that Apache's children are, with that user's groups and
 * nothing more.
 */
#ifndef FP_PRIV_H
#define FP_PRIV_H

#include <stddef.h>
#include <sys/types.h>

/* From root; anybody else gives up capabilities only.  No set of capabilities has any left,
 * and none can be got.  0, or -1 with errno. */
int fp_priv_drop(const char *user, uid_t uid, gid_t gid);

/* Empties the set of capabilities that a program could get by being run.  Without CAP_SETPCAP it
 * stays as it is. */
void fp_priv_empty_bounding_set(void);

/* Raises the soft limit on descriptors to the hard one; returns the limit. */
size_t fp_priv_raise_descriptors(void);

#endif
