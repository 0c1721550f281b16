/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's queue of mounts and unmounts (watch.h). */
#ifndef FP_WATCH_REMOUNTS_H
#define FP_WATCH_REMOUNTS_H

/* Opens the queue of this mount namespace, by fanotify: Linux 6.15, as root.  -1 if the kernel, or our rights, do
 * not do. */
int fp_remounts_open(void);

#endif
