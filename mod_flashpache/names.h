/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in a directory, read by this child and kept for as long as an answer about the directory holds:
 * a change in it that this machine makes ends the answer, and any change gives the directory another time.
 */
#ifndef FP_NAMES_H
#define FP_NAMES_H

#include <apr_pools.h>
#include <stdbool.h>

struct fp_lease;

/* Once in a child. */
void fp_names_init(apr_pool_t *p);

/*
 * True if no name in the directory begins with that text.  The lease is on the directory's path.  False also
 * where the names are not to be had: the directory cannot be read, was changed a moment ago, has too many
 * names, or its changes are not known without a question.
 */
bool fp_names_none_begins(const struct fp_lease *dir, const char *text);

#endif
