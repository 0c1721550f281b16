/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question of a child of Apache 1.3: to the table of answers, then to the daemon. Knows
 * no httpd. Signals that end the child must be blocked meanwhile.
 */
#ifndef FP_LOOKUP13_H
#define FP_LOOKUP13_H

#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"

struct fp_client;
struct fp_held;

/* This child's connections to the daemon; NULL: it has none. */
extern struct fp_client *fp_child_client;

/*
 * Finds an answer about the path. fresh: only one of which this machine's changes are all reported, or that
 * was looked up after the question. FP_OK: the caller ends *h_r, whose path is the caller's and whose answer
 * the next question overwrites.
 */
fp_status fp_lookup13(const char *path, size_t len, bool fresh, struct fp_held *h_r);

#endif
