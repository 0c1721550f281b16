/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens paths without waiting for a file system that may not answer. Both functions add O_CLOEXEC and
 * return -1 with errno. Knows neither httpd nor APR.
 */
#ifndef FP_OPEN_PATH_H
#define FP_OPEN_PATH_H

/* Opens only what the kernel has in memory, all of the path (RESOLVE_CACHED, since Linux 5.12). So it
 * waits for nothing. EAGAIN: a part is not there. */
int fp_open_from_memory(const char *path, int flags);

/* Opens a path below the directory only if all of it lies on the directory's mount (RESOLVE_NO_XDEV, since
 * Linux 5.6). So it waits for that one alone. EXDEV: a part lies elsewhere. */
int fp_open_within_mount(int dir, const char *path, int flags);

#endif
