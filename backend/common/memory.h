/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the daemon's loop.  Where there is none the work at hand is left undone, and whoever
 * asked for it is served without the daemon; here it is counted and logged, so that an operator
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

/* Zeroed, the same for this process and those that it forks, and there for as long as they are.  NULL with errno,
 * not counted: the daemon does not start. */
void *fp_memory_share(size_t size);

/* There was none. */
void fp_memory_is_out(void);

/* How often there was none. */
uint64_t fp_memory_failures(void);

/* Gives what is free back to the system.  Takes its time: a millisecond for 16 MB, about, and little
 * for what was given back before. */
void fp_memory_give_back(void);

#endif
