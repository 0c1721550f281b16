/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child's own look at a file that the table of answers does not have, where it has a directory
 * above it. Most files of a large site are asked for seldom: a question costs as much as two requests.
 * After some looks (admission.h) the child leaves the daemon a hint, so that files in use come into
 * the table.
 */
#ifndef FP_LOOK_H
#define FP_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"

struct fp_answer;
struct fp_client;
struct fp_lease_view;
struct fp_names;

/* Call it once in a child. The look that makes it so many at a path leaves a hint; 1: fp_look_below_known() never
 * looks, so that the daemon is asked. */
void fp_look_init(unsigned looks);

struct fp_look_wish {
    const char *path; /* in normal form, of len bytes */
    size_t len;
    const struct fp_names *names; /* of access files */
    bool fresh;                   /* only where this machine's changes on the way there are reported */
    bool open;                    /* the file is to be sent */
    size_t root_len;              /* of the document root, if the path lies below it; else 0 */
};

/*
 * Looks at a path. A directory above it must be in the table with the access files of these names, and lie on a
 * file system of this machine. Only that one can make it wait. FP_OK: *a says that the path is absent, or a
 * directory, or a regular file, which is open if that was wanted. Directories below the known one have no
 * access file. It is as true as stock httpd's own look. There is no lease on it, as only the steps to the known
 * directory have slots. *view_r and all other statuses are as for fp_shared_find().
 */
fp_status fp_look_below_known(struct fp_client *client, const struct fp_look_wish *wish, struct fp_answer *a,
                  struct fp_lease_view **view_r);

#endif
