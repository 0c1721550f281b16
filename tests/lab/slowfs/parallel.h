/* SPDX-License-Identifier: Apache-2.0
 *
 * Lookups in one directory that overlap. The kernel sends them one at a time unless the
 * reply to FUSE_INIT carries FUSE_PARALLEL_DIROPS. libfuse up to 3.16 (3.14 in Debian 12)
 * has the capability FUSE_CAP_PARALLEL_DIROPS but forgets to pass it on
 * (https://github.com/libfuse/libfuse/pull/861), so the flag is put in on the way out.
 */
#ifndef SLOWFS_PARALLEL_H
#define SLOWFS_PARALLEL_H

#include "fuse_api.h"

/* After mounting, before any call is read. 0, or -1 with a message printed. */
int slowfs_parallel_lookups(struct fuse_session *session);

#endif
