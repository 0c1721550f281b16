/* SPDX-License-Identifier: Apache-2.0 */
/* inotify as a source of events: a watch for each directory and each open file (watch.h). */
#ifndef FP_WATCH_INOTIFY_H
#define FP_WATCH_INOTIFY_H

#include <stdbool.h>

#include "changes/watch_events.h"

/* -1 with errno. */
int fp_inotify_open(void);
/* As fp_watch_place(). */
fp_status fp_inotify_place(int inotify, int fd, enum fp_watch_what what, struct fp_watch_key *key);
/* As fp_watch_forget(). */
void fp_inotify_forget(int inotify, const struct fp_watch_key *key);
/* Ends more watches: the events of those that were ended have been read. */
void fp_inotify_forget_more(int inotify, const struct fp_watch_ops *ops, void *ctx);
/* True if some watches wait to be ended. */
bool fp_inotify_has_more(void);
/* Passes on the events that were queued before the call. */
void fp_inotify_drain(int inotify, const struct fp_watch_ops *ops, void *ctx);

#endif
