/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the child that looks at the things that the child keeps, even if no request comes. A removed
 * file that somebody has open still takes its room on the disk.
 */
#ifndef FP_SWEEPER_H
#define FP_SWEEPER_H

#include <apr_pools.h>

/*
 * Call it once in a child, after what sweep() uses was made in the pool: no look begins after that pool's end. sweep()
 * returns after how many milliseconds it is to run again; UINT_MAX: when fp_sweeper_wake() was called.
 */
void fp_sweeper_init(apr_pool_t *p, unsigned (*sweep)(void));

/* There is something that is to be looked at every so many milliseconds. Begins the thread if need be, which handles
 * no signals; without one the child keeps what it has. Costs next to nothing while the thread looks as often. */
void fp_sweeper_wake(unsigned ms);

#endif
