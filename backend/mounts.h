/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kind of file system a file lies on.
 */
#ifndef FP_MOUNTS_H
#define FP_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Is the open file on a file system of this machine, where looking at an open
 * file never waits for anybody else?  Asks the file system once for each
 * device; unknown types, network file systems and FUSE are not local.
 * Blocking: for helpers only.
 */
bool fp_mount_is_local(int fd, dev_t dev);

#endif
