/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that were started with libflashpache_files.so.
 */
#ifndef FP_CTL_PHP_H
#define FP_CTL_PHP_H

#include <stdbool.h>
#include <stdint.h>

#include "files/answers.h"

struct ctl_php {
    uint64_t pid;
    bool loaded;  /* false: its environment has the library, but it is linked statically */
    bool counted; /* it has asked a daemon */
    uint64_t counts[FP_FILES_RESULTS];
};

typedef void ctl_php_tell(void *ctx, const struct ctl_php *p);

/* Tells each process that this one may look at. */
void ctl_php_each(ctl_php_tell *tell, void *ctx);

#endif
