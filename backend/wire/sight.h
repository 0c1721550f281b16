/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's sight of the file system: its root directory, its mounts, its namespaces.  Two
 * processes of one user with the same sight may open the same files by the same names.  A security
 * module may still confine one of them more (Landlock shows nowhere).
 */
#ifndef FP_SIGHT_H
#define FP_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

struct fp_mount_table;

struct fp_sight {
    uint64_t root_dev, root_ino, root_mount; /* of "/"; root_mount: 0 before Linux 5.8 */
    uint64_t mounts_ns, users_ns, time_ns;   /* the namespaces' inodes; 0: unknown */
    uint64_t mounts;                         /* what is mounted where: fp_sight_mounts() */
};

enum fp_sight_difference {
    FP_SIGHT_SAME,
    FP_SIGHT_ROOT,
    FP_SIGHT_MOUNTS,
    FP_SIGHT_USERS,
    FP_SIGHT_TIME,
    FP_SIGHT_UNKNOWN, /* /proc cannot be read */
    FP_SIGHT_DIFFERENCES
};

/* This process's own sight, without its mounts (0).  Unknown numbers are 0. */
void fp_sight_take(struct fp_sight *v);

/*
 * A number for all mounts and their places; two tables with the same number lead each name to the same
 * file.  Mounts that change nothing in that do not count, as a directory mounted on itself.  Nor do
 * mounts of the kernel, systemd and containers, which differ from service to service.
 */
uint64_t fp_sight_mounts(const struct fp_mount_table *t);

/* The difference between this process's sight and another's; without files only in the namespaces of users
 * and time.  The mounts are looked at only where the two have different mount namespaces. */
enum fp_sight_difference fp_sight_compare(const struct fp_sight *theirs, bool files);

/* The difference for a message, as "it has another root directory". */
const char *fp_sight_text(enum fp_sight_difference d);

#endif
