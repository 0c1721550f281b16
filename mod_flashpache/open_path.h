/* SPDX-License-Identifier: Apache-2.0 */
/* Opens paths without waiting for a file system that may not answer. Knows neither httpd nor APR. */
#ifndef FP_OPEN_PATH_H
#define FP_OPEN_PATH_H

/* Opens only what the kernel has in memory, all of the path (RESOLVE_CACHED, since Linux 5.12), and adds
 * O_CLOEXEC. So it waits for nothing. -1 with errno; EAGAIN: a part is not there. */
int fp_open_from_memory(const char *path, int flags);

#endif
