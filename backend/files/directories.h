/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories opened without a call on their path: a stream over the names that this process keeps (names.h).
 * It has what the kernel told: inode, kind and order of each, "." and ".." among them.
 *
 * rewinddir() makes it the kernel's own stream if the names do not hold any more. Not promised: that it
 * then shows a directory which was renamed or removed meanwhile.
 */
#ifndef FP_FILES_DIRECTORIES_H
#define FP_FILES_DIRECTORIES_H

#include <dirent.h>
#include <stdbool.h>

struct fp_files_stream;

/* True: that is the answer to opendir(path); NULL with errno. False: the C library has to open it. */
bool fp_files_opendir(const char *path, DIR **d_r);

/* The stream, or NULL if it is the C library's. */
struct fp_files_stream *fp_files_stream(DIR *d);

/* The kernel's own stream of the directory, where it has been taken, or NULL. */
DIR *fp_files_stream_real(const struct fp_files_stream *s);
const char *fp_files_stream_path(const struct fp_files_stream *s);

/* The next entry, or NULL at the end. */
struct dirent *fp_files_stream_next(struct fp_files_stream *s);
/* How many entries it has told since its beginning. */
long fp_files_stream_count(const struct fp_files_stream *s);
long fp_files_stream_tell(const struct fp_files_stream *s);
void fp_files_stream_seek(struct fp_files_stream *s, long to);

/* To the beginning. False: the names do not hold any more; it stays where it is. */
bool fp_files_stream_rewind(struct fp_files_stream *s);

/* Takes the real stream, which has that descriptor. False: it is of another directory, and the caller's. */
bool fp_files_stream_take(struct fp_files_stream *s, DIR *real, int fd);

void fp_files_stream_close(struct fp_files_stream *s);

#endif
