/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify as a source of events: a mark for a whole file system, and one for mounts (watch.h). */
#ifndef FP_WATCH_FANOTIFY_H
#define FP_WATCH_FANOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "changes/watch_events.h"

/* -1 with errno. */
int fp_fanotify_open(void);
/* False, with errno: the file system at that mount point is not marked. */
bool fp_fanotify_mark(int fanotify, const char *mount_point);
/* The kernel's list of the marks, the caller's; NULL with errno. */
FILE *fp_fanotify_open_marks(int fanotify);
/* The devices in that list, as it is now. */
size_t fp_fanotify_marked(FILE *marks, dev_t *devs, size_t max);
/* The key of the events of a directory or file in a marked file system; as fp_watch_place(). */
fp_status fp_fanotify_place(int fd, struct fp_watch_key *key);
/* Returns -1 if the kernel, or our rights, do not do. */
int fp_fanotify_open_remounts(void);
/* Passes on the events that were queued before the call. */
void fp_fanotify_drain(int fanotify, const struct fp_watch_ops *ops, void *ctx);

#endif
