/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters of the calls that reached slowfs, by type. Safe from any thread.
 */
#ifndef SLOWFS_STATS_H
#define SLOWFS_STATS_H

#include <stdio.h>

#define SLOWFS_OPS(X) \
    X(lookup) \
    X(getattr) \
    X(open) X(opendir) X(readdir) X(readlink) X(readattr) X(read) X(write) X(create) X(mkdir) X(mknod) \
        X(symlink) X(link) X(unlink) X(rmdir) X(rename) X(setattr) X(statfs) X(fsync) X(release) X(forget) \
            X(flush)

enum slowfs_op {
#define SLOWFS_OP_ENUM(name) SLOWFS_OP_##name,
    SLOWFS_OPS(SLOWFS_OP_ENUM)
#undef SLOWFS_OP_ENUM
        SLOWFS_OP_COUNT
};

void slowfs_count(enum slowfs_op op);

/* Writes `name=N name=N ...` without an end of line. */
void slowfs_stats_print(FILE *out);

#endif
