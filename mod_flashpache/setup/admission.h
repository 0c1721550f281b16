/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often children looked at a path themselves, in memory that all of them share. So the daemon learns the
 * files that are asked for again, and none of those that are asked for once.
 *
 * Counts are approximate. Each path has one entry by its hash, which the next path of that entry takes over.
 * So a path is forgotten when some 60,000 others came in between. Children write this memory: a hostile one
 * can make others leave more hints, or fewer, and no more than that.
 */
#ifndef FP_ADMISSION_H
#define FP_ADMISSION_H

#include <apr_pools.h>
#include <stddef.h>

#define FP_ADMISSION_MOST 65535 /* the largest count; the next one is 0 */

/* In the parent, before it makes children; the memory goes with the pool. */
void fp_admission_init(apr_pool_t *p);

/* Counts a look at this path. Returns how many there were with it, as far as is known; 0 where there is no
 * memory. No system call, no lock. */
unsigned fp_admission_count(const char *path, size_t len);

#endif
