/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process sees of the file system: its root directory, its mounts, its namespaces.  Two
 * processes of one user with the same sight may open the same files by the same names, as far as no
 * security module confines one of them more (Landlock shows nowhere).
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

/* This process's own, without its mounts (0).  What cannot be learned is 0. */
void fp_sight_take(struct fp_sight *v);

/*
 * A number for what is mounted where; two tables with the same lead each name to the same file.
 * Mounts that change nothing in that do not count (a directory mounted on itself), nor those where
 * the kernel, systemd and containers have theirs, which differ from service to service.
 */
uint64_t fp_sight_mounts(const struct fp_mount_table *t);

/* In what this process's sight differs from another's; without files only in the namespaces of users
 * and time.  Its mounts are looked at only where the two have different mount namespaces. */
enum fp_sight_difference fp_sight_compare(const struct fp_sight *theirs, bool files);

/* For a message, as "it has another root directory". */
const char *fp_sight_text(enum fp_sight_difference d);

#endif
