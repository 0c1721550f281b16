/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_WATCH_BY_H
#define FP_WATCH_BY_H

/* How the daemon detects a change on a file system. */
enum fp_watch_by { FP_BY_TTL, FP_BY_INOTIFY };

#endif
