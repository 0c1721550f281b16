/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of remote mounts, opened for reading without a call on their path. The daemon has the content of
 * small files in memory. The program gets its own descriptor of a copy, with its own offset. The descriptor's
 * name carries the file's metadata, so fstat() can tell them to any process that has the descriptor.
 *
 * It becomes one of the file itself, opened then, when the program locks it, or meets its end or asks
 * for its size after the file has changed. Not promised: that a read in the middle shows what others
 * wrote into the file after it was opened.
 */
#ifndef FP_FILES_OPENS_H
#define FP_FILES_OPENS_H

#include <stdbool.h>
#include <sys/types.h>

struct fp_meta;

/*
 * True: that is the answer to open(path, flags), *fd_r being -1 with errno. False: the C library has
 * to open it, and fp_files_opened() may be told of that.
 */
bool fp_files_open(const char *path, int flags, int *fd_r);

/* That descriptor was opened by the C library instead: whether its mount is local is learnt from it.
 * errno stays as it was. */
void fp_files_opened(int fd);

/* True if a descriptor on that device may be one of these. */
bool fp_files_is_copy(dev_t dev);
/* True if the descriptor is one of these; *m is the file's then, as it was opened. */
bool fp_files_told(int fd, struct fp_meta *m);

/* Turns such a descriptor into one of the file itself, at the same offset, if the path still leads to the
 * file: always, or only if the file has changed. True if it did. errno stays as it was. */
bool fp_files_reopen(int fd, bool always);

#endif
