/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an answer can stand for the look of core's walk. Knows no httpd.
 */
#ifndef FP_PLAN_H
#define FP_PLAN_H

#include <stdbool.h>
#include <stddef.h>

struct fp_step;

enum fp_plan {
    FP_PLAN_LEAVE,  /* core looks itself */
    FP_PLAN_WHOLE,  /* the whole path is there */
    FP_PLAN_PART,   /* the path leads through a file: path-info follows */
    FP_PLAN_ABSENT, /* a name of the path is absent: path-info follows */
};

/* Links on the way. */
struct fp_plan_links {
    bool restricted; /* core may ask for each component itself, and forbid links */
    bool any;        /* the answer has a link */
};

/*
 * last: the answer's last step, about a path of path_len bytes. slash: a slash follows the path.
 * as_directory: a section is for the last step's name as a directory. Core applies it where it takes the name
 * for one, and it does so only with a known file.
 */
enum fp_plan fp_plan_of(const struct fp_step *last, size_t path_len, bool slash,
                        const struct fp_plan_links *links, bool as_directory);

#endif
