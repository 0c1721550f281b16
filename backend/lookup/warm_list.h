/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths in use as the text of a file that one daemon leaves to the next.
 *
 *   flashpached paths 2
 *   names/.htaccess/.acl
 *   /srv/www/index.html
 *   end 1
 *
 * The second line has the names of access files that the daemon looks for ("names" alone: none).  A path is in
 * normal form.  A name or path with a line end in it is left out.  The last line says how many paths there are:
 * a file without it is not whole.
 *
 * The list keeps paths alone, no answers: these would not be true any more.
 */
#ifndef FP_WARM_LIST_H
#define FP_WARM_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "wire/wire.h"

#define FP_WARM_PATHS 100000u     /* that a list may have, */
#define FP_WARM_BYTES (16u << 20) /* and bytes of it: checked in some 20 ms */

/* A text to be written.  Begins as zero, but for the names. */
struct fp_warm_text {
    FILE *file; /* a memfd; NULL: there is no path yet */
    size_t len, paths;
    unsigned hash;                /* of the text */
    const struct fp_names *names; /* the caller's */
};

/* Adds a path; text is a struct fp_warm_text.  False: the list is full, or there is no memory. */
bool fp_warm_add(void *text, const char *path, size_t len);
/* Adds the last line to a text with a path: all of it is in the memfd then.  False, with errno: there
 * was no memory. */
bool fp_warm_end(struct fp_warm_text *t);
/* Closes the memfd.  The text begins anew. */
void fp_warm_drop(struct fp_warm_text *t);

/* A text to be read.  Set text and len. */
struct fp_warm_reader {
    const char *text;
    size_t len, at;
    unsigned line; /* the number of the last one that was read */
    struct fp_names names;
};

/* Returns NULL, or a text that says what is wrong in line r->line.  Reads nothing. */
const char *fp_warm_check(struct fp_warm_reader *r);
/* Begins to read a text that was checked: takes its names.  They, and paths, point into the text. */
void fp_warm_begin(struct fp_warm_reader *r);
/* The next path.  False: that was all. */
bool fp_warm_next(struct fp_warm_reader *r, struct fp_lookup *l_r);

#endif
