/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers for answers, which requests borrow.  One is large: FP_MAX_STEPS steps.  Few of them are used,
 * and pages that nobody touches cost nothing.  A piece of a request's pool of that size would be given
 * to other pools afterwards, and soon all of it is in use, in each child.
 */
#ifndef FP_ANSWER_BUF_H
#define FP_ANSWER_BUF_H

#include <apr_pools.h>

#include "common/answer.h"

/* Call it once in a child of so many threads. */
void fp_answer_buf_init(apr_pool_t *p, int threads);

/* A buffer until the pool is cleared, with any bytes in it.  Where all are lent it is the pool's own. */
struct fp_answer *fp_answer_buf_borrow(apr_pool_t *p);

#endif
