/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of answers (answer_table.h): every child finds here, without a message, answers that
 * any child asked for or that the daemon looked at itself.
 */
#ifndef FP_SHARED_H
#define FP_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

struct fp_answer;
struct fp_client;
struct fp_held;
struct fp_lease_view;

/* Call it once in a child. use: false: nothing is found, so each question is a message. */
void fp_shared_init(bool use);

/* The tables, as fp_client_view(), and a reference for the caller. FP_UNKNOWN: they are not used. */
fp_status fp_shared_view(struct fp_client *client, struct fp_lease_view **view_r);
/* True if an answer of before that time may still be in use, where changes are not reported. client may be NULL. */
bool fp_shared_may_predate(struct fp_client *client, uint64_t then_ms);
/*
 * Finds the answer about h's path, in normal form. fresh: only an answer of which this machine's changes
 * are all reported. FP_OK: h's answer is as valid as the daemon's at this moment; the caller ends h. A local
 * file that may be sent has its content in the answer, or is open. FP_UNKNOWN: there is no answer.
 * FP_ASK: nor is there, but the daemon knows the path: its answer has expired, or may not be used now. Any
 * other status means that the daemon cannot be asked, as for fp_client_view().
 */
fp_status fp_shared_find(struct fp_client *client, bool fresh, struct fp_held *h);

#endif
