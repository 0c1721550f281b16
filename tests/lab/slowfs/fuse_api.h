/* SPDX-License-Identifier: Apache-2.0
 *
 * The one version of the libfuse interface that slowfs is written for. 3.5 is enough, and
 * is older than the change of fuse_session_loop_mt() in 3.12, which slowfs does not use.
 */
#ifndef SLOWFS_FUSE_API_H
#define SLOWFS_FUSE_API_H

#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#endif
