/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of a fleet's daemons: one line of text each, of bounded length, in a
 * stream that may hold anything.
 *
 *   SENDER path PATH     forget the path.
 *   SENDER tree PATH     forget the path and everything below it.
 *   SENDER all           forget everything in the fleet's roots.
 *   SENDER join          forget nothing; the sender reads on from here.
 *
 * SENDER is 16 lower-case hexadecimal digits.  A message can make a daemon
 * forget and nothing else.
 */
#ifndef FP_FLEET_MESSAGE_H
#define FP_FLEET_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/path.h"

#define FP_FLEET_VERSION     "fp1" /* the name of a stream entry's only field */
#define FP_FLEET_SENDER      16
#define FP_MAX_FLEET_MESSAGE (FP_FLEET_SENDER + 6 + FP_MAX_PATH)
#define FP_MAX_STREAM_ID     41 /* two numbers of 64 bits and "-" */

enum fp_fleet_op { FP_FLEET_PATH, FP_FLEET_TREE, FP_FLEET_ALL, FP_FLEET_JOIN };

struct fp_fleet_message {
    enum fp_fleet_op op;
    const char *sender; /* FP_FLEET_SENDER bytes */
    const char *path;   /* not terminated; NULL where op has none */
    size_t path_len;
};

/* Writes the text, not terminated, to buf, which has FP_MAX_FLEET_MESSAGE bytes; returns its length. */
size_t fp_fleet_message_write(char *buf, const struct fp_fleet_message *m);

/* Returns false unless all of the text is one message, its path in normal form.  m points into
 * the text. */
bool fp_fleet_message_read(const char *text, size_t len, struct fp_fleet_message *m);

/* True for "MILLISECONDS-NUMBER", an id of a stream's entry. */
bool fp_fleet_is_id(const char *id, size_t len);

#endif
