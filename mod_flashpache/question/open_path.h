/* SPDX-License-Identifier: Apache-2.0 */
/* Opens paths without waiting for a file system that may not answer. Knows neither httpd nor APR. */
#ifndef FP_OPEN_PATH_H
#define FP_OPEN_PATH_H

#include <stdbool.h>

struct fp_step;

/* Opens only what the kernel has in memory, all of the path (RESOLVE_CACHED, since Linux 5.12), and adds
 * O_CLOEXEC. So it waits for nothing. -1 with errno; EAGAIN: a part is not there. */
int fp_open_from_memory(const char *path, int flags);

/* Opens a directory (O_PATH) by its name in another one, through no link and no mount. -1 with errno; EXDEV, ELOOP,
 * ENOTDIR: it is another thing. */
int fp_open_child_directory(int dir, const char *name);

/* True if the directory is the one that the step leads to.  Asks no server. */
bool fp_is_directory_of(int fd, const struct fp_step *step);

/* Opens a file, for reading, in the directory of that path if it is the one that the step leads to.  Waits for no
 * FIFO's writer, but for whoever has a lease on the file, as open() does.  -1 with errno; ESTALE: the path leads to
 * another directory. */
int fp_open_in_step(const char *path, const struct fp_step *step, const char *name);

#endif
