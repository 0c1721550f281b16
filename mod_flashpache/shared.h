/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What any child asked about, or the daemon looked at itself, every child finds in the table of
 * answers (answer_table.h), without a message.
 */
#ifndef FP_SHARED_H
#define FP_SHARED_H

#include <stdbool.h>
#include <stddef.h>

#include "common/errors.h"

struct fp_answer;
struct fp_client;
struct fp_lease_view;
struct fp_names;

/* Once in a child; use: false, and nothing is found, so each question is a message. */
void fp_shared_init(bool use);

/*
 * Finds the answer about a path in normal form and the access files of these names.  FP_OK: *a is as valid
 * as an answer of the daemon at this moment, and *view_r are the tables it is from, with a reference for
 * the caller; a file to be had is there by its content, or open.  fresh: only an answer of which this machine's changes
 * are all reported.  FP_ABSENT: there is none, ask.  Else the daemon cannot be asked: as fp_client_view().
 */
fp_status fp_shared_find(struct fp_client *client, const struct fp_names *names, const char *path, size_t len,
                         bool fresh, struct fp_answer *a, struct fp_lease_view **view_r);

#endif
