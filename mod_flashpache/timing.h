/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FlashpacheServerTiming: the header Server-Timing (W3C Server Timing), for
 * browsers' developer tools and monitoring.
 */
#ifndef FP_TIMING_H
#define FP_TIMING_H

#include <httpd.h>

/* The hooks insert_filter and insert_error_filter: says how the path was found. */
void fp_timing_add(request_rec *r);

#endif
