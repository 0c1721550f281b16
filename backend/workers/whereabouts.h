/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At which mount each worker is: so it is known what a walk waits for before it answers.  This is shared
 * memory that is made before workers are forked.  A worker writes its own place before each call
 * that may block; the daemon reads it.  A place is a hint, never an answer: workers could write
 * anything there.
 */
#ifndef FP_WHEREABOUTS_H
#define FP_WHEREABOUTS_H

#include <stdint.h>
#include <sys/types.h>

struct fp_whereabouts;

/* Returns NULL with errno.  The memory lasts as long as the process. */
struct fp_whereabouts *fp_whereabouts_create(void);

/* In a worker: its place, for fp_whereabouts_set().  NULL: there is none left, or no memory. */
struct fp_place;
struct fp_place *fp_whereabouts_enter(struct fp_whereabouts *w, pid_t pid);
/* place: NULL does nothing.  mount: as in statx(2); 0: nowhere. */
void fp_whereabouts_set(struct fp_place *place, uint32_t mount);

/* In the daemon: the mount where that worker is; 0: none, or unknown. */
uint32_t fp_whereabouts_of(const struct fp_whereabouts *w, pid_t pid);
/* The worker is no more. */
void fp_whereabouts_leave(struct fp_whereabouts *w, pid_t pid);

#endif
