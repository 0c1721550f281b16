/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer that a client finds in the daemon's memory, without a message: the table of answers has it, and
 * the lease table says whether it holds.
 */
#ifndef FP_KNOWN_H
#define FP_KNOWN_H

#include <stdbool.h>

struct fp_answer;
struct fp_lease_view;

/* True if the first n steps are valid now: the answer is as true as if it had been asked for.  Each call is a system
 * call. */
bool fp_known_holds(const struct fp_lease_view *view, const struct fp_answer *a, unsigned n);

/* Says that the answer was used: its records get a second chance, and its entries are refreshed. */
void fp_known_mark(const struct fp_lease_view *view, const struct fp_answer *a);

#endif
