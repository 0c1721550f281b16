/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a mounted file system: how the daemon detects changes, and how long an
 * answer is valid.
 */
#ifndef FP_MOUNT_RULE_H
#define FP_MOUNT_RULE_H

/* How changes are to be noticed; FP_BY_AUTO: by the file system's type. */
enum fp_watch_by { FP_BY_AUTO = -1, FP_BY_TTL, FP_BY_INOTIFY };

/* One `mount "POINT" { ... }` section of the configuration. */
struct fp_mount_rule {
    const char *point; /* the mount point, in normal form */
    int by;            /* enum fp_watch_by; FP_BY_AUTO: the general setting */
    long ttl_ms, stale_if_error_ms, negative_ttl_ms; /* -1: the general setting */
};

#endif
