/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the child's own that looks at what the child keeps, also while no request comes: a removed file
 * that somebody has open takes its room on the disk.
 */
#ifndef FP_SWEEPER_H
#define FP_SWEEPER_H

#include <apr_pools.h>

/*
 * Call it once in a child, after what sweep() uses was made in the pool: the thread ends before that does. sweep()
 * runs without any lock of the caller's and returns after how many milliseconds it is to run again; 0: when
 * fp_sweeper_wake() was called.
 */
void fp_sweeper_init(apr_pool_t *p, unsigned (*sweep)(void));

/* There is something to look at. Begins the thread if need be, which handles no signals; without one the child keeps
 * what it has until it is asked for. Costs next to nothing while the thread is awake. */
void fp_sweeper_wake(void);

#endif
