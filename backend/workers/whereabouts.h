/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At which mount each worker is: so it is known what a walk waits for before it answers.  This is shared
 * memory that is made before workers are forked.  A worker writes its own place, which its process id gives,
 * before each call that may block; the daemon reads it.  A place is a hint, never an answer: workers could
 * write anything there, and two may have the same one.
 */
#ifndef FP_WHEREABOUTS_H
#define FP_WHEREABOUTS_H

#include <stdint.h>
#include <sys/types.h>

struct fp_whereabouts;

/* Returns NULL with errno.  The memory lasts as long as the process. */
struct fp_whereabouts *fp_whereabouts_create(void);

/* In the worker with that process id.  w: NULL does nothing.  mount: as in statx(2); 0: nowhere. */
void fp_whereabouts_set(struct fp_whereabouts *w, pid_t pid, uint32_t mount);

/* In the daemon: the mount where that worker is; 0: none, or unknown. */
uint32_t fp_whereabouts_of(const struct fp_whereabouts *w, pid_t pid);

#endif
