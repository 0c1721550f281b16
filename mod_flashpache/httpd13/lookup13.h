/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question of a child of Apache 1.3: to its kept leases, to the table of answers, to the daemon. Knows
 * no httpd. Signals that end the child must be blocked meanwhile.
 */
#ifndef FP_LOOKUP13_H
#define FP_LOOKUP13_H

#include <stdbool.h>
#include <stddef.h>

#include "status/outcomes.h"

struct fp_client;
struct fp_lease13;
struct fp_names;

/* This child's connections to the daemon; NULL: it has none. */
extern struct fp_client *fp_child_client;

/*
 * Finds an answer about the path with the access files of these names. owner: the question's settings, so
 * that other settings get no lease of these. fresh: only one of which this machine's changes are all
 * reported, or that was looked up after the question. Sets *lease_r, with a reference for the caller, and
 * *outcome_r with FP_OK alone.
 */
fp_status fp_lookup13(const void *owner, const struct fp_names *names, const char *path, size_t len,
                      bool fresh, struct fp_lease13 **lease_r, enum fp_count *outcome_r);

#endif
