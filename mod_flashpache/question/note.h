/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request's log line, environment and response headers tell of its answer.
 */
#ifndef FP_NOTE_H
#define FP_NOTE_H

#include <httpd.h>

#include "status/outcomes.h"

/* Counts the outcome, and notes it for the log. */
void fp_note_outcome(request_rec *r, enum fp_count outcome);
/* Adds to the note "flashpache-us". */
void fp_note_us(request_rec *r, apr_uint64_t us);

/* log_transaction: copies outcome and reason to the environment, after CGI programs have run. */
int fp_note_log(request_rec *r);
/* insert_filter and insert_error_filter: FlashpacheServerTiming, the header Server-Timing (W3C
 * Server Timing), for browsers' developer tools and monitoring. */
void fp_note_timing(request_rec *r);

#endif
