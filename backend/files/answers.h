/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's own calls on paths, answered from the daemon's memory. This room has the library that
 * PHP is started with (calls.c), and may use shared/, wire/ and base/ alone. It knows neither httpd nor PHP.
 *
 * An answer is as true as the kernel's own: it is used under the same look at the queues of events as
 * a request's, and only where all of this machine's changes are reported. Everything else, and every
 * doubt, is the C library's own call; the daemon then gets a hint, which waits for nothing. So the
 * process never waits for the daemon but for the moment of connecting.
 *
 * The daemon answers processes of its own user and groups alone, so its answers tell the process
 * nothing that it could not look at itself. A process that may yet become another user (root's
 * privileges, a saved user id, a capability) is answered nothing.
 */
#ifndef FP_FILES_ANSWERS_H
#define FP_FILES_ANSWERS_H

#include <stdbool.h>

#include "wire/answer.h"

/*
 * Paths at and below the roots, a list with colons in between, are asked about at that socket. Both
 * are copied. elsewhere: the operator vouches that the daemon sees the same files there, although
 * other mounts may differ. False: there is no root that is a path in normal form. To be called once,
 * while there is one thread.
 */
bool fp_files_begin(const char *roots, const char *socket, bool elsewhere);

/* This process looks at files itself from now on: it sees others than the daemon does, or as another user. */
void fp_files_end(void);

#define FP_FILES_UNKNOWN (-1) /* the C library has to say */

struct fp_files_found {
    struct fp_meta meta;
    bool readable; /* it is a regular file that this process may read */
};

/*
 * What stat(2), or without follow lstat(2), would find at the path: 0 and *f, or its errno (ENOENT,
 * ENOTDIR), or FP_FILES_UNKNOWN. errno stays as it was. May be called by several threads, but not by a
 * signal's handler: it may take memory.
 */
int fp_files_find(const char *path, bool follow, struct fp_files_found *f);

/*
 * The same, links followed, for a regular file that is to be read and is on a device that is wanted. 0
 * and *content_r: a copy of its f->meta.size bytes, to be given back by fp_copy_give_back().
 */
int fp_files_read(const char *path, bool (*is_wanted)(uint64_t dev), struct fp_files_found *f,
                  void **content_r);

/* How many of these calls this process has had an answer to, those of the process that it was forked
 * from included. */
unsigned long fp_files_answered(void);

#endif
