/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis' answers before hiredis has them: parts too large for a fleet's message are left out.
 *
 * A stream may hold anything: a value of 512 MB, an entry of a million fields.  hiredis would keep
 * all of it; to refuse the answer would end the connection, and the next one would meet the same
 * entry.  So a text that is too long becomes an empty one, and so does an array inside another one.
 * The entry's id stays, and the reader goes on behind it.  The bytes kept of one entry are bounded.
 */
#ifndef FP_FLEET_TRIM_H
#define FP_FLEET_TRIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FP_MAX_FLEET_ENTRIES 129  /* of the outermost array: READ_ENTRIES of fleet.c */
#define FP_FLEET_TRIM_LINE   1024 /* bytes of a line */
#define FP_FLEET_TRIM_DEPTH  6    /* of arrays; XREAD's answer has five */

/* Zeroed at the start of a connection. */
struct fp_fleet_trim {
    char line[FP_FLEET_TRIM_LINE]; /* that has not ended yet */
    size_t line_len;
    uint64_t text;                      /* bytes of a text that are still to come, its line end included */
    bool keep;                          /* that text */
    uint64_t left[FP_FLEET_TRIM_DEPTH]; /* elements to come, of each array that has begun */
    unsigned depth;
    uint64_t out; /* elements to come that are left out */
};

/* Gives the kept bytes to the callback.  NULL, or why this is not an answer of Redis. */
typedef bool fp_fleet_kept(void *ctx, const char *bytes, size_t len);
const char *fp_fleet_trim(struct fp_fleet_trim *t, const char *bytes, size_t len, fp_fleet_kept *kept,
                          void *ctx);

#endif
