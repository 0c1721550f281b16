/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer that a client finds in the daemon's memory, without a message. The table of answers has it, and
 * the lease table says whether it holds.
 */
#ifndef FP_KNOWN_H
#define FP_KNOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"

struct fp_answer;
struct fp_lease_view;

/* True if the first n steps are valid now: the answer is as true as if it had been asked for.  Each call is a system
 * call. */
bool fp_known_holds(const struct fp_lease_view *view, const struct fp_answer *a, unsigned n);

/* True if no change of a step was reported until now. Each step's time may be over. Each call is a system call. */
bool fp_known_is_unchanged(const struct fp_lease_view *view, const struct fp_answer *a);

/*
 * Finds the answer about the path, in normal form. watched: only one of which this machine's changes are all reported.
 * FP_OK: it holds now. FP_ASK: the daemon knows the path, but its answer *a does not hold, or may not be used.
 * FP_UNKNOWN: there is no answer, and a is undefined.
 */
fp_status fp_known_find(const struct fp_lease_view *view, const char *path, size_t len, bool watched,
                        struct fp_answer *a);

/* Tells the daemon that the answer was used: its records get a second chance, and its entries are refreshed. That is of
 * the last step and the one above: a LEAF's slot, and a DIR's. */
void fp_known_use(const struct fp_lease_view *view, const struct fp_answer *a);

#endif
