/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line.
 */
#ifndef FP_ARGUMENTS_H
#define FP_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#define FP_MAX_OVERRIDES 64 /* more settings belong in a file */

struct fp_arguments {
    const char *file; /* an absolute path, or "" */
    char *overrides[FP_MAX_OVERRIDES];
    size_t n_overrides;
    bool check, supervised, passed;
};

/* Parses the command line.  Ends the process after --help, --version and mistakes. */
void fp_arguments_parse(struct fp_arguments *a, int argc, char **argv);

#endif
