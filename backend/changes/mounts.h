/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mounted file systems: which one a path or id means, and how changes on it are noticed.
 *
 * They are read from /proc/self/mountinfo alone, so a file system that does not
 * answer blocks no caller.  All functions are for the daemon's loop; workers have a
 * list (mount_list.h).
 *
 * Not guaranteed: the kernel reports a mount after it was made; until it is re-read,
 * the table is stale.  A table that is read while mounts come and go may lack some; the
 * kernel then reports again.  A mount that is not in the table is validated by TTL.  The
 * kernel gives ids and device numbers of file systems that are gone to new ones at once.
 * So nothing that was known about either holds over a change of the table.  (A watch reports
 * its own end, and an open file keeps its file system.)
 */
#ifndef FP_MOUNTS_H
#define FP_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mount_table.h"
#include "conf/mount_rule.h"

struct fp_mounts_settings {
    const struct fp_mount_rule *rules; /* at most one for a mount point */
    size_t n_rules;
    /*
     * How changes are noticed where no rule says more.  FP_BY_AUTO and FP_BY_INOTIFY: by inotify.  FP_BY_TTL:
     * nothing is watched.  The kernel's own file systems never are.
     */
    int by;
    uint32_t ttl_ms, stale_if_error_ms, negative_ttl_ms;
};

struct fp_mounts;
struct fp_mount_list;

/*
 * Reads the table.  mountinfo: the file to read, NULL for /proc/self/mountinfo.
 * The settings are copied; the list (NULL: none) is borrowed, and written now
 * and on every later change.  NULL with errno.
 */
struct fp_mounts *fp_mounts_create(const char *mountinfo, const struct fp_mounts_settings *s,
                                   struct fp_mount_list *list);
void fp_mounts_destroy(struct fp_mounts **m);

/*
 * A descriptor that becomes readable when the table changed, for the loop, which
 * cannot wait for mountinfo itself: that is always readable.  It is a hint: a caller
 * that begins to wait for it asks fp_mounts_changed() once after that.  It stays ours.
 */
int fp_mounts_fd(const struct fp_mounts *m);

/*
 * True if the table of mounts has changed since the last call.  It has then been
 * re-read, and pointers to mounts are void.  If reading failed: true, and the
 * table is empty; every call tries again, and returns true once more when that
 * succeeds.  One system call where nothing changed.
 *
 * After true the caller invalidates all that was seen before on the mount points that
 * fp_mounts_changes() names.
 */
bool fp_mounts_changed(struct fp_mounts *m);

/*
 * Calls each for every mount point at which something was mounted or unmounted between the last two readings, perhaps
 * more than once.  Returns how often; 0: the change was undone; SIZE_MAX: unknown.
 */
size_t fp_mounts_changes(const struct fp_mounts *m, void (*each)(void *ctx, const struct fp_mount *mount),
                         void *ctx);

/* Writes fp_sight_mounts() to *number, now and after every change. */
void fp_mounts_follow(struct fp_mounts *m, uint64_t *number);

/* Sets other settings, which hold at once.  0, or -1 with errno: the old ones stay. */
int fp_mounts_set(struct fp_mounts *m, const struct fp_mounts_settings *s);

/* Returns NULL if the mount is unknown. */
const struct fp_mount *fp_mounts_find(const struct fp_mounts *m, uint32_t id);
/* Returns a mount with the general settings if it is unknown. */
const struct fp_mount *fp_mounts_known(const struct fp_mounts *m, uint32_t id);

/*
 * The mount that the path lies on.  The path is in normal form and taken literally: links are not
 * followed.  Among the mounts that no later one covers the longest mount point counts.
 * NULL: unknown.
 */
const struct fp_mount *fp_mounts_of_path(const struct fp_mounts *m, const char *path, size_t len);

/* When the mount came, as a reading of the table showed it, or when it was found to be gone. Milliseconds of
 * fp_now_ms(); 0: it was there from the beginning. */
uint64_t fp_mounts_came_ms(const struct fp_mounts *m, uint32_t id);

/* The number of mounts, covered ones too, and each of them in the order of their ids. */
size_t fp_mounts_count(const struct fp_mounts *m);
const struct fp_mount *fp_mounts_at(const struct fp_mounts *m, size_t i);

#endif
