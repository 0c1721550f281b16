/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths in use as the text of a file that one daemon leaves to the next.
 *
 *   flashpached paths 1
 *   names/.htaccess/.acl
 *   /srv/www/index.html
 *   end 1
 *
 * A line of names holds for the paths below it until the next one ("names" alone: none).  Before
 * the first such line there are none.  Between two of them is a path, so that one path takes two lines at
 * most to read.  A path is in normal form; one with a line end in it is left out.  The last line says
 * how many paths there are: a file without it is not whole.
 *
 * The list keeps paths alone, no answers: these would not be true any more.
 */
#ifndef FP_WARM_LIST_H
#define FP_WARM_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/wire.h"

#define FP_WARM_PATHS 100000u     /* that a list may have, */
#define FP_WARM_BYTES (16u << 20) /* and bytes of it: checked in some 20 ms */

/* A text to be written.  Begins as zero. */
struct fp_warm_text {
    char *text; /* free() it */
    size_t len, capacity, paths;
    struct fp_names names; /* of the last line of names; point into names_text */
    char names_text[FP_NAMES_TEXT];
};

/* Adds a path.  False: the list is full, or there is no memory. */
bool fp_warm_add(struct fp_warm_text *t, const struct fp_names *names, const char *path, size_t len);
/* Adds the last line.  False as above. */
bool fp_warm_end(struct fp_warm_text *t);

/* A text to be read.  Set text and len. */
struct fp_warm_reader {
    const char *text;
    size_t len, at;
    unsigned line; /* the number of the last one that was read */
    struct fp_names names;
};

/* Returns NULL, or a text that says what is wrong in line r->line.  Reads nothing. */
const char *fp_warm_check(struct fp_warm_reader *r);
/* The next path of a text that was checked, with its
 * names: both point into the text.  False: that was all. */
bool fp_warm_next(struct fp_warm_reader *r, struct fp_lookup *l_r);

#endif
