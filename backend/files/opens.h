/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of remote mounts, opened for reading without a call on their path. The daemon has the content of
 * small files in memory. The program gets its own descriptor of a copy, with its own offset. The descriptor's
 * name carries the file's metadata, so fstat() can tell them to any process that has the descriptor.
 *
 * The file itself is opened, and replaces the copy, when the program locks it. The same happens if the
 * program reaches the end or asks for the size after the file has changed. Not promised: that a read in the
 * middle shows what others wrote into the file after it was opened.
 */
#ifndef FP_FILES_OPENS_H
#define FP_FILES_OPENS_H

#include <stdbool.h>
#include <sys/types.h>

struct fp_meta;
struct stat;

/*
 * True: that is the answer to open(path, flags), *fd_r being -1 with errno. False: the C library has
 * to open it, and fp_files_opened() (devices.h) is to be told of that.
 */
bool fp_files_open(const char *path, int flags, int *fd_r);

/* True if a descriptor on that device may be one of these. */
bool fp_files_is_copy(dev_t dev);
/* *st is what the kernel says of the descriptor, on such a device. True if it is one of these; *m is the file's then,
 * as it was opened. If the file has changed since, its descriptor takes the copy's place, and *st is the file's. errno
 * stays as it was. */
bool fp_files_told(int fd, struct stat *st, struct fp_meta *m);

/* If the file behind a descriptor of fp_files_open() has changed, the descriptor becomes one of the file itself, at the same
 * offset, if the path still leads to the file. True if it did. errno stays as it was. */
bool fp_files_reopen(int fd);

/* To be called before the program locks a descriptor: one of fp_files_open() becomes one of the file itself, as above, even if
 * the file has not changed. False, with ENOLCK: it is still a copy, whose lock would keep nobody from the file. */
bool fp_files_can_be_locked(int fd);

#endif
