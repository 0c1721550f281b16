/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page of Apache 1.3, as text: a line for each outcome, then the daemon's counters.
 */
#ifndef FP_STATUS13_H
#define FP_STATUS13_H

#include <httpd.h>

/* The handler flashpache-status. */
int fp_status13_respond(request_rec *r);

#endif
