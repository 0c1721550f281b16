/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a symbolic link name by name, so that every name on which the outcome depends is
 * noted.  The outcome is as if the kernel had followed the link.  Runs in a worker process.
 */
#ifndef FP_RESOLVE_LINKS_H
#define FP_RESOLVE_LINKS_H

#include <stdbool.h>

#include "base/errors.h"

struct fp_meta;
struct fp_node;
struct fp_resolver;
struct fp_walk_result;

/* The link of one step. */
struct fp_symlink {
    const struct fp_resolver *resolver;
    const struct fp_node *dir;     /* where it lies */
    struct fp_walk_result *result; /* gets the names */
    unsigned step;
    unsigned before; /* links followed on the path so far: the kernel counts all of it */
    unsigned *names; /* in the texts of all links that the walk has followed so far */
    bool passed;     /* the path goes on behind the link */
};

/*
 * node: the link, open, which fp_resolver_may_follow() allows.  It becomes the link's target, or -1 with any
 * status but FP_OK. FP_REFUSED also after more names than a walk may take by links: httpd looks itself.  *links_r: how many links were followed on the path by now; only with FP_OK.
 */
fp_status fp_symlink_follow(const struct fp_symlink *link, struct fp_node *node, unsigned *links_r);

#endif
