/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The means of a walk (resolve.h): its settings, and how one name is opened, looked at and
 * watched.  All run in a worker process.
 */
#ifndef FP_RESOLVER_H
#define FP_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "wire/walk_result.h"

struct fp_meta;
struct fp_mount_traits;
struct fp_mount_list;
struct fp_noise_list;
struct fp_sandbox;
struct fp_watch;
struct fp_whereabouts;
struct statx;

/* All of it is the caller's, for as long as there are walks. */
struct fp_resolver_settings {
    const char *const *roots;    /* where answers are given: NULL-terminated prefixes in
                                   normal form; NULL or none: everywhere */
    struct fp_mount_list *mounts; /* NULL: nothing is watched */
    const struct fp_watch *watch;
    const struct fp_sandbox *sandbox;   /* that workers enter; NULL: none */
    struct fp_noise_list *noise;        /* the objects that are not watched for now; NULL: none */
    struct fp_whereabouts *whereabouts; /* where workers say at which mount they are; NULL: nowhere */
};

struct fp_resolver {
    const struct fp_resolver_settings *settings;
    int slash; /* "/" opened O_PATH */
    pid_t pid; /* this worker's */
};

/* A directory or file that a walk has reached. */
struct fp_node {
    int fd; /* O_PATH; -1: the walk cannot go on */
    uint32_t mount;
    uint64_t dev, ino;
    uint32_t uid;
    struct fp_watch_key watch; /* empty: no event reports changes there */
    bool quiet;                /* a directory's watch reports the names alone */
    bool unwatchable;          /* it could not be watched, as one that may not be read cannot */
    bool look_is_due;          /* the look that counts (behind the watch, at the server) is to come */
};

/* Returns 0, or -1 with errno: "/" cannot be opened. */
int fp_resolver_init(struct fp_resolver *r, const struct fp_resolver_settings *settings);

/* To be called before each call that may wait for the
 * mount: so the daemon sees which one a walk waits for. */
void fp_resolver_at(const struct fp_resolver *r, uint32_t mount);

/* True if the path lies within the roots. */
bool fp_resolver_is_within(const struct fp_resolver *r, const char *path, size_t len);
/* True if an open file lies within the roots, even if links have led to it. */
bool fp_resolver_opened_within(const struct fp_resolver *r, int fd);

/* The daemon's traits of the mount; if nothing is watched, those of a local one. */
struct fp_mount_traits fp_resolver_traits(const struct fp_resolver *r, uint32_t mount);

/* lstat(2) of an open object, and its mount (mount_r NULL: not wanted); 0: the kernel does not say. */
fp_status fp_look(int fd, struct fp_meta *m, uint32_t *mount_r);
/* fp_look() with sync, one of AT_STATX_SYNC_TYPE, for file systems that keep a server's answers. */
fp_status fp_look_synced(int fd, int sync, struct fp_meta *m, uint32_t *mount_r);
/*
 * The sync with which a look finds what others did on the mount: AT_STATX_FORCE_SYNC where it is
 * not local, else AT_STATX_SYNC_AS_STAT.
 */
int fp_resolver_sync(const struct fp_resolver *r, uint32_t mount);
/*
 * True if a look with that sync comes before the watch, and one without it after the watch. NFS's client asks
 * the server whether a file may be watched, unless it has just been told. Then it also knows this machine's
 * changes.
 */
bool fp_resolver_asks_first(const struct fp_resolver *r, uint32_t mount);
/*
 * FP_OK where links in this directory may be followed.  FP_LOOP on a mount whose links nobody follows.
 * FP_REFUSED in /proc: a link there (self) may lead each process to its own files, so httpd looks itself.
 */
fp_status fp_resolver_follows(const struct fp_resolver *r, const struct fp_node *dir);
/*
 * True if the name in this directory may be a process's in /proc.  A worker may open more of its own files
 * there (maps) than any other process of its user, and less of another's.  So httpd looks itself.
 */
bool fp_resolver_is_process(const struct fp_resolver *r, const struct fp_node *dir, const char *name);
/*
 * The kernel's own rule (proc(5), protected_symlinks).  It is about a link at the end of a
 * path, in a sticky directory that everybody may write to.  Such a link counts only if it
 * is ours or the directory's owner's.  An answer serves both who ends his path there and
 * who goes on.  So FP_REFUSED where the rule could make a difference: httpd looks itself.
 */
fp_status fp_resolver_may_follow(int dir, const struct fp_meta *link);
/* True where the directory may be a place that is mounted over when a path goes on behind it. */
bool fp_resolver_is_automount(const struct fp_resolver *r, const struct fp_node *dir);
/* To be called before names are looked up in the directory, so that others' changes of them are seen. */
void fp_resolver_sync_names(const struct fp_resolver *r, int dir, uint32_t mount);
/* Sets the mount and the identity of the open object, without asking the file system. */
void fp_node_identify(struct fp_node *n);
void fp_meta_from_statx(struct fp_meta *m, const struct statx *st);

/*
 * Opens one name below dir O_PATH, without following it; -1 with errno.  more: the path goes
 * on behind it.  *is_directory_r: the name is known to be a directory.
 */
int fp_open_name(int dir, const char *name, bool more, bool *is_directory_r);
/* The status for errno of an open: FP_BUSY where it says nothing about the path. */
fp_status fp_why_not_opened(void);

/*
 * Has the node watched, before the walk looks into it.  True where it was not watched
 * before: metadata of the node itself is too old then.  The verdict on the node is added to that on the step.
 */
bool fp_node_watch(const struct fp_resolver *r, struct fp_node *n, bool directory,
                   struct fp_walk_result *result, unsigned step);

#endif
