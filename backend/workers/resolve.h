/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking walk from "/" to a path, and the open at its end.  Runs in a
 * worker process; knows no cache and no loop.
 *
 * The walk goes by descriptors, component by component.  So the metadata and
 * the descriptor of the last step are those of one and the same inode.  A
 * link's owner is that of the very link that was followed.  Every directory
 * and file is watched, where that can be, before it is looked at.
 *
 * A race that remains: the steps are looked at one after another, and a
 * directory may be renamed between two of them.  Then the answer describes a
 * walk that a client could have made at that time, as with open(2) itself.
 */
#ifndef FP_RESOLVE_H
#define FP_RESOLVE_H

#include "workers/resolver.h"

struct fp_answer;
struct fp_task;
struct fp_walk_result;

/*
 * Fills *a and *result for the task: its path is in normal form
 * (fp_path_is_normal), its names are looked for in each directory on the way.
 * base is the directory where it begins, opened O_PATH, -1 for "/"; it stays
 * the caller's.  Only regular files are opened: O_RDONLY, non-blocking, never a
 * terminal, close-on-exec.  A directory that is the whole path comes with a
 * descriptor opened O_PATH.  Outside the roots, for a path too deep, or with no
 * descriptor free the answer has no steps.  The caller
 * owns a->fd.
 */
void fp_resolve(const struct fp_resolver *r, const struct fp_task *t, int base, struct fp_answer *a,
                struct fp_walk_result *result);

#endif
