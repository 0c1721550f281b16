/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a mounted file system: how the daemon detects changes, and how long an
 * answer is valid.
 */
#ifndef FP_MOUNT_RULE_H
#define FP_MOUNT_RULE_H

#include <stdbool.h>

#include "common/watch_by.h"

#define FP_BY_AUTO (-1) /* in settings: by the file system's type */

/* The names: "ttl", "inotify". */
const char *fp_watch_by_text(enum fp_watch_by by);
/* Also takes "auto" (FP_BY_AUTO).  False for a name that is none of these. */
bool fp_watch_by_parse(const char *name, int *by_r);

/* One `mount "POINT" { ... }` section of the configuration. */
struct fp_mount_rule {
    const char *point; /* the mount point, in normal form */
    int by;            /* enum fp_watch_by, or FP_BY_AUTO: the general setting */
    long ttl_ms, stale_if_error_ms, negative_ttl_ms; /* -1: the general setting */
};

#endif
