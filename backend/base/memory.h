/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the daemon's loop.  If it runs out, the work at hand is left undone, and its client is
 * served without the daemon.  Each such case is counted and logged here, so that an operator
 * learns of it.
 */
#ifndef FP_MEMORY_H
#define FP_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* As malloc(3), calloc(3) and realloc(3); NULL is counted and logged. */
void *fp_memory_take(size_t size);
void *fp_memory_take_zeroed(size_t n, size_t size);
void *fp_memory_resize(void *p, size_t size);

/* Zeroed memory that this process shares with those that it forks, for as long as they live.  NULL with
 * errno, not counted: the daemon does not start. */
void *fp_memory_share(size_t size);

/* Counts and logs a failed allocation. */
void fp_memory_is_out(void);

/* How many allocations failed. */
uint64_t fp_memory_failures(void);

/* Gives free memory back to the system.  Takes its time: a millisecond for 16 MB, about, and little
 * for memory that was given back before. */
void fp_memory_give_back(void);

#endif
