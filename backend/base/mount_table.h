/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reading of mountinfo (proc_pid_mountinfo(5)): the mounts by id, and those that can be
 * seen by path.  No mount point is ever looked at.
 */
#ifndef FP_MOUNT_TABLE_H
#define FP_MOUNT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/verdict.h"

/* A mount's properties, for entries and workers. mounts.c decides verdict, local, remote and by_directory.
 * They fit into one word, so nobody sees half of them in shared memory. */
struct fp_mount_traits {
    enum fp_verdict verdict : 8; /* of what lies there, for all that the mount says */
    bool known : 1;              /* false: there is no such mount */
    bool local : 1;              /* on this machine: looking at an open file does not block */
    bool remote : 1;             /* a server or a process may have to answer each read; on overlay neither is true */
    bool folds : 1;              /* names that differ in case may be one, by its type or options */
    bool processes : 1;          /* each process finds its own files by links there (proc) */
    bool nosymfollow : 1;        /* links there are not followed (mount(8)) */
    bool automount : 1;         /* its directories are places where passing through mounts something (autofs), */
    bool names_are_mounted : 1; /* but for its root: in an indirect one, only the names below */
    bool by_directory : 1; /* the kernel's names there hold while a directory's times do, as last asked for */
};
_Static_assert(sizeof(struct fp_mount_traits) == sizeof(uint32_t), "it is one word");

/* A mount's description for others. */
struct fp_mount {
    uint32_t id;              /* statx(2)'s stx_mnt_id */
    dev_t dev;                /* of the file system; files of btrfs have others */
    const char *point, *type; /* "/var/www", "ext4", "fuse.sshfs" */
    const char *root;         /* the directory of the file system that lies at the point: "/" */
    struct fp_mount_traits traits;
    uint32_t ttl_ms, stale_if_error_ms, negative_ttl_ms;
};

struct fp_mount_row {
    struct fp_mount mount;
    uint64_t parent;     /* id of the mount that it is mounted on, or above all ids */
    const char *options; /* the mount's own: "rw,nosuid" */
    size_t line;         /* in the file: later ones were mounted later */
    uint64_t came_ms;    /* at which reading it first was there; 0: at the first one */
};

struct fp_mount_table {
    char *text;                 /* the file's; owns the strings */
    struct fp_mount_row *by_id; /* ascending, each id once */
    size_t n;
    const struct fp_mount_row **visible; /* by mount point, each once */
    size_t n_visible;
};

/* Fills an empty table from the open file; -1 with errno. */
int fp_mount_table_read(struct fp_mount_table *t, int fd);
/* Leaves an empty table. */
void fp_mount_table_free(struct fp_mount_table *t);

/* True if the same is mounted there with the same options, as far as the table tells. */
bool fp_mount_row_is_same(const struct fp_mount_row *a, const struct fp_mount_row *b);
/* Returns NULL if the mount is unknown. */
struct fp_mount_row *fp_mount_table_find(const struct fp_mount_table *t, uint64_t id);
/* As fp_mounts_of_path(). */
const struct fp_mount_row *fp_mount_table_of_path(const struct fp_mount_table *t, const char *path,
                                                  size_t len);

/* Calls each (NULL: nobody) for the mounts of one table that the other does not have;
 * returns how many. */
size_t fp_mount_table_missing(const struct fp_mount_table *t, const struct fp_mount_table *other,
                              void (*each)(void *ctx, const struct fp_mount *m), void *ctx);

#endif
